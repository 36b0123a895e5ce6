//! A user's repository, in which they go on working between runs.

use crate::simulation::dice::Dice;
use crate::untouched::actor::{Hands, file};
use crate::untouched::things::{Things, names, things};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A repository.
    Repository,
    /// A folder of a repository.
    Below,
    /// A repository without a commit.
    Unborn,
    /// A folder, and no git.
    Folder,
}

/// A user with a repository, things beside it, and a state folder of ours.
pub(crate) struct User {
    _home: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) top: PathBuf,
    pub(crate) repo: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) kind: Kind,
}

/// What is the user's.
pub(crate) struct Belongings {
    pub(crate) files: Things,
    /// The index, refs, logs, hooks and settings.
    pub(crate) git: Things,
    /// The names of objects.
    pub(crate) objects: BTreeSet<PathBuf>,
    pub(crate) outside: Things,
}

impl User {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let home = tempfile::tempdir_in(room()).unwrap();
        let path = home.path().canonicalize().unwrap();
        let kind = dice.weigh(&[
            (7, Kind::Repository),
            (1, Kind::Below),
            (1, Kind::Unborn),
            (1, Kind::Folder),
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
        if kind != Kind::Folder {
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
                let script =
                    crate::untouched::things::Thing::File { bytes: text.into_bytes(), mode: 0o755 };
                Hands::new(&user.top, &user.top).put(&hook, &script);
            }
        }
        user
    }

    /// Goes on working: files, and now and then git.
    pub(crate) fn work(&self, dice: &mut Dice, n: u64) {
        let mut hands = Hands::new(&self.repo, &self.top);
        for deed in 0..dice.below(4) {
            hands.do_something(dice, &format!("by the user, {n}.{deed}\n"));
        }
        if self.kind == Kind::Folder || dice.percent(50) {
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
            files: things(&self.top, &[".git", ".counterfoil", "web/.counterfoil"]),
            git: things(&self.top.join(".git"), &["objects"]),
            objects: names(&self.top.join(".git/objects")),
            outside: things(&self.home, &["top", "state"]),
        }
    }

    /// Whether git ignores a path from the top.
    pub(crate) fn ignores(&self, path: &Path) -> bool {
        self.kind != Kind::Folder
            && (path.extension().is_some_and(|ending| ending == "log")
                || path.iter().any(|part| part == "build")
                || path
                    .iter()
                    .any(|part| Path::new(part).extension().is_some_and(|ending| ending == "log")))
    }
}

/// A folder in memory, where there is one with room, since a disk takes most of the time of so many
/// runs; else the usual one.
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

/// Git, with nothing of whoever runs the tests, and without hooks. It may refuse.
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
