//! The life of workspaces, claims in guards, and the restrictions of agents, each in the smallest
//! workflow that shows it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod play;

use counterfoil_contract::claim::{ClaimMatch, ClaimPolicy, Verdict};
use counterfoil_flow::{
    AgentWork, AttemptOutcome, Event, FailureKind, Outcome, Resumed, WorkspaceOpKind,
};
use play::{Play, items, one, report};
use serde_json::json;

#[test]
fn items_that_write_beside_each_other_work_in_worktrees_and_are_folded_in_the_order_they_began() {
    let mut play = Play::begin(&items("parallel: 2"));
    assert_eq!(
        play.workspace_ops(),
        [(WorkspaceOpKind::Open, "all/a#1"), (WorkspaceOpKind::Open, "all/b#1")]
    );
    assert!(play.started().is_empty(), "an agent started before its worktree was there");
    assert_eq!(play.see_to("all/a#1", &[]).started(), [("all/a/make#1", Some("all/a#1"))]);
    assert_eq!(
        play.workspace_ops(),
        [(WorkspaceOpKind::Open, "all/b#1")],
        "an op is given again until it is answered"
    );
    play.see_to("all/b#1", &[]);
    // Agents and commands of an item share its worktree, and so do the files it needs.
    assert_eq!(play.accept("all/b/make#1").started(), [("all/b/build#1", Some("all/b#1"))]);
    play.accept("all/b/build#1");
    assert_eq!(play.turn.file_checks[0].workspace.as_deref(), Some("all/b#1"));
    play.looked("all/b");
    play.accept("all/b/look#1");
    assert!(play.workspace_ops().is_empty(), "b was merged before a: {:?}", play.workspace_ops());
    assert!(!play.run.frames.contains_key("all/c"), "an item that is not merged is still running");
    play.accept("all/a/make#1").accept("all/a/build#1").looked("all/a");
    assert_eq!(play.accept("all/a/look#1").workspace_ops(), [(WorkspaceOpKind::Merge, "all/a#1")]);
    play.see_to("all/a#1", &[]);
    assert_eq!(
        play.workspace_ops(),
        [(WorkspaceOpKind::Merge, "all/b#1"), (WorkspaceOpKind::Open, "all/c#1")]
    );
    play.see_to("all/b#1", &[]).see_to("all/c#1", &[]);
    play.accept("all/c/make#1").accept("all/c/build#1").looked("all/c").accept("all/c/look#1");
    assert_eq!(play.see_to("all/c#1", &[]).ending().0, Outcome::Done);
}

#[test]
fn one_that_waits_for_its_turn_does_not_keep_the_run_from_waiting_for_a_person() {
    let text = items("parallel: 2").replace(
        "make: { agent: make, go: build }",
        "make: { next: [{ when: \"name == 'a'\", go: ask }, { go: work }] }\n      ask: { ask: { question: \"Go on?\" }, go: done }\n      work: { agent: make, go: done }",
    );
    let text = text
        .replace("    start: make", "    inputs: { name: string }\n    start: make")
        .replace("run: one,", "run: one, with: { name: task },")
        .replace(
            "      build: { command: [make], next: [{ when: result.ok, go: look }, { go: broken }] }\n",
            "",
        )
        .replace("      look: { agent: look, needs: [README.md], go: done }\n", "")
        .replace("      broken: { end: failed, reason: \"'it does not build'\" }\n", "")
        .replace(", look: { contract: t/look, prompt: \"FileCheck.\", access: read-only }", "");
    let mut play = Play::begin(&text);
    play.opened(&["all/a#1", "all/b#1"]).accept("all/b/work#1");
    assert!(play.workspace_ops().is_empty() && play.run.is_resting());
    let answer = Event::Answered {
        question: "all/a/ask".to_owned(),
        answer: "yes".to_owned(),
        by: "somebody".to_owned(),
        from: None,
    };
    assert_eq!(play.tell([answer]).workspace_ops(), [(WorkspaceOpKind::Merge, "all/a#1")]);
    assert_eq!(play.see_to("all/a#1", &[]).workspace_ops()[0], (WorkspaceOpKind::Merge, "all/b#1"));
}

#[test]
fn an_item_in_conflict_is_not_done_and_says_where_its_work_is() {
    let finished = |more: &str| {
        let mut play = Play::begin(&items(more));
        play.opened(&["all/a#1", "all/b#1"]);
        for item in ["a", "b"] {
            let at = |state: &str| format!("all/{item}/{state}#1");
            play.accept(&at("make"))
                .accept(&at("build"))
                .looked(&format!("all/{item}"))
                .accept(&at("look"));
        }
        play.see_to("all/a#1", &["src/a.rs", "b.rs"]);
        play
    };
    let reason =
        "changes conflict with the repository: src/a.rs, b.rs; the work is kept in all/a#1.patch";
    let mut play = finished("parallel: 2, failures: collect");
    play.see_to("all/b#1", &[]).see_to("all/c#1", &[]);
    play.accept("all/c/make#1").accept("all/c/build#1").looked("all/c").accept("all/c/look#1");
    play.see_to("all/c#1", &[]);
    assert_eq!(play.ending().0, Outcome::Failed);
    assert!(play.ending().1.contains(&format!("a: {reason}")), "{}", play.ending().1);
    // Where one that is lost ends the state, those that are done are still merged, and none
    // begins.
    let mut play = finished("parallel: 2");
    assert_eq!(play.workspace_ops(), [(WorkspaceOpKind::Merge, "all/b#1")]);
    play.see_to("all/b#1", &[]);
    assert_eq!(play.ending(), (Outcome::Failed, &*format!("item 'a': {reason}")));
}

#[test]
fn a_conflict_of_one_state_can_be_answered() {
    let mut play = Play::begin(&one("on: { conflict: { go: other, reason: problem.reason } }"));
    play.see_to("work#1", &[]).accept("work#1").see_to("work#1", &["a.rs"]);
    let reason = "changes conflict with the repository: a.rs; the work is kept in work#1.patch";
    assert_eq!(play.ending(), (Outcome::Blocked, reason));
    let mut play = Play::begin(&one(""));
    play.see_to("work#1", &[]).accept("work#1").see_to("work#1", &["a.rs"]);
    assert_eq!(play.ending(), (Outcome::Failed, reason));
}

#[test]
fn retries_go_on_in_the_same_worktree_and_a_lost_attempt_does_not() {
    let mut play = Play::begin(&one(""));
    play.see_to("work#1", &[]);
    assert_eq!(play.started(), [("work#1", Some("work#1"))]);
    play.ends("work#1", AttemptOutcome::Agent, Vec::new());
    assert_eq!(play.started(), [("work#2", Some("work#1"))]);
    play.tell([Event::AttemptLost {
        attempt: "work#2".to_owned(),
        usage: counterfoil_flow::Usage::default(),
        changed: Vec::new(),
    }]);
    assert_eq!(
        play.workspace_ops(),
        [(WorkspaceOpKind::Open, "work#2"), (WorkspaceOpKind::Drop, "work#1")]
    );
    play.see_to("work#2", &[]);
    assert_eq!(play.started(), [("work#3", Some("work#2"))]);
    play.accept("work#3").see_to("work#2", &[]);
    assert!(play.run.ended.is_none(), "the run ended and left a worktree behind");
    assert_eq!(play.see_to("work#1", &[]).ending().0, Outcome::Done);
}

#[test]
fn an_attempt_lost_in_a_sub_workflow_goes_on_where_its_steps_were_done() {
    let mut play = Play::begin(&items("parallel: 2"));
    play.opened(&["all/a#1", "all/b#1"]).accept("all/a/make#1");
    play.tell([Event::AttemptLost {
        attempt: "all/a/build#1".to_owned(),
        usage: counterfoil_flow::Usage::default(),
        changed: Vec::new(),
    }]);
    assert_eq!(play.started(), [("all/a/build#2", Some("all/a#1"))]);
}

#[test]
fn an_attempt_lost_in_the_first_step_of_a_sub_workflow_begins_in_a_fresh_worktree() {
    let mut play = Play::begin(&items("parallel: 2"));
    play.opened(&["all/a#1", "all/b#1"]);
    play.tell([Event::AttemptLost {
        attempt: "all/a/make#1".to_owned(),
        usage: counterfoil_flow::Usage::default(),
        changed: Vec::new(),
    }]);
    assert_eq!(
        play.workspace_ops(),
        [(WorkspaceOpKind::Open, "all/a#2"), (WorkspaceOpKind::Drop, "all/a#1")]
    );
    play.see_to("all/a#2", &[]);
    assert_eq!(play.started(), [("all/a/make#2", Some("all/a#2"))]);
}

#[test]
fn what_gives_no_result_is_dropped_before_anything_else_follows() {
    let mut play = Play::begin(&one(
        "on: { timeout: { go: other, reason: problem.reason } }\n    retries: { timeout: 0 }",
    ));
    play.see_to("work#1", &[]).ends("work#1", AttemptOutcome::Timeout, Vec::new());
    assert_eq!(play.workspace_ops(), [(WorkspaceOpKind::Drop, "work#1")]);
    play.see_to("work#1", &[]);
    let reason = "the timeout of work#1; the work is kept in work#1.patch";
    assert_eq!(play.ending(), (Outcome::Blocked, reason));
}

#[test]
fn a_worktree_that_cannot_be_opened_blocks() {
    let failed = |workspace: &str, frame: &str| Event::WorkspaceFailed {
        frame: frame.to_owned(),
        workspace: workspace.to_owned(),
        reason: "no room".to_owned(),
    };
    let mut play = Play::begin(&one(""));
    play.tell([failed("work#1", "")]);
    assert_eq!(play.ending(), (Outcome::Blocked, "no workspace could be opened: no room"));
    // Folding that fails is followed by dropping; if that fails too, nothing goes round.
    let mut play = Play::begin(&one(""));
    play.see_to("work#1", &[]).accept("work#1").tell([failed("work#1", "")]);
    assert_eq!(play.workspace_ops(), [(WorkspaceOpKind::Drop, "work#1")]);
    play.tell([failed("work#1", "")]);
    assert_eq!(play.ending(), (Outcome::Blocked, "the work could not be merged: no room"));
}

#[test]
fn facts_about_a_workspace_that_is_gone_are_dropped() {
    let mut play = Play::begin(&one(""));
    let opened = |id: &str| Event::WorkspaceOpened {
        frame: String::new(),
        workspace: id.to_owned(),
        notes: Vec::new(),
    };
    assert!(play.tell([opened("work#2")]).turn.events.is_empty());
    play.tell([opened("work#1")]);
    assert!(play.tell([opened("work#1")]).turn.events.is_empty());
    let dropped = Event::WorkspaceDropped {
        frame: String::new(),
        workspace: "work#1".to_owned(),
        kept: None,
    };
    assert!(
        play.tell([dropped]).turn.events.is_empty(),
        "dropped under the agent that works in it"
    );
}

#[test]
fn a_run_that_is_cancelled_drops_what_is_open_and_one_that_is_stopped_keeps_it() {
    let cancelled = |attempt: &str, play: &mut Play| {
        play.ends(attempt, AttemptOutcome::Cancelled, Vec::new());
    };
    let mut play = Play::begin(&items("parallel: 2"));
    play.see_to("all/a#1", &[]);
    play.tell([Event::RunStopped { reason: "stop".to_owned() }]);
    assert!(play.workspace_ops().is_empty());
    cancelled("all/a/make#1", &mut play);
    play.tell([Event::RunResumed(Box::new(Resumed { by: "me".to_owned(), ..Resumed::default() }))]);
    assert_eq!(play.started(), [("all/a/make#2", Some("all/a#1"))]);
    assert_eq!(play.workspace_ops(), [(WorkspaceOpKind::Open, "all/b#1")]);
    play.tell([Event::CancelRequested { by: "me".to_owned(), from: None }]);
    assert!(play.workspace_ops().is_empty(), "dropped under an attempt");
    cancelled("all/a/make#2", &mut play);
    // The second may be half made.
    assert_eq!(
        play.workspace_ops(),
        [(WorkspaceOpKind::Drop, "all/a#1"), (WorkspaceOpKind::Drop, "all/b#1")]
    );
    play.see_to("all/a#1", &[]).see_to("all/b#1", &[]);
    let reason = "cancelled by me; the work is kept in all/a#1.patch, all/b#1.patch";
    assert_eq!(play.ending(), (Outcome::Cancelled, reason));
}

#[test]
fn a_run_that_began_before_stays_in_the_repository_and_is_held_to_nothing() {
    let mut play = Play::under(&items("parallel: 2"), 1);
    assert!(play.workspace_ops().is_empty());
    assert_eq!(play.started(), [("all/a/make#1", None), ("all/b/make#1", None)]);
    let work = play.agent();
    assert!(work.claims.is_empty() && work.writes.is_none() && work.tests == ClaimPolicy::Ignore);
    // A snapshot of then does not know of versions, workspaces and claims.
    let mut old = serde_json::to_value(&play.run).unwrap();
    old.as_object_mut().unwrap().remove("decide").unwrap();
    old["frames"][""]["phase"]["fanned"].as_object_mut().unwrap().remove("working").unwrap();
    play.run = serde_json::from_value(old).unwrap();
    play.accept("all/a/make#1").accept("all/a/build#1").looked("all/a").accept("all/a/look#1");
    assert!(play.workspace_ops().is_empty());
    assert_eq!(play.started(), [("all/c/make#1", None)]);
}

#[test]
fn who_gets_a_worktree() {
    let cases = [
        ("parallel: 1", items("parallel: 1"), false),
        ("two at once that write", items("parallel: 2"), true),
        ("said otherwise", items("parallel: 2, workspace: repository"), false),
        ("one after the other, as asked for", items("workspace: worktree"), true),
        (
            "none may write",
            items("parallel: 2").replace("prompt: \"Make it.\"", "prompt: \"M.\", writes: []"),
            false,
        ),
        (
            "the only writer reads",
            items("parallel: 2").replace("\"Make it.\"", "M, access: read-only"),
            false,
        ),
        (
            "an agent for each",
            items("parallel: 2")
                .replace("run: one", "agent: make")
                .split("workflows:")
                .next()
                .unwrap()
                .replace(
                    ", look: { contract: t/look, prompt: \"FileCheck.\", access: read-only }",
                    "",
                ),
            true,
        ),
        ("an agent alone", one("").replace("    workspace: worktree\n", ""), false),
    ];
    for (what, text, has) in cases {
        assert_eq!(!Play::begin(&text).turn.workspace_ops.is_empty(), has, "{what}");
    }
}

#[test]
fn what_runs_in_a_worktree_shares_it() {
    let text = items("parallel: 2")
        .replace(
            "      make: { agent: make, go: build }",
            "      make: { each: { in: parts, as: part, parallel: 2, agent: make }, go: build }",
        )
        .replace(
            "    start: make",
            "    inputs: { parts: { type: [string], default: [x, y] } }\n    start: make",
        );
    let mut play = Play::begin(&text);
    play.see_to("all/a#1", &[]);
    assert_eq!(
        play.started(),
        [("all/a/make/1#1", Some("all/a#1")), ("all/a/make/2#1", Some("all/a#1"))]
    );
}

#[test]
fn guards_see_what_became_of_claims() {
    let text = r#"
workflow: play
agents: { make: { contract: t/make, prompt: "Make it." } }
start: work
states:
  work:
    agent: make
    on: { claim: { go: other, reason: claims.files.reason } }
    next:
      - { when: claims.files.verdict == "refuted", go: other, reason: claims.files.reason }
      - { when: claims.tests_pass.verdict == "none" && claims.protected.verdict == "none", go: other, reason: "'nothing is known'" }
      - { go: done }
  done: { end: done }
  other: { end: blocked }
"#;
    let ended = |outcome, claims| {
        let mut play = Play::begin(text);
        play.ends("work#1", outcome, claims);
        let (outcome, reason) = play.ending();
        (outcome, reason.to_owned())
    };
    let record = ClaimPolicy::Record;
    let (accepted, claim) = (AttemptOutcome::Accepted, AttemptOutcome::Claim);
    assert_eq!(ended(accepted, Vec::new()), (Outcome::Blocked, "nothing is known".to_owned()));
    let cases = [
        (vec![report("protected", Verdict::Verified, record)], Outcome::Done),
        (vec![report("tests_pass", Verdict::Stale, record)], Outcome::Done),
        (vec![report("files", Verdict::Refuted, record)], Outcome::Blocked),
        // Two of one name: the worse counts, whichever comes first.
        (
            vec![
                report("files", Verdict::Refuted, record),
                report("files", Verdict::Verified, record),
            ],
            Outcome::Blocked,
        ),
        (
            vec![
                report("files", Verdict::Verified, record),
                report("files", Verdict::Refuted, record),
            ],
            Outcome::Blocked,
        ),
        // One that is ignored is as if it had not been made.
        (
            vec![
                report("files", Verdict::Refuted, ClaimPolicy::Ignore),
                report("tests_pass", Verdict::Verified, record),
            ],
            Outcome::Done,
        ),
    ];
    for (claims, outcome) in cases {
        assert_eq!(ended(accepted, claims.clone()).0, outcome, "{claims:?}");
    }
    let refuted = vec![report("files", Verdict::Refuted, ClaimPolicy::Require)];
    assert_eq!(ended(claim, refuted), (Outcome::Blocked, "files differs".to_owned()));
}

#[test]
fn a_claim_refuted_in_the_same_way_again_and_again_is_no_progress() {
    let on = one("retries: { claim: 2 }").replace("    workspace: worktree\n", "");
    let refuted = || vec![report("files", Verdict::Refuted, ClaimPolicy::Require)];
    let mut play = Play::begin(&on);
    for n in 1..=3 {
        play.ends(&format!("work#{n}"), AttemptOutcome::Claim, refuted());
    }
    let reason = "the result did not agree with what was observed in the same way 3 times in a row";
    assert_eq!(play.ending(), (Outcome::Exhausted, reason));
    // Other claims each time are something else.
    let mut play = Play::begin(&on);
    for (n, claim) in [(1, "files"), (2, "tests_pass"), (3, "files")] {
        let claims = vec![report(claim, Verdict::Refuted, ClaimPolicy::Require)];
        play.ends(&format!("work#{n}"), AttemptOutcome::Claim, claims);
    }
    assert_eq!(play.ending(), (Outcome::Failed, "the claim of work#3"));
}

#[test]
fn the_state_overrides_the_agent_and_the_agent_the_contract() {
    let text = r#"
workflow: play
inputs: { found: { type: [{ id: string, file: path, line: integer }], default: [{ id: F1, file: a.rs, line: 3 }] } }
writes: [src, "docs/**"]
protect: ["src/keep/**"]
tests: require
agents:
  make:
    contract: t/make
    prompt: "Make it."
    claims: { files: { policy: require, match: subset }, tests_pass: { check: unit }, protected: require }
start: work
states:
  work:
    agent: make
    claims: { files: record, tests_pass: { run: make test }, outcomes: { findings: found }, tests: ignore }
    go: again
  again: { agent: make, claims: { outcomes: ignore }, go: done }
  done: { end: done }
"#;
    let mut play = Play::begin(text);
    let held =
        |work: &AgentWork, name: &str| work.claims.iter().find(|held| held.name == name).cloned();
    let work = play.agent();
    let files = held(work, "files").unwrap().claim;
    assert_eq!((files.policy, files.matching), (ClaimPolicy::Record, ClaimMatch::Subset));
    let tests = held(work, "tests_pass").unwrap().claim;
    assert_eq!((tests.run.as_deref(), tests.check), (Some("make test"), None));
    let asked = held(work, "outcomes").unwrap().findings;
    assert_eq!(asked, Some(json!([{"id": "F1", "file": "a.rs", "line": 3}])));
    assert_eq!((work.tests, work.protected), (ClaimPolicy::Ignore, ClaimPolicy::Require));
    assert_eq!(work.writes, Some(vec!["src".to_owned(), "docs/**".to_owned()]));
    assert_eq!(work.protect, ["src/keep/**"]);
    let work = play.accept("work#1").agent();
    let tests = held(work, "tests_pass").unwrap().claim;
    assert_eq!((tests.run, tests.check.as_deref()), (None, Some("unit")));
    assert_eq!((work.tests, held(work, "outcomes")), (ClaimPolicy::Require, None));
}

#[test]
fn who_may_write_where() {
    let cases: [(&str, Option<&[&str]>); 5] = [
        ("", None),
        ("writes: [src]", Some(&["src"])),
        ("access: read-only", Some(&[])),
        ("writes: []", Some(&[])),
        ("writes: src", Some(&["src"])),
    ];
    for (more, writes) in cases {
        let text =
            one("").replace("retries: { agent: 1 }", more).replace("    workspace: worktree\n", "");
        let play = Play::begin(&text);
        let expected =
            writes.map(|globs| globs.iter().map(|&glob| glob.to_owned()).collect::<Vec<_>>());
        assert_eq!(play.agent().writes, expected, "{more}");
    }
}

#[test]
fn a_conflict_is_a_trouble_of_its_own_and_has_no_cause() {
    assert!(FailureKind::ALL.contains(&FailureKind::Conflict));
    let text = items("parallel: 2").replace("    next: [{ when: size", "    on: { conflict: { go: failed, reason: \"problem.outcome + (has(problem.cause) ? problem.cause : '')\" } }\n    next: [{ when: size");
    let mut play = Play::begin(&text);
    play.opened(&["all/a#1", "all/b#1"]);
    for item in ["a", "b"] {
        let at = |state: &str| format!("all/{item}/{state}#1");
        play.accept(&at("make"))
            .accept(&at("build"))
            .looked(&format!("all/{item}"))
            .accept(&at("look"));
    }
    play.see_to("all/a#1", &["a.rs"]).see_to("all/b#1", &[]);
    assert_eq!(play.ending(), (Outcome::Failed, "conflict"));
}

/// An agent that works, and one that looks at it; `more` is added to the first state.
fn reviewed(more: &str) -> String {
    format!(
        r#"
workflow: play
agents: {{ make: {{ contract: t/make, prompt: "Make it.", retries: {{ claim: 1 }} }}, look: {{ contract: t/look, prompt: "Look.", access: read-only }} }}
start: work
states:
  work: {{ agent: make, go: review{more} }}
  review: {{ agent: look, go: work2 }}
  work2: {{ agent: make, go: again }}
  again: {{ agent: look, go: done }}
  done: {{ end: done }}
"#
    )
}

#[test]
fn the_next_agent_is_told_which_claims_were_refuted_until_files_change() {
    let mut play = Play::begin(&reviewed(""));
    assert!(!play.agent().prompt.contains("What was observed"));
    let refuted = vec![
        report("files", Verdict::Refuted, ClaimPolicy::Record),
        report("tests_pass", Verdict::Verified, ClaimPolicy::Record),
    ];
    play.ends("work#1", AttemptOutcome::Accepted, refuted);
    let told = "## What was observed";
    assert!(play.agent().prompt.contains(told), "{}", play.agent().prompt);
    assert!(play.agent().prompt.contains("- 'work', `files`: files differs"));
    assert!(!play.agent().prompt.contains("tests_pass` differs"), "that one was verified");
    // One that only looked changes nothing about it.
    play.accept("review#1");
    assert!(play.agent().prompt.contains(told), "{}", play.agent().prompt);
    play.tell([ended_with_changes("work2#1")]);
    assert!(!play.agent().prompt.contains(told), "it is out of date: {}", play.agent().prompt);
}

fn ended_with_changes(attempt: &str) -> Event {
    Event::AttemptEnded(Box::new(
        serde_json::from_value(json!({
            "attempt": attempt,
            "outcome": "accepted",
            "value": {"files": ["a"]},
            "changed": {"modified": ["a"], "total": 1},
        }))
        .unwrap(),
    ))
}

#[test]
fn a_retry_is_told_what_was_observed_and_answers_for_the_first_attempt() {
    let mut play = Play::begin(&reviewed(""));
    assert_eq!(play.turn.attempts[0].first, "work#1");
    let refuted = vec![report("files", Verdict::Refuted, ClaimPolicy::Require)];
    play.ends("work#1", AttemptOutcome::Claim, refuted);
    assert_eq!(play.started(), [("work#2", None)]);
    assert_eq!(play.turn.attempts[0].first, "work#1");
    let prompt = &play.agent().prompt;
    assert!(prompt.contains("an earlier attempt at this step, `files`: files differs"), "{prompt}");
    play.tell([
        Event::RunResumed(Box::new(Resumed { by: "me".to_owned(), ..Resumed::default() })),
        Event::AttemptLost {
            attempt: "work#2".to_owned(),
            usage: counterfoil_flow::Usage::default(),
            changed: Vec::new(),
        },
    ]);
    assert_eq!(play.turn.attempts[0].first, "work#1", "also after a crash");
    play.accept("work#3");
    assert_eq!(play.turn.attempts[0].first, "review#1", "another step begins anew");
    // A fresh worktree begins anew, too.
    let mut play = Play::begin(&one(""));
    play.opened(&["work#1"]);
    assert_eq!(play.turn.attempts[0].first, "work#1");
    play.tell([Event::AttemptLost {
        attempt: "work#1".to_owned(),
        usage: counterfoil_flow::Usage::default(),
        changed: Vec::new(),
    }]);
    play.opened(&["work#2"]);
    assert_eq!(play.turn.attempts[0].first, "work#2");
}
