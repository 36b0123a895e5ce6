//! Commits the current content of some paths with `git commit`, using the user's hooks and
//! identity. Other staged or changed files are not committed. It never pushes.
//!
//! A commit is made once: a trailer names the visit of the state. After a crash, the repeated
//! attempt finds the commit by its trailer.

mod index;
mod selection;

use super::changes::is_unborn;
use super::trusted_programs::trusted_programs;
use super::{BuiltinOutcome, literal_pathspecs, names};
use crate::attempt::{AttemptContext, AttemptResult};
use crate::shell::{ChildOutput, exit_code, run_child};
use crate::verification::WorkFolder;
use counterfoil_agents::transcript::reply_reference;
use counterfoil_contract::text::join_limited;
use counterfoil_flow::amount::duration;
use counterfoil_flow::{AttemptOutcome, CommitWork, Ended, Usage};
use counterfoil_process::Cause;
use counterfoil_workspace::git::{GitCommand, GitError};
use index::{add_intent, remove_intent_to_add, remove_marks, wait_for_index_lock};
use selection::{CommitView, Selection, selection};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The trailer that names the visit.
const TRAILER: &str = "Counterfoil-Step";
/// How many commits are searched for the trailer.
const HISTORY_LIMIT: &str = "-1000";
/// Right after the commit, only the latest one is searched.
const LATEST_ONLY: &str = "-1";
/// The maximum number of notes. Further notes are only counted.
const MAX_NOTES: usize = 20;
/// The maximum number of files that a note names.
const MAX_NAMES: usize = 10;
/// The committer if none is configured.
const DEFAULT_IDENTITY: [(&str, &str); 2] =
    [("user.name", "counterfoil"), ("user.email", "counterfoil@localhost")];
/// The options for a NUL-terminated list of pathspecs on standard input.
const PATHSPEC_FROM_STDIN: [&str; 2] = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/// The repository in which a commit is made.
#[derive(Clone)]
pub(crate) struct CommitRepo {
    /// The folder of the workspace.
    pub(crate) place: WorkFolder,
    /// Whether an agent has worked in the run.
    pub(crate) agent_has_worked: bool,
    /// Locked while a commit is made, since two commits at once would disturb each other.
    pub(crate) lock: Arc<Mutex<()>>,
}

/// A commit that is about to be made.
struct Ready {
    /// The files to commit.
    files: BTreeSet<Vec<u8>>,
    /// The work tree before the commit.
    view: CommitView,
    /// The untracked files that were added to the index by name.
    new: Vec<Vec<u8>>,
    /// Settings that git needs to know the committer.
    settings: Vec<String>,
    notes: Vec<String>,
    /// The folder with those hooks that are as they were when the run began, if others are not.
    hooks: Option<tempfile::TempDir>,
}

/// The result of the preparation.
enum Prepared {
    /// The commit can be made.
    Ready(Box<Ready>),
    /// There is nothing to do, or it cannot be done.
    Finished(BuiltinOutcome),
}

/// Makes the commit.
pub(crate) async fn commit(
    attempt: String,
    marker: String,
    work: CommitWork,
    repo: CommitRepo,
    context: Arc<dyn AttemptContext>,
) -> AttemptResult {
    let since = Instant::now();
    let mut stop = context.stop();
    let completed =
        |outcome: BuiltinOutcome| AttemptResult::new(outcome.into_ended(&attempt, since));
    let guard = tokio::select! {
        guard = repo.lock.lock() => guard,
        () = super::stopped(&mut stop) => return completed(BuiltinOutcome::Stopped),
    };
    let work = Arc::new(work);
    let ready = {
        let (repo, work) = (repo.clone(), work.clone());
        blocking(move || prepare(&repo, &work)).await
    };
    let ready = match ready {
        Ok(Prepared::Ready(ready)) => ready,
        Ok(Prepared::Finished(outcome)) => return completed(outcome),
        Err(why) => return AttemptResult::failed(&attempt, why),
    };
    let Some(list_file) = write_list(&literal_pathspecs(&ready.files)) else {
        let folder = repo.place.folder.clone();
        let _ = blocking(move || remove_intent_to_add(&folder, &ready.new)).await;
        let reason = "the list of files could not be written to a temporary file".to_owned();
        return completed(BuiltinOutcome::Blocked(reason));
    };
    let mut call = GitCommand::new(
        &repo.place.folder,
        ["commit", "--cleanup=whitespace", "-F", "-", "--trailer"],
    )
    .arg(trailer(&work.step))
    .arg("--only")
    .arg(pathspec_from_file(list_file.path()))
    .arg(PATHSPEC_FROM_STDIN[1])
    .stdin(work.message.clone().into_bytes());
    for setting in &ready.settings {
        call = call.config(setting.clone());
    }
    if let Some(folder) = &ready.hooks {
        call = call.config(format!("core.hooksPath={}", folder.path().display()));
    }
    let spawn = call.into_child_spec(marker, Duration::from_millis(work.timeout_ms));
    let child = run_child(&attempt, spawn, 0, &context).await;
    let finished = {
        let (folder, step) = (repo.place.folder.clone(), work.step.clone());
        let succeeded = matches!(&child, Ok(child) if is_success(child));
        blocking(move || finish(&folder, &step, ready, succeeded)).await
    };
    drop(guard);
    let Finished { made, notes, missing } = match finished {
        Ok(finished) => finished,
        Err(why) => return AttemptResult::failed(&attempt, why),
    };
    match child {
        Ok(child) => {
            let report = CommitReport { attempt: &attempt, work: &work, since, notes, missing };
            AttemptResult::new(report.ended(child, made))
        }
        Err(error) => AttemptResult::transcript_failed(&attempt, error),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| format!("the step panicked: {error}"))
}

/// Writes the list of pathspecs into a file, since git reads the message on its standard input.
fn write_list(list: &[u8]) -> Option<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("counterfoil-").tempfile().ok()?;
    std::io::Write::write_all(&mut file, list).ok()?;
    Some(file)
}

fn pathspec_from_file(path: &Path) -> OsString {
    let mut option = OsString::from("--pathspec-from-file=");
    option.push(path);
    option
}

fn is_success(child: &ChildOutput) -> bool {
    matches!(&child.outcome, Ok(process) if process.cause == Cause::Finished && exit_code(process.exit) == 0)
}

/// Builds the end of an attempt to commit.
struct CommitReport<'a> {
    attempt: &'a str,
    work: &'a CommitWork,
    since: Instant,
    notes: Vec<String>,
    /// Which files the commit does not have as it should.
    missing: Option<String>,
}

impl CommitReport<'_> {
    fn ended(mut self, child: ChildOutput, made: Option<Made>) -> Ended {
        let wall_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = Usage { wall_ms, ..Usage::default() };
        let ended = |outcome| Ended { usage, ..Ended::new(self.attempt, outcome) };
        let cause = child.outcome.as_ref().map(|process| process.cause);
        let limit = format!("longer than {}", duration(self.work.timeout_ms));
        match (cause, &made) {
            (Ok(Cause::Stopped), _) => {
                return Ended { reason: "stopped".to_owned(), ..ended(AttemptOutcome::Cancelled) };
            }
            (Ok(Cause::Startup | Cause::Idle | Cause::Total), None) => {
                let reply = Some(reply_reference(&child.stored, "timeout"));
                let reason = format!("`git commit` with the hooks of the repository took {limit}");
                return Ended { reason, reply, ..ended(AttemptOutcome::Timeout) };
            }
            (Ok(Cause::Startup | Cause::Idle | Cause::Total), Some(_)) => {
                self.notes.push(format!(
                    "the commit is made; the hooks after it took {limit} and were stopped"
                ));
            }
            (Ok(Cause::Finished | Cause::Finishing | Cause::SinkStopped) | Err(_), _) => {}
        }
        let output = match &child.outcome {
            Ok(_) => child.tail,
            Err(error) => error.to_string(),
        };
        let reply = Some(reply_reference(&child.stored, "accepted"));
        let ok = made.is_some() && self.missing.is_none();
        self.notes.extend(self.missing.take());
        let value = result(ok, made, &output, &self.notes);
        Ended { value: Some(value), reply, ..ended(AttemptOutcome::Accepted) }
    }
}

/// A commit that was made.
struct Made {
    commit: String,
    files: Vec<String>,
}

fn result(ok: bool, made: Option<Made>, output: &str, notes: &[String]) -> Value {
    let (commit, files) = made.map(|made| (made.commit, made.files)).unwrap_or_default();
    let mut output = output.trim_end().to_owned();
    for note in notes.iter().take(MAX_NOTES) {
        let _ = write!(output, "\n{note}");
    }
    if let Some(more @ 1..) = notes.len().checked_sub(MAX_NOTES) {
        let _ = write!(output, "\nand {more} more like these");
    }
    json!({"ok": ok, "commit": commit, "files": files, "output": output.trim_start_matches('\n')})
}

/// Does everything before the commit itself. It blocks.
fn prepare(repo: &CommitRepo, work: &CommitWork) -> Prepared {
    let folder = &repo.place.folder;
    let blocked = |why: String| Prepared::Finished(BuiltinOutcome::Blocked(why));
    if work.workspace.is_some() {
        return blocked("a commit in a worktree would not reach the repository".to_owned());
    }
    if work.message.trim().is_empty() {
        return blocked("the message of the commit is empty".to_owned());
    }
    if let Err(why) = GitCommand::new(folder, ["rev-parse", "--show-toplevel"]).run() {
        let folder = folder.display();
        return blocked(format!("{folder} is not in a git repository with a working tree: {why}"));
    }
    let failed = |why: GitError, notes: &[String]| {
        Prepared::Finished(BuiltinOutcome::Value(result(false, None, &why.to_string(), notes)))
    };
    // On the first try there is no such commit, whatever a message contains.
    let before =
        if work.repeated { find_commit(folder, &work.step, HISTORY_LIMIT) } else { Ok(None) };
    match before {
        Ok(None) => {}
        Ok(Some(made)) => {
            let note = ["the commit was made before this step was interrupted".to_owned()];
            return Prepared::Finished(BuiltinOutcome::Value(result(true, Some(made), "", &note)));
        }
        Err(why) => return blocked(why.to_string()),
    }
    let Selection { selected, marked, view } = match selection(repo, &work.paths) {
        Ok(selection) => selection,
        Err(why) => return blocked(why.to_string()),
    };
    let (files, new, mut notes) = (selected.files, selected.new, selected.notes);
    if files.is_empty() {
        return Prepared::Finished(BuiltinOutcome::Value(result(true, None, "", &notes)));
    }
    let programs = match trusted_programs(folder) {
        Ok(programs) => programs,
        Err(why) => return blocked(why),
    };
    notes.extend(programs.notes);
    if !marked.is_empty() {
        let names =
            join_limited(marked.iter().map(|name| String::from_utf8_lossy(name)), MAX_NAMES);
        notes.push(format!("the index hid changes of these files from git: {names}"));
    }
    let added = wait_for_index_lock(folder)
        .and_then(|()| remove_marks(folder, &marked))
        .and_then(|()| add_intent(folder, &new));
    let list = literal_pathspecs(&files);
    let settings = added.and_then(|()| Ok((has_changes(folder, list)?, identity(folder)?)));
    match settings {
        Ok((true, mut settings)) => {
            settings.extend(programs.overrides);
            let hooks = programs.hooks;
            let ready = Ready { files, view, new, settings, notes, hooks };
            Prepared::Ready(Box::new(ready))
        }
        Ok((false, _)) => {
            remove_intent_to_add(folder, &new);
            let head = counterfoil_workspace::git::head(folder);
            let missing = head.and_then(|head| view.missing(&head, &files));
            let output = missing.as_deref().unwrap_or_default();
            let value = result(missing.is_none(), None, output, &notes);
            Prepared::Finished(BuiltinOutcome::Value(value))
        }
        Err(why) => {
            remove_intent_to_add(folder, &new);
            failed(why, &notes)
        }
    }
}

/// What became of a commit.
struct Finished {
    made: Option<Made>,
    notes: Vec<String>,
    /// Which files it does not have as it should.
    missing: Option<String>,
}

/// Does everything after the commit: finds it, checks what is in it, and collects notes. It blocks.
fn finish(folder: &Path, step: &str, ready: Box<Ready>, succeeded: bool) -> Finished {
    let Ready { new, mut notes, view, files, .. } = *ready;
    let found = find_commit(folder, step, LATEST_ONLY).unwrap_or_default();
    // A hook may have removed the trailer.
    let found = found.or_else(|| {
        let head = counterfoil_workspace::git::head(folder).filter(|_| succeeded)?;
        Some(Made { files: committed_files(folder, &head).unwrap_or_default(), commit: head })
    });
    if found.is_none() {
        notes.extend(remove_intent_to_add(folder, &new));
    }
    let missing = found.as_ref().and_then(|made| view.missing(&made.commit, &files));
    Finished { made: found, notes, missing }
}

/// Finds the commit that was made for a visit of a state.
fn find_commit(folder: &Path, step: &str, back: &str) -> Result<Option<Made>, GitError> {
    if is_unborn(folder)? {
        return Ok(None);
    }
    let log =
        ["log", "-z", back, "--no-show-signature", "--no-color", "--format=%H%x0a%B", "HEAD", "--"];
    let answer = GitCommand::new(folder, log).run()?;
    let trailer = trailer(step);
    for entry in names(&answer.stdout) {
        let entry = String::from_utf8_lossy(entry);
        let mut lines = entry.lines();
        let Some(commit) = lines.next() else { continue };
        // A hook may have appended lines, so that git would not recognise the trailer.
        if lines.any(|line| line.trim_end() == trailer.trim_end()) {
            let files = committed_files(folder, commit)?;
            return Ok(Some(Made { commit: commit.to_owned(), files }));
        }
    }
    Ok(None)
}

/// The line that names the visit.
fn trailer(step: &str) -> String {
    format!("{TRAILER}: {step}")
}

/// The files that a commit changed.
fn committed_files(folder: &Path, commit: &str) -> Result<Vec<String>, GitError> {
    let listed = [
        "diff-tree",
        "-r",
        "-z",
        "--root",
        "--no-commit-id",
        "--name-only",
        "--no-renames",
        "--relative",
    ];
    let answer = GitCommand::new(folder, listed).arg(commit).run()?;
    Ok(names(&answer.stdout).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Whether a commit of these files would contain changes.
fn has_changes(folder: &Path, list: Vec<u8>) -> Result<bool, GitError> {
    let call = GitCommand::new(folder, ["commit", "--dry-run", "--short", "-uno", "--only"])
        .arg(PATHSPEC_FROM_STDIN[0])
        .arg(PATHSPEC_FROM_STDIN[1]);
    let answer = call.as_user().stdin(list).output()?;
    match answer.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(GitError::Failed { command: "commit".to_owned(), message: answer.stderr }),
    }
}

/// The settings that git needs if no committer is configured.
fn identity(folder: &Path) -> Result<Vec<String>, GitError> {
    let mut known = true;
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        known &= GitCommand::new(folder, ["var", who]).as_user().output()?.ok();
    }
    let mut settings = Vec::new();
    if !known {
        for (key, value) in DEFAULT_IDENTITY {
            let set = GitCommand::new(folder, ["config", "--get", key]).output()?;
            if !set.ok() || set.stdout.trim_ascii().is_empty() {
                settings.push(format!("{key}={value}"));
            }
        }
    }
    Ok(settings)
}
