//! The review and the merge gate, and what follows a rejection.

use super::{
    ONE, Pipeline, approved, coded, commits, done, failing, log, master, of, pipeline, ready,
    refused, rejected, reviewed, status, with,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::json;

#[test]
fn rejected_twice_then_approved() {
    let ran = coded()
        .review("a", rejected("the empty list is not tested"))
        .fix("a")
        .review("a", rejected("the name says nothing"))
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/review"), ["accepted"; 3]);
    assert_eq!(of(&ran, "build/a/work/fix"), ["accepted"; 2]);
    let (first, second) =
        (ran.prompt("build/a/work/fix#1", 1), ran.prompt("build/a/work/fix#2", 1));
    assert!(first.contains("- major: the empty list is not tested"), "{first}");
    assert!(
        second.contains("- major: the name says nothing") && !second.contains("the empty list"),
        "{second}"
    );
    assert_eq!(ran.git(&["show", "HEAD:src/a.rs"]), "// fixed\n");
}

#[test]
fn every_kind_of_issue_reaches_the_executor_as_data() {
    let all = json!({
        "approved": false, "issues_total": 3, "critical": ["it loses notes"], "major": ["no test for that"],
        "minor": ["a long line"], "security": "keys are logged", "test_coverage": "insufficient",
        "recommendation": "block"
    });
    let block = crate::packs::scenario::framed(counterfoil::Framing::OutputBlock, &all);
    let ran = coded()
        .raw("code-reviewer", &format!("What a mess this is!\n{block}"))
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = ran.prompt("build/a/work/fix#1", 1);
    for issue in [
        "- critical: it loses notes",
        "- major: no test for that",
        "- minor: a long line",
        "- security: keys are logged",
        "- test coverage: insufficient",
    ] {
        assert!(prompt.contains(issue), "{issue}: {prompt}");
    }
    assert!(!prompt.contains("What a mess"), "{prompt}");
}

#[test]
fn a_rejection_that_names_nothing_is_still_one() {
    let bare = with(approved(), &json!({"approved": false, "recommendation": "revise"}));
    let ran =
        coded().review("a", bare).fix("a").review("a", approved()).gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(
        ran.prompt("build/a/work/fix#1", 1).contains("nothing was named, but it was not accepted")
    );
}

#[test]
fn a_later_review_is_told_what_the_last_one_found() {
    let ran = coded()
        .review("a", rejected("the name says nothing"))
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert!(!ran.prompt("build/a/work/review#1", 1).contains("This is review"));
    let second = ran.prompt("build/a/work/review#2", 1);
    assert!(
        second.contains("This is review 2") && second.contains("- major: the name says nothing"),
        "{second}"
    );
    assert!(second.contains("- src/a.rs"), "{second}");
}

/// A feature whose review says no three times.
fn rejected_three_times() -> Scenario {
    let mut scenario = coded();
    for round in 1..=3 {
        scenario = scenario.review("a", rejected(&format!("issue {round}")));
        if round < 3 {
            scenario = scenario.fix("a");
        }
    }
    scenario
}

/// A feature whose merge gate says no three times.
fn refused_three_times() -> Scenario {
    let mut scenario = reviewed();
    for round in 1..=3 {
        scenario = scenario.gate("a", refused(&format!("issue {round}")));
        if round < 3 {
            scenario = scenario.fix("a");
        }
    }
    scenario
}

fn asks(ran: &ScenarioRun, who: &str) {
    assert_eq!(ran.ended(), ("waiting", None, 4), "{ran:?}");
    let question = &ran.report["questions"][0];
    assert_eq!(question["choices"], json!(["retry", "accept", "skip"]));
    let text = question["question"].as_str().unwrap();
    assert!(text.contains(&format!("The {who} of 'a' has said no three times")), "{text}");
    assert!(text.contains("issue 3") && !text.contains("issue 2"), "{text}");
    assert_eq!(commits(ran), [""; 0]);
}

#[test]
fn rejected_three_times_asks_a_person() {
    let ran = rejected_three_times().run(&ONE);
    asks(&ran, "review");
    assert_eq!(of(&ran, "build/a/work/review"), ["accepted"; 3], "there are at most three reviews");
    assert_eq!(of(&ran, "build/a/work/fix"), ["accepted"; 2]);
}

#[test]
fn a_rejected_feature_can_be_tried_again() {
    let ran = rejected_three_times()
        .answer("decide", "retry")
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.prompt("build/a/work/fix#3", 1).contains("- major: issue 3"));
    assert!(log(&master(&ran)).contains("somebody wants another try"));
}

#[test]
fn trying_again_has_an_end() {
    let mut scenario = rejected_three_times();
    for _ in 0..3 {
        scenario = scenario.answer("decide", "retry");
        for _ in 0..3 {
            scenario = scenario.fix("a").review("a", rejected("no"));
        }
    }
    let ran = scenario.answer("decide", "retry").run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/review").len(), 12);
    assert!(ran.reason().contains("rejected again and again: major: no"), "{}", ran.reason());
}

#[test]
fn a_rejected_feature_can_be_accepted_and_the_commit_names_its_issues() {
    let ran = rejected_three_times().answer("decide", "accept").gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let message = ran.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Known issue: major: issue 3"), "{message}");
    let gate = ran.prompt("build/a/work/merge-gate#1", 1);
    assert!(
        gate.contains("A person has accepted these issues") && gate.contains("- major: issue 3"),
        "{gate}"
    );
}

#[test]
fn a_rejected_feature_can_be_skipped_with_what_depends_on_it() {
    let mut scenario = pipeline()
        .plan("a", &[], 1, 1)
        .plan("b", &["a"], 1, 1)
        .plan("c", &[], 2, 1)
        .tdd("a", "1/1");
    for round in 1..=3 {
        scenario = scenario.review("a", rejected("no"));
        if round < 3 {
            scenario = scenario.fix("a");
        }
    }
    let ran = scenario
        .answer("decide", "skip")
        .build("c")
        .run(&["--task", "a: Add a\nb: Add b\nc: Add c"]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(commits(&ran), ["feat(c): Add c"]);
    let master = master(&ran);
    assert_eq!(["a", "b", "c"].map(|slug| status(&master, slug)), ["Skipped", "Skipped", "Done"]);
}

#[test]
fn a_fix_whose_tests_fail_is_not_reviewed() {
    let ran = coded()
        .review("a", rejected("the name says nothing"))
        .says("tdd-task-executor", failing("1/1"))
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let moves: Vec<String> =
        ran.transitions().into_iter().filter(|step| step.contains("judge>")).collect();
    let expected = ["judge>next-phase", "judge>fix", "judge>review", "judge>done"];
    assert_eq!(moves, expected.map(|step| format!("build/a/work: {step}")));
    assert!(ran.prompt("build/a/work/fix#2", 1).contains("- this test fails: adds_one"));
}

#[test]
fn a_fix_has_three_attempts() {
    let mut scenario = coded().review("a", rejected("the name says nothing"));
    for _ in 0..3 {
        scenario = scenario.says("tdd-task-executor", failing("1/1"));
    }
    let ran = scenario.run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/fix"), ["accepted"; 3]);
    assert_eq!(of(&ran, "build/a/work/review"), ["accepted"]);
}

#[test]
fn a_blocker_in_a_fix_blocks_the_feature() {
    let blocker = with(done("1/1"), &json!({"blockers": ["nobody knows what it should do"]}));
    let ran =
        coded().review("a", rejected("it is wrong")).says("tdd-task-executor", blocker).run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("nobody knows what it should do"), "{}", ran.reason());
}

#[test]
fn the_merge_gate_sends_blocking_issues_to_the_executor_and_looks_again() {
    let ran = reviewed()
        .gate("a", refused("the page is not linked"))
        .fix("a")
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let fix = ran.prompt("build/a/work/fix#1", 1);
    assert!(
        fix.contains("by the merge gate") && fix.contains("- blocking: the page is not linked"),
        "{fix}"
    );
    assert_eq!(
        of(&ran, "build/a/work/review"),
        ["accepted"],
        "it goes back to the gate that said no"
    );
    assert!(
        ran.prompt("build/a/work/merge-gate#2", 1).contains("- blocking: the page is not linked")
    );
    let master = master(&ran);
    for line in ["a: merge gate 1 refused", "a: merge gate 2 passed"] {
        assert!(log(&master).contains(line), "{line}: {master}");
    }
}

#[test]
fn refused_three_times_asks_a_person() {
    let ran = refused_three_times().run(&ONE);
    asks(&ran, "merge gate");
    assert_eq!(
        of(&ran, "build/a/work/merge-gate"),
        ["accepted"; 3],
        "there are at most three looks"
    );
}

#[test]
fn a_refused_feature_can_be_tried_again() {
    let ran = refused_three_times().answer("decide", "retry").fix("a").gate("a", ready()).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/merge-gate"), ["accepted"; 4]);
}

#[test]
fn a_refused_feature_can_be_accepted() {
    let ran = refused_three_times().answer("decide", "accept").run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.git(&["log", "-1", "--format=%B"]).contains("Known issue: blocking: issue 3"));
}

#[test]
fn a_refused_feature_can_be_skipped() {
    let ran = refused_three_times().answer("decide", "skip").run(&ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(commits(&ran), [""; 0]);
    assert_eq!(status(&master(&ran), "a"), "Skipped");
}

/// What the engine runs when somebody says that the tests pass.
const CHECK: &str = "[checks]\ntest = \"! grep -q broken src/a.rs\"\n";

#[test]
fn what_was_simplified_and_fails_its_tests_is_fixed_before_the_merge_gate() {
    let ran = reviewed()
        .file("counterfoil.toml", CHECK)
        .commit()
        .says(
            "code-simplifier",
            crate::packs::scenario::example("feature-pipeline/code-simplifier"),
        )
        .writes("src/a.rs", "// broken\n")
        .fix("a")
        .gate("a", ready())
        .run(&["--task", "a: Add a", "--input", "passes=simplify"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(of(&ran, "build/a/work/merge-gate"), ["accepted"]);
    let fix = ran.prompt("build/a/work/fix#1", 1);
    assert!(fix.contains("- since the code was simplified: the tests do not pass: "), "{fix}");
}

#[test]
fn reviewers_change_nothing() {
    let spoil = "echo '// spoilt' >> src/a.rs";
    let ran = coded().review("a", approved()).exec(spoil).gate("a", ready()).exec(spoil).run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.git(&["show", "HEAD:src/a.rs"]), "// 1/1\n");
    assert_eq!(ran.read("src/a.rs"), "// 1/1\n");
}
