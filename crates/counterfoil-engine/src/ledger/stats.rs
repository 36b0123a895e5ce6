//! Over all runs: who hands back what is asked, and whose word holds. This is what tells which
//! agent to trust with what.
//!
//! Events are heard run after run, and of a run nothing is kept but its figures. A claim counts
//! with the verdict it got when it was made: that a later step changed the tree is not the fault of
//! whoever spoke before it.

use super::{Ledger, player_name};
use counterfoil_contract::claim::Verdict;
use counterfoil_flow::{AssignedAgent, AttemptOutcome, Event, Reply};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What figures are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// The contract, with its version.
    Contract,
    /// The field that makes the claim.
    Field,
    /// The agent: as the workflow names it, and who played it.
    Agent,
    /// Who played it, whatever the workflow calls it.
    Player,
    /// The model.
    Model,
    /// The version of the program.
    Version,
}

/// What a group has in common. A part is none if it is not grouped by, empty if it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// The contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The field; empty for attempts that claimed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The agent, as the workflow names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Who played it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Key {
    /// The same without the field.
    #[must_use]
    pub fn without_field(&self) -> Self {
        Self { field: None, ..self.clone() }
    }
}

/// What became of attempts and their replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyFigures {
    /// Agent sessions.
    pub attempts: u64,
    /// Those that ended with a result that counts.
    pub accepted: u64,
    /// Those that ended because a claim that had to hold was refuted.
    pub lost_to_claim: u64,
    /// Texts that were handed back; one that a broken connection cut off is none.
    pub replies: u64,
    /// Those without a result, or with one that does not satisfy its contract.
    pub violations: u64,
    /// How often an accepted attempt was asked again before it was.
    pub repairs: u64,
    /// What was wrong, by code.
    pub codes: BTreeMap<String, u64>,
}

impl ReplyFigures {
    /// Replies that broke the contract, of all replies.
    pub fn violation_rate(&self) -> Option<f64> {
        rate(self.violations, self.replies)
    }

    /// Repairs that an accepted attempt needed.
    pub fn repairs_per_accepted(&self) -> Option<f64> {
        rate(self.repairs, self.accepted)
    }

    /// The codes, the most frequent first.
    pub fn top_codes(&self) -> Vec<(&str, u64)> {
        let mut codes: Vec<(&str, u64)> =
            self.codes.iter().map(|(code, n)| (code.as_str(), *n)).collect();
        codes.sort_by_key(|(_, number)| Reverse(*number));
        codes
    }

    fn reply(&mut self, reply: &Reply) {
        let violates = match reply.status.as_str() {
            // One that was refuted satisfies its contract; it is its claims that do not hold.
            "accepted" | "refuted" => false,
            "rejected" | "absent" => true,
            _ => return,
        };
        self.replies += 1;
        if !violates {
            return;
        }
        self.violations += 1;
        for code in &reply.codes {
            if self.codes.len() < MOST_CODES || self.codes.contains_key(code) {
                *self.codes.entry(code.clone()).or_default() += 1;
            }
        }
    }
}

/// What became of claims, as they were judged when they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimFigures {
    /// Held against the world, in whatever reply.
    pub claims: u64,
    /// Agreed with what was observed.
    pub verified: u64,
    /// Did not.
    pub refuted: u64,
    /// Agreed with evidence that was too old.
    pub stale: u64,
    /// Could not be held against anything.
    pub unverifiable: u64,
    /// Refuted, and put right when the agent was asked again.
    pub corrected: u64,
}

impl ClaimFigures {
    /// Refuted claims, of those that something could be said about.
    pub fn refutation_rate(&self) -> Option<f64> {
        rate(self.refuted, self.verified + self.refuted)
    }

    fn add(&mut self, verdict: Verdict, corrected: bool) {
        self.claims += 1;
        self.corrected += u64::from(corrected);
        match verdict {
            Verdict::Verified => self.verified += 1,
            Verdict::Refuted => self.refuted += 1,
            Verdict::Stale => self.stale += 1,
            Verdict::Unverifiable => self.unverifiable += 1,
        }
    }
}

/// A group and its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What it has in common.
    pub key: Key,
    /// Its attempts. They claim several fields each: groups that differ only in the field share
    /// these figures.
    pub replies: ReplyFigures,
    /// Its claims.
    pub claims: ClaimFigures,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs that were heard.
    pub runs: u64,
    /// The groups: the highest rate of refuted claims first, then the most claims.
    pub groups: Vec<Group>,
}

/// Hears the events of runs, one run after the other, and counts.
#[derive(Debug)]
pub struct Stats {
    by: Vec<Dimension>,
    runs: u64,
    players: BTreeMap<String, AssignedAgent>,
    ledger: Ledger,
    /// The attempts in flight: whose they are, and the repairs that were asked.
    open: BTreeMap<String, (Key, u64)>,
    replies: BTreeMap<Key, ReplyFigures>,
    claims: BTreeMap<Key, ClaimFigures>,
}

/// Groups beyond these are one: a journal cannot make us keep more.
const MOST_GROUPS: usize = 10_000;
/// Codes that are told apart in a group.
const MOST_CODES: usize = 64;
/// What the groups beyond have in common.
const OTHERS: &str = "(others)";

impl Stats {
    /// Figures by these.
    pub fn new(by: &[Dimension]) -> Self {
        Self {
            by: by.to_vec(),
            runs: 0,
            players: BTreeMap::new(),
            ledger: Ledger::new(),
            open: BTreeMap::new(),
            replies: BTreeMap::new(),
            claims: BTreeMap::new(),
        }
    }

    /// Hears the next event. A run begins with its first one, and the run before it is over.
    pub fn hear(&mut self, event: &Event, at: i64) {
        match event {
            Event::RunStarted(started) => {
                self.close();
                self.runs += 1;
                self.players.clone_from(&started.agents);
            }
            Event::RunResumed { agents, .. } => self.players.extend(agents.clone()),
            Event::AttemptStarted { attempt, agent: Some(agent), contract, .. } => {
                let player = self.players.get(agent);
                let name = player.map(|player| player_name(&player.spec));
                let key = self.key(&Known {
                    agent,
                    contract: contract.as_deref(),
                    field: None,
                    player: name.as_deref(),
                    model: player.and_then(|player| player.model.as_deref()),
                    version: player.and_then(|player| player.version.as_deref()),
                });
                counted(&mut self.replies, &key).attempts += 1;
                self.open.insert(attempt.clone(), (key, 0));
            }
            Event::RepairAsked { attempt, reply, .. } => {
                if let Some((key, repairs)) = self.open.get_mut(attempt) {
                    *repairs += 1;
                    counted(&mut self.replies, key).reply(reply);
                }
            }
            Event::AttemptEnded(ended) => {
                if let Some((key, repairs)) = self.open.remove(&ended.attempt) {
                    let figures = counted(&mut self.replies, &key);
                    if let Some(reply) = &ended.reply {
                        figures.reply(reply);
                    }
                    match ended.outcome {
                        AttemptOutcome::Accepted => {
                            figures.accepted += 1;
                            figures.repairs += repairs;
                        }
                        AttemptOutcome::Claim => figures.lost_to_claim += 1,
                        _ => {}
                    }
                }
            }
            Event::AttemptLost { attempt, .. } => {
                self.open.remove(attempt);
            }
            _ => {}
        }
        self.ledger.hear(event, at);
    }

    /// The figures of all runs that were heard.
    pub fn tally(mut self) -> Tally {
        self.close();
        let mut groups: Vec<Group> = Vec::with_capacity(self.claims.len());
        let mut silent = self.replies.clone();
        for (key, claims) in &self.claims {
            let whose = key.without_field();
            silent.remove(&whose);
            let replies = self.replies.get(&whose).cloned().unwrap_or_default();
            groups.push(Group { key: key.clone(), replies, claims: *claims });
        }
        // Those who claimed nothing still handed something back.
        let by_field = self.by.contains(&Dimension::Field);
        groups.extend(silent.into_iter().map(|(key, replies)| Group {
            key: Key { field: by_field.then(String::new), ..key },
            replies,
            claims: ClaimFigures::default(),
        }));
        groups.sort_by(|a, b| {
            // What nothing can be said about comes last.
            let rate = |group: &Group| group.claims.refutation_rate().unwrap_or(-1.0);
            rate(b)
                .total_cmp(&rate(a))
                .then(b.claims.claims.cmp(&a.claims.claims))
                .then(b.replies.attempts.cmp(&a.replies.attempts))
                .then_with(|| a.key.cmp(&b.key))
        });
        Tally { runs: self.runs, groups }
    }

    /// A run is over: its claims are counted and forgotten.
    fn close(&mut self) {
        for entry in std::mem::take(&mut self.ledger).every() {
            // A command has no agent, and makes no claims that would say something of one.
            let Some(agent) = &entry.agent else { continue };
            let field =
                if entry.claim.field.is_empty() { &entry.claim.claim } else { &entry.claim.field };
            let key = self.key(&Known {
                agent,
                contract: entry.contract.as_deref(),
                field: Some(field),
                player: entry.player.as_deref(),
                model: entry.model.as_deref(),
                version: entry.version.as_deref(),
            });
            counted(&mut self.claims, &key).add(entry.claim.verdict, entry.corrected);
        }
        self.open.clear();
        self.players.clear();
    }

    /// What is grouped by, of what is known; a field only where there is one.
    fn key(&self, known: &Known<'_>) -> Key {
        let by = |dimensions: &[Dimension], value: Option<&str>| {
            let wanted = self.by.iter().any(|by| dimensions.contains(by));
            wanted.then(|| value.unwrap_or_default().to_owned())
        };
        Key {
            contract: by(&[Dimension::Contract], known.contract),
            field: known.field.and_then(|field| by(&[Dimension::Field], Some(field))),
            agent: by(&[Dimension::Agent], Some(known.agent)),
            player: by(&[Dimension::Agent, Dimension::Player], known.player),
            model: by(&[Dimension::Model], known.model),
            version: by(&[Dimension::Version], known.version),
        }
    }
}

/// Whose something is.
struct Known<'a> {
    agent: &'a str,
    contract: Option<&'a str>,
    field: Option<&'a str>,
    player: Option<&'a str>,
    model: Option<&'a str>,
    version: Option<&'a str>,
}

/// The figures of a key, or of all beyond the last that is told apart.
fn counted<'a, F: Default>(figures: &'a mut BTreeMap<Key, F>, key: &Key) -> &'a mut F {
    if figures.len() < MOST_GROUPS || figures.contains_key(key) {
        return figures.entry(key.clone()).or_default();
    }
    let other = |part: &Option<String>| part.as_ref().map(|_| OTHERS.to_owned());
    let others = Key {
        contract: other(&key.contract),
        field: other(&key.field),
        agent: other(&key.agent),
        player: other(&key.player),
        model: other(&key.model),
        version: other(&key.version),
    };
    figures.entry(others).or_default()
}

#[allow(clippy::cast_precision_loss)] // Counts of replies are far below 2^52.
fn rate(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}
