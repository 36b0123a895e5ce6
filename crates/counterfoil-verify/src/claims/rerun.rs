//! Runs a check also as it was when the run began, where a file that steers it has changed
//! since: its script, or the settings of a test runner or linter. Otherwise an agent could make a
//! check pass, or fail, by changing it. The change alone refutes nothing: the step may be about it.
//! What the check says is taken from the run with the files of the start.

use super::check::{CheckOutcome, CheckStatus, execute};
use super::format::{display_path, join_limited};
use super::state::VerificationState;
use super::{EarlierFile, StartWords, VerifyContext};
use crate::check_files::{Scripts, StartVersion, may_steer, scripts, start_version};
use crate::config::Check;
use crate::read_file::read_file;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Why a check is not run: a protected file that steers it was changed and could not be restored.
pub(super) fn unrestored_script(
    check: &Check,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<String> {
    if context.unrestored.is_empty() {
        return None;
    }
    let changed = match changed_paths(context) {
        Ok(changed) => changed,
        Err(why) => return Some(why),
    };
    let scripts = match scripts_of(check, &changed, context) {
        Ok(scripts) => scripts,
        Err(why) => return Some(why),
    };
    let steering = |path: &&PathBuf| {
        let from_top = state.resolver.relative_to_top(path);
        from_top.is_none_or(|path| may_steer(&path, &scripts))
    };
    let path = context.unrestored.iter().find(steering)?;
    Some(format!("{} was changed and could not be restored", display_path(path)))
}

/// What a check says with its files as they were when the run began.
pub(super) enum AtStart {
    /// None of its files changed.
    Unchanged,
    /// It could not be run so.
    NotRun(String),
    Ran {
        /// The files that changed.
        names: String,
        outcome: Box<CheckOutcome>,
        /// Files that could not be written again.
        notes: Vec<String>,
    },
}

/// What a check ran when the run began.
pub(super) struct StartScripts {
    /// The files that changed since, relative to the top.
    changed: HashSet<PathBuf>,
    pub(super) scripts: Result<Scripts, String>,
}

/// Finds what a check ran when the run began.
///
/// # Errors
///
/// What changed since is not known.
pub(super) fn start_scripts(
    check: &Check,
    context: &mut VerifyContext<'_>,
) -> Result<StartScripts, String> {
    let changed = changed_paths(context)?;
    let scripts = scripts_of(check, &changed, context);
    Ok(StartScripts { changed, scripts })
}

/// Runs a check with its files as they were when the run began, if any of them changed. It comes
/// before the run with the changes, which may leave something behind for it, such as build output.
pub(super) async fn run_at_start(
    check: &Check,
    start: Result<StartScripts, String>,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> AtStart {
    let files = match start.and_then(|start| changed_since_start(&start, state, context)) {
        Ok(files) if files.is_empty() => return AtStart::Unchanged,
        Ok(files) => files,
        Err(why) => return AtStart::NotRun(why),
    };
    let names: Vec<String> = files.iter().map(|(path, _)| display_path(path)).collect();
    let names = join_limited(&names);
    let since = context.start.since;
    if let Some(writer) = context.concurrent_writer {
        return AtStart::NotRun(format!(
            "{names} changed since {since}, and it cannot be put back for the check, because {writer}"
        ));
    }
    let Some(start) = context.view.run_start() else { return AtStart::Unchanged };
    if let Err(why) = start.put_back(&files) {
        let why = format!("{names} changed since {since}, and cannot be put back: {why}");
        return AtStart::NotRun(why);
    }
    let outcome = Box::new(execute(check, None, state, context).await);
    let stuck = context.view.run_start().map(super::RunStart::put_forward).unwrap_or_default();
    let notes = stuck.into_iter().map(|(path, why)| {
        let path = display_path(&path);
        format!("{path} was put back for the check, and its change cannot be written: {why}")
    });
    AtStart::Ran { names, outcome, notes: notes.collect() }
}

/// The outcome of a check that was run with the changes, and before that without them. What it said
/// then counts, except that a check that fails now does not pass.
pub(super) fn combine(
    outcome: CheckOutcome,
    at_start: AtStart,
    words: StartWords<'_>,
) -> CheckOutcome {
    let code = match (&outcome.status, &at_start) {
        (CheckStatus::Exited(code), _) => *code,
        // It says nothing now. As it was then, it may fail.
        (CheckStatus::Unfinished(_), AtStart::Ran { outcome: then, .. }) => match then.status {
            CheckStatus::Exited(code) if code != 0 => 0,
            _ => return outcome,
        },
        _ => return outcome,
    };
    let (names, again, mut notes) = match at_start {
        AtStart::Unchanged => return outcome,
        AtStart::NotRun(why) => {
            return CheckOutcome { status: CheckStatus::CouldNotRun(why), ..outcome };
        }
        AtStart::Ran { names, outcome, notes } => (names, *outcome, notes),
    };
    let StartWords { since, as_then, way_out } = words;
    let passes = again.status == CheckStatus::Exited(0);
    notes.push(match (code, passes) {
        (0, true) => {
            format!("weakened check: {names} changed since {since}; it also passes as it was then")
        }
        (0, false) => {
            format!(
                "weakened check: {names} changed since {since}, and it passes only with the change"
            )
        }
        (_, true) => {
            format!(
                "changed check: {names} changed since {since}, and it fails only with the change"
            )
        }
        (_, false) => {
            format!("changed check: {names} changed since {since}; it also fails as it was then")
        }
    });
    let as_then = format!("{names} {as_then}");
    let mut outcome = if code != 0 && passes {
        CheckOutcome { figures: again.figures, fails_only_with: Some(as_then), ..outcome }
    } else {
        CheckOutcome { put_back: Some(as_then), ..again }
    };
    outcome.way_out = ((code == 0) != passes).then(|| way_out.to_owned());
    outcome.notes.append(&mut notes);
    outcome
}

/// The files that changed since the run began, relative to the top.
fn changed_paths(context: &mut VerifyContext<'_>) -> Result<HashSet<PathBuf>, String> {
    let Some(start) = context.view.run_start() else { return Ok(HashSet::new()) };
    start.changed().map(HashSet::from_iter).map_err(|error| error.reason)
}

/// The files that steer a check and changed since the run began, relative to the top, with the
/// content to put back where it is not simply the old one.
fn changed_since_start(
    start: &StartScripts,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Result<Vec<EarlierFile>, String> {
    if start.changed.is_empty() {
        return Ok(Vec::new());
    }
    let scripts = start.scripts.as_ref().map_err(Clone::clone)?;
    let replaced_by = |path: &Path| scripts.targets.replaced_by(path).map(Path::to_owned);
    let may_count = |path: &&PathBuf| may_steer(path, scripts) || replaced_by(path).is_some();
    let mut steering: Vec<PathBuf> = start.changed.iter().filter(may_count).cloned().collect();
    steering.sort();
    let (mut files, since) = (Vec::new(), context.start.since);
    // Whether there was something in the places of targets.
    let mut existed = BTreeMap::new();
    for path in steering {
        if (context.may_change)(&state.resolver.relative_to_folder(&path)) {
            continue;
        }
        let Some(start) = context.view.run_start() else { break };
        // What is new there is taken out, whatever it is: make would not run the recipe.
        if let Some(place) = replaced_by(&path)
            && !*existed.entry(place).or_insert_with_key(|place| start.existed(place))
        {
            files.push((path, None));
            continue;
        }
        if !may_steer(&path, scripts) {
            continue;
        }
        let name = display_path(&path);
        let before = start.content(&path).map_err(|error| {
            format!("{name} changed since {since}, and how it was cannot be read: {error}")
        })?;
        let now = read_file(&context.top.join(&path)).map_err(|error| {
            format!("{name} changed since {since}, and it cannot be read: {error}")
        })?;
        match start_version(&path, scripts, before.as_deref(), now.as_deref()) {
            StartVersion::Same => {}
            StartVersion::Whole => files.push((path, None)),
            StartVersion::Merged(bytes) => files.push((path, Some(bytes))),
        }
    }
    Ok(files)
}

/// The scripts of a check, as they were when the run began. A file that did not change since is read
/// where it is.
fn scripts_of(
    check: &Check,
    changed: &HashSet<PathBuf>,
    context: &mut VerifyContext<'_>,
) -> Result<Scripts, String> {
    let here = context.folder.strip_prefix(context.top).unwrap_or(Path::new("")).to_owned();
    let top = context.top.to_owned();
    let real_top = top.canonicalize().unwrap_or_else(|_| top.clone());
    let mut start = context.view.run_start();
    let mut read = |path: &Path| {
        let content = match &mut start {
            Some(start) if changed.contains(path) => start.content(path),
            _ => read_linked(&top.join(path), &real_top),
        };
        content.map_err(|error| error.to_string())
    };
    let mut found = scripts(&check.run, &here, &mut read)?;
    // What a link leads to is run as well.
    let real = found.files.iter().filter_map(|file| {
        let real = top.join(file).canonicalize().ok()?;
        real.strip_prefix(&real_top).ok().map(Path::to_owned)
    });
    let real: Vec<PathBuf> = real.collect();
    found.files.extend(real);
    Ok(found)
}

/// The content of a file, also behind a link inside of the repository; none if there is none.
fn read_linked(path: &Path, top: &Path) -> io::Result<Option<Vec<u8>>> {
    let read = match path.canonicalize() {
        Ok(real) if real.starts_with(top) => read_file(&real),
        _ => read_file(path),
    };
    match read {
        // A part of the path is a file.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        read => read,
    }
}
