//! Why a file cannot grow: a full disk, a quota, or the limit on the size of files. Neither is the
//! fault of the program that writes, and each can be put right without losing what was written.

use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::io;
use std::path::Path;

/// By how much `SQLite` and its log grow at once, at most.
const GROWTH: u64 = 64 << 10;

/// Why a file cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The disk is full.
    Disk,
    /// The user has no more room on the disk.
    Quota,
    /// The file would become larger than this process may make it (`RLIMIT_FSIZE`).
    FileLimit,
}

impl NoRoom {
    /// The reason, if an error means that there is no room.
    ///
    /// A process that reaches the limit on the size of files is killed by SIGXFSZ, unless it handles
    /// or ignores that signal.
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::StorageFull => Some(Self::Disk),
            io::ErrorKind::QuotaExceeded => Some(Self::Quota),
            io::ErrorKind::FileTooLarge => Some(Self::FileLimit),
            _ => None,
        }
    }

    /// The probable reason why one of these files could not be written, if it is room. For errors
    /// that do not tell.
    pub fn likely<'p>(mut files: impl Iterator<Item = &'p Path>) -> Option<Self> {
        let limit = getrlimit(Resource::Fsize).current;
        files.find_map(|file| {
            let size = file.metadata().map_or(0, |file| file.len());
            if limit.is_some_and(|limit| size.saturating_add(GROWTH) > limit) {
                return Some(Self::FileLimit);
            }
            let is_full = rustix::fs::statvfs(file).is_ok_and(|system| system.f_bavail == 0);
            is_full.then_some(Self::Disk)
        })
    }

    /// Whether the disk of a folder is full right now. One that cannot be written is not.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let system = rustix::fs::statvfs(folder).ok()?;
        let read_only = system.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY);
        (system.f_bavail == 0 && system.f_blocks > 0 && !read_only).then_some(Self::Disk)
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Disk | Self::Quota => "free some space",
            Self::FileLimit => "raise that limit (`ulimit -f unlimited`)",
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk => formatter.write_str("the disk is full"),
            Self::Quota => formatter.write_str("the quota of this user on the disk is used up"),
            Self::FileLimit => match getrlimit(Resource::Fsize).current {
                Some(limit) => {
                    write!(formatter, "no file may become larger than {limit} bytes (`ulimit -f`)")
                }
                None => formatter.write_str("the file system allows no larger file"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_about_room_are_about_room() {
        use rustix::io::Errno;
        for (errno, expected) in [
            (Errno::NOSPC, Some(NoRoom::Disk)),
            (Errno::DQUOT, Some(NoRoom::Quota)),
            (Errno::FBIG, Some(NoRoom::FileLimit)),
            (Errno::IO, None),
            (Errno::ACCESS, None),
            (Errno::ROFS, None),
        ] {
            assert_eq!(NoRoom::of(&errno.into()), expected, "{errno}");
        }
    }

    #[test]
    fn a_disk_with_room_and_one_without_blocks_are_not_full() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(NoRoom::in_folder(folder.path()), None);
        assert_eq!(NoRoom::in_folder(Path::new("/proc")), None);
        assert_eq!(NoRoom::in_folder(&folder.path().join("missing")), None);
    }

    #[test]
    fn without_a_limit_and_with_room_there_is_no_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        if getrlimit(Resource::Fsize).current.is_none() {
            assert_eq!(NoRoom::likely([file.as_path()].into_iter()), None);
        }
    }
}
