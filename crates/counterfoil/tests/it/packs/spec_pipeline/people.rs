//! Questions to people: the valid answers, and what follows.

use super::{AGENTS, ASKED, feedback, good, play, run, then_all_goes_well, with, worked};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::json;

/// A simple run in which these are the answers to `approve`.
fn answered(answers: &[&str]) -> ScenarioRun {
    let scenario = AGENTS.into_iter().fold(play(), good);
    let scenario =
        answers.iter().fold(scenario, |scenario, answer| scenario.answer("approve", answer));
    scenario.run(&[&ASKED[..], &["--input", "size=simple"]].concat())
}

fn waits(scenario: Scenario, size: &str, question: &str) -> ScenarioRun {
    let ran = run(scenario, size);
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec![question]), "{ran:?}");
    ran
}

#[test]
fn nothing_is_built_before_somebody_says_proceed() {
    let ran = answered(&[]);
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["approve"]));
    assert_eq!(worked(&ran), ["specify"]);
    let ran = ran.answer_and_resume("approve", "proceed");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "implement", "test"]);
}

#[test]
fn review_shows_what_an_agent_handed_back_and_asks_again() {
    let ran = answered(&["review specify"]);
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["approve#2"]));
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("specify, see specs/search/spec.md, returned:"), "{question}");
    assert!(question.contains("- clarifications_needed: 1"), "{question}");
    let ran = ran.answer_and_resume("approve", "review plan");
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("plan has not run."), "{question}");
    assert_eq!(ran.answer_and_resume("approve", "proceed").ended(), ("done", None, 0));
}

#[test]
fn the_same_may_be_looked_at_many_times() {
    let ran = answered(&["review specify"; 5]);
    assert_eq!(
        (ran.ended(), ran.questions()),
        (("waiting", None, 4), vec!["approve#6"]),
        "{ran:?}"
    );
}

#[test]
fn abort_ends_the_run_and_what_was_written_stays() {
    let ran = answered(&["abort"]);
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert!(ran.reason().contains("somebody said abort at approve"), "{}", ran.reason());
    assert_eq!(ran.read("specs/search/spec.md"), "# Search\n");
    assert!(ran.read("specs/search/pipeline-report.md").contains("blocked at aborted"));
    assert_eq!(worked(&ran), ["specify"]);
}

#[test]
fn pause_leaves_the_run_waiting_and_resume_asks_again() {
    let ran = answered(&["pause"]);
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["paused"]));
    let ran = ran.resume(&[]);
    assert_eq!(
        (ran.ended(), ran.questions()),
        (("waiting", None, 4), vec!["paused"]),
        "it is still paused"
    );
    let ran = ran.answer_and_resume("paused", "resume");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["approve#2"]));
    assert_eq!(ran.answer_and_resume("approve", "proceed").ended(), ("done", None, 0));
}

#[test]
fn a_paused_run_can_be_aborted() {
    let ran = answered(&["pause"]).answer_and_resume("paused", "abort");
    assert_eq!(ran.ended(), ("blocked", None, 7));
}

#[test]
fn nonsense_is_refused_and_the_question_stays() {
    let ran = answered(&[]);
    for nonsense in ["yes", "review", "review everything", "Proceed", "proceed please"] {
        let said = ran.run_command(&["answer", "last", "approve", nonsense]);
        let words = said.stderr.clone();
        assert_eq!(said.code, Some(2), "{nonsense}: {words}");
        assert!(words.contains("proceed|abort|pause|review"), "{words}");
    }
    assert_eq!(ran.answer_and_resume("approve", "proceed").ended(), ("done", None, 0));
}

#[test]
fn nonsense_in_a_script_is_refused_and_asked_again() {
    let ran = answered(&["maybe", "proceed"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.stderr.contains("'maybe' is not a valid answer"), "{}", ran.stderr);
}

#[test]
fn a_refused_answer_is_not_given_again_after_a_pause() {
    let ran = answered(&["maybe", "pause", "proceed"]);
    assert_eq!(ran.questions(), ["paused"]);
    assert_eq!(ran.answer_and_resume("paused", "resume").ended(), ("done", None, 0));
}

#[test]
fn remaining_ambiguities_ask_a_person() {
    let open = || play().says("clarify", with("clarify", "/remaining_ambiguities", json!(2)));
    let ran = waits(open(), "standard", "decide");
    assert!(ran.reason().contains("clarify left 2 ambiguities open"), "{}", ran.reason());
    let accepted = ran.answer_and_resume("decide", "proceed");
    assert_eq!(accepted.ended(), ("done", None, 0), "{accepted:?}");
    assert_eq!(worked(&accepted)[..3], ["specify", "clarify", "plan"]);
    let again =
        waits(open(), "standard", "decide").answer_and_resume("decide", "again: rank by date");
    assert_eq!(again.ended(), ("done", None, 0), "{again:?}");
    assert_eq!(feedback(&again, "clarify#2")["issues_to_fix"][0]["message"], "rank by date");
}

#[test]
fn constitution_violations_of_a_plan_ask_a_person() {
    let broken = || {
        play()
            .says("plan", with("plan", "/constitution_violations", json!(["no second database"])))
            .writes("specs/search/plan.md", "# Plan\n")
    };
    let ran = waits(broken(), "full", "decide");
    assert!(
        ran.reason().contains("the plan breaks rules of the project: no second database"),
        "{}",
        ran.reason()
    );
    let accepted = ran.answer_and_resume("decide", "proceed");
    assert_eq!(accepted.ended(), ("done", None, 0), "{accepted:?}");
    assert_eq!(worked(&accepted)[3..5], ["plan", "checklist"]);
    let again = waits(broken(), "full", "decide").answer_and_resume("decide", "again");
    assert_eq!(worked(&again)[3..6], ["plan", "plan", "checklist"]);
    assert!(!again.prompt("plan#2", 1).contains("FEEDBACK_CONTEXT"), "nobody said what to fix");
}

#[test]
fn needs_manual_review_asks_a_person() {
    let unsure =
        || play().says("review", with("review", "/overall_status", json!("NEEDS_MANUAL_REVIEW")));
    let ran = waits(unsure(), "full", "decide");
    let accepted = ran.answer_and_resume("decide", "proceed");
    assert_eq!(accepted.ended(), ("done", None, 0), "{accepted:?}");
    assert_eq!(worked(&accepted).last().unwrap(), "taskstoissues");
    let aborted = waits(unsure(), "standard", "decide").answer_and_resume("decide", "abort");
    assert_eq!(aborted.ended(), ("blocked", None, 7));
}

#[test]
fn approved_with_warnings_passes() {
    let ran = run(
        play().says("review", with("review", "/overall_status", json!("APPROVED_WITH_WARNINGS"))),
        "standard",
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

#[test]
fn every_question_can_be_paused_and_comes_again() {
    let open = play().says("clarify", with("clarify", "/remaining_ambiguities", json!(1)));
    let ran = waits(open, "standard", "decide").answer_and_resume("decide", "review clarify");
    assert_eq!(ran.questions(), ["decide#2"]);
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("- remaining_ambiguities: 1"), "{question}");
    let ran = ran.answer_and_resume("decide", "pause").answer_and_resume("paused", "resume");
    assert_eq!(ran.questions(), ["decide#3"], "{ran:?}");
    let broken = play().says("plan", super::error("plan", "ConstitutionViolationError"));
    let ran = waits(broken, "standard", "resolve").answer_and_resume("resolve", "review plan");
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(
        question.contains("plan failed: ConstitutionViolationError (BROKEN): it is broken"),
        "{question}"
    );
    let ran = ran.answer_and_resume("resolve", "pause").answer_and_resume("paused", "resume");
    assert_eq!(ran.questions(), ["resolve#3"], "{ran:?}");
    assert_eq!(ran.answer_and_resume("resolve", "proceed").ended(), ("done", None, 0));
}

#[test]
fn the_question_says_what_was_found_and_does_not_block() {
    let minor = super::analysis(&[super::finding("MEDIUM", "design_flaw")]);
    let scenario =
        AGENTS.into_iter().fold(play().says("analyze", super::envelope("analyze", &minor)), good);
    let ran = scenario.run(&[&ASKED[..], &["--input", "size=full"]].concat());
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("- MEDIUM design_flaw: a design_flaw"), "{question}");
}

#[test]
fn a_simple_run_says_that_questions_are_open_in_the_spec() {
    let ran = answered(&[]);
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("1 questions are open in the spec"), "{question}");
    let ran = then_all_goes_well(play()).run(&ASKED);
    assert_eq!(ran.ended(), ("done", None, 0));
}

#[test]
fn looking_has_an_end_and_the_question_comes_again_after_it() {
    let open =
        play().says("clarify", with("clarify", "/remaining_ambiguities", json!(1))).built_in_only();
    let looks = (0..101).fold(open, |scenario, _| scenario.answer("decide", "review clarify"));
    let ran = waits(looks, "standard", "paused");
    let ran = ran.answer_and_resume("paused", "resume");
    assert_eq!(ran.report["state"], "decide", "nothing was decided by looking");
}
