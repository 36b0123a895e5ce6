//! Statistics over all runs: the rates of contract violations and refuted claims, by contract,
//! field and agent.
//!
//! Events are added run after run; only the figures are kept. A claim counts with its original
//! verdict: a later change of the work tree is not the fault of the agent that made it.

use super::{Ledger, program_name};
use counterfoil_contract::claim::Verdict;
use counterfoil_flow::{AssignedAgent, AttemptOutcome, Event, Reply};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A property by which figures are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// The contract, with its version.
    Contract,
    /// The field that makes the claim.
    Field,
    /// The agent, as the workflow names it, with the assigned program.
    Agent,
    /// The assigned program, whatever the workflow calls the agent.
    Player,
    /// The model of the agent.
    Model,
    /// The version of the program.
    Version,
}

/// The common properties of a group. A property is none if it is not grouped by, and empty if it is
/// not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// The contract of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// The field; empty for attempts that claimed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The agent, as the workflow names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The assigned program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// The model of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Key {
    /// The key without the field.
    #[must_use]
    pub fn without_field(&self) -> Self {
        Self { field: None, ..self.clone() }
    }
}

/// Figures about attempts and their replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyFigures {
    /// The number of agent sessions.
    pub attempts: u64,
    /// Attempts that ended with an accepted result.
    pub accepted: u64,
    /// Attempts that ended because a required claim was refuted.
    pub lost_to_claim: u64,
    /// Complete replies. A reply that was cut off does not count.
    pub replies: u64,
    /// Replies without a result, or with one that does not satisfy its contract.
    pub violations: u64,
    /// Repairs of accepted attempts.
    pub repairs: u64,
    /// The number of violations by code.
    pub codes: BTreeMap<String, u64>,
}

impl ReplyFigures {
    /// The share of replies that violate their contract.
    pub fn violation_rate(&self) -> Option<f64> {
        rate(self.violations, self.replies)
    }

    /// The average number of repairs of an accepted attempt.
    pub fn repairs_per_accepted(&self) -> Option<f64> {
        rate(self.repairs, self.accepted)
    }

    /// The violation codes, the most frequent first.
    pub fn top_codes(&self) -> Vec<(&str, u64)> {
        let mut codes: Vec<(&str, u64)> =
            self.codes.iter().map(|(code, n)| (code.as_str(), *n)).collect();
        codes.sort_by_key(|(_, number)| Reverse(*number));
        codes
    }

    fn reply(&mut self, reply: &Reply) {
        let violates = match reply.status.as_str() {
            // A refuted reply satisfies its contract; only its claims do not hold.
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
            if self.codes.len() < MAX_CODES || self.codes.contains_key(code) {
                *self.codes.entry(code.clone()).or_default() += 1;
            }
        }
    }
}

/// Figures about claims, by their original verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimFigures {
    /// All claims that were verified, in all replies.
    pub claims: u64,
    /// Claims that agree with the observation.
    pub verified: u64,
    /// Claims that contradict the observation.
    pub refuted: u64,
    /// Claims whose evidence was out of date.
    pub stale: u64,
    /// Claims that could not be verified.
    pub unverifiable: u64,
    /// Refuted claims that were corrected later.
    pub corrected: u64,
}

impl ClaimFigures {
    /// The share of refuted claims among the verified and refuted ones.
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

/// The figures of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The common properties of the group.
    pub key: Key,
    /// The figures about attempts. An attempt may claim several fields: groups that differ only in
    /// the field share these figures.
    pub replies: ReplyFigures,
    /// The figures about claims.
    pub claims: ClaimFigures,
}

/// The figures of all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of runs.
    pub runs: u64,
    /// The groups: the highest rate of refuted claims first, then the most claims.
    pub groups: Vec<Group>,
}

/// Collects figures from the events of runs, one run after the other.
#[derive(Debug)]
pub struct Stats {
    by: Vec<Dimension>,
    runs: u64,
    assigned: BTreeMap<String, AssignedAgent>,
    ledger: Ledger,
    /// The attempts in flight, with their group and the number of repairs.
    open: BTreeMap<String, (Key, u64)>,
    replies: BTreeMap<Key, ReplyFigures>,
    claims: BTreeMap<Key, ClaimFigures>,
}

/// The maximum number of groups, to bound memory. All further groups are combined.
const MAX_GROUPS: usize = 10_000;
/// The maximum number of codes in a group.
const MAX_CODES: usize = 64;
/// The name of the combined group.
const OTHERS: &str = "(others)";

impl Stats {
    /// Collects figures grouped by these properties.
    pub fn new(by: &[Dimension]) -> Self {
        Self {
            by: by.to_vec(),
            runs: 0,
            assigned: BTreeMap::new(),
            ledger: Ledger::new(),
            open: BTreeMap::new(),
            replies: BTreeMap::new(),
            claims: BTreeMap::new(),
        }
    }

    /// Adds the next event. The first event of a run ends the run before it.
    pub fn on_event(&mut self, event: &Event, at: i64) {
        match event {
            Event::RunStarted(started) => {
                self.close();
                self.runs += 1;
                self.assigned.clone_from(&started.agents);
            }
            Event::RunResumed(resumed) => self.assigned.extend(resumed.agents.clone()),
            Event::RunReopened(reopened) => self.assigned.extend(reopened.agents.clone()),
            Event::AttemptStarted { attempt, agent: Some(agent), contract, .. } => {
                let program = self.assigned.get(agent);
                let name = program.map(|program| program_name(&program.spec));
                let key = self.key(&Properties {
                    agent,
                    contract: contract.as_deref(),
                    field: None,
                    player: name.as_deref(),
                    model: program.and_then(|program| program.model.as_deref()),
                    version: program.and_then(|program| program.version.as_deref()),
                });
                figures_of(&mut self.replies, &key).attempts += 1;
                self.open.insert(attempt.clone(), (key, 0));
            }
            Event::RepairAsked { attempt, reply, .. } => {
                if let Some((key, repairs)) = self.open.get_mut(attempt) {
                    *repairs += 1;
                    figures_of(&mut self.replies, key).reply(reply);
                }
            }
            Event::AttemptEnded(ended) => {
                if let Some((key, repairs)) = self.open.remove(&ended.attempt) {
                    let figures = figures_of(&mut self.replies, &key);
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
        self.ledger.on_event(event, at);
    }

    /// The figures of all runs.
    pub fn tally(mut self) -> Tally {
        self.close();
        let mut groups: Vec<Group> = Vec::with_capacity(self.claims.len());
        let mut without_claims = self.replies.clone();
        for (key, claims) in &self.claims {
            let whose = key.without_field();
            without_claims.remove(&whose);
            let replies = self.replies.get(&whose).cloned().unwrap_or_default();
            groups.push(Group { key: key.clone(), replies, claims: *claims });
        }
        // Groups without claims still have replies.
        let by_field = self.by.contains(&Dimension::Field);
        groups.extend(without_claims.into_iter().map(|(key, replies)| Group {
            key: Key { field: by_field.then(String::new), ..key },
            replies,
            claims: ClaimFigures::default(),
        }));
        groups.sort_by(|a, b| {
            // Groups without a rate come last.
            let rate = |group: &Group| group.claims.refutation_rate().unwrap_or(-1.0);
            rate(b)
                .total_cmp(&rate(a))
                .then(b.claims.claims.cmp(&a.claims.claims))
                .then(b.replies.attempts.cmp(&a.replies.attempts))
                .then_with(|| a.key.cmp(&b.key))
        });
        Tally { runs: self.runs, groups }
    }

    /// Ends a run: counts its claims and drops them.
    fn close(&mut self) {
        for entry in std::mem::take(&mut self.ledger).all_entries() {
            // Claims of commands belong to no agent.
            let Some(agent) = &entry.agent else { continue };
            let field =
                if entry.claim.field.is_empty() { &entry.claim.claim } else { &entry.claim.field };
            let key = self.key(&Properties {
                agent,
                contract: entry.contract.as_deref(),
                field: Some(field),
                player: entry.player.as_deref(),
                model: entry.model.as_deref(),
                version: entry.version.as_deref(),
            });
            figures_of(&mut self.claims, &key).add(entry.claim.verdict, entry.corrected);
        }
        self.open.clear();
        self.assigned.clear();
    }

    /// The key of a group for these properties.
    fn key(&self, known: &Properties<'_>) -> Key {
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

/// The properties of an attempt or a claim.
struct Properties<'a> {
    agent: &'a str,
    contract: Option<&'a str>,
    field: Option<&'a str>,
    player: Option<&'a str>,
    model: Option<&'a str>,
    version: Option<&'a str>,
}

/// The figures of a key, or of the combined group if there are too many groups.
fn figures_of<'a, F: Default>(figures: &'a mut BTreeMap<Key, F>, key: &Key) -> &'a mut F {
    if figures.len() < MAX_GROUPS || figures.contains_key(key) {
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
