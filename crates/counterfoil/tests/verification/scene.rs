//! A repository in which somebody is in the middle of something, a workflow, and agents that
//! misreport. What is the user's is looked at before and after.

pub(crate) use crate::git::git;
use crate::house::{House, Said, carrying};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What the agents hand back: the files they changed, and whether the tests pass.
const CHANGE: &str = "\
contract: acme/change
version: 1
fields: { files: [string], tests_pass?: boolean, note?: string }
claims:
  files: { kind: files-changed }
  tests_pass: { kind: command, check: test }
examples: [{ files: [] }]
";

/// The agent of most workflows here.
pub(crate) const WORKER: &str = "agents: { worker: { contract: acme/change, prompt: prompts/work.md } }\ncontracts: [contracts]\n";

/// A repository with a user's half-done work in it.
pub(crate) struct Scene {
    house: House,
}

impl Deref for Scene {
    type Target = House;

    fn deref(&self) -> &House {
        &self.house
    }
}

impl Scene {
    /// The repository: some commits, a branch, a tag, a stash, hooks; staged, unstaged, untracked
    /// and ignored files.
    pub(crate) fn new() -> Self {
        let scene = Self { house: House::new() };
        scene.git(&["init", "-q", "-b", "main"]);
        for (path, text) in [
            ("contracts/change.yaml", CHANGE),
            (".gitignore", "*.log\nbuild/\n"),
            ("AGENTS.md", "Be careful.\n"),
            ("a.rs", "fn a() {}\n"),
            ("b.rs", "fn b() {}\n"),
            ("src/lib.rs", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"),
            ("mine.txt", "as committed\n"),
            (
                "tests/it.rs",
                "#[test]\nfn one() {\n    assert_eq!(play::add(1, 1), 2);\n}\n\n#[test]\nfn two() {\n    assert_eq!(play::add(1, 1), 2);\n}\n",
            ),
        ] {
            scene.file(path, text);
        }
        scene.git(&["add", "."]);
        scene.git(&["commit", "-q", "-m", "base"]);
        scene.git(&["branch", "other"]);
        scene.file("mine.txt", "stashed\n");
        scene.git(&["stash", "-q"]);
        scene.file("staged.txt", "staged\n");
        scene.git(&["add", "staged.txt"]);
        scene.file("staged.txt", "staged, and edited since\n");
        scene.file("mine.txt", "edited\n");
        scene.file("untracked.txt", "untracked\n");
        scene.file("keep.log", "ignored\n");
        // Whoever makes git run a hook of the user's leaves a trace.
        for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit"] {
            let trace = scene.folder().join("hook-ran");
            let path = scene.file(
                &format!(".git/hooks/{hook}"),
                format!("#!/bin/sh\necho {hook} >> '{}'\n", trace.display()),
            );
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        scene
    }

    /// The workflow: what stands in `states`, and more keys at its top.
    pub(crate) fn flow(&self, top: &str, start: &str, states: &str) {
        self.file(
            "flow.yaml",
            format!(
                "workflow: play\n{WORKER}{top}\nstart: {start}\nstates:\n{states}\n  end: {{ end: done }}\n"
            ),
        );
    }

    /// One state in which the worker works, with more keys of the state, and more at the workflow's
    /// top.
    pub(crate) fn one_step(&self, top: &str, more: &str) {
        self.flow(top, "work", &format!("  work: {{ agent: worker, go: end{more} }}"));
    }

    /// What the agents say and do, in this order.
    pub(crate) fn script(&self, replies: &[Value]) {
        let script = serde_json::to_string_pretty(&json!({ "replies": replies })).unwrap();
        std::fs::write(self.folder().join("script.yaml"), script).unwrap();
    }

    /// Runs the workflow with the script.
    pub(crate) fn play(&self) -> Ran {
        self.play_as("script:script.yaml")
    }

    /// Runs the workflow with somebody else.
    pub(crate) fn play_as(&self, agent: &str) -> Ran {
        Ran::of(self.work("flow.yaml", agent))
    }

    /// Plays a script through, and holds that nothing else of the user's is touched than these
    /// files.
    pub(crate) fn plays(&self, replies: &[Value], touched: &[&str]) -> Ran {
        self.script(replies);
        let before = self.belongings();
        let ran = self.play();
        self.holds(&before, touched);
        ran
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = git(&self.repo(), arguments).output().unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Everything that is the user's.
    pub(crate) fn belongings(&self) -> Belongings {
        Belongings {
            files: files(&self.repo()),
            git: files(&self.repo().join(".git")),
            outside: files(self.folder())
                .into_iter()
                .filter(|(path, _)| {
                    let ours = ["repo", "state", "said", "script.yaml"];
                    !ours.iter().any(|ours| path.starts_with(ours))
                })
                .collect(),
        }
    }

    /// Holds that only these files of the work tree differ from before; nothing of git's, nothing
    /// outside, no worktree is left.
    pub(crate) fn holds(&self, before: &Belongings, touched: &[&str]) {
        self.holds_but(before, touched, "nothing");
    }

    /// The same, when something was ours in that folder of git's.
    pub(crate) fn holds_but(&self, before: &Belongings, touched: &[&str], ours: &str) {
        let now = self.belongings();
        let expected: BTreeSet<PathBuf> = touched.iter().map(PathBuf::from).collect();
        assert_eq!(differing(&before.files, &now.files), expected, "files of the work tree");
        let mut git = differing(&before.git, &now.git);
        git.retain(|path| !path.starts_with(ours));
        assert_eq!(git, BTreeSet::new(), "files of git's");
        assert_eq!(
            differing(&before.outside, &now.outside),
            BTreeSet::new(),
            "files outside of the repository"
        );
        let left = files(&self.state().join("worktrees"));
        assert!(left.is_empty(), "worktrees are left: {:?}", left.keys());
    }

    /// What an agent was asked, by the name of the transcript.
    pub(crate) fn prompt(&self, ran: &Ran, name: &str) -> String {
        let path = self.state().join("transcripts").join(ran.report["run"].as_str().unwrap());
        std::fs::read_to_string(path.join(format!("{name}.prompt")))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// What is the user's: bytes and modes of all files, in the work tree, of git's, and around the
/// repository.
pub(crate) struct Belongings {
    files: Files,
    git: Files,
    outside: Files,
}

type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// The files below a folder with their modes and bytes, without git's. Of links, where they lead.
pub(crate) fn files(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
            if meta.is_dir() {
                if entry.file_name() != ".git" {
                    open.push(path);
                }
                continue;
            }
            let bytes = match std::fs::read_link(&path) {
                Ok(aim) => aim.into_os_string().into_encoded_bytes(),
                Err(_) if meta.is_file() => std::fs::read(&path).unwrap(),
                Err(_) => Vec::new(),
            };
            files.insert(path.strip_prefix(folder).unwrap().to_owned(), (meta.mode(), bytes));
        }
    }
    files
}

fn differing(before: &Files, now: &Files) -> BTreeSet<PathBuf> {
    let paths = before.keys().chain(now.keys());
    paths.filter(|path| before.get(*path) != now.get(*path)).cloned().collect()
}

/// A run that was driven.
pub(crate) struct Ran {
    pub(crate) said: Said,
    pub(crate) report: Value,
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "exit {:?}\n{:#}\n{}", self.said.code, self.report, self.said.err)
    }
}

impl Ran {
    pub(crate) fn of(said: Said) -> Self {
        let report = said.report();
        Self { said, report }
    }

    /// Outcome, cause, exit code.
    pub(crate) fn ended(&self) -> (&str, Option<&str>, i32) {
        let code = self.said.code.unwrap_or(-1);
        (self.report["outcome"].as_str().unwrap(), self.report["cause"].as_str(), code)
    }

    /// Holds that none of its processes is left.
    pub(crate) fn is_quiet(&self) {
        let left = carrying(self.report["run"].as_str().unwrap());
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    pub(crate) fn reason(&self) -> &str {
        self.report["reason"].as_str().unwrap()
    }

    /// How each attempt ended.
    pub(crate) fn outcomes(&self) -> Vec<&str> {
        let attempts = self.report["attempts"].as_array().unwrap();
        attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("open")).collect()
    }

    /// A claim of an attempt.
    pub(crate) fn claim(&self, attempt: usize, name: &str) -> &Value {
        let claims = self.report["attempts"][attempt]["claims"].as_array().unwrap();
        let found = claims.iter().find(|claim| claim["claim"] == name);
        found.unwrap_or_else(|| {
            panic!("no claim '{name}' in {:#}", self.report["attempts"][attempt])
        })
    }

    pub(crate) fn verdict(&self, attempt: usize, name: &str) -> &str {
        let claims = self.report["attempts"][attempt]["claims"].as_array().unwrap();
        // What is held against every step is told only where something speaks against it.
        if ["protected", "tests"].contains(&name)
            && !claims.iter().any(|claim| claim["claim"] == name)
        {
            return "verified";
        }
        self.claim(attempt, name)["verdict"].as_str().unwrap()
    }

    /// Holds that a claim got this verdict, and that what is said of it has these words in it.
    pub(crate) fn held(&self, attempt: usize, name: &str, verdict: &str, words: &[&str]) {
        let claim = self.claim(attempt, name);
        assert_eq!(claim["verdict"], verdict, "{claim:#}");
        let told = format!("{} {} {}", claim["reason"], claim["observed"], claim["evidence"]);
        for word in words {
            assert!(told.contains(word), "'{word}' is missing: {claim:#}");
        }
    }
}

/// A reply of the worker that says this, with what it does besides.
pub(crate) fn says(result: &Value, does: Value) -> Value {
    let mut reply = does;
    reply["agent"] = "worker".into();
    reply["text"] = result.to_string().into();
    reply
}

/// A reply that changes files and claims these.
pub(crate) fn claims(files: &[&str], does: Value) -> Value {
    says(&json!({ "files": files }), does)
}
