//! Runs a check a second time as it was when the run began, where a file that steers it has changed
//! since: its script, or the settings of a test runner or linter. Otherwise an agent could make a
//! check pass by weakening it. The change alone refutes nothing: the step may be about it.

use super::check::{CheckOutcome, CheckStatus, execute};
use super::format::{display_path, join_limited};
use super::state::VerificationState;
use super::{EarlierFile, VerifyContext};
use crate::check_files::{Scripts, StartVersion, may_steer, scripts, start_version};
use crate::config::Check;
use crate::read_file::read_file;
use std::path::{Component, Path, PathBuf};

/// Why a check is not run: a protected file that steers it was changed and could not be restored.
pub(super) fn unrestored_script(check: &Check, context: &mut VerifyContext<'_>) -> Option<String> {
    if context.unrestored.is_empty() {
        return None;
    }
    let scripts = scripts_of(check, context);
    let steering = |path: &&PathBuf| {
        let from_top = from_top(path, context);
        from_top.is_none_or(|path| may_steer(&path, &scripts))
    };
    let path = context.unrestored.iter().find(steering)?;
    Some(format!("{} was changed and could not be restored", display_path(path)))
}

/// Runs a check that passed once more with its files as they were when the run began, if any of them
/// changed. If it fails then, that is its outcome.
pub(super) async fn with_start_versions(
    check: &Check,
    mut outcome: CheckOutcome,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> CheckOutcome {
    if outcome.status != CheckStatus::Exited(0) {
        return outcome;
    }
    let not_run = |outcome: CheckOutcome, why: String| CheckOutcome {
        status: CheckStatus::CouldNotRun(why),
        ..outcome
    };
    let files = match changed_since_start(check, context) {
        Ok(files) if files.is_empty() => return outcome,
        Ok(files) => files,
        Err(why) => return not_run(outcome, why),
    };
    let names: Vec<String> = files.iter().map(|(path, _)| display_path(path)).collect();
    let names = join_limited(&names);
    if let Some(writer) = context.concurrent_writer {
        let why = format!(
            "{names} changed since the run began, and it cannot be put back for the check, since {writer}"
        );
        return not_run(outcome, why);
    }
    let Some(start) = context.view.run_start() else { return outcome };
    if let Err(why) = start.put_back(&files) {
        let why = format!("{names} changed since the run began, and cannot be put back: {why}");
        return not_run(outcome, why);
    }
    let again = execute(check, None, state, context).await;
    let stuck = context.view.run_start().map(super::RunStart::put_forward).unwrap_or_default();
    let mut notes: Vec<String> = stuck
        .into_iter()
        .map(|(path, why)| {
            let path = display_path(&path);
            format!(
                "{path} is as it was when the run began, and its change cannot be written: {why}"
            )
        })
        .collect();
    if again.status == CheckStatus::Exited(0) {
        notes.push(format!(
            "weakened check: {names} changed since the run began; it also passes as it was then"
        ));
        outcome.notes.append(&mut notes);
        return outcome;
    }
    notes.push(format!(
        "weakened check: {names} changed since the run began, and it passes only with the change; \
         a step that is to change it names it in `writes`"
    ));
    let mut again = CheckOutcome { put_back: Some(names), ..again };
    again.notes.append(&mut notes);
    again
}

/// The files that steer a check and changed since the run began, relative to the top, with the
/// content to put back where it is not simply the old one.
fn changed_since_start(
    check: &Check,
    context: &mut VerifyContext<'_>,
) -> Result<Vec<EarlierFile>, String> {
    if context.view.run_start().is_none() {
        return Ok(Vec::new());
    }
    let scripts = scripts_of(check, context);
    let Some(start) = context.view.run_start() else { return Ok(Vec::new()) };
    let changed = start.changed().map_err(|error| error.reason)?;
    let mut files = Vec::new();
    for path in changed.into_iter().filter(|path| may_steer(path, &scripts)) {
        if (context.may_change)(&from_folder(&path, context.folder, context.top)) {
            continue;
        }
        let Some(start) = context.view.run_start() else { break };
        let name = display_path(&path);
        let before = start.content(&path).map_err(|error| {
            format!("{name} changed since the run began, and how it was cannot be read: {error}")
        })?;
        let now = read_file(&context.top.join(&path)).map_err(|error| {
            format!("{name} changed since the run began, and it cannot be read: {error}")
        })?;
        match start_version(&path, &scripts, before.as_deref(), now.as_deref()) {
            StartVersion::Same => {}
            StartVersion::Whole => files.push((path, None)),
            StartVersion::Merged(bytes) => files.push((path, Some(bytes))),
        }
    }
    Ok(files)
}

/// The scripts of a check, as they were when the run began.
fn scripts_of(check: &Check, context: &mut VerifyContext<'_>) -> Scripts {
    let here = context.folder.strip_prefix(context.top).unwrap_or(Path::new("")).to_owned();
    let top = context.top.to_owned();
    let mut start = context.view.run_start();
    let mut read = |path: &Path| {
        Ok(match &mut start {
            Some(start) => start.content(path).ok().flatten(),
            None => read_file(&top.join(path)).ok().flatten(),
        })
    };
    scripts(&check.run, &here, &mut read).unwrap_or_default()
}

/// A path relative to the folder as one relative to the top.
fn from_top(path: &Path, context: &VerifyContext<'_>) -> Option<PathBuf> {
    let mut at = context.folder.to_owned();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                at.pop();
            }
            part => at.push(part),
        }
    }
    at.strip_prefix(context.top).ok().map(Path::to_owned)
}

/// A path relative to the top as one relative to the folder.
fn from_folder(path: &Path, folder: &Path, top: &Path) -> PathBuf {
    let here = folder.strip_prefix(top).unwrap_or(Path::new(""));
    let common = here.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = here.components().skip(common).map(|_| Component::ParentDir);
    up.chain(path.components().skip(common)).collect()
}
