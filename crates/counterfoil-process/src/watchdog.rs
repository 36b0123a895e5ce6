//! A process that ends supervised children if the process that supervises them is killed.
//!
//! The supervisor starts it with its first child and tells it about each of them. When the pipe
//! between the two closes, the supervisor is gone, whatever ended it. In an orderly exit no child is
//! left then. Otherwise the watchdog ends those that are.

use super::membership::KnownProcess;
use super::{platform, process_tree};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the marker of children begins with that have no marker of their own yet.
pub(super) const STARTED_BY: &str = "started-by/";

static COMMAND: OnceLock<Vec<OsString>> = OnceLock::new();
static WATCHED: Mutex<Watched> =
    Mutex::new(Watched { pipe: Pipe::Unopened, children: BTreeMap::new() });

/// Sets the command that runs [`watch`] on its stdin. Without one, children outlive this process if
/// it is killed, until a [`sweep`](super::sweep) ends them. Only the first call counts.
pub fn watch_with(command: Vec<OsString>) {
    let _ = COMMAND.set(command);
}

/// The marker of the commands that this process runs for itself, such as git: if it is killed, the
/// watchdog ends them as well.
pub fn own_marker() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("own/{}-{}", std::process::id(), now.as_nanos())
    })
}

/// The marker of what this process starts, until it has a marker of its own: a child may start a daemon
/// before we have looked at it once.
fn started_marker() -> &'static str {
    static STARTED: OnceLock<String> = OnceLock::new();
    STARTED.get_or_init(|| format!("{STARTED_BY}{}", own_marker()))
}

/// Starts the watchdog before there is a child: a command that this process runs for itself may hang.
pub fn start_watchdog() {
    let mut watched = lock();
    if matches!(watched.pipe, Pipe::Unopened) {
        watched.open();
    }
}

/// The children that are watched, and the way to the watchdog.
struct Watched {
    pipe: Pipe,
    /// By their markers, with the processes that are known of each.
    children: BTreeMap<String, Vec<KnownProcess>>,
}

enum Pipe {
    Unopened,
    Open(ChildStdin),
    /// The watchdog cannot be started.
    Failed,
}

/// A child that is watched as long as this exists.
#[derive(Debug)]
pub(super) struct WatchedChild {
    marker: String,
}

impl WatchedChild {
    /// Has a child watched that is about to be started.
    pub(super) fn begin(marker: &str) -> Self {
        let mut watched = lock();
        let is_first = watched.children.is_empty();
        watched.children.insert(marker.to_owned(), Vec::new());
        watched.tell(&Message::Began(marker));
        // Without a watchdog nobody would look for it.
        if is_first && matches!(watched.pipe, Pipe::Open(_)) {
            platform::tag_this_process(started_marker());
            watched.tell(&Message::Began(started_marker()));
        }
        Self { marker: marker.to_owned() }
    }

    /// These processes belong to the child. Those that are known already are left out.
    pub(super) fn knows(&self, processes: impl IntoIterator<Item = KnownProcess>) {
        let mut watched = lock();
        for process in processes {
            let Some(known) = watched.children.get_mut(&self.marker) else { return };
            if !known.contains(&process) {
                known.push(process);
                watched.tell(&Message::Knows(process, &self.marker));
            }
        }
    }
}

impl Drop for WatchedChild {
    fn drop(&mut self) {
        let mut watched = lock();
        watched.children.remove(&self.marker);
        watched.tell(&Message::Ended(&self.marker));
        if watched.children.is_empty() {
            watched.tell(&Message::Ended(started_marker()));
        }
    }
}

fn lock() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    /// Tells the watchdog, which is started if it does not run.
    fn tell(&mut self, message: &Message<'_>) {
        if let Pipe::Open(pipe) = &mut self.pipe
            && message.write_to(pipe).is_ok()
        {
            return;
        }
        if matches!(self.pipe, Pipe::Failed) || self.children.is_empty() {
            return;
        }
        // Somebody may have ended it. The new one has to know about all children.
        self.open();
    }

    fn open(&mut self) {
        self.pipe = match self.start() {
            Ok(Some(pipe)) => Pipe::Open(pipe),
            Ok(None) => Pipe::Failed,
            Err(error) => {
                tracing::warn!(%error, "no watchdog: agents go on if this process is killed");
                Pipe::Failed
            }
        };
    }

    /// Starts a watchdog that knows all children; none if no command was set.
    fn start(&self) -> io::Result<Option<ChildStdin>> {
        let Some((program, arguments)) = COMMAND.get().and_then(|command| command.split_first())
        else {
            return Ok(None);
        };
        // In a process group of its own, so that what ends ours does not end it. It holds nothing of
        // ours open.
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir("/")
            .env_remove(super::MARKER)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut pipe = child.stdin.take().ok_or_else(|| io::Error::other("it has no stdin"))?;
        Message::Began(own_marker()).write_to(&mut pipe)?;
        if !self.children.is_empty() {
            Message::Began(started_marker()).write_to(&mut pipe)?;
        }
        for (marker, known) in &self.children {
            Message::Began(marker).write_to(&mut pipe)?;
            for process in known {
                Message::Knows(*process, marker).write_to(&mut pipe)?;
            }
        }
        Ok(Some(pipe))
    }
}

/// What the watchdog is told. On the pipe, a message ends with NUL, which no marker contains.
#[derive(Debug, PartialEq, Eq)]
enum Message<'a> {
    Began(&'a str),
    Knows(KnownProcess, &'a str),
    Ended(&'a str),
}

impl<'a> Message<'a> {
    fn write_to(&self, pipe: &mut impl Write) -> io::Result<()> {
        let text = match self {
            Self::Began(marker) => format!("+{marker}\0"),
            Self::Knows((pid, start), marker) => format!("={pid} {start} {marker}\0"),
            Self::Ended(marker) => format!("-{marker}\0"),
        };
        pipe.write_all(text.as_bytes())
    }

    fn read(text: &'a str) -> Option<Self> {
        let (kind, rest) = text.split_at_checked(1)?;
        match kind {
            "+" => Some(Self::Began(rest)),
            "-" => Some(Self::Ended(rest)),
            "=" => {
                let mut parts = rest.splitn(3, ' ');
                let process = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
                Some(Self::Knows(process, parts.next()?))
            }
            _ => None,
        }
    }
}

/// Watches: reads what the supervisor tells until the pipe closes, and ends the children that are
/// left. Returns how many processes were ended.
pub fn watch(pipe: impl Read) -> usize {
    platform::protect_watchdog();
    let mut left: BTreeMap<String, Vec<KnownProcess>> = BTreeMap::new();
    for message in BufReader::new(pipe).split(0).map_while(Result::ok) {
        let Ok(text) = String::from_utf8(message) else { continue };
        match Message::read(&text) {
            Some(Message::Began(marker)) => {
                left.insert(marker.to_owned(), Vec::new());
            }
            Some(Message::Knows(process, marker)) => {
                left.entry(marker.to_owned()).or_default().push(process);
            }
            Some(Message::Ended(marker)) => {
                left.remove(marker);
            }
            None => {}
        }
    }
    std::thread::scope(|scope| {
        let ended: Vec<_> = left
            .iter()
            .map(|(marker, known)| scope.spawn(move || process_tree::end_left(marker, known)))
            .collect();
        ended.into_iter().filter_map(|thread| thread.join().ok()).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for message in [
            Message::Began("run/a b\nc#1"),
            Message::Knows((12, 3456), "run/a = b#1"),
            Message::Ended(""),
        ] {
            let mut written = Vec::new();
            message.write_to(&mut written).unwrap();
            let text = String::from_utf8(written).unwrap();
            assert_eq!(Message::read(text.strip_suffix('\0').unwrap()), Some(message));
        }
        for text in ["", "?", "=1", "=a b c", "=1 2"] {
            assert_eq!(Message::read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_garbled_ends_nothing() {
        assert_eq!(watch(&b"=x\0\xff\xff\0+\0-\0+gone\0=99999999 1 gone\0"[..]), 0);
    }
}
