//! Annotations and SARIF logs name files from the top of the repository, wherever a command is called.

use super::verify::{BASE, worked_on};
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The files that a command names in a subfolder: in annotations, and in a SARIF log.
fn named(project: &TestProject, arguments: &[&str]) -> (Vec<String>, Vec<String>) {
    let run = |format: &str| {
        let mut command = project.command(&[arguments, &["--format", format]].concat());
        command.current_dir(project.path("svc")).output()
    };
    let github = run("github");
    let files = github.stdout.lines().filter_map(|line| line.split_once(" file="));
    let mut files: Vec<String> = files
        .map(|(_, rest)| rest.split([',', ':']).next().unwrap_or_default().to_owned())
        .collect();
    let sarif = run("sarif").json();
    let uri = |result: &Value| {
        let place = &result["locations"][0]["physicalLocation"];
        place["artifactLocation"]["uri"].as_str().unwrap().to_owned()
    };
    let mut uris: Vec<String> =
        sarif["runs"][0]["results"].as_array().unwrap().iter().map(uri).collect();
    for names in [&mut files, &mut uris] {
        names.sort();
        names.dedup();
    }
    (files, uris)
}

#[test]
fn files_are_named_from_the_top_of_the_repository() {
    let project = worked_on();
    project.write("svc/t.py", "def f():\n    raise NotImplementedError\n");
    let answer = r#"{"files_changed": ["src/b.rs"]}"#;
    project.write("answer.txt", answer);
    project.write("svc/k.txt", answer);
    project.write("svc/bad.txt", "I am done.");
    project.write("svc/flow.yaml", "workflow: flow\nversion: 1\nstart: dne\nstates: {}\n");
    project.write("svc/bad.yaml", "contract: acme/bad\nversion: 1\nfields: { a: nonsense }\n");
    let verify = ["--contract", "scene/fix", "--contracts", "../contracts", "--base", "HEAD"];
    let strict = [&verify[..], &["--strict"]].concat();
    let check = ["check", "--contract", "../contracts/fix.yaml"];
    for (arguments, expected) in [
        ([&["verify", "k.txt"][..], &strict].concat(), &["svc/k.txt", "svc/t.py"][..]),
        ([&["verify", "../answer.txt"][..], &strict].concat(), &["answer.txt", "svc/t.py"]),
        ([&["verify", "bad.txt"][..], &verify].concat(), &["svc/bad.txt"]),
        ([&check[..], &["bad.txt"]].concat(), &["svc/bad.txt"]),
        ([&check[..], &["bad.txt", "../src/a.rs"]].concat(), &["src/a.rs", "svc/bad.txt"]),
        (vec!["contract", "lint", "bad.yaml"], &["svc/bad.yaml"]),
        (vec!["workflow", "check", "flow.yaml"], &["svc/flow.yaml"]),
    ] {
        let (files, uris) = named(&project, &arguments);
        assert_eq!(files, expected, "{arguments:?}");
        assert_eq!(uris, expected, "{arguments:?}");
    }
}

#[test]
fn other_files_are_named_as_they_are_given() {
    let project = worked_on();
    project.write("svc/x", "");
    let folder = TempDir::new().unwrap();
    let outside = folder.path().join("outside.txt").display().to_string();
    std::fs::write(&outside, "I am done.").unwrap();
    let arguments = ["check", "--contract", "../contracts/fix.yaml", &outside];
    let (files, uris) = named(&project, &arguments);
    assert_eq!((files, uris), (vec![outside.clone()], vec![outside]));
}

#[test]
fn secrets_in_claims_are_redacted() {
    let project = worked_on();
    let secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
    let answer = json!({"files_changed": ["src/a.rs", "new.txt"], "report": secret});
    project.write("answer.txt", answer.to_string());
    for format in ["github", "junit", "sarif"] {
        let report = project.run(&[&BASE[..], &["--format", format]].concat()).stdout;
        assert!(!report.contains(secret), "{report}");
        assert!(report.contains("[redacted:stripe-key#1]"), "{report}");
    }
}
