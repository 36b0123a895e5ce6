//! The statistics as data: the names and the order of the figures.

use super::stats::{Dimension, Group, Tally};
use super::weeks::{Trend, Week};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Statistics about claims and replies over all runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StatsReport {
    /// The number of runs.
    pub runs: u64,
    /// The properties by which the figures are grouped.
    pub by: Vec<Dimension>,
    /// The groups: the highest rate of refuted claims first, then the most claims.
    pub groups: Vec<GroupReport>,
}

/// A property that a group has in common: null if it is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Property(pub Option<String>);

/// The figures of a group. A property by which they are not grouped is left out. Rates have four
/// decimals, and are null if there is nothing to divide by.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupReport {
    /// The contract, as `id@version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<Property>,
    /// The field that makes the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Property>,
    /// The agent, as the workflow names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Property>,
    /// The program that is assigned to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<Property>,
    /// The model of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Property>,
    /// The version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Property>,
    /// The number of agent sessions.
    pub attempts: u64,
    /// Attempts that ended with an accepted result.
    pub accepted: u64,
    /// Attempts that ended because a required claim was refuted.
    pub lost_to_claim: u64,
    /// Complete replies.
    pub replies: u64,
    /// Replies without a result, or with one that does not satisfy its contract.
    pub violations: u64,
    /// The share of such replies.
    pub violation_rate: Option<f64>,
    /// Requested repairs of the attempts that were accepted.
    pub repairs: u64,
    /// The average number of repairs of an accepted attempt.
    pub repairs_per_accepted: Option<f64>,
    /// Claims in all replies.
    pub claims: u64,
    /// Claims that agree with the observation.
    pub verified: u64,
    /// Claims that contradict the observation.
    pub refuted: u64,
    /// Claims whose evidence was out of date.
    pub stale: u64,
    /// Claims that could not be verified.
    pub unverifiable: u64,
    /// The share of refuted claims among the verified and refuted ones.
    pub refutation_rate: Option<f64>,
    /// Refuted claims that were corrected later.
    pub corrected: u64,
    /// How often each code was reported.
    pub codes: BTreeMap<String, u64>,
}

/// The figures of a group with what it cost and with its last weeks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrendReport {
    /// The figures of all weeks.
    #[serde(flatten)]
    pub group: GroupReport,
    /// What all attempts cost in US dollars, as far as their programs tell it.
    pub cost_usd: f64,
    /// What an accepted result cost on average, with the attempts that were not accepted.
    pub cost_per_accepted: Option<f64>,
    /// The tokens of all attempts.
    pub tokens: u64,
    /// The last weeks, the earliest first.
    pub weeks: Vec<WeekReport>,
}

/// The figures of a group in one week. Runs belong to the week in which they started.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WeekReport {
    /// The beginning of the week, Monday at midnight UTC, in milliseconds since 1970.
    pub starts_at: i64,
    /// The number of agent sessions.
    pub attempts: u64,
    /// Attempts that ended with an accepted result.
    pub accepted: u64,
    /// Complete replies.
    pub replies: u64,
    /// Replies without a result, or with one that does not satisfy its contract.
    pub violations: u64,
    /// Claims that agree with the observation.
    pub verified: u64,
    /// Claims that contradict the observation.
    pub refuted: u64,
    /// What all attempts cost in US dollars.
    pub cost_usd: f64,
}

impl Trend {
    /// The figures as data, with the properties by which they are grouped.
    pub fn report(&self, by: &[Dimension]) -> TrendReport {
        let replies = &self.group.replies;
        TrendReport {
            group: self.group.report(by),
            cost_usd: rounded(replies.cost_usd),
            cost_per_accepted: replies.cost_per_accepted().map(rounded),
            tokens: replies.tokens,
            weeks: self.weeks.iter().map(Week::report).collect(),
        }
    }
}

impl Week {
    fn report(&self) -> WeekReport {
        let (replies, claims) = (&self.group.replies, &self.group.claims);
        WeekReport {
            starts_at: self.starts_at,
            attempts: replies.attempts,
            accepted: replies.accepted,
            replies: replies.replies,
            violations: replies.violations,
            verified: claims.verified,
            refuted: claims.refuted,
            cost_usd: rounded(replies.cost_usd),
        }
    }
}

impl Tally {
    /// The statistics as data, with the properties by which they are grouped.
    pub fn report(&self, by: &[Dimension]) -> StatsReport {
        let groups = self.groups.iter().map(|group| group.report(by)).collect();
        StatsReport { runs: self.runs, by: by.to_vec(), groups }
    }
}

impl Group {
    /// The figures as data, with the properties by which they are grouped.
    pub fn report(&self, by: &[Dimension]) -> GroupReport {
        let (key, replies, claims) = (&self.key, &self.replies, &self.claims);
        let property = |dimensions: &[Dimension], part: &Option<String>| {
            let is_requested = by.iter().any(|by| dimensions.contains(by));
            is_requested.then(|| Property(part.clone().filter(|part| !part.is_empty())))
        };
        GroupReport {
            contract: property(&[Dimension::Contract], &key.contract),
            field: property(&[Dimension::Field], &key.field),
            agent: property(&[Dimension::Agent], &key.agent),
            player: property(&[Dimension::Agent, Dimension::Player], &key.player),
            model: property(&[Dimension::Model], &key.model),
            version: property(&[Dimension::Version], &key.version),
            attempts: replies.attempts,
            accepted: replies.accepted,
            lost_to_claim: replies.lost_to_claim,
            replies: replies.replies,
            violations: replies.violations,
            violation_rate: replies.violation_rate().map(rounded),
            repairs: replies.repairs,
            repairs_per_accepted: replies.repairs_per_accepted().map(rounded),
            claims: claims.claims,
            verified: claims.verified,
            refuted: claims.refuted,
            stale: claims.stale,
            unverifiable: claims.unverifiable,
            refutation_rate: claims.refutation_rate().map(rounded),
            corrected: claims.corrected,
            codes: replies.codes.clone(),
        }
    }
}

/// Four digits are enough for rates of such small counts.
fn rounded(rate: f64) -> f64 {
    (rate * 10_000.0).round() / 10_000.0
}
