//! The command `counterfoil undo`.

use crate::cli::UndoArgs;
use crate::exit::Exit;
use crate::{output, person, render, report, state_folder};
use anyhow::{Result, anyhow, bail};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::{display_path, escape_control};
use counterfoil_engine::Engine;
use counterfoil_engine::lists::named;
use counterfoil_flow::Event;
use counterfoil_workspace::workspaces::{MergeRecord, MergeRecordState};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn run(args: &UndoArgs) -> Result<Exit> {
    person::require_outside_of_attempts("undo")?;
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let engine = state_folder::open_to_read(&state)?;
    let run = engine.journal().resolve(&args.run)?;
    if engine.journal().run(&run)?.driver.is_some_and(|driver| driver.live) {
        bail!(
            "run {run} is active and may merge more changes; cancel it first with `counterfoil cancel {run}`"
        );
    }
    let run_state = engine.run_state(&run)?;
    if run_state.ended.is_none() {
        bail!(
            "run {run} has not ended: it would be resumed without the work of its completed steps; \
             cancel it first with `counterfoil cancel {run}`"
        );
    }
    let repo = state_folder::repository_of_run(&args.location, &state, &run_state.repo)?;
    let workspaces = engine.workspaces(&repo);
    let foldings = workspaces.merge_records(&run);
    let chosen =
        match &args.workspace {
            Some(name) => {
                let steps = steps_of(&engine, &run, &foldings)?;
                Some(find_steps(name, &steps).map_err(|hint| {
                    anyhow!("run {run} has no recorded changes of '{name}'; {hint}")
                })?)
            }
            None => None,
        };
    let lost = match chosen {
        Some(_) => BTreeSet::new(),
        None => lost_files(&engine, &run, &foldings)?,
    };
    let chosen: Option<Vec<&str>> =
        chosen.as_ref().map(|ids| ids.iter().map(String::as_str).collect());
    let chosen = chosen.as_deref();
    let is_chosen = |id: &str| chosen.is_none_or(|ids| ids.contains(&id));
    let is_done = |folding: &MergeRecord| folding.state == MergeRecordState::Undone;
    if foldings.iter().all(|folding| is_done(folding) || !is_chosen(&folding.id)) {
        let shown = display_path(&repo);
        if !foldings.is_empty() {
            let mut text = format!("nothing to undo in {shown}: the changes were already undone\n");
            text.extend(note_of_lost(&lost));
            output::write_stderr(&text);
            return Ok(Exit::Success);
        }
        let files = report::run::files(&engine.report(&run)?);
        let mut paths = files.paths();
        paths.extend(lost.iter().cloned());
        let mut text = render::nothing_to_undo(&repo, &paths, files.more);
        text.extend(note_of_lost(&lost));
        output::write_stderr(&text);
        return Ok(paths.is_empty().into());
    }
    // Only now the journal is written: it records that the run was undone.
    let mut undone = state_folder::open(&state)?.undo(&run, chosen, &repo, person::current())?;
    if !lost.is_empty() {
        undone.notes.push(render::left_by_lost_attempts(&lost));
    }
    output::write_stderr(&render::undo(&undone));
    Ok(undone.changed_since.is_empty().into())
}

/// The files that lost attempts may have written, without those that undo restores.
fn lost_files(engine: &Engine, run: &str, records: &[MergeRecord]) -> Result<BTreeSet<String>> {
    let mut started = BTreeMap::new();
    let mut lost = BTreeSet::new();
    engine.each_event_of(run, &["attempt-started", "attempt-lost"], |event, at| match event {
        Event::AttemptStarted { attempt, .. } => {
            started.insert(attempt, at);
        }
        Event::AttemptLost { attempt, changed, .. } => {
            let began = started.get(&attempt).copied().unwrap_or(at);
            // What the attempt itself changed is recorded shortly before its end is. A worktree may
            // have been merged while it worked. What is recorded later was there before.
            let is_meanwhile =
                |record: &&MergeRecord| record.id == attempt || (began..=at).contains(&record.at);
            let restored: BTreeSet<&str> = records
                .iter()
                .filter(|record| record.state != MergeRecordState::Begun)
                .filter(is_meanwhile)
                .flat_map(|record| record.files.iter().map(|file| file.path.as_str()))
                .collect();
            lost.extend(changed.into_iter().filter(|path| !restored.contains(path.as_str())));
        }
        _ => {}
    })?;
    Ok(lost)
}

/// The note that names what lost attempts may have written, if there is anything.
fn note_of_lost(lost: &BTreeSet<String>) -> Option<String> {
    if lost.is_empty() {
        return None;
    }
    let note = render::left_by_lost_attempts(lost);
    Some(format!("note: {}; it is not known who wrote them\n", escape_control(&note)))
}

/// A visit of a step whose changes are recorded, as `show` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StepName {
    path: String,
    /// The number of the visit; of an item, of its worktree.
    visit: u32,
}

impl StepName {
    /// The name that an id has in it.
    fn of_id(id: &str) -> Self {
        let numbered = id.rsplit_once('#').and_then(|(path, n)| Some((path, n.parse().ok()?)));
        let (path, visit) = numbered.unwrap_or((id, 1));
        Self { path: path.to_owned(), visit }
    }
}

impl std::fmt::Display for StepName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.path, self.visit)
    }
}

/// The visits of steps to which the recorded changes belong, by the ids of the records. The id of an
/// attempt counts attempts over all visits, and that of a worktree counts worktrees.
fn steps_of(
    engine: &Engine,
    run: &str,
    records: &[MergeRecord],
) -> Result<BTreeMap<String, StepName>> {
    let report = engine.report(run)?;
    let attempts = report.attempts.iter().chain(&report.commands).map(|attempt| {
        let path = attempt.path.join("/");
        (format!("{path}#{}", attempt.n), StepName { path, visit: attempt.visit })
    });
    let attempts: BTreeMap<String, StepName> = attempts.collect();
    // A worktree of a state belongs to the visit of the first attempt in it.
    let mut worktrees: BTreeMap<String, StepName> = BTreeMap::new();
    let mut opened: BTreeMap<String, String> = BTreeMap::new();
    engine.each_event_of(
        run,
        &["workspace-opened", "attempt-started"],
        |event, _| match event {
            Event::WorkspaceOpened { frame, workspace, .. } => {
                worktrees.insert(workspace.clone(), StepName::of_id(&workspace));
                opened.insert(frame, workspace);
            }
            Event::AttemptStarted { frame, path, attempt, .. } => {
                if let (Some(id), Some(step)) = (opened.remove(&frame), attempts.get(&attempt))
                    && let Some(worktree) = worktrees.get_mut(&id)
                    && worktree.path == path.join("/")
                {
                    *worktree = step.clone();
                }
            }
            _ => {}
        },
    )?;
    let step = |id: &String| {
        let known = worktrees.get(id).or_else(|| attempts.get(id)).cloned();
        known.unwrap_or_else(|| StepName::of_id(id))
    };
    Ok(records.iter().map(|record| (record.id.clone(), step(&record.id))).collect())
}

/// Finds the recorded changes of a step, as `show` finds the step: by its path or an unambiguous part
/// of it, or by `PATH#VISIT`. The error is a hint.
fn find_steps(name: &str, known: &BTreeMap<String, StepName>) -> Result<Vec<String>, String> {
    let paths: BTreeSet<&str> = known.values().map(|step| step.path.as_str()).collect();
    if paths.is_empty() {
        return Err("it has none at all".to_owned());
    }
    let (path, visit) = match name.rsplit_once('#') {
        Some((path, visit)) if !paths.contains(name) => (path, visit.parse::<u32>().ok()),
        _ => (name, None),
    };
    let is_numbered = path != name;
    let found = match named(paths.iter().copied(), path).as_slice() {
        [] => Vec::new(),
        [path] => {
            let is_chosen =
                |step: &StepName| step.path == *path && (!is_numbered || visit == Some(step.visit));
            let chosen = known.iter().filter(|(_, step)| is_chosen(step));
            chosen.map(|(id, _)| id.clone()).collect()
        }
        several => {
            return Err(format!("it may be one of several: {}", several.join(", ")));
        }
    };
    if !found.is_empty() {
        return Ok(found);
    }
    let names: BTreeSet<String> = known.values().map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Err(did_you_mean(name, names.iter().copied())
        .unwrap_or_else(|| format!("available: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_changes_of_a_step_are_found_without_a_number_and_those_of_a_visit_with_it() {
        let step = |id: &str, name: &str| (id.to_owned(), StepName::of_id(name));
        // The second attempt of the first visit has the number 2, and the second visit 3.
        let known = BTreeMap::from([
            step("build/a#1", "build/a#1"),
            step("build/b#1", "build/b#1"),
            step("build/b#2", "build/b#1"),
            step("build/b#3", "build/b#2"),
            step("fix", "fix"),
        ]);
        for (name, expected) in [
            ("build/a#1", Ok(&["build/a#1"][..])),
            ("build/a", Ok(&["build/a#1"])),
            ("fix", Ok(&["fix"])),
            ("build/b#1", Ok(&["build/b#1", "build/b#2"])),
            ("build/b#2", Ok(&["build/b#3"])),
            ("b#2", Ok(&["build/b#3"])),
            ("build/b", Ok(&["build/b#1", "build/b#2", "build/b#3"])),
            ("build", Err("it may be one of several: build/a, build/b")),
            ("build/a#9", Err("did you mean 'build/a#1'?")),
            ("build/a#x", Err("did you mean 'build/a#1'?")),
            ("somewhere else", Err("available: build/a#1, build/b#1, build/b#2, fix#1")),
        ] {
            let expected =
                expected.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
            assert_eq!(find_steps(name, &known), expected.map_err(str::to_owned), "{name}");
        }
        assert_eq!(find_steps("a", &BTreeMap::new()), Err("it has none at all".to_owned()));
    }
}
