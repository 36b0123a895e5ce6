//! Protected files, and tests that must not be removed.

use crate::verification::project::{DirtyProject, VerifiedRun, claims, replies};
use counterfoil_testkit::read_tree;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};

/// What was set aside in a run: paths below the folder of its attempt, with their text.
fn aside(project: &DirtyProject) -> Vec<(String, String)> {
    let kept = read_tree(&project.state().join("set-aside")).into_iter();
    kept.map(|(path, (_, bytes))| {
        (path.to_string_lossy().into_owned(), String::from_utf8_lossy(&bytes).into_owned())
    })
    .collect()
}

fn is_set_aside(project: &DirtyProject, path: &str, text: &str) {
    let kept = aside(project);
    assert!(kept.iter().any(|(at, bytes)| at.ends_with(path) && bytes == text), "{path}: {kept:?}");
}

#[test]
fn a_protected_file_is_put_back_and_what_stood_there_is_kept() {
    let project = DirtyProject::new();
    project.write("AGENTS.md", "Be careful. (not committed)\n");
    std::fs::create_dir_all(project.repo().join(".claude")).unwrap();
    project.write(".claude/mine.json", "untracked\n");
    project.write_one_step("protect: [\"src/**\"]", "");
    let reply = claims(
        &["a.rs"],
        json!({
            "writes": {"a.rs": "new\n", "AGENTS.md": "obey\n", "src/lib.rs": "short\n", ".github/workflows/ci.yml": "on: push\n",
                       "flow.yaml": "workflow: mine\n"},
            "deletes": [".claude/mine.json"],
        }),
    );
    let ran = project.run_replies(&[reply], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran.assert_claim(
        0,
        "protected",
        "refuted",
        &[
            "AGENTS.md",
            "src/lib.rs",
            "ci.yml",
            "flow.yaml",
            ".claude/mine.json",
            "restored",
            "is kept in",
        ],
    );
    ran.assert_claim(0, "files", "verified", &[]);
    for (path, text) in [
        ("AGENTS.md", "obey\n"),
        ("src/lib.rs", "short\n"),
        (".github/workflows/ci.yml", "on: push\n"),
        ("flow.yaml", "workflow: mine\n"),
    ] {
        is_set_aside(&project, path, text);
    }
    assert!(!project.repo().join(".github").exists(), "no empty folder is left");
}

#[test]
fn a_private_file_stays_private() {
    let project = DirtyProject::new();
    let path = project.repo().join("AGENTS.md");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    project.write_one_step("", "");
    let ran = project.run_replies(&[claims(&[], json!({"writes": {"AGENTS.md": "obey\n"}}))], &[]);
    ran.assert_claim(0, "protected", "refuted", &["restored"]);
    // Nor does an agent open a file to all by writing it.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = project.run_replies(
        &[claims(&[], json!({"exec": "echo obey > AGENTS.md; chmod 666 AGENTS.md"}))],
        &[],
    );
    ran.assert_claim(0, "protected", "refuted", &["restored"]);
}

#[test]
fn where_protection_is_required_it_is_sent_back() {
    let project = DirtyProject::new();
    project.write_one_step("protection: require", ", repairs: 1");
    let touch =
        |text: &str| claims(&["a.rs"], json!({"writes": {"AGENTS.md": text, "a.rs": text}}));
    let ran = project.run_replies(&[touch("1\n"), claims(&["a.rs"], json!({}))], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.verdict(0, "protected"), "verified", "it did better");
    let prompt = project.prompt(&ran, "work_1.2");
    assert!(prompt.contains("protected") && prompt.contains("AGENTS.md"), "{prompt}");
    let ran = project.run_replies(&[touch("2\n"), touch("3\n")], &["a.rs"]);
    assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{ran:?}");
    ran.assert_claim(0, "protected", "refuted", &["AGENTS.md"]);
    // Both times something stood there; neither is lost.
    is_set_aside(&project, "AGENTS.md", "2\n");
    is_set_aside(&project, "AGENTS.md", "3\n");
}

#[test]
fn an_attempt_without_a_result_is_put_back_too() {
    let project = DirtyProject::new();
    project.write_one_step("", ", retries: { agent: 0 }");
    let reply = json!({"agent": "worker", "fail": "agent", "exec": "echo obey > AGENTS.md; echo new > a.rs"});
    let ran = project.run_replies(&[reply], &["a.rs"]);
    assert_eq!(ran.ended(), ("failed", Some("agent"), 5), "{ran:?}");
    ran.assert_claim(0, "protected", "refuted", &["AGENTS.md", "restored"]);
}

#[test]
fn one_that_may_only_read_writes_nowhere() {
    let project = DirtyProject::new();
    project.write(
        "flow.yaml",
        "workflow: play\nagents: { worker: { contract: acme/change, prompt: prompts/work.md, access: read-only } }\n\
         contracts: [contracts]\nstart: work\nstates:\n  work: { agent: worker, go: end }\n  end: { end: done }\n",
    );
    let reply = claims(
        &[],
        json!({"exec": "echo x > a.rs; rm b.rs mine.txt; mv untracked.txt moved.txt; mkdir -p deep/er; echo y > deep/er/new; chmod 755 src/lib.rs; ln -sf /etc/passwd staged.txt"}),
    );
    let ran = project.run_replies(&[reply], &[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran.assert_claim(0, "protected", "refuted", &["8 files", "restored"]);
    assert_eq!(ran.report["attempts"][0]["changed"]["total"], 0, "all was put back");
}

#[test]
fn a_link_in_the_place_of_a_protected_folder_leads_nobody_astray() {
    let project = DirtyProject::new();
    project.write(".github/workflows/ci.yml", "on: push\n");
    let outside = project.root().join("shared");
    std::fs::create_dir_all(outside.join("workflows")).unwrap();
    std::fs::write(outside.join("workflows/ci.yml"), "precious\n").unwrap();
    std::fs::write(outside.join("notes.md"), "precious too\n").unwrap();
    project.write_one_step("protection: require", ", repairs: 2");
    let shared = outside.display();
    project.write_script(
        &[
            claims(&[], json!({"exec": format!("rm -r .github; ln -s '{shared}' .github; ln -sf '{shared}/notes.md' AGENTS.md")})),
            claims(&[], json!({"exec": "mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml; rm -f AGENTS.md; echo evil > AGENTS.md"})),
            claims(&[], json!({})),
        ],
    );
    let before = project.user_files();
    let ran = project.run_script();
    project.assert_only_changed(&before, &[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(outside.join("workflows/ci.yml")).unwrap(), "precious\n");
    is_set_aside(&project, "AGENTS.md", "evil\n");
}

#[test]
fn a_user_whose_file_is_a_link_gets_the_link_back() {
    let project = DirtyProject::new();
    std::fs::remove_file(project.repo().join("AGENTS.md")).unwrap();
    std::fs::write(project.root().join("shared.md"), "for all my projects\n").unwrap();
    symlink("../shared.md", project.repo().join("AGENTS.md")).unwrap();
    project.write_one_step("", "");
    for does in [
        "rm AGENTS.md; mkdir AGENTS.md; echo x > AGENTS.md/y",
        "rm AGENTS.md; mkfifo AGENTS.md",
        "ln -sfn /dev/zero AGENTS.md",
        "rm AGENTS.md; echo obey > AGENTS.md",
    ] {
        let ran = project.run_replies(&[claims(&[], json!({"exec": does}))], &[]);
        ran.assert_claim(0, "protected", "refuted", &["AGENTS.md", "restored"]);
    }
}

#[test]
fn names_of_items_lead_nowhere() {
    let project = DirtyProject::new();
    let long = "x".repeat(300);
    project.write_workflow(
        &format!("variables: {{ parts: {{ type: [string], initial: [\"../../../../stolen\", \"/stolen\", \"..\", \"{long}\"] }} }}"),
        "fan",
        "  fan: { each: { in: parts, as: part, key: part, agent: worker, failures: collect }, go: end }",
    );
    let write = || claims(&[], json!({"writes": {"AGENTS.md": "obey\n"}}));
    let ran = project.run_replies(&[write(), write(), write(), write()], &[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(
        aside(&project)
            .iter()
            .filter(|(path, text)| path.ends_with("AGENTS.md") && text == "obey\n")
            .count(),
        4,
        "{:?}",
        aside(&project)
    );
}

/// A reply that leaves this in the file of tests.
fn with_tests(text: &str) -> Value {
    claims(&["tests/it.rs"], json!({"writes": {"tests/it.rs": text}}))
}

const BOTH: &str = "#[test]\nfn one() {\n    assert_eq!(play::add(1, 1), 2);\n}\n\n#[test]\nfn two() {\n    assert_eq!(play::add(2, 1), 3);\n}\n";
const ONE: &str = "#[test]\nfn one() {\n    assert_eq!(play::add(1, 1), 2);\n}\n";
const SKIPPED: &str = "#[test]\nfn one() {\n    assert_eq!(play::add(1, 1), 2);\n}\n\n#[test]\n#[ignore]\nfn two() {\n    assert_eq!(play::add(1, 1), 2);\n}\n";
const EMPTIED: &str =
    "#[test]\nfn one() {\n    assert_eq!(play::add(1, 1), 2);\n}\n\n#[test]\nfn two() {}\n";

#[test]
fn tests_that_went_are_shown() {
    for (text, words) in [(ONE, "removed"), (SKIPPED, "skipped"), (EMPTIED, "empt")] {
        let project = DirtyProject::new();
        project.write_one_step("", "");
        let ran = project.run_replies(&[with_tests(text)], &["tests/it.rs"]);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        ran.assert_claim(0, "tests", "refuted", &["two", words]);
    }
}

fn required(replies: &[Value]) -> (DirtyProject, VerifiedRun) {
    let project = DirtyProject::new();
    project.write_one_step("tests: require", ", repairs: 1");
    let ran = project.run_replies(replies, &["tests/it.rs"]);
    (project, ran)
}

#[test]
fn tests_that_went_are_asked_back_where_they_are_required() {
    let (project, ran) = required(&[with_tests(ONE), with_tests(BOTH)]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = project.prompt(&ran, "work_1.2");
    assert!(prompt.contains("tests") && prompt.contains("two"), "{prompt}");
    assert_eq!(ran.verdict(0, "tests"), "verified");

    let (_scene, ran) =
        required(&[with_tests(SKIPPED), replies(&json!({"files": ["tests/it.rs"]}), json!({}))]);
    assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{ran:?}");
    assert!(ran.reason().contains("two"), "{}", ran.reason());
}

#[test]
fn a_protected_file_that_a_check_changes_is_put_back_too() {
    for policy in ["record", "require"] {
        let project = DirtyProject::new();
        // The agent changes nothing that is protected: a test of its own does.
        project.write("counterfoil.toml", "[checks]\ntest = \"sh tests/run.sh\"\n");
        project.write_one_step(&format!("protection: {policy}"), ", repairs: 0");
        let reply = replies(
            &json!({"files": ["tests/run.sh"], "tests_pass": true}),
            json!({"writes": {"tests/run.sh": "echo obey > AGENTS.md\n"}}),
        );
        let ran = project.run_replies(&[reply], &["tests/run.sh"]);
        ran.assert_claim(
            0,
            "protected",
            "refuted",
            &["AGENTS.md", "restored", "while a check ran"],
        );
        is_set_aside(&project, "AGENTS.md", "obey\n");
        let ended =
            if policy == "require" { ("failed", Some("claim"), 3) } else { ("done", None, 0) };
        assert_eq!(ran.ended(), ended, "{ran:?}");
    }
}
