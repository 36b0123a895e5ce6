//! Runs a check in the workspace: in its own process tree, without input, with limits on time and
//! output. Processes that it leaves behind are killed.

use super::allow;
use super::cache::CachedOutcome;
use super::capture::OutputCapture;
use super::excerpt::{Focus, MAX_EXCERPT_BYTES, excerpt};
use super::idle::{self, SaidIdle};
use super::probe;
use super::rerun;
use super::runner::Unfinished;
use super::state::VerificationState;
use super::{Figures, VerifyContext};
use crate::config::{Check, CheckCommand};
use counterfoil_contract::claim::Evidence;
use counterfoil_contract::text::duration;
use counterfoil_process::contain::SetupFailure;
use counterfoil_process::{Cause, ChildSpec, Environment, Exit, SpawnError, Timeouts, supervise};
use counterfoil_workspace::snapshot::Changes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// The exit codes of a shell for a program that cannot be executed and for one that does not exist.
const NOT_RUN_EXIT_CODES: [i32; 2] = [126, 127];

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckStatus {
    /// It exited with this code.
    Exited(i32),
    /// It exceeded this time limit.
    TimedOut(Duration),
    /// It could not be run, for this reason.
    CouldNotRun(String),
    /// It exited with 0, but it did not run what it counts on, for this reason.
    Idle(String),
    /// It exited with 0, but it did not end as a run of its test runner does.
    Unfinished(Unfinished),
    /// It was stopped on request.
    Stopped,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckOutcome {
    /// The command as text.
    pub(super) line: String,
    pub(super) status: CheckStatus,
    /// The end of its output.
    pub(super) tail: String,
    /// What failed in its output, and then the end.
    pub(super) excerpt: String,
    pub(super) figures: Option<Figures>,
    /// Why a success says nothing of tests, if it counted them and none passed.
    pub(super) without_pass: Option<String>,
    pub(super) wall_ms: u64,
    /// Whether the outcome comes from the cache: the check was run before on the same tree.
    pub(super) from_cache: bool,
    /// The files that it changed; none if it left the tree unchanged.
    pub(super) changed: Option<Vec<String>>,
    /// Remarks, such as a report that cannot be read.
    pub(super) notes: Vec<String>,
    /// The files that were put back to the start of the run for this outcome, as text.
    pub(super) put_back: Option<String>,
    /// The files without whose changes since the start of the run it passes, as text.
    pub(super) fails_only_with: Option<String>,
    /// How to allow the change, if the outcome depends on it.
    pub(super) way_out: Option<String>,
    /// What make said that it has nothing to do for.
    pub(super) said_idle: Vec<SaidIdle>,
}

impl CheckOutcome {
    /// An outcome without output.
    fn empty(check: &Check, status: CheckStatus) -> Self {
        Self {
            line: check.run.to_string(),
            status,
            tail: String::new(),
            excerpt: String::new(),
            figures: None,
            without_pass: None,
            wall_ms: 0,
            from_cache: false,
            changed: None,
            notes: Vec::new(),
            put_back: None,
            fails_only_with: None,
            way_out: None,
            said_idle: Vec::new(),
        }
    }

    /// How the check exited, as text after "it".
    pub(super) fn exited(&self, code: i32) -> String {
        match &self.put_back {
            None => format!("exited with {code}"),
            Some(files) => format!("exited with {code} with {files}"),
        }
    }

    /// How the check failed, as text after "it", and how to allow the change that it may need. One that
    /// fails with the change does not need it.
    pub(super) fn failed(&self, code: i32) -> String {
        let reason = self.exited(code);
        if self.put_back.is_some() { self.with_way_out(reason) } else { reason }
    }

    /// A reason, and how to allow the change that it is about.
    pub(super) fn with_way_out(&self, reason: String) -> String {
        match &self.way_out {
            None => reason,
            Some(way_out) => format!("{reason}; {way_out}"),
        }
    }

    /// The outcome as evidence for a claim report.
    pub(super) fn evidence(&self) -> Evidence {
        let status = match &self.status {
            CheckStatus::Exited(code) => format!("`{}` {}", self.line, self.exited(*code)),
            CheckStatus::TimedOut(after) => {
                format!("`{}` took longer than {}", self.line, duration(*after))
            }
            CheckStatus::CouldNotRun(why) => format!("`{}` could not be run: {why}", self.line),
            CheckStatus::Idle(why) => idle_text(&self.line, why),
            CheckStatus::Unfinished(how) => how.text(&self.line),
            CheckStatus::Stopped => format!("`{}` was stopped", self.line),
        };
        let took = match (&self.status, self.from_cache) {
            (CheckStatus::Exited(_), true) => " (run before on the same tree)".to_owned(),
            (CheckStatus::Exited(_), false) => {
                format!(" after {}", duration(Duration::from_millis(self.wall_ms)))
            }
            _ => String::new(),
        };
        let figures = self
            .figures
            .map(|figures| format!("; tests: {}", figures.to_text()))
            .unwrap_or_default();
        Evidence {
            command: self.line.clone(),
            exit_code: match self.status {
                CheckStatus::Exited(code) => Some(code),
                _ => None,
            },
            output: self.tail.clone(),
            ..Evidence::new("command", format!("{status}{took}{figures}"))
        }
    }
}

/// That a check exited with 0 and says nothing.
pub(super) fn idle_text(line: &str, why: &str) -> String {
    format!("`{line}` exited with 0, but {why}")
}

/// Runs a check, or returns its outcome if it was run before on the same tree. Claims of one result
/// that name the same check share one run, unless the check changed the tree.
pub(super) async fn run(
    check: &Check,
    state: &mut VerificationState,
    context: &mut VerifyContext<'_>,
) -> CheckOutcome {
    // An earlier check may have changed the tree. The current tree counts.
    let tree = context.view.tree_id();
    state.tree_id.clone_from(&tree);
    let same =
        |(other, on, _): &&(Check, Option<String>, CheckOutcome)| other == check && *on == tree;
    if let Some((.., outcome)) = state.finished_checks.iter().find(same) {
        return outcome.clone();
    }
    let outcome = run_on_tree(tree.clone(), check, state, context).await;
    if outcome.status != CheckStatus::Stopped && outcome.changed.is_none() {
        state.finished_checks.push((check.clone(), tree, outcome.clone()));
    }
    outcome
}

async fn run_on_tree(
    tree: Option<String>,
    check: &Check,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> CheckOutcome {
    let not_run = |why: String| CheckOutcome::empty(check, CheckStatus::CouldNotRun(why));
    if !context.run_commands {
        return not_run("commands are disabled".to_owned());
    }
    if let Some(why) = rerun::unrestored_script(check, state, context) {
        return not_run(why);
    }
    let cached = context.cache.zip(tree.as_deref());
    if let Some(cached) = cached.and_then(|(cache, tree)| cache.get(check, context.folder, tree)) {
        return CheckOutcome {
            excerpt: cached.excerpt,
            tail: cached.tail,
            figures: cached.figures,
            without_pass: cached.without_pass,
            wall_ms: cached.wall_ms,
            notes: cached.notes,
            put_back: cached.put_back,
            fails_only_with: cached.fails_only_with,
            way_out: cached.way_out,
            from_cache: true,
            ..CheckOutcome::empty(check, CheckStatus::Exited(cached.exit_code))
        };
    }
    let before = context.view.changes().cloned();
    let start = rerun::start_scripts(check, context);
    // A run of the check may make what keeps the next one from running anything.
    let mut idle = match &start {
        Ok(start) => idle::idle_targets(start, state, context),
        Err(_) => Vec::new(),
    };
    let at_start = rerun::run_at_start(check, start, state, context).await;
    let before = before.as_ref().ok();
    let written_before = before.map(|before| identities(before, state)).unwrap_or_default();
    let mut outcome = execute(check, before, state, context).await;
    let after = context.view.tree_id();
    let said = std::mem::take(&mut outcome.said_idle);
    let mut outcome = rerun::combine(outcome, at_start, context.start);
    if idle.is_empty() {
        idle = idle::said_idle(said, state, context);
    }
    if outcome.status == CheckStatus::Exited(0) && !idle.is_empty() {
        outcome.status = CheckStatus::Idle(idle::reason(&idle));
    }
    if tree != after {
        outcome.changed =
            changed_files(before, context.view.changes().ok(), &written_before, state);
    }
    if let (CheckStatus::Exited(code), Some((cache, tree)), None) =
        (&outcome.status, context.cache.zip(tree.as_deref()), &outcome.changed)
    {
        let cached = CachedOutcome {
            exit_code: *code,
            tail: outcome.tail.clone(),
            figures: outcome.figures,
            without_pass: outcome.without_pass.clone(),
            wall_ms: outcome.wall_ms,
            excerpt: outcome.excerpt.clone(),
            notes: outcome.notes.clone(),
            put_back: outcome.put_back.clone(),
            fails_only_with: outcome.fails_only_with.clone(),
            way_out: outcome.way_out.clone(),
        };
        cache.put(check, context.folder, tree, cached);
    }
    outcome
}

/// Runs the command of a check, whatever is known of it.
pub(super) async fn execute(
    check: &Check,
    before: Option<&Changes>,
    state: &VerificationState,
    context: &VerifyContext<'_>,
) -> CheckOutcome {
    let mut capture = OutputCapture::default();
    let argv = check.run.argv().into_iter().map(Into::into).collect();
    let argv = match context.launcher.argv(argv, context.folder) {
        Ok(argv) => argv,
        Err(error) => {
            let status = CheckStatus::CouldNotRun(error.to_string());
            return CheckOutcome::empty(check, status);
        }
    };
    let spawn = ChildSpec {
        argv,
        cwd: context.folder.to_owned(),
        environment: match &check.scrubbed {
            Some(names) => {
                Environment::Only(allow::scrubbed_environment(names, std::env::vars_os()))
            }
            None => Environment::Inherit,
        },
        // No terminal is attached and nobody can answer a prompt.
        extra: [
            ("NO_COLOR", "1"),
            ("TERM", "dumb"),
            ("CARGO_TERM_COLOR", "never"),
            ("GIT_TERMINAL_PROMPT", "0"),
            // Python reads and writes compiled files there. An agent can write one that does not come
            // from its source, in a folder that git ignores.
            ("PYTHONPYCACHEPREFIX", "/dev/null"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into(),
        stdin: Vec::new(),
        marker: context.marker.clone(),
        timeouts: Timeouts { total: Some(check.timeout), ..Timeouts::default() },
    };
    let report_before = check.report.as_ref().map(|report| report_identity(report, state));
    let ended = supervise(spawn, &mut capture, context.stop.clone()).await;
    let mut outcome =
        CheckOutcome { tail: capture.tail(), ..CheckOutcome::empty(check, CheckStatus::Stopped) };
    match ended {
        Ok(ended) => {
            outcome.wall_ms = u64::try_from(ended.wall.as_millis()).unwrap_or(u64::MAX);
            outcome.status = status_of_end(ended.cause, ended.exit, check.timeout);
            if ended.left_behind > 0 {
                let left = counterfoil_contract::text::pluralize(ended.left_behind, "process");
                outcome.notes.push(format!("it left {left} running, and they were killed"));
            }
        }
        Err(error) => {
            outcome.status = status_of_spawn_error(&error, check, before, state);
        }
    }
    if let CheckStatus::Exited(code) = outcome.status {
        match context.launcher.setup_failure(code, &capture.first_errors()) {
            Some(SetupFailure::Containment(why)) => {
                outcome.status = CheckStatus::CouldNotRun(format!("it cannot be contained: {why}"));
            }
            Some(SetupFailure::Program(_)) => outcome.status = CheckStatus::Exited(127),
            None => {}
        }
    }
    if let CheckStatus::Exited(code) = outcome.status
        && NOT_RUN_EXIT_CODES.contains(&code)
        && !is_changed_program(&check.run, before, state)
    {
        outcome.status = CheckStatus::CouldNotRun(match capture.last_line() {
            Some(last) => {
                format!(
                    "a program is missing or cannot be executed ({last}); install it or put it on PATH"
                )
            }
            None => "a program is missing or cannot be executed; install it or put it on PATH"
                .to_owned(),
        });
    }
    if outcome.status == CheckStatus::Exited(0)
        && let Some(how) = capture.unfinished(&check.run)
    {
        outcome.status = CheckStatus::Unfinished(how);
    }
    let focus = if outcome.status == CheckStatus::Exited(0) { Focus::End } else { Focus::Failures };
    outcome.excerpt = excerpt(&capture.output(), focus, MAX_EXCERPT_BYTES);
    outcome.figures = capture.figures(&check.run);
    let mut is_reported = false;
    outcome.said_idle = idle::find_said(&capture.output());
    if let (Some(report), Some(before)) = (&check.report, report_before) {
        match report_figures(report, before.as_ref(), state) {
            Ok(figures) => {
                outcome.figures = Some(figures);
                is_reported = true;
            }
            Err(why) => outcome.notes.push(format!(
                "its report {} cannot be used: {why}",
                super::format::display_text(report)
            )),
        }
    }
    let without_pass = outcome.figures.and_then(|figures| figures.without_pass());
    outcome.without_pass =
        without_pass.filter(|_| !capture.may_have_passes(&check.run, is_reported));
    outcome
}

fn status_of_end(cause: Cause, exit: Exit, timeout: Duration) -> CheckStatus {
    match (cause, exit) {
        (Cause::Stopped, _) => CheckStatus::Stopped,
        (Cause::Startup | Cause::Idle | Cause::Total, _) => CheckStatus::TimedOut(timeout),
        (Cause::Finished | Cause::Finishing | Cause::SinkStopped, Exit::Code(code)) => {
            CheckStatus::Exited(code)
        }
        (Cause::Finished | Cause::Finishing | Cause::SinkStopped, Exit::Signal(signal)) => {
            CheckStatus::Exited(128 + signal)
        }
    }
}

/// A missing program makes the check unusable, unless the step itself changed or removed the
/// program.
fn status_of_spawn_error(
    error: &SpawnError,
    check: &Check,
    changes: Option<&Changes>,
    state: &VerificationState,
) -> CheckStatus {
    let is_program_error = matches!(
        error,
        SpawnError::Missing { .. }
            | SpawnError::IsFolder { .. }
            | SpawnError::NotExecutable { .. }
            | SpawnError::NoInterpreter { .. }
    );
    if is_program_error && is_changed_program(&check.run, changes, state) {
        return CheckStatus::Exited(127);
    }
    CheckStatus::CouldNotRun(error.to_string())
}

/// Whether the program of a check is a file of the workspace that the step changed.
fn is_changed_program(
    run: &CheckCommand,
    changes: Option<&Changes>,
    state: &VerificationState,
) -> bool {
    let word = match run {
        CheckCommand::Shell(line) => shlex::split(line).and_then(|words| words.into_iter().next()),
        CheckCommand::Argv(argv) => argv.first().cloned(),
    };
    let Some(word) = word.filter(|word| word.contains('/')) else { return false };
    let super::path::ResolvedPath::Inside(path, _) = state.resolver.resolve(&word) else {
        return false;
    };
    changes.is_some_and(|changes| changes.files.contains_key(&path))
}

/// What tells whether a report was written: the file, and when its status last changed. A program
/// cannot set that time.
fn report_identity(report: &str, state: &VerificationState) -> Option<(u64, u64, i64, i64)> {
    let super::path::ResolvedPath::Inside(path, _) = state.resolver.resolve(report) else {
        return None;
    };
    super::probe::status_identity(&state.resolver, &path)
}

/// The figures of a report that the check wrote.
fn report_figures(
    report: &str,
    before: Option<&(u64, u64, i64, i64)>,
    state: &VerificationState,
) -> Result<Figures, String> {
    let super::path::ResolvedPath::Inside(path, _) = state.resolver.resolve(report) else {
        return Err("it is outside of the workspace".to_owned());
    };
    let after = report_identity(report, state).ok_or("it does not exist")?;
    if before == Some(&after) {
        return Err("the check did not write it".to_owned());
    }
    Figures::from_report(&super::probe::read(&state.resolver, &path)?.bytes)
        .map_err(|error| error.to_string())
}

/// What is known of a file that changed before a check ran, to see whether it is written again.
type Identities = BTreeMap<PathBuf, Option<(u64, u64, i64, i64)>>;

/// The identities of the changed files that are not noise.
fn identities(changes: &Changes, state: &VerificationState) -> Identities {
    let paths = state.claimable(changes).map(|(path, _)| path);
    paths.map(|path| (path.to_owned(), probe::status_identity(&state.resolver, path))).collect()
}

/// The files that a check changed; none if only noise changed.
fn changed_files(
    before: Option<&Changes>,
    after: Option<&Changes>,
    written_before: &Identities,
    state: &VerificationState,
) -> Option<Vec<String>> {
    let (Some(before), Some(after)) = (before, after) else { return Some(Vec::new()) };
    let paths = before.files.keys().chain(after.files.keys());
    let differ = paths
        .filter(|path| before.files.get(*path) != after.files.get(*path))
        .filter(|path| !state.is_noise(path.as_path()));
    // Files that had changed before may have been changed again.
    let again = written_before
        .iter()
        .filter(|(path, was)| probe::status_identity(&state.resolver, path) != **was)
        .map(|(path, _)| path);
    let changed: BTreeSet<&PathBuf> = differ.chain(again).collect();
    let names: Vec<String> =
        changed.into_iter().map(|path| super::format::display_path(path)).collect();
    (!names.is_empty()).then_some(names)
}
