//! Commits the current content of some paths with `git commit`, using the user's hooks and
//! identity. Other staged or changed files are not committed. It never pushes.
//!
//! A commit is made once: a trailer names the visit of the state. After a crash, the repeated
//! attempt finds the commit by its trailer.

use super::changes::{empty_tree, is_unborn};
use super::paths::{Known, Selected, select};
use super::trusted_programs::trusted_programs;
use super::{BuiltinOutcome, literal_pathspecs, names, nul_list, state_folders};
use crate::attempt::{AttemptContext, AttemptResult};
use crate::shell::{ChildOutput, exit_code, run_child};
use counterfoil_agents::transcript::reply_reference;
use counterfoil_flow::{AttemptOutcome, CommitWork, Ended, Usage};
use counterfoil_process::Cause;
use counterfoil_workspace::git::{GitCommand, GitError};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The trailer that names the visit.
const TRAILER: &str = "Counterfoil-Step";
/// How many commits are searched for the trailer.
const HISTORY_LIMIT: &str = "-1000";
/// Right after the commit, only the latest one is searched.
const LATEST_ONLY: &str = "-1";
/// How often, and in which interval, a locked index is polled.
const LOCK_POLLS: u32 = 10;
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of notes. Further notes are only counted.
const MAX_NOTES: usize = 20;
/// The committer if none is configured.
const DEFAULT_IDENTITY: [(&str, &str); 2] =
    [("user.name", "counterfoil"), ("user.email", "counterfoil@localhost")];
/// The options for a NUL-terminated list of pathspecs on standard input.
const PATHSPEC_FROM_STDIN: [&str; 2] = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/// The repository in which a commit is made.
#[derive(Clone)]
pub(crate) struct CommitRepo {
    /// The folder of the workspace.
    pub(crate) folder: PathBuf,
    /// The state folder.
    pub(crate) state: PathBuf,
    /// Locked while a commit is made, since two commits at once would disturb each other.
    pub(crate) lock: Arc<Mutex<()>>,
}

/// A commit that is about to be made.
struct Ready {
    /// The pathspecs of the files to commit.
    list: Vec<u8>,
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
    Ready(Ready),
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
    let Some(list_file) = write_list(&ready.list) else {
        let folder = repo.folder.clone();
        let _ = blocking(move || remove_intent_to_add(&folder, &ready.new)).await;
        let reason = "the list of files could not be written to a temporary file".to_owned();
        return completed(BuiltinOutcome::Blocked(reason));
    };
    let mut call =
        GitCommand::new(&repo.folder, ["commit", "--cleanup=whitespace", "-F", "-", "--trailer"])
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
        let (folder, step) = (repo.folder.clone(), work.step.clone());
        let succeeded = matches!(&child, Ok(child) if is_success(child));
        blocking(move || finish(&folder, &step, ready, succeeded)).await
    };
    drop(guard);
    let (made, notes) = match finished {
        Ok(finished) => finished,
        Err(why) => return AttemptResult::failed(&attempt, why),
    };
    match child {
        Ok(child) => {
            let report = CommitReport { attempt: &attempt, work: &work, since, notes };
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
}

impl CommitReport<'_> {
    fn ended(mut self, child: ChildOutput, made: Option<Made>) -> Ended {
        let wall_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = Usage { wall_ms, ..Usage::default() };
        let ended = |outcome| Ended { usage, ..Ended::new(self.attempt, outcome) };
        let cause = child.outcome.as_ref().map(|process| process.cause);
        let limit = format!("longer than {} s", self.work.timeout_ms.div_ceil(1000));
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
        let ok = made.is_some();
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
    let folder = &repo.folder;
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
    let Selected { files, new, notes, .. } = match selected(repo, &work.paths) {
        Ok(selected) => selected,
        Err(why) => return blocked(why.to_string()),
    };
    if files.is_empty() {
        return Prepared::Finished(BuiltinOutcome::Value(result(true, None, "", &notes)));
    }
    let programs = match trusted_programs(folder) {
        Ok(programs) => programs,
        Err(why) => return blocked(why),
    };
    let notes: Vec<String> = notes.into_iter().chain(programs.notes).collect();
    let list = literal_pathspecs(&files);
    let added = wait_for_index_lock(folder).and_then(|()| add_intent(folder, &new));
    let settings = added.and_then(|()| Ok((has_changes(folder, list.clone())?, identity(folder)?)));
    match settings {
        Ok((true, mut settings)) => {
            settings.extend(programs.overrides);
            Prepared::Ready(Ready { list, new, settings, notes, hooks: programs.hooks })
        }
        Ok((false, _)) => {
            remove_intent_to_add(folder, &new);
            Prepared::Finished(BuiltinOutcome::Value(result(true, None, "", &notes)))
        }
        Err(why) => {
            remove_intent_to_add(folder, &new);
            failed(why, &notes)
        }
    }
}

/// Does everything after the commit: finds it, and collects notes. It blocks.
fn finish(folder: &Path, step: &str, ready: Ready, succeeded: bool) -> (Option<Made>, Vec<String>) {
    let Ready { new, mut notes, .. } = ready;
    let found = find_commit(folder, step, LATEST_ONLY).unwrap_or_default();
    // A hook may have removed the trailer.
    let found = found.or_else(|| {
        let head = counterfoil_workspace::git::head(folder).filter(|_| succeeded)?;
        Some(Made { files: committed_files(folder, &head).unwrap_or_default(), commit: head })
    });
    if found.is_none() {
        notes.extend(remove_intent_to_add(folder, &new));
    }
    (found, notes)
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

/// Selects the files below the paths that differ from the last commit.
fn selected(repo: &CommitRepo, paths: &[String]) -> Result<Selected, GitError> {
    let folder = &repo.folder;
    let against = if is_unborn(folder)? { empty_tree(folder)? } else { "HEAD".to_owned() };
    let listed = [
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        "--relative",
        "--no-ext-diff",
        "--no-textconv",
    ];
    let changed = GitCommand::new(folder, listed)
        .arg("--ignore-submodules=dirty")
        .arg(against)
        .arg("--")
        .arg(".")
        .run()?;
    let others =
        GitCommand::new(folder, ["ls-files", "--others", "--exclude-standard", "-z"]).run()?;
    let own = state_folders(folder, &repo.state);
    let known = Known { changed: &changed.stdout, others: &others.stdout, own: &own };
    let mut selected = select(paths, &known);
    let rest = std::mem::take(&mut selected.rest);
    selected.notes.extend(left_out(folder, rest)?);
    Ok(selected)
}

/// Explains why requested paths are not committed, unless they are just unchanged.
fn left_out(folder: &Path, names: Vec<String>) -> Result<Vec<String>, GitError> {
    let mut notes = Vec::new();
    let mut asked = Vec::new();
    for name in names {
        match why_invisible(folder, Path::new(&name)) {
            Some(why) => notes.push(format!("'{name}' is left out: {why}")),
            None => asked.push(name),
        }
    }
    if asked.is_empty() {
        return Ok(notes);
    }
    let list = asked.iter().flat_map(|name| [name.as_bytes(), b"\0"]).collect::<Vec<_>>().concat();
    let ignored =
        GitCommand::new(folder, ["check-ignore", "-z", "--stdin"]).stdin(list).output()?;
    for name in self::names(&ignored.stdout) {
        notes.push(format!("'{}' is left out: git ignores it", String::from_utf8_lossy(name)));
    }
    Ok(notes)
}

/// Why git does not see a path: it does not exist, or it is behind a link or in another repository.
fn why_invisible(folder: &Path, name: &Path) -> Option<&'static str> {
    let mut at = folder.to_owned();
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let Ok(meta) = at.symlink_metadata() else {
            return Some("it does not exist, and git does not track it");
        };
        if parts.peek().is_none() {
            break;
        }
        if meta.is_symlink() {
            return Some("it is behind a symbolic link");
        }
        if at.join(".git").symlink_metadata().is_ok() {
            return Some("it is in a nested repository");
        }
    }
    None
}

/// Waits for a lock on the index: even commands that only read may hold it for a moment.
fn wait_for_index_lock(folder: &Path) -> Result<(), GitError> {
    let index = folder
        .join(GitCommand::new(folder, ["rev-parse", "--git-path", "index.lock"]).run()?.line());
    for _ in 0..LOCK_POLLS {
        if !index.exists() {
            break;
        }
        std::thread::sleep(LOCK_POLL_INTERVAL);
    }
    Ok(())
}

/// Adds untracked files to the index by name, without their content.
fn add_intent(folder: &Path, new: &[Vec<u8>]) -> Result<(), GitError> {
    if new.is_empty() {
        return Ok(());
    }
    let call = GitCommand::new(folder, ["add", "--intent-to-add"])
        .arg(PATHSPEC_FROM_STDIN[0])
        .arg(PATHSPEC_FROM_STDIN[1]);
    call.stdin(literal_pathspecs(new)).run()?;
    Ok(())
}

/// Removes these files from the index again. Returns a note if that fails.
fn remove_intent_to_add(folder: &Path, new: &[Vec<u8>]) -> Option<String> {
    if new.is_empty() {
        return None;
    }
    // Only entries without content are ours; an entry with content was added by somebody else.
    let diff = [
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        "--relative",
        "--no-ext-diff",
        "--diff-filter=A",
    ];
    let announced = GitCommand::new(folder, diff).arg("--").arg(".").run();
    let announced =
        announced.map(|answer| names(&answer.stdout).map(<[u8]>::to_vec).collect::<BTreeSet<_>>());
    let removed = announced.and_then(|announced| {
        let list = nul_list(new.iter().filter(|name| announced.contains(*name)));
        if list.is_empty() {
            return Ok(());
        }
        let call = GitCommand::new(folder, ["update-index", "--force-remove", "-z", "--stdin"]);
        call.stdin(list).run().map(|_| ())
    });
    removed.err().map(|why| format!("git still lists the new files as ones to be added: {why}"))
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
