//! The state of a path when it was looked at.

use super::blob::{Blob, Conversion, ObjectFormat, lfs_pointer_id};
use rustix::fs::AtFlags;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The granularity of file times that are whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(2);
/// The granularity of other file times: a few ticks of the kernel.
const FINE_TICK: Duration = Duration::from_millis(50);

/// Identifies an unchanged file without reading it. A write changes the change time, which programs
/// cannot set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
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
    pub(super) fn at(folder: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<Self> {
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
    pub(super) fn changed(&self) -> SystemTime {
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

/// The bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Bytes {
    /// The bytes were read.
    Read {
        /// Their SHA-256.
        hash: [u8; 32],
        /// The blobs they can be, first without a conversion.
        blobs: Vec<String>,
    },
    /// The bytes were not read. The file is compared by size and times.
    Unread,
}

/// The state of a path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum PathState {
    /// Nothing, or a folder, which is represented by its files.
    Gone,
    /// A file.
    File { bytes: Bytes, at: Identity },
    /// A symbolic link and its target.
    Link {
        #[serde(with = "super::saved::hex_bytes")]
        target: Arc<[u8]>,
        /// The blob it is.
        blob: String,
        at: Identity,
    },
    /// A pipe, socket or device by its type. It is never opened.
    Other(u32),
}

impl PathState {
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// The identity of a file or link.
    pub(super) fn at(&self) -> Option<&Identity> {
        match self {
            Self::File { at, .. } | Self::Link { at, .. } => Some(at),
            Self::Gone | Self::Other(_) => None,
        }
    }

    /// Whether it is executable.
    pub(super) fn executable(&self) -> bool {
        matches!(self, Self::File { at, .. } if at.mode & 0o100 != 0)
    }

    /// Whether both have the same content. Modes are compared only where they are meaningful.
    pub(super) fn same(&self, other: &Self, file_mode: bool) -> bool {
        match (self, other) {
            (Self::Gone, Self::Gone) => true,
            (Self::File { bytes: a, at: x }, Self::File { bytes: b, at: y }) => {
                let modes = !file_mode || self.executable() == other.executable();
                modes
                    && match (a, b) {
                        (Bytes::Read { hash: a, .. }, Bytes::Read { hash: b, .. }) => a == b,
                        _ => x == y,
                    }
            }
            (Self::Link { target: a, .. }, Self::Link { target: b, .. }) => a == b,
            (Self::Other(a), Self::Other(b)) => a == b,
            _ => false,
        }
    }

    /// Whether this is a blob in the work tree.
    pub(super) fn is_blob(&self, blob: &Blob, rules: BlobRules) -> bool {
        match self {
            Self::File { bytes: Bytes::Read { hash, blobs }, at } => {
                let modes = !rules.file_mode || self.executable() == blob.executable();
                // Without links, git checks them out as files with their target.
                let kinds = !blob.is_link() || !rules.symlinks;
                let converted = match rules.conversion {
                    Conversion::None | Conversion::Filter => false,
                    Conversion::Text { .. } => blobs.iter().skip(1).any(|id| *id == blob.oid),
                    Conversion::Lfs => lfs_pointer_id(rules.format, hash, at.size) == blob.oid,
                };
                modes && kinds && (blobs.first() == Some(&blob.oid) || converted)
            }
            Self::Link { blob: id, .. } => blob.is_link() && *id == blob.oid,
            Self::File { bytes: Bytes::Unread, .. } | Self::Gone | Self::Other(_) => false,
        }
    }
}

/// What has to be known of a repository and a path to compare a file with a blob.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlobRules {
    pub(super) format: ObjectFormat,
    pub(super) conversion: Conversion,
    /// The executable bit is meaningful.
    pub(super) file_mode: bool,
    /// Symbolic links are supported.
    pub(super) symlinks: bool,
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
