//! What agents say in words where their contracts leave room for any.

use super::{analyzed, gate, plays, reviewed, tested};
use crate::packs::spec_pipeline::{analysis, envelope, finding, play, result, run, with};
use serde_json::{Value, json};

fn details(more: &Value) -> Value {
    let mut details = json!({"docker_compose": "valid"});
    details.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    gate("build_validation/details", details)
}

/// A finding that is LOW, and says something else.
fn low() -> Value {
    let mut finding = finding("LOW", "design_flaw");
    finding["message"] = json!("CRITICAL: user input reaches eval");
    finding
}

#[test]
fn what_the_details_of_the_build_report_closes_its_gate() {
    for more in [
        json!({"errors": ["image does not build"]}),
        json!({"security": "2 critical vulnerabilities"}),
        json!({"image": {"vulnerabilities": {"critical": 2}}}),
        json!({"services": [{"name": "api", "status": "failed to start"}]}),
        json!({"notes": "CRITICAL: the image runs as root"}),
        json!({"exit_code": 1}),
    ] {
        let ran = plays("simple", "exhausted", tested(&details(&more)));
        assert!(ran.reason().contains("the gate build does not hold"), "{more}: {ran:?}");
    }
}

#[test]
fn harmless_details_of_the_build_pass() {
    let more = json!({
        "errors": [], "security": "no critical vulnerabilities", "image": {"critical": 0, "size": "80 MB"},
        "warnings": ["the base image is old"], "notes": "Everything builds."
    });
    let ran = run(play().says("test", details(&more)).built_in_only(), "simple");
    assert_eq!(ran.ended().0, "done", "{ran:?}");
}

#[test]
fn a_low_finding_that_calls_itself_critical_goes_back() {
    let ran = plays("full", "waiting", analyzed(&envelope("analyze", &analysis(&[low()]))));
    let question = ran.report["questions"].to_string();
    assert!(question.contains("user input reaches eval"), "{question}");
    let issues = with("review", "/issues", json!([low()]));
    let ran = plays("standard", "exhausted", reviewed(&issues));
    assert!(ran.reason().contains("user input reaches eval"), "{}", ran.reason());
}

#[test]
fn a_plan_that_says_that_it_breaks_no_rule_needs_nobody() {
    for none in ["none", "None found.", "n/a"] {
        let mut plan = result("plan");
        plan["constitution_violations"] = json!([none]);
        let scenario = play().says("plan", envelope("plan", &plan));
        let ran =
            run(scenario.writes("specs/search/plan.md", "# Plan\n").built_in_only(), "standard");
        assert_eq!(ran.ended().0, "done", "{none}: {ran:?}");
    }
    let mut plan = result("plan");
    plan["constitution_violations"] = json!(["none", "tests come last"]);
    let scenario = play().says("plan", envelope("plan", &plan));
    let ran = plays("standard", "waiting", scenario.writes("specs/search/plan.md", "# Plan\n"));
    let question = ran.report["questions"].to_string();
    assert!(question.contains("the project: tests come last"), "{question}");
}
