//! The differences between a commit and the work tree, as a patch. Both sides are put into a
//! repository of our own, and git compares them there.

use super::base::{BaseFile, BaseRepo};
use super::blob::{Blob, Conversion, lfs_pointer, with_lf};
use super::differences::{Difference, Differences, MovedSubmodule, NewSide};
use super::entry::PathState;
use super::objects::create_empty_repository;
use super::repo_path::RepoPath;
use super::store::MAX_STORED_FILE;
use super::{Snapshot, Snapshotter};
use crate::git::{GitCommand, GitError, quote_path};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The settings of the repository in which the sides are compared: file names are plain bytes.
const SETTINGS: [&str; 4] = [
    "core.quotePath=false",
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "diff.suppressBlankEmpty=false",
];
/// The command that compares the two sides.
const DIFF: [&str; 13] = [
    "diff-tree",
    "-r",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames",
    "-l1000",
    "-O/dev/null",
    "--diff-algorithm=default",
    "--indent-heuristic",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];
/// The commits of the two sides, and of the attributes.
const OLD: &str = "refs/heads/old";
const NEW: &str = "refs/heads/new";
pub(super) const ATTRIBUTES: &str = "refs/heads/attributes";
/// The exit code of git for an option that it does not know.
const USAGE_ERROR: i32 = 129;

/// Why the work tree cannot be compared with a commit.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// There was no repository, or none that git could read, when the folder was first looked at.
    #[error("{} cannot be compared with a commit: {why}", folder.display())]
    NoRepository {
        /// The folder.
        folder: PathBuf,
        /// What git said.
        why: String,
    },
    /// The work tree was not observed completely.
    #[error("not all files can be compared: {0}")]
    Incomplete(String),
    /// The content of a file cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file, relative to the folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The commit cannot be read.
    #[error("the commit {commit} cannot be read: {reason}")]
    Commit {
        /// The commit.
        commit: String,
        /// Why not.
        reason: io::Error,
    },
    /// Git failed.
    #[error("{0}")]
    Git(#[from] GitError),
    /// The repository for the comparison cannot be created.
    #[error("the files cannot be compared: {0}")]
    Io(#[from] io::Error),
}

/// A patch, as git writes it.
#[derive(Debug)]
pub struct Patch {
    /// The changed files, as `git diff --raw -z` lists them.
    pub raw: Vec<u8>,
    /// The changed lines.
    pub text: Vec<u8>,
}

impl Snapshotter {
    /// Writes some of the differences as a patch of at most so many bytes. A submodule that moved is
    /// part of it unless its files are.
    ///
    /// # Errors
    ///
    /// A file cannot be read any more, git fails, or the patch is larger.
    pub fn patch<'d>(
        &self,
        differences: &Differences,
        files: impl IntoIterator<Item = &'d Difference>,
        now: &Snapshot,
        max_bytes: u64,
    ) -> Result<Patch, PatchError> {
        let files: Vec<&Difference> = files.into_iter().collect();
        let is_shown_by_files = |submodule: &&MovedSubmodule| {
            files.iter().any(|file| file.path.starts_with(&submodule.path))
        };
        let moved = differences.submodules.iter().filter(|submodule| !is_shown_by_files(submodule));
        let moved: Vec<&MovedSubmodule> = moved.collect();
        let contents = self.blobs(differences, &files, now);
        let mut import = Import::default();
        import.attributes(&self.attributes(now));
        import.commit(OLD);
        for file in &files {
            if let Some(old) = &file.old {
                import.file(mode_of(old), &file.name, content_of(&contents, old, file)?);
            }
        }
        for submodule in &moved {
            import.submodule(&submodule.name, &submodule.old);
        }
        import.commit(NEW);
        for file in &files {
            match &file.new {
                None => {}
                Some(NewSide::Clean(blob)) => {
                    import.file(mode_of(blob), &file.name, content_of(&contents, blob, file)?);
                }
                Some(NewSide::Observed(state)) => {
                    let (mode, content) = self.observed(file, state, now)?;
                    import.file(mode, &file.name, &content);
                }
            }
        }
        for submodule in &moved {
            if let Some(new) = &submodule.new {
                import.submodule(&submodule.name, new);
            }
        }
        let repo = self.import(import, now)?;
        let compare = |form: &[&str]| {
            let run = |first: &[&str]| {
                let all: Vec<&str> = first.iter().chain(&DIFF).chain(form).copied().collect();
                let mut call = self.patch_command(repo.path(), &all).max_output(max_bytes);
                if self.here != RepoPath::top() {
                    let mut relative = OsString::from("--relative=");
                    relative.push(self.here.path());
                    relative.push("/");
                    call = call.arg(relative);
                }
                call.arg(OLD).arg(NEW).output()
            };
            let mut output = run(&[&format!("--attr-source={ATTRIBUTES}")])?;
            if output.code() == Some(USAGE_ERROR) {
                // An older git does not know the option.
                output = run(&[])?;
            }
            if output.ok() {
                return Ok(output.stdout);
            }
            let (command, message) = ("diff-tree".to_owned(), output.stderr);
            Err(PatchError::Git(GitError::Failed { command, message }))
        };
        Ok(Patch {
            raw: compare(&["--raw", "-z", "--no-abbrev"])?,
            text: compare(&["--patch", "--unified=3", "--inter-hunk-context=0"])?,
        })
    }

    /// Puts commits into a new repository.
    pub(super) fn import(&self, import: Import, now: &Snapshot) -> Result<TempDir, PatchError> {
        let repo = tempfile::Builder::new().prefix("counterfoil-patch-").tempdir()?;
        let format = now.data.base.rules(&RepoPath::top(), self.capabilities()).format;
        create_empty_repository(repo.path(), format)?;
        self.patch_command(repo.path(), &["fast-import", "--quiet", "--done", "--date-format=raw"])
            .stdin(import.finish())
            .run()?;
        Ok(repo)
    }

    fn patch_command(&self, repo: &Path, arguments: &[&str]) -> GitCommand {
        SETTINGS.into_iter().fold(self.git.isolated(repo, arguments), GitCommand::config)
    }

    /// The attributes as git knew them at the first look.
    pub(super) fn attributes(&self, now: &Snapshot) -> Vec<(RepoPath, Vec<u8>)> {
        let base = &now.data.base;
        let files = base.files().iter().filter(|file| file.name.is_named(".gitattributes"));
        let read = |file: &BaseFile| {
            let repo = base.repo_of(&file.name).filter(|_| !file.blob.is_link())?;
            let text = self.objects.read(&self.git, repo, "blob", &file.blob.oid).ok()?;
            Some((file.name.clone(), text))
        };
        files.filter_map(read).collect()
    }

    /// The contents of all blobs of both sides.
    fn blobs(
        &self,
        differences: &Differences,
        files: &[&Difference],
        now: &Snapshot,
    ) -> HashMap<String, Vec<u8>> {
        let mut oids: BTreeMap<&Path, (&BaseRepo, BTreeSet<&str>)> = BTreeMap::new();
        for file in files {
            if let (Some(old), Some(repo)) = (&file.old, differences.base.repo_of(&file.name)) {
                oids.entry(&repo.objects).or_insert((repo, BTreeSet::new())).1.insert(&old.oid);
            }
            if let (Some(NewSide::Clean(blob)), Some(repo)) =
                (&file.new, now.data.base.repo_of(&file.name))
            {
                oids.entry(&repo.objects).or_insert((repo, BTreeSet::new())).1.insert(&blob.oid);
            }
        }
        let mut contents = HashMap::new();
        for (repo, oids) in oids.values() {
            let oids: Vec<&str> = oids.iter().copied().collect();
            contents.extend(self.objects.read_blobs(&self.git, repo, &oids));
        }
        contents
    }

    /// The mode and content of a file in the work tree, as git would commit it.
    fn observed(
        &self,
        file: &Difference,
        state: &PathState,
        now: &Snapshot,
    ) -> Result<(&'static str, Vec<u8>), PatchError> {
        let rules = now.data.base.rules(&file.name, self.capabilities());
        let mode = match (state, &file.old) {
            (PathState::Link { .. }, _) => "120000",
            (_, Some(old)) if !rules.file_mode => mode_of(old),
            _ if state.executable() => "100755",
            _ => "100644",
        };
        let size = state.at().map_or(0, |at| at.size);
        if size > MAX_STORED_FILE && mode != "120000" {
            // It is shown as a binary file.
            return Ok((mode, format!("\0{size} bytes").into_bytes()));
        }
        let path = file.path.clone();
        let content = self
            .bytes_of(&file.name, state, now.data.base.repo_of(&file.name))
            .map_err(|error| PatchError::Unreadable { path, reason: error.to_string() })?;
        let content = match file.conversion {
            _ if mode == "120000" => content,
            Conversion::Text { .. } => with_lf(&content).unwrap_or(content),
            Conversion::Lfs => lfs_pointer(&content),
            Conversion::None | Conversion::Filter => content,
        };
        Ok((mode, content))
    }
}

/// The content of a blob of a file.
fn content_of<'c>(
    contents: &'c HashMap<String, Vec<u8>>,
    blob: &Blob,
    file: &Difference,
) -> Result<&'c [u8], PatchError> {
    let missing = || PatchError::Unreadable {
        path: file.path.clone(),
        reason: format!("git cannot read its blob {}", blob.oid),
    };
    contents.get(&blob.oid).map(Vec::as_slice).ok_or_else(missing)
}

fn mode_of(blob: &Blob) -> &'static str {
    match (blob.is_link(), blob.executable()) {
        (true, _) => "120000",
        (false, true) => "100755",
        (false, false) => "100644",
    }
}

/// Commits as `git fast-import` reads them.
#[derive(Default)]
pub(super) struct Import {
    stream: Vec<u8>,
}

impl Import {
    /// A commit with nothing but attributes.
    pub(super) fn attributes(&mut self, files: &[(RepoPath, Vec<u8>)]) {
        self.commit(ATTRIBUTES);
        for (name, text) in files {
            self.file("100644", name, text);
        }
    }

    fn commit(&mut self, name: &str) {
        let who = "committer counterfoil <counterfoil@localhost> 0 +0000";
        self.stream.extend_from_slice(format!("commit {name}\n{who}\ndata 0\n\n").as_bytes());
    }

    fn file(&mut self, mode: &str, name: &RepoPath, content: &[u8]) {
        self.entry(mode, "inline", name);
        self.stream.extend_from_slice(format!("data {}\n", content.len()).as_bytes());
        self.stream.extend_from_slice(content);
        self.stream.push(b'\n');
    }

    fn submodule(&mut self, name: &RepoPath, commit: &str) {
        self.entry("160000", commit, name);
    }

    fn entry(&mut self, mode: &str, content: &str, name: &RepoPath) {
        self.stream.extend_from_slice(format!("M {mode} {content} ").as_bytes());
        self.stream.extend_from_slice(&quote_path(name.bytes()));
        self.stream.push(b'\n');
    }

    fn finish(mut self) -> Vec<u8> {
        self.stream.extend_from_slice(b"done\n");
        self.stream
    }
}
