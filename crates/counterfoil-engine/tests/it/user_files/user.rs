//! A user's repository, in which the user works between runs.

use crate::dice::Dice;
use crate::user_files::actor::{Hands, file};
use crate::user_files::content::{Contents, contents, names};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kind of folder in which a run works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A repository.
    Repository,
    /// A folder of a repository.
    Below,
    /// A repository without a commit.
    Unborn,
    /// A folder, and no git.
    FsFiles,
}

/// A user with a repository, other files and a state folder.
pub(crate) struct User {
    _home: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) top: PathBuf,
    pub(crate) repo: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) kind: Kind,
}

/// Everything of the user's that runs must not change.
pub(crate) struct Belongings {
    pub(crate) files: Contents,
    /// The index, refs, logs, hooks and settings.
    pub(crate) git: Contents,
    /// The names of objects.
    pub(crate) objects: BTreeSet<PathBuf>,
    pub(crate) outside: Contents,
}

impl User {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let home = tempfile::tempdir_in(room()).unwrap();
        let path = home.path().canonicalize().unwrap();
        let kind = dice.weigh(&[
            (7, Kind::Repository),
            (1, Kind::Below),
            (1, Kind::Unborn),
            (1, Kind::FsFiles),
        ]);
        let top = path.join("top");
        let repo = if kind == Kind::Below { top.join("web") } else { top.clone() };
        let state = if dice.percent(50) { repo.join(".counterfoil") } else { path.join("state") };
        std::fs::create_dir_all(&repo).unwrap();
        let user = Self { _home: home, home: path, top, repo, state, kind };
        let mut hands = Hands::new(&user.home, &user.home);
        hands.put(Path::new("outside/precious.txt"), &file(b"precious\n"));
        hands.put(Path::new("above.txt"), &file(b"above\n"));
        let mut hands = Hands::new(&user.repo, &user.top);
        let lines = (1..=9).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        for (name, text) in [
            ("shared.txt", lines.as_str()),
            ("a.txt", "a\n"),
            ("src/lib.rs", "fn lib() {}\n"),
            ("src/deep/b.rs", "fn b() {}\n"),
            ("tests/it.rs", "#[test]\nfn it() {\n    assert_eq!(lib(), ());\n}\n"),
            ("AGENTS.md", "Be careful.\n"),
            (".github/ci.yml", "on: push\n"),
            ("guarded/key.txt", "key\n"),
            ("mine.log", "ignored\n"),
            ("build/out.bin", "\0ignored\n"),
        ] {
            hands.put(Path::new(name), &file(text.as_bytes()));
        }
        if kind != Kind::FsFiles {
            hands.put(Path::new(".gitignore"), &file(b"*.log\nbuild/\n"));
            user.git(&["init", "-q", "-b", "main", "--template="]);
            user.git(&["config", "core.excludesFile", "/dev/null"]);
            user.git(&["add", "-A", "--", ":!*.counterfoil"]);
            if kind != Kind::Unborn {
                user.git(&["commit", "-q", "-m", "base"]);
            }
            let trace = user.home.join("outside/hook-ran");
            for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
                let hook = Path::new(".git/hooks").join(hook);
                let text = format!("#!/bin/sh\necho ran >> '{}'\n", trace.display());
                let script = crate::user_files::content::Content::File {
                    bytes: text.into_bytes(),
                    mode: 0o755,
                };
                Hands::new(&user.top, &user.top).put(&hook, &script);
            }
        }
        user
    }

    /// The user works: changes files, and sometimes uses git.
    pub(crate) fn work(&self, dice: &mut Dice, n: u64) {
        let mut hands = Hands::new(&self.repo, &self.top);
        for action in 0..dice.below(4) {
            hands.do_something(dice, &format!("by the user, {n}.{action}\n"));
        }
        if self.kind == Kind::FsFiles || dice.percent(50) {
            return;
        }
        let name = format!("name-{n}");
        match dice.below(if self.kind == Kind::Unborn { 2 } else { 10 }) {
            0 | 1 => self.git(&["add", "-A", "--", ":!*.counterfoil"]),
            2 => self.git(&["commit", "-q", "--allow-empty", "-a", "-m", "more"]),
            3 => self.git(&["stash", "-q"]),
            4 => self.git(&["branch", &name]),
            5 => self.git(&["tag", "-m", "a tag", &name]),
            6 => self.git(&["switch", "-q", "-c", &name]),
            7 => self.git(&["pack-refs", "--all"]),
            8 => self.git(&["rm", "-q", "--cached", "--ignore-unmatch", "a.txt"]),
            _ => self.git(&["switch", "-q", "--detach"]),
        }
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        git(&self.top, arguments);
    }

    pub(crate) fn belongings(&self) -> Belongings {
        Belongings {
            files: contents(&self.top, &[".git", ".counterfoil", "web/.counterfoil"]),
            git: contents(&self.top.join(".git"), &["objects"]),
            objects: names(&self.top.join(".git/objects")),
            outside: contents(&self.home, &["top", "state"]),
        }
    }

    /// Whether git ignores a path from the top.
    pub(crate) fn ignores(&self, path: &Path) -> bool {
        self.kind != Kind::FsFiles
            && (path.extension().is_some_and(|ending| ending == "log")
                || path.iter().any(|part| part == "build")
                || path
                    .iter()
                    .any(|part| Path::new(part).extension().is_some_and(|ending| ending == "log")))
    }
}

/// A temporary folder in memory if there is one with enough space, since disk access dominates the
/// time of the test.
fn room() -> PathBuf {
    const MEMORY: &str = "/dev/shm";
    let most = rustix::fs::statvfs(MEMORY)
        .map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
    if most > 256 << 20
        && std::env::var_os("TMPDIR").is_none()
        && tempfile::tempdir_in(MEMORY).is_ok()
    {
        MEMORY.into()
    } else {
        std::env::temp_dir()
    }
}

/// Runs git without the configuration of the current user and without hooks. It may fail.
pub(crate) fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .args(["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"])
        .args(arguments)
        .current_dir(folder);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("LC_ALL", "C");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Ann")
            .env(format!("GIT_{who}_EMAIL"), "ann@example.com");
    }
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.expect("git is there");
}
