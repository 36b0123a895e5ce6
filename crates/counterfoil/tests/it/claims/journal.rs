//! Journals written by hand, so that their times and ids are fixed.

use counterfoil::claim::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_engine::journal::{Batch, Journal, NewEvent, NewRun};
use counterfoil_flow::{
    AssignedAgent, AttemptOutcome, Budget, Cause, ChangedFiles, Ended, Event, Outcome, Reply,
    Started, Usage,
};
use counterfoil_testkit::{TestProject, git_command};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// When the runs begin: 2026-01-02 03:04:05 UTC.
pub(crate) const RUN_START: i64 = 1_767_323_045_000;

/// Writes the journals of runs: the id, when the run began, and its events, one second apart.
pub(crate) fn write_runs(
    project: &TestProject,
    runs: impl IntoIterator<Item = (String, i64, Vec<Event>)>,
) {
    let journal = Journal::open(project.state()).unwrap();
    for (id, at, events) in runs {
        let row = |(n, event): (usize, &Event)| NewEvent {
            at: at + 1000 * i64::try_from(n).unwrap(),
            kind: event.kind().into(),
            body: serde_json::to_vec(event).unwrap(),
        };
        let rows = events.iter().enumerate().map(row).collect();
        let Event::RunStarted(started) = &events[0] else { panic!("a run begins with its start") };
        let new = NewRun { id: &id, workflow: &started.workflow, version: 1, bundle: b"none", at };
        journal.create(new, Batch { events: rows, ..Batch::default() }).unwrap().release().unwrap();
    }
}

/// The start of a run, with the program and the model of the agent `worker`.
pub(crate) fn run_started(run: &str, workflow: &str, spec: &str, model: Option<&str>) -> Event {
    let player = AssignedAgent {
        spec: spec.to_owned(),
        backs_off: false,
        retry: BTreeMap::new(),
        model: model.map(str::to_owned),
        version: None,
    };
    Event::RunStarted(Box::new(Started {
        run: run.to_owned(),
        workflow: workflow.to_owned(),
        version: 1,
        bundle: String::new(),
        decide: 1,
        inputs: Map::new(),
        agents: BTreeMap::from([("worker".to_owned(), player)]),
        budget: Budget::default(),
        repo: "/".to_owned(),
        observed: String::new(),
        own: Vec::new(),
        base: None,
        config: None,
    }))
}

pub(crate) fn frame_opened(state: &str) -> Event {
    Event::FrameOpened {
        frame: String::new(),
        parent: None,
        machine: String::new(),
        item: None,
        state: state.to_owned(),
        inputs: Map::new(),
        variables: Map::new(),
        counts: BTreeMap::new(),
        iteration: None,
    }
}

pub(crate) fn attempt_started(state: &str, n: u32) -> Event {
    Event::AttemptStarted {
        attempt: format!("{state}#{n}"),
        frame: String::new(),
        path: vec![state.to_owned()],
        agent: Some("worker".to_owned()),
        n,
        contract: Some("scene/fix@1".to_owned()),
        builtin: None,
    }
}

fn reply(status: &str, codes: &[&str]) -> Reply {
    let codes = codes.iter().map(|code| (*code).to_owned()).collect();
    Reply {
        transcript: "transcripts/none".to_owned(),
        status: status.to_owned(),
        codes,
        ..Reply::default()
    }
}

/// The agent is asked to repair its result: because of its contract, or of these claims.
pub(crate) fn repair_asked(state: &str, n: u32, claims: Vec<ClaimReport>) -> Event {
    let reply =
        if claims.is_empty() { reply("rejected", &["C0301"]) } else { reply("accepted", &[]) };
    Event::RepairAsked { attempt: format!("{state}#{n}"), reply, usage: Usage::default(), claims }
}

pub(crate) fn attempt_ended(
    state: &str,
    n: u32,
    outcome: AttemptOutcome,
    claims: Vec<ClaimReport>,
    changed: &[&str],
) -> Event {
    let modified: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
    let accepted = outcome == AttemptOutcome::Accepted;
    Event::AttemptEnded(Box::new(Ended {
        value: accepted.then(|| json!({"ok": true})),
        reason: if accepted {
            String::new()
        } else {
            "a claim that had to hold was refuted".to_owned()
        },
        claims,
        changed: Some(ChangedFiles {
            total: modified.len() as u64,
            modified,
            ..ChangedFiles::default()
        }),
        reply: Some(reply("accepted", &[])),
        ..Ended::new(format!("{state}#{n}"), outcome)
    }))
}

pub(crate) fn run_ended(outcome: Outcome, cause: Option<Cause>) -> Event {
    Event::RunEnded { outcome, cause, reason: String::new(), state: "done".to_owned(), exit: None }
}

pub(crate) fn claim_report(name: &str, kind: ClaimKind, verdict: Verdict) -> ClaimReport {
    ClaimReport {
        claim: name.to_owned(),
        field: name.to_owned(),
        kind,
        policy: ClaimPolicy::Require,
        verdict,
        claimed: json!(true),
        observed: Value::Null,
        reason: String::new(),
        evidence: Vec::new(),
        tree: None,
    }
}

pub(crate) fn files_claim(claimed: &[&str], observed: &[&str], reason: &str) -> ClaimReport {
    let verdict = if reason.is_empty() { Verdict::Verified } else { Verdict::Refuted };
    ClaimReport {
        claimed: json!(claimed),
        observed: json!(observed),
        reason: reason.to_owned(),
        evidence: vec![Evidence::new("diff", format!("{} files changed", observed.len()))],
        ..claim_report("files_changed", ClaimKind::FilesChanged, verdict)
    }
}

pub(crate) fn tests_claim(verdict: Verdict) -> ClaimReport {
    let failed = verdict == Verdict::Refuted;
    ClaimReport {
        observed: json!(!failed),
        reason: if failed {
            "success is claimed, and the check fails".to_owned()
        } else {
            String::new()
        },
        evidence: vec![Evidence {
            exit_code: Some(i32::from(failed)),
            output: "running 2 tests\ntest result: 1 failed\n".to_owned(),
            ..Evidence::new("command", "`cargo test`")
        }],
        ..claim_report("tests_passing", ClaimKind::Command, verdict)
    }
}

/// Runs git in the repository, with a fixed date for commits.
pub(crate) fn git(project: &TestProject, arguments: &[&str]) -> String {
    const DATE: &str = "2026-01-01T00:00:00Z";
    let mut command = git_command(project.repo(), arguments);
    command.env("GIT_AUTHOR_DATE", DATE).env("GIT_COMMITTER_DATE", DATE);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
