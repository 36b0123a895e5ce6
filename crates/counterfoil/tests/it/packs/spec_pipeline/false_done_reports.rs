//! Ways to a false done in what agents list and count: success criteria, open questions, tasks, gates, fixes.

use super::{envelope, finding, good, play, result, run, succeeded, with};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// More often than any loop of the pipeline goes round.
const ALWAYS: usize = 4;

/// A spec with two success criteria, in two spellings.
const CRITERIA: &str = "# Search\n\n- SC-1 it finds\n- **SC-002**: it is fast, as DISC-3 is\n";

/// Specify writes this spec.
fn specified(spec: &str) -> Scenario {
    play().says("specify", succeeded("specify")).writes("specs/search/spec.md", spec)
}

/// Test always reports this, and implement does its best.
fn always_tested(scenario: Scenario, result: &Value) -> Scenario {
    (0..ALWAYS)
        .fold(scenario, |scenario, _| good(scenario.says("test", result.clone()), "implement"))
}

/// Asserts how a run ends, and that it says why.
#[track_caller]
fn ends(scenario: Scenario, size: &str, outcome: &str, words: &str) -> ScenarioRun {
    let ran = run(scenario.built_in_only(), size);
    assert_eq!(ran.ended().0, outcome, "{ran:?}");
    assert!(ran.reason().contains(words), "{words}: {}", ran.reason());
    ran
}

/// One test for each way: the scenario, the size, the outcome, and words of the reason.
macro_rules! ways {
    ($($way:ident: $scenario:expr, $size:expr, $outcome:expr, $words:expr;)*) => {
        $(
            #[test]
            fn $way() {
                ends($scenario, $size, $outcome, $words);
            }
        )*
    };
}

ways! {
    an_invented_criterion_in_place_of_those_of_the_spec:
        with_criteria(&[("SC-77", "PASSED")]), "simple", "blocked", "(SC-1, SC-002)";
    a_criterion_of_the_spec_that_is_left_out:
        with_criteria(&[("SC-1", "PASSED"), ("SC-3", "PASSED")]), "simple", "blocked", "every criterion of the spec";
    only_an_invented_criterion_was_tested:
        with_criteria(&[("SC-1", "NOT_TESTED"), ("SC-2", "NOT_TESTED"), ("SC-77", "PASSED")]), "simple", "exhausted", "criteria";
    criteria_in_another_spelling:
        with_criteria(&[("sc_001", "PASSED"), ("SC 2", "NOT_TESTED")]), "simple", "done", "";
    questions_that_nobody_settled:
        clarified(0, 0), "standard", "blocked", "3 were open before you";
    fewer_questions_than_there_were:
        clarified(2, 0), "standard", "blocked", "3 were open before you";
    questions_that_are_settled: clarified(3, 0), "standard", "done", "";
    no_task_of_none:
        (0..ALWAYS).fold(play(), |scenario, _| scenario.says("implement", no_tasks()).writes("src/search.rs", "pub fn search() {}\n")),
        "simple", "blocked", "0 of 0 tasks says nothing";
    a_further_gate_that_failed:
        always_tested(play(), &with("test", "/quality_gates/security", json!({"status": "FAILED", "details": {"critical": 3}}))),
        "simple", "blocked", "`security` is not part of the contract";
    a_further_gate_that_passed_and_is_left_out_when_asked:
        play().says("test", with("test", "/quality_gates/security", json!({"status": "PASSED", "details": {"critical": 0}}))),
        "simple", "done", "";
    a_further_gate_that_failed_and_is_left_out_when_asked:
        play().says("test", with("test", "/quality_gates/security", json!({"status": "FAILED", "details": {"critical": 3}})))
            .says("test", succeeded("test")).says("test", succeeded("test")),
        "simple", "blocked", "reported a problem in `security`";
    a_build_with_a_part_that_failed:
        always_tested(play(), &with("test", "/quality_gates/build_validation/details/image", json!({"status": "FAILED"}))),
        "simple", "exhausted", "something in its result failed";
    critical_findings_beside_the_gates:
        always_tested(play(), &with("test", "/findings", critical())), "simple", "blocked", "`findings` is not part of the contract";
    critical_findings_beside_the_result_of_test:
        always_tested(play(), &beside("test", "issues", critical())), "simple", "blocked", "`issues` is not part of the contract";
    critical_findings_beside_an_approval_of_review:
        always_reviewed(&with("review", "/findings", critical())), "standard", "blocked", "`findings` is not part of the contract";
    a_verdict_beside_the_result_of_review:
        always_reviewed(&beside("review", "verdict", json!("reject"))), "standard", "blocked", "`verdict` is not part of the contract";
    a_violation_inside_of_the_compliance:
        always_reviewed(&with("review", "/constitution_compliance/violations", json!(["tests come first"]))),
        "standard", "blocked", "`violations` is not part of the contract";
    critical_findings_beside_those_of_analyze:
        (0..ALWAYS).fold(play(), |scenario, _| scenario.says("analyze", beside("analyze", "critical", critical()))),
        "full", "blocked", "`critical` is not part of the contract";
    violations_beside_those_of_plan:
        (0..ALWAYS).fold(play(), |scenario, _| scenario.says("plan", with("plan", "/violations", json!(["tests come first"])))),
        "standard", "blocked", "`violations` is not part of the contract";
}

/// A finding that nobody reads where it stands.
fn critical() -> Value {
    json!([{"severity": "CRITICAL", "message": "SQL injection in the login"}])
}

/// An agent's success with a further field beside the result.
fn beside(agent: &str, field: &str, value: Value) -> Value {
    let mut said = succeeded(agent);
    said[field] = value;
    said
}

/// Review always reports this, and everybody else does well.
fn always_reviewed(result: &Value) -> Scenario {
    (0..ALWAYS).fold(play(), |scenario, _| {
        good(good(scenario.says("review", result.clone()), "implement"), "test")
    })
}

/// The criteria of the spec, and what test always reports.
fn with_criteria(reported: &[(&str, &str)]) -> Scenario {
    let one = |(id, status): &(&str, &str)| json!({"id": id, "description": "it finds", "status": status});
    let reported: Value = reported.iter().map(one).collect();
    always_tested(specified(CRITERIA), &with("test", "/success_criteria", reported))
}

/// Specify counts three open questions, and clarify always reports this of them.
fn clarified(resolved: u64, remaining: u64) -> Scenario {
    let scenario = play()
        .says("specify", with("specify", "/clarifications_needed", json!(3)))
        .writes("specs/search/spec.md", "# Search\n");
    let mut clarity = result("clarify");
    clarity["clarifications_resolved"] = json!(resolved);
    clarity["remaining_ambiguities"] = json!(remaining);
    (0..ALWAYS)
        .fold(scenario, |scenario, _| scenario.says("clarify", envelope("clarify", &clarity)))
}

fn no_tasks() -> Value {
    let mut work = result("implement");
    work["tasks_completed"] = json!(0);
    work["tasks_total"] = json!(0);
    work["completion_percentage"] = json!(0.0);
    envelope("implement", &work)
}

#[test]
fn every_mark_of_a_question_is_asked_however_it_is_written() {
    for (mark, question) in [
        (
            "- REQ-2 It sorts. [NEEDS CLARIFICATION]",
            "What is open here? - REQ-1 It finds. - REQ-2 It sorts.",
        ),
        ("[Needs Clarification: by date?]", "by date?"),
        ("[needs clarification by date?]", "by date?"),
        ("[NEEDS\nCLARIFICATION: by date?]", "by date?"),
        ("[NEEDS-CLARIFICATION - by date?]", "by date?"),
        ("**NEEDS CLARIFICATION**: by date?", "by date?"),
    ] {
        let scenario = specified(&format!("# Search\n\n- REQ-1 It finds.\n{mark}\n"));
        let ran = run(scenario.built_in_only(), "standard");
        assert_eq!(ran.questions(), ["question"], "{mark}: {ran:?}");
        let asked = ran.report["questions"][0]["question"].as_str().unwrap();
        assert!(asked.contains(&format!("\n\n{question}")), "{mark}: {asked}");
    }
}

#[test]
fn words_about_questions_are_no_questions() {
    let spec = "# Search\n\nNothing needs clarification.\n\n- [x] No [NEEDS CLARIFICATION] markers remain\n";
    ends(specified(spec), "standard", "done", "");
}

/// Review finds something critical once, implement writes this, and then review is satisfied.
fn after_a_critical_issue(code: &str) -> Scenario {
    let mut bad = result("review");
    bad["issues"] = json!([finding("CRITICAL", "duplicate_code")]);
    good(play().says("review", envelope("review", &bad)), "implement")
        .says("implement", succeeded("implement"))
        .writes("src/search.rs", code)
}

#[test]
fn a_critical_issue_is_not_fixed_by_saying_so() {
    let unchanged = after_a_critical_issue("pub fn search() {}\n");
    let ran = run(good(unchanged, "test").built_in_only(), "standard");
    assert_eq!(ran.questions(), ["decide"], "{ran:?}");
    let asked = ran.report["questions"][0]["question"].as_str().unwrap();
    assert!(asked.contains("changed no file: CRITICAL duplicate_code"), "{asked}");
    let changed = after_a_critical_issue("pub fn search() { once() }\n");
    ends(good(changed, "test"), "standard", "done", "");
}
