//! What the spec leaves open is shown to a person and answered, one question after the other.

use super::{AGENTS, ASKED, feedback, good, play, run, succeeded, with, worked};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::json;

const OPEN: &str = "# Search\n\n[NEEDS CLARIFICATION: does case matter?]\n\n- REQ-1 [NEEDS CLARIFICATION: by date?]\n";

/// The spec has two questions, and clarify settles none of them.
fn open() -> Scenario {
    play()
        .says("specify", succeeded("specify"))
        .writes("specs/search/spec.md", OPEN)
        .says("clarify", with("clarify", "/remaining_ambiguities", json!(2)))
}

/// Clarify writes down what it was told.
fn settled(scenario: Scenario, spec: &str) -> Scenario {
    scenario.says("clarify", succeeded("clarify")).writes("specs/search/spec.md", spec)
}

fn asked(ran: &ScenarioRun) -> &str {
    ran.report["questions"][0]["question"].as_str().unwrap()
}

#[test]
fn each_question_is_asked_by_itself_and_clarify_gets_all_answers() {
    let ran = run(settled(open(), "# Search\n"), "standard");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["question"]), "{ran:?}");
    assert!(asked(&ran).contains("\n\ndoes case matter?\n"), "{}", asked(&ran));
    let ran = ran.answer_and_resume("question", "yes, it matters");
    assert!(asked(&ran).contains("\n\nby date?\n"), "{}", asked(&ran));
    assert_eq!(worked(&ran), ["specify", "clarify"], "clarify is asked when all are answered");
    let ran = ran.answer_and_resume("question", "newest first");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[..4], ["specify", "clarify", "clarify", "plan"]);
    let sent = feedback(&ran, "clarify#2");
    let words: Vec<&str> = sent["issues_to_fix"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        words,
        ["does case matter? Answer: yes, it matters", "by date? Answer: newest first"]
    );
    let told = "- by date? Answer: newest first";
    assert!(ran.prompt("implement#1", 1).contains(told));
    assert!(ran.read("specs/search/pipeline-report.md").contains(told));
}

#[test]
fn a_question_can_be_left_open_and_that_is_remembered() {
    let left = "# Search\n\n[NEEDS CLARIFICATION: by date?]\n";
    let scenario = settled(open(), left).answer("question", "yes").answer("question", "skip");
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let remark = "- left open by a person: by date?";
    assert!(ran.prompt("plan#1", 1).contains(remark));
    assert!(ran.read("specs/search/pipeline-report.md").contains(remark));
}

#[test]
fn an_answer_that_clarify_does_not_write_down_is_for_a_person() {
    let scenario = settled(open(), OPEN).answer("question", "yes").answer("question", "no");
    let ran = run(scenario, "standard");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["decide"]), "{ran:?}");
    assert!(asked(&ran).contains("does case matter?; by date?"), "{}", asked(&ran));
}

#[test]
fn a_question_can_be_paused_and_a_run_aborted_there() {
    let ran = run(open().answer("question", "pause"), "standard");
    assert_eq!(ran.questions(), ["paused"]);
    let ran = ran.answer_and_resume("paused", "resume");
    assert_eq!(ran.questions(), ["question#2"], "{ran:?}");
    assert_eq!(ran.answer_and_resume("question", "abort").ended(), ("blocked", None, 7));
}

#[test]
fn a_simple_run_shows_what_is_open_and_words_go_to_specify() {
    let scenario =
        play().says("specify", succeeded("specify")).writes("specs/search/spec.md", OPEN);
    let scenario = AGENTS.into_iter().fold(scenario, good);
    let ran = scenario.run(&[&ASKED[..], &["--input", "size=simple"]].concat());
    assert_eq!(ran.questions(), ["approve"], "{ran:?}");
    assert!(asked(&ran).contains("- does case matter?\n- by date?\n"), "{}", asked(&ran));
    let ran = ran.answer_and_resume("approve", "specify: case matters, newest first");
    assert_eq!(ran.questions(), ["approve#2"], "{ran:?}");
    let sent = feedback(&ran, "specify#2");
    assert_eq!(sent["issues_to_fix"][0]["message"], "case matters, newest first");
    assert_eq!(ran.answer_and_resume("approve", "proceed").ended(), ("done", None, 0));
}
