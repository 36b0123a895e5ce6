//! The identity of a file, which tells whether it may have changed without reading it.

use rustix::fs::AtFlags;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The granularity of file times that are whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(2);
/// The granularity of other file times: a few ticks of the kernel.
const FINE_TICK: Duration = Duration::from_millis(50);

/// Identifies an unchanged file without reading it. A write changes the change time, which programs
/// cannot set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

impl Identity {
    pub(crate) fn from_metadata(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            mode: meta.mode(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The identity of the file itself, if the path is a link, relative to an open folder.
    #[allow(clippy::useless_conversion, reason = "the types of the fields differ on macOS")]
    pub(crate) fn at(folder: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<Self> {
        let stat = rustix::fs::statat(folder, path, AtFlags::SYMLINK_NOFOLLOW)?;
        let nanos = |nanos| i64::try_from(nanos).unwrap_or(0);
        Ok(Self {
            device: u64::try_from(stat.st_dev).unwrap_or(0),
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: u32::from(stat.st_mode),
            modified: (stat.st_mtime, nanos(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanos(stat.st_ctime_nsec)),
        })
    }

    /// The change time.
    pub(crate) fn changed(&self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        match u64::try_from(seconds) {
            Ok(seconds) => UNIX_EPOCH + Duration::new(seconds, u32::try_from(nanos).unwrap_or(0)),
            Err(_) => UNIX_EPOCH,
        }
    }

    /// Whether a write after this time would change the times.
    pub(crate) fn is_settled_at(&self, when: SystemTime) -> bool {
        // Old file systems store whole seconds, and some only even ones.
        let granularity = if self.changed.1 == 0 { COARSE_TICK } else { FINE_TICK };
        self.changed() + granularity < when
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_identity_however_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
        let open = std::fs::File::open(folder.path()).unwrap();
        for name in ["file", "link"] {
            let meta = folder.path().join(name).symlink_metadata().unwrap();
            assert_eq!(Identity::at(&open, name).unwrap(), Identity::from_metadata(&meta));
        }
    }
}
