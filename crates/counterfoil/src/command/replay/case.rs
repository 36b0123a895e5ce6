//! The cases to replay: attempts of recordings, and single transcripts.

use super::find::{Found, META, OUTCOME, STDERR, SUBMISSIONS, beside};
use counterfoil_agents::adapters::{adapter, adapters};
use counterfoil_agents::recording::{
    Attempt, FILE, RecordedFile, RecordedOutput, Recording, Reply, VERSION, detect_programs,
};
use counterfoil_contract::Definition;
use counterfoil_contract::text::display_path;
use counterfoil_workspace::atomic_write;
use counterfoil_workspace::path::is_strictly_inside;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The size limit of a file.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// An attempt to replay.
pub(super) struct Case {
    /// The name of the case in the output.
    pub(super) name: String,
    /// The recorded attempt.
    pub(super) attempt: Attempt,
    /// The recorded output of each reply.
    pub(super) outputs: Vec<RecordedOutput>,
    /// The recorded final text of each reply.
    pub(super) texts: Vec<Option<String>>,
    /// The recorded definition of its contract.
    pub(super) definition: Option<Definition>,
}

/// A recording or transcript, with its cases.
pub(super) struct Source {
    pub(super) origin: Origin,
    /// The cases. An error has the name of the case and the reason why it cannot be replayed.
    pub(super) cases: Vec<Result<Case, (String, String)>>,
}

/// Where cases come from, for `--update`.
pub(super) enum Origin {
    Recording {
        folder: PathBuf,
        recording: Box<Recording>,
    },
    Transcript {
        path: PathBuf,
    },
    /// A source that could not be read.
    Unreadable,
}

/// The recorded outcome of a transcript, in a file beside it.
#[derive(Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) version: u32,
    pub(super) attempt: Attempt,
    /// The final text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// Loads what was found. Returns none for a file in a folder that does not seem to be a transcript.
pub(super) fn load(found: &Found, agent: Option<&str>) -> Option<Source> {
    match found {
        Found::Recording(folder) => Some(load_recording(folder)),
        Found::LostTranscript(outcome) => {
            let why = "the transcript that it was recorded of is not there; restore it, or remove the file";
            let broken = (display_path(outcome), why.to_owned());
            Some(Source { origin: Origin::Unreadable, cases: vec![Err(broken)] })
        }
        Found::Transcript { path, named } => {
            let case = match load_transcript(path, agent) {
                Ok(case) => Ok(case),
                Err(TranscriptError::UnknownProgram) if !named => return None,
                Err(TranscriptError::UnknownProgram) if beside(path, OUTCOME).is_file() => {
                    let why = "its outcome was recorded, and the events in it are of no known agent \
                               program; restore it, set --agent, or remove its outcome";
                    Err((display_path(path), why.to_owned()))
                }
                Err(why) => Err((display_path(path), why.message())),
            };
            Some(Source { origin: Origin::Transcript { path: path.clone() }, cases: vec![case] })
        }
    }
}

fn load_recording(folder: &Path) -> Source {
    let path = folder.join(FILE);
    let recording =
        read(&path).and_then(|bytes| Recording::parse(&bytes).map_err(|error| error.to_string()));
    let recording = match recording {
        Ok(recording) => Box::new(recording),
        Err(why) => {
            return Source {
                origin: Origin::Unreadable,
                cases: vec![Err((display_path(&path), why))],
            };
        }
    };
    let cases = recording.attempts.iter().map(|attempt| {
        let name = format!("{}: {}", display_path(folder), attempt.name());
        load_attempt(folder, attempt, &recording.contracts, &name).map_err(|why| (name, why))
    });
    let cases = cases.collect();
    Source { origin: Origin::Recording { folder: folder.to_owned(), recording }, cases }
}

fn load_attempt(
    folder: &Path,
    attempt: &Attempt,
    contracts: &BTreeMap<String, Definition>,
    name: &str,
) -> Result<Case, String> {
    let (mut outputs, mut texts) = (Vec::new(), Vec::new());
    for (index, reply) in attempt.replies.iter().enumerate() {
        let number = index + 1;
        if let Some(program) = reply.program.as_deref().filter(|program| adapter(program).is_none())
        {
            return Err(format!(
                "reply {number} is from '{program}', which is not a supported agent program"
            ));
        }
        let Some(stdout) = &reply.stdout else {
            return Err(format!("the output of reply {number} is not in the recording"));
        };
        let optional = |kept: &Option<RecordedFile>| {
            kept.as_ref().map_or(Ok(Vec::new()), |kept| read_part(folder, kept))
        };
        let (prompt, errors, submissions) =
            (optional(&reply.prompt)?, optional(&reply.stderr)?, optional(&reply.submissions)?);
        let output = read_part(folder, stdout)?;
        // Of events that no adapter reads, the text that was found in them is replayed.
        let output = if reply.program.is_none() && reply.has_events() {
            optional(&reply.text)?
        } else {
            output
        };
        outputs.push(RecordedOutput::from_files(
            reply.program.as_deref(),
            output,
            &prompt,
            &errors,
            &submissions,
        ));
        let text = reply.text.as_ref().map(|kept| read_part(folder, kept)).transpose()?;
        texts.push(text.map(|text| String::from_utf8_lossy(&text).into_owned()));
    }
    let definition =
        attempt.contract.as_ref().and_then(|reference| contracts.get(reference)).cloned();
    Ok(Case { name: name.to_owned(), attempt: attempt.clone(), outputs, texts, definition })
}

/// Reads a file of a recording and verifies its hash.
fn read_part(folder: &Path, kept: &RecordedFile) -> Result<Vec<u8>, String> {
    if !is_strictly_inside(Path::new(&kept.file)) {
        return Err(format!("{:?} is outside the recording", kept.file));
    }
    let bytes = read(&folder.join(&kept.file))?;
    if !kept.matches(&bytes) {
        return Err(format!(
            "{} was changed after it was recorded; restore it, or export the run again",
            kept.file
        ));
    }
    Ok(bytes)
}

/// Why a transcript cannot be replayed.
enum TranscriptError {
    /// The agent program that wrote it cannot be determined.
    UnknownProgram,
    /// Any other reason.
    Other(String),
}

impl TranscriptError {
    fn message(self) -> String {
        match self {
            Self::UnknownProgram => {
                let names: Vec<&str> = adapters().iter().map(|adapter| adapter.name()).collect();
                format!(
                    "the agent program that wrote it is unknown; set --agent to one of {}",
                    names.join(", ")
                )
            }
            Self::Other(why) => why,
        }
    }
}

fn load_transcript(path: &Path, agent: Option<&str>) -> Result<Case, TranscriptError> {
    let other = TranscriptError::Other;
    let output = read(path).map_err(other)?;
    let read_beside = |suffix: &str| -> Result<Option<Vec<u8>>, TranscriptError> {
        let path = beside(path, suffix);
        if path.is_file() { read(&path).map(Some).map_err(other) } else { Ok(None) }
    };
    let meta = match read_beside(META)? {
        Some(bytes) => serde_json::from_slice::<Value>(&bytes).map_err(|error| {
            other(format!("cannot parse {}: {error}", display_path(&beside(path, META))))
        })?,
        None => Value::Null,
    };
    let program = find_program(path, agent, &meta, &output)?;
    let errors = read_beside(STDERR)?.unwrap_or_default();
    let submissions = read_beside(SUBMISSIONS)?.unwrap_or_default();
    let prompt = meta.get("stdin").and_then(Value::as_str).unwrap_or_default();
    let (attempt, text) = match read_beside(OUTCOME)? {
        Some(bytes) => parse_outcome(&bytes).map_err(|why| {
            other(format!(
                "{}: {why}; restore or remove the file",
                display_path(&beside(path, OUTCOME))
            ))
        })?,
        None => (attempt_without_outcome(program.as_deref(), &meta), None),
    };
    let output = RecordedOutput::from_files(
        program.as_deref(),
        output,
        prompt.as_bytes(),
        &errors,
        &submissions,
    );
    let name = display_path(path);
    Ok(Case { name, attempt, outputs: vec![output], texts: vec![text], definition: None })
}

/// Parses the outcome file of a transcript.
fn parse_outcome(bytes: &[u8]) -> Result<(Attempt, Option<String>), String> {
    let outcome: Outcome =
        serde_json::from_slice(bytes).map_err(|error| format!("it cannot be parsed: {error}"))?;
    if outcome.version > VERSION {
        let found = outcome.version;
        return Err(format!(
            "it has format version {found}, but this program supports versions up to {VERSION}; use a newer one"
        ));
    }
    if outcome.attempt.replies.len() != 1 {
        return Err("it does not have exactly one reply".to_owned());
    }
    Ok((outcome.attempt, outcome.text))
}

/// An attempt without a recorded outcome: only the arguments and exit status of the program are
/// known.
fn attempt_without_outcome(program: Option<&str>, meta: &Value) -> Attempt {
    let rc = meta.get("rc").and_then(Value::as_i64).and_then(|rc| i32::try_from(rc).ok());
    let arguments =
        meta.get("argv").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let schema = arguments
        .into_iter()
        .any(|argument| argument.starts_with("--") && argument.contains("schema"));
    let program = program.map(str::to_owned);
    let agent = program.clone().unwrap_or_default();
    let reply = Reply { program, exit: rc, schema, ..Reply::default() };
    Attempt { n: 1, agent, replies: vec![reply], ..Attempt::default() }
}

/// The agent program that wrote a transcript; none for plain text.
fn find_program(
    path: &Path,
    agent: Option<&str>,
    meta: &Value,
    output: &[u8],
) -> Result<Option<String>, TranscriptError> {
    if let Some(agent) = agent {
        return Ok(Some(agent.to_owned()));
    }
    if let Some(cli) = meta.get("cli").and_then(Value::as_str) {
        let unknown = || {
            TranscriptError::Other(format!(
                "it is from '{cli}', which is not a supported agent program"
            ))
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
    match detect_programs(output).as_slice() {
        [one] => Ok(Some(one.name().to_owned())),
        [] if path.extension().is_none_or(|extension| extension != "jsonl") => Ok(None),
        _ => Err(TranscriptError::UnknownProgram),
    }
}

/// The new outcome of a case, to be recorded.
pub(super) struct NewOutcome {
    /// The index of the attempt in its recording.
    pub(super) index: usize,
    pub(super) attempt: Attempt,
    pub(super) texts: Vec<Option<String>>,
    /// The definition of the contract that was used.
    pub(super) definition: Option<Definition>,
}

/// Writes new outcomes into the recording, or beside the transcript.
pub(super) fn write_back(origin: &mut Origin, outcomes: Vec<NewOutcome>) -> Result<(), String> {
    let (path, text) = match origin {
        Origin::Unreadable => return Ok(()),
        Origin::Recording { folder, recording } => {
            for outcome in outcomes {
                update_recording(folder, recording, outcome)?;
            }
            recording.remove_unused_contracts();
            (folder.join(FILE), recording.to_json())
        }
        Origin::Transcript { path } => {
            let Some(NewOutcome { attempt, mut texts, .. }) = outcomes.into_iter().next() else {
                return Ok(());
            };
            let outcome = Outcome { version: VERSION, attempt, text: texts.pop().flatten() };
            (beside(path, OUTCOME), serde_json::to_string_pretty(&outcome).map(|text| text + "\n"))
        }
    };
    write_file(&path, text.map_err(|error| error.to_string())?.as_bytes())
}

fn update_recording(
    folder: &Path,
    recording: &mut Recording,
    outcome: NewOutcome,
) -> Result<(), String> {
    let NewOutcome { index, mut attempt, texts, definition } = outcome;
    for (reply, text) in attempt.replies.iter_mut().zip(texts) {
        if let (Some(kept), Some(text)) = (&mut reply.text, text) {
            write_file(&folder.join(&kept.file), text.as_bytes())?;
            *kept = RecordedFile::from_bytes(&kept.file, text.as_bytes());
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

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    atomic_write(path, bytes)
        .map_err(|error| format!("cannot write {}: {error}", display_path(path)))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let read_error = |error: std::io::Error| format!("cannot read {}: {error}", display_path(path));
    // Anything but a regular file, such as a pipe, could block.
    if !std::fs::metadata(path).map_err(read_error)?.is_file() {
        return Err(format!("{} is not a regular file", display_path(path)));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(read_error)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("{} is larger than {MAX_FILE_BYTES} bytes", display_path(path)));
    }
    Ok(bytes)
}
