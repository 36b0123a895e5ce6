//! The fingerprint of a snapshot: equal for work trees with the same files, whatever they are
//! compared with.

use super::Snapshotter;
use super::base::SnapshotData;
use super::blob::Blob;
use super::entry::{Bytes, PathState};
use super::repo_path::RepoPath;
use crate::file_identity::Identity;

/// The hash is computed in pieces of this size, which is much faster than for each field.
const PIECE: usize = 1 << 16;

impl Snapshotter {
    /// A fingerprint of the files of a snapshot, whatever its base is.
    pub(super) fn fingerprint(&self, data: &SnapshotData) -> String {
        let mut hash = Fingerprint::default();
        let file_mode = self.file_mode();
        let mut entries = data.entries.iter().peekable();
        let entry = |hash: &mut Fingerprint, name: &RepoPath, state: &PathState| {
            if !state.is_gone() && !self.is_unreported(name, &data.base) {
                hash.add_name(name);
                hash.add_state(state, file_mode);
            }
        };
        for file in data.base.files() {
            while let Some((name, state)) = entries.next_if(|(name, _)| **name < file.name) {
                entry(&mut hash, name, state);
            }
            if let Some((name, state)) = entries.next_if(|(name, _)| **name == file.name) {
                entry(&mut hash, name, state);
            } else if !self.is_excluded(&file.name) {
                hash.add_name(&file.name);
                hash.add_blob(&file.blob, file_mode);
            }
        }
        for (name, state) in entries {
            entry(&mut hash, name, state);
        }
        hash.finish()
    }
}

#[derive(Default)]
struct Fingerprint {
    hash: blake3::Hasher,
    /// What is not part of the hash yet.
    bytes: Vec<u8>,
}

impl Fingerprint {
    fn add_name(&mut self, name: &RepoPath) {
        if self.bytes.len() >= PIECE {
            self.hash.update(&self.bytes);
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(&(name.bytes().len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(name.bytes());
    }

    fn add_blob(&mut self, blob: &Blob, file_mode: bool) {
        self.add_id(&blob.oid, blob.is_link(), file_mode && blob.executable());
    }

    fn add_state(&mut self, state: &PathState, file_mode: bool) {
        match state {
            PathState::Gone => self.bytes.push(b'-'),
            PathState::File { bytes: Bytes::Read { blobs, .. }, .. } => {
                let id = blobs.first().map_or("", String::as_str);
                self.add_id(id, false, file_mode && state.executable());
            }
            PathState::File { bytes: Bytes::Unread, at } => {
                self.bytes.push(b'u');
                self.add_identity(at);
            }
            PathState::Link { blob, .. } => self.add_id(blob, true, false),
            PathState::Other(kind) => {
                self.bytes.push(b'o');
                self.bytes.extend_from_slice(&kind.to_le_bytes());
            }
        }
    }

    fn add_id(&mut self, id: &str, link: bool, executable: bool) {
        self.bytes.push(match (link, executable) {
            (true, _) => b'l',
            (false, true) => b'x',
            (false, false) => b'f',
        });
        self.bytes.extend_from_slice(id.as_bytes());
    }

    fn add_identity(&mut self, at: &Identity) {
        self.bytes.extend_from_slice(&at.size.to_le_bytes());
        for part in [at.modified.0, at.modified.1, at.changed.0, at.changed.1] {
            self.bytes.extend_from_slice(&part.to_le_bytes());
        }
    }

    fn finish(mut self) -> String {
        self.hash.update(&self.bytes);
        hex::encode(&self.hash.finalize().as_bytes()[..16])
    }
}
