//! What reviewers say beside the severity of their findings.

use super::false_done::not_done;
use super::{FIXED, FIXER, READ, REVIEWER, finding, found, ledger, nothing, one_file, outcomes};
use crate::packs::run::ScenarioRun;
use serde_json::{Value, json};

const CODE_REVIEWER: &str = "code-reviewer";
const BY_IT: [&str; 2] = ["--input", "reviewer=code-reviewer"];

/// A review by the code reviewer that found nothing, and says more.
fn review(more: &Value) -> Value {
    let mut review =
        json!({"success": true, "findings": [], "files_reviewed": 1, "summary": "All good"});
    for (field, value) in more.as_object().unwrap() {
        review[field] = value.clone();
    }
    review
}

fn remark(severity: &str, message: &str) -> Value {
    json!({"severity": severity, "file": "src/lib.rs", "line": 2, "message": message})
}

/// A major finding about a name.
fn naming() -> Value {
    remark("major", "The name `one` says nothing")
}

/// The code reviewer says this, whatever it is asked; the fixer fixes the first finding, and the next
/// review finds nothing.
fn fixed_after(said: &Value) -> ScenarioRun {
    let scenario =
        (0..3).fold(one_file(), |scenario, _| scenario.says(CODE_REVIEWER, said.clone()));
    scenario
        .says(FIXER, outcomes(&[("c1-F1", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(CODE_REVIEWER, review(&json!({})))
        .built_in_only()
        .run(&BY_IT)
}

/// A review with these findings and more.
fn with_findings(findings: &[Value], more: &Value) -> Value {
    let mut said = review(more);
    said["findings"] = json!(findings);
    said
}

#[test]
fn something_severe_that_no_finding_says_is_asked_about() {
    for more in [
        json!({"metadata": {"critical": ["eval on input"]}}),
        json!({"metadata": {"critical": "eval on input"}}),
        json!({"metadata": {"base": "main", "blocking": [{"severity": "critical", "message": "SQL injection in the login"}]}}),
        json!({"metadata": {"critical": 1}}),
        json!({"metadata": {"counts": {"critical_findings": 2}}}),
        json!({"metadata": {"critical": ["the name says nothing", "eval on input"]}}),
        json!({"output": "Fine.\nCRITICAL: eval on input"}),
        json!({"output": "## Critical\n- eval on input"}),
        json!({"output": "The name says nothing. CRITICAL: eval on input"}),
        json!({"summary": "The name is bad; 1 critical finding"}),
        json!({"summary": "There is a critical vulnerability in the parser"}),
    ] {
        let ran = fixed_after(&with_findings(&[naming()], &more));
        assert_ne!(ran.ended().0, "done", "{more}: {ran:?}");
        let asked = ran.prompt("review/1/code-reviewer#1", 2);
        assert!(asked.contains("that no finding of that severity says"), "{more}: {asked}");
        // The name is fixed, and what was said beside it is not, whatever the next review says.
        assert_eq!(ledger(&ran), ["c1-F1 fixed 1", "c1-unread-1 open 0"], "{more}: {ran:?}");
    }
}

#[test]
fn something_severe_that_a_finding_says_is_no_reason_to_ask() {
    let eval = || remark("critical", "User input reaches `eval`");
    let login = || remark("critical", "SQL injection: the login builds its query from a name");
    for (findings, more) in [
        (vec![eval()], json!({"metadata": {"critical": ["eval on input"], "base": "main"}})),
        (vec![eval()], json!({"metadata": {"critical": 1, "high": 0, "tool": "a linter"}})),
        (vec![eval()], json!({"summary": "Found 1 critical issue"})),
        (vec![eval()], json!({"summary": "There is a critical vulnerability: eval of the input."})),
        (vec![eval()], json!({"output": "## Critical\n- `eval` is called with the input\n"})),
        (vec![login()], json!({"summary": "CRITICAL: the login concatenates user input into SQL"})),
        (vec![login(), eval()], json!({"metadata": {"critical": ["SQL injection", "eval"]}})),
        (vec![naming()], json!({"summary": "No critical issues; one name is bad"})),
    ] {
        let ids: Vec<String> = (1..=findings.len()).map(|at| format!("c1-F{at}")).collect();
        let mut scenario = one_file().says(CODE_REVIEWER, with_findings(&findings, &more));
        for id in &ids {
            scenario = scenario.says(FIXER, outcomes(&[(id, "blocked")])).when(id);
        }
        let ran = scenario.built_in_only().run(&BY_IT);
        assert_eq!(ran.attempt("review/1/code-reviewer#1")["repairs_asked"], 0, "{more}: {ran:?}");
    }
}

#[test]
fn a_minor_finding_that_calls_itself_critical_is_not_minor() {
    let severe = "CRITICAL: user input reaches eval";
    let minor = finding("F001", "src/lib.rs", "minor");
    let mut named = minor.clone();
    named["issue"] = json!(severe);
    let group =
        json!({"groups": [{"description": severe, "findings": [minor]}], "files_reviewed": READ});
    for said in [found(&[named]), group] {
        let scenario = one_file().says(REVIEWER, said);
        let scenario = scenario.says(FIXER, outcomes(&[("c1-F001", "blocked")]));
        not_done(scenario, &[], 8, "request-changes");
    }
    for severity in ["minor", "suggestion"] {
        let said = with_findings(&[remark(severity, severe)], &json!({}));
        let scenario = one_file().says(CODE_REVIEWER, said);
        let scenario = scenario.says(FIXER, outcomes(&[("c1-F1", "blocked")]));
        not_done(scenario, &BY_IT, 8, "request-changes");
    }
    let high = with_findings(&[remark("minor", "HIGH: the key is short")], &json!({}));
    let scenario = one_file().says(CODE_REVIEWER, high);
    let scenario = scenario.says(FIXER, outcomes(&[("c1-F1", "blocked")]));
    let by_it = [&BY_IT[..], &["--fail-on", "major"]].concat();
    not_done(scenario, &by_it, 8, "comment: 1 findings");
}

#[test]
fn a_problem_that_is_left_out_when_asked_is_not_settled_by_the_next_review() {
    let minor = || remark("minor", "The name `one` says nothing");
    let severe = with_findings(&[minor()], &json!({"metadata": {"critical": ["eval on input"]}}));
    let clean = with_findings(&[minor()], &json!({}));
    let scenario = one_file().says(CODE_REVIEWER, severe).says(CODE_REVIEWER, clean.clone());
    let scenario = scenario.says(CODE_REVIEWER, clean).says(FIXER, outcomes(&[("c1-F1", "fixed")]));
    let scenario = scenario.writes("src/lib.rs", FIXED).says(CODE_REVIEWER, review(&json!({})));
    let ran = not_done(scenario, &BY_IT, 7, "eval on input");
    assert_eq!(ledger(&ran), ["c1-F1 fixed 1", "c1-unread-1 open 0"], "{ran:?}");

    let clean = found(&[finding("F001", "src/lib.rs", "minor")]);
    let mut severe = clean.clone();
    severe["verdict"] = json!("request changes");
    let scenario = one_file().says(REVIEWER, severe).says(REVIEWER, clean.clone());
    let scenario = scenario.says(REVIEWER, clean).says(FIXER, outcomes(&[("c1-F001", "fixed")]));
    let scenario = scenario.writes("src/lib.rs", FIXED).says(REVIEWER, nothing());
    let ran = not_done(scenario, &[], 7, "`verdict`");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-unread-1 open 0"], "{ran:?}");
}
