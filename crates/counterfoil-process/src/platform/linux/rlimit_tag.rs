//! A tag that descendants inherit: a number stored in `RLIMIT_LOCKS`, a limit that the kernel has
//! not enforced since Linux 2.4. Unlike the environment it survives `env -i`, and unlike ancestry
//! and session it survives the double fork of a daemon. A process loses it only by setting this
//! limit itself.

use super::orphans;
use crate::membership::{Process, State};
use crate::watchdog::STARTED_BY;
use rustix::process::{Pid, Resource, Rlimit, getpid, getrlimit, prlimit};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read;

/// How many descendants are tagged along with the child: more than it can start before it is
/// tagged.
const MAX_TAGGED_DESCENDANTS: usize = 64;

/// Where the bits begin that say what a number is for. The bits above them are never set: a number is
/// below every value that could mean "no limit", and above any that people set.
const CLASS_SHIFT: u32 = 60;
/// The tag of a child and its descendants.
const CHILD_CLASS: u64 = 0b10;
/// The tag that children inherit from the process that starts them.
const STARTED_CLASS: u64 = 0b11;

/// A marker as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RlimitTag(u64);

impl RlimitTag {
    pub(super) fn for_marker(marker: &str) -> Self {
        let digest = Sha256::digest(marker.as_bytes());
        let number = digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte));
        let class = if marker.starts_with(STARTED_BY) { STARTED_CLASS } else { CHILD_CLASS };
        Self(number >> (64 - CLASS_SHIFT) | class << CLASS_SHIFT)
    }

    /// Tags a child that has just been started, and what it has started already: its descendants, and
    /// orphans that this process adopted. Later ones inherit the tag. The child is tagged before it
    /// can read any input from us. No other child may be started meanwhile: an orphan of it would be
    /// taken for one of this child.
    pub(super) fn apply_to(self, child: &Process, our_session: i32) {
        self.set_on(child.id.pid);
        // One that is not tagged yet may start another and exit, so that it is looked for again.
        // The kernel may leave out children while one of them exits: once is not enough to see nothing.
        let mut looks_without = 0;
        for _ in 0..MAX_TAGGED_DESCENDANTS {
            let mut untagged = child.descendants(MAX_TAGGED_DESCENDANTS);
            untagged.extend(orphans::adopted_since(child.id.start, our_session));
            untagged.retain(|process| {
                let is_ours = process.id == child.id || is_tagged(process.id.pid);
                !is_ours && process.state == State::Alive
            });
            looks_without = if untagged.is_empty() { looks_without + 1 } else { 0 };
            if looks_without == 2 {
                return;
            }
            for process in untagged {
                self.set_on(process.id.pid);
            }
        }
    }

    fn set_on(self, pid: i32) {
        let Some(pid) = Pid::from_raw(pid) else { return };
        let maximum = getrlimit(Resource::Locks).maximum;
        if let Err(error) =
            prlimit(Some(pid), Resource::Locks, Rlimit { current: Some(self.0), maximum })
        {
            tracing::debug!(%error, %pid, "a child could not be tagged; it is found by its environment");
        }
    }

    /// Whether a process carries this tag.
    pub(super) fn is_set_on(self, pid: i32) -> bool {
        read_limit(pid) == Some(self.0)
    }
}

/// Whether a process carries the tag of a child, whatever its marker. Nobody else sets such a number.
pub(super) fn is_tagged(pid: i32) -> bool {
    read_limit(pid).is_some_and(|limit| limit >> CLASS_SHIFT == CHILD_CLASS)
}

/// Tags this process, so that whatever it starts inherits the tag until it gets that of a child. A
/// process in a supervised child keeps the tag of that child.
pub(crate) fn tag_this_process(marker: &str) {
    let pid = getpid().as_raw_nonzero().get();
    if !is_tagged(pid) {
        RlimitTag::for_marker(marker).set_on(pid);
    }
}

/// The soft limit of file locks of a process. `None` for no limit.
fn read_limit(pid: i32) -> Option<u64> {
    // The file has sixteen lines of eighty characters.
    let mut limits = [0; 4096];
    let read =
        File::open(format!("/proc/{pid}/limits")).and_then(|mut file| file.read(&mut limits));
    parse_limit(limits.get(..read.ok()?).unwrap_or_default())
}

impl std::fmt::Display for RlimitTag {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// The soft limit of file locks, which is the first of the two values.
fn parse_limit(limits: &[u8]) -> Option<u64> {
    let line = limits
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Max file locks"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_number_is_read_from_its_line() {
        let lines = |limit: &str| {
            format!(
                "Limit    Soft Limit   Hard Limit   Units\nMax locked memory  7  7  bytes\nMax file locks  {limit}  unlimited  locks\n"
            )
        };
        assert_eq!(parse_limit(lines("42").as_bytes()), Some(42));
        assert_eq!(parse_limit(lines("unlimited").as_bytes()), None);
        assert_eq!(parse_limit(b"Max file locks"), None);
        assert_eq!(parse_limit(b""), None);
    }

    fn our_session() -> i32 {
        Process::read(std::process::id().cast_signed()).unwrap().session
    }

    #[test]
    fn a_daemon_that_was_there_before_is_tagged() {
        assert!(orphans::adopt());
        // The subshell exits, and the daemon is ours.
        let mut child = Command::new("setsid");
        child
            .args(["sh", "-c", "(env -i setsid sleep 60 > /dev/null 2>&1 &); echo up; read end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let process = Process::read(child.id().cast_signed()).unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 2]).unwrap();
        let adopted = || {
            let mut found = orphans::adopted_since(process.id.start, our_session());
            found.retain(|orphan| orphan.id != process.id);
            found.pop()
        };
        let daemon = loop {
            match adopted() {
                Some(daemon) => break daemon,
                None => std::thread::yield_now(),
            }
        };
        let tag = RlimitTag::for_marker("early");
        assert!(!is_tagged(daemon.id.pid));
        tag.apply_to(&process, our_session());
        let tagged = [process.id.pid, daemon.id.pid].map(|pid| tag.is_set_on(pid));
        daemon.signal(rustix::process::Signal::KILL);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(tagged, [true, true]);
    }

    #[test]
    fn what_has_no_tag_yet_has_inherited_one() {
        let marker = format!("{STARTED_BY}this test");
        tag_this_process(&marker);
        let mut child = Command::new("setsid").args(["env", "-i", "sleep", "60"]).spawn().unwrap();
        let process = Process::read(child.id().cast_signed()).unwrap();
        let (inherited, own) = (RlimitTag::for_marker(&marker), RlimitTag::for_marker("own"));
        let before = [inherited.is_set_on(process.id.pid), is_tagged(process.id.pid)];
        own.apply_to(&process, our_session());
        let after = [inherited.is_set_on(process.id.pid), is_tagged(process.id.pid)];
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((before, after), ([true, false], [false, true]));
    }

    #[test]
    fn it_goes_through_a_cleared_environment_and_a_new_session() {
        let mut child = Command::new("sh");
        child
            .args(["-c", "read go; exec env -i setsid --wait sh -c 'read go'"])
            .stdin(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let pid = child.id().cast_signed();
        let (tag, other) = (RlimitTag::for_marker("one"), RlimitTag::for_marker("other"));
        tag.apply_to(&Process::read(pid).unwrap(), our_session());
        assert!(tag.is_set_on(pid) && !other.is_set_on(pid));
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, b"go\n").unwrap();
        let renamed =
            || std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|all| all.is_empty());
        while !renamed() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let marked = tag.is_set_on(pid);
        drop(stdin);
        child.wait().unwrap();
        assert!(marked);
    }
}
