//! A project and a home of its own, in a folder that goes away.

use assert_cmd::Command;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) struct House {
    folder: TempDir,
}

impl House {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["repo/.git", "home", "bin"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    /// Writes a file, with the folders that it needs.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A program on PATH, as a line for `sh`.
    pub(crate) fn program(&self, name: &str, line: &str) {
        let path = self.file(&format!("bin/{name}"), format!("#!/bin/sh\n{line}\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The binary, in the repository, with nothing of the real world around it.
    pub(crate) fn counterfoil(&self) -> Command {
        let mut command = Command::cargo_bin("counterfoil").unwrap();
        command
            .env_clear()
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8")
            .env("HOME", self.path("home"))
            .env("PATH", self.path("bin"))
            .current_dir(self.repo());
        command
    }

    /// One readable block: exit code, stdout, stderr, without what differs from run to run.
    pub(crate) fn shown(&self, command: &mut Command) -> String {
        let output = command.output().unwrap();
        let mut text = format!(
            "exit {}\n",
            output.status.code().map_or("by signal".into(), |code| code.to_string())
        );
        for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let words = String::from_utf8(bytes).unwrap();
            if !words.is_empty() {
                let _ = write!(text, "--- {name}\n{words}");
            }
        }
        self.steady(&text)
    }

    /// A text with the folder named `[house]`.
    pub(crate) fn steady(&self, text: &str) -> String {
        let real = self.folder.path().canonicalize().unwrap();
        let text = text.replace(real.to_str().unwrap(), "[house]");
        let text = text.replace(self.folder.path().to_str().unwrap(), "[house]");
        // How processes are contained is the machine's.
        let lines = text.split_inclusive('\n').map(|line| match line.split_once("processes: ") {
            Some((before, _)) => format!("{before}processes: [as the machine can]\n"),
            None => line.to_owned(),
        });
        lines.collect()
    }
}

/// All files of a folder with their bytes, by their paths in it.
pub(crate) fn files(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                let path = entry.path().strip_prefix(folder).unwrap().to_owned();
                found.insert(path, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}
