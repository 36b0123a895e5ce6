//! The verdicts on a result stand until another result is verified: guards see them, and the next
//! attempt is told of them, also if the attempt is lost or fails while it repairs the result.

use crate::workspaces::play::{Play, report};
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Verdict};
use counterfoil_flow::{
    AttemptOutcome, ChangedFiles, Ended, Event, Outcome, Reply, Resumed, Usage,
};

/// One step; the reason of the run has the verdicts that its transition read.
const ONE: &str = r#"
workflow: play
agents: { make: { contract: t/make, prompt: "Make it.", retries: { agent: 1 } } }
start: work
states:
  work:
    agent: make
    on: { agent: { go: broken, reason: "claims.files.verdict + ' ' + claims.tests.verdict" } }
    next: [{ go: done, reason: claims.files.verdict }]
  done: { end: done }
  broken: { end: failed }
"#;

const TOLD: &str = "an earlier attempt at this step, `files`: files differs";

fn refuted() -> ClaimReport {
    report("files", Verdict::Refuted, ClaimPolicy::Require)
}

/// The engine's claim that no test was removed.
fn tests(verdict: Verdict) -> ClaimReport {
    ClaimReport {
        field: String::new(),
        kind: ClaimKind::TestsKept,
        ..report("tests", verdict, ClaimPolicy::Require)
    }
}

/// An attempt fails, and the engine observes what it left.
fn crashes(play: &mut Play, attempt: &str, claims: Vec<ClaimReport>) {
    let changed = Some(ChangedFiles::default());
    let ended = Ended { claims, changed, ..Ended::new(attempt, AttemptOutcome::Agent) };
    play.tell([Event::AttemptEnded(Box::new(ended))]);
}

/// A run whose first attempt was asked to repair a result with a refuted claim.
fn repairing(decide: u32) -> Play {
    let mut play = Play::under(ONE, decide);
    play.tell([Event::RepairAsked {
        attempt: "work#1".to_owned(),
        reply: Reply::default(),
        usage: Usage::default(),
        claims: vec![refuted()],
    }]);
    play
}

/// The process is killed, and another one resumes the run.
fn killed(play: &mut Play, attempt: &str) {
    play.tell([
        Event::RunResumed(Box::new(Resumed { by: "me".to_owned(), ..Resumed::default() })),
        Event::AttemptLost {
            attempt: attempt.to_owned(),
            usage: Usage::default(),
            changed: vec!["a.rs".to_owned()],
        },
    ]);
}

fn is_told(play: &Play) -> bool {
    play.agent().prompt.contains(TOLD)
}

#[test]
fn an_attempt_that_is_lost_during_a_repair_withdraws_nothing() {
    let mut play = repairing(4);
    killed(&mut play, "work#1");
    assert_eq!(play.started(), [("work#2", None)]);
    assert!(is_told(&play), "{}", play.agent().prompt);
    play.ends("work#2", AttemptOutcome::Agent, Vec::new());
    assert!(is_told(&play), "{}", play.agent().prompt);
    play.ends("work#3", AttemptOutcome::Agent, Vec::new());
    assert_eq!(play.ending(), (Outcome::Failed, "refuted none"));
}

#[test]
fn claims_of_the_engine_are_added_at_the_end_of_an_attempt_without_a_result() {
    let mut play = repairing(4);
    play.ends("work#1", AttemptOutcome::Agent, vec![tests(Verdict::Refuted)]);
    assert!(is_told(&play), "{}", play.agent().prompt);
    play.ends("work#2", AttemptOutcome::Agent, Vec::new());
    assert_eq!(play.ending(), (Outcome::Failed, "refuted refuted"));
}

#[test]
fn another_result_replaces_the_verdicts() {
    for (claims, reason) in [
        (Vec::new(), "none"),
        (vec![report("files", Verdict::Verified, ClaimPolicy::Require)], "verified"),
    ] {
        let mut play = repairing(4);
        killed(&mut play, "work#1");
        play.ends("work#2", AttemptOutcome::Accepted, claims);
        assert_eq!(play.ending(), (Outcome::Done, reason));
    }
}

#[test]
fn a_run_that_began_before_goes_on_by_the_rules_of_then() {
    let mut play = repairing(3);
    killed(&mut play, "work#1");
    assert!(!is_told(&play), "{}", play.agent().prompt);
    play.ends("work#2", AttemptOutcome::Agent, Vec::new());
    play.ends("work#3", AttemptOutcome::Agent, Vec::new());
    assert_eq!(play.ending(), (Outcome::Failed, "none none"));
}

#[test]
fn what_an_attempt_puts_right_is_not_told_to_the_next_one() {
    let told = "an earlier attempt at this step, `tests`: tests differs";
    let mut play = Play::under(&ONE.replace("agent: 1", "agent: 4"), 4);
    crashes(&mut play, "work#1", vec![tests(Verdict::Refuted)]);
    assert!(play.agent().prompt.contains(told), "{}", play.agent().prompt);
    // Nobody knows whether it is put right.
    crashes(&mut play, "work#2", vec![tests(Verdict::Unverifiable)]);
    assert!(play.agent().prompt.contains(told), "{}", play.agent().prompt);
    play.ends("work#3", AttemptOutcome::Agent, Vec::new());
    assert!(play.agent().prompt.contains(told), "{}", play.agent().prompt);
    crashes(&mut play, "work#4", Vec::new());
    assert!(!play.agent().prompt.contains(told), "{}", play.agent().prompt);
    crashes(&mut play, "work#5", Vec::new());
    assert_eq!(play.ending(), (Outcome::Failed, "none none"));
}

#[test]
fn what_a_failed_repair_puts_right_stands_no_longer_and_the_rest_does() {
    let mut play = Play::under(ONE, 4);
    play.tell([Event::RepairAsked {
        attempt: "work#1".to_owned(),
        reply: Reply::default(),
        usage: Usage::default(),
        claims: vec![refuted(), tests(Verdict::Refuted)],
    }]);
    crashes(&mut play, "work#1", Vec::new());
    assert!(is_told(&play), "{}", play.agent().prompt);
    crashes(&mut play, "work#2", Vec::new());
    assert_eq!(play.ending(), (Outcome::Failed, "refuted none"));
}

#[test]
fn what_is_verified_on_a_result_stands_after_a_failed_repair() {
    let mut play = Play::under(ONE, 4);
    play.tell([Event::RepairAsked {
        attempt: "work#1".to_owned(),
        reply: Reply::default(),
        usage: Usage::default(),
        claims: vec![refuted(), tests(Verdict::Verified)],
    }]);
    crashes(&mut play, "work#1", Vec::new());
    crashes(&mut play, "work#2", Vec::new());
    assert_eq!(play.ending(), (Outcome::Failed, "refuted verified"));
}

#[test]
fn a_mismatch_is_counted_as_it_was_when_the_run_began() {
    for (decide, counted) in [(3, "tests in tree"), (4, "tests! in tree")] {
        let mut play = Play::under(&ONE.replace("agent: 1", "claim: 5"), decide);
        play.ends("work#1", AttemptOutcome::Claim, vec![tests(Verdict::Refuted)]);
        play.ends("work#2", AttemptOutcome::Claim, vec![tests(Verdict::Refuted)]);
        let streaks: Vec<_> = play.run.frames[""].requests.values().collect();
        assert_eq!(streaks.len(), 1, "{streaks:?}");
        assert_eq!((streaks[0].what.as_str(), streaks[0].times), (counted, 2));
    }
}
