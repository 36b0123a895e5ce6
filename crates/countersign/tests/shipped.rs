//! The shipped examples, played by their scripts through the binary: what the documentation shows is what runs.

#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

fn played(name: &str, more: &[&str]) -> Value {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let repo = tempfile::tempdir().unwrap();
    let script = format!("script:{}", examples.join("script.yaml").display());
    let output = Command::cargo_bin("countersign")
        .unwrap()
        .current_dir(repo.path())
        .arg("run")
        .arg(examples.join(format!("{name}.yaml")))
        .args(["--format", "json", "--agent", &script, "--repo", "."])
        .args(more)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
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
    let items: Vec<&str> =
        run["attempts"].as_array().unwrap().iter().filter_map(|attempt| attempt["item"].as_str()).collect();
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
