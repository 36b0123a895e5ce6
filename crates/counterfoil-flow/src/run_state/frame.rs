//! Frames: machines in progress, with their state, variables and phase.

use super::workspace::Workspace;
use crate::event::{CheckReport, PlannedChecks, RejectedPart, Usage, is_verified_at_end};
use crate::fan_out::FanOut;
use crate::problem::Problem;
use crate::workflow::FailureKind;
use counterfoil_contract::claim::{ClaimPolicy, ClaimReport, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A machine in progress, or an item that runs an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The parent frame.
    pub parent: Option<String>,
    /// The machine that it runs.
    pub machine: String,
    /// The key of the item, if the frame runs an item of a fan-out.
    pub item: Option<String>,
    /// The current state.
    pub state: String,
    /// The previous state.
    pub from: String,
    /// The inputs.
    pub inputs: Map<String, Value>,
    /// The variables.
    pub variables: Map<String, Value>,
    /// The counters of limits; a counter for one key is named `limit[key]`.
    pub counters: BTreeMap<String, u64>,
    /// The number of retries of the step, by kind of failure.
    pub tries: BTreeMap<FailureKind, u32>,
    /// The number of interrupted attempts of this visit: lost with their process, or stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interrupted: u32,
    /// Why the last attempt of this visit was interrupted, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// The last conversation of this visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<PastConversation>,
    /// Repeated requests, by transition.
    pub requests: BTreeMap<String, Streak>,
    /// The hash of the work tree after the last attempt.
    pub tree: Option<String>,
    /// The verdicts on the claims of the last result of this visit, by claim; before decision rules
    /// 4, those of the last attempt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, ClaimVerdict>,
    /// The verdicts on the engine's claims about every end of an attempt: those of the last result
    /// of this visit, as far as they were not observed again since, at the end of another attempt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub end_claims: BTreeMap<String, ClaimVerdict>,
    /// The items that the last attempt in this state gave and that were rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedPart>,
    /// The checks of the state as they were configured when it was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_checks: Option<PlannedChecks>,
    /// The outcomes of the checks of the state, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<BTreeMap<String, CheckReport>>,
    /// The first attempt of this visit of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstAttempt>,
    /// The refuted claims of earlier steps that were not done again since, with the reasons, by
    /// step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub observed: BTreeMap<String, BTreeMap<String, String>>,
    /// Its own workspace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// The files that agents changed in this frame and its child frames.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub changed: BTreeSet<String>,
    /// The files that the agent of the current state changed in this visit; `None` if that could
    /// not be observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_changed: Option<BTreeSet<String>>,
    /// Whether the list of changed files is incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The reason of the transition into the current state.
    pub reason: String,
    /// The phase within the current state.
    pub phase: Phase,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The first attempt of a visit of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstAttempt {
    /// Its id.
    pub attempt: String,
    /// The workspace that it works in; the repository, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Why an attempt was interrupted, and what it left behind. The next attempt goes on from there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// The reason, as text.
    pub reason: String,
    /// Files that it changed, as far as known; of many, some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Whether it is known that it changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_nothing: bool,
    /// The workspace that it worked in; the repository, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// A conversation with a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastConversation {
    /// The id that the program gave it.
    pub id: String,
    /// The spec of the program.
    pub spec: String,
    /// What it used, as far as the run counted it.
    pub usage: Usage,
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// How the claim differs from the observation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Longer reasons are truncated.
const MAX_REASON: usize = 2000;

impl ClaimVerdict {
    /// The verdicts of reports by claim; of two reports on one claim, the worse one.
    pub(crate) fn from_reports<'r>(
        reports: impl IntoIterator<Item = &'r ClaimReport>,
    ) -> BTreeMap<String, Self> {
        let mut verdicts = BTreeMap::new();
        Self::add_reports(&mut verdicts, reports);
        verdicts
    }

    /// Adds the verdicts of reports; of two on one claim, the worse one stays.
    fn add_reports<'r>(
        verdicts: &mut BTreeMap<String, Self>,
        reports: impl IntoIterator<Item = &'r ClaimReport>,
    ) {
        let reports = reports.into_iter();
        for report in reports.filter(|report| report.policy != ClaimPolicy::Ignore) {
            let known = verdicts.get(&report.claim).map(|known| severity(known.verdict));
            if known.is_none_or(|known| severity(report.verdict) > known) {
                let reason = report.reason.chars().take(MAX_REASON).collect();
                verdicts.insert(report.claim.clone(), Self { verdict: report.verdict, reason });
            }
        }
    }
}

fn severity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Verified => 0,
        Verdict::Unverifiable => 1,
        Verdict::Stale => 2,
        Verdict::Refuted => 3,
    }
}

impl Frame {
    /// The verdicts of this visit of the current state, by claim. A field may have the name of a claim
    /// of the engine: the worse verdict counts.
    pub fn verdicts(&self) -> BTreeMap<&str, &ClaimVerdict> {
        let mut verdicts: BTreeMap<&str, &ClaimVerdict> = BTreeMap::new();
        for (claim, one) in self.claims.iter().chain(&self.end_claims) {
            let known = verdicts.entry(claim).or_insert(one);
            if severity(one.verdict) > severity(known.verdict) {
                *known = one;
            }
        }
        verdicts
    }

    /// The refuted claims of this visit of the current state, with the reasons.
    pub(super) fn refuted(&self) -> BTreeMap<String, String> {
        let verdicts = self.verdicts().into_iter();
        let refuted = verdicts.filter(|(_, one)| one.verdict == Verdict::Refuted);
        refuted.map(|(claim, one)| (claim.to_owned(), one.reason.clone())).collect()
    }

    /// Takes the verdicts on a result.
    pub(super) fn result_verified(&mut self, reports: &[ClaimReport]) {
        let (at_end, of_result): (Vec<_>, Vec<_>) =
            reports.iter().partition(|report| is_verified_at_end(report));
        self.claims = ClaimVerdict::from_reports(of_result);
        self.end_claims = ClaimVerdict::from_reports(at_end);
    }

    /// Takes what the engine found at the end of an attempt without a result. It reports only what it
    /// does not confirm, so what was refuted before and is not reported again has been corrected, if
    /// the end `is_observed`.
    pub(super) fn ended_without_result(&mut self, reports: &[ClaimReport], is_observed: bool) {
        if is_observed {
            let is_unknown = |claim: &str| {
                reports
                    .iter()
                    .any(|report| report.claim == claim && report.verdict == Verdict::Unverifiable)
            };
            self.end_claims
                .retain(|claim, one| one.verdict == Verdict::Verified || is_unknown(claim));
        }
        ClaimVerdict::add_reports(&mut self.end_claims, reports);
    }

    /// A machine in its first state.
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
            interruption: None,
            conversation: None,
            requests: BTreeMap::new(),
            tree: None,
            claims: BTreeMap::new(),
            end_claims: BTreeMap::new(),
            rejected: Vec::new(),
            planned_checks: None,
            checks: None,
            first: None,
            observed: BTreeMap::new(),
            workspace: None,
            changed: BTreeSet::new(),
            step_changed: None,
            cut: false,
            reason: String::new(),
            phase: Phase::Entered { not_before: None, context: false },
        }
    }
}

/// A request that was repeated in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Streak {
    /// Identifies the request.
    pub what: String,
    /// The number of repetitions.
    pub times: u32,
}

/// The phase of a frame within its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The frame entered the state.
    Entered {
        /// The earliest start time of the step.
        not_before: Option<i64>,
        /// Whether the files that the step needs were checked.
        context: bool,
    },
    /// An attempt is in flight.
    Running {
        /// The id of the attempt.
        attempt: String,
    },
    /// Checks of the project are running: after the step, or before the first step of the run.
    Checking {
        /// The id of the attempt.
        attempt: String,
        /// Whether they run before the first step of the run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        base: bool,
        /// The result of the step, if it has returned one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    /// The frame waits for answers.
    Asking,
    /// Items are in progress.
    Fanned(FanOut),
    /// A sub-workflow is in progress.
    Called,
    /// The step returned a result.
    Resulted(Value),
    /// The step failed; an `on:` transition may handle it.
    #[serde(rename = "troubled")]
    Failed(Problem),
    /// The step failed in a way that no transition handles.
    Broken(String),
}

/// Joins the parts of a path with `/`; a `/` within a part is written `~1`.
pub(crate) fn join(path: &[String]) -> String {
    path.iter().map(|part| part.replace('~', "~0").replace('/', "~1")).collect::<Vec<_>>().join("/")
}

/// Splits a path into its parts.
pub(crate) fn split(path: &str) -> Vec<String> {
    if path.is_empty() {
        return Vec::new();
    }
    path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// The key under which the visits of a question are counted: its id without the trailing number.
/// The key of an item may contain a `#`, so only digits at the end are removed.
pub(crate) fn question_visits(id: &str) -> String {
    let number = |tail: &str| !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
    format!(
        "?{}",
        id.rsplit_once('#').filter(|(_, tail)| number(tail)).map_or(id, |(name, _)| name)
    )
}
