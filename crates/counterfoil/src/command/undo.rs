//! The command `counterfoil undo`.

use crate::cli::UndoArgs;
use crate::exit::Exit;
use crate::{output, person, render, report, state_folder};
use anyhow::{Result, anyhow, bail};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::{display_path, escape_control};
use counterfoil_engine::Engine;
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
    let known: BTreeSet<&str> = foldings.iter().map(|folding| folding.id.as_str()).collect();
    let chosen = match &args.workspace {
        Some(name) => Some(
            find_workspaces(name, &known)
                .map_err(|hint| anyhow!("run {run} has no recorded changes of '{name}'; {hint}"))?,
        ),
        None => None,
    };
    let lost = match chosen {
        Some(_) => BTreeSet::new(),
        None => lost_files(&engine, &run, &foldings)?,
    };
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

/// Finds a workspace or an attempt by its full name, or all of a step by their name without the
/// number. The error is a hint.
fn find_workspaces<'a>(name: &str, known: &BTreeSet<&'a str>) -> Result<Vec<&'a str>, String> {
    if let Some(id) = known.get(name) {
        return Ok(vec![*id]);
    }
    let numbered = |id: &&&str| id.rsplit_once('#').is_some_and(|(path, _)| path == name);
    let numbered: Vec<&str> = known.iter().filter(numbered).copied().collect();
    if !numbered.is_empty() {
        return Ok(numbered);
    }
    if known.is_empty() {
        return Err("it has none at all".to_owned());
    }
    Err(did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
        format!("available: {}", known.iter().copied().collect::<Vec<_>>().join(", "))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workspaces_of_a_name_are_found_without_a_number_and_one_with_it() {
        let known = BTreeSet::from(["build/a#1", "build/b#1", "build/b#2", "fix"]);
        for (name, expected) in [
            ("build/a#1", Ok(vec!["build/a#1"])),
            ("build/a", Ok(vec!["build/a#1"])),
            ("fix", Ok(vec!["fix"])),
            ("build/b#2", Ok(vec!["build/b#2"])),
            ("build/b", Ok(vec!["build/b#1", "build/b#2"])),
            ("build/a#9", Err("did you mean 'build/a#1'?")),
            ("somewhere else", Err("available: build/a#1, build/b#1, build/b#2, fix")),
        ] {
            assert_eq!(find_workspaces(name, &known), expected.map_err(str::to_owned), "{name}");
        }
        assert_eq!(find_workspaces("a", &BTreeSet::new()), Err("it has none at all".to_owned()));
    }
}
