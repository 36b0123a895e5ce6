//! The gates are computed: good figures, no FAILED of the agent, nothing open.

use super::{ASKED, good, play, run, succeeded, then_all_goes_well, with, worked};
use serde_json::{Value, json};

/// The test's result with these details of a gate.
fn measured(gate: &str, details: Value) -> Value {
    with("test", &format!("/quality_gates/{gate}/details"), details)
}

/// Whether a result of test passes its gates: then nothing is implemented again.
fn passes(test: Value, more: &[&str]) -> bool {
    let scenario = then_all_goes_well(good(play().says("test", test), "implement"));
    let ran = scenario.run(&[&ASKED[..], &["--input", "size=simple"], more].concat());
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    worked(&ran).len() == 3
}

#[test]
fn a_gate_reported_passed_at_61_percent_is_computed_as_failed() {
    let ran = run(
        good(
            play().says("test", measured("coverage", json!({"overall": 61.0, "required": 60.0}))),
            "implement",
        ),
        "simple",
    );
    assert_eq!(
        ran.attempt("test#1")["value"]["result"]["quality_gates"]["coverage"]["status"],
        "PASSED"
    );
    assert_eq!(worked(&ran), ["specify", "implement", "test", "implement", "test"]);
    let gates = ran.events().into_iter().filter_map(|event| event.pointer("/set/gates").cloned());
    let first = gates.into_iter().next().expect("the gates are recorded");
    assert_eq!(first[1]["holds"], false, "{first:#}");
    assert_eq!(first[1]["measured"], "61 % covered, 80 % required; PASSED by its own account");
}

#[test]
fn coverage_must_reach_what_the_run_is_given_and_80_otherwise() {
    let covered = |overall: f64, required: f64| {
        measured("coverage", json!({"overall": overall, "required": required}))
    };
    assert!(passes(covered(80.0, 0.0), &[]));
    assert!(!passes(covered(79.9, 0.0), &[]), "what the agent requires decides nothing");
    assert!(!passes(covered(85.0, 80.0), &["--input", "min_coverage=90"]));
    assert!(passes(covered(90.0, 80.0), &["--input", "min_coverage=90"]));
    assert!(
        passes(covered(75.0, 80.0), &["--input", "min_coverage=70"]),
        "less than 80 is honoured"
    );
    assert!(!passes(covered(69.9, 60.0), &["--input", "min_coverage=70"]));
    assert!(passes(covered(0.0, 80.0), &["--input", "min_coverage=0"]));
}

#[test]
fn all_tests_must_pass_and_there_must_be_some() {
    let counts = |total: u64, passed: u64, failed: u64| {
        measured("tests_passing", json!({"total": total, "passed": passed, "failed": failed}))
    };
    assert!(passes(counts(45, 45, 0), &[]));
    assert!(!passes(counts(45, 44, 0), &[]), "one was skipped");
    assert!(!passes(counts(45, 45, 1), &[]));
    assert!(!passes(counts(0, 0, 0), &[]), "no test proves nothing");
}

#[test]
fn lint_types_and_build_must_be_clean() {
    let quality = |lint: u64, types: u64| {
        measured("code_quality", json!({"lint_errors": lint, "type_errors": types}))
    };
    assert!(!passes(quality(1, 0), &[]));
    assert!(!passes(quality(0, 1), &[]));
    assert!(!passes(measured("build_validation", json!({"docker_compose": "invalid"})), &[]));
}

#[test]
fn good_figures_never_overrule_a_gate_that_is_reported_failed() {
    for gate in ["tests_passing", "coverage", "code_quality", "build_validation"] {
        let mut result = succeeded("test");
        result["result"]["overall_status"] = json!("FAILED");
        result["result"]["quality_gates"][gate]["status"] = json!("FAILED");
        assert!(!passes(result, &[]), "{gate}");
    }
    assert!(!passes(with("test", "/overall_status", json!("FAILED")), &[]));
}

#[test]
fn success_criteria_must_be_met_and_one_must_be_tested() {
    let criteria = |statuses: &[&str]| {
        let one = |(n, status): (usize, &&str)| json!({"id": format!("SC-{n}"), "description": "it finds", "status": status});
        with("test", "/success_criteria", statuses.iter().enumerate().map(one).collect())
    };
    assert!(passes(criteria(&["PASSED", "NOT_TESTED"]), &[]));
    assert!(!passes(criteria(&["PASSED", "FAILED"]), &[]));
    assert!(!passes(criteria(&["NOT_TESTED"]), &[]));
    assert!(!passes(criteria(&[]), &[]));
}

#[test]
fn a_criterion_that_was_not_tested_reaches_the_report_and_the_review() {
    let not_tested = json!([
        {"id": "SC-1", "description": "it finds", "status": "PASSED"},
        {"id": "SC-2", "description": "it is fast", "status": "NOT_TESTED"},
    ]);
    let ran = run(play().says("test", with("test", "/success_criteria", not_tested)), "standard");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let remark = "- test: SC-2 was not tested: it is fast";
    assert!(ran.read("specs/search/pipeline-report.md").contains(remark));
    assert!(ran.prompt("review#1", 1).contains(remark));
}

#[test]
fn passed_with_a_failed_gate_is_refused_and_repaired() {
    let mut torn = succeeded("test");
    torn["result"]["quality_gates"]["coverage"]["status"] = json!("FAILED");
    let mut failed = torn.clone();
    failed["result"]["overall_status"] = json!("FAILED");
    let ran =
        run(good(play().says("test", torn.clone()).says("test", failed), "implement"), "simple");
    assert_eq!(ran.attempt("test#1")["repairs_asked"], 1, "{ran:?}");
    assert!(ran.prompt("test#1", 2).contains("`overall_status` is PASSED, but a gate"));
    assert_eq!(worked(&ran), ["specify", "implement", "test", "implement", "test"]);
    // A gate that has passed in the next answer, without a word about it, is asked about.
    let again = play().says("test", torn).says("test", succeeded("test"));
    let ran = run(again.says("test", succeeded("test")).built_in_only(), "simple");
    assert_eq!((ran.ended().0, &ran.attempt("test#1")["repairs_asked"]), ("blocked", &json!(2)));
    assert!(ran.prompt("test#1", 3).contains("reported a problem in `status`, \"FAILED\""));
}

#[test]
fn the_report_shows_every_gate() {
    let ran = run(play(), "simple");
    let report = ran.read("specs/search/pipeline-report.md");
    for row in [
        "| tests | yes | 4 of 4 tests pass, 0 fail; PASSED by its own account |",
        "| coverage | yes | 91.5 % covered, 80 % required; PASSED by its own account |",
        "| lint | yes |",
        "| types | yes |",
        "| build | yes |",
        "| criteria | yes | 1 of 1 success criteria were tested and met |",
        "| tasks | yes | 1 of 1 tasks are done by the account of implement |",
        "| verdict | yes | test says PASSED |",
    ] {
        assert!(report.contains(row), "{row}: {report}");
    }
}
