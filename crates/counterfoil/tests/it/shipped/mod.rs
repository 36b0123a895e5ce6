//! The shipped examples, run with their scripts as the documentation shows.

use crate::PROGRAM;
use counterfoil_testkit::{CommandOutput, TestCommand};
use serde_json::Value;
use std::path::Path;

mod claims;

/// Runs an example with its script in an empty directory; returns the report.
fn run_example(name: &str, more: &[&str]) -> Value {
    run_example_in(tempfile::tempdir().unwrap().path(), name, more)
}

/// Runs an example with its script in a repository; returns the report.
fn run_example_in(repo: &Path, name: &str, more: &[&str]) -> Value {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let workflow = examples.join(format!("{name}.yaml")).display().to_string();
    let script = format!("script:{}", examples.join("script.yaml").display());
    let arguments = ["run", &workflow, "--format", "json", "--agent", &script, "--repo", "."];
    run_in(repo, &[&arguments[..], more].concat()).json()
}

/// Runs the program in a directory.
fn run_in(dir: &Path, arguments: &[&str]) -> CommandOutput {
    let mut command = TestCommand::new(PROGRAM);
    command.current_dir(dir).env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir));
    command.args(arguments).output()
}

#[test]
fn deliver_is_fixed_once_and_repaired_once() {
    let run = run_example("deliver", &["--task", "Add a login page"]);
    assert_eq!((&run["outcome"], &run["iterations"]), (&"done".into(), &2.into()), "{run:#}");
    assert_eq!(run["attempts"][1]["repairs_asked"], 1);
}

#[test]
fn features_are_built_in_order_and_one_is_fixed_once() {
    let run = run_example("features", &["--input", "plan=two features"]);
    assert_eq!(run["outcome"], "done", "{run:#}");
    let items: Vec<&str> = run["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|attempt| attempt["item"].as_str())
        .collect();
    assert_eq!(items, ["login", "login", "logout", "logout", "logout"]);
    assert!(
        run["commands"].as_array().unwrap().iter().all(|command| command["value"]["ok"] == true),
        "{run:#}"
    );
}

#[test]
fn a_review_finds_nothing_in_its_second_round() {
    let run = run_example("review", &["--input", "change=the diff"]);
    assert_eq!((&run["outcome"], &run["iterations"]), (&"done".into(), &2.into()), "{run:#}");
}
