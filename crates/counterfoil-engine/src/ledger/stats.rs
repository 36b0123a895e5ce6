//! Statistics over all runs: the rates of contract violations and refuted claims, by contract,
//! field and agent.
//!
//! Events are added run after run; only the figures are kept. A claim counts with its original
//! verdict: a later change of the work tree is not the fault of the agent that made it.

use super::attempts::{CountedAttempt, RunCounter};
use super::figures::Figures;
use counterfoil_contract::claim::Verdict;
use counterfoil_flow::{AttemptOutcome, Event};
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

    /// The part of a key with all properties by which figures are grouped.
    #[must_use]
    pub fn grouped(&self, by: &[Dimension]) -> Self {
        let part = |dimensions: &[Dimension], part: &Option<String>| {
            part.clone().filter(|_| by.iter().any(|by| dimensions.contains(by)))
        };
        Self {
            contract: part(&[Dimension::Contract], &self.contract),
            field: part(&[Dimension::Field], &self.field),
            agent: part(&[Dimension::Agent], &self.agent),
            player: part(&[Dimension::Agent, Dimension::Player], &self.player),
            model: part(&[Dimension::Model], &self.model),
            version: part(&[Dimension::Version], &self.version),
        }
    }

    /// Whether the key has every property that another one names.
    pub fn has(&self, wanted: &Self) -> bool {
        let pairs = [
            (&self.contract, &wanted.contract),
            (&self.field, &wanted.field),
            (&self.agent, &wanted.agent),
            (&self.player, &wanted.player),
            (&self.model, &wanted.model),
            (&self.version, &wanted.version),
        ];
        pairs.into_iter().all(|(own, wanted)| wanted.is_none() || own == wanted)
    }
}

/// Figures about attempts and their replies.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// What all attempts cost in US dollars, as far as their programs tell it.
    pub cost_usd: f64,
    /// The tokens of all attempts.
    pub tokens: u64,
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

    /// What an accepted result cost on average, with the attempts that were not accepted.
    pub fn cost_per_accepted(&self) -> Option<f64> {
        (self.accepted > 0).then(|| self.cost_usd / count(self.accepted))
    }

    /// Adds an attempt.
    pub(super) fn add_attempt(&mut self, attempt: &CountedAttempt) {
        self.attempts += 1;
        self.replies += attempt.replies;
        self.violations += attempt.violations;
        self.cost_usd += attempt.cost_usd;
        self.tokens = self.tokens.saturating_add(attempt.tokens);
        match attempt.outcome {
            Some(AttemptOutcome::Accepted) => {
                self.accepted += 1;
                self.repairs += attempt.repairs;
            }
            Some(AttemptOutcome::Claim) => self.lost_to_claim += 1,
            _ => {}
        }
        add_codes(&mut self.codes, &attempt.codes);
    }

    /// Adds the figures of other attempts.
    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            attempts,
            accepted,
            lost_to_claim,
            replies,
            violations,
            repairs,
            codes,
            cost_usd,
            tokens,
        } = other;
        self.attempts += attempts;
        self.accepted += accepted;
        self.lost_to_claim += lost_to_claim;
        self.replies += replies;
        self.violations += violations;
        self.repairs += repairs;
        self.cost_usd += cost_usd;
        self.tokens = self.tokens.saturating_add(*tokens);
        add_codes(&mut self.codes, codes);
    }
}

/// Adds numbers by code. The number of different codes is bounded.
pub(super) fn add_codes(codes: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>) {
    for (code, number) in others {
        if let Some(known) = codes.get_mut(code) {
            *known += number;
        } else if codes.len() < MAX_CODES {
            codes.insert(code.clone(), *number);
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

    /// Adds the figures of other claims.
    pub(super) fn add(&mut self, other: &Self) {
        let Self { claims, verified, refuted, stale, unverifiable, corrected } = other;
        self.claims += claims;
        self.verified += verified;
        self.refuted += refuted;
        self.stale += stale;
        self.unverifiable += unverifiable;
        self.corrected += corrected;
    }

    /// Adds a claim.
    pub(super) fn add_claim(&mut self, verdict: Verdict, corrected: bool) {
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
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
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
    figures: Figures,
    run: RunCounter,
}

/// The maximum number of codes in a group.
pub(super) const MAX_CODES: usize = 64;

impl Stats {
    /// Collects figures grouped by these properties.
    pub fn new(by: &[Dimension]) -> Self {
        Self { by: by.to_vec(), figures: Figures::default(), run: RunCounter::default() }
    }

    /// Adds the next event. The first event of a run ends the run before it.
    pub fn on_event(&mut self, event: &Event, at: i64) {
        if matches!(event, Event::RunStarted(_)) {
            self.close();
            self.figures.runs += 1;
        }
        self.run.on_event(event, at);
    }

    /// The figures of all runs.
    pub fn tally(mut self) -> Tally {
        self.close();
        self.figures.tally(&self.by)
    }

    /// Ends a run: counts its attempts and claims, and drops them.
    fn close(&mut self) {
        let run = std::mem::take(&mut self.run).finish();
        self.figures.add_run(&run, &self.by);
    }
}

fn rate(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| count(part) / count(of))
}

#[allow(clippy::cast_precision_loss)] // Counts of replies are far below 2^52.
fn count(number: u64) -> f64 {
    number as f64
}
