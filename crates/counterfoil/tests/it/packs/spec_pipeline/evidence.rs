//! What the engine ran itself: handed to the agents, and stronger than what they report.

use super::{
    analysis, checked, envelope, error_with, feedback, finding, good, play, result, run, succeeded,
    types, with, worked,
};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// A project whose tests fail while there is a file `broken`.
fn project() -> Scenario {
    checked("test", "test ! -e broken || { echo ranks_exact fails; exit 1; }")
}

#[test]
fn a_failed_check_goes_back_to_implement_with_its_output() {
    let scenario = good(good(project(), "implement").writes("broken", "yes\n"), "test");
    let scenario = scenario.says("implement", succeeded("implement")).deletes("broken");
    let ran = run(scenario, "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran), ["specify", "implement", "test", "implement", "test"]);
    assert_eq!(types(&feedback(&ran, "implement#2")), ["test_failure"]);
    let prompt = ran.prompt("implement#2", 1);
    assert!(prompt.contains("<output of=\"test\">\nranks_exact fails\n</output>"), "{prompt}");
    assert!(prompt.contains("Files that were changed since then: broken, "), "{prompt}");
    assert!(!ran.prompt("implement#1", 1).contains("What the engine ran"), "nothing was run yet");
}

#[test]
fn test_is_told_what_the_engine_ran() {
    let ran = run(checked("test", "echo 'test result: ok. 4 passed; 0 failed'"), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = ran.prompt("test#1", 1);
    assert!(prompt.contains("test result: ok. 4 passed; 0 failed"), "{prompt}");
    let base = ran.git(&["rev-parse", "HEAD"]);
    assert!(prompt.contains(&format!("The run began at commit {}", base.trim())), "{prompt}");
    let report = ran.read("specs/search/pipeline-report.md");
    assert!(report.contains("; the engine counts 4 tests |"), "{report}");
}

#[test]
fn a_check_that_fails_before_the_run_is_said_before_anything_is_built() {
    let scenario = super::AGENTS.into_iter().fold(checked("lint", "false"), good);
    let ran = scenario.run(&[&super::ASKED[..], &["--input", "size=simple"]].concat());
    assert_eq!(ran.questions(), ["approve"], "{ran:?}");
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(question.contains("Checks of the project that fail already: lint."), "{question}");
}

#[test]
fn what_review_edits_is_tested_by_the_engine_where_it_can() {
    let edited = || {
        let mut review = result("review");
        review["changes_made"]["files_modified"] =
            json!([{"path": "src/search.rs", "changes": "tidy"}]);
        envelope("review", &review)
    };
    let tidy = |scenario: Scenario, text: &str| {
        scenario.says("review", edited()).writes("src/search.rs", text)
    };
    let ran = run(tidy(project(), "// tidy\n"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran).last().unwrap(), "review", "the check has tested it");
    let ran = run(good(tidy(play(), "// tidy\n"), "test"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[5..], ["test", "review", "test"], "there is no check");
}

#[test]
fn what_review_breaks_goes_back_with_its_output() {
    let scenario = project().says("review", succeeded("review")).writes("broken", "yes\n");
    let scenario = good(scenario, "implement").says("implement", succeeded("implement"));
    let ran = run(good(scenario.deletes("broken"), "test"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(types(&feedback(&ran, "implement#2")), ["test_failure"]);
    assert!(ran.prompt("implement#2", 1).contains("ranks_exact fails"));
}

#[test]
fn edits_of_a_review_that_it_does_not_list_are_seen() {
    let silent = play().says("review", succeeded("review")).writes("src/search.rs", "// tidy\n");
    let ran = run(good(silent, "test"), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(worked(&ran)[5..], ["test", "review", "test"]);
}

#[test]
fn the_engine_knows_when_it_was_done() {
    let without_times = |agent: &str| {
        let mut envelope = succeeded(agent);
        let members = envelope.as_object_mut().unwrap();
        members.remove("timestamp");
        members.remove("execution_time_ms");
        envelope
    };
    let scenario = play().says("specify", without_times("specify"));
    let ran = run(scenario.writes("specs/search/spec.md", "# Search\n"), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let specified = &ran.attempt("specify#1")["value"];
    assert!(specified["timestamp"].as_str().is_some_and(|time| time.contains('T')), "{specified}");
    assert!(specified["execution_time_ms"].is_u64(), "{specified}");
    let prompt = ran.prompt("specify#1", 1);
    for field in ["timestamp", "execution_time_ms"] {
        assert!(!prompt.contains(field), "{field}: {prompt}");
    }
    assert_eq!(
        ran.attempt("implement#1")["value"]["timestamp"],
        "2026-03-01T09:30:00Z",
        "it said so"
    );
}

#[test]
fn documents_that_do_not_exist_are_left_out() {
    let without = |agent: &str, fields: &[&str]| -> Value {
        let mut result = result(agent);
        for field in fields {
            result.as_object_mut().unwrap().remove(*field);
        }
        envelope(agent, &result)
    };
    let plan = ["research_file", "data_model_file", "contracts_dir", "quickstart_file"];
    let scenario = play()
        .says("specify", without("specify", &["branch_name", "feature_number"]))
        .writes("specs/search/spec.md", "# Search\n")
        .says("plan", without("plan", &plan))
        .writes("specs/search/plan.md", "# Plan\n");
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("plan#1")["repairs_asked"], 0);
    let simple = play().says("implement", without("implement", &["tasks_file"]));
    let ran = run(simple.writes("src/search.rs", "pub fn search() {}\n"), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let ran = run(play().says("implement", without("implement", &["tasks_file"])), "standard");
    assert_eq!(ran.attempt("implement#1")["repairs_asked"], 1, "there are tasks to name");
}

#[test]
fn null_is_a_document_that_does_not_exist() {
    let plan = ["research_file", "data_model_file", "contracts_dir", "quickstart_file"];
    let optional = [
        ("specify", &["branch_name", "feature_number"][..], "specs/search/spec.md"),
        ("plan", &plan[..], "specs/search/plan.md"),
    ];
    let scenario = optional.iter().fold(play(), |scenario, (agent, fields, document)| {
        let mut result = result(agent);
        fields.iter().for_each(|field| result[*field] = Value::Null);
        scenario.says(agent, envelope(agent, &result)).writes(document, "# Search\n")
    });
    let ran = run(scenario, "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for (agent, fields, _) in optional {
        let attempt = ran.attempt(&format!("{agent}#1"));
        assert_eq!(attempt["repairs_asked"], 0);
        let prompt = ran.prompt(&format!("{agent}#1"), 1);
        for field in fields {
            let given = &attempt["value"]["result"][*field];
            assert!(!given.is_null(), "{field}: a reader relies on it");
            let line =
                prompt.lines().find(|line| line.contains(&format!("- `{field}` ("))).unwrap();
            assert!(line.contains(" or null, optional)"), "{line}");
        }
    }
    let none = with("implement", "/tasks_file", Value::Null);
    let simple = play().says("implement", none.clone());
    let ran = run(simple.writes("src/search.rs", "pub fn search() {}\n"), "simple");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("implement#1")["repairs_asked"], 0);
    let ran = run(play().says("implement", none), "standard");
    assert_eq!(ran.attempt("implement#1")["repairs_asked"], 1, "there are tasks to name");
}

#[test]
fn null_is_nothing_in_errors_and_findings() {
    let nothing = json!({"details": null, "recovery_strategy": null, "suggested_action": null});
    let without_place = |severity: &str, kind: &str| {
        let mut finding = finding(severity, kind);
        finding["location"] = Value::Null;
        finding["recommendation"] = Value::Null;
        finding
    };
    let gap = analysis(&[without_place("HIGH", "coverage_gap")]);
    let named = json!([without_place("LOW", "naming_violation")]);
    let scenario = play()
        .says("clarify", error_with("clarify", "TimeoutError", nothing))
        .says("analyze", envelope("analyze", &gap))
        .says("review", with("review", "/issues", named));
    let ran = run(good(scenario, "tasks"), "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(types(&feedback(&ran, "tasks#2")), ["coverage_gap"]);
    let report = ran.read("specs/search/pipeline-report.md");
    assert!(report.contains("- LOW naming_violation: a naming_violation\n"), "{report}");
    for attempt in ran.report["attempts"].as_array().unwrap() {
        assert_eq!(attempt["repairs_asked"], 0, "{attempt:#}");
    }
}

#[test]
fn only_a_person_accepts_that_nothing_was_built() {
    let ran = run(play().says("implement", succeeded("implement")), "simple");
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["decide"]), "{ran:?}");
    assert!(ran.reason().contains("no file outside of specs/ was changed"), "{}", ran.reason());
    let ran = ran.answer_and_resume("decide", "proceed");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let report = ran.read("specs/search/pipeline-report.md");
    assert!(report.contains("- accepted by a person: implement reports 1 tasks"), "{report}");
}

#[test]
fn a_low_confidence_reaches_those_who_plan() {
    let unsure = with("research", "/confidence_level", json!("LOW"));
    let ran = run(play().says("research", unsure), "full");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let remark = "- research: its confidence is LOW";
    assert!(ran.prompt("plan#1", 1).contains(remark));
    assert!(ran.read("specs/search/pipeline-report.md").contains(remark));
}
