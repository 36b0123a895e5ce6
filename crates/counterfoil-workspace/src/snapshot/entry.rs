//! The state of a path, and its status in git.

use super::parse::Blob;
use super::repo_path::RepoPath;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Identifies an unchanged file without reading it. A write changes the change time, which programs
/// cannot set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(super) fn from_metadata(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            mode: meta.mode(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The change time.
    pub(super) fn changed(&self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        match u64::try_from(seconds) {
            Ok(seconds) => UNIX_EPOCH + Duration::new(seconds, u32::try_from(nanos).unwrap_or(0)),
            Err(_) => UNIX_EPOCH,
        }
    }

    /// Whether a later write would change the times: they have a granularity of up to two seconds
    /// on old file systems.
    pub(super) fn is_settled_at(&self, when: SystemTime) -> bool {
        self.changed() + Duration::from_secs(2) < when
    }

    fn digest(&self, hash: &mut Sha256) {
        hash.update(self.size.to_le_bytes());
        for part in [self.modified.0, self.modified.1, self.changed.0, self.changed.1] {
            hash.update(part.to_le_bytes());
        }
    }
}

/// The bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Bytes {
    /// The SHA-256 of the bytes.
    Hash([u8; 32]),
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
                        (Bytes::Hash(a), Bytes::Hash(b)) => a == b,
                        _ => x == y,
                    }
            }
            (Self::Link { target: a, .. }, Self::Link { target: b, .. }) => a == b,
            (Self::Other(a), Self::Other(b)) => a == b,
            _ => false,
        }
    }

    /// Adds the state to a fingerprint.
    pub(super) fn digest(&self, hash: &mut Sha256, file_mode: bool) {
        match self {
            Self::Gone => hash.update(b"-"),
            Self::File { bytes, at } => {
                hash.update(if file_mode && self.executable() { b"x" } else { b"f" });
                match bytes {
                    Bytes::Hash(bytes) => hash.update(bytes),
                    Bytes::Unread => at.digest(hash),
                }
            }
            Self::Link { target, .. } => {
                hash.update(b"l");
                hash.update((target.len() as u64).to_le_bytes());
                hash.update(target);
            }
            Self::Other(kind) => {
                hash.update(b"o");
                hash.update(kind.to_le_bytes());
            }
        }
    }
}

/// The content of a path in a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Head {
    Has(Blob),
    Lacks,
    /// Not determined.
    #[default]
    Unknown,
}

impl From<Option<Blob>> for Head {
    fn from(blob: Option<Blob>) -> Self {
        blob.map_or(Self::Lacks, Self::Has)
    }
}

/// The status of a path in git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GitPathStatus {
    pub(super) head: Head,
    /// The blob of the file after filters, if git reported it.
    pub(super) staged: Option<String>,
    /// The file is known to differ from HEAD.
    pub(super) edited: bool,
    /// The file differs from HEAD, or may. Other paths are included because they differed once:
    /// they must not seem deleted when they are committed or ignored.
    pub(super) dirty: bool,
}

impl GitPathStatus {
    pub(super) fn new(head: Head) -> Self {
        Self { head, staged: None, edited: false, dirty: true }
    }

    /// Whether HEAD has this blob at the path.
    pub(super) fn head_has(&self, blob: &Blob) -> bool {
        matches!(&self.head, Head::Has(head) if head.oid == blob.oid)
    }
}

/// One path of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) state: PathState,
    pub(super) status: GitPathStatus,
}

/// A repository in a snapshot: the commit that all unlisted paths are equal to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repo {
    pub(super) head: Option<String>,
    pub(super) git_dir: PathBuf,
}

/// The data of a snapshot.
#[derive(Debug, Default)]
pub(super) struct SnapshotData {
    /// The repository and its submodules, by their folder below the top. Empty without git: the
    /// entries are complete then.
    pub(super) repos: BTreeMap<RepoPath, Repo>,
    pub(super) entries: BTreeMap<RepoPath, Entry>,
    /// There was too much to read: the snapshot is empty.
    pub(super) too_large: bool,
}

impl SnapshotData {
    /// The repository that contains a path, with its folder.
    pub(super) fn repo_of(&self, name: &RepoPath) -> Option<(RepoPath, &Repo)> {
        let mut folders = name.folders().chain(std::iter::once(RepoPath::from(&b""[..])));
        folders.find_map(|folder| self.repos.get(&folder).map(|repo| (folder, repo)))
    }
}
