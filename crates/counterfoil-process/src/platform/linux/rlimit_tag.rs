//! A tag that descendants inherit: a number stored in `RLIMIT_LOCKS`, a limit that the kernel has
//! not enforced since Linux 2.4. Unlike the environment it survives `env -i`, and unlike ancestry
//! and session it survives the double fork of a daemon. A process loses it only by setting this
//! limit itself.

use crate::membership::Process;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read;

/// How many descendants are tagged along with the child: more than it can start before it is
/// tagged.
const MAX_TAGGED_DESCENDANTS: usize = 64;

/// A marker as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RlimitTag(u64);

impl RlimitTag {
    pub(super) fn for_marker(marker: &str) -> Self {
        let digest = Sha256::digest(marker.as_bytes());
        let number = digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte));
        // Below every value that could mean "no limit", and above any that people set.
        Self(number >> 2 | 1 << 61)
    }

    /// Tags a child that has just been started, and the descendants it has started already. Later
    /// descendants inherit the tag. The child is tagged before it can read any input from us.
    pub(super) fn apply_to(self, child: &Process) {
        self.set_on(child.id.pid);
        for descendant in child.descendants(MAX_TAGGED_DESCENDANTS) {
            self.set_on(descendant.id.pid);
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

/// Whether a process carries a tag, whatever its marker. Nobody else sets such a number.
pub(super) fn is_tagged(pid: i32) -> bool {
    read_limit(pid).is_some_and(|limit| limit >> 61 == 1)
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

    #[test]
    fn it_goes_through_a_cleared_environment_and_a_new_session() {
        let mut child = Command::new("sh");
        child
            .args(["-c", "read go; exec env -i setsid --wait sh -c 'read go'"])
            .stdin(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let pid = child.id().cast_signed();
        let (tag, other) = (RlimitTag::for_marker("one"), RlimitTag::for_marker("other"));
        tag.apply_to(&Process::read(pid).unwrap());
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
