//! Runs the project's checks: after a step, and before the first step of a run. Which checks they
//! are is read before the step, so that the step cannot change them.

use crate::attempt::{AttemptContext, AttemptResult};
use crate::contracts::ContractLookup;
use crate::run_start::{config_at, config_files};
use crate::slow_look::announce_if_slow;
use crate::verification::{SnapshotterPool, WorkFolder};
use counterfoil_contract::text::display_path;
use counterfoil_flow::{
    AttemptOutcome, CheckDefinition, CheckProgram, CheckReport, CheckStatus, ChecksWork, Ended,
    PlannedChecks, Usage,
};
use counterfoil_process::StopRequest;
use counterfoil_process::contain::Launcher;
use counterfoil_verify::claims::{
    Check, CheckCache, CheckCommand, CheckRun, CommitsBefore, StartWords, VerifyConfig,
    VerifyContext, run_check,
};
use counterfoil_verify::config::NOISE;
use counterfoil_verify::protect::WriteRules;
use counterfoil_verify::workspace_diff::WorkspaceDiff;
use counterfoil_workspace::snapshot::{Snapshot, Snapshotter};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Where checks run, and what they share with the attempts of the run.
#[derive(Clone)]
pub(crate) struct CheckPlace {
    /// The folder, and what does not count as a change of it.
    pub(crate) folder: WorkFolder,
    /// The snapshots of the run.
    pub(crate) snapshotters: Arc<SnapshotterPool>,
    /// The contracts of the run.
    pub(crate) contracts: Arc<ContractLookup>,
    /// Marks the processes of the checks.
    pub(crate) marker: String,
    /// How checks are contained.
    pub(crate) launcher: Launcher,
    /// Says whether files that a check changed are restored, because nobody may write there.
    pub(crate) restores: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// What is known of checks that were run.
    pub(crate) cache: Arc<CheckCache>,
    /// The repository when the run began.
    pub(crate) run_start: Option<Snapshot>,
    /// What the step before the checks may write. A check may write anything but protected files.
    pub(crate) rules: Option<Arc<WriteRules>>,
}

/// Reads how some checks are configured in a folder; all of them, if no name is given. It blocks.
pub(crate) fn plan(
    start: Option<&Snapshot>,
    tree: &mut Snapshotter,
    names: Option<&[String]>,
) -> PlannedChecks {
    let ignored = tree.ignored(&config_files(tree));
    match config_at(start, tree, &ignored) {
        Ok(config) => planned(config, names),
        Err(error) => {
            PlannedChecks { problem: Some(error.to_string()), ..PlannedChecks::default() }
        }
    }
}

fn planned(config: VerifyConfig, names: Option<&[String]>) -> PlannedChecks {
    let definition = |check: Check| CheckDefinition {
        run: match check.run {
            CheckCommand::Shell(line) => CheckProgram::Line(line),
            CheckCommand::Argv(argv) => CheckProgram::Argv(argv),
        },
        timeout_ms: u64::try_from(check.timeout.as_millis()).unwrap_or(u64::MAX),
        report: check.report,
    };
    let wanted = |name: &String| names.is_none_or(|names| names.contains(name));
    let checks = config.checks.into_iter().filter(|(name, _)| wanted(name));
    PlannedChecks {
        checks: checks.map(|(name, check)| (name, definition(check))).collect(),
        noise: config.noise.into_iter().filter(|glob| !NOISE.contains(&glob.as_str())).collect(),
        problem: None,
    }
}

fn check_of(definition: &CheckDefinition) -> Check {
    Check {
        run: match &definition.run {
            CheckProgram::Line(line) => CheckCommand::Shell(line.clone()),
            CheckProgram::Argv(argv) => CheckCommand::Argv(argv.clone()),
        },
        timeout: Duration::from_millis(definition.timeout_ms),
        report: definition.report.clone(),
        // The person who configures a check decides what it may see.
        scrubbed: None,
    }
}

/// Runs the checks of a step to their end.
pub(crate) async fn run(
    attempt: String,
    work: ChecksWork,
    place: CheckPlace,
    context: Arc<dyn AttemptContext>,
) -> AttemptResult {
    let started = Instant::now();
    let heartbeat = |name: &str, line: &str| context.heartbeat(&format!("{name}: {line}"));
    let progress = CheckProgress { heartbeat: &heartbeat, notice: &|line| context.notice(line) };
    let ran = run_all(&work.names, work.planned, &place, context.stop(), &progress).await;
    let ended = match ran {
        Ok(Some(checks)) => Ended {
            checks,
            usage: Usage {
                wall_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                ..Usage::default()
            },
            ..Ended::new(&attempt, AttemptOutcome::Accepted)
        },
        Ok(None) => Ended {
            reason: "stopped".to_owned(),
            ..Ended::new(&attempt, AttemptOutcome::Cancelled)
        },
        Err(reason) => Ended { reason, ..Ended::new(&attempt, AttemptOutcome::Agent) },
    };
    AttemptResult::new(ended)
}

/// Who is told what checks are doing.
pub(crate) struct CheckProgress<'a> {
    /// Receives the name of a check and its command when it starts.
    pub(crate) heartbeat: &'a (dyn Fn(&str, &str) + Sync),
    /// Receives what the person who watches the run should know.
    pub(crate) notice: &'a (dyn Fn(&str) + Sync),
}

/// Runs checks one after the other: one report for each name. None if they were stopped.
pub(crate) async fn run_all(
    names: &[String],
    planned: Option<PlannedChecks>,
    place: &CheckPlace,
    stop: watch::Receiver<StopRequest>,
    progress: &CheckProgress<'_>,
) -> Result<Option<BTreeMap<String, CheckReport>>, String> {
    const PANICKED: &str = "reading the workspace failed";
    let (folder, pool, wanted) = (place.folder.clone(), place.snapshotters.clone(), names.to_vec());
    let start = place.run_start.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let mut tree = pool.take(&folder);
        let planned = planned.unwrap_or_else(|| plan(start.as_ref(), &mut tree, Some(&wanted)));
        // Nothing is run if nothing is configured, so nothing has to be observed.
        let before = (!planned.checks.is_empty()).then(|| tree.snapshot());
        (tree, before, planned)
    });
    let opened = announce_if_slow(opened, &place.folder.folder, progress.notice).await;
    let (tree, before, planned) = opened.map_err(|_| PANICKED.to_owned())?;
    let mut reports = BTreeMap::new();
    let mut tree = Some(tree);
    let mut view = before.and_then(|before| {
        let taken = before.taken;
        let diff = WorkspaceDiff::new(tree.take()?, before, Some(taken));
        Some(diff.with_run_start(place.run_start.clone(), place.folder.put_back_file()))
    });
    let mut stopped = false;
    for name in names {
        let report = match (&planned.problem, planned.checks.get(name), &mut view) {
            (Some(problem), ..) => CheckReport {
                status: CheckStatus::Failed,
                reason: format!("the checks cannot be read: {problem}"),
                ..CheckReport::default()
            },
            (None, Some(definition), Some(view)) => {
                let check = check_of(definition);
                (progress.heartbeat)(name, &check.run.to_string());
                match run_one(&check, &planned.noise, view, place, stop.clone()).await {
                    Some(mut report) => {
                        report.notes.extend(restore_protected(view, place));
                        report
                    }
                    None => {
                        stopped = true;
                        break;
                    }
                }
            }
            _ => CheckReport::default(),
        };
        reports.insert(name.clone(), report);
    }
    if let Some(view) = view.as_mut()
        && place.restores.as_ref().is_some_and(|restores| restores())
    {
        view.refresh();
        let changed: Vec<PathBuf> = view.last_changes().files.keys().cloned().collect();
        view.restore(&changed);
    }
    if let Some(tree) = tree.or_else(|| view.map(WorkspaceDiff::into_snapshotter)) {
        place.snapshotters.give_back(&place.folder.folder, tree);
    }
    Ok((!stopped).then_some(reports))
}

/// Restores the protected files that a check changed, and says so.
fn restore_protected(view: &mut WorkspaceDiff, place: &CheckPlace) -> Vec<String> {
    let Some(rules) = &place.rules else { return Vec::new() };
    view.refresh();
    let paths: Vec<PathBuf> =
        rules.protected(view.last_changes()).into_iter().map(|change| change.path).collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let failed = view.restore(&paths);
    view.refresh();
    let stuck = |path: &PathBuf| failed.iter().find(|(other, _)| other == path);
    let note = |path: &PathBuf| match stuck(path) {
        None => format!("it changed a protected file: {}; restored", display_path(path)),
        Some((_, why)) => {
            format!("it changed a protected file: {}; not restored: {why}", display_path(path))
        }
    };
    paths.iter().map(note).collect()
}

async fn run_one(
    check: &Check,
    noise: &[String],
    view: &mut WorkspaceDiff,
    place: &CheckPlace,
    stop: watch::Receiver<StopRequest>,
) -> Option<CheckReport> {
    let mut config = VerifyConfig::default();
    config.noise.extend(noise.iter().cloned());
    let (folder, top) = (view.folder().to_owned(), view.top().to_owned());
    let own_files = place.folder.published();
    let mut context = VerifyContext {
        folder: &folder,
        top: &top,
        view,
        config: &config,
        contracts: &*place.contracts,
        cache: Some(&place.cache),
        unrestored: &[],
        commits_before: &CommitsBefore::Unknown(String::new()),
        may_change: &|path| place.rules.as_ref().is_some_and(|rules| rules.names(path)),
        start: StartWords::RUN,
        stop,
        marker: place.marker.clone(),
        launcher: &place.launcher,
        own_files: &own_files,
        run_commands: true,
        since: "the check began",
        concurrent_writer: None,
    };
    run_check(check, &mut context).await.map(report)
}

fn report(run: CheckRun) -> CheckReport {
    let figures = run.figures.unwrap_or_default();
    CheckReport {
        status: if run.passed() { CheckStatus::Passed } else { CheckStatus::Failed },
        command: run.command,
        exit_code: run.exit_code,
        reason: run.reason,
        total: figures.total,
        passed: figures.passed,
        failed: figures.failed,
        skipped: figures.skipped,
        output: run.output,
        reused: run.reused,
        wall_ms: run.wall_ms,
        tree: run.tree,
        notes: run.notes,
    }
}
