//! What reviewers say in words beside their verdict counts too: something severe is no approval.

use super::{ONE, Pipeline, approved, coded, commits, master, ready, rejected, reviewed, with};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const SEVERE: &str = "critical: user input reaches eval";

/// The agent says this, whatever it is asked, and everybody else approves.
fn always(scenario: Scenario, agent: &str, result: &Value) -> ScenarioRun {
    let scenario = (0..3).fold(scenario, |scenario, _| scenario.says(agent, result.clone()));
    scenario.gate("a", ready()).run(&ONE)
}

fn is_refused(ran: &ScenarioRun, words: &str) {
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(commits(ran), [""; 0], "{ran:?}");
    assert!(ran.reason().contains(words), "{words}: {}", ran.reason());
}

#[test]
fn an_approval_with_something_severe_is_refused() {
    for fields in [
        json!({"security": [SEVERE]}),
        json!({"security": ["the key is short", "CRITICAL: user input reaches eval"]}),
        json!({"issues_total": 1, "minor": [SEVERE]}),
    ] {
        let ran = always(coded(), "code-reviewer", &with(approved(), &fields));
        is_refused(&ran, "reports something high or critical");
    }
}

#[test]
fn a_merge_gate_that_is_ready_with_something_severe_is_refused() {
    for warnings in [json!(["CRITICAL: user input reaches eval"]), json!(["small", SEVERE])] {
        let result = with(ready(), &json!({"warnings": warnings}));
        let ran = always(reviewed(), "review-pr", &result);
        is_refused(&ran, "`warnings` reports something high or critical");
    }
}

#[test]
fn a_reviewer_that_takes_its_approval_back_when_asked_has_it_fixed() {
    let security = json!({"security": [SEVERE]});
    let ran = coded()
        .review("a", with(approved(), &security))
        .review("a", with(rejected("it is not safe"), &security))
        .fix("a")
        .review("a", approved())
        .gate("a", ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.prompt("build/a/work/fix#1", 1).contains(SEVERE), "{ran:?}");
}

#[test]
fn harmless_words_beside_an_approval_pass_and_are_reported() {
    let security = json!({"security": ["the key could be longer", "no critical issues"]});
    let warnings = json!({"warnings": ["high test coverage is not kept up in docs"]});
    let ran = coded()
        .review("a", with(approved(), &security))
        .gate("a", with(ready(), &warnings))
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let master = master(&ran);
    for remark in ["review, security: the key could be longer", "merge gate: high test coverage"] {
        assert!(master.contains(remark), "{remark}: {master}");
    }
}

#[test]
fn what_a_pass_calls_severe_is_sent_to_be_fixed_whatever_its_grade() {
    let hunted = json!({
        "silent_failures_found": 1, "locations": ["src/a.rs:1: CRITICAL: the payment is lost"], "severity": "low",
        "recommendations": null
    });
    let typed = json!({
        "types_analyzed": 1, "quality_score": 9, "issues": ["critical: a password is a plain text"],
        "recommendations": null
    });
    for (agent, pass, result, issue) in [
        ("silent-failure-hunter", "silent-failure", hunted, "the payment is lost"),
        ("type-design-analyzer", "type-design", typed, "a password is a plain text"),
    ] {
        let scenario = reviewed().says(agent, result).fix("a").gate("a", ready());
        let ran = scenario.run(&[&ONE[..], &["--input", &format!("passes={pass}")]].concat());
        assert_eq!(ran.ended(), ("done", None, 0), "{agent}: {ran:?}");
        assert!(ran.prompt("build/a/work/fix#1", 1).contains(issue), "{agent}: {ran:?}");
    }
}
