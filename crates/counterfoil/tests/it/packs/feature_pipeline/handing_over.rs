//! What the engine knows reaches the agents, and what they remark reaches the report.

use super::{
    ONE, Pipeline, approved, coded, doc, done, draft, master, of, pipeline, planned, ready,
    rejected, reviewed, todo, with,
};
use crate::packs::scenario::Scenario;
use serde_json::json;

/// A check that fails with a message until the code says that it works.
const CHECK: &str =
    "[checks]\ntest = \"grep -q works src/a.rs || { echo 'adds_one: two is not one'; exit 1; }\"\n";

fn checked() -> Scenario {
    let fixed = json!({"files_changed": ["src/a.rs"], "tests_added": 0});
    pipeline()
        .file("counterfoil.toml", CHECK)
        .commit()
        .plan("a", &[], 1, 1)
        .tdd("a", "1/1")
        .says("tdd-task-executor", with(done("1/1"), &fixed))
        .when("tried before")
        .writes("src/a.rs", "// it works\n")
        .review("a", approved())
        .gate("a", ready())
}

#[test]
fn the_next_attempt_gets_the_failing_output_and_knows_whose_work_it_finds() {
    let ran = checked().run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let base = ran.git(&["rev-parse", "--short=12", "HEAD~1"]);
    let prompt = ran.prompt("build/a/work/tdd#2", 1);
    for part in [
        "<output>\nadds_one: two is not one\n</output>",
        "What was written is kept: your folder holds it, uncommitted",
        base.trim(),
        "<plan>\n# a\n</plan>",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(!ran.prompt("build/a/work/tdd#1", 1).contains("<output>"));
}

#[test]
fn reviewer_and_merge_gate_are_given_the_engines_test_result() {
    let ran = checked().run(&ONE);
    for attempt in ["build/a/work/review#1", "build/a/work/merge-gate#1"] {
        let prompt = ran.prompt(attempt, 1);
        assert!(prompt.contains("after the last change: it passed"), "{attempt}: {prompt}");
        assert!(prompt.contains("grep -q works src/a.rs"), "{attempt}: {prompt}");
    }
}

#[test]
fn without_a_check_nobody_is_told_that_the_tests_pass() {
    let ran = planned().build("a").run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for attempt in ["build/a/work/review#1", "build/a/work/merge-gate#1"] {
        let prompt = ran.prompt(attempt, 1);
        assert!(prompt.contains("Nobody has verified that the tests pass"), "{attempt}: {prompt}");
        assert!(!prompt.contains("its tests pass") && !prompt.contains("it passed"), "{prompt}");
    }
}

#[test]
fn reviewers_are_given_the_files_and_the_change_between_marks() {
    let ran = planned().build("a").run(&ONE);
    for attempt in ["build/a/work/review#1", "build/a/work/merge-gate#1"] {
        let prompt = ran.prompt(attempt, 1);
        assert!(prompt.contains("- src/a.rs\n- tests/a_1.rs\n"), "{prompt}");
        let (_, change) = prompt.split_once("<change>\n").unwrap();
        let (change, _) = change.split_once("</change>").unwrap();
        assert!(change.contains("+++ b/src/a.rs") && change.contains("+// 1/1"), "{change}");
        assert!(!change.contains("TODO.md"), "{change}");
    }
}

#[test]
fn what_is_remarked_beside_an_approval_reaches_the_merge_gate_and_the_report() {
    let minor =
        json!({"issues_total": 1, "minor": ["a long line"], "security": ["keys are logged"]});
    let warned = with(ready(), &json!({"warnings": ["an end-to-end test would help"]}));
    let ran = coded().review("a", with(approved(), &minor)).gate("a", warned).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let gate = ran.prompt("build/a/work/merge-gate#1", 1);
    let (_, report) =
        master(&ran).split_once("## Remarks").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    for remark in ["review, minor: a long line", "review, security: keys are logged"] {
        assert!(gate.contains(&format!("- {remark}")), "{gate}");
        assert!(report.contains(&format!("- a: {remark}")), "{report}");
    }
    assert!(report.contains("- a: merge gate: an end-to-end test would help"), "{report}");
}

#[test]
fn what_a_pass_found_reaches_the_merge_gate() {
    let found = json!({
        "silent_failures_found": 1, "locations": ["src/a.rs:1 - dropped"], "severity": "high",
        "recommendations": null
    });
    let ran = reviewed().says("silent-failure-hunter", found).fix("a").gate("a", ready()).run(&[
        "--task",
        "a: Add a",
        "--input",
        "passes=silent-failure",
    ]);
    let gate = ran.prompt("build/a/work/merge-gate#1", 1);
    assert!(
        gate.contains("- silent failure, high, sent to be fixed: src/a.rs:1 - dropped"),
        "{gate}"
    );
}

#[test]
fn a_person_can_say_how_to_try_again() {
    let mut scenario = coded();
    for round in 1..=3 {
        scenario = scenario.review("a", rejected("no"));
        if round < 3 {
            scenario = scenario.fix("a");
        }
    }
    let ran = scenario
        .answer("decide", "retry: use the old parser")
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let fix = ran.prompt("build/a/work/fix#3", 1);
    assert!(fix.contains("<words>\nuse the old parser\n</words>"), "{fix}");
    assert!(!ran.prompt("build/a/work/fix#2", 1).contains("<words>"));
    assert!(master(&ran).contains("somebody wants another try: use the old parser"));
}

#[test]
fn the_engine_puts_the_plan_in_place_and_no_draft_is_left() {
    let ran = planned().run(&ONE);
    assert!(ran.prompt("plan/a/write#1", 1).contains(&format!("to `{}`", draft("a"))));
    assert_eq!(ran.read(&doc("a")), "# a\n");
    assert!(!ran.path("feature-drafts").exists());
}

#[test]
fn a_planner_that_can_write_in_place_may() {
    let in_place = with(todo("a", &[], 1, 1), &json!({"path": doc("a")}));
    let ran = pipeline()
        .says("todo-doc-generator", in_place)
        .writes(&doc("a"), "# a, in place\n")
        .build("a")
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(
        ran.read(&doc("a")).starts_with("# a, in place\n\n## Progress\n"),
        "{}",
        ran.read(&doc("a"))
    );
}

#[test]
fn the_plans_can_be_in_another_folder_which_is_the_engines() {
    let ran = planned()
        .tdd("a", "1/1")
        .writes("docs/plans/a-TODO.md", "mine\n")
        .review("a", approved())
        .gate("a", ready())
        .run(&["--task", "a: Add a", "--input", "folder=docs/plans"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.read("docs/plans/a-TODO.md").starts_with("# a\n\n## Progress\n"));
    assert!(ran.read("docs/plans/MASTER.md").contains("| docs/plans/a-TODO.md |"));
    assert!(!ran.path(".claude").exists());
    assert!(
        ran.git(&["show", "--name-only", "--format=", "HEAD"]).contains("docs/plans/a-TODO.md")
    );
}

#[test]
fn drafts_of_somebody_else_are_not_touched() {
    let ran = planned().file("feature-drafts/mine.md", "mine\n").build("a").run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("feature-drafts"), "{}", ran.reason());
    assert_eq!(of(&ran, "plan/a/write"), [""; 0]);
    assert_eq!(ran.read("feature-drafts/mine.md"), "mine\n");
}
