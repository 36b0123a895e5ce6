//! A repository with uncommitted work of a user, a workflow, and agents that misreport. Tests
//! compare the user's files before and after a run.

use crate::shell_project::{ShellProject, assert_no_processes};
use counterfoil_testkit::{
    AgentScript, CommandOutput, FileTree, RunOutput, changed_paths, read_tree, write_executable,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::PathBuf;

/// The contract of the agents: the files they changed, and whether the tests pass.
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

/// A project with uncommitted work of a user.
pub(crate) struct DirtyProject {
    project: ShellProject,
}

impl Deref for DirtyProject {
    type Target = ShellProject;

    fn deref(&self) -> &ShellProject {
        &self.project
    }
}

impl DirtyProject {
    /// The repository: some commits, a branch, a tag, a stash, hooks; staged, unstaged, untracked
    /// and ignored files.
    pub(crate) fn new() -> Self {
        let project = Self { project: ShellProject::new() };
        project.init_git();
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
            project.write(path, text);
        }
        project.git(&["add", "."]);
        project.git(&["commit", "-q", "-m", "base"]);
        project.git(&["branch", "other"]);
        project.write("mine.txt", "stashed\n");
        project.git(&["stash", "-q"]);
        project.write("staged.txt", "staged\n");
        project.git(&["add", "staged.txt"]);
        project.write("staged.txt", "staged, and edited since\n");
        project.write("mine.txt", "edited\n");
        project.write("untracked.txt", "untracked\n");
        project.write("keep.log", "ignored\n");
        // A hook that runs leaves a trace.
        for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit"] {
            let trace = project.root_path("hook-ran");
            write_executable(
                &project.path(format!(".git/hooks/{hook}")),
                format!("#!/bin/sh\necho {hook} >> '{}'\n", trace.display()),
            );
        }
        project
    }

    /// Writes the workflow: its states, and more keys at the top.
    pub(crate) fn write_workflow(&self, top: &str, start: &str, states: &str) {
        self.write(
            "flow.yaml",
            format!(
                "workflow: play\n{WORKER}{top}\nstart: {start}\nstates:\n{states}\n  end: {{ end: done }}\n"
            ),
        );
    }

    /// Writes a workflow with one state in which the worker works, with more keys of the state and
    /// at the top.
    pub(crate) fn write_one_step(&self, top: &str, more: &str) {
        self.write_workflow(top, "work", &format!("  work: {{ agent: worker, go: end{more} }}"));
    }

    /// Writes the script of the agents: their replies in this order.
    pub(crate) fn write_script(&self, replies: &[Value]) {
        let script = AgentScript::from_replies(replies).to_text();
        std::fs::write(self.root_path("script.yaml"), script).unwrap();
    }

    /// Runs the workflow with the script.
    #[track_caller]
    pub(crate) fn run_script(&self) -> VerifiedRun {
        self.run_agent("script:script.yaml")
    }

    /// Runs the workflow with another agent.
    #[track_caller]
    pub(crate) fn run_agent(&self, agent: &str) -> VerifiedRun {
        self.run_workflow("flow.yaml", agent).into()
    }

    /// Runs the workflow with these replies, and asserts that no files of the user changed except
    /// these.
    #[track_caller]
    pub(crate) fn run_replies(&self, replies: &[Value], changed: &[&str]) -> VerifiedRun {
        self.write_script(replies);
        let before = self.user_files();
        let run = self.run_script();
        self.assert_only_changed(&before, changed);
        run
    }

    /// The folder with the worktrees of runs, which is there only as long as they are.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.path(".counterfoil")
    }

    /// All files of the user.
    pub(crate) fn user_files(&self) -> UserFiles {
        let own = ["repo", "state", "scratch", "script.yaml"];
        let mut outside = read_tree(self.root());
        outside.retain(|path, _| !own.iter().any(|own| path.starts_with(own)));
        let mut repo = read_tree(self.repo());
        repo.retain(|path, _| !self.path(path).starts_with(self.worktrees()));
        UserFiles { repo, git: read_tree(&self.path(".git")), outside }
    }

    /// Asserts that only these files of the work tree differ from before, none of git's and none
    /// outside, and that no worktree is left.
    #[track_caller]
    pub(crate) fn assert_only_changed(&self, before: &UserFiles, changed: &[&str]) {
        self.assert_only_changed_except(before, changed, "nothing");
    }

    /// The same, except for a directory of git's.
    #[track_caller]
    pub(crate) fn assert_only_changed_except(
        &self,
        before: &UserFiles,
        changed: &[&str],
        git_dir: &str,
    ) {
        let now = self.user_files();
        let expected: BTreeSet<PathBuf> = changed.iter().map(PathBuf::from).collect();
        assert_eq!(changed_paths(&before.repo, &now.repo), expected, "files of the work tree");
        let mut git = changed_paths(&before.git, &now.git);
        git.retain(|path| !path.starts_with(git_dir));
        assert_eq!(git, BTreeSet::new(), "files of git");
        let outside = changed_paths(&before.outside, &now.outside);
        assert_eq!(outside, BTreeSet::new(), "files outside of the repository");
        let left = read_tree(&self.worktrees());
        assert!(!self.worktrees().exists(), "worktrees are left: {:?}", left.keys());
    }

    /// The prompt of an attempt, by the name of the transcript.
    pub(crate) fn prompt(&self, run: &VerifiedRun, name: &str) -> String {
        self.project.prompt(run.run_id(), name)
    }
}

/// The files of a user: in the work tree, of git, and around the repository.
pub(crate) struct UserFiles {
    repo: FileTree,
    git: FileTree,
    outside: FileTree,
}

/// A run, with assertions about its claims.
#[derive(Debug)]
pub(crate) struct VerifiedRun(RunOutput);

impl Deref for VerifiedRun {
    type Target = RunOutput;

    fn deref(&self) -> &RunOutput {
        &self.0
    }
}

impl From<CommandOutput> for VerifiedRun {
    fn from(output: CommandOutput) -> Self {
        Self(output.into())
    }
}

impl VerifiedRun {
    /// Asserts that no process of the run is left.
    #[track_caller]
    pub(crate) fn assert_no_processes(&self) {
        assert_no_processes(&self.report);
    }

    /// The outcome of each attempt.
    pub(crate) fn outcomes(&self) -> Vec<&str> {
        let attempts = self.report["attempts"].as_array().unwrap();
        attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("open")).collect()
    }

    /// A claim of an attempt.
    #[track_caller]
    pub(crate) fn claim(&self, attempt: usize, name: &str) -> &Value {
        let attempt = &self.report["attempts"][attempt];
        let claims = attempt["claims"].as_array().unwrap();
        let found = claims.iter().find(|claim| claim["claim"] == name);
        found.unwrap_or_else(|| panic!("no claim '{name}' in {attempt:#}"))
    }

    /// The verdict on a claim of an attempt. Claims that apply to every step are reported only if
    /// they are refuted.
    #[track_caller]
    pub(crate) fn verdict(&self, attempt: usize, name: &str) -> &str {
        let claims = self.report["attempts"][attempt]["claims"].as_array().unwrap();
        if ["protected", "tests"].contains(&name)
            && !claims.iter().any(|claim| claim["claim"] == name)
        {
            return "verified";
        }
        self.claim(attempt, name)["verdict"].as_str().unwrap()
    }

    /// Asserts the verdict on a claim, and that its explanation contains these texts.
    #[track_caller]
    pub(crate) fn assert_claim(&self, attempt: usize, name: &str, verdict: &str, texts: &[&str]) {
        let claim = self.claim(attempt, name);
        assert_eq!(claim["verdict"], verdict, "{claim:#}");
        let explanation =
            format!("{} {} {}", claim["reason"], claim["observed"], claim["evidence"]);
        for text in texts {
            assert!(explanation.contains(text), "'{text}' is missing: {claim:#}");
        }
    }
}

/// A reply of the worker with this result, and with further keys of the script.
pub(crate) fn replies(result: &Value, keys: Value) -> Value {
    let mut reply = keys;
    reply["agent"] = "worker".into();
    reply["text"] = result.to_string().into();
    reply
}

/// A reply of the worker that claims to have changed these files.
pub(crate) fn claims(files: &[&str], keys: Value) -> Value {
    replies(&json!({ "files": files }), keys)
}
