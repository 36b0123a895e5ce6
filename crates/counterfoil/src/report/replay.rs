//! The report of `counterfoil replay`.

use counterfoil_agents::recording::Difference;
use schemars::JsonSchema;
use serde::Serialize;

/// The results of a replay.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReplayResults<'a> {
    /// The number of attempts by result.
    pub(crate) summary: ReplayCounts,
    /// The attempts that were replayed.
    pub(crate) replayed: &'a [ReplayReport],
}

/// The result of replaying one attempt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ReplayReport {
    /// The display name of the attempt.
    pub(crate) name: String,
    /// The program whose events were parsed; none for plain text.
    pub(crate) program: Option<String>,
    /// The contract it was validated against, as `id@version`.
    pub(crate) contract: Option<String>,
    /// Where that contract is from: `named`, `current` or `recorded`.
    #[serde(rename = "judged_by")]
    pub(crate) contract_source: Option<&'static str>,
    /// The contract it was recorded with.
    pub(crate) recorded_with: Option<String>,
    /// The outcome of the attempt.
    pub(crate) outcome: Option<String>,
    /// The channel through which the result was delivered.
    pub(crate) channel: Option<String>,
    /// The violation codes of the last reply.
    pub(crate) codes: Vec<String>,
    /// The final text, if the transcript consists of events.
    pub(crate) text: Option<String>,
    /// Why the attempt failed.
    pub(crate) reason: Option<String>,
    /// Notes of the parser.
    pub(crate) notes: Vec<String>,
    /// The comparison with the recorded outcome.
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
    /// Whether the recording was updated with this result.
    pub(crate) updated: bool,
}

/// How a replayed attempt compares with its recording.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "result")]
pub(crate) enum Comparison {
    /// The result is the recorded one.
    Same,
    /// The result differs from the recorded one.
    Changed {
        /// Every difference.
        differences: Vec<Difference>,
    },
    /// No outcome was recorded.
    New,
    /// The attempt cannot be replayed.
    Broken {
        /// Why it cannot be replayed.
        problem: String,
    },
}

impl ReplayReport {
    /// The report of an attempt that cannot be replayed.
    pub(crate) fn broken(name: String, problem: String) -> Self {
        Self {
            name,
            program: None,
            contract: None,
            contract_source: None,
            recorded_with: None,
            outcome: None,
            channel: None,
            codes: Vec::new(),
            text: None,
            reason: None,
            notes: Vec::new(),
            comparison: Comparison::Broken { problem },
            updated: false,
        }
    }
}

/// The number of attempts by comparison.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ReplayCounts {
    /// Attempts with the recorded result.
    pub(crate) same: usize,
    /// Attempts with another result.
    pub(crate) changed: usize,
    /// Attempts without a recorded result.
    pub(crate) new: usize,
    /// Attempts that cannot be replayed.
    pub(crate) broken: usize,
}

impl ReplayCounts {
    /// Counts the reports by comparison.
    pub(crate) fn from_reports(reports: &[ReplayReport]) -> Self {
        let mut counts = Self::default();
        for report in reports {
            *match report.comparison {
                Comparison::Same => &mut counts.same,
                Comparison::Changed { .. } => &mut counts.changed,
                Comparison::New => &mut counts.new,
                Comparison::Broken { .. } => &mut counts.broken,
            } += 1;
        }
        counts
    }

    /// The number of all attempts.
    pub(crate) fn total(&self) -> usize {
        self.same + self.changed + self.new + self.broken
    }
}
