//! The ledger of a run: every verified claim and its current status. It is built from events only,
//! so it is the same for a run in progress and for one that is read later.
//!
//! Three things can happen to a claim after its verdict:
//!
//! - It becomes **stale**: the evidence of a check, a report or a file is about a work tree that an
//!   attempt has changed since. Claims about the step itself (its files, its commit, what it fixed)
//!   do not become stale, since later steps do not affect them.
//! - It is **corrected**: it was refuted, and the last verified reply of the same visit of the state
//!   is not: a repair or a retry. A later visit corrects it only if the claim is about the work tree
//!   or the same files, and is verified there. Both entries stay, and the refuted one is counted as
//!   corrected.
//! - It is **superseded**: the same claim is made again in the same visit, or in a later one about the
//!   same thing, or an attempt that was not accepted is followed by one that was. The entry stays in
//!   the history but is not counted.
//!
//! An attempt can end without a result after it was asked for a repair. The engine then verifies some
//! of its own claims again. They replace the same claims of the reply before, and nothing else of it.
//!
//! A state is visited again for another task as well as for the same one, and nothing tells which. So
//! what a step said about itself (its files, its commit) is never replaced by what a later visit says.

mod attempts;
mod counting;
mod figures;
mod stats;
mod stats_report;
mod subject;
mod weeks;

pub use attempts::{CountedAttempt, CountedRun, RunCounter};
pub use figures::Figures;
pub use stats::{ClaimFigures, Dimension, Group, Key, ReplyFigures, Stats, Tally};
pub use stats_report::{GroupReport, Property, StatsReport, TrendReport, WeekReport};
pub use weeks::{Trend, Week, Weeks, week_of};

use crate::visits::{Visit, Visits};
use counterfoil_agents::spec::AgentSpec;
use counterfoil_contract::claim::{ClaimKind, ClaimReport, Verdict};
use counterfoil_flow::{AssignedAgent, AttemptOutcome, ChangedFiles, Event, is_verified_at_end};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use subject::{Subject, subject};

/// The number of different reasons for unverifiable claims that totals name.
const MAX_REASONS: usize = 10;

/// A claim that was made in a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// The path of the state: its name, or state, item key and inner state.
    pub path: Vec<String>,
    /// The key of the item.
    pub item: Option<String>,
    /// The agent, as the workflow names it; none for a command.
    pub agent: Option<String>,
    /// The program assigned to the agent.
    pub player: Option<String>,
    /// The model, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The version of the program, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of the attempt at this path, from 1, over all visits.
    pub n: u32,
    /// The number of the visit of the state, from 1.
    pub visit: u32,
    /// The number of the attempt in the visit, from 1.
    pub attempt: u32,
    /// The number of the reply in the attempt, from 1.
    pub reply: u32,
    /// The contract of the result.
    pub contract: Option<String>,
    /// When the claim was verified, in milliseconds since 1970.
    pub at: i64,
    /// The claim with its verdict at that time.
    #[serde(flatten)]
    pub claim: ClaimReport,
    /// The current verdict.
    pub standing: Verdict,
    /// Why the current verdict differs from the original one; empty if it does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// Whether the claim was refuted, and the last verified reply at the same path is not.
    pub corrected: bool,
    /// Whether a later claim replaces it, so that it is not counted.
    pub superseded: bool,
}

impl Entry {
    /// The visit and the attempt in which the claim was made.
    pub fn place(&self) -> Visit {
        Visit::new(self.visit, self.attempt)
    }

    /// The field that makes the claim. A claim that no field makes has its name in parentheses,
    /// because a field may be named like it.
    pub fn field(&self) -> &str {
        if !self.claim.is_own() {
            return &self.claim.field;
        }
        match self.claim.kind {
            ClaimKind::Protected => "(protected)",
            ClaimKind::TestsKept => "(tests)",
            ClaimKind::Complete => "(complete)",
            // Journals of older versions have no fields.
            _ => &self.claim.claim,
        }
    }
}

/// The number of claims of a run by verdict: "5 made, 3 verified, 1 refuted, 1 stale".
///
/// A claim is identified by its path, the visit of the state and its name (`implement`, visit 2,
/// `files_changed`) and counts once. If it is made repeatedly in a visit, in a repair or a retry, the
/// last one counts; so it does over several visits if it is about the work tree or the same files.
/// Claims of an attempt that was not accepted do not count once a later attempt of the same visit was
/// accepted. Refuted claims that were corrected later are counted separately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// All claims of this count: those that stand, and those that were refuted and corrected.
    pub made: u64,
    /// Claims that were verified.
    pub verified: u64,
    /// Claims that were refuted.
    pub refuted: u64,
    /// Claims that were verified before the work tree changed.
    pub stale: u64,
    /// Claims that could not be verified.
    pub unverifiable: u64,
    /// Refuted claims that were corrected later: in a repair, a retry or another visit.
    pub corrected: u64,
    /// Why claims could not be verified: different reasons, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unverifiable_because: Vec<String>,
}

impl Totals {
    /// Counts claims by their verdicts.
    pub fn from_claims<'a>(claims: impl IntoIterator<Item = &'a ClaimReport>) -> Self {
        let mut totals = Self::default();
        for claim in claims {
            totals.add(claim, claim.verdict);
        }
        totals
    }

    fn add(&mut self, claim: &ClaimReport, verdict: Verdict) {
        self.made += 1;
        let is_new = !self.unverifiable_because.contains(&claim.reason);
        let has_room = self.unverifiable_because.len() < MAX_REASONS;
        if verdict == Verdict::Unverifiable && is_new && has_room && !claim.reason.is_empty() {
            self.unverifiable_because.push(claim.reason.clone());
        }
        match verdict {
            Verdict::Verified => self.verified += 1,
            Verdict::Refuted => self.refuted += 1,
            Verdict::Stale => self.stale += 1,
            Verdict::Unverifiable => self.unverifiable += 1,
        }
    }
}

/// Collects the claims of a run from its events.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    assigned: BTreeMap<String, AssignedAgent>,
    /// The key of the item to which a frame belongs.
    items: BTreeMap<String, Option<String>>,
    attempts: Vec<AttemptRecord>,
    open: BTreeMap<String, usize>,
    visits: Visits,
    recorded: Vec<RecordedClaim>,
    /// The attempts that changed files, in the order they ended.
    changes: Vec<Change>,
    /// For each path, the last of `changes` that lists it.
    changed: BTreeMap<String, usize>,
    /// The last of `changes` whose list of files is incomplete.
    cut: Option<usize>,
}

/// What the ledger keeps of an attempt.
#[derive(Clone, Debug)]
struct AttemptRecord {
    path: Vec<String>,
    /// The visit of the state that it belongs to.
    visit: Visit,
    item: Option<String>,
    agent: Option<String>,
    program: Option<AssignedAgent>,
    n: u32,
    contract: Option<String>,
    replies: u32,
    accepted: bool,
    /// The last reply with a result whose claims were verified.
    verified_reply: u32,
    /// The same for claims that the engine verifies at the end of an attempt without a result, too.
    verified_end: u32,
    /// The fingerprint of the work tree after the attempt.
    tree: Option<String>,
}

/// A claim as it was recorded.
#[derive(Clone, Debug)]
struct RecordedClaim {
    attempt: usize,
    reply: u32,
    at: i64,
    /// The number of changes at that time. Later changes have a higher index.
    changes: usize,
    claim: ClaimReport,
}

/// Whether a claim is one of the engine's own that was verified. These are not reported.
fn is_implicit(claim: &ClaimReport) -> bool {
    claim.is_own() && claim.verdict == Verdict::Verified
}

/// An attempt that changed files.
#[derive(Clone, Copy, Debug)]
struct Change {
    attempt: usize,
    total: u64,
}

impl Ledger {
    /// The kinds of events that the ledger needs.
    pub const KINDS: [&'static str; 9] = [
        "run-started",
        "run-resumed",
        "run-reopened",
        "frame-opened",
        "moved",
        "attempt-started",
        "repair-asked",
        "attempt-ended",
        "attempt-lost",
    ];

    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next event.
    pub fn on_event(&mut self, event: &Event, at: i64) {
        let visit = self.visits.on_event(event);
        match event {
            Event::RunStarted(started) => self.assigned.clone_from(&started.agents),
            // Applies from here on; earlier claims keep the program of that time.
            Event::RunResumed(resumed) => self.assigned.extend(resumed.agents.clone()),
            Event::RunReopened(reopened) => self.assigned.extend(reopened.agents.clone()),
            Event::FrameOpened { frame, parent, item, .. } => {
                let above =
                    parent.as_ref().and_then(|parent| self.items.get(parent).cloned().flatten());
                self.items.insert(frame.clone(), item.clone().or(above));
            }
            Event::AttemptStarted { attempt, frame, path, agent, n, contract, .. } => {
                self.open.insert(attempt.clone(), self.attempts.len());
                self.attempts.push(AttemptRecord {
                    path: path.clone(),
                    visit: visit.unwrap_or_default(),
                    item: self.items.get(frame).cloned().flatten(),
                    agent: agent.clone(),
                    program: agent.as_ref().and_then(|agent| self.assigned.get(agent).cloned()),
                    n: *n,
                    contract: contract.clone(),
                    replies: 0,
                    accepted: false,
                    verified_reply: 0,
                    verified_end: 0,
                    tree: None,
                });
            }
            Event::RepairAsked { attempt, claims, .. } => {
                let Some(&index) = self.open.get(attempt) else { return };
                self.reply(index, claims, !claims.is_empty(), at);
            }
            Event::AttemptEnded(ended) => {
                let Some(index) = self.open.remove(&ended.attempt) else { return };
                let verified = ended.verifies_result();
                if let Some(work) = self.attempts.get_mut(index) {
                    work.accepted = ended.outcome == AttemptOutcome::Accepted;
                    work.tree.clone_from(&ended.tree);
                }
                // The attempt's own changes come first: its last reply is about them.
                if let Some(changed) = ended.changed.as_ref().filter(|changed| changed.total > 0) {
                    self.change(index, changed);
                }
                self.reply(index, &ended.claims, verified, at);
            }
            Event::AttemptLost { attempt, .. } => {
                self.open.remove(attempt);
            }
            _ => {}
        }
    }

    fn reply(&mut self, attempt: usize, claims: &[ClaimReport], verified: bool, at: i64) {
        let Some(work) = self.attempts.get_mut(attempt) else { return };
        work.replies += 1;
        if verified {
            work.verified_reply = work.replies;
        }
        if verified || !claims.is_empty() {
            work.verified_end = work.replies;
        }
        let (reply, changes) = (work.replies, self.changes.len());
        self.recorded.extend(claims.iter().map(|claim| RecordedClaim {
            attempt,
            reply,
            at,
            changes,
            claim: claim.clone(),
        }));
    }

    fn change(&mut self, attempt: usize, changed: &ChangedFiles) {
        let index = self.changes.len();
        self.changes.push(Change { attempt, total: changed.total });
        let renamed = changed.renamed.iter().flat_map(|(from, to)| [from, to]);
        let all =
            changed.added.iter().chain(&changed.modified).chain(&changed.deleted).chain(renamed);
        let named: BTreeSet<&String> = all.collect();
        if (named.len() as u64) < changed.total {
            self.cut = Some(index);
        }
        for path in named {
            self.changed.insert(path.clone(), index);
        }
    }

    /// Whether there are no claims to show.
    pub fn is_empty(&self) -> bool {
        self.recorded.iter().all(|recorded| is_implicit(&recorded.claim))
    }

    /// The claims of the run, in the order they were verified.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.all_entries();
        entries.retain(|entry| !is_implicit(&entry.claim));
        entries
    }

    /// All claims, including those that are not reported. Rates refer to all of them.
    fn all_entries(&self) -> Vec<Entry> {
        // Long runs may have many attempts without a claim.
        if self.recorded.is_empty() {
            return Vec::new();
        }
        let counted = self.counted_claims();
        let verdicts = self.verdicts_by_reply();
        let final_replies = self.final_replies(|work| work.verified_reply);
        let final_ends = self.final_replies(|work| work.verified_end);
        let last_refuted = self.last_refuted();
        let mut entries = Vec::with_capacity(self.recorded.len());
        for (index, recorded) in self.recorded.iter().enumerate() {
            let Some(work) = self.attempts.get(recorded.attempt) else { continue };
            let since = self.outdated(recorded, work);
            let id = recorded.claim.id();
            let at_end = is_verified_at_end(&recorded.claim);
            let last_replies = if at_end { &final_ends } else { &final_replies };
            let last_reply = last_replies
                .get(&work.place())
                .filter(|last| **last > (recorded.attempt, recorded.reply));
            let last_verdict = |reply: &(usize, u32)| verdicts.get(&(*reply, id)).copied();
            let is_refuted = recorded.claim.verdict == Verdict::Refuted;
            // Only to say something that cannot be checked does not replace what was refuted.
            let evaded = last_refuted.get(&(work.place(), id)) == Some(&index)
                && last_reply.and_then(last_verdict) == Some(Verdict::Unverifiable);
            let superseded = !evaded && counted.get(&index) != Some(&None);
            let corrected = is_refuted
                && superseded
                && match counted.get(&index) {
                    // A later visit verified it.
                    Some(Some(later)) => {
                        self.recorded.get(*later).map(|later| later.claim.verdict)
                            != Some(Verdict::Refuted)
                    }
                    // A later reply of this visit does not refute it.
                    _ => last_reply
                        .is_some_and(|reply| last_verdict(reply) != Some(Verdict::Refuted)),
                };
            entries.push(Entry {
                path: work.path.clone(),
                item: work.item.clone(),
                agent: work.agent.clone(),
                player: work.program.as_ref().map(|program| program_name(&program.spec)),
                model: work.program.as_ref().and_then(|program| program.model.clone()),
                version: work.program.as_ref().and_then(|program| program.version.clone()),
                n: work.n,
                visit: work.visit.number,
                attempt: work.visit.attempt,
                reply: recorded.reply,
                contract: work.contract.clone(),
                at: recorded.at,
                claim: recorded.claim.clone(),
                standing: if since.is_some() { Verdict::Stale } else { recorded.claim.verdict },
                since: since.unwrap_or_default(),
                corrected,
                superseded,
            });
        }
        entries
    }

    /// The totals of the current verdicts.
    pub fn totals(&self) -> Totals {
        totals(&self.entries())
    }

    /// Why the evidence of a verified claim is out of date, if it is.
    fn outdated(&self, recorded: &RecordedClaim, work: &AttemptRecord) -> Option<String> {
        if recorded.claim.verdict != Verdict::Verified {
            return None;
        }
        let later = |index: usize| {
            let change = self.changes.get(index).filter(|_| index >= recorded.changes)?;
            // The attempt's own changes are older than its evidence if the tree is the same.
            let own = change.attempt == recorded.attempt
                && recorded.claim.tree.is_some()
                && recorded.claim.tree == work.tree;
            (!own).then_some(*change)
        };
        match subject(&recorded.claim) {
            Subject::Step => None,
            Subject::Tree => {
                let change =
                    (recorded.changes..self.changes.len()).rev().take(2).find_map(later)?;
                Some(format!(
                    "{} changed {} since",
                    self.title(change.attempt),
                    files(change.total)
                ))
            }
            Subject::Files(paths) => {
                let named = paths.iter().find_map(|path| {
                    let change = self.changed.get(*path).and_then(|index| later(*index))?;
                    Some(format!("{} changed {path} since", self.title(change.attempt)))
                });
                named.or_else(|| {
                    let change = self.cut.and_then(later)?;
                    let (title, files) = (self.title(change.attempt), files(change.total));
                    Some(format!("{title} changed {files} since, and not all of them are listed"))
                })
            }
        }
    }

    fn title(&self, attempt: usize) -> String {
        self.attempts
            .get(attempt)
            .map_or_else(String::new, |work| format!("{}{}", work.path.join("/"), work.visit))
    }
}

/// The totals of the current verdicts of these entries.
pub fn totals(entries: &[Entry]) -> Totals {
    let mut totals = Totals::default();
    for entry in entries.iter().filter(|entry| !entry.superseded) {
        totals.add(&entry.claim, entry.standing);
    }
    totals.corrected = entries.iter().filter(|entry| entry.corrected).count() as u64;
    totals.made += totals.corrected;
    totals
}

fn files(number: u64) -> String {
    format!("{number} file{}", if number == 1 { "" } else { "s" })
}

/// A short name for an assigned program: the program of a command line, or `script`.
pub fn program_name(spec: &str) -> String {
    match AgentSpec::parse(spec) {
        Ok(AgentSpec::Acp(argv) | AgentSpec::Command(argv)) => {
            let program = argv.first().map(String::as_str).unwrap_or_default();
            let name = program.rsplit('/').find(|part| !part.is_empty());
            name.unwrap_or("command").to_owned()
        }
        Ok(AgentSpec::Script(_)) => "script".to_owned(),
        Ok(AgentSpec::Cli(name)) => name.to_owned(),
        // A spec that this version does not know, or of an agent given in code.
        Err(_) => spec.to_owned(),
    }
}

#[cfg(test)]
mod tests;
