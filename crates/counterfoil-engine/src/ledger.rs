//! The ledger of a run: every claim that was held against the world, and how it stands now. It
//! hears the events and nothing else, so it says the same of a run that goes on and of one that is
//! read again.
//!
//! Three things happen to a claim after its verdict:
//!
//! - It goes **stale**: what a check, a report or a file proved was true of a tree that an attempt
//!   changed since. Claims about the step itself (its files, its commit, what it fixed) do not: no
//!   later step changes what that one did.
//! - It is **corrected**: a reply that was refuted is answered by a later one of the same attempt
//!   that is not. Both stay.
//! - It is **superseded**: the same claim is made again at the same place, or an attempt that was
//!   not accepted is followed by one that was. It stays in the history and is not counted any more.

mod stats;

pub use stats::{ClaimFigures, Dimension, Group, Key, ReplyFigures, Stats, Tally};

use counterfoil_agents::agent::Spec;
use counterfoil_contract::claim::{ClaimKind, ClaimReport, Verdict};
use counterfoil_flow::{AssignedAgent, AttemptOutcome, ChangedFiles, Event};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Folders of a path that are looked at.
const DEEPEST: usize = 64;

/// A claim that was made in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The state, or state, item key, inner state.
    pub path: Vec<String>,
    /// The item, by key.
    pub item: Option<String>,
    /// Who, as the workflow names them; none for a command.
    pub agent: Option<String>,
    /// Who played them.
    pub player: Option<String>,
    /// The model, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The version of the program, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Which attempt of this path.
    pub n: u32,
    /// Which reply of the attempt, from 1.
    pub reply: u32,
    /// What was to be handed back.
    pub contract: Option<String>,
    /// When it was held against the world, in milliseconds since 1970.
    pub at: i64,
    /// The claim, and what became of it then.
    #[serde(flatten)]
    pub claim: ClaimReport,
    /// How it stands now.
    pub standing: Verdict,
    /// Why it stands otherwise than it was judged; empty if it does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// Whether it was refuted, and a later reply of the same attempt is not.
    pub corrected: bool,
    /// Whether something later holds in its place, so that it is not counted.
    pub superseded: bool,
}

/// How the claims of a run stand: "verified 9 of 11, refuted 1, stale 1".
///
/// One count for each claim that stands at the end. A claim is a name at a place (`implement`,
/// `files_changed`); of those made again and again, in a repair, a retry or the next round of a
/// loop, the last word counts. What an attempt said that was not accepted does not count once a
/// later attempt of the same place was. Refuted claims that the agent corrected when it
/// was asked again are not among these; they are said apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Those that hold.
    pub verified: u64,
    /// Those that do not.
    pub refuted: u64,
    /// Those that held before something changed.
    pub stale: u64,
    /// Those that nothing can be said of.
    pub unverifiable: u64,
    /// Refuted ones that were put right in a repair.
    pub corrected: u64,
}

impl Totals {
    /// The totals of claims that stand so.
    pub fn of(standing: impl IntoIterator<Item = Verdict>) -> Self {
        let mut totals = Self::default();
        for verdict in standing {
            totals.add(verdict);
        }
        totals
    }

    /// All that stand.
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

/// Hears the events of a run and keeps its claims.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    players: BTreeMap<String, AssignedAgent>,
    /// The item that a frame is or belongs to.
    items: BTreeMap<String, Option<String>>,
    attempts: Vec<Work>,
    open: BTreeMap<String, usize>,
    kept: Vec<Kept>,
    /// The attempts that changed something, in the order they ended.
    changes: Vec<Change>,
    /// The last of `changes` that names a path.
    changed: BTreeMap<String, usize>,
    /// The last of `changes` that does not name all it changed.
    cut: Option<usize>,
}

/// An attempt.
#[derive(Clone, Debug)]
struct Work {
    path: Vec<String>,
    item: Option<String>,
    agent: Option<String>,
    player: Option<AssignedAgent>,
    n: u32,
    contract: Option<String>,
    replies: u32,
    accepted: bool,
    /// The last reply whose claims were looked at; the end of an attempt looks at those that are
    /// not there, too.
    judged: u32,
    /// The fingerprint of the tree behind it.
    tree: Option<String>,
}

/// A claim as it was heard.
#[derive(Clone, Debug)]
struct Kept {
    attempt: usize,
    reply: u32,
    at: i64,
    /// How many changes were known: those behind are later.
    changes: usize,
    claim: ClaimReport,
}

/// What we make for every step and nothing speaks against is no claim of the agent's.
fn goes_without_saying(claim: &ClaimReport) -> bool {
    claim.is_own() && claim.verdict == Verdict::Verified
}

/// An attempt that changed something.
#[derive(Clone, Copy, Debug)]
struct Change {
    attempt: usize,
    total: u64,
}

impl Ledger {
    /// The kinds of events it needs to hear.
    pub const KINDS: [&'static str; 7] = [
        "run-started",
        "run-resumed",
        "frame-opened",
        "attempt-started",
        "repair-asked",
        "attempt-ended",
        "attempt-lost",
    ];

    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hears what happened next.
    pub fn hear(&mut self, event: &Event, at: i64) {
        match event {
            Event::RunStarted(started) => self.players.clone_from(&started.agents),
            // From here on; what was said before was said by whoever played then.
            Event::RunResumed { agents, .. } => self.players.extend(agents.clone()),
            Event::FrameOpened { frame, parent, item, .. } => {
                let above =
                    parent.as_ref().and_then(|parent| self.items.get(parent).cloned().flatten());
                self.items.insert(frame.clone(), item.clone().or(above));
            }
            Event::AttemptStarted { attempt, frame, path, agent, n, contract, .. } => {
                self.open.insert(attempt.clone(), self.attempts.len());
                self.attempts.push(Work {
                    path: path.clone(),
                    item: self.items.get(frame).cloned().flatten(),
                    agent: agent.clone(),
                    player: agent.as_ref().and_then(|agent| self.players.get(agent).cloned()),
                    n: *n,
                    contract: contract.clone(),
                    replies: 0,
                    accepted: false,
                    judged: 0,
                    tree: None,
                });
            }
            Event::RepairAsked { attempt, claims, .. } => {
                let Some(&index) = self.open.get(attempt) else { return };
                self.reply(index, claims, !claims.is_empty(), at);
            }
            Event::AttemptEnded(ended) => {
                let Some(index) = self.open.remove(&ended.attempt) else { return };
                let judged =
                    matches!(ended.outcome, AttemptOutcome::Accepted | AttemptOutcome::Claim);
                if let Some(work) = self.attempts.get_mut(index) {
                    work.accepted = ended.outcome == AttemptOutcome::Accepted;
                    work.tree.clone_from(&ended.tree);
                }
                // What the attempt itself changed, its last reply speaks of.
                if let Some(changed) = ended.changed.as_ref().filter(|changed| changed.total > 0) {
                    self.change(index, changed);
                }
                self.reply(index, &ended.claims, judged || !ended.claims.is_empty(), at);
            }
            Event::AttemptLost { attempt, .. } => {
                self.open.remove(attempt);
            }
            _ => {}
        }
    }

    fn reply(&mut self, attempt: usize, claims: &[ClaimReport], judged: bool, at: i64) {
        let Some(work) = self.attempts.get_mut(attempt) else { return };
        work.replies += 1;
        if judged {
            work.judged = work.replies;
        }
        let (reply, changes) = (work.replies, self.changes.len());
        self.kept.extend(claims.iter().map(|claim| Kept {
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

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.kept.iter().all(|kept| goes_without_saying(&kept.claim))
    }

    /// The claims of the run, in the order they were held against the world.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.every();
        entries.retain(|entry| !goes_without_saying(&entry.claim));
        entries
    }

    /// Also those that go without saying: a rate is one of all of them.
    fn every(&self) -> Vec<Entry> {
        let last = self.last_words();
        let refuted = self.refuted_by_reply();
        let mut entries = Vec::with_capacity(self.kept.len());
        for (index, kept) in self.kept.iter().enumerate() {
            let Some(work) = self.attempts.get(kept.attempt) else { continue };
            let since = self.outdated(kept, work);
            let is_refuted = kept.claim.verdict == Verdict::Refuted;
            let again = refuted.contains(&(kept.attempt, work.judged, kept.claim.claim.as_str()));
            let corrected = is_refuted && work.judged > kept.reply && !again;
            entries.push(Entry {
                path: work.path.clone(),
                item: work.item.clone(),
                agent: work.agent.clone(),
                player: work.player.as_ref().map(|player| player_name(&player.spec)),
                model: work.player.as_ref().and_then(|player| player.model.clone()),
                version: work.player.as_ref().and_then(|player| player.version.clone()),
                n: work.n,
                reply: kept.reply,
                contract: work.contract.clone(),
                at: kept.at,
                claim: kept.claim.clone(),
                standing: if since.is_some() { Verdict::Stale } else { kept.claim.verdict },
                since: since.unwrap_or_default(),
                corrected,
                superseded: !last.contains(&index),
            });
        }
        entries
    }

    /// How the claims stand at the end.
    pub fn totals(&self) -> Totals {
        totals(&self.entries())
    }

    /// The claims that count: the last of each name at each place.
    fn last_words(&self) -> BTreeSet<usize> {
        let mut accepted: BTreeMap<&[String], usize> = BTreeMap::new();
        for (index, work) in self.attempts.iter().enumerate().filter(|(_, work)| work.accepted) {
            accepted.insert(&work.path, index);
        }
        let mut last: BTreeMap<(&[String], &str), usize> = BTreeMap::new();
        for (index, kept) in self.kept.iter().enumerate() {
            let Some(work) = self.attempts.get(kept.attempt) else { continue };
            let made_good =
                accepted.get(work.path.as_slice()).is_some_and(|good| *good > kept.attempt);
            // A reply that was looked at says all there is to say for its attempt: what it does not
            // repeat is withdrawn.
            let withdrawn = kept.reply < work.judged;
            if withdrawn || (made_good && !work.accepted) {
                continue;
            }
            last.insert((&work.path, &kept.claim.claim), index);
        }
        last.into_values().collect()
    }

    /// What was refuted: the attempt, the reply, the claim.
    fn refuted_by_reply(&self) -> BTreeSet<(usize, u32, &str)> {
        let refuted = self.kept.iter().filter(|kept| kept.claim.verdict == Verdict::Refuted);
        refuted.map(|kept| (kept.attempt, kept.reply, kept.claim.claim.as_str())).collect()
    }

    /// Why the evidence of a verified claim is older than the last change, if it is.
    fn outdated(&self, kept: &Kept, work: &Work) -> Option<String> {
        if kept.claim.verdict != Verdict::Verified {
            return None;
        }
        let later = |index: usize| {
            let change = self.changes.get(index).filter(|_| index >= kept.changes)?;
            // The attempt's own changes came before its evidence if they led to the same tree.
            let own = change.attempt == kept.attempt
                && kept.claim.tree.is_some()
                && kept.claim.tree == work.tree;
            (!own).then_some(*change)
        };
        match subject(&kept.claim) {
            Subject::Step => None,
            Subject::Tree => {
                let change = (kept.changes..self.changes.len()).rev().take(2).find_map(later)?;
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

/// How these claims stand at the end.
pub fn totals(entries: &[Entry]) -> Totals {
    let mut totals =
        Totals::of(entries.iter().filter(|entry| !entry.superseded).map(|entry| entry.standing));
    totals.corrected = entries.iter().filter(|entry| entry.corrected).count() as u64;
    totals
}

/// What a claim speaks of.
enum Subject<'a> {
    /// What one step did: nothing later changes that.
    Step,
    /// The tree as it was.
    Tree,
    /// These files.
    Files(BTreeSet<&'a str>),
}

fn subject(claim: &ClaimReport) -> Subject<'_> {
    match claim.kind {
        ClaimKind::Command | ClaimKind::Commands => Subject::Tree,
        // A count of a list says nothing of the tree; one that a report or a check gave does.
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

/// The paths that a value names, a level deep. One that is absolute is also taken from each of its
/// folders on, since changes are told from the workspace's.
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
            paths.extend(text.match_indices('/').take(DEEPEST).map(|(at, _)| &text[at + 1..]));
        }
    }
    paths
}

fn files(number: u64) -> String {
    format!("{number} file{}", if number == 1 { "" } else { "s" })
}

/// Who plays an agent, in a word: of a command line the program, of a script that it is one.
pub fn player_name(spec: &str) -> String {
    match Spec::parse(spec) {
        Ok(Spec::Command(argv)) => {
            let program = argv.first().map(String::as_str).unwrap_or_default();
            let name = program.rsplit('/').find(|part| !part.is_empty());
            name.unwrap_or("command").to_owned()
        }
        Ok(Spec::Script(_)) => "script".to_owned(),
        Ok(Spec::Cli(name)) => name.to_owned(),
        // One that this version does not know, or that was given in code.
        Err(_) => spec.to_owned(),
    }
}

#[cfg(test)]
mod tests;
