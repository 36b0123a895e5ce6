//! What went wrong in a run, and what nobody could check.

use crate::event_text::{doubted, step_failure};
use crate::ledger::Entry;
use crate::run_report::{Attempt, RunReport};
use counterfoil_contract::claim::{ClaimReport, Verdict};
use counterfoil_flow::AttemptOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

impl Attempt {
    /// Whether its outcome is that its result counts.
    fn is_accepted(&self) -> bool {
        self.outcome.as_deref() == Some(ACCEPTED)
    }

    /// Why it failed, if it is a command, a commit or checks whose failure is their result: such an
    /// attempt is accepted, because the workflow decides what follows from it.
    pub fn failure(&self) -> Option<String> {
        let (agent, builtin) = (self.agent.as_deref(), self.builtin.as_ref());
        let failure = step_failure(agent, builtin, self.value.as_ref(), &self.checks);
        failure.filter(|_| self.is_accepted())
    }

    /// Whether its result counts and is no failure.
    pub fn is_success(&self) -> bool {
        self.is_accepted() && self.failure().is_none()
    }

    /// How it ended, for people: the name of its outcome, or that it failed although its outcome is
    /// that its result counts. None while it runs.
    pub fn ending(&self) -> Option<&str> {
        if self.failure().is_some() { Some("failed") } else { self.outcome.as_deref() }
    }

    /// Why it ended as it did; empty if nothing is to be said.
    pub fn why(&self) -> String {
        let said = Some(&self.reason).filter(|reason| !reason.is_empty());
        said.cloned().or_else(|| self.failure()).unwrap_or_default()
    }

    /// The claims of its last reply that are refuted.
    pub fn refuted(&self) -> impl Iterator<Item = &ClaimReport> {
        self.claims.iter().filter(|claim| claim.verdict == Verdict::Refuted)
    }

    /// How many of its claims are refuted: those of its last reply, and those of earlier replies that
    /// still stand, such as after a repair without a result. The entries are those of the run.
    pub fn refuted_among(&self, entries: &[Entry]) -> usize {
        let last: BTreeSet<_> = self.refuted().map(ClaimReport::id).collect();
        let stands = |entry: &&Entry| {
            entry.n == self.n
                && entry.path == self.path
                && !entry.superseded
                && entry.standing == Verdict::Refuted
                && !last.contains(&entry.claim.id())
        };
        self.refuted().count() + entries.iter().filter(stands).count()
    }

    /// Whether it was ended because its run was to end. One that was lost was ended by nobody.
    pub fn is_cancelled(&self) -> bool {
        self.outcome.as_deref() == Some(AttemptOutcome::Cancelled.name()) && !self.is_lost
    }

    /// Whether something went wrong in it: it ended by itself without a result that counts, its result
    /// is a failure, a claim of it is refuted, or it had to be repaired. This is so if and only if one
    /// of its events in words is trouble.
    pub fn is_trouble(&self) -> bool {
        let has_failed = self.outcome.is_some() && !self.is_accepted() && !self.is_cancelled();
        has_failed
            || self.repairs_asked > 0
            || self.failure().is_some()
            || self.refuted().next().is_some()
    }

    /// Whether repairs were requested and nothing is left of what they were requested for: the result
    /// counts, and the claims because of which they were requested are verified or not made any more.
    pub fn is_repaired(&self) -> bool {
        let asked = self.earlier_claims.values().flat_map(|claims| doubted(claims));
        let mut asked = asked.map(ClaimReport::id);
        let is_left = asked.any(|asked| {
            let same = |claim: &&ClaimReport| claim.id() == asked;
            self.claims.iter().filter(same).any(|claim| claim.verdict != Verdict::Verified)
        });
        self.repairs_asked > 0 && self.is_accepted() && !is_left
    }
}

/// Something that went wrong in a run, or that nobody could check.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Trouble<'a> {
    /// An attempt failed, or its result is a failure, and no later attempt at the same path succeeded.
    Failed(&'a Attempt),
    /// An attempt failed, or its result is a failure, and a later one at the same path succeeded.
    Corrected(&'a Attempt),
    /// A claim is refuted.
    Refuted(&'a Entry),
    /// A claim could not be verified.
    Unverifiable(&'a Entry),
}

/// What went wrong in a run, and what could not be verified.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TroubleReport<'a> {
    /// The run's id.
    pub run: &'a str,
    /// Failures, then refuted claims, then claims that could not be verified.
    pub trouble: Vec<Trouble<'a>>,
}

/// The trouble of a run that nothing corrected, in three groups: failures, refuted claims, and claims
/// that could not be verified. A failure whose reason is that of the run is left out: the outcome
/// names it. So is an attempt that was cancelled, which did not fail. A claim that could not be
/// verified for the same reason in several visits is there once.
pub fn trouble<'a>(report: &'a RunReport, entries: &'a [Entry]) -> Vec<Trouble<'a>> {
    let attempts: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
    let mut found = trouble_among(report, &attempts, entries);
    let mut named = BTreeSet::new();
    found.retain(|one| match one {
        Trouble::Unverifiable(entry) => {
            named.insert((&entry.path, entry.claim.id(), &entry.claim.reason))
        }
        _ => true,
    });
    found
}

/// The same for a report without attempts, with these attempts, and with the claims that could not be
/// verified of every visit, as totals count them.
pub fn trouble_among<'a>(
    outline: &RunReport,
    attempts: &[&'a Attempt],
    entries: &'a [Entry],
) -> Vec<Trouble<'a>> {
    let mut failed = if outline.outcome == "done" { Vec::new() } else { failed_attempts(attempts) };
    failed.retain(|attempt| attempt.why() != outline.reason && !attempt.is_cancelled());
    let counted = |verdict: Verdict| {
        entries.iter().filter(move |entry| !entry.superseded && entry.standing == verdict)
    };
    let failed = failed.into_iter().map(Trouble::Failed);
    let refuted = counted(Verdict::Refuted).map(Trouble::Refuted);
    let unverifiable = counted(Verdict::Unverifiable).map(Trouble::Unverifiable);
    failed.chain(refuted).chain(unverifiable).collect()
}

/// All trouble of a run, in the same groups: also what was corrected.
pub fn all_trouble<'a>(report: &'a RunReport, entries: &'a [Entry]) -> Vec<Trouble<'a>> {
    let all: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
    let failed: BTreeSet<*const Attempt> =
        failed_attempts(&all).into_iter().map(std::ptr::from_ref).collect();
    let attempts = all
        .into_iter()
        .filter(|attempt| attempt.outcome.is_some() && !attempt.is_success())
        .map(|attempt| {
            let is_last = failed.contains(&std::ptr::from_ref(attempt));
            if is_last { Trouble::Failed(attempt) } else { Trouble::Corrected(attempt) }
        });
    let refuted = entries.iter().filter(|entry| entry.claim.verdict == Verdict::Refuted);
    let unverifiable =
        entries.iter().filter(|entry| !entry.superseded && entry.standing == Verdict::Unverifiable);
    attempts
        .chain(refuted.map(Trouble::Refuted))
        .chain(unverifiable.map(Trouble::Unverifiable))
        .collect()
}

/// The outcome of an attempt whose result counts.
const ACCEPTED: &str = "accepted";

/// The attempts that failed, or whose result is a failure, and that no later attempt at the same path
/// corrected.
fn failed_attempts<'a>(attempts: &[&'a Attempt]) -> Vec<&'a Attempt> {
    let mut last_success: BTreeMap<&[String], u32> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.is_success()) {
        let last = last_success.entry(&attempt.path).or_default();
        *last = attempt.n.max(*last);
    }
    let is_failed = |attempt: &&Attempt| {
        attempt.outcome.is_some()
            && !attempt.is_success()
            && last_success.get(attempt.path.as_slice()).is_none_or(|last| *last <= attempt.n)
    };
    attempts.iter().copied().filter(is_failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_text::EventsInWords;
    use crate::journal::StoredEvent;
    use crate::run_report::RunReportBuilder;
    use counterfoil_contract::claim::{ClaimKind, ClaimPolicy};
    use counterfoil_flow::{BuiltinStep, CheckReport, CheckStatus, Ended, Event, Reply, Usage};
    use serde_json::json;

    fn started(agent: Option<&str>, builtin: Option<BuiltinStep>) -> Event {
        Event::AttemptStarted {
            attempt: "work#1".to_owned(),
            frame: String::new(),
            path: vec!["work".to_owned()],
            agent: agent.map(str::to_owned),
            n: 1,
            contract: None,
            builtin,
        }
    }

    fn claim(name: &str, verdict: Verdict) -> ClaimReport {
        ClaimReport {
            claim: name.to_owned(),
            field: name.to_owned(),
            kind: ClaimKind::Command,
            policy: ClaimPolicy::Record,
            verdict,
            claimed: json!(true),
            observed: json!(false),
            reason: "it exited with 1".to_owned(),
            evidence: Vec::new(),
            tree: None,
        }
    }

    fn ended(outcome: AttemptOutcome, claims: Vec<ClaimReport>) -> Ended {
        let mut ended = Ended::new("work#1", outcome);
        ended.claims = claims;
        ended
    }

    fn command(code: i64) -> Ended {
        let mut ended = ended(AttemptOutcome::Accepted, Vec::new());
        ended.value = Some(json!({"ok": code == 0, "exit_code": code, "output": "no"}));
        ended
    }

    fn checked(status: CheckStatus) -> Ended {
        let mut ended = ended(AttemptOutcome::Accepted, Vec::new());
        ended.checks.insert("test".to_owned(), CheckReport { status, ..CheckReport::default() });
        ended
    }

    fn end(ended: Ended) -> Event {
        Event::AttemptEnded(Box::new(ended))
    }

    fn lost() -> Event {
        let attempt = "work#1".to_owned();
        Event::AttemptLost { attempt, usage: Usage::default(), changed: Vec::new() }
    }

    fn repair(claims: Vec<ClaimReport>) -> Event {
        Event::RepairAsked {
            attempt: "work#1".to_owned(),
            reply: Reply::default(),
            usage: Usage::default(),
            claims,
        }
    }

    /// The attempt of these events, and its events in words.
    fn told(events: &[Event]) -> (Attempt, Vec<(bool, String)>) {
        let mut report = RunReportBuilder::default();
        let mut words = EventsInWords::new("a", "demo");
        let mut told = Vec::new();
        for (seq, event) in (1_u64..).zip(events) {
            report.on_event(event, 0);
            let body = serde_json::to_vec(event).unwrap();
            let stored = StoredEvent { seq, at: 0, kind: event.kind().to_owned(), body };
            let event = words.on_event(&stored);
            told.push((event.is_trouble(), format!("{} {}", event.sign, event.text)));
        }
        (report.attempts()[0].clone(), told)
    }

    #[test]
    fn an_attempt_is_trouble_if_one_of_its_events_is() {
        use AttemptOutcome::{Accepted, Cancelled, Claim, Timeout};
        use Verdict::{Refuted, Unverifiable, Verified};
        let agent = || started(Some("coder"), None);
        let two = || vec![claim("tests", Refuted), claim("files", Refuted)];
        let checks = || started(None, Some(BuiltinStep::Checks(vec!["test".to_owned()])));
        for (events, last) in [
            (vec![agent()], "· work: coder"),
            (vec![agent(), end(ended(Accepted, Vec::new()))], "✓ work: accepted"),
            (
                vec![agent(), end(ended(Accepted, vec![claim("tests", Verified)]))],
                "✓ work: accepted",
            ),
            (
                vec![agent(), end(ended(Accepted, vec![claim("tests", Unverifiable)]))],
                "✓ work: accepted",
            ),
            (
                vec![agent(), end(ended(Accepted, vec![claim("tests", Refuted)]))],
                "✗ work: accepted; refuted: tests: it exited with 1",
            ),
            (
                vec![agent(), end(ended(Claim, two()))],
                "✗ work: 2 claims refuted; refuted: tests, files",
            ),
            (vec![agent(), end(ended(Timeout, Vec::new()))], "✗ work: timeout"),
            (vec![agent(), end(ended(Cancelled, Vec::new()))], "– work: cancelled"),
            (
                vec![agent(), end(ended(Cancelled, vec![claim("tests", Refuted)]))],
                "✗ work: cancelled; refuted: tests: it exited with 1",
            ),
            (vec![agent(), lost()], "✗ work: interrupted: the process that drove the run ended"),
            (
                vec![agent(), repair(vec![claim("tests", Refuted)])],
                "↺ work: repair requested: 1 claim refuted; refuted: tests: it exited with 1",
            ),
            (
                vec![agent(), repair(Vec::new()), end(ended(Accepted, Vec::new()))],
                "✓ work: accepted, 1 repair requested",
            ),
            (vec![agent(), end(command(1))], "✓ work: accepted"),
            (vec![started(None, None), end(command(0))], "✓ work: exit code 0"),
            (vec![started(None, None), end(command(1))], "✗ work: exit code 1: no"),
            (vec![checks(), end(checked(CheckStatus::Passed))], "✓ work: test passed"),
            (
                vec![checks(), end(checked(CheckStatus::NotConfigured))],
                "· work: test is not configured",
            ),
            (vec![checks(), end(checked(CheckStatus::Failed))], "✗ work: test failed: "),
        ] {
            let (attempt, told) = told(&events);
            let is_trouble = told.iter().any(|(is_trouble, _)| *is_trouble);
            assert_eq!(attempt.is_trouble(), is_trouble, "{told:?}");
            assert_eq!(told.last().unwrap().1.trim_end(), last.trim_end());
        }
    }

    #[test]
    fn a_repair_that_was_requested_is_not_always_one_that_was_made() {
        use AttemptOutcome::{Accepted, Contract};
        use Verdict::{Refuted, Unverifiable, Verified};
        let tests = |verdict| vec![claim("tests", verdict)];
        for (asked, outcome, left, is_repaired) in [
            (Vec::new(), Accepted, Vec::new(), true),
            (Vec::new(), Contract, Vec::new(), false),
            (tests(Refuted), Accepted, tests(Verified), true),
            (tests(Refuted), Accepted, Vec::new(), true),
            (tests(Refuted), Accepted, tests(Refuted), false),
            (tests(Refuted), Accepted, tests(Unverifiable), false),
            (tests(Refuted), AttemptOutcome::Claim, tests(Refuted), false),
            (tests(Refuted), Accepted, vec![claim("files", Refuted)], true),
        ] {
            let events = [started(Some("coder"), None), repair(asked), end(ended(outcome, left))];
            let (attempt, told) = told(&events);
            assert_eq!(attempt.is_repaired(), is_repaired, "{told:?}");
        }
        let (attempt, _) = told(&[started(Some("coder"), None), repair(Vec::new())]);
        assert!(!attempt.is_repaired(), "it is at work");
        let (attempt, _) = told(&[started(Some("coder"), None), end(ended(Accepted, Vec::new()))]);
        assert!(!attempt.is_repaired(), "there was nothing to repair");
    }

    #[test]
    fn refuted_claims_stand_if_a_repair_gives_no_result() {
        use AttemptOutcome::{Accepted, Claim, Contract};
        use Verdict::{Refuted, Verified};
        let two = || vec![claim("tests", Refuted), claim("files", Refuted)];
        for (outcome, left, count) in [
            (Contract, Vec::new(), 2),
            (Claim, two(), 2),
            (Accepted, vec![claim("tests", Refuted)], 1),
            (Accepted, vec![claim("tests", Verified)], 0),
        ] {
            let mut report = RunReportBuilder::default();
            for event in [started(Some("coder"), None), repair(two()), end(ended(outcome, left))] {
                report.on_event(&event, 0);
            }
            let (attempt, entries) = (&report.attempts()[0], report.claims());
            assert_eq!(attempt.refuted_among(&entries), count, "{entries:?}");
        }
    }

    #[test]
    fn what_failed_is_said_of_an_attempt_that_was_performed() {
        let (attempt, _) = told(&[started(None, None), end(command(3))]);
        assert_eq!(attempt.failure().as_deref(), Some("exit code 3: no"));
        let mut late = command(3);
        late.outcome = AttemptOutcome::Timeout;
        let (attempt, _) = told(&[started(None, None), end(late)]);
        assert_eq!((attempt.failure(), attempt.is_trouble()), (None, true));
    }
}
