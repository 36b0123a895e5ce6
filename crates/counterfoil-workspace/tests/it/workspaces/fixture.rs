//! A test repository, and the state of everything that must not change.

use counterfoil_workspace::workspaces::{MergeOutcome, Workspaces};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const RUN: &str = "01J";

/// Files by path, with mode and bytes. Includes empty folders.
pub(crate) type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

pub(crate) struct TestRepo {
    _folder: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) repo: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) workspaces: Workspaces,
}

impl TestRepo {
    /// A folder, and no repository.
    pub(crate) fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let repo = home.join("repo");
        std::fs::create_dir(&repo).unwrap();
        let state = repo.join(".counterfoil");
        let workspaces = Workspaces::new(&state, &repo);
        Self { _folder: folder, home, repo, state, workspaces }
    }

    /// A repository without a commit.
    pub(crate) fn unborn() -> Self {
        let fixture = Self::bare();
        fixture.git(&["init", "-q", "-b", "main"]);
        fixture.git(&["config", "core.excludesFile", "/dev/null"]);
        fixture
    }

    /// A repository with these files committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let fixture = Self::unborn();
        for (path, text) in files {
            fixture.write(path, text);
        }
        fixture.commit();
        fixture
    }

    /// A copy of the repository, made without git.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::bare();
        for file in all_files(&self.repo) {
            let to = copy.repo.join(file.strip_prefix(&self.repo).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(&file, to).unwrap();
        }
        std::fs::create_dir_all(copy.repo.join(".git/refs/tags")).unwrap();
        copy
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A", "--", ".", ":!.counterfoil"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.repo, arguments)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        write(&self.repo.join(path), text);
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.repo.join(path)).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.repo.join(path)).unwrap()
    }

    /// Opens a workspace.
    pub(crate) fn open(&self, id: &str) -> PathBuf {
        self.workspaces.open(RUN, id, &BTreeSet::new()).unwrap().folder
    }

    pub(crate) fn merge(&self, id: &str) -> MergeOutcome {
        self.workspaces.merge_back(RUN, id).unwrap()
    }

    /// The user's files.
    pub(crate) fn tree(&self) -> Tree {
        tree(&self.repo)
    }

    /// Everything of the user's that git keeps.
    pub(crate) fn kept(&self) -> BTreeMap<String, String> {
        let files =
            ["index", "HEAD", "config", "packed-refs", "logs/HEAD", "ORIG_HEAD", "info/exclude"];
        let mut kept: BTreeMap<_, _> = files
            .iter()
            .map(|name| {
                let bytes = std::fs::read(self.repo.join(".git").join(name)).ok();
                ((*name).to_owned(), format!("{bytes:?}"))
            })
            .collect();
        let ask = |arguments: &[&str]| {
            let output = command(&self.repo, arguments).output().unwrap();
            format!("{:?} {}", output.status.code(), String::from_utf8_lossy(&output.stdout))
        };
        kept.insert("refs".to_owned(), ask(&["for-each-ref"]));
        kept.insert("stash".to_owned(), ask(&["stash", "list"]));
        kept.insert("worktrees".to_owned(), ask(&["worktree", "list", "--porcelain"]));
        kept.insert("objects".to_owned(), ask(&["count-objects", "-v"]));
        kept.insert("entries".to_owned(), self.repo.join(".git/worktrees").exists().to_string());
        kept
    }

    /// Nothing of a workspace is left but what is meant to stay.
    pub(crate) fn assert_gone(&self, id: &str) {
        assert!(!self.workspaces.path(RUN, id).exists());
        assert!(!self.repo.join(".git/worktrees").exists());
        let bases = self.state.join("bases");
        let left: Vec<_> = all_files(&bases)
            .into_iter()
            .filter(|path| !path.ends_with("workspace.json"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The files below a folder, whatever they are.
pub(crate) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut open = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files
}

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Ann")
            .env(format!("GIT_{who}_EMAIL"), "ann@example.com");
    }
    command
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, arguments).output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What stands in a folder, without git's and our own files.
pub(crate) fn tree(folder: &Path) -> Tree {
    let mut open = vec![PathBuf::new()];
    let mut tree = Tree::new();
    while let Some(inside) = open.pop() {
        let mut is_empty = true;
        for entry in std::fs::read_dir(folder.join(&inside)).unwrap() {
            let entry = entry.unwrap();
            is_empty = false;
            if inside.as_os_str().is_empty()
                && [".git", ".counterfoil"].contains(&&*entry.file_name().to_string_lossy())
            {
                continue;
            }
            let path = inside.join(entry.file_name());
            let meta = std::fs::symlink_metadata(entry.path()).unwrap();
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_symlink() {
                let aim =
                    std::fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes();
                tree.insert(path, (0o120_000, aim));
            } else if meta.is_file() {
                tree.insert(path, (meta.mode(), std::fs::read(entry.path()).unwrap()));
            }
        }
        if is_empty {
            tree.insert(inside.join("(empty)"), (0, Vec::new()));
        }
    }
    tree
}
