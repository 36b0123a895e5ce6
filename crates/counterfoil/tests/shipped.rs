//! The shipped examples, played by their scripts through the binary: what the documentation shows
//! is what runs.

#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

#[path = "shipped/claims.rs"]
mod claims;

fn played(name: &str, more: &[&str]) -> Value {
    played_in(tempfile::tempdir().unwrap().path(), name, more)
}

fn played_in(repo: &Path, name: &str, more: &[&str]) -> Value {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let (workflow, script) = (examples.join(format!("{name}.yaml")), examples.join("script.yaml"));
    let (workflow, script) =
        (workflow.display().to_string(), format!("script:{}", script.display()));
    let arguments = ["run", &workflow, "--format", "json", "--agent", &script, "--repo", "."];
    let output = shown_in(repo, &[&arguments[..], more].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs the binary in a folder, with nothing of the user's.
fn shown_in(folder: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin("counterfoil")
        .unwrap()
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn deliver_is_fixed_once_and_repaired_once() {
    let run = played("deliver", &["--task", "Add a login page"]);
    assert_eq!((&run["outcome"], &run["iterations"]), (&"done".into(), &2.into()), "{run:#}");
    assert_eq!(run["attempts"][1]["repairs_asked"], 1);
}

#[test]
fn features_are_built_in_order_and_one_is_fixed_once() {
    let run = played("features", &["--input", "plan=two features"]);
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
    let run = played("review", &["--input", "change=the diff"]);
    assert_eq!((&run["outcome"], &run["iterations"]), (&"done".into(), &2.into()), "{run:#}");
}
