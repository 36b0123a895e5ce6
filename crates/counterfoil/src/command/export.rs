//! The command `counterfoil export`.

use crate::cli::{ExportArgs, StateLocation};
use crate::exit::Exit;
use crate::{hint, output, redaction, render, state_folder};
use anyhow::{Context, Result, bail};
use counterfoil_agents::adapters::{Adapter, adapter};
use counterfoil_agents::recording;
use counterfoil_agents::recording::{
    Attempt, CollectedAttempt, RecordedFile, RecordedOutput, Recorder, Recording, Reply,
    ReplyFiles, VERSION, differences, replay_attempt,
};
use counterfoil_agents::redact::{RedactionLevel, Redactor};
use counterfoil_contract::Contract;
use counterfoil_contract::text::{display_path, pluralize};
use counterfoil_engine::config::Config;
use counterfoil_engine::{TranscriptReader, prompt_locations};
use counterfoil_flow::{Bundle, Channel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ExportArgs) -> Result<Exit> {
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let engine = state_folder::open_to_read(&state)?;
    let run = engine.journal().resolve(&args.run)?;
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(format!("recording-{run}")));
    require_empty(&folder)?;
    let run_state = engine.run_state(&run)?;
    let mut left_out = Vec::new();
    let workflow = engine
        .workflow(&run_state)
        .map_err(|error| {
            left_out.push(format!("the rules of steps: the workflow cannot be loaded: {error}"));
        })
        .ok();
    let mut recorder = Recorder::new(workflow.as_deref());
    engine.each_event(&run, 1, |event, at| recorder.on_event(&event, at))?;
    let (gathered, open) = recorder.finish();
    if open > 0 {
        left_out.push(pluralize(open, "unfinished attempt"));
    }
    let bundle = Bundle::from_bytes(&engine.journal().bundle(&run_state.bundle)?)?;
    let redactor =
        if args.raw { None } else { Some(redactor(&args.location, Path::new(&run_state.repo))?) };
    let mut export = Export {
        transcripts: TranscriptReader::new(&state),
        redactor,
        contracts: bundle
            .contracts
            .values()
            .filter_map(|definition| {
                let contract = Contract::compile_stored(definition.clone()).ok()?;
                Some((contract.reference().to_owned(), contract))
            })
            .collect(),
        left_out,
        files: 0,
        folder: temporary_folder(&folder),
    };
    export.collect_secrets(&gathered);
    let written = export.write(
        &gathered,
        Recording {
            version: VERSION,
            made_by: format!("counterfoil {}", env!("CARGO_PKG_VERSION")),
            run: run.clone(),
            workflow: run_state.workflow.clone(),
            redacted: !args.raw,
            left_out: Vec::new(),
            contracts: bundle.contracts,
            attempts: Vec::new(),
        },
    );
    let recording = match written.and_then(|recording| {
        let mut replies = recording.attempts.iter().flat_map(|attempt| &attempt.replies).peekable();
        if replies.peek().is_some() && replies.all(|reply| reply.stdout.is_none()) {
            let why = recording.left_out.first().map(String::as_str).unwrap_or_default();
            bail!("no reply of run {run} can be exported: {why}");
        }
        // The target is missing or empty. Renaming makes the export atomic.
        let _ = std::fs::remove_dir(&folder);
        std::fs::rename(&export.folder, &folder)
            .with_context(|| format!("cannot write {}", display_path(&folder)))?;
        Ok(recording)
    }) {
        Ok(recording) => recording,
        Err(error) => {
            let _ = std::fs::remove_dir_all(&export.folder);
            return Err(error);
        }
    };
    let counts = export.redactor.as_ref().map(Redactor::counts);
    output::write_stderr(&render::replay::export_summary(
        &recording,
        export.files,
        counts,
        &folder,
    ));
    output::write_stdout(&format!("{}\n", display_path(&folder)))?;
    Ok(Exit::Success)
}

/// The redactor for the usual kinds of secrets, the patterns of the project, and the values of
/// environment variables.
pub(super) fn redactor(location: &StateLocation, ran_in: &Path) -> Result<Redactor> {
    let state = state_folder::of(location)?;
    let repo = state_folder::repository_of_run(location, &state, &ran_in.to_string_lossy())?;
    let config = Config::load(&repo, &repo)?;
    Ok(redaction::redactor(&config)?)
}

/// Returns an error if the folder exists and is not empty.
fn require_empty(folder: &Path) -> Result<()> {
    let name = display_path(folder);
    match std::fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                bail!("{name} is not empty; choose a new folder or empty it");
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(_) if folder.exists() => bail!("{name} is not a folder; choose a new one"),
        Err(error) => Err(error).with_context(|| format!("cannot open {name}")),
    }
}

/// The folder in which the recording is written before it is renamed: beside the target, on the
/// same file system.
fn temporary_folder(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// An export in progress.
struct Export {
    transcripts: TranscriptReader,
    /// None if secrets are kept (`--raw`).
    redactor: Option<Redactor>,
    contracts: BTreeMap<String, Contract>,
    left_out: Vec<String>,
    files: usize,
    /// The folder that is written to.
    folder: PathBuf,
}

/// A copied file: the original and the redacted content.
struct CopiedFile {
    raw: Vec<u8>,
    redacted: Vec<u8>,
    kept: RecordedFile,
}

/// The copied files of one reply.
#[derive(Default)]
struct CopiedReply {
    prompt: Option<CopiedFile>,
    stdout: Option<CopiedFile>,
    stderr: Option<CopiedFile>,
    submissions: Option<CopiedFile>,
    text: Option<CopiedFile>,
}

impl CopiedReply {
    /// The recorded output, original or redacted. None if the output is missing. Of events that no
    /// adapter reads, the output is the text that was found in them.
    fn output(
        &self,
        program: Option<&str>,
        has_events: bool,
        is_redacted: bool,
    ) -> Option<RecordedOutput> {
        let bytes = |copied: &Option<CopiedFile>| {
            let content = |copied: &CopiedFile| {
                if is_redacted { copied.redacted.clone() } else { copied.raw.clone() }
            };
            copied.as_ref().map(content)
        };
        let or_empty = |copied: &Option<CopiedFile>| bytes(copied).unwrap_or_default();
        let (prompt, errors) = (or_empty(&self.prompt), or_empty(&self.stderr));
        let submissions = or_empty(&self.submissions);
        let stdout = bytes(&self.stdout)?;
        let output = if program.is_none() && has_events { or_empty(&self.text) } else { stdout };
        Some(RecordedOutput::from_files(program, output, &prompt, &errors, &submissions))
    }
}

impl Export {
    /// Reads all files before anything is written, so that a secret found in one file is redacted
    /// in all.
    fn collect_secrets(&mut self, gathered: &[CollectedAttempt]) {
        let Some(redactor) = &mut self.redactor else { return };
        for reply in gathered.iter().flat_map(|gathered| &gathered.replies) {
            let others =
                [&reply.errors, &reply.submissions, &reply.text].into_iter().flatten().cloned();
            let files = [reply.transcript.clone()]
                .into_iter()
                .chain(prompt_locations(&reply.transcript))
                .chain(others);
            for file in files {
                if let Ok(bytes) = self.transcripts.read(&file, None) {
                    redactor.learn(&bytes);
                }
            }
        }
    }

    fn write(
        &mut self,
        gathered: &[CollectedAttempt],
        mut recording: Recording,
    ) -> Result<Recording> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", display_path(&self.folder)))?;
        for (number, one) in gathered.iter().enumerate() {
            let attempt = self.attempt(number + 1, one)?;
            recording.attempts.push(attempt);
        }
        recording.remove_unused_contracts();
        let mut contracts = std::mem::take(&mut recording.contracts);
        recording.left_out = std::mem::take(&mut self.left_out);
        if self.redactor.is_some() {
            recording = self.redacted(&recording, RedactionLevel::Full)?;
            // `token: string` in a contract declares a field; it is not a secret.
            contracts = self.redacted(&contracts, RedactionLevel::KnownForms)?;
        }
        recording.contracts = contracts;
        self.write_file(recording::FILE, recording.to_json()?.as_bytes())?;
        Ok(recording)
    }

    fn redacted<T: serde::Serialize + serde::de::DeserializeOwned>(
        &mut self,
        value: &T,
        care: RedactionLevel,
    ) -> Result<T> {
        let text = serde_json::to_vec(value)?;
        let redacted =
            self.redactor.as_mut().and_then(|redactor| redactor.redact_bytes(&text, care));
        Ok(serde_json::from_slice(&redacted.unwrap_or(text))?)
    }

    fn attempt(&mut self, number: usize, gathered: &CollectedAttempt) -> Result<Attempt> {
        let mut attempt = gathered.attempt.clone();
        let program =
            attempt.assigned.as_ref().and_then(|player| adapter(&player.spec)).map(Adapter::name);
        let mut files = Vec::new();
        for (index, reply) in gathered.replies.iter().enumerate() {
            let names = ReplyFiles::new(number, &attempt.path, index + 1);
            let mut copy_optional = |name: String, from: &Option<String>| match from {
                Some(from) => self.copy(&name, std::slice::from_ref(from), None),
                None => Ok(None),
            };
            let (stderr, submissions, text) = (
                copy_optional(names.stderr(), &reply.errors)?,
                copy_optional(names.submissions(), &reply.submissions)?,
                copy_optional(names.text(), &reply.text)?,
            );
            let stdout = self.copy(
                &names.stdout(),
                std::slice::from_ref(&reply.transcript),
                Some(&reply.sha256),
            )?;
            let prompt = self.copy(&names.prompt(), &prompt_locations(&reply.transcript), None)?;
            let kept =
                |copied: &Option<CopiedFile>| copied.as_ref().map(|copied| copied.kept.clone());
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
                context: reply.context.as_deref().cloned(),
            });
            files.push(CopiedReply { prompt, stdout, stderr, submissions, text });
        }
        self.record_outcome(&mut attempt, program, &files)?;
        Ok(attempt)
    }

    /// Records the outcome that a replay of the redacted files has. It is only used if it differs
    /// from the original outcome by nothing but redacted secrets.
    fn record_outcome(
        &mut self,
        attempt: &mut Attempt,
        program: Option<&str>,
        files: &[CopiedReply],
    ) -> Result<()> {
        let contract =
            attempt.contract.as_ref().and_then(|reference| self.contracts.get(reference));
        let (Some(contract), Some(_)) = (contract, &self.redactor) else { return Ok(()) };
        let replay = |is_redacted: bool| {
            let replies = attempt.replies.iter().zip(files);
            let outputs: Option<Vec<RecordedOutput>> = replies
                .map(|(reply, files)| files.output(program, reply.has_events(), is_redacted))
                .collect();
            replay_attempt(attempt, Some(contract), &outputs?).ok()
        };
        let (Some((before, _)), Some((after, texts))) = (replay(false), replay(true)) else {
            return Ok(());
        };
        // If this version replays the original differently, the recorded outcome stays: showing
        // that difference is the purpose of a replay.
        if !differences(attempt, &before, &[]).is_empty() {
            return Ok(());
        }
        if after.result.outcome != attempt.result.outcome {
            let name = attempt.name();
            self.left_out.push(format!("the secrets of {name}: its outcome depends on them"));
            return Ok(());
        }
        attempt.result = after.result;
        for ((reply, files), replayed) in attempt.replies.iter_mut().zip(files).zip(texts) {
            // A secret that is streamed in pieces may be redacted in the text but not in the
            // events, or vice versa.
            if let (Some(text), Some(copied), Some(kept)) =
                (replayed.text, &files.text, &mut reply.text)
                && copied.redacted != text.as_bytes()
            {
                let path = self.folder.join(&kept.file);
                std::fs::write(&path, &text)
                    .with_context(|| format!("cannot write {}", display_path(&path)))?;
                *kept = RecordedFile::from_bytes(&kept.file, text.as_bytes());
            }
        }
        Ok(())
    }

    /// Copies the first of these files that exists. A file that cannot be copied is noted as left
    /// out.
    fn copy(
        &mut self,
        name: &str,
        from: &[String],
        sha256: Option<&str>,
    ) -> Result<Option<CopiedFile>> {
        let mut why = String::new();
        for reference in from {
            match self.transcripts.read(reference, sha256) {
                Ok(raw) => {
                    let redacted = match &mut self.redactor {
                        None => Some(raw.clone()),
                        Some(redactor) => redactor.redact_bytes(&raw, RedactionLevel::Full),
                    };
                    let Some(redacted) = redacted else {
                        self.left_out
                            .push(format!("{name}: it is not text and may contain secrets"));
                        return Ok(None);
                    };
                    self.write_file(name, &redacted)?;
                    let kept = RecordedFile::from_bytes(name, &redacted);
                    return Ok(Some(CopiedFile { raw, redacted, kept }));
                }
                Err(error) => {
                    let hint = hint::for_transcript(&error);
                    why = hint.map_or(error.to_string(), |hint| format!("{error}; {hint}"));
                }
            }
        }
        self.left_out.push(format!("{name}: {why}"));
        Ok(None)
    }

    fn write_file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, bytes));
        written.with_context(|| format!("cannot write {}", display_path(&path)))?;
        self.files += 1;
        Ok(())
    }
}
