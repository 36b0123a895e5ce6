//! An empty folder, and the binary in it with nothing of whoever runs the tests.

use crate::steady::steady;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { folder: TempDir::new().unwrap() };
        // Where demos make their repositories.
        std::fs::create_dir(place.path("tmp")).unwrap();
        std::fs::create_dir(place.path("here")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of the current folder.
    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.path("here").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A file of the current folder.
    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path("here").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.any(Path::new(env!("CARGO_BIN_EXE_counterfoil")), arguments)
    }

    /// A program in the current folder.
    pub(crate) fn any(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path("here")).stdin(Stdio::null());
        command.env_clear().env("NO_COLOR", "1").env("LANG", "C.UTF-8").env("USER", "kim");
        command
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub(crate) fn said(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The words of a command that must end with this code.
    pub(crate) fn words(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.said(arguments);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {words}");
        words
    }

    /// The JSON that a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.said(arguments);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// A readable block: the command, its exit code, what it printed; with what differs from run to
    /// run taken out.
    pub(crate) fn shown(&self, arguments: &[&str]) -> String {
        let output = self.said(arguments);
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
        let folder = self.folder.path().canonicalize().unwrap();
        steady(&text.replace(&folder.display().to_string(), "FOLDER"))
            .replace(env!("CARGO_BIN_EXE_counterfoil"), "counterfoil")
    }
}
