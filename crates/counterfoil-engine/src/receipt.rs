//! The receipt of a run: what was asked, what changed, every claim with its evidence, the checks as
//! they were run, the cost, and a chain of digests over the events of the journal.
//!
//! A receipt does not contain the events: they may hold secrets. It contains their hashes, each
//! covered by the next link of the chain, so that a receipt can be compared with its journal.

mod chain;

pub use chain::{ChainError, EventChain, Link, content_digest};

use crate::ledger::{self, Entry, Totals};
use crate::run_report::{Attempt, RunInterruption, RunReport, RunUndoing};
use counterfoil_contract::Definition;
use counterfoil_contract::claim::ClaimKind;
use counterfoil_flow::{
    AssignedAgent, AttemptOutcome, BuiltinStep, Cause, ChangedFiles, CheckReport, CheckStatus,
    RunState, Usage,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of the form of receipts.
pub const VERSION: u32 = 1;

/// The receipt of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Receipt {
    /// The version of its form.
    pub receipt: u32,
    /// The program that wrote it.
    pub made_by: String,
    /// The run's id.
    pub run: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The outcome of the run, as in its report.
    pub outcome: String,
    /// The cause of a failure.
    pub cause: Option<Cause>,
    /// The reason for the outcome, as text.
    pub reason: String,
    /// When the process that drove the run ended in the middle of a step, and who took the run up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupted: Vec<RunInterruption>,
    /// When and by whom files that the run changed were put back to what they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<RunUndoing>,
    /// When the run started, in milliseconds since 1970.
    pub started_at: i64,
    /// The time of its last event, in milliseconds since 1970.
    pub updated_at: i64,
    /// What was asked.
    pub asked: Asked,
    /// The steps that were taken.
    pub steps: Vec<ReceiptStep>,
    /// Every claim with its evidence.
    pub claims: Vec<Entry>,
    /// The number of claims by verdict.
    pub summary: Totals,
    /// The checks as they were run.
    pub checks: Vec<ReceiptCheck>,
    /// The commits that the run made.
    pub commits: Vec<ReceiptCommit>,
    /// What the steps of the run changed.
    pub changes: ReceiptChanges,
    /// What the run used.
    pub usage: Usage,
    /// What could not be included, and why.
    pub notes: Vec<String>,
    /// Whether secrets were redacted.
    pub redacted: bool,
    /// The digests of the events.
    pub journal: EventChain,
}

/// The receipt of a run as it is handed out: redacted, and with its digest and seal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SealedReceipt {
    /// The receipt, without secrets.
    #[serde(flatten)]
    #[schemars(with = "Receipt")]
    pub content: Map<String, Value>,
    /// The seal, made with the key of the journal; null without a key.
    pub seal: Option<String>,
    /// The SHA-256 digest of everything but itself and the seal.
    pub sha256: String,
}

/// What was asked of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Asked {
    /// The inputs, such as the task.
    pub inputs: Map<String, Value>,
    /// The programs that were assigned to the agents.
    pub agents: BTreeMap<String, AssignedAgent>,
    /// The commit at HEAD when the run started.
    pub base: Option<String>,
}

/// An attempt, a command or a built-in step of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReceiptStep {
    /// The path of the state.
    pub path: Vec<String>,
    /// The number of the attempt at this path, from 1.
    pub n: u32,
    /// The agent; none for commands and built-in steps.
    pub agent: Option<String>,
    /// The contract of the result.
    pub contract: Option<String>,
    /// The outcome; none while the attempt runs.
    #[schemars(with = "Option<AttemptOutcome>")]
    pub outcome: Option<String>,
    /// The reason for the outcome, as text.
    pub reason: String,
    /// How many repairs were requested.
    pub repairs_asked: u32,
    /// The result.
    pub value: Option<Value>,
    /// The files that it changed.
    pub changed: Option<ChangedFiles>,
    /// The hashes of the transcripts of its replies.
    pub transcripts: Vec<String>,
    /// What it used.
    pub usage: Usage,
    /// When it started, in milliseconds since 1970.
    pub started_at: i64,
}

/// A check that was run in a step, or that a claim names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptCheck {
    /// Its name in the configuration of the project; the command itself for one without a name.
    pub name: String,
    /// Where it was run: the path of a step, or of the step whose result makes the claim.
    pub path: Vec<String>,
    /// The claim that names it; none for the check of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The outcome.
    #[serde(flatten)]
    pub report: CheckReport,
}

/// A commit that a run made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReceiptCommit {
    /// Its hash.
    pub commit: String,
    /// Its subject line.
    pub subject: String,
    /// The diff; empty if it could not be read.
    pub diff: String,
}

/// What a run changed.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ReceiptChanges {
    /// The files that the steps of the run changed, as they were observed.
    pub files: Vec<String>,
    /// The differences, from before the first to after the last of these changes; empty if none is
    /// recorded. A file that something else changed in between has several.
    pub diff: String,
}

impl Receipt {
    /// The receipt of a run, without the diffs. `definitions` are the contracts of the run, by
    /// `id@version`.
    pub fn new(
        report: &RunReport,
        run_state: &RunState,
        claims: Vec<Entry>,
        definitions: &BTreeMap<String, Definition>,
        journal: EventChain,
    ) -> Self {
        let mut steps: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
        steps.sort_by_key(|attempt| attempt.started_at);
        let step_checks = steps.iter().flat_map(|attempt| {
            attempt.checks.iter().map(|(name, report)| ReceiptCheck {
                name: name.clone(),
                path: attempt.path.clone(),
                claim: None,
                report: report.clone(),
            })
        });
        let claim_checks = claims.iter().filter_map(|entry| claim_check(entry, definitions));
        Self {
            receipt: VERSION,
            made_by: format!("counterfoil {}", env!("CARGO_PKG_VERSION")),
            run: report.run.clone(),
            workflow: report.workflow.clone(),
            outcome: report.outcome.clone(),
            cause: report.cause,
            reason: report.reason.clone(),
            interrupted: report.interrupted.clone(),
            undone: report.undone.clone(),
            started_at: report.started_at,
            updated_at: report.updated_at,
            asked: Asked {
                inputs: run_state.inputs.clone(),
                agents: run_state.agents.clone(),
                base: run_state.base.clone(),
            },
            checks: step_checks.chain(claim_checks).collect(),
            commits: steps.iter().filter_map(|attempt| commit_of(attempt)).collect(),
            changes: ReceiptChanges { files: changed_files(&steps), diff: String::new() },
            steps: steps.into_iter().map(step).collect(),
            summary: ledger::totals(&claims),
            claims,
            usage: report.usage,
            notes: Vec::new(),
            redacted: false,
            journal,
        }
    }
}

fn step(attempt: &Attempt) -> ReceiptStep {
    ReceiptStep {
        path: attempt.path.clone(),
        n: attempt.n,
        agent: attempt.agent.clone(),
        contract: attempt.contract.clone(),
        outcome: attempt.outcome.clone(),
        reason: attempt.reason.clone(),
        repairs_asked: attempt.repairs_asked,
        value: attempt.value.clone(),
        changed: attempt.changed.clone(),
        transcripts: attempt.replies.iter().map(|reply| reply.sha256.clone()).collect(),
        usage: attempt.usage,
        started_at: attempt.started_at,
    }
}

fn commit_of(attempt: &Attempt) -> Option<ReceiptCommit> {
    let Some(BuiltinStep::Commit(subject)) = &attempt.builtin else { return None };
    let commit = attempt.value.as_ref()?.get("commit")?.as_str().filter(|hash| !hash.is_empty())?;
    Some(ReceiptCommit { commit: commit.to_owned(), subject: subject.clone(), diff: String::new() })
}

/// The files that attempts changed, as they were observed.
pub(crate) fn changed_files(steps: &[&Attempt]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for changed in steps.iter().filter_map(|attempt| attempt.changed.as_ref()) {
        files
            .extend(changed.added.iter().chain(&changed.modified).chain(&changed.deleted).cloned());
        files.extend(changed.renamed.iter().flat_map(|(old, new)| [old.clone(), new.clone()]));
    }
    files.sort_unstable();
    files.dedup();
    files
}

/// The check that was run for a claim, as its evidence shows it.
fn claim_check(entry: &Entry, definitions: &BTreeMap<String, Definition>) -> Option<ReceiptCheck> {
    let made = &entry.claim;
    if made.kind != ClaimKind::Command {
        return None;
    }
    let evidence = made.evidence.iter().find(|evidence| evidence.kind == "command")?;
    let definition = definitions.get(entry.contract.as_deref()?)?;
    let claim = definition.claims.get(&made.field)?;
    let name = claim.check.clone().or_else(|| claim.run.clone())?;
    let report = CheckReport {
        status: match evidence.exit_code {
            Some(0) => CheckStatus::Passed,
            _ => CheckStatus::Failed,
        },
        // Journals of older versions have only the command that the claim itself names.
        command: match evidence.command.as_str() {
            "" => claim.run.clone().unwrap_or_default(),
            command => command.to_owned(),
        },
        exit_code: evidence.exit_code,
        reason: evidence.text.clone(),
        output: evidence.output.clone(),
        tree: made.tree.clone(),
        ..CheckReport::default()
    };
    Some(ReceiptCheck { name, path: entry.path.clone(), claim: Some(made.claim.clone()), report })
}
