//! The ids that git gives to contents, computed in this process: no git command runs, so no filter
//! of the repository does.

use serde::{Deserialize, Serialize};
use sha1_checked::Sha1;
use sha2::{Digest, Sha256};
use std::io;

/// The mode of a submodule in a tree or an index.
const SUBMODULE_MODE: u32 = 0o160_000;
const LINK_MODE: u32 = 0o120_000;
const TYPE_BITS: u32 = 0o170_000;

/// The hash function of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// The name that git gives it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// The format with a name of git.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Sha1, Self::Sha256].into_iter().find(|format| format.name() == name)
    }
}

/// Computes the id of an object whose size is known while its content is read.
pub(super) enum ObjectHasher {
    // It detects contents that were made to have the id of another.
    Sha1(Box<Sha1>),
    Sha256(Sha256),
}

impl ObjectHasher {
    /// The id of an object of a kind, such as `blob`, with a size.
    pub(super) fn new(format: ObjectFormat, kind: &str, size: u64) -> Self {
        let mut hasher = match format {
            ObjectFormat::Sha1 => Self::Sha1(Box::new(Sha1::new())),
            ObjectFormat::Sha256 => Self::Sha256(Sha256::new()),
        };
        hasher.update(format!("{kind} {size}\0").as_bytes());
        hasher
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hash) => sha1_checked::Digest::update(&mut **hash, bytes),
            Self::Sha256(hash) => hash.update(bytes),
        }
    }

    pub(super) fn finish(self) -> String {
        match self {
            Self::Sha1(hash) => hex::encode(sha1_checked::Digest::finalize(*hash)),
            Self::Sha256(hash) => hex::encode(hash.finalize()),
        }
    }
}

impl io::Write for ObjectHasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The id of an object.
pub(super) fn object_id(format: ObjectFormat, kind: &str, content: &[u8]) -> String {
    let mut hasher = ObjectHasher::new(format, kind, content.len() as u64);
    hasher.update(content);
    hasher.finish()
}

/// A file or link in an index or a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Blob {
    pub(super) mode: u32,
    pub(super) oid: String,
}

impl Blob {
    /// A file or link. `None` for an absent path and for a submodule, whose files are in its own
    /// repository.
    pub(super) fn new(mode: u32, oid: String) -> Option<Self> {
        (mode != 0 && mode != SUBMODULE_MODE).then_some(Self { mode, oid })
    }

    /// Whether it is executable.
    pub(super) fn executable(&self) -> bool {
        !self.is_link() && self.mode & 0o111 != 0
    }

    /// Whether it is a symbolic link.
    pub(super) fn is_link(&self) -> bool {
        self.mode & TYPE_BITS == LINK_MODE
    }

    /// Whether both have the same content. Modes are compared only where they are meaningful.
    pub(super) fn same(&self, other: &Self, file_mode: bool) -> bool {
        self.oid == other.oid
            && self.is_link() == other.is_link()
            && (!file_mode || self.executable() == other.executable())
    }
}

/// How git converts a file between its blob and the work tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Conversion {
    /// It does not.
    #[default]
    None,
    /// Its lines end in LF in the blob. In the work tree they may end in CRLF.
    Text {
        /// They end in CRLF when the file is checked out.
        crlf: bool,
    },
    /// The blob is a pointer of Git LFS.
    Lfs,
    /// Only a program of the user converts it. Such a file is read at the start.
    Filter,
}

/// The ids of the blobs that a file can be: of its bytes, and of the same lines with LF at their end
/// if some end in CRLF.
pub(super) fn blob_ids(format: ObjectFormat, content: &[u8]) -> Vec<String> {
    let mut ids = vec![object_id(format, "blob", content)];
    ids.extend(with_lf(content).map(|lines| object_id(format, "blob", &lines)));
    ids
}

/// The text with LF instead of CRLF. `None` if there is no CRLF.
pub(super) fn with_lf(text: &[u8]) -> Option<Vec<u8>> {
    let is_crlf = |at: usize| text[at] == b'\r' && text.get(at + 1) == Some(&b'\n');
    let any = (0..text.len()).any(is_crlf);
    any.then(|| (0..text.len()).filter(|at| !is_crlf(*at)).map(|at| text[at]).collect())
}

/// The text of a blob as it is checked out with CRLF. A text that has CR or zero bytes is left as
/// it is, as git does.
pub(super) fn with_crlf(text: Vec<u8>) -> Vec<u8> {
    if text.iter().any(|byte| matches!(byte, b'\r' | 0)) {
        return text;
    }
    let mut lines = Vec::with_capacity(text.len() + text.len() / 16);
    for byte in text {
        if byte == b'\n' {
            lines.push(b'\r');
        }
        lines.push(byte);
    }
    lines
}

/// The blob of the pointer that Git LFS commits for a file.
pub(super) fn lfs_pointer_id(format: ObjectFormat, sha256: &[u8; 32], size: u64) -> String {
    object_id(format, "blob", pointer(sha256, size).as_bytes())
}

/// The pointer that Git LFS commits for a content.
pub(super) fn lfs_pointer(content: &[u8]) -> Vec<u8> {
    pointer(&Sha256::digest(content).into(), content.len() as u64).into_bytes()
}

fn pointer(sha256: &[u8; 32], size: u64) -> String {
    let hash = hex::encode(sha256);
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{hash}\nsize {size}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        assert_eq!(object_id(ObjectFormat::Sha1, "blob", b""), empty);
        let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        assert_eq!(object_id(ObjectFormat::Sha1, "tree", b""), tree);
        let tree = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
        assert_eq!(object_id(ObjectFormat::Sha256, "tree", b""), tree);
    }

    #[test]
    fn lines_are_normalized_as_git_does() {
        assert_eq!(with_lf(b"a\r\nb\rc\n"), Some(b"a\nb\rc\n".to_vec()));
        assert_eq!(with_lf(b"a\nb\r"), None);
        assert_eq!(with_crlf(b"a\nb".to_vec()), b"a\r\nb");
        assert_eq!(with_crlf(b"a\r\nb\n".to_vec()), b"a\r\nb\n");
        assert_eq!(with_crlf(b"\0\n".to_vec()), b"\0\n");
    }
}
