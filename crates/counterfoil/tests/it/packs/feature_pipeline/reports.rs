//! Result blocks that are missing, wrong or hidden: contract violations of the origin.

use super::{
    ONE, Pipeline, approved, coded, commits, done, failing, of, planned, ready, reviewed, status,
    with,
};
use super::{master, pipeline, planning};
use crate::packs::scenario::example;
use serde_json::json;

#[test]
fn a_missing_block_is_repaired_by_the_reminder_and_the_work_is_not_redone() {
    let ran = planned()
        .raw("tdd-task-executor", "Phase 1 is done, all tests pass.")
        .writes("src/a.rs", "// work\n")
        .tests("a_1")
        .says("tdd-task-executor", done("1/1"))
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["accepted"]);
    assert_eq!(ran.attempt("build/a/work/tdd#1")["repairs_asked"], 1);
    let reminder = ran.prompt("build/a/work/tdd#1", 2);
    assert!(
        reminder.contains("---OUTPUT---") && reminder.contains("phase_complete:"),
        "{reminder}"
    );
    assert!(!reminder.contains("Build phase 1"), "{reminder}");
    assert_eq!(ran.git(&["show", "HEAD:src/a.rs"]), "// work\n");
}

#[test]
fn a_block_that_is_missing_three_times_is_flagged_as_a_blocker() {
    let mut scenario = planned();
    for _ in 0..3 {
        scenario =
            scenario.raw("tdd-task-executor", "All is done.").writes("src/a.rs", "// work\n");
    }
    let ran = scenario.build("a").run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/tdd"), ["contract"]);
    let attempt = ran.attempt("build/a/work/tdd#1");
    assert_eq!(
        (&attempt["repairs_asked"], attempt["replies"].as_array().unwrap().len()),
        (&json!(2), 3)
    );
    assert_eq!(status(&master(&ran), "a"), "Blocked");
    assert!(super::kept(&ran).contains("+// work\n"), "what was done is kept: {ran:?}");
}

#[test]
fn the_warning_names_the_agent_and_its_contract() {
    let mut scenario = planned();
    for _ in 0..3 {
        scenario = scenario.raw("tdd-task-executor", "All is done.");
    }
    let ran = scenario.run(&ONE);
    let attempt = ran.attempt("build/a/work/tdd#1");
    assert_eq!(attempt["agent"], "tdd-task-executor");
    assert!(
        attempt["contract"].as_str().unwrap().starts_with("feature-pipeline/tdd-task-executor@")
    );
    assert_eq!(attempt["violations"][0]["code"], "C0101");
    let words = ran.run_command(&["show", ran.run_id()]);
    let words = words.stdout + &words.stderr;
    assert!(words.contains("tdd-task-executor"), "{words}");
}

#[test]
fn what_can_be_read_of_a_rejected_block_is_in_the_journal_and_is_no_result() {
    let half = "---OUTPUT---\nphase: 1/1\nphase_complete: yes\ntests_added: 4\ntests_passing: true\n---END---";
    let mut scenario = planned();
    for _ in 0..3 {
        scenario = scenario.raw("tdd-task-executor", half);
    }
    let ran = scenario.build("a").run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/review"), [""; 0]);
    let journal = serde_json::to_string(&ran.events()).unwrap();
    assert!(
        journal.contains(r#""partial":{"#) && journal.contains(r#""tests_added":4"#),
        "{journal}"
    );
}

#[test]
fn the_echo_of_the_template_before_the_block() {
    let template = "I must end with:\n---OUTPUT---\nphase: [phase number]/[total phases]\n\
        phase_complete: [true/false]\ntests_passing: [true/false]\n---END---\n\n";
    let block = crate::packs::scenario::framed(counterfoil::Framing::OutputBlock, &done("1/1"));
    let ran = planned()
        .raw("tdd-task-executor", &format!("{template}{block}"))
        .writes("src/a.rs", "// work\n")
        .tests("a_1")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("build/a/work/tdd#1")["repairs_asked"], 0);
}

#[test]
fn the_template_alone_is_no_result() {
    let template = "---OUTPUT---\napproved: [true/false]\nissues_total: [count]\ncritical: none\nmajor: none\n\
        minor: none\nsecurity: none\ntest_coverage: adequate\nrecommendation: approve\n---END---";
    let ran =
        coded().raw("code-reviewer", template).review("a", approved()).gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("build/a/work/review#1")["repairs_asked"], 1);
    assert!(ran.prompt("build/a/work/review#1", 2).contains("[true/false]"));
}

#[test]
fn a_reviewer_without_a_block_has_not_approved() {
    let mut scenario = coded();
    for _ in 0..3 {
        scenario = scenario.raw("code-reviewer", "Looks good to me, approved!");
    }
    let ran = scenario.gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/merge-gate"), [""; 0]);
    assert_eq!(commits(&ran), [""; 0]);
}

#[test]
fn a_merge_gate_without_a_block_is_closed() {
    let mut scenario = reviewed();
    for _ in 0..3 {
        scenario = scenario.raw("review-pr", "Ship it.");
    }
    let ran = scenario.run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(commits(&ran), [""; 0]);
}

#[test]
fn an_approval_with_a_critical_issue_is_refused_and_repaired() {
    let both = with(approved(), &json!({"issues_total": 1, "critical": ["anybody can log in"]}));
    let ran = coded()
        .review("a", both)
        .review("a", super::rejected("anybody can log in"))
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let again = ran.prompt("build/a/work/review#1", 2);
    assert!(again.contains("`approved` is true, but `critical` names issues"), "{again}");
    assert_eq!(of(&ran, "build/a/work/review"), ["accepted"; 2]);
}

#[test]
fn a_phase_that_is_complete_with_failing_tests_is_refused_and_repaired() {
    let both = with(failing("1/1"), &json!({"phase_complete": true}));
    let ran = planned().says("tdd-task-executor", both).build("a").run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let again = ran.prompt("build/a/work/tdd#1", 2);
    assert!(again.contains("`phase_complete` is true, but `test_failures`"), "{again}");
}

#[test]
fn a_merge_with_failing_tests_is_refused_and_repaired() {
    let both = with(ready(), &json!({"test_status": "some-fail"}));
    let ran = reviewed().gate("a", both).gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.prompt("build/a/work/merge-gate#1", 2).contains("`test_status` is not all-pass"));
}

#[test]
fn every_prompt_ends_with_what_must_be_handed_back() {
    let hunted = json!({
        "silent_failures_found": 0, "locations": null, "severity": "none", "recommendations": null
    });
    let typed = json!({
        "types_analyzed": 1, "quality_score": 9, "issues": null, "recommendations": null
    });
    let ran = coded()
        .review("a", super::rejected("the name says nothing"))
        .fix("a")
        .review("a", approved())
        .says("code-simplifier", example("feature-pipeline/code-simplifier"))
        .says("silent-failure-hunter", hunted)
        .says("type-design-analyzer", typed)
        .gate("a", ready())
        .run(&["--task", "a: Add a", "--input", "passes=simplify,silent-failure,type-design"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for (attempt, key) in [
        ("plan/a/write#1", "complexity: "),
        ("build/a/work/tdd#1", "phase_complete: "),
        ("build/a/work/review#1", "recommendation: "),
        ("build/a/work/fix#1", "phase_complete: "),
        ("build/a/work/simplify#1", "lines_removed: "),
        ("build/a/work/hunt#1", "silent_failures_found: "),
        ("build/a/work/types#1", "quality_score: "),
        ("build/a/work/merge-gate#1", "ready_to_merge: "),
    ] {
        let prompt = ran.prompt(attempt, 1);
        let (_, suffix) = prompt
            .split_once("End your answer with this block")
            .unwrap_or_else(|| panic!("{attempt}: {prompt}"));
        let (_, block) = suffix.split_once("---OUTPUT---\n").unwrap();
        let (block, _) = block.split_once("---END---\n").unwrap();
        assert!(block.contains(key), "{attempt}: {block}");
        // Nothing but examples of the block comes after its description.
        assert!(suffix.trim_end().ends_with("---END---"), "{attempt}: {suffix}");
    }
}

#[test]
fn a_lost_connection_is_tried_again() {
    let ran = pipeline()
        .reply("todo-doc-generator")
        .when(&planning("a"))
        .fails("transport")
        .plan("a", &[], 1, 1)
        .build("a")
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "plan/a/write"), ["transport", "accepted"]);
}
