//! Checks as a part of a step: the engine runs them itself, and what the agent says does not
//! matter.

use crate::shell_project::run_arguments;
use crate::verification::project::{DirtyProject, VerifiedRun, claims, replies};
use counterfoil_testkit::{TIMEOUT, wait_until};
use serde_json::{Value, json};

/// A worker whose work is checked, and sent back while the tests fail.
const LOOP: &str = "\
\x20 work:
    agent: worker
    checks: [test, lint]
    next:
      - { when: checks.test.status == \"failed\", set: { last: checks.test }, go: work, counts: rounds, reason: checks.test.reason }
      - { when: checks.test.status == \"passed\", go: end }
      - { go: unknown }
  unknown: { end: blocked, reason: \"'nothing was checked'\" }
  exhausted: { end: exhausted }";
const TOP: &str = "variables: { last: check? }\nlimits: { rounds: { max: 3, then: exhausted } }";

/// A project whose check counts its runs and passes once `a.rs` says that it is good.
fn project(check: &str) -> DirtyProject {
    let project = DirtyProject::new();
    let count = project.scratch_path("count");
    project.write("prompts/work.md", "Work.{% if last %} Seen: {{ last.output }}{% endif %}\n");
    project.write(
        "counterfoil.toml",
        format!("[checks]\ntest = \"echo ran >> {}; {check}\"\n", count.display()),
    );
    project.write_workflow(TOP, "work", LOOP);
    project
}

const GOOD: &str = "cat a.rs; grep -q good a.rs";

/// How often the check was run.
fn runs(project: &DirtyProject) -> usize {
    let count = std::fs::read_to_string(project.scratch_path("count")).unwrap_or_default();
    count.lines().count()
}

/// The outcomes of a check, in the order in which the steps ran it; the first is at the base.
fn statuses(run: &VerifiedRun, name: &str) -> Vec<String> {
    let commands = run.report["commands"].as_array().unwrap();
    let status = |one: &Value| {
        let report = &one["checks"][name];
        let reused = if report["reused"] == true { " again" } else { "" };
        format!("{}{reused}", report["status"].as_str().unwrap_or("none"))
    };
    commands.iter().map(status).collect()
}

fn writes(text: &str) -> Value {
    // It says that the tests pass, or nothing at all: neither matters.
    replies(&json!({"files": ["a.rs"], "tests_pass": true}), json!({"writes": {"a.rs": text}}))
}

#[test]
fn the_check_decides_and_not_what_the_agent_says() {
    let project = project(GOOD);
    let ran = project.run_replies(&[writes("bad\n"), writes("good\n")], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.outcomes(), ["accepted", "accepted"]);
    // The claim that the tests pass was verified by the same check on the same tree.
    assert_eq!(statuses(&ran, "test"), ["failed", "failed again", "passed again"]);
    assert_eq!(runs(&project), 3);
    assert_eq!(statuses(&ran, "lint"), ["not-configured"; 3]);
    let first = &ran.report["commands"][1];
    assert_eq!(first["path"], json!(["work", "checks"]));
    assert_eq!(first["checks"]["test"]["exit_code"], 1);
    assert_eq!(first["checks"]["test"]["output"], "bad");
    assert!(project.prompt(&ran, "work_2.1").starts_with("Work. Seen: bad\n"));
    ran.assert_no_processes();
}

#[test]
fn a_red_base_is_said_before_anything_is_spent() {
    let project = project(GOOD);
    project.write_script(&[writes("good\n")]);
    let arguments: Vec<String> = run_arguments("flow.yaml", "script:script.yaml")[..4].to_vec();
    let output = project.run(&arguments);
    output.expect(0, &["nothing is spent yet"]);
    let printed = format!("{}{}", output.stdout, output.stderr);
    let base = printed.find("base/checks: test failed").unwrap();
    let work = printed.find("· work: worker").unwrap();
    assert!(base < work, "{printed}");
}

#[test]
fn evidence_of_the_step_before_is_not_reused() {
    let project = project(GOOD);
    // The first reply changes nothing: the base says how it stands.
    let idle = claims(&[], json!({}));
    let silent = |text: &str| claims(&["a.rs"], json!({"writes": {"a.rs": text}}));
    let ran = project.run_replies(&[idle, silent("bad\n"), silent("good\n")], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(statuses(&ran, "test"), ["failed", "failed", "failed", "passed"]);
    assert_eq!(runs(&project), 4);
}

#[test]
fn an_agent_does_not_choose_its_checks() {
    let project = project(GOOD);
    project.write_workflow(&format!("{TOP}\nwrites: [\"**\", counterfoil.toml]"), "work", LOOP);
    let easy = "[checks]\ntest = \"true\"\n";
    let cheat = replies(
        &json!({"files": ["a.rs", "counterfoil.toml"]}),
        json!({"writes": {"a.rs": "bad\n", "counterfoil.toml": easy}}),
    );
    let ran = project.run_replies(&[cheat, claims(&[], json!({}))], &["a.rs", "counterfoil.toml"]);
    // The definition from before the step counts for that step.
    assert_eq!(statuses(&ran, "test")[..2], ["failed", "failed"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn a_check_that_hangs_or_is_missing_fails() {
    let hanging = DirtyProject::new();
    hanging.write(
        "counterfoil.toml",
        "[checks]\ntest = { run = \"echo halfway; sleep 300\", timeout = \"1s\" }\nlint = \"no-such-program\"\n",
    );
    hanging.write_workflow("", "work", "  work:\n    agent: worker\n    checks: [test, lint]\n    next: [{ when: checks.test.status == \"failed\" && checks.lint.status == \"failed\" && !has(checks.test.exit_code), go: red, reason: checks.test.reason }, { go: end }]\n  red: { end: failed }");
    let ran =
        hanging.run_replies(&[claims(&["a.rs"], json!({"writes": {"a.rs": "x\n"}}))], &["a.rs"]);
    assert_eq!(ran.ended(), ("failed", None, 1), "{ran:?}");
    assert!(ran.reason().contains("took longer than 1 s"), "{}", ran.reason());
    assert_eq!(ran.report["commands"][1]["checks"]["test"]["output"], "halfway");
    ran.assert_no_processes();
}

#[test]
fn checks_run_in_the_worktree_of_their_step() {
    let project = project(GOOD);
    project.write_workflow(
        TOP,
        "work",
        &LOOP.replace("checks: [test", "workspace: worktree\n    checks: [test"),
    );
    let ran = project.run_replies(&[writes("good\n")], &["a.rs"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(statuses(&ran, "test"), ["failed", "passed again"]);
}

#[test]
fn checks_that_are_killed_or_interrupted_run_again_and_the_agent_does_not() {
    for signal in ["KILL", "INT"] {
        let project = DirtyProject::new();
        let (up, go) = (project.scratch_path("up"), project.scratch_path("go"));
        let check = format!(
            "grep -q new a.rs || exit 1; touch {}; while [ ! -e {} ]; do sleep 0.05; done",
            up.display(),
            go.display()
        );
        project.write("counterfoil.toml", format!("[checks]\ntest = \"{check}\"\n"));
        project.write_workflow("", "work", "  work:\n    agent: worker\n    checks: [test]\n    next: [{ when: checks.test.status == \"passed\", go: end }, { go: red }]\n  red: { end: failed }");
        project.write_script(&[claims(&["a.rs"], json!({"writes": {"a.rs": "new\n"}}))]);
        let live = project.start(&run_arguments("flow.yaml", "script:script.yaml"));
        wait_until(TIMEOUT, "the check is up", || up.exists().then_some(()));
        if signal == "KILL" {
            assert!(live.kill());
        } else {
            live.signal(signal);
            live.wait().expect(130, &[]);
        }
        std::fs::write(&go, "").unwrap();
        let ran: VerifiedRun = project.run(&["resume", "last", "--format", "json"]).into();
        assert_eq!(ran.ended(), ("done", None, 0), "{signal}: {ran:?}");
        assert_eq!(ran.outcomes(), ["accepted"], "{signal}: the agent ran once");
        let again = ran.report["commands"].as_array().unwrap().len();
        assert_eq!(again, 3, "{signal}: the base, the checks that were lost, and again");
        ran.assert_no_processes();
    }
}
