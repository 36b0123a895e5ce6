//! `counterfoil export`

mod shelf;

use crate::cli::{ExportArgs, Place};
use crate::exit::Exit;
use crate::{input, output, tell};
use anyhow::{Context, Result, bail};
use counterfoil_agents::agent::adapter::{Adapter, adapter};
use counterfoil_agents::recording::redact::{Care, Redactor};
use counterfoil_agents::recording::{
    self, Attempt, Gathered, Gatherer, Kept, Names, Recording, Reply, Said, VERSION, differences,
    replayed,
};
use counterfoil_contract::Contract;
use counterfoil_engine::Engine;
use counterfoil_engine::config::Config;
use counterfoil_flow::{Bundle, Channel};
use shelf::{Shelf, prompt_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ExportArgs) -> Result<Exit> {
    let state = input::state(&args.place)?;
    super::runs::expect_runs(&state)?;
    let engine = Engine::open_to_read(&state)?;
    let run = engine.journal().resolve(&args.run)?;
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(format!("recording-{run}")));
    expect_room(&folder)?;
    let fold = engine.fold(&run)?;
    let mut left_out = Vec::new();
    let workflow = engine
        .workflow(&fold)
        .map_err(|error| {
            left_out
                .push(format!("the rules of steps: the workflow cannot be read any more: {error}"));
        })
        .ok();
    let mut gatherer = Gatherer::new(workflow.as_ref());
    engine.each_event(&run, 1, |event, at| gatherer.hear(&event, at))?;
    let (gathered, open) = gatherer.gathered();
    if open > 0 {
        left_out.push(format!("{open} attempts that did not end"));
    }
    let bundle = Bundle::from_bytes(&engine.journal().bundle(&fold.bundle)?)?;
    let redactor =
        if args.raw { None } else { Some(redactor(&args.place, Path::new(&fold.repo))?) };
    let mut export = Export {
        shelf: Shelf::new(&state),
        redactor,
        contracts: bundle
            .contracts
            .values()
            .filter_map(|definition| {
                let contract = Contract::compile(definition.clone()).ok()?;
                Some((contract.reference().to_owned(), contract))
            })
            .collect(),
        left_out,
        files: 0,
        folder: part_of(&folder),
    };
    export.learn(&gathered);
    let written = export.write(
        &gathered,
        Recording {
            version: VERSION,
            made_by: format!("counterfoil {}", env!("CARGO_PKG_VERSION")),
            run: run.clone(),
            workflow: fold.workflow.clone(),
            redacted: !args.raw,
            left_out: Vec::new(),
            contracts: bundle.contracts,
            attempts: Vec::new(),
        },
    );
    let recording = match written.and_then(|recording| {
        // Empty, or not there: a recording is whole or not at all.
        let _ = std::fs::remove_dir(&folder);
        std::fs::rename(&export.folder, &folder)
            .with_context(|| format!("cannot write {}", folder.display()))?;
        Ok(recording)
    }) {
        Ok(recording) => recording,
        Err(error) => {
            let _ = std::fs::remove_dir_all(&export.folder);
            return Err(error);
        }
    };
    let counts = export.redactor.as_ref().map(Redactor::counts);
    output::words(&tell::replay::exported(&recording, export.files, counts, &folder));
    output::data(&format!("{}\n", folder.display()))?;
    Ok(Exit::Good)
}

/// What knows the secrets: the usual kinds, the project's patterns, and our own variables.
fn redactor(place: &Place, ran_in: &Path) -> Result<Redactor> {
    let repo = match (&place.repo, &place.state) {
        (None, Some(_)) => ran_in.to_owned(),
        (named, _) => input::repository(named.as_deref())?,
    };
    let config = Config::load(&repo, &repo)?;
    let mut redactor = Redactor::new(&config.redact)?;
    let named = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    redactor.know_variables(std::env::vars_os().filter_map(named));
    // What agents are given by the project's file may be a secret as well.
    for settings in config.agents.named.values() {
        redactor.know_variables(settings.env.clone());
    }
    Ok(redactor)
}

/// A folder that something stands in is not written over.
fn expect_room(folder: &Path) -> Result<()> {
    let name = folder.display();
    match std::fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                bail!("{name} is not empty; name a folder that is new, or remove what is there");
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(_) if folder.exists() => bail!("{name} is not a folder; name one that is new"),
        Err(error) => Err(error).with_context(|| format!("cannot look into {name}")),
    }
}

/// Where the recording is written before it is whole: beside its place, so that it can be moved
/// there.
fn part_of(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

struct Export {
    shelf: Shelf,
    /// None for a recording that keeps its secrets.
    redactor: Option<Redactor>,
    contracts: BTreeMap<String, Contract>,
    left_out: Vec<String>,
    files: usize,
    /// Where it is written.
    folder: PathBuf,
}

/// What a file holds, as it was and as it is written.
struct Copied {
    raw: Vec<u8>,
    written: Vec<u8>,
    kept: Kept,
}

/// The files of one reply.
#[derive(Default)]
struct Copies {
    prompt: Option<Copied>,
    stdout: Option<Copied>,
    stderr: Option<Copied>,
    submissions: Option<Copied>,
    text: Option<Copied>,
}

impl Copies {
    /// What was said, as it was or as it is written; none without the output.
    fn said(&self, program: Option<&str>, written: bool) -> Option<Said> {
        let bytes = |copied: &Option<Copied>| {
            let of =
                |copied: &Copied| if written { copied.written.clone() } else { copied.raw.clone() };
            copied.as_ref().map(of)
        };
        let some = |copied: &Option<Copied>| bytes(copied).unwrap_or_default();
        let (prompt, errors) = (some(&self.prompt), some(&self.stderr));
        Some(Said::of(program, bytes(&self.stdout)?, &prompt, &errors, &some(&self.submissions)))
    }
}

impl Export {
    /// Looks at everything once before anything is written: what is a secret in one place is one in
    /// all.
    fn learn(&mut self, gathered: &[Gathered]) {
        let Some(redactor) = &mut self.redactor else { return };
        for reply in gathered.iter().flat_map(|gathered| &gathered.replies) {
            let beside =
                [&reply.errors, &reply.submissions, &reply.text].into_iter().flatten().cloned();
            let files = [reply.transcript.clone()]
                .into_iter()
                .chain(prompt_of(&reply.transcript))
                .chain(beside);
            for file in files {
                if let Ok(bytes) = self.shelf.read(&file, None) {
                    redactor.learn(&bytes);
                }
            }
        }
    }

    fn write(&mut self, gathered: &[Gathered], mut recording: Recording) -> Result<Recording> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        for (number, one) in gathered.iter().enumerate() {
            let attempt = self.attempt(number + 1, one)?;
            recording.attempts.push(attempt);
        }
        recording.forget_unused();
        let mut contracts = std::mem::take(&mut recording.contracts);
        recording.left_out = std::mem::take(&mut self.left_out);
        if self.redactor.is_some() {
            recording = self.redacted(&recording, Care::Full)?;
            // In a contract, `token: string` says what a field is.
            contracts = self.redacted(&contracts, Care::Forms)?;
        }
        recording.contracts = contracts;
        self.file(recording::FILE, recording.text()?.as_bytes())?;
        Ok(recording)
    }

    fn redacted<T: serde::Serialize + serde::de::DeserializeOwned>(
        &mut self,
        whole: &T,
        care: Care,
    ) -> Result<T> {
        let text = serde_json::to_vec(whole)?;
        let redacted = self.redactor.as_mut().and_then(|redactor| redactor.bytes(&text, care));
        Ok(serde_json::from_slice(&redacted.unwrap_or(text))?)
    }

    fn attempt(&mut self, number: usize, gathered: &Gathered) -> Result<Attempt> {
        let mut attempt = gathered.attempt.clone();
        let program =
            attempt.player.as_ref().and_then(|player| adapter(&player.spec)).map(Adapter::name);
        let mut copies = Vec::new();
        for (index, reply) in gathered.replies.iter().enumerate() {
            let names = Names::of(number, &attempt.path, index + 1);
            let mut beside = |name: String, from: &Option<String>| match from {
                Some(from) => self.copy(&name, std::slice::from_ref(from), None),
                None => Ok(None),
            };
            let (stderr, submissions, text) = (
                beside(names.stderr(), &reply.errors)?,
                beside(names.submissions(), &reply.submissions)?,
                beside(names.text(), &reply.text)?,
            );
            let stdout = self.copy(
                &names.stdout(),
                std::slice::from_ref(&reply.transcript),
                Some(&reply.sha256),
            )?;
            let prompt = self.copy(&names.prompt(), &prompt_of(&reply.transcript), None)?;
            let kept = |copied: &Option<Copied>| copied.as_ref().map(|copied| copied.kept.clone());
            attempt.replies.push(Reply {
                program: program.map(str::to_owned),
                prompt: kept(&prompt),
                stdout: kept(&stdout),
                stderr: kept(&stderr),
                submissions: kept(&submissions),
                text: kept(&text),
                exit: reply.exit,
                conversation: reply.conversation.clone(),
                schema: reply.structured.is_some(),
                channel: (reply.channel != Channel::Text).then(|| reply.channel.name().to_owned()),
                denied: reply.denied.clone(),
                status: reply.status.clone(),
                codes: reply.codes.clone(),
            });
            copies.push(Copies { prompt, stdout, stderr, submissions, text });
        }
        self.settle(&mut attempt, program, &copies)?;
        Ok(attempt)
    }

    /// What came of an attempt, as it comes of what was written: where that is what came of it, but
    /// for the secrets.
    fn settle(
        &mut self,
        attempt: &mut Attempt,
        program: Option<&str>,
        copies: &[Copies],
    ) -> Result<()> {
        let contract =
            attempt.contract.as_ref().and_then(|reference| self.contracts.get(reference));
        let (Some(contract), Some(_)) = (contract, &self.redactor) else { return Ok(()) };
        let judged = |written: bool| {
            let said: Option<Vec<Said>> =
                copies.iter().map(|copies| copies.said(program, written)).collect();
            replayed(attempt, Some(contract), &said?).ok()
        };
        let (Some((before, _)), Some((after, texts))) = (judged(false), judged(true)) else {
            return Ok(());
        };
        // One that this program judges otherwise than it was stays as it was: that is what a replay
        // shows.
        let is_same = |one: &Attempt| differences(attempt, one, &[]).is_empty();
        if !is_same(&before) {
            return Ok(());
        }
        if after.came.outcome != attempt.came.outcome {
            let name = attempt.name();
            self.left_out
                .push(format!("the secrets of {name}, without which it is judged otherwise"));
            return Ok(());
        }
        attempt.came = after.came;
        for ((reply, copies), judged) in attempt.replies.iter_mut().zip(copies).zip(texts) {
            // A secret that streams in pieces may be seen in the events and not in the text, or the
            // other way round.
            if let (Some(text), Some(copied), Some(kept)) =
                (judged.text, &copies.text, &mut reply.text)
                && copied.written != text.as_bytes()
            {
                let path = self.folder.join(&kept.file);
                std::fs::write(&path, &text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                *kept = Kept::of(&kept.file, text.as_bytes());
            }
        }
        Ok(())
    }

    /// Copies the first of these that is there. What cannot be copied is left out, and said.
    fn copy(
        &mut self,
        name: &str,
        from: &[String],
        sha256: Option<&str>,
    ) -> Result<Option<Copied>> {
        let mut why = String::new();
        for reference in from {
            match self.shelf.read(reference, sha256) {
                Ok(raw) => {
                    let written = match &mut self.redactor {
                        None => Some(raw.clone()),
                        Some(redactor) => redactor.bytes(&raw, Care::Full),
                    };
                    let Some(written) = written else {
                        self.left_out.push(format!("{name}: it is no text, and may hold secrets"));
                        return Ok(None);
                    };
                    self.file(name, &written)?;
                    let kept = Kept::of(name, &written);
                    return Ok(Some(Copied { raw, written, kept }));
                }
                Err(error) => why = error,
            }
        }
        self.left_out.push(format!("{name}: {why}"));
        Ok(None)
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, bytes));
        written.with_context(|| format!("cannot write {}", path.display()))?;
        self.files += 1;
        Ok(())
    }
}
