//! The metadata of a workspace on disk, written atomically.

use super::{Error, at};
use crate::{Durability, atomic_write_with, make_private_folder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The version of the file formats.
pub(super) const VERSION: u32 = 1;

/// The metadata of a workspace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) version: u32,
    pub(super) run: String,
    pub(super) id: String,
    pub(super) stage: Stage,
    /// The folder that was copied: the top of the repository, or the folder itself outside of one.
    pub(super) top: EncodedPath,
    /// The folder of the workspace, relative to the top.
    pub(super) prefix: EncodedPath,
    /// The repository that the worktree belongs to. `None` for a plain copy.
    pub(super) repository: Option<EncodedPath>,
    /// The commit that was checked out when it was opened.
    pub(super) head: Option<String>,
    /// Whether git was available to store the base and to determine ignored files.
    pub(super) git: bool,
    /// How its files are listed.
    pub(super) listing: Listing,
    /// The excludes file that the repository is configured with.
    pub(super) excludes: Option<EncodedPath>,
    /// Paths below the top that are not part of the work: our own state and artifacts.
    pub(super) without: Vec<EncodedPath>,
    /// When the base was complete, by the clock of the file system.
    pub(super) sealed: i64,
    pub(super) notes: Vec<String>,
}

/// How the files of a workspace are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Listing {
    /// With git.
    Git,
    /// By walking the folder and honouring `.gitignore`.
    Walk,
}

/// The stage of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stage {
    /// It is being created. No work has been done in it.
    Opening,
    /// It is open for work.
    Open,
    /// It is being merged back with the plan of this name.
    #[serde(rename = "folding")]
    Merging(String),
    /// Merging it back has ended, with or without conflicts.
    #[serde(rename = "folded")]
    Merged(super::MergeOutcome),
    /// It was discarded. Its work is saved at this path, if there was any.
    Discarded(Option<String>),
}

/// The content of a file or symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) kind: Kind,
    /// SHA-256 of the bytes, or of the link's target.
    pub(super) hash: String,
    pub(super) size: u64,
    /// The permission bits.
    pub(super) mode: u32,
}

impl Content {
    /// Whether both are the same for git, which ignores all permissions except the executable bit.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && self.hash == other.hash
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    File,
    /// An executable file.
    Program,
    Link,
}

impl Kind {
    /// The mode as git writes it.
    pub(super) fn mode(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Program => "100755",
            Self::Link => "120000",
        }
    }
}

/// A file of the base.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BaseFile {
    pub(super) path: EncodedPath,
    pub(super) content: Content,
    /// The git object with the bytes, if git stores them.
    pub(super) blob: Option<String>,
    pub(super) stamp: Stamp,
}

/// Inode, size, times and mode: a file with the same stamp is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp(
    pub(super) u64,
    pub(super) u64,
    pub(super) i64,
    pub(super) i64,
    pub(super) u32,
);

impl Stamp {
    pub(super) fn from_metadata(meta: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(
            meta.ino(),
            meta.len(),
            nanos(meta.mtime(), meta.mtime_nsec()),
            changed_at(meta),
            meta.mode(),
        )
    }

    /// The change time in nanoseconds.
    pub(super) fn changed_at(self) -> i64 {
        self.3
    }
}

/// The change time of a file in nanoseconds.
pub(super) fn changed_at(meta: &std::fs::Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    nanos(meta.ctime(), meta.ctime_nsec())
}

fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// A path in JSON. Bytes that are not UTF-8 are written as `%XX`, and so is `%`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct EncodedPath(pub(super) PathBuf);

impl EncodedPath {
    fn encode(&self) -> String {
        let mut text = String::with_capacity(self.0.as_os_str().len());
        for chunk in self.0.as_os_str().as_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                if character == '%' { text.push_str("%25") } else { text.push(character) }
            }
            for byte in chunk.invalid() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
        text
    }

    fn decode(text: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((first, tail)) = rest.split_first() {
            rest = tail;
            if *first == b'%' {
                let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &tail[2..];
            } else {
                bytes.push(*first);
            }
        }
        Some(Self(PathBuf::from(OsString::from_vec(bytes))))
    }
}

impl Serialize for EncodedPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encode())
    }
}

impl<'de> Deserialize<'de> for EncodedPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::decode(&text).ok_or_else(|| serde::de::Error::custom("not a valid encoded path"))
    }
}

/// Writes a file atomically and syncs it and its folder to disk.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_private_folder(folder).map_err(at("create", folder))?;
    let write = |file: &mut File| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer(&mut file, value)?;
        file.write_all(b"\n")?;
        file.flush()
    };
    atomic_write_with(path, Durability::Synced, write)
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(at("write", path))
}

/// Reads a file that [`write`] wrote. `None` if it does not exist.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(at("read", path)(error)),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Error::Damaged { path: path.to_owned(), why: error.to_string() })
}

/// Whether an error means that the file does not exist.
pub(super) fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_path_comes_back_from_json(bytes: Vec<u8>) {
            let path = EncodedPath(PathBuf::from(OsString::from_vec(bytes)));
            let text = serde_json::to_string(&path).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<EncodedPath>(&text).unwrap(), path);
        }
    }

    #[test]
    fn a_path_that_was_cut_is_refused() {
        for text in ["%", "a%4", "%zz", "%é"] {
            assert!(EncodedPath::decode(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_damaged_record_names_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("workspace.json");
        std::fs::write(&path, "{\"version\":").unwrap();
        let error = read::<Record>(&path).unwrap_err().to_string();
        assert!(error.contains("workspace.json"), "{error}");
        assert!(read::<Record>(&folder.path().join("none.json")).unwrap().is_none());
    }
}
