//! The command `counterfoil undo`.

use crate::cli::UndoArgs;
use crate::exit::Exit;
use crate::{output, person, render, report, state_folder};
use anyhow::{Result, anyhow, bail};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::display_path;
use counterfoil_flow::Event;
use counterfoil_workspace::workspaces::MergeRecordState;
use std::collections::BTreeSet;

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
    let workspace = match &args.workspace {
        Some(name) => Some(
            find_workspace(name, &known)
                .map_err(|hint| anyhow!("run {run} has no recorded changes of '{name}'; {hint}"))?,
        ),
        None => None,
    };
    let selected = foldings.iter().filter(|folding| workspace.is_none_or(|id| folding.id == id));
    if selected.clone().all(|folding| folding.state == MergeRecordState::Undone) {
        let shown = display_path(&repo);
        if !foldings.is_empty() {
            output::write_stderr(&format!(
                "nothing to undo in {shown}: the changes were already undone\n"
            ));
            return Ok(Exit::Success);
        }
        let files = report::run::files(&engine.report(&run)?);
        output::write_stderr(&render::nothing_to_undo(&repo, &files));
        return Ok(files.names.is_empty().into());
    }
    let mut undone = workspaces.undo(&run, workspace)?;
    let mut lost = BTreeSet::new();
    engine.each_event_of(&run, &["attempt-lost"], |event, _| {
        if let Event::AttemptLost { changed, .. } = event {
            lost.extend(changed);
        }
    })?;
    if !lost.is_empty() && workspace.is_none() {
        undone.notes.push(render::left_by_lost_attempts(&lost));
    }
    output::write_stderr(&render::undo(&undone));
    Ok(undone.changed_since.is_empty().into())
}

/// Finds a workspace by its full name, or by its name without the number if that is unambiguous.
/// The error is a hint.
fn find_workspace<'a>(name: &str, known: &BTreeSet<&'a str>) -> Result<&'a str, String> {
    if let Some(id) = known.get(name) {
        return Ok(id);
    }
    let numbered = |id: &&&str| id.rsplit_once('#').is_some_and(|(path, _)| path == name);
    let numbered: Vec<&str> = known.iter().filter(numbered).copied().collect();
    match numbered.as_slice() {
        [one] => Ok(one),
        [] if known.is_empty() => Err("it has none at all".to_owned()),
        [] => Err(did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
            format!("available: {}", known.iter().copied().collect::<Vec<_>>().join(", "))
        })),
        several => Err(format!("choose one of {}", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_found_with_or_without_its_number() {
        let known = BTreeSet::from(["build/a#1", "build/b#1", "build/b#2", "fix"]);
        for (name, expected) in [
            ("build/a#1", Ok("build/a#1")),
            ("build/a", Ok("build/a#1")),
            ("fix", Ok("fix")),
            ("build/b", Err("choose one of build/b#1, build/b#2")),
            ("build/a#9", Err("did you mean 'build/a#1'?")),
            ("somewhere else", Err("available: build/a#1, build/b#1, build/b#2, fix")),
        ] {
            assert_eq!(find_workspace(name, &known), expected.map_err(str::to_owned), "{name}");
        }
        assert_eq!(find_workspace("a", &BTreeSet::new()), Err("it has none at all".to_owned()));
    }
}
