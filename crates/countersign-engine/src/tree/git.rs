//! Calling git so that it only looks: no locks, hooks, monitors, prompts or pagers, and never without end.

use super::name::Name;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a call may say on its standard output before it is ended.
const MOST_OUTPUT: u64 = 1 << 30;
/// What is kept of its complaints.
const MOST_WORDS: usize = 4000;
/// Settings that let git look and nothing else. Times and inodes are trusted as they are: a repository that says otherwise
/// would hide an edit whose modification time was put back.
const LOOKING: [&str; 9] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.preloadIndex=true",
    "core.pager=cat",
    "core.quotePath=false",
    "gc.auto=0",
];
/// Variables of ours that git must hear too: where its settings are, and where it stops to look for a repository.
const HEARD: [&str; 4] =
    ["GIT_CONFIG", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"];

/// Which git is called, and how long one call of it may take.
#[derive(Clone, Debug)]
pub struct Git {
    /// The program, by name or path.
    pub program: OsString,
    /// A call that takes longer is ended with everything it started.
    pub limit: Duration,
}

impl Default for Git {
    fn default() -> Self {
        Self { program: "git".into(), limit: Duration::from_mins(2) }
    }
}

/// A repository that calls are pinned to, so that one whose `.git` vanished is not taken for the one around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder with its objects and its index.
    pub(super) git_dir: PathBuf,
    /// Where its files are.
    pub(super) top: PathBuf,
    /// What its file system can do.
    pub(super) abilities: Abilities,
}

/// What git found that a file system can do, as it was set when the folder was opened: what an agent sets later to hide an
/// edit does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abilities {
    /// The executable bit means something.
    pub(super) file_mode: bool,
    /// Names that differ only in case are one.
    pub(super) ignore_case: bool,
    /// There are symbolic links.
    pub(super) symlinks: bool,
}

impl Default for Abilities {
    fn default() -> Self {
        Self { file_mode: true, ignore_case: false, symlinks: true }
    }
}

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// There is no such program.
    #[error("git is not there (`{0}` was not found on the PATH); install it to see changes as git does")]
    Absent(String),
    /// It could not be started or heard.
    #[error("`git {what}` could not be run: {why}")]
    Unheard { what: String, why: String },
    /// It took too long or said too much, and was ended.
    #[error("`git {what}` was ended: {why}")]
    Ended { what: String, why: String },
    /// It said no.
    #[error("`git {what}` failed: {words}")]
    Refused { what: String, words: String },
}

/// What git said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) out: Vec<u8>,
    /// Warnings of a call that went well.
    pub(super) words: String,
}

impl Git {
    /// Calls git in a folder, to find out what is there.
    pub(super) fn discover(&self, folder: &Path, arguments: &[&str]) -> Result<Said, Trouble> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        self.call(self.command(folder), &arguments, None)
    }

    /// Calls git for a repository.
    pub(super) fn ask(&self, place: &Place, arguments: &[&str]) -> Result<Said, Trouble> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        self.ask_with(place, &arguments, None)
    }

    /// Calls git for what its objects tell, without the index: it may be large, or broken. Paths are taken as they are.
    pub(super) fn ask_objects(&self, place: &Place, arguments: &[&OsStr]) -> Result<Said, Trouble> {
        let mut command = self.command_for(place);
        command.env("GIT_INDEX_FILE", place.git_dir.join("no-index")).env("GIT_LITERAL_PATHSPECS", "1");
        self.call(command, arguments, None)
    }

    /// Calls git for what files and blobs are in its eyes. If it cannot because of the index, which only adds attributes
    /// of what is not checked out, it is asked again without.
    pub(super) fn ask_filtered(
        &self,
        place: &Place,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<Said, Trouble> {
        match self.call(self.command_for(place), arguments, input.clone()) {
            Err(Trouble::Refused { words, .. }) if words.contains("index") => {
                let mut command = self.command_for(place);
                command.env("GIT_INDEX_FILE", place.git_dir.join("no-index"));
                self.call(command, arguments, input)
            }
            said => said,
        }
    }

    /// Calls git for a repository, with arguments that need not be text and something to read.
    pub(super) fn ask_with(
        &self,
        place: &Place,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<Said, Trouble> {
        self.call(self.command_for(place), arguments, input)
    }

    fn command_for(&self, place: &Place) -> Command {
        // The folder of a submodule may be gone while its objects are still there.
        let folder = if place.top.is_dir() { &place.top } else { &place.git_dir };
        let mut command = self.command(folder);
        let Abilities { file_mode, ignore_case, symlinks } = place.abilities;
        for (key, value) in [("fileMode", file_mode), ("ignoreCase", ignore_case), ("symlinks", symlinks)] {
            command.arg("-c").arg(format!("core.{key}={value}"));
        }
        command.env("GIT_DIR", &place.git_dir).env("GIT_WORK_TREE", folder);
        command
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        for (key, _) in std::env::vars_os() {
            let text = key.to_string_lossy();
            if text.starts_with("GIT_") && !HEARD.iter().any(|heard| text.starts_with(heard)) {
                command.env_remove(&key);
            }
        }
        command
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            // An object that another stands in for would be a way to make an edit look committed.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C")
            .current_dir(folder)
            .args(["--no-optional-locks", "--no-pager"]);
        for setting in LOOKING {
            command.args(["-c", setting]);
        }
        command
    }

    fn call(
        &self,
        mut command: Command,
        arguments: &[&OsStr],
        input: Option<Vec<u8>>,
    ) -> Result<Said, Trouble> {
        let what =
            || arguments.first().map_or_else(String::new, |first| first.to_string_lossy().into_owned());
        let unheard = |why: String| Trouble::Unheard { what: what(), why };
        command
            .args(arguments)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let folder = command.get_current_dir().map(Path::to_owned).unwrap_or_default();
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound if folder.is_dir() => {
                Trouble::Absent(self.program.to_string_lossy().into_owned())
            }
            _ => unheard(error.to_string()),
        })?;
        let deadline = Instant::now() + self.limit;
        // None of these threads is waited for: a stranger who holds a pipe open must not hold us.
        let (told, hear) = mpsc::channel();
        if let Some(mut out) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let read = out.by_ref().take(MOST_OUTPUT).read_to_end(&mut bytes);
                let _ = told.send(read.map(|_| bytes));
            });
        }
        let (told_words, hear_words) = mpsc::channel();
        if let Some(mut words) = child.stderr.take() {
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                let _ = words.by_ref().take(MOST_WORDS as u64).read_to_end(&mut kept);
                let _ = told_words.send(kept);
                let _ = std::io::copy(&mut words, &mut std::io::sink());
            });
        }
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let heard = hear.recv_timeout(self.limit);
        let full = matches!(&heard, Ok(Ok(bytes)) if bytes.len() as u64 == MOST_OUTPUT);
        let ended = if full || heard.is_err() { None } else { wait(&mut child, deadline) };
        let Some(status) = ended else {
            end(&mut child);
            let why = if full {
                format!("it said more than {} MiB", MOST_OUTPUT >> 20)
            } else {
                format!("it took longer than {} s", self.limit.as_secs_f64())
            };
            return Err(Trouble::Ended { what: what(), why });
        };
        let out = match heard {
            Ok(Ok(out)) => out,
            Ok(Err(error)) => return Err(unheard(error.to_string())),
            Err(_) => return Err(unheard("nothing was heard of it".to_owned())),
        };
        let words = hear_words.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        let words = plain(&words);
        if status.success() {
            Ok(Said { out, words })
        } else {
            let words = if words.is_empty() { format!("it ended with {status}") } else { words };
            Err(Trouble::Refused { what: what(), words })
        }
    }
}

/// Waits until a child that said everything has ended; none if it does not.
fn wait(child: &mut Child, deadline: Instant) -> Option<std::process::ExitStatus> {
    let mut pause = Duration::from_micros(100);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            _ => return None,
        }
    }
}

/// Ends a child and the group it leads. It is not reaped yet, so its number is still its own.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Words of git as one line.
fn plain(words: &[u8]) -> String {
    String::from_utf8_lossy(words).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name as git reads it from a line: quoted if it has to be.
pub(super) fn quoted(name: &Name) -> Vec<u8> {
    let bytes = name.bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\r')) {
        return bytes.to_vec();
    }
    let mut out = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            other => out.push(*other),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_only_where_they_must_be() {
        for (name, line) in [
            ("a b", "a b"),
            ("é", "é"),
            ("a\nb", r#""a\nb""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("\"", r#""\"""#),
        ] {
            assert_eq!(quoted(&Name::from(name.as_bytes())), line.as_bytes(), "{name:?}");
        }
    }
}
