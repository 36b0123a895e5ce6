//! A folder with a workflow, a script that plays its agents, and the binary to run them.

use crate::steady::steady;
pub(crate) use crate::told::Told as Ran;
use assert_cmd::Command;
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// What most agents of the scenes hand back.
const STEP: &str = r#"
contract: scene/step
version: 1
fields: { ok: boolean, note?: string }
rules:
  - { id: note-when-not-ok, when: "!result.ok", require: [note] }
examples: [{ ok: true }]
"#;

/// A list of tasks, for fan-outs.
const TASKS: &str = r"
contract: scene/tasks
version: 1
fields: { tasks: [{ id: string, after: [string], rank: integer }] }
examples: [{ tasks: [{ id: a, after: [], rank: 1 }] }]
";

pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    /// A workflow and the replies of its agents.
    pub(crate) fn new(workflow: &str, script: &str) -> Self {
        let scene = Self { folder: TempDir::new().unwrap() };
        // The folder is a repository of its own, whatever stands above it.
        std::fs::create_dir(scene.path(".counterfoil")).unwrap();
        scene.file("flow.yaml", workflow);
        scene.file("script.yaml", script);
        scene.file("contracts/step.yaml", STEP);
        scene.file("contracts/tasks.yaml", TASKS);
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("counterfoil").unwrap();
        command
            .env_clear()
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8")
            .env("USER", "kim")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.folder.path())
            .args(arguments);
        command
    }

    /// Runs a command that prints one JSON object.
    pub(crate) fn json(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap(), arguments)
    }

    /// Runs the workflow with the script, and further arguments.
    pub(crate) fn run_with(&self, more: &[&str]) -> Ran {
        let base = ["run", "flow.yaml", "--format", "json", "--agent", "script:script.yaml"];
        self.json(&[&base, more].concat())
    }

    /// Runs the workflow with the script.
    pub(crate) fn run(&self) -> Ran {
        self.run_with(&[])
    }

    /// The words of a command that is refused, with exit code 2 and nothing on stdout.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {words}");
        assert!(
            output.stdout.is_empty(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
        words
    }

    /// A readable block: the command, its exit code, what it printed; with what differs from run to
    /// run taken out.
    pub(crate) fn shown(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let mut text = format!(
            "$ counterfoil {}\nexit {}\n",
            arguments.join(" "),
            output.status.code().unwrap()
        );
        for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let words = String::from_utf8(bytes).unwrap();
            if !words.is_empty() {
                let _ = write!(text, "--- {name}\n{words}");
            }
        }
        steady(&text.replace(&self.folder.path().display().to_string(), "FOLDER"))
    }

    /// What an agent was asked, by the name of the transcript.
    pub(crate) fn prompt(&self, ran: &Ran, name: &str) -> String {
        let run = ran.report["run"].as_str().unwrap();
        self.read(&format!(".counterfoil/transcripts/{run}/{name}.prompt"))
    }
}

/// A workflow of one state in which an agent works, with more keys of the state.
pub(crate) fn one_step(more: &str) -> String {
    format!(
        "workflow: one\n\
         agents: {{ worker: {{ contract: scene/step, prompt: \"Do it.\" }} }}\n\
         contracts: [contracts]\n\
         start: work\n\
         states:\n  \
           work: {{ agent: worker, go: done{more} }}\n  \
           done: {{ end: done }}\n"
    )
}

/// A script with these replies of `worker`.
pub(crate) fn replies(of: &[&str]) -> String {
    let replies: Vec<String> =
        of.iter().map(|reply| format!("  - {{ agent: worker, {reply} }}\n")).collect();
    format!("replies:\n{}", replies.concat())
}

/// A reply that its contract accepts.
pub(crate) const GOOD: &str = r#"text: '{"ok": true}'"#;
/// A reply whose rule is broken.
pub(crate) const BAD: &str = r#"text: '{"ok": false}'"#;
