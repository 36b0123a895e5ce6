//! Values as agents write them, with what they say.

use super::{reports_failure, reports_nothing, reports_rejection, reports_severe};
use serde_json::{Value, json};

/// Applies a reading to all values, and lists those with another outcome than expected.
#[track_caller]
fn all_read(reading: fn(&Value) -> bool, expected: bool, values: &[Value]) {
    let wrong: Vec<_> = values.iter().filter(|value| reading(value) != expected).collect();
    assert!(wrong.is_empty(), "expected {expected}: {wrong:#?}");
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

#[test]
fn severity_counts_in_every_text() {
    let rows = texts(&[
        "HIGH",
        "HIGH: eval on input",
        "1. [Critical] eval on input",
        "- **CRITICAL**: eval on input",
        "calc.py:3: HIGH: eval on input",
        "calc.py - HIGH - eval on input",
        "F1 | HIGH | eval on input",
        "eval on input (severity: high)",
        "Severity: high",
        "BLOCKER: eval on input",
        "[P0] eval on input",
        "Sev-1: eval on input",
        "HIGH eval on input",
        "High severity: eval on input",
        "fine. HIGH: eval on input",
        "Looks good.\nHIGH: eval on input",
        "Looks good.\\nHIGH: eval on input",
        "Looks good.\u{2028}HIGH: eval on input",
        "HIGH: none of the inputs is validated",
        "HIGH: 0-day in the parser",
        "High: 0, Critical: 2.",
        "2 critical findings",
        "found 1 high severity issue",
        "HIGH: none, except eval on input",
        "No HIGH issues except: eval on input",
        "HIGH: eval on input (not fixed)",
        "High-level names are fine. CRITICAL: eval on input",
        "HIGH: a typo (fixed). HIGH: eval on input",
        "There is a critical vulnerability in calc.py",
        "This is a critical SQL injection",
        "Merging it, though one high severity issue remains open",
    ]);
    all_read(reports_severe, true, &rows);
}

#[test]
fn severity_counts_in_every_field() {
    let rows = [
        json!({"severity": "high"}),
        json!({"Severity": "High"}),
        json!({"severity": "fatal", "what": "eval"}),
        json!({"severity": "blocker", "what": "eval"}),
        json!({"severity": "S1", "what": "eval"}),
        json!({"severity": "P1", "what": "eval"}),
        json!({"severity": "very high", "what": "eval"}),
        // A word that nobody knows is not taken for a low one.
        json!({"severity": "cricital", "what": "eval"}),
        json!({"severity": 9, "what": "eval"}),
        json!({"severity": "8.1", "what": "eval"}),
        json!({"severity": ["low", "high"]}),
        json!({"severity": {"level": "high"}}),
        json!({"severity": "high", "status": "open", "what": "eval"}),
        json!({"severity": "low", "cvss": 9.8}),
        json!({"cvssScore": "7.5"}),
        json!({"riskLevel": "critical"}),
        json!({"priority": "P0", "what": "eval"}),
        json!({"category": "Critical", "what": "eval"}),
        json!({"must_fix": true, "what": "eval"}),
        json!({"critical_findings": 3}),
        json!({"criticalFindings": [{"what": "eval"}]}),
        json!({"open-critical": "2"}),
        json!({"HIGH": "eval on input"}),
        json!({"report": {"inner": [[{"severity": "high"}]]}}),
        // A finding that is fixed does not settle another one inside it.
        json!({"severity": "high", "status": "fixed", "related": [{"severity": "critical"}]}),
        json!([["fine", "HIGH"]]),
    ];
    all_read(reports_severe, true, &rows);
}

#[test]
fn no_severity_is_seen_where_there_is_none() {
    let mut rows = texts(&[
        "",
        "High: 0, Critical: 0.",
        "Looks good. High: 0, Critical: 0.",
        "Severity high: 0, medium: 0, low: 1.",
        "High test coverage, nothing to fix.",
        "High quality code; no critical issues.",
        "High risk areas were checked and are fine.",
        "Critical review done: everything holds.",
        "HIGH and CRITICAL findings: none.",
        "Critical path is covered by tests.",
        "Highlights: clean code",
        "high cohesion, low coupling",
        "HIGH - none",
        "HIGH, CRITICAL: none",
        "HIGH: eval on input (fixed)",
        "There is no critical vulnerability in calc.py",
        "I did not find a critical bug",
        "A critical vulnerability was fixed in the last round",
        "It would be a critical bug if the lock were missing; it is there",
    ]);
    rows.extend([
        json!(null),
        json!({"severity": "high", "status": "fixed", "what": "HIGH: eval"}),
        json!({"severity": "critical", "resolved": true, "what": "eval"}),
        json!({"severity": "low", "confidence": "critical", "priority": "high", "impact": "high"}),
        json!({"severity": "medium", "what": "uses {high: 1} as a key"}),
        json!({"severity": ["low"], "recommendation": "Do not name it so; block names are longer"}),
        json!({"severity": ""}),
        json!({"severity": 3}),
        json!({"severity": "3 (low)"}),
        json!({"critical": 0, "high": [], "what": "counts"}),
        json!({"cvss": 4.2}),
        json!({"blocks": "T-003"}),
    ]);
    all_read(reports_severe, false, &rows);
}

#[test]
fn tests_that_did_not_all_pass_are_a_failure() {
    let rows = [
        json!({"passed": 1, "total": 3}),
        json!({"passed": "1", "total": 3}),
        json!({"passed": 2, "skipped": 1, "total": 4}),
        json!("2 of 3 pass"),
        json!("2 of 3 tests pass"),
        json!("passed: 2 / 3"),
        json!({"passed": "2/3"}),
        json!({"passing": "66%"}),
        json!("66% of the tests pass"),
        json!({"pass": false}),
        json!({"allPassed": "no"}),
        json!(["test_add: ok", "test_sub: FAIL"]),
        json!("test_sub ... FAILED"),
        json!({"test_sub": "error"}),
        json!({"test_sub": "❌"}),
        json!({"unit": {"passed": 1, "failed": 2}}),
        json!({"failed": "test_sub"}),
        json!({"failedTests": ["test_sub"]}),
        json!({"result": "FAILED (failures=1)"}),
        json!({"output": "running 3 tests\ntest result: FAILED. 2 passed; 1 failed"}),
        json!({"timed_out": 1, "passed": 2}),
        json!({"exitCode": 1}),
        json!({"exit_code": "-9"}),
        json!({"ran": "nothing"}),
        json!({"total": 0}),
        json!({"commands": []}),
        json!("nothing"),
        json!(""),
        json!("no tests were run"),
        json!("The tests could not be started"),
        json!({"outcome": "skipped"}),
    ];
    all_read(reports_failure, true, &rows);
}

#[test]
fn tests_that_passed_are_no_failure() {
    let rows = [
        json!({"passed": 3, "failed": "none"}),
        json!({"passed": 3, "failed": [], "not_run": []}),
        json!({"passed": 3, "failed": 0, "skipped": 1, "total": 4}),
        json!({"passed": 3, "xfailed": 1}),
        json!({"passed": 3, "failed_before": 1}),
        json!({"ran": "python3 -m unittest", "result": "Ran 3 tests in 0.001s\n\nOK"}),
        json!({"ran": "by hand: sub(3,1), sub of a failing input", "passed": 2}),
        json!("3 passed, 0 failed"),
        json!("3 of 3 pass, coverage 87%"),
        json!({"summary": "all 3 pass, none failed", "notes": "none"}),
        json!({"test_error_is_shown": "ok", "test_failing_input": "passed"}),
        json!({"exit_code": 0}),
        json!({"passed": 3, "took": "2 of 10 minutes"}),
    ];
    all_read(reports_failure, false, &rows);
}

#[test]
fn a_verdict_in_a_field_of_its_own_counts() {
    let rejections = [
        json!({"approved": false}),
        json!({"canMerge": "no"}),
        json!({"inner": [{"verdict": "REJECT"}]}),
        json!({"decision": "request changes"}),
        json!({"review_result": "**Blocked**"}),
    ];
    all_read(reports_rejection, true, &rejections);
    let others = [
        json!({"approved": true, "verdict": "approve", "decision": "fail fast on bad input"}),
        json!("rejected"),
        json!({"blocked": false}),
    ];
    all_read(reports_rejection, false, &others);
}

#[test]
fn words_for_nothing_are_nothing() {
    let mut rows = texts(&[
        "",
        "none",
        "None.",
        "No security concerns.",
        "none found",
        "n/a",
        "Nothing to report",
        "no known issues",
        "No issues at this time.",
    ]);
    rows.extend([json!(null), json!([]), json!(["none"]), json!({"severity": "none"})]);
    all_read(reports_nothing, true, &rows);
    let mut others = texts(&["none of the inputs is validated", "no limit on uploads", "eval"]);
    others.extend([json!(0), json!(false), json!({"severity": "none", "what": "eval"})]);
    all_read(reports_nothing, false, &others);
}
