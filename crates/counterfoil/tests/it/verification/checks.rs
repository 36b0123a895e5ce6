//! Check commands that misbehave. The engine runs them itself and has to contain them.

use crate::verification::project::{DirtyProject, VerifiedRun, replies};
use counterfoil_testkit::read_tree;
use serde_json::{Value, json};

/// A reply that changes a file, says so, and says that the tests pass.
fn tested(path: &str, text: &str) -> Value {
    replies(&json!({"files": [path], "tests_pass": true}), json!({"writes": {path: text}}))
}

/// One step under a check.
fn checked(toml: &str) -> (DirtyProject, VerifiedRun) {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", toml);
    project.write_one_step("", "");
    let ran = project.run_replies(&[tested("a.rs", "new\n")], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran.assert_no_processes();
    (project, ran)
}

#[test]
fn one_that_hangs_is_ended_and_says_nothing() {
    let (_scene, ran) = checked(
        "[checks.test]\nrun = \"echo halfway; trap '' TERM; sleep 300 & sleep 300\"\ntimeout = \"1s\"\n",
    );
    ran.assert_claim(
        0,
        "tests_pass",
        "unverifiable",
        &["took longer than 1 s", "longer timeout in counterfoil.toml", "halfway"],
    );
}

#[test]
fn one_that_leaves_a_daemon_behind_does_not() {
    let (_scene, ran) = checked(
        "[checks]\ntest = \"setsid sh -c 'setsid sleep 300 & setsid sleep 300 &' > /dev/null 2>&1; (sleep 300 &) ; exit 0\"\n",
    );
    ran.assert_claim(
        0,
        "tests_pass",
        "verified",
        &["left 3 processes running, and they were killed"],
    );
}

#[test]
fn one_that_prints_without_end_is_heard_to_its_end_and_kept_in_few_words() {
    let (project, ran) =
        checked("[checks]\ntest = \"yes 'a line of output' | head -c 200000000; echo the end\"\n");
    ran.assert_claim(0, "tests_pass", "verified", &["the end"]);
    let evidence = ran.claim(0, "tests_pass").to_string();
    assert!(evidence.len() < 16 << 10, "{} bytes", evidence.len());
    let kept: u64 = read_tree(project.state()).values().map(|(_, bytes)| bytes.len() as u64).sum();
    assert!(kept < 4 << 20, "the state folder has {kept} bytes");
}

#[test]
fn one_that_changes_the_tree_is_stale() {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", "[checks]\ntest = \"echo formatted >> b.rs\"\n");
    project.write_one_step("", "");
    let ran = project.run_replies(&[tested("a.rs", "new\n")], &["a.rs", "b.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran.assert_claim(0, "tests_pass", "stale", &["changed the files that it checks", "b.rs"]);
    ran.assert_claim(0, "files", "stale", &["files changed after this was verified"]);
}

#[test]
fn one_that_is_required_may_not_change_the_tree_the_last_time() {
    let project = |check: &str| {
        let project = DirtyProject::new();
        project.write("counterfoil.toml", format!("[checks]\ntest = \"{check}\"\n"));
        project.write_one_step("", ", repairs: 1, claims: { tests_pass: require }");
        project
    };
    let again = || replies(&json!({"files": ["a.rs", "b.rs"], "tests_pass": true}), json!({}));
    // One that formats has nothing left to do when it runs again.
    let formats = project("grep -qx formatted b.rs || echo formatted >> b.rs");
    let ran = formats.run_replies(&[tested("a.rs", "new\n"), again()], &["a.rs", "b.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.verdict(0, "tests_pass"), "verified");
    let never_ends = project("echo formatted >> b.rs");
    let ran = never_ends.run_replies(&[tested("a.rs", "new\n"), again()], &["a.rs", "b.rs"]);
    assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{ran:?}");
    assert!(ran.reason().contains("changed the files that it checks"), "{}", ran.reason());
}

#[test]
fn one_that_needs_a_terminal_has_none() {
    let (_scene, ran) = checked(
        "[checks.test]\nrun = \"[ -t 0 ] && exit 0; cat; read answer < /dev/tty || { echo nobody answers; exit 9; }\"\ntimeout = \"1m\"\n",
    );
    ran.assert_claim(0, "tests_pass", "refuted", &["exited with 9", "nobody answers"]);
}

#[test]
fn one_that_is_missing_refutes_nothing() {
    for toml in [
        "[checks]\ntest = [\"no-such-program\", \"--all\"]\n",
        "[checks]\ntest = \"no-such-program --all\"\n",
        "[checks]\ntest = \"./no/such/script.sh\"\n",
    ] {
        let (_scene, ran) = checked(toml);
        ran.assert_claim(0, "tests_pass", "unverifiable", &["could not be run"]);
    }
    let (_scene, ran) = checked("[checks]\ntesting = \"true\"\n");
    ran.assert_claim(
        0,
        "tests_pass",
        "unverifiable",
        &["there is no check 'test'", "did you mean 'testing'", "counterfoil.toml"],
    );
}

#[test]
fn a_damaged_configuration_is_named_with_the_place_and_nothing_is_run() {
    for (toml, words) in [
        ("[checks\ntest = 1\n", &["counterfoil.toml", "line 1"][..]),
        (
            "[checks]\ntest = { run = \"true\", timeout = \"soon\" }\n",
            &["counterfoil.toml", "line 2", "90s"],
        ),
        ("[checks]\ntest = \"\"\n", &["counterfoil.toml", "has no command"]),
        ("[claims]\nnoise = [\"a{\"]\n", &["counterfoil.toml", "is not a valid glob"]),
    ] {
        refused(toml.as_bytes(), words);
    }
    refused(b"[checks]\ntest = \"\xff\"\n", &["counterfoil.toml", "not UTF-8"]);
}

/// Asserts that a run with this configuration is not started.
fn refused(toml: &[u8], words: &[&str]) {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", toml);
    project.write_one_step("", "");
    project.write_script(&[tested("a.rs", "new\n")]);
    let before = project.user_files();
    let output = project.run(&["run", "repo/flow.yaml", "--agent", "script:script.yaml"]);
    output.expect(2, words);
    project.assert_only_changed(&before, &[]);
    assert!(!project.state().join("transcripts").exists(), "an agent was asked");
}

#[test]
fn an_agent_does_not_redefine_what_it_is_checked_by() {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", "[checks]\ntest = \"exit 1\"\n");
    project.write_one_step("", "");
    let reply = replies(
        &json!({"files": ["a.rs"], "tests_pass": true}),
        json!({"writes": {"a.rs": "new\n", "counterfoil.toml": "[checks]\ntest = \"true\"\n"}}),
    );
    let ran = project.run_replies(&[reply], &["a.rs"]);
    ran.assert_claim(0, "tests_pass", "refuted", &["exited with 1"]);
    ran.assert_claim(0, "protected", "refuted", &["counterfoil.toml", "restored"]);
    ran.assert_claim(0, "files", "verified", &[]);
}

/// A check that counts how often it was run, beside the repository.
fn counting(project: &DirtyProject) {
    let counter = project.scratch_path("counter");
    project.write(
        "counterfoil.toml",
        format!("[checks]\ntest = \"echo ran >> '{}'\"\n", counter.display()),
    );
}

fn counted(project: &DirtyProject) -> usize {
    std::fs::read_to_string(project.scratch_path("counter")).unwrap_or_default().lines().count()
}

#[test]
fn every_result_is_checked_also_on_the_same_tree() {
    let project = DirtyProject::new();
    counting(&project);
    project.write_workflow(
        "",
        "first",
        "  first: { agent: worker, go: same }\n  same: { agent: worker, go: changed }\n  changed: { agent: worker, go: back }\n  \
         back: { agent: worker, go: end }",
    );
    let nothing = replies(&json!({"files": [], "tests_pass": true}), json!({}));
    let ran = project.run_replies(
        &[tested("a.rs", "1\n"), nothing, tested("a.rs", "2\n"), tested("a.rs", "1\n")],
        &["a.rs"],
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for n in 0..4 {
        assert_eq!(ran.verdict(n, "tests_pass"), "verified");
    }
    // Files that git ignores are not part of a tree, and an agent may have changed them.
    assert_eq!(counted(&project), 4, "each result was checked");
    project.write("b.rs", "by the user\n");
    let again = project.run_replies(
        &[
            tested("a.rs", "2\n"),
            tested("c.rs", "3\n"),
            tested("c.rs", "4\n"),
            tested("c.rs", "5\n"),
        ],
        &["a.rs", "c.rs"],
    );
    assert_eq!(again.ended(), ("done", None, 0), "{again:?}");
    assert_eq!(counted(&project), 8);
}

#[test]
fn what_is_ignored_is_not_run() {
    let project = DirtyProject::new();
    counting(&project);
    project.write_one_step("", ", claims: { tests_pass: ignore, files: ignore }");
    let ran = project
        .run_replies(&[replies(&json!({"files": ["no.rs"], "tests_pass": true}), json!({}))], &[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(counted(&project), 0);
    let names: Vec<&str> = ran.report["attempts"][0]["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| claim["claim"].as_str().unwrap())
        .collect();
    assert!(!names.contains(&"tests_pass") && !names.contains(&"files"), "{names:?}");
}

#[test]
fn a_check_that_fails_sends_the_agent_back_with_its_output() {
    let project = DirtyProject::new();
    project.write(
        "counterfoil.toml",
        "[checks]\ntest = \"grep -q right a.rs || { echo 'a.rs is not right'; exit 4; }\"\n",
    );
    project.write_one_step("", ", claims: { tests_pass: require }");
    let ran =
        project.run_replies(&[tested("a.rs", "wrong\n"), tested("a.rs", "right\n")], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = project.prompt(&ran, "work_1.2");
    for words in ["`tests_pass`", "claimed: true", "exited with 4", "a.rs is not right"] {
        assert!(prompt.contains(words), "'{words}': {prompt}");
    }
    assert_eq!(ran.verdict(0, "tests_pass"), "verified");
}

#[test]
fn one_that_writes_noise_each_time_changes_nothing() {
    let project = DirtyProject::new();
    let check = "mkdir -p __pycache__ && date +%s%N > __pycache__/a.pyc";
    project.write("counterfoil.toml", format!("[checks]\ntest = \"{check}\"\n"));
    project.write_one_step("", ", repairs: 1, claims: { files: require, tests_pass: require }");
    let says = |file: &str, more| replies(&json!({"files": [file], "tests_pass": true}), more);
    let replies = [says("b.rs", json!({"writes": {"a.rs": "new\n"}})), says("a.rs", json!({}))];
    let ran = project.run_replies(&replies, &["a.rs", "__pycache__/a.pyc"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.verdict(0, "tests_pass"), "verified");
    // Noise does not hide that a file of the agent was written again.
    let check = format!("{check} && echo more >> a.rs");
    project.write("counterfoil.toml", format!("[checks]\ntest = \"{check}\"\n"));
    let replies = [says("b.rs", json!({"writes": {"a.rs": "newer\n"}})), says("a.rs", json!({}))];
    let ran = project.run_replies(&replies, &["a.rs", "__pycache__/a.pyc"]);
    assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{ran:?}");
    ran.assert_claim(0, "tests_pass", "stale", &["changed the files that it checks", "a.rs"]);
}
