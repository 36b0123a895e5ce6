//! The verifier of an attempt: it observes the workspace before and after, and verifies the claims
//! of the result. The rules for verdicts are in `claims`, `protect` and `inventory` of
//! `counterfoil-verify`.

mod backup;
mod elsewhere;
mod observation;

use crate::agent_attempt::{FinalObservation, Verifier};
use crate::contracts::ContractLookup;
use crate::run_start::RunStart;
use counterfoil_agents::agent::BoxFuture;
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{
    ClaimKind, ClaimPolicy, ClaimReport, EffectiveClaim, Evidence, Verdict,
};
use counterfoil_contract::text::{display_path, join_limited};
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::StopRequest;
use counterfoil_process::contain::Launcher;
use counterfoil_verify::claims::{self, CheckCache, StartWords, VerifyConfig, VerifyContext};
use counterfoil_verify::inventory;
use counterfoil_verify::protect::{self, WriteRules};
use counterfoil_workspace::workspaces::{readable_name, run_name};
use elsewhere::Elsewhere;
pub(crate) use elsewhere::KnownWork;
use observation::WorkspaceObservation;
pub(crate) use observation::{SnapshotterPool, WorkFolder};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;

/// The maximum number of paths that a piece of evidence lists.
const MAX_LISTED: usize = 20;

/// What to verify for an attempt, and where.
pub(crate) struct AttemptScope {
    /// The folder of the workspace, and what does not count as a change of it.
    pub(crate) folder: WorkFolder,
    /// Identifies the attempt among all runs. The processes of checks are tagged with it.
    pub(crate) marker: String,
    /// How checks are contained.
    pub(crate) launcher: Launcher,
    /// The first attempt of this visit of the step. Changes are compared with the workspace before
    /// that one.
    pub(crate) first: String,
    /// The contract of the result.
    pub(crate) contract: Arc<Contract>,
    /// The claims that the result makes.
    pub(crate) claims: Vec<EffectiveClaim>,
    /// The files that the attempt may write.
    pub(crate) rules: WriteRules,
    /// The policy for writes to other files.
    pub(crate) protection: ClaimPolicy,
    /// The policy for removed tests.
    pub(crate) tests: ClaimPolicy,
    /// Finds contracts by id, for claims about artifacts.
    pub(crate) contracts: Arc<ContractLookup>,
    /// Describes who else has written in the workspace since a time, if anybody did.
    pub(crate) concurrent_writer: Box<dyn Fn(SystemTime) -> Option<String> + Send + Sync>,
    /// The signal that stops running checks.
    pub(crate) stop: watch::Receiver<StopRequest>,
    /// What is known of checks that were run.
    pub(crate) cache: Arc<CheckCache>,
    /// The repository when the run began.
    pub(crate) run_start: Arc<RunStart>,
    /// The main work tree, if the attempt works in a worktree.
    pub(crate) main: Option<WorkFolder>,
    /// What the engine itself changed.
    pub(crate) known_work: Arc<KnownWork>,
}

impl AttemptScope {
    /// The run and the attempt.
    fn run_and_attempt(&self) -> (&str, &str) {
        self.marker.split_once('/').unwrap_or(("", &self.marker))
    }

    /// Whether the attempt is the first of this visit of the step.
    fn is_first(&self) -> bool {
        self.run_and_attempt().1 == self.first
    }

    /// The file with the snapshot before the first attempt.
    fn baseline(&self) -> PathBuf {
        baseline_file(&self.folder.state, self.run_and_attempt().0, &self.first)
    }

    /// The file with the refs before the first attempt.
    fn refs_file(&self) -> PathBuf {
        let mut file = self.baseline().into_os_string();
        file.push(".refs");
        file.into()
    }

    /// The folder for backups of files that were overwritten when protected files were restored.
    fn backup_folder(&self) -> PathBuf {
        // Item keys come from agents: they must neither lead out of the folder nor be too long.
        let (run, attempt) = self.run_and_attempt();
        self.folder
            .state
            .join("set-aside")
            .join(run_name(run))
            .join(readable_name(attempt, &[run, attempt]))
    }
}

/// The folder with the snapshots of a run from before the first attempts of its steps.
pub(crate) fn baselines(state: &Path, run: &str) -> PathBuf {
    state.join("baselines").join(run_name(run))
}

/// The file with the snapshot from before the first attempt of a step.
pub(crate) fn baseline_file(state: &Path, run: &str, first: &str) -> PathBuf {
    baselines(state, run).join(readable_name(first, &[run, first]))
}

/// Verifies one attempt against its workspace.
pub(crate) struct WorkspaceVerifier {
    scope: Arc<AttemptScope>,
    snapshotters: Arc<SnapshotterPool>,
    /// `None` while a blocking thread works with it.
    observation: Option<WorkspaceObservation>,
    /// The main work tree, if the attempt works in a worktree.
    elsewhere: Option<Arc<Elsewhere>>,
}

impl WorkspaceVerifier {
    pub(crate) fn new(scope: AttemptScope, snapshotters: Arc<SnapshotterPool>) -> Self {
        Self { scope: Arc::new(scope), snapshotters, observation: None, elsewhere: None }
    }

    /// Observes the workspace again, on a thread that may block.
    async fn observe_again(&mut self, update: fn(&mut WorkspaceObservation, &AttemptScope)) {
        let Some(mut observation) = self.observation.take() else { return };
        let scope = self.scope.clone();
        let observed = tokio::task::spawn_blocking(move || {
            update(&mut observation, &scope);
            observation
        });
        self.observation = observed.await.ok();
    }

    /// Notes what happened outside of a worktree while the agent worked in it.
    async fn look_elsewhere(&mut self) {
        let Some(elsewhere) = self.elsewhere.clone() else { return };
        let Some(mut observation) = self.observation.take() else { return };
        let (scope, snapshotters) = (self.scope.clone(), self.snapshotters.clone());
        let looked = tokio::task::spawn_blocking(move || {
            observation.notes.extend(elsewhere.notes(&snapshotters, &scope.known_work));
            scope.known_work.left(&scope.folder.folder, observation.observed.last_snapshot());
            observation
        });
        self.observation = looked.await.ok();
    }

    /// The engine's own claims, which apply to every attempt.
    fn own_claims(&self, observation: &WorkspaceObservation) -> Vec<ClaimReport> {
        let scope = &self.scope;
        let mut reports = Vec::new();
        if scope.protection != ClaimPolicy::Ignore {
            // A protected file that cannot be restored would count in the steps that follow: it may
            // say which checks there are.
            let is_stuck =
                !observation.unrestored.is_empty() && observation.concurrent_writer.is_none();
            let policy = if is_stuck { ClaimPolicy::Require } else { scope.protection };
            // A repair answers for the new violations only; the other policies count all of them.
            let breaches = if policy == ClaimPolicy::Require {
                &observation.fresh
            } else {
                &observation.breaches
            };
            let some = !observation.observed.last_changes().files.is_empty();
            let mut report = protect::report(
                breaches,
                &observation.restored,
                &observation.unrestored,
                policy,
                some,
            );
            if !observation.by_checks.is_empty() {
                let paths = observation.by_checks.iter().map(|path| display_path(path));
                let changed =
                    format!("changed while a check ran: {}", join_limited(paths, MAX_LISTED));
                report.evidence.push(Evidence::new("note", changed));
            }
            if observation.has_backup && !breaches.is_empty() {
                let kept = format!(
                    "the previous content is kept in {}",
                    display_path(&scope.backup_folder())
                );
                report.evidence.push(Evidence::new("note", kept));
            }
            reports.push(report);
        }
        if scope.tests != ClaimPolicy::Ignore {
            reports.push(inventory::report(&observation.delta, scope.tests));
        }
        match observation.observed.unobservable_reason() {
            Some(why) => reports.into_iter().map(|report| unobservable(report, &why)).collect(),
            None => reports,
        }
    }
}

/// Replaces a verdict that rests on an observation which was not possible.
fn unobservable(report: ClaimReport, why: &str) -> ClaimReport {
    if report.verdict != Verdict::Verified {
        return report;
    }
    let reason = format!("the changes cannot be determined: {why}");
    ClaimReport { verdict: Verdict::Unverifiable, reason, evidence: Vec::new(), ..report }
}

/// What was verified about changed files does not hold any more if a check changed files, too: the
/// agent may have written what the check runs.
fn overtaken_by_checks(reports: &mut [ClaimReport]) {
    use ClaimKind::{
        Command, Commands, Complete, Count, FilesAdded, FilesChanged, FilesDeleted, FilesModified,
        FilesRenamed,
    };
    let is_stale = |report: &ClaimReport| {
        matches!(report.kind, Command | Commands | Count) && report.verdict == Verdict::Stale
    };
    let Some(check) = reports.iter().find(|report| is_stale(report)) else { return };
    let reason = format!("files changed after this was verified: {}", check.reason);
    let about_files =
        [FilesModified, FilesAdded, FilesDeleted, FilesRenamed, FilesChanged, Complete];
    for report in reports.iter_mut() {
        if report.verdict == Verdict::Verified && about_files.contains(&report.kind) {
            report.verdict = Verdict::Stale;
            report.reason.clone_from(&reason);
        }
    }
}

/// The report of a claim that could not be verified because observing the workspace failed. Such a
/// claim is always reported.
fn observation_failed(claim: &EffectiveClaim) -> ClaimReport {
    ClaimReport {
        claim: claim.name.clone(),
        field: claim.field.clone(),
        kind: claim.claim.kind,
        policy: claim.claim.policy,
        verdict: Verdict::Unverifiable,
        claimed: Value::Null,
        observed: Value::Null,
        reason: "observing the workspace failed".to_owned(),
        evidence: Vec::new(),
        tree: None,
    }
}

impl Verifier for WorkspaceVerifier {
    fn begin(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (scope, snapshotters) = (self.scope.clone(), self.snapshotters.clone());
            let begun = tokio::task::spawn_blocking(move || {
                let meanwhile = scope.known_work.changed_meanwhile(&scope.folder, &snapshotters);
                let mut observation = WorkspaceObservation::begin(&snapshotters, &scope);
                observation.notes.extend(meanwhile);
                let main = scope.main.clone();
                let elsewhere = main.map(|main| Arc::new(Elsewhere::begin(main, &snapshotters)));
                (observation, elsewhere)
            });
            if let Ok((observation, elsewhere)) = begun.await {
                (self.observation, self.elsewhere) = (Some(observation), elsewhere);
            }
        })
    }

    fn verify<'a>(&'a mut self, value: &'a Value) -> BoxFuture<'a, Vec<ClaimReport>> {
        Box::pin(async move {
            self.observe_again(WorkspaceObservation::update).await;
            let scope = self.scope.clone();
            scope.cache.clear();
            let Some(mut observation) = self.observation.take() else {
                return scope.claims.iter().map(observation_failed).collect();
            };
            let (folder, top) =
                (observation.observed.folder().to_owned(), observation.observed.top().to_owned());
            let config = observation.config.clone();
            let none = VerifyConfig::default();
            let concurrent_writer = observation.concurrent_writer.clone();
            let commits_before = observation.commits_before.clone();
            let ours = scope.folder.published();
            let unrestored: Vec<PathBuf> =
                observation.unrestored.iter().map(|(path, _)| path.clone()).collect();
            let mut context = VerifyContext {
                folder: &folder,
                top: &top,
                view: &mut observation.observed,
                config: config.as_ref().unwrap_or(&none),
                contracts: &*scope.contracts,
                cache: Some(&scope.cache),
                unrestored: &unrestored,
                may_change: &|path| scope.rules.names(path),
                start: StartWords::RUN,
                commits_before: &commits_before,
                stop: scope.stop.clone(),
                marker: scope.marker.clone(),
                launcher: &scope.launcher,
                own_files: &ours,
                run_commands: true,
                since: "the step began",
                concurrent_writer: concurrent_writer.as_deref(),
            };
            let mut reports =
                claims::verify(&scope.claims, &scope.contract, value, &mut context).await;
            if let Err(error) = &config {
                for report in
                    reports.iter_mut().filter(|report| report.verdict == Verdict::Unverifiable)
                {
                    report.evidence.push(Evidence::new("note", error.clone()));
                }
            }
            overtaken_by_checks(&mut reports);
            self.observation = Some(observation);
            if scope.claims.iter().any(claims::runs_command) {
                self.observe_again(WorkspaceObservation::update_after_checks).await;
            }
            match &self.observation {
                Some(observation) => reports.extend(self.own_claims(observation)),
                None => return scope.claims.iter().map(observation_failed).collect(),
            }
            reports
        })
    }

    fn finish(&mut self, outcome: AttemptOutcome) -> BoxFuture<'_, FinalObservation> {
        Box::pin(async move {
            // Then the last result was verified and nothing happened since.
            let verified = matches!(outcome, AttemptOutcome::Accepted | AttemptOutcome::Claim);
            if !verified {
                self.observe_again(WorkspaceObservation::update).await;
            }
            if outcome == AttemptOutcome::Accepted {
                self.observe_again(WorkspaceObservation::move_start).await;
            }
            self.observe_again(WorkspaceObservation::record_changes).await;
            self.look_elsewhere().await;
            let Some(observation) = self.observation.take() else {
                return FinalObservation::default();
            };
            let mut claims = if verified { Vec::new() } else { self.own_claims(&observation) };
            // Without a result, a verified claim confirms nothing.
            claims.retain(|claim| claim.verdict != Verdict::Verified);
            let last = FinalObservation {
                changed: Some(observation.changed()),
                tree: observation.observed.last_tree_id(),
                claims,
            };
            observation.end(&self.scope, &self.snapshotters);
            last
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_verify::inventory::TestDelta;
    use counterfoil_verify::protect::{ForbiddenChange, ForbiddenReason};
    use counterfoil_workspace::snapshot::Change;

    #[test]
    fn nothing_is_verified_without_an_observation() {
        let breach = ForbiddenChange {
            path: "AGENTS.md".into(),
            change: Change::Modified,
            reason: ForbiddenReason::Default("instructions"),
        };
        let protected = |breaches: &[ForbiddenChange]| {
            protect::report(breaches, &[], &[], ClaimPolicy::Record, !breaches.is_empty())
        };
        for (report, verdict) in [
            (protected(&[]), Verdict::Unverifiable),
            (inventory::report(&TestDelta::default(), ClaimPolicy::Record), Verdict::Unverifiable),
            // A refuted claim stays refuted.
            (protected(&[breach]), Verdict::Refuted),
        ] {
            let report = unobservable(report, "too many files");
            assert_eq!(report.verdict, verdict, "{report:?}");
            if verdict == Verdict::Unverifiable {
                assert_eq!(report.reason, "the changes cannot be determined: too many files");
                assert_eq!(report.evidence, []);
            }
        }
    }
}
