//! What status.json and the prompts say of a session is true: CI, blocked tasks, the failed step,
//! what is not wanted, what gates said before.

use super::{
    Team, acceptance, asked, blocked, but, doc, done, held_back, ok, session, status, status_of,
    task, waits, went,
};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const GATES: &[&str] = &["Reviewer", "QA", "Security"];

#[test]
fn fail_at_qa_is_a_fix() {
    let scenario = Scenario::team().planned().codes().passes(&["Reviewer"]);
    let scenario =
        scenario.says("QA", status("FAIL", "It crashes.")).codes().passes(&["QA", "Security"]);
    let ran = scenario.released().play();
    done(&ran);
    assert!(went(&ran, "QA>FIX_TESTS"), "{ran:?}");
    assert!(ran.prompt("FIX_TESTS#1", 1).contains("It crashes."));
}

#[test]
fn a_task_that_waits_for_a_person_is_blocked() {
    let scenario = Scenario::team().planned().says("Coder", status("NEEDS_INFO", "Which file?"));
    let ran = scenario.play();
    waits(&ran);
    let waiting = &status_of(&ran)["blocked_tasks"][0];
    assert_eq!(waiting["id"], "T-001");
    assert!(waiting["reason"].as_str().unwrap().contains("Which file?"), "{waiting}");
}

#[test]
fn the_failed_step_is_named_and_forgotten_when_it_passes() {
    let keeps = "mkdir -p ../kept; cp .agents-work/*_play/status.json ../kept/";
    let scenario = Scenario::team().planned().codes().says("Reviewer", held_back("No."));
    let coded = but(&json!({"artifacts": {"files_changed": ["src/part.rs"]}}));
    let scenario =
        scenario.says("Coder", coded).exec(&format!("echo '// more' >> src/part.rs; {keeps}"));
    let ran = scenario.passes(GATES).released().play();
    done(&ran);
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(ran.path("../kept/status.json")).unwrap())
            .unwrap();
    assert_eq!(kept["last_failed_step"], "REVIEW of T-001");
    assert_eq!(status_of(&ran)["last_failed_step"], Value::Null);
    assert!(ran.prompt("FIX_REVIEW#1", 1).contains(r#""last_failed_step": "REVIEW of T-001""#));
    assert!(ran.prompt("QA#1", 1).contains(r#""last_failed_step": null"#));
}

#[test]
fn ci_is_red_after_a_check_of_a_task_failed() {
    let mut checked = task("T-001", &[]);
    checked["acceptance_checks"] = json!(["cmd: test -f src/wanted.rs"]);
    checked.as_object_mut().unwrap().remove("checks");
    let scenario =
        Scenario::team().intake().design().plan(&[checked]).codes().passes(&["Reviewer", "QA"]);
    let ran = scenario.says("Coder", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    let sent = ran.prompt("FIX_TESTS#1", 1);
    assert!(sent.contains(r#""ci_status": "red""#), "{sent}");
    assert!(sent.contains(r#""last_failed_step": "cmd: test -f src/wanted.rs""#), "{sent}");
    assert_eq!(status_of(&ran)["last_ci_result"], "red");
}

#[test]
fn a_check_that_failed_before_the_run_does_not_hold_back_and_is_said() {
    let base =
        Scenario::team().file("counterfoil.toml", "[checks]\nlint = \"echo long line; exit 1\"\n");
    let ran = base.commit().planned().codes().passes(GATES).released().play();
    done(&ran);
    let status = status_of(&ran);
    assert_eq!(status["last_ci_result"], "red");
    assert_eq!(status["known_issues"], json!(["the check lint fails, as it did before the run"]));
    let sent = ran.prompt("REVIEW#1", 1);
    assert!(
        sent.contains("lint: failed, as before the run") && sent.contains("begin: output of lint"),
        "{sent}"
    );
}

#[test]
fn what_is_not_wanted_reaches_every_agent() {
    let unwanted = json!({
        "criteria": [{"id": "AC-1", "description": "it works", "checks": ["cmd: true"]}], "non_goals": ["ranking"]
    });
    let mut planned = task("T-001", &[]);
    planned["non_goals"] = json!(["a new file format"]);
    let scenario = Scenario::team().intake_with(&unwanted.to_string()).design().plan(&[planned]);
    let ran = scenario.codes().passes(GATES).released().play();
    done(&ran);
    assert!(ran.prompt("DESIGN#1", 1).contains(r#""non_goals": ["ranking"]"#));
    for asked in ["IMPLEMENT#1", "REVIEW#1", "QA#1", "SECURITY#1"] {
        assert!(
            ran.prompt(asked, 1).contains(r#""non_goals": ["a new file format","ranking"]"#),
            "{asked}"
        );
    }
}

#[test]
fn what_gates_said_before_reaches_who_comes_next() {
    let scenario = Scenario::team().planned().codes().says("Reviewer", held_back("Too long."));
    let scenario = scenario.codes().says("Reviewer", held_back("No tests.")).codes();
    let ran = scenario.passes(GATES).released().play();
    done(&ran);
    for again in ["FIX_REVIEW#2", "REVIEW#3"] {
        let sent = ran.prompt(again, 1);
        assert!(
            sent.contains("REVIEW: Too long.") && sent.contains("REVIEW: No tests."),
            "{again}: {sent}"
        );
    }
    assert!(!ran.prompt("INTEGRATE#1", 1).contains("Too long."));
}

#[test]
fn every_prompt_says_what_to_fill_in_what_follows_and_when_to_block() {
    let scenario = Scenario::team().intake().design();
    let scenario = scenario.says("Designer", ok()).exec(&doc("design-specs/list.md", "# The list"));
    let scenario = scenario.plan(&[task("T-001", &[])]).codes().passes(GATES).released();
    let ran = scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "ui=true"]);
    done(&ran);
    for attempt in asked(&ran) {
        let sent = ran.prompt(&attempt, 1);
        for part in [
            "## What you fill in",
            "- OK: ",
            "- BLOCKED: ",
            "- NEEDS_INFO: ",
            "- FAIL: ",
            "Report BLOCKED, never OK, if ",
        ] {
            assert!(sent.contains(part), "{attempt} is not told {part:?}: {sent}");
        }
        // The keys are in the order of the contract.
        let places = [
            "\"id\"",
            "\"title\"",
            "\"goal\"",
            "\"non_goals\"",
            "\"context_files\"",
            "\"risk_flags\"",
            "\"repo_state\"",
        ]
        .map(|key| sent.find(key).unwrap());
        assert!(places.is_sorted(), "{attempt}: {sent}");
    }
    // Reviewers of the work know where it began and what changed.
    let base = ran.git(&["rev-parse", "HEAD"]);
    for looks in ["IMPLEMENT#1", "REVIEW#1", "QA#1", "SECURITY#1", "INTEGRATE#1", "RELEASE#1"] {
        assert!(ran.prompt(looks, 1).contains(base.trim()), "{looks}");
    }
    assert!(ran.prompt("REVIEW#1", 1).contains("src/part.rs"));
    // The examples differ by role.
    assert!(ran.prompt("QA#1", 1).contains("run_check test"));
    assert!(ran.prompt("SECURITY#1", 1).contains("\"attack\""));
    assert!(!ran.prompt("REVIEW#1", 1).contains("\"attack\""));
}

#[test]
fn what_a_person_has_to_do_by_hand_stands_in_the_report() {
    let coded = but(
        &json!({"artifacts": {"files_changed": ["src/part.rs"], "manual_steps": ["restart the server"], "notes": ["parts are sorted"]}}),
    );
    let scenario =
        Scenario::team().planned().says("Coder", coded).exec("echo '// more' >> src/part.rs");
    let ran = scenario.passes(GATES).released().play();
    done(&ran);
    let report = ran.read(&session(&ran, "report.md"));
    assert!(report.starts_with("# Report"), "{report}");
    assert!(
        report.contains("by hand: restart the server") && report.contains("parts are sorted"),
        "{report}"
    );
}

#[test]
fn one_name_for_acceptance_checks() {
    let mut named = task("T-001", &[]);
    named["acceptance_checks"] = named["checks"].take();
    named.as_object_mut().unwrap().remove("checks");
    let scenario =
        Scenario::team().intake_with(&acceptance("cmd: true")).design().plan(&[named]).codes();
    let ran = scenario.passes(GATES).released().play();
    done(&ran);
    assert!(
        ran.prompt("IMPLEMENT#1", 1)
            .contains(r#""acceptance_checks": ["cmd: test -f src/lib.rs"]"#)
    );
    assert!(ran.prompt("PLAN#1", 1).contains("acceptance_checks: [\"cmd:"));
    // The engine's own plan of a short session has the same name.
    let scenario = Scenario::team().intake().codes().passes(&["Reviewer", "QA"]).released();
    let ran =
        scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "path=lean"]);
    done(&ran);
    let plan = ran.json(&session(&ran, "tasks.yaml"));
    assert!(
        plan["tasks"][0]["acceptance_checks"].is_array() && plan["tasks"][0]["checks"].is_null(),
        "{plan}"
    );
}
