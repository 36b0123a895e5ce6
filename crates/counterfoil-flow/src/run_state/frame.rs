//! A machine at work: where it stands, what it remembers, what it is doing.

use super::workspace::Workspace;
use crate::fan_out::FanOut;
use crate::problem::Problem;
use crate::workflow::FailureKind;
use counterfoil_contract::{ClaimPolicy, ClaimReport, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A machine at work, or an item that runs an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The frame it belongs to.
    pub parent: Option<String>,
    /// The machine it runs.
    pub machine: String,
    /// The item it is, by key.
    pub item: Option<String>,
    /// Where it stands.
    pub state: String,
    /// Where it stood before.
    pub from: String,
    /// What it was given.
    pub inputs: Map<String, Value>,
    /// What it remembers.
    pub variables: Map<String, Value>,
    /// Its counters; one that is kept by a key is named `limit[key]`.
    pub counters: BTreeMap<String, u64>,
    /// How often the step was tried again, by trouble.
    pub tries: BTreeMap<FailureKind, u32>,
    /// How many attempts of this visit came to nothing: lost with their process, or stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interrupted: u32,
    /// What was asked for in a row, by transition.
    pub requests: BTreeMap<String, Streak>,
    /// The work tree as the last attempt left it.
    pub tree: Option<String>,
    /// What became of the claims of the last attempt in this state, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, ClaimVerdict>,
    /// The workspace of its own, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// The files that agents were seen to change in it and in those below it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub changed: BTreeSet<String>,
    /// Whether they changed more than is listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Why it came here.
    pub reason: String,
    /// What it is doing.
    pub phase: Phase,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How a claim stood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimVerdict {
    /// What became of it.
    pub verdict: Verdict,
    /// Where it differs from what was observed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// More of a reason is not kept.
const MAX_REASON: usize = 2000;

impl ClaimVerdict {
    /// What is kept of reports. Where two have one name, the one that stands worse counts.
    pub(crate) fn of(reports: &[ClaimReport]) -> BTreeMap<String, Self> {
        let mut stood: BTreeMap<String, Self> = BTreeMap::new();
        for report in reports.iter().filter(|report| report.policy != ClaimPolicy::Ignore) {
            let known = stood.get(&report.claim).map(|known| badness(known.verdict));
            if known.is_none_or(|known| badness(report.verdict) > known) {
                let reason = report.reason.chars().take(MAX_REASON).collect();
                stood.insert(report.claim.clone(), Self { verdict: report.verdict, reason });
            }
        }
        stood
    }
}

fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Verified => 0,
        Verdict::Unverifiable => 1,
        Verdict::Stale => 2,
        Verdict::Refuted => 3,
    }
}

impl Frame {
    /// A machine that comes into its first state.
    pub(crate) fn opened(
        machine: &str,
        state: &str,
        inputs: &Map<String, Value>,
        variables: &Map<String, Value>,
    ) -> Self {
        Self {
            parent: None,
            machine: machine.to_owned(),
            item: None,
            state: state.to_owned(),
            from: String::new(),
            inputs: inputs.clone(),
            variables: variables.clone(),
            counters: BTreeMap::new(),
            tries: BTreeMap::new(),
            interrupted: 0,
            requests: BTreeMap::new(),
            tree: None,
            claims: BTreeMap::new(),
            workspace: None,
            changed: BTreeSet::new(),
            cut: false,
            reason: String::new(),
            phase: Phase::Entered { not_before: None, context: false },
        }
    }
}

/// The same thing in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Streak {
    /// What.
    pub what: String,
    /// How often.
    pub times: u32,
}

/// What a frame is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It came into its state.
    Entered {
        /// The step must not start before this time.
        not_before: Option<i64>,
        /// The files it needs are there.
        context: bool,
    },
    /// An attempt is in flight.
    Running {
        /// Which.
        attempt: String,
    },
    /// Somebody is asked.
    Asking,
    /// Items are at work.
    Fanned(FanOut),
    /// A sub-workflow is at work.
    Called,
    /// The step gave a result.
    Resulted(Value),
    /// The step did not.
    #[serde(rename = "troubled")]
    Failed(Problem),
    /// The step failed in a way that nothing answers.
    Broken(String),
}

/// A path as one word; `/` inside a part is written `~1`.
pub(crate) fn join(path: &[String]) -> String {
    path.iter().map(|part| part.replace('~', "~0").replace('/', "~1")).collect::<Vec<_>>().join("/")
}

/// The parts of a path.
pub(crate) fn split(path: &str) -> Vec<String> {
    if path.is_empty() {
        return Vec::new();
    }
    path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// The name under which the visits of a question are counted. The key of an item may hold a `#` of
/// its own, and a state or a name stands behind it.
pub(crate) fn visit(id: &str) -> String {
    let number = |tail: &str| !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
    format!(
        "?{}",
        id.rsplit_once('#').filter(|(_, tail)| number(tail)).map_or(id, |(name, _)| name)
    )
}
