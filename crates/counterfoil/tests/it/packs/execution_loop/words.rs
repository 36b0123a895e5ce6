//! What QA, code quality and the definition of done say in words beside their verdict counts too.

use super::{TASK, clean, complete, incomplete, scenario};
use crate::packs::run::ScenarioRun;
use serde_json::{Value, json};

const REFUSED: (&str, Option<&str>, i32) = ("failed", Some("contract"), 1);
const DONE: (&str, Option<&str>, i32) = ("done", None, 0);

/// The agent says this, whatever it is asked, and everybody else approves.
fn says(agent: &str, result: &Value) -> ScenarioRun {
    let asked = (0..3).fold(scenario(), |scenario, _| scenario.says(agent, result.clone()));
    asked.completes("2").run(&[&TASK[..], &["--input", "max_iterations=1"]].concat())
}

fn recommending(text: &str) -> Value {
    let mut result = complete("high");
    result["recommendation"] = json!(text);
    result
}

/// QA passes, and this is what it saw.
fn seeing(details: &str) -> Value {
    json!({"dod_achieved": true, "checks": [{"criterion": "it counts", "passed": true, "details": details}]})
}

/// Code quality passes with this warning.
fn warning(message: &str) -> Value {
    let mut result = clean();
    result["issues"] =
        json!([{"file": "src/lib.rs", "code": "W1", "message": message, "severity": "warning"}]);
    result
}

#[test]
fn complete_with_something_severe_or_failing_is_refused() {
    for text in [
        "Do not ship: CRITICAL: user input reaches eval; 2 tests fail.",
        "CRITICAL: user input reaches eval",
        "Hand it over. There is a critical vulnerability in src/lib.rs.",
        "Hand it over, though 2 tests fail.",
        "Hand it over.\nFAILED: counts_to_two",
        "Do not merge this yet",
        "Don't release it",
        "Not ready to ship",
        "It is not safe to deploy this.",
        "Needs work: US-2 is missing",
    ] {
        let ran = says("dod", &recommending(text));
        assert_eq!(ran.ended(), REFUSED, "{text}: {ran:?}");
        assert!(ran.report.to_string().contains("but `recommendation`"), "{text}: {ran:?}");
    }
}

#[test]
fn complete_with_harmless_words_is_done() {
    for text in [
        "Hand it over: all 12 tests pass, no critical issues.",
        "None",
        "Nothing to do",
        "Merge it; high test coverage.",
        "Ship it. A later task could make the messages shorter.",
        "Hand it over; do not forget the release notes.",
    ] {
        let ran = says("dod", &recommending(text));
        assert_eq!(ran.ended(), DONE, "{text}: {ran:?}");
    }
}

#[test]
fn a_definition_of_done_that_was_asked_again_sends_the_work_back() {
    let severe = "CRITICAL: user input reaches eval";
    let ran = scenario()
        .passes("2")
        .says("dod", recommending(severe))
        .says("dod", incomplete(&[severe]))
        .completes("3")
        .plays();
    assert_eq!(ran.ended(), DONE, "{ran:?}");
    assert!(ran.prompt("implement#2", 1).contains(severe), "{ran:?}");
}

#[test]
fn what_qa_saw_must_not_be_severe() {
    let ran = says("qa", &seeing("CRITICAL: user input reaches eval"));
    assert_eq!(ran.ended(), REFUSED, "{ran:?}");
    assert!(ran.report.to_string().contains("but `checks` reports something severe"), "{ran:?}");
    let ran = says("qa", &seeing("The critical path counts to two; no critical issues."));
    assert_eq!(ran.ended(), DONE, "{ran:?}");
}

#[test]
fn a_severe_issue_is_no_warning() {
    let ran = says("code-quality", &warning("CRITICAL: user input reaches eval"));
    assert_eq!(ran.ended(), REFUSED, "{ran:?}");
    assert!(ran.report.to_string().contains("`severity` is not error"), "{ran:?}");
    let ran = says("code-quality", &warning("high cyclomatic complexity"));
    assert_eq!(ran.ended(), DONE, "{ran:?}");
    assert!(ran.reason().contains("high cyclomatic complexity"), "{ran:?}");
}
