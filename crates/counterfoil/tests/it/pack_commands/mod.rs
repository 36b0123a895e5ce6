//! The commands for packs: list, show, run by name, eject and demo.

mod demo;
mod eject;
mod names;

use crate::PROGRAM;
use counterfoil_testkit::TestProject;

/// A project without files, and with a `TMPDIR` of its own, in which demos create repositories.
fn empty_project() -> TestProject {
    let project = TestProject::nested(PROGRAM);
    let temporary = project.root_path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    project.with_env("TMPDIR", temporary).with_env("USER", "kim")
}

/// Runs a command that must end with this code; returns what is on standard error.
#[track_caller]
fn stderr_of(project: &TestProject, code: i32, arguments: &[&str]) -> String {
    let output = project.run(arguments);
    assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
    output.stderr
}
