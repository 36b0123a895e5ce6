//! Reads the objects of a repository without its configuration, and checks their ids: neither a
//! setting nor an object that was replaced can change what is read.

use super::base::BaseRepo;
use super::blob::{Blob, ObjectFormat, object_id};
use super::git::Git;
use super::parse::{self, TreeEntry};
use super::repo_path::RepoPath;
use crate::git::GitCommand;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// The size of an object that is kept, and of all that are kept together.
const MAX_KEPT: usize = 64 << 10;
const MAX_KEPT_IN_ALL: usize = 4 << 20;

/// Reads objects with a git folder of its own.
#[derive(Debug, Default)]
pub(super) struct ObjectReader {
    folders: Mutex<BTreeMap<&'static str, TempDir>>,
    kept: Mutex<KeptObjects>,
}

/// Small objects that were read, by format, kind and id: ignore rules and attributes are read again
/// at every look, and the id of an object is that of its content.
#[derive(Debug, Default)]
struct KeptObjects {
    contents: HashMap<(&'static str, String, String), Vec<u8>>,
    bytes: usize,
}

impl KeptObjects {
    fn keep(&mut self, key: (&'static str, String, String), content: &[u8]) {
        if content.len() > MAX_KEPT {
            return;
        }
        if self.bytes + content.len() > MAX_KEPT_IN_ALL {
            *self = Self::default();
        }
        self.bytes += content.len();
        self.contents.insert(key, content.to_vec());
    }
}

/// The files of a commit, and its submodules with their commits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommitFiles {
    pub(super) files: Vec<(RepoPath, Blob)>,
    pub(super) submodules: Vec<(RepoPath, String)>,
}

impl ObjectReader {
    /// The content of an object of a kind.
    pub(super) fn read(
        &self,
        git: &Git,
        repo: &BaseRepo,
        kind: &str,
        oid: &str,
    ) -> io::Result<Vec<u8>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (repo.format.name(), kind.to_owned(), oid.to_owned());
        if let Some(content) = kept().contents.get(&key) {
            return Ok(content.clone());
        }
        let content = self.run(git, repo, &["cat-file", kind, oid], None)?;
        if object_id(repo.format, kind, &content) == oid {
            kept().keep(key, &content);
            return Ok(content);
        }
        Err(io::Error::other(format!("the {kind} {oid} in the repository is damaged")))
    }

    /// The contents of blobs, by their ids, read at once. Those that cannot be read are left out.
    pub(super) fn read_blobs(
        &self,
        git: &Git,
        repo: &BaseRepo,
        oids: &[&str],
    ) -> HashMap<String, Vec<u8>> {
        let input = oids.iter().flat_map(|oid| [*oid, "\n"]).collect::<String>().into_bytes();
        let mut blobs = HashMap::new();
        let Ok(output) = self.run(git, repo, &["cat-file", "--batch"], Some(input)) else {
            return blobs;
        };
        let mut rest = output.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let [oid, "blob", size] = head.split(' ').collect::<Vec<_>>()[..] else { continue };
            let Some(content) = size.parse().ok().and_then(|size: usize| rest.get(..size)) else {
                break;
            };
            if object_id(repo.format, "blob", content) == oid {
                blobs.insert(oid.to_owned(), content.to_vec());
            }
            rest = rest.get(content.len() + 1..).unwrap_or_default();
        }
        blobs
    }

    /// The files of a commit.
    pub(super) fn files_of(
        &self,
        git: &Git,
        repo: &BaseRepo,
        commit: &str,
    ) -> io::Result<CommitFiles> {
        let text = self.read(git, repo, "commit", commit)?;
        let tree = text.split(|byte| *byte == b'\n').next().and_then(|l| l.strip_prefix(b"tree "));
        let tree = tree.and_then(|tree| std::str::from_utf8(tree).ok()).unwrap_or_default();
        let listed = self.run(git, repo, &["ls-tree", "-r", "-t", "-z", tree], None)?;
        let entries = parse::tree_entries(&listed);
        if root_id(repo.format, &entries).as_deref() != Some(tree) {
            return Err(io::Error::other(format!("the tree of {commit} is damaged")));
        }
        let mut found = CommitFiles::default();
        for TreeEntry { name, mode, oid, kind } in entries {
            match kind {
                parse::TreeKind::File => {
                    found.files.extend(Blob::new(mode, oid).map(|blob| (name, blob)));
                }
                parse::TreeKind::Submodule => found.submodules.push((name, oid)),
                parse::TreeKind::Folder => {}
            }
        }
        Ok(found)
    }

    /// Runs git on the objects of a repository.
    pub(super) fn run(
        &self,
        git: &Git,
        repo: &BaseRepo,
        arguments: &[&str],
        input: Option<Vec<u8>>,
    ) -> io::Result<Vec<u8>> {
        let folder = self.folder(repo.format)?;
        let call = git.isolated(&folder, arguments).env("GIT_OBJECT_DIRECTORY", &repo.objects);
        let call = match input {
            Some(input) => call.stdin(input),
            None => call,
        };
        call.run().map(|output| output.stdout).map_err(io::Error::other)
    }

    /// An empty git folder for a format.
    fn folder(&self, format: ObjectFormat) -> io::Result<std::path::PathBuf> {
        let mut folders = self.folders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(folder) = folders.get(format.name()) {
            return Ok(folder.path().to_owned());
        }
        let folder = tempfile::Builder::new().prefix("counterfoil-objects-").tempdir()?;
        create_empty_repository(folder.path(), format)?;
        let path = folder.path().to_owned();
        folders.insert(format.name(), folder);
        Ok(path)
    }
}

/// Makes an empty folder a repository without a work tree.
pub(super) fn create_empty_repository(folder: &Path, format: ObjectFormat) -> io::Result<()> {
    std::fs::create_dir(folder.join("objects"))?;
    std::fs::create_dir(folder.join("refs"))?;
    std::fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
    let config = format!(
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = {}\n",
        format.name()
    );
    std::fs::write(folder.join("config"), config)
}

/// The id of the tree that has these entries, as `ls-tree -r -t` lists them. `None` if a folder in
/// it is not the one it is said to be.
fn root_id(format: ObjectFormat, entries: &[TreeEntry]) -> Option<String> {
    // The content of each folder whose entries are not complete yet, the innermost last.
    let mut open: Vec<(RepoPath, Option<&str>, Vec<u8>)> =
        vec![(RepoPath::top(), None, Vec::new())];
    let close = |open: &mut Vec<(RepoPath, Option<&str>, Vec<u8>)>| {
        let (_, expected, content) = open.pop()?;
        let id = object_id(format, "tree", &content);
        expected.is_none_or(|expected| expected == id).then_some(id)
    };
    for entry in entries {
        while open.len() > 1 && entry.name.inside(&open.last()?.0).is_none() {
            close(&mut open)?;
        }
        let (folder, _, content) = open.last_mut()?;
        let inner = entry.name.inside(folder)?;
        content.extend(format!("{:o} ", entry.mode).as_bytes());
        content.extend(inner.bytes());
        content.push(0);
        content.extend(hex::decode(&entry.oid).ok()?);
        if entry.kind == parse::TreeKind::Folder {
            open.push((entry.name.clone(), Some(&entry.oid), Vec::new()));
        }
    }
    while open.len() > 1 {
        close(&mut open)?;
    }
    close(&mut open)
}

impl Git {
    /// A command on a git folder of ours: no configuration but our own is read.
    pub(super) fn isolated(&self, git_dir: &Path, arguments: &[&str]) -> GitCommand {
        let call = GitCommand::new(git_dir, arguments).program(&self.program).timeout(self.limit);
        call.env("GIT_DIR", git_dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_COUNT", "0")
    }
}
