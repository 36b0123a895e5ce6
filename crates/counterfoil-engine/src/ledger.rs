//! The ledger of a run: every verified claim and its current status. It is built from events only,
//! so it is the same for a run in progress and for one that is read later.
//!
//! Three things can happen to a claim after its verdict:
//!
//! - It becomes **stale**: the evidence of a check, a report or a file is about a work tree that an
//!   attempt has changed since. Claims about the step itself (its files, its commit, what it fixed)
//!   do not become stale, since later steps do not affect them.
//! - It is **corrected**: it was refuted, and the last reply at the same path that was verified is
//!   not: a repair, a retry or the next iteration of a loop. Both entries stay, and the refuted one
//!   is counted as corrected.
//! - It is **superseded**: the same claim is made again at the same path, or an attempt that was
//!   not accepted is followed by one that was. The entry stays in the history but is not counted.

mod stats;

pub use stats::{ClaimFigures, Dimension, Group, Key, ReplyFigures, Stats, Tally};

use counterfoil_agents::spec::AgentSpec;
use counterfoil_contract::claim::{ClaimKind, ClaimReport, Verdict};
use counterfoil_flow::{AssignedAgent, AttemptOutcome, ChangedFiles, Event};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of parent folders of a path that are considered.
const MAX_DEPTH: usize = 64;

/// A claim that was made in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// The number of the attempt at this path, from 1.
    pub n: u32,
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

/// The number of claims of a run by verdict: "verified 9 of 11, refuted 1, stale 1".
///
/// A claim is identified by its path and name (`implement`, `files_changed`) and counts once. If it
/// is made repeatedly, in a repair, a retry or the next iteration of a loop, the last one counts.
/// Claims of an attempt that was not accepted do not count once a later attempt at the same path
/// was accepted. Refuted claims that were corrected later are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Claims that were verified.
    pub verified: u64,
    /// Claims that were refuted.
    pub refuted: u64,
    /// Claims that were verified before the work tree changed.
    pub stale: u64,
    /// Claims that could not be verified.
    pub unverifiable: u64,
    /// Refuted claims that were corrected later: in a repair, a retry or another iteration.
    pub corrected: u64,
}

impl Totals {
    /// Counts claims by their verdicts.
    pub fn from_verdicts(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        let mut totals = Self::default();
        for verdict in verdicts {
            totals.add(verdict);
        }
        totals
    }

    /// The number of all claims that count.
    pub fn claims(&self) -> u64 {
        self.verified + self.refuted + self.stale + self.unverifiable
    }

    fn add(&mut self, verdict: Verdict) {
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
    item: Option<String>,
    agent: Option<String>,
    program: Option<AssignedAgent>,
    n: u32,
    contract: Option<String>,
    replies: u32,
    accepted: bool,
    /// The last reply whose claims were verified. The end of an attempt without a result counts,
    /// too.
    verified_reply: u32,
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
    pub const KINDS: [&'static str; 8] = [
        "run-started",
        "run-resumed",
        "run-reopened",
        "frame-opened",
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
                    item: self.items.get(frame).cloned().flatten(),
                    agent: agent.clone(),
                    program: agent.as_ref().and_then(|agent| self.assigned.get(agent).cloned()),
                    n: *n,
                    contract: contract.clone(),
                    replies: 0,
                    accepted: false,
                    verified_reply: 0,
                    tree: None,
                });
            }
            Event::RepairAsked { attempt, claims, .. } => {
                let Some(&index) = self.open.get(attempt) else { return };
                self.reply(index, claims, !claims.is_empty(), at);
            }
            Event::AttemptEnded(ended) => {
                let Some(index) = self.open.remove(&ended.attempt) else { return };
                let verified =
                    matches!(ended.outcome, AttemptOutcome::Accepted | AttemptOutcome::Claim);
                if let Some(work) = self.attempts.get_mut(index) {
                    work.accepted = ended.outcome == AttemptOutcome::Accepted;
                    work.tree.clone_from(&ended.tree);
                }
                // The attempt's own changes come first: its last reply is about them.
                if let Some(changed) = ended.changed.as_ref().filter(|changed| changed.total > 0) {
                    self.change(index, changed);
                }
                self.reply(index, &ended.claims, verified || !ended.claims.is_empty(), at);
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
        let last = self.latest_claims();
        let refuted = self.refuted_by_reply();
        let final_replies = self.final_replies();
        let mut entries = Vec::with_capacity(self.recorded.len());
        for (index, recorded) in self.recorded.iter().enumerate() {
            let Some(work) = self.attempts.get(recorded.attempt) else { continue };
            let since = self.outdated(recorded, work);
            let is_refuted = recorded.claim.verdict == Verdict::Refuted;
            let superseded = !last.contains(&index);
            let corrected = is_refuted
                && superseded
                && final_replies.get(work.path.as_slice()).is_some_and(|&(attempt, reply)| {
                    (attempt, reply) > (recorded.attempt, recorded.reply)
                        && !refuted.contains(&(attempt, reply, recorded.claim.claim.as_str()))
                });
            entries.push(Entry {
                path: work.path.clone(),
                item: work.item.clone(),
                agent: work.agent.clone(),
                player: work.program.as_ref().map(|program| program_name(&program.spec)),
                model: work.program.as_ref().and_then(|program| program.model.clone()),
                version: work.program.as_ref().and_then(|program| program.version.clone()),
                n: work.n,
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

    /// The claims that count: the last one of each name at each path.
    fn latest_claims(&self) -> BTreeSet<usize> {
        let mut accepted: BTreeMap<&[String], usize> = BTreeMap::new();
        for (index, work) in self.attempts.iter().enumerate().filter(|(_, work)| work.accepted) {
            accepted.insert(&work.path, index);
        }
        let mut last: BTreeMap<(&[String], &str), usize> = BTreeMap::new();
        for (index, recorded) in self.recorded.iter().enumerate() {
            let Some(work) = self.attempts.get(recorded.attempt) else { continue };
            let succeeded_later =
                accepted.get(work.path.as_slice()).is_some_and(|good| *good > recorded.attempt);
            // Only the last verified reply of an attempt counts: claims that it does not repeat are
            // withdrawn.
            let withdrawn = recorded.reply < work.verified_reply;
            if withdrawn || (succeeded_later && !work.accepted) {
                continue;
            }
            last.insert((&work.path, &recorded.claim.claim), index);
        }
        last.into_values().collect()
    }

    /// The last reply at each path whose claims were verified, as attempt and reply.
    fn final_replies(&self) -> BTreeMap<&[String], (usize, u32)> {
        let verified = self.attempts.iter().enumerate().filter(|(_, work)| work.verified_reply > 0);
        verified.map(|(index, work)| (work.path.as_slice(), (index, work.verified_reply))).collect()
    }

    /// The refuted claims, as attempt, reply and name.
    fn refuted_by_reply(&self) -> BTreeSet<(usize, u32, &str)> {
        let refuted =
            self.recorded.iter().filter(|recorded| recorded.claim.verdict == Verdict::Refuted);
        refuted
            .map(|recorded| (recorded.attempt, recorded.reply, recorded.claim.claim.as_str()))
            .collect()
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
        self.attempts.get(attempt).map_or_else(String::new, |work| {
            let again = if work.n > 1 { format!(", attempt {}", work.n) } else { String::new() };
            format!("{}{again}", work.path.join("/"))
        })
    }
}

/// The totals of the current verdicts of these entries.
pub fn totals(entries: &[Entry]) -> Totals {
    let mut totals = Totals::from_verdicts(
        entries.iter().filter(|entry| !entry.superseded).map(|entry| entry.standing),
    );
    totals.corrected = entries.iter().filter(|entry| entry.corrected).count() as u64;
    totals
}

/// What a claim is about.
enum Subject<'a> {
    /// What a step did. Later steps do not affect it.
    Step,
    /// The whole work tree.
    Tree,
    /// The content of these files.
    Files(BTreeSet<&'a str>),
}

fn subject(claim: &ClaimReport) -> Subject<'_> {
    match claim.kind {
        ClaimKind::Command | ClaimKind::Commands => Subject::Tree,
        // The count of a list does not depend on the tree; one from a report or a check does.
        ClaimKind::Count => {
            let rests_on_tree = claim
                .evidence
                .iter()
                .any(|evidence| matches!(evidence.kind.as_str(), "report" | "command"));
            if rests_on_tree { Subject::Tree } else { Subject::Step }
        }
        ClaimKind::Artifact => Subject::Files(paths(&claim.claimed)),
        ClaimKind::FilesModified
        | ClaimKind::FilesAdded
        | ClaimKind::FilesDeleted
        | ClaimKind::FilesRenamed
        | ClaimKind::FilesChanged
        | ClaimKind::Commit
        | ClaimKind::Location
        | ClaimKind::Fixed
        | ClaimKind::Protected
        | ClaimKind::TestsKept => Subject::Step,
    }
}

/// The paths in a value, one level deep. For an absolute path all its suffixes are included, since
/// changes are listed relative to the workspace.
fn paths(value: &Value) -> BTreeSet<&str> {
    let texts: Vec<&str> = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Object(fields) => fields.values().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    let mut paths = BTreeSet::new();
    for text in texts {
        paths.insert(text.trim_start_matches("./"));
        if text.starts_with('/') {
            paths.extend(text.match_indices('/').take(MAX_DEPTH).map(|(at, _)| &text[at + 1..]));
        }
    }
    paths
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
