//! Commits some paths as they stand, through `git commit` with the user's hooks and identity, and
//! nothing else of what is staged or changed. Never pushes.
//!
//! A commit is made once: a trailer names the visit of the state it was made for, and who is
//! started again because a process died finds it by that.

use super::changes::{is_unborn, nothing};
use super::paths::{Known, Selected, select};
use super::{Done, listed, literally, names, own_folders};
use crate::attempt::{Completed, Handle, bare};
use crate::shell::{Heard, exit_code, listen};
use counterfoil_agents::agent::reference;
use counterfoil_agents::transcript::TranscriptError;
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
/// So many commits are looked at to find our own.
const LOOKED_BACK: &str = "-1000";
/// Right behind it, it is the last one.
const LAST: &str = "-1";
/// How often, and after how long each time, an index that somebody else holds is looked at again.
const LOCKED_LOOKS: u32 = 10;
const LOCKED_WAIT: Duration = Duration::from_millis(100);
/// More notes are only counted.
const MOST_NOTES: usize = 20;
/// Who commits if git knows nobody.
const NOBODY: [(&str, &str); 2] =
    [("user.name", "counterfoil"), ("user.email", "counterfoil@localhost")];
/// What goes before a list of pathspecs.
const BY_LIST: [&str; 2] = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/// Where a commit is made, and whose turn it is: two at once would be in each other's way.
#[derive(Clone)]
pub(crate) struct Place {
    /// The folder of the workspace.
    pub(crate) folder: PathBuf,
    /// Where runs are kept.
    pub(crate) state: PathBuf,
    /// Held while one commits.
    pub(crate) turn: Arc<Mutex<()>>,
}

/// A commit that is about to be made.
struct Ready {
    /// What is committed.
    list: Vec<u8>,
    /// What git was told of for it.
    new: Vec<Vec<u8>>,
    /// Settings without which git would not know who commits.
    settings: Vec<String>,
    notes: Vec<String>,
}

/// How far it came.
enum Prepared {
    Ready(Ready),
    Done(Done),
}

/// Makes the commit.
pub(crate) async fn commit(
    attempt: String,
    marker: String,
    work: CommitWork,
    place: Place,
    handle: Arc<dyn Handle>,
) -> Completed {
    let since = Instant::now();
    let mut stop = handle.stop();
    let completed =
        |done: Done| Completed { ended: done.of(&attempt, since), used_up: None, unkept: None };
    let turn = tokio::select! {
        turn = place.turn.lock() => turn,
        () = super::stopped(&mut stop) => return completed(Done::Stopped),
    };
    let work = Arc::new(work);
    let ready = {
        let (place, work) = (place.clone(), work.clone());
        blocking(move || prepare(&place, &work)).await
    };
    let ready = match ready {
        Ok(Prepared::Ready(ready)) => ready,
        Ok(Prepared::Done(done)) => return completed(done),
        Err(why) => return Completed::failed(&attempt, why),
    };
    let Some(home) = scratch(&ready.list) else {
        let _ = blocking(move || forget(&place.folder, &ready.new)).await;
        return completed(Done::Blocked("there is no room for the list of files".to_owned()));
    };
    let mut call =
        GitCommand::new(&place.folder, ["commit", "--cleanup=whitespace", "-F", "-", "--trailer"])
            .arg(trailer(&work.step))
            .arg("--only")
            .arg(in_file(home.path()))
            .arg(BY_LIST[1])
            .stdin(work.message.clone().into_bytes());
    for setting in &ready.settings {
        call = call.config(setting.clone());
    }
    let spawn = call.into_child_spec(marker, Duration::from_millis(work.timeout_ms));
    let heard = listen(&attempt, spawn, 0, &handle).await;
    let finished = {
        let (folder, step) = (place.folder.clone(), work.step.clone());
        let made = matches!(&heard, Ok(heard) if is_well(heard));
        blocking(move || finish(&folder, &step, ready, made)).await
    };
    drop(turn);
    let (made, notes) = match finished {
        Ok(finished) => finished,
        Err(why) => return Completed::failed(&attempt, why),
    };
    match heard {
        Ok(heard) => {
            let ended = Told { attempt: &attempt, work: &work, since, notes }.ended(heard, made);
            Completed { ended, used_up: None, unkept: None }
        }
        Err(error) => unkept(&attempt, error),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| format!("it broke off: {error}"))
}

fn unkept(attempt: &str, error: TranscriptError) -> Completed {
    let ended = Ended { reason: error.to_string(), ..bare(attempt, AttemptOutcome::Cancelled) };
    Completed { ended, used_up: None, unkept: Some(error) }
}

/// The list of what is committed, in a file: git reads the message on its standard input.
fn scratch(list: &[u8]) -> Option<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("counterfoil-").tempfile().ok()?;
    std::io::Write::write_all(&mut file, list).ok()?;
    Some(file)
}

fn in_file(path: &Path) -> OsString {
    let mut option = OsString::from("--pathspec-from-file=");
    option.push(path);
    option
}

fn is_well(heard: &Heard) -> bool {
    matches!(&heard.outcome, Ok(process) if process.cause == Cause::Finished && exit_code(process.exit) == 0)
}

/// What is told of a commit that was tried.
struct Told<'a> {
    attempt: &'a str,
    work: &'a CommitWork,
    since: Instant,
    notes: Vec<String>,
}

impl Told<'_> {
    fn ended(mut self, heard: Heard, made: Option<Made>) -> Ended {
        let wall_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = Usage { wall_ms, ..Usage::default() };
        let ended = |outcome| Ended { usage, ..bare(self.attempt, outcome) };
        let cause = heard.outcome.as_ref().map(|process| process.cause);
        let limit = format!("longer than {} s", self.work.timeout_ms.div_ceil(1000));
        match (cause, &made) {
            (Ok(Cause::Stopped), _) => {
                return Ended { reason: "stopped".to_owned(), ..ended(AttemptOutcome::Cancelled) };
            }
            (Ok(Cause::Startup | Cause::Idle | Cause::Total), None) => {
                let reply = Some(reference(&heard.stored, "timeout"));
                let reason = format!("`git commit` with the hooks of the repository took {limit}");
                return Ended { reason, reply, ..ended(AttemptOutcome::Timeout) };
            }
            (Ok(Cause::Startup | Cause::Idle | Cause::Total), Some(_)) => {
                self.notes.push(format!(
                    "the commit is made; what ran behind it took {limit} and was ended"
                ));
            }
            (Ok(Cause::Finished | Cause::Finishing | Cause::SinkStopped) | Err(_), _) => {}
        }
        let said = match &heard.outcome {
            Ok(_) => heard.tail,
            Err(error) => error.to_string(),
        };
        let reply = Some(reference(&heard.stored, "accepted"));
        let ok = made.is_some();
        let value = result(ok, made, &said, &self.notes);
        Ended { value: Some(value), reply, ..ended(AttemptOutcome::Accepted) }
    }
}

/// A commit that was made.
struct Made {
    commit: String,
    files: Vec<String>,
}

fn result(ok: bool, made: Option<Made>, said: &str, notes: &[String]) -> Value {
    let (commit, files) = made.map(|made| (made.commit, made.files)).unwrap_or_default();
    let mut output = said.trim_end().to_owned();
    for note in notes.iter().take(MOST_NOTES) {
        let _ = write!(output, "\n{note}");
    }
    if let Some(more @ 1..) = notes.len().checked_sub(MOST_NOTES) {
        let _ = write!(output, "\nand {more} more like these");
    }
    json!({"ok": ok, "commit": commit, "files": files, "output": output.trim_start_matches('\n')})
}

/// Everything up to the commit itself. It blocks.
fn prepare(place: &Place, work: &CommitWork) -> Prepared {
    let folder = &place.folder;
    let blocked = |why: String| Prepared::Done(Done::Blocked(why));
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
    let refused = |why: GitError, notes: &[String]| {
        Prepared::Done(Done::Given(result(false, None, &why.to_string(), notes)))
    };
    // On the first try there is none, whatever a message says.
    let before =
        if work.repeated { made_before(folder, &work.step, LOOKED_BACK) } else { Ok(None) };
    match before {
        Ok(None) => {}
        Ok(Some(made)) => {
            let note = ["the commit was made before this step was interrupted".to_owned()];
            return Prepared::Done(Done::Given(result(true, Some(made), "", &note)));
        }
        Err(why) => return blocked(why.to_string()),
    }
    let Selected { files, new, notes, .. } = match selected(place, &work.paths) {
        Ok(selected) => selected,
        Err(why) => return blocked(why.to_string()),
    };
    if files.is_empty() {
        return Prepared::Done(Done::Given(result(true, None, "", &notes)));
    }
    let list = literally(&files);
    let told = wait_for_the_index(folder).and_then(|()| make_known(folder, &new));
    let settings = told.and_then(|()| Ok((is_something(folder, list.clone())?, identity(folder)?)));
    match settings {
        Ok((true, settings)) => Prepared::Ready(Ready { list, new, settings, notes }),
        Ok((false, _)) => {
            forget(folder, &new);
            Prepared::Done(Done::Given(result(true, None, "", &notes)))
        }
        Err(why) => {
            forget(folder, &new);
            refused(why, &notes)
        }
    }
}

/// Everything behind the commit: what was made, and what to note. It blocks.
fn finish(folder: &Path, step: &str, ready: Ready, made: bool) -> (Option<Made>, Vec<String>) {
    let Ready { new, mut notes, .. } = ready;
    let found = made_before(folder, step, LAST).unwrap_or_default();
    // A hook may have taken the trailer out.
    let found = found.or_else(|| {
        let head = counterfoil_workspace::git::head(folder).filter(|_| made)?;
        Some(Made { files: files_of(folder, &head).unwrap_or_default(), commit: head })
    });
    if found.is_none() {
        notes.extend(forget(folder, &new));
    }
    (found, notes)
}

/// The commit that was made for a visit, if it was.
fn made_before(folder: &Path, step: &str, back: &str) -> Result<Option<Made>, GitError> {
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
        // A hook may have put something behind it, so that git would not take it for a trailer any
        // more.
        if lines.any(|line| line.trim_end() == trailer.trim_end()) {
            let files = files_of(folder, commit)?;
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
fn files_of(folder: &Path, commit: &str) -> Result<Vec<String>, GitError> {
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

/// What of the paths differs from the last commit.
fn selected(place: &Place, paths: &[String]) -> Result<Selected, GitError> {
    let folder = &place.folder;
    let against = if is_unborn(folder)? { nothing(folder)? } else { "HEAD".to_owned() };
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
    let own = own_folders(folder, &place.state);
    let known = Known { changed: &changed.stdout, others: &others.stdout, own: &own };
    let mut selected = select(paths, &known);
    let rest = std::mem::take(&mut selected.rest);
    selected.notes.extend(left_out(folder, rest)?);
    Ok(selected)
}

/// Why what was named is not committed, where it is not just unchanged.
fn left_out(folder: &Path, names: Vec<String>) -> Result<Vec<String>, GitError> {
    let mut notes = Vec::new();
    let mut asked = Vec::new();
    for name in names {
        match in_the_way(folder, Path::new(&name)) {
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

/// Why git does not see what stands at a path, if it is not there or stands in something else.
fn in_the_way(folder: &Path, name: &Path) -> Option<&'static str> {
    let mut at = folder.to_owned();
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let Ok(meta) = at.symlink_metadata() else {
            return Some("it is not there, and git does not know it");
        };
        if parts.peek().is_none() {
            break;
        }
        if meta.is_symlink() {
            return Some("it stands behind a symbolic link");
        }
        if at.join(".git").symlink_metadata().is_ok() {
            return Some("it stands in a repository of its own");
        }
    }
    None
}

/// Somebody who only looks at a repository may hold its index for a moment.
fn wait_for_the_index(folder: &Path) -> Result<(), GitError> {
    let index = folder
        .join(GitCommand::new(folder, ["rev-parse", "--git-path", "index.lock"]).run()?.line());
    for _ in 0..LOCKED_LOOKS {
        if !index.exists() {
            break;
        }
        std::thread::sleep(LOCKED_WAIT);
    }
    Ok(())
}

/// Tells git of new files; what is in them is not added.
fn make_known(folder: &Path, new: &[Vec<u8>]) -> Result<(), GitError> {
    if new.is_empty() {
        return Ok(());
    }
    let call = GitCommand::new(folder, ["add", "--intent-to-add"]).arg(BY_LIST[0]).arg(BY_LIST[1]);
    call.stdin(literally(new)).run()?;
    Ok(())
}

/// Lets git forget them again; a note if that cannot be done.
fn forget(folder: &Path, new: &[Vec<u8>]) -> Option<String> {
    if new.is_empty() {
        return None;
    }
    // What was told of it is an entry without content; one that has some is somebody's.
    let told = [
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        "--relative",
        "--no-ext-diff",
        "--diff-filter=A",
    ];
    let told = GitCommand::new(folder, told).arg("--").arg(".").run();
    let told = told.map(|told| names(&told.stdout).map(<[u8]>::to_vec).collect::<BTreeSet<_>>());
    let forgotten = told.and_then(|told| {
        let list = listed(new.iter().filter(|name| told.contains(*name)));
        if list.is_empty() {
            return Ok(());
        }
        let call = GitCommand::new(folder, ["update-index", "--force-remove", "-z", "--stdin"]);
        call.stdin(list).run().map(|_| ())
    });
    forgotten.err().map(|why| format!("git still lists the new files as ones to be added: {why}"))
}

/// Whether a commit of these files would have anything in it.
fn is_something(folder: &Path, list: Vec<u8>) -> Result<bool, GitError> {
    let call = GitCommand::new(folder, ["commit", "--dry-run", "--short", "-uno", "--only"])
        .arg(BY_LIST[0])
        .arg(BY_LIST[1]);
    let answer = call.as_user().stdin(list).output()?;
    match answer.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(GitError::Failed { command: "commit".to_owned(), message: answer.stderr }),
    }
}

/// The settings without which git would not know who commits.
fn identity(folder: &Path) -> Result<Vec<String>, GitError> {
    let mut known = true;
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        known &= GitCommand::new(folder, ["var", who]).as_user().output()?.ok();
    }
    let mut settings = Vec::new();
    if !known {
        for (key, value) in NOBODY {
            let set = GitCommand::new(folder, ["config", "--get", key]).output()?;
            if !set.ok() || set.stdout.trim_ascii().is_empty() {
                settings.push(format!("{key}={value}"));
            }
        }
    }
    Ok(settings)
}
