//! What is replayed: the attempts of recordings, and transcripts by themselves.

use super::find::{Found, META, OUTCOME, STDERR, SUBMISSIONS, beside};
use counterfoil_agents::agent::adapter::{adapter, adapters};
use counterfoil_agents::recording::{
    Attempt, FILE, Kept, Recording, Reply, Said, VERSION, is_inside, spoken_by,
};
use counterfoil_contract::Definition;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A longer file is not read.
const LARGEST: u64 = 1 << 30;

/// One attempt to be judged again.
pub(super) struct Case {
    /// As people call it.
    pub(super) name: String,
    /// The attempt as it was recorded.
    pub(super) attempt: Attempt,
    /// What was said.
    pub(super) said: Vec<Said>,
    /// The final texts as they were recorded.
    pub(super) texts: Vec<Option<String>>,
    /// The definition of its contract that was recorded.
    pub(super) definition: Option<Definition>,
}

/// Something that was found, with its cases.
pub(super) struct Source {
    pub(super) origin: Origin,
    /// Each case, or its name and why it cannot be judged.
    pub(super) cases: Vec<Result<Case, (String, String)>>,
}

/// Where cases come from, so that what came of them can be written there.
pub(super) enum Origin {
    Recording {
        folder: PathBuf,
        recording: Box<Recording>,
    },
    Transcript {
        path: PathBuf,
    },
    /// Nothing that could be read.
    Nowhere,
}

/// What a transcript came to, as it stands beside it.
#[derive(Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) version: u32,
    pub(super) attempt: Attempt,
    /// The final text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// Reads what was found. None for a file in a folder that holds no transcript, as far as can be
/// told.
pub(super) fn load(found: &Found, agent: Option<&str>) -> Option<Source> {
    match found {
        Found::Recording(folder) => Some(recording(folder)),
        Found::Transcript { path, named } => {
            let case = match transcript(path, agent) {
                Ok(case) => Ok(case),
                Err(Unreadable::NoTranscript) if !named => return None,
                Err(why) => Err((path.display().to_string(), why.words())),
            };
            Some(Source { origin: Origin::Transcript { path: path.clone() }, cases: vec![case] })
        }
    }
}

fn recording(folder: &Path) -> Source {
    let path = folder.join(FILE);
    let recording =
        read(&path).and_then(|bytes| Recording::parse(&bytes).map_err(|error| error.to_string()));
    let recording = match recording {
        Ok(recording) => Box::new(recording),
        Err(why) => {
            return Source {
                origin: Origin::Nowhere,
                cases: vec![Err((path.display().to_string(), why))],
            };
        }
    };
    let cases = recording.attempts.iter().map(|attempt| {
        let name = format!("{}: {}", folder.display(), attempt.name());
        recorded(folder, attempt, &recording.contracts, &name).map_err(|why| (name, why))
    });
    let cases = cases.collect();
    Source { origin: Origin::Recording { folder: folder.to_owned(), recording }, cases }
}

fn recorded(
    folder: &Path,
    attempt: &Attempt,
    contracts: &BTreeMap<String, Definition>,
    name: &str,
) -> Result<Case, String> {
    let (mut said, mut texts) = (Vec::new(), Vec::new());
    for (index, reply) in attempt.replies.iter().enumerate() {
        let number = index + 1;
        if let Some(program) = reply.program.as_deref().filter(|program| adapter(program).is_none())
        {
            return Err(format!(
                "reply {number} is of '{program}', of which this program knows nothing"
            ));
        }
        let Some(stdout) = &reply.stdout else {
            return Err(format!("what reply {number} said was left out of the recording"));
        };
        let other =
            |kept: &Option<Kept>| kept.as_ref().map_or(Ok(Vec::new()), |kept| part(folder, kept));
        let (prompt, errors, submissions) =
            (other(&reply.prompt)?, other(&reply.stderr)?, other(&reply.submissions)?);
        let output = part(folder, stdout)?;
        said.push(Said::of(reply.program.as_deref(), output, &prompt, &errors, &submissions));
        let text = reply.text.as_ref().map(|kept| part(folder, kept)).transpose()?;
        texts.push(text.map(|text| String::from_utf8_lossy(&text).into_owned()));
    }
    let definition =
        attempt.contract.as_ref().and_then(|reference| contracts.get(reference)).cloned();
    Ok(Case { name: name.to_owned(), attempt: attempt.clone(), said, texts, definition })
}

/// A file of a recording, as it was recorded.
fn part(folder: &Path, kept: &Kept) -> Result<Vec<u8>, String> {
    if !is_inside(&kept.file) {
        return Err(format!("{:?} is not in the recording", kept.file));
    }
    let bytes = read(&folder.join(&kept.file))?;
    if !kept.is(&bytes) {
        return Err(format!(
            "{} is not what was recorded; restore it, or export the run again",
            kept.file
        ));
    }
    Ok(bytes)
}

/// Why a transcript cannot be judged.
enum Unreadable {
    /// It is none, as far as can be told.
    NoTranscript,
    Because(String),
}

impl Unreadable {
    fn words(self) -> String {
        match self {
            Self::NoTranscript => {
                let names: Vec<&str> = adapters().iter().map(|adapter| adapter.name()).collect();
                format!(
                    "nothing says whose events it holds; name one of {} with --agent",
                    names.join(", ")
                )
            }
            Self::Because(why) => why,
        }
    }
}

fn transcript(path: &Path, agent: Option<&str>) -> Result<Case, Unreadable> {
    let because = Unreadable::Because;
    let output = read(path).map_err(because)?;
    let optional = |end: &str| -> Result<Option<Vec<u8>>, Unreadable> {
        let path = beside(path, end);
        if path.is_file() { read(&path).map(Some).map_err(because) } else { Ok(None) }
    };
    let meta = match optional(META)? {
        Some(bytes) => serde_json::from_slice::<Value>(&bytes).map_err(|error| {
            because(format!("{} cannot be read: {error}", beside(path, META).display()))
        })?,
        None => Value::Null,
    };
    let program = program(path, agent, &meta, &output)?;
    let errors = optional(STDERR)?.unwrap_or_default();
    let submissions = optional(SUBMISSIONS)?.unwrap_or_default();
    let prompt = meta.get("stdin").and_then(Value::as_str).unwrap_or_default();
    let (attempt, text) = match optional(OUTCOME)? {
        Some(bytes) => outcome(&bytes).map_err(|why| {
            because(format!("{} {why}; remove it, or restore it", beside(path, OUTCOME).display()))
        })?,
        None => (unrecorded(program.as_deref(), &meta), None),
    };
    let said = Said::of(program.as_deref(), output, prompt.as_bytes(), &errors, &submissions);
    let name = path.display().to_string();
    Ok(Case { name, attempt, said: vec![said], texts: vec![text], definition: None })
}

/// What was recorded beside a transcript.
fn outcome(bytes: &[u8]) -> Result<(Attempt, Option<String>), String> {
    let outcome: Outcome =
        serde_json::from_slice(bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if outcome.version > VERSION {
        let found = outcome.version;
        return Err(format!(
            "has form {found}, and this program reads up to {VERSION}: use a newer one"
        ));
    }
    if outcome.attempt.replies.len() != 1 {
        return Err("is not of one reply".to_owned());
    }
    Ok((outcome.attempt, outcome.text))
}

/// An attempt of which nothing is known but how its program was called and ended.
fn unrecorded(program: Option<&str>, meta: &Value) -> Attempt {
    let rc = meta.get("rc").and_then(Value::as_i64).and_then(|rc| i32::try_from(rc).ok());
    let words =
        meta.get("argv").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let schema = words.into_iter().any(|word| word.starts_with("--") && word.contains("schema"));
    let program = program.map(str::to_owned);
    let agent = program.clone().unwrap_or_default();
    let reply = Reply { program, exit: rc, schema, ..Reply::default() };
    Attempt { n: 1, agent, replies: vec![reply], ..Attempt::default() }
}

/// The program whose events a transcript holds; none for a plain text.
fn program(
    path: &Path,
    agent: Option<&str>,
    meta: &Value,
    output: &[u8],
) -> Result<Option<String>, Unreadable> {
    if let Some(agent) = agent {
        return Ok(Some(agent.to_owned()));
    }
    if let Some(cli) = meta.get("cli").and_then(Value::as_str) {
        let unknown = || {
            Unreadable::Because(format!("it is of '{cli}', of which this program knows nothing"))
        };
        return adapter(cli).map(|adapter| Some(adapter.name().to_owned())).ok_or_else(unknown);
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .and_then(adapter);
    if let Some(adapter) = folder {
        return Ok(Some(adapter.name().to_owned()));
    }
    match spoken_by(output).as_slice() {
        [one] => Ok(Some(one.name().to_owned())),
        [] if path.extension().is_none_or(|extension| extension != "jsonl") => Ok(None),
        _ => Err(Unreadable::NoTranscript),
    }
}

/// What a case is to be recorded with.
pub(super) struct Settled {
    /// Which attempt of its recording.
    pub(super) index: usize,
    pub(super) attempt: Attempt,
    pub(super) texts: Vec<Option<String>>,
    /// What it was judged by.
    pub(super) definition: Option<Definition>,
}

/// Writes what came of cases: into the recording, or beside the transcript.
pub(super) fn write_back(origin: &mut Origin, settled: Vec<Settled>) -> Result<(), String> {
    let (path, text) = match origin {
        Origin::Nowhere => return Ok(()),
        Origin::Recording { folder, recording } => {
            for one in settled {
                record(folder, recording, one)?;
            }
            recording.forget_unused();
            (folder.join(FILE), recording.text())
        }
        Origin::Transcript { path } => {
            let Some(Settled { attempt, mut texts, .. }) = settled.into_iter().next() else {
                return Ok(());
            };
            let outcome = Outcome { version: VERSION, attempt, text: texts.pop().flatten() };
            (beside(path, OUTCOME), serde_json::to_string_pretty(&outcome).map(|text| text + "\n"))
        }
    };
    replace(&path, text.map_err(|error| error.to_string())?.as_bytes())
}

fn record(folder: &Path, recording: &mut Recording, settled: Settled) -> Result<(), String> {
    let Settled { index, mut attempt, texts, definition } = settled;
    for (reply, text) in attempt.replies.iter_mut().zip(texts) {
        if let (Some(kept), Some(text)) = (&mut reply.text, text) {
            replace(&folder.join(&kept.file), text.as_bytes())?;
            *kept = Kept::of(&kept.file, text.as_bytes());
        }
    }
    if let (Some(definition), Some(reference)) = (definition, &attempt.contract) {
        recording.contracts.insert(reference.clone(), definition);
    }
    if let Some(place) = recording.attempts.get_mut(index) {
        *place = attempt;
    }
    Ok(())
}

/// Writes a file whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(wrong)?;
    std::io::Write::write_all(&mut file, bytes).map_err(wrong)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode).map_err(wrong)?;
    file.persist(path).map_err(|error| wrong(error.error))?;
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let wrong = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    // A pipe would be waited for.
    if !std::fs::metadata(path).map_err(wrong)?.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(wrong)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("{} is longer than {LARGEST} bytes", path.display()));
    }
    Ok(bytes)
}
