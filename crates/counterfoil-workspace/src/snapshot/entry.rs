//! The state of a path when it was looked at.

use super::blob::{Blob, Conversion, ObjectFormat, lfs_pointer_id};
use crate::file_identity::Identity;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
