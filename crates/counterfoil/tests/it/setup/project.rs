//! A project with a home directory and a `PATH` of its own.

use crate::PROGRAM;
use counterfoil_testkit::{CommandOutput, TestCommand, TestProject, write_executable};
use std::path::PathBuf;

/// A temporary directory with `repo`, `home` and `bin`; names of files are relative to it.
pub(crate) struct SetupProject {
    project: TestProject,
}

impl SetupProject {
    pub(crate) fn new() -> Self {
        let project = TestProject::nested(PROGRAM);
        for name in ["repo", "home", "bin"] {
            std::fs::create_dir_all(project.root_path(name)).unwrap();
        }
        project.write(project.root_path("repo/.git/HEAD"), "ref: refs/heads/main\n");
        for folder in ["objects", "refs"] {
            std::fs::create_dir(project.root_path("repo/.git").join(folder)).unwrap();
        }
        let (home, bin) = (project.root_path("home"), project.root_path("bin"));
        Self { project: project.with_env("HOME", home).with_env("PATH", bin) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project.root_path(name)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    /// Writes a file and creates the directories it needs.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        self.project.write(self.path(name), text)
    }

    /// Puts a program on the `PATH` that runs a line of shell.
    pub(crate) fn add_program(&self, name: &str, line: &str) {
        write_executable(&self.path("bin").join(name), format!("#!/bin/sh\n{line}\n"));
    }

    pub(crate) fn read(&self, name: &str) -> String {
        self.project.read(self.path(name))
    }

    /// The program under test, in the repository.
    pub(crate) fn command(&self) -> TestCommand {
        self.project.command::<&str>(&[])
    }

    /// Runs a command and returns a readable block for snapshots.
    pub(crate) fn snapshot(&self, command: &mut TestCommand) -> String {
        self.to_snapshot(&command.output())
    }

    /// What a command printed, as a readable block for snapshots.
    pub(crate) fn to_snapshot(&self, output: &CommandOutput) -> String {
        self.normalize(&output.to_block())
    }

    /// Replaces the temporary directory, and how this machine contains processes.
    pub(crate) fn normalize(&self, text: &str) -> String {
        let text =
            counterfoil_testkit::normalize::directory(text, self.project.root(), "[project]");
        let machine = |line: &str| {
            ["processes: ", "ok   containment: "].into_iter().find_map(|about| {
                let (before, _) = line.split_once(about)?;
                Some(format!("{before}{about}[as the machine can]\n"))
            })
        };
        let lines = text.split_inclusive('\n').map(|line| match machine(line) {
            Some(replaced) => replaced,
            None => line.to_owned(),
        });
        lines.collect()
    }
}
