//! Checks of the project as a part of a step: when they run, what guards see of them, and what is
//! not repeated.

use crate::workspaces::play::Play;
use counterfoil_flow::{
    AttemptOutcome, AttemptWork, CheckDefinition, CheckProgram, CheckReport, CheckStatus,
    ChecksWork, Ended, Event, Outcome, PlannedChecks,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A worker whose work is followed by checks, and sent back while the tests fail.
const LOOP: &str = r#"
workflow: play
agents: { make: { contract: t/make, prompt: "Make it.{% if report %} Fix {{ report.command }}: {{ report.output }}{% endif %}" } }
variables: { report: check? }
limits: { rounds: { max: 3, then: exhausted } }
start: work
states:
  work:
    agent: make
    checks: [test, type-check]
    next:
      - when: checks.test.status == "failed" && run.base_checks.test.status == "failed"
        go: red
      - when: checks.test.status == "failed" || checks.type_check.status == "failed"
        set: { report: checks.test }
        go: work
        counts: rounds
        reason: checks.test.reason
      - { when: has(checks.test.skipped) && checks.test.skipped > 0, go: skipped }
      - { go: done }
  done: { end: done }
  red: { end: blocked }
  skipped: { end: failed }
  exhausted: { end: exhausted }
"#;

fn report(status: CheckStatus) -> CheckReport {
    CheckReport {
        status,
        command: "make test".to_owned(),
        reason: "`make test` exited with 2".to_owned(),
        output: "1 failed".to_owned(),
        ..CheckReport::default()
    }
}

/// The tests have this status; the other check is not configured.
fn tests(status: CheckStatus) -> BTreeMap<String, CheckReport> {
    BTreeMap::from([
        ("test".to_owned(), report(status)),
        ("type-check".to_owned(), CheckReport::default()),
    ])
}

fn configured() -> PlannedChecks {
    let definition = CheckDefinition {
        run: CheckProgram::Line("make test".to_owned()),
        timeout_ms: 1000,
        report: None,
    };
    let checks = BTreeMap::from([("test".to_owned(), definition)]);
    PlannedChecks { checks, ..PlannedChecks::default() }
}

fn looked(checks: PlannedChecks) -> Event {
    Event::ContextChecked { frame: String::new(), missing: Vec::new(), checks: Some(checks) }
}

fn ended(
    attempt: &str,
    outcome: AttemptOutcome,
    value: Option<Value>,
    checks: BTreeMap<String, CheckReport>,
) -> Event {
    Event::AttemptEnded(Box::new(Ended {
        value,
        reason: "why".to_owned(),
        checks,
        ..Ended::new(attempt, outcome)
    }))
}

fn checked(attempt: &str, checks: BTreeMap<String, CheckReport>) -> Event {
    ended(attempt, AttemptOutcome::Accepted, None, checks)
}

fn made(attempt: &str) -> Event {
    ended(attempt, AttemptOutcome::Accepted, Some(json!({"files": []})), BTreeMap::new())
}

fn started(play: &Play) -> Vec<&str> {
    play.turn.attempts.iter().map(|one| one.attempt.as_str()).collect()
}

fn checks_work(play: &Play) -> &ChecksWork {
    let AttemptWork::Checks(work) = &play.turn.attempts[0].work else { panic!("no checks") };
    work
}

fn outcome(play: &Play) -> Option<Outcome> {
    play.run.ended.as_ref().map(|ended| ended.outcome)
}

/// A run whose base is known and whose worker has returned a result.
fn at_work(base: CheckStatus) -> Play {
    let mut play = Play::begin(LOOP);
    play.tell([checked("base/checks#1", tests(base))]);
    play.tell([looked(configured())]);
    play.tell([made("work#1")]);
    play
}

#[test]
fn checks_run_at_the_base_then_the_step_then_its_checks() {
    let mut play = Play::begin(LOOP);
    assert_eq!(started(&play), ["base/checks#1"]);
    let work = checks_work(&play);
    assert!(work.base && work.planned.is_none() && work.workspace.is_none(), "{work:?}");
    assert_eq!(work.names, ["test", "type-check"]);
    play.tell([checked("base/checks#1", tests(CheckStatus::Passed))]);
    // How the checks are configured is read before the agent starts.
    assert_eq!(started(&play), [""; 0]);
    assert_eq!(play.turn.file_checks[0].checks, ["test", "type-check"]);
    play.tell([looked(configured())]);
    assert_eq!(started(&play), ["work#1"]);
    play.tell([made("work#1")]);
    assert_eq!(started(&play), ["work/checks#1"]);
    assert_eq!(checks_work(&play).planned, Some(configured()));
    play.tell([checked("work/checks#1", tests(CheckStatus::Passed))]);
    assert_eq!(outcome(&play), Some(Outcome::Done));
    // Checks are no attempts of their own.
    assert_eq!(play.run.started, 1);
}

#[test]
fn a_failed_check_leads_back_with_its_output() {
    let mut play = at_work(CheckStatus::Passed);
    play.tell([checked("work/checks#1", tests(CheckStatus::Failed))]);
    let Event::TransitionTaken(taken) = &play
        .turn
        .events
        .iter()
        .find(|(event, _)| matches!(event, Event::TransitionTaken(_)))
        .unwrap()
        .0
    else {
        panic!("no transition");
    };
    assert_eq!((taken.to.as_str(), taken.reason.as_str()), ("work", "`make test` exited with 2"));
    assert_eq!(taken.saw["checks.test.status"], "failed");
    // The next visit reads the configuration again.
    play.tell([looked(configured())]);
    assert_eq!(started(&play), ["work#2"]);
    let AttemptWork::Agent(work) = &play.turn.attempts[0].work else { panic!("no agent") };
    assert!(work.prompt.starts_with("Make it. Fix make test: 1 failed"), "{}", work.prompt);
}

#[test]
fn a_guard_compares_with_the_base() {
    let mut play = at_work(CheckStatus::Failed);
    play.tell([checked("work/checks#1", tests(CheckStatus::Failed))]);
    assert_eq!(outcome(&play), Some(Outcome::Blocked));
}

#[test]
fn checks_that_are_lost_or_stopped_run_again_and_the_step_does_not() {
    let mut play = at_work(CheckStatus::Passed);
    play.tell([Event::AttemptLost {
        attempt: "work/checks#1".to_owned(),
        usage: counterfoil_flow::Usage::default(),
        changed: Vec::new(),
    }]);
    assert_eq!(started(&play), ["work/checks#2"]);
    assert_eq!(checks_work(&play).planned, Some(configured()));
    play.tell([ended("work/checks#2", AttemptOutcome::Cancelled, None, BTreeMap::new())]);
    assert_eq!(started(&play), ["work/checks#3"]);
    // What comes late of an attempt that was lost is dropped.
    play.tell([checked("work/checks#1", tests(CheckStatus::Failed))]);
    assert_eq!(outcome(&play), None);
    play.tell([checked("work/checks#3", tests(CheckStatus::Passed))]);
    assert_eq!(outcome(&play), Some(Outcome::Done));
}

#[test]
fn checks_without_an_outcome_pass_nothing() {
    let mut play = at_work(CheckStatus::Passed);
    play.tell([ended("work/checks#1", AttemptOutcome::Agent, None, BTreeMap::new())]);
    assert_eq!(outcome(&play), Some(Outcome::Failed));
    let mut play = Play::begin(LOOP);
    play.tell([ended("base/checks#1", AttemptOutcome::Agent, None, BTreeMap::new())]);
    assert_eq!(outcome(&play), Some(Outcome::Failed));
}

#[test]
fn the_configuration_before_the_first_attempt_of_a_step_counts() {
    let mut play = Play::begin(LOOP);
    play.tell([checked("base/checks#1", tests(CheckStatus::Passed))]);
    play.tell([looked(configured())]);
    // The attempt is lost, and perhaps it wrote the configuration.
    play.tell([Event::AttemptLost {
        attempt: "work#1".to_owned(),
        usage: counterfoil_flow::Usage::default(),
        changed: Vec::new(),
    }]);
    assert_eq!(started(&play), ["work#2"]);
    play.tell([made("work#2")]);
    assert_eq!(checks_work(&play).planned, Some(configured()));
}

#[test]
fn nothing_is_run_if_nothing_is_configured() {
    let mut play = Play::begin(LOOP);
    play.tell([checked("base/checks#1", tests(CheckStatus::NotConfigured))]);
    play.tell([looked(PlannedChecks::default())]);
    play.tell([made("work#1")]);
    assert_eq!(outcome(&play), Some(Outcome::Done));
}

#[test]
fn a_configuration_that_cannot_be_read_is_reported_by_the_checks() {
    let mut play = Play::begin(LOOP);
    play.tell([checked("base/checks#1", tests(CheckStatus::NotConfigured))]);
    let problem = Some("line 1".to_owned());
    play.tell([looked(PlannedChecks { problem, ..PlannedChecks::default() })]);
    play.tell([made("work#1")]);
    assert_eq!(started(&play), ["work/checks#1"]);
}

#[test]
fn checks_can_be_a_state_of_their_own() {
    let mut play = Play::begin(
        r#"
workflow: play
start: verify
states:
  verify:
    checks: [test]
    next: [{ when: checks.test.status != "passed", go: red }, { go: done }]
  done: { end: done }
  red: { end: blocked, reason: "'red'" }
"#,
    );
    play.tell([checked("base/checks#1", tests(CheckStatus::Passed))]);
    play.tell([looked(configured())]);
    assert_eq!(started(&play), ["verify/checks#1"]);
    play.tell([checked("verify/checks#1", tests(CheckStatus::Failed))]);
    assert_eq!(outcome(&play), Some(Outcome::Blocked));
}

#[test]
fn checks_run_in_the_worktree_of_the_step_before_it_is_merged() {
    let mut play = Play::begin(
        r#"
workflow: play
agents: { make: { contract: t/make, prompt: "Make it." } }
start: work
states:
  work:
    agent: make
    workspace: worktree
    checks: [test]
    next: [{ when: checks.test.status == "passed", go: done }, { go: red }]
  done: { end: done }
  red: { end: failed }
"#,
    );
    play.tell([checked("base/checks#1", tests(CheckStatus::Passed))]);
    play.tell([Event::WorkspaceOpened {
        frame: String::new(),
        workspace: "work#1".to_owned(),
        notes: Vec::new(),
    }]);
    play.tell([looked(configured())]);
    play.tell([made("work#1")]);
    assert_eq!(checks_work(&play).workspace.as_deref(), Some("work#1"));
    assert_eq!(play.turn.workspace_ops, []);
    // The worktree has the result of the step: it is kept when only the checks are lost.
    play.tell([Event::AttemptLost {
        attempt: "work/checks#1".to_owned(),
        usage: counterfoil_flow::Usage::default(),
        changed: Vec::new(),
    }]);
    assert_eq!(checks_work(&play).workspace.as_deref(), Some("work#1"));
    assert_eq!(play.turn.workspace_ops, []);
    play.tell([checked("work/checks#2", tests(CheckStatus::Passed))]);
    assert_eq!(play.turn.workspace_ops.len(), 1);
}

#[test]
fn a_budget_that_the_step_used_up_does_not_keep_its_checks_from_running() {
    let mut play =
        Play::begin(&LOOP.replace("start: work", "budget: { attempts: 1 }\nstart: work"));
    play.run.budget.attempts = Some(1);
    play.tell([checked("base/checks#1", tests(CheckStatus::Passed))]);
    play.tell([looked(configured())]);
    play.tell([made("work#1")]);
    assert_eq!(started(&play), ["work/checks#1"]);
    play.tell([checked("work/checks#1", tests(CheckStatus::Passed))]);
    assert_eq!(outcome(&play), Some(Outcome::Done));
}
