//! `counterfoil undo`

use crate::cli::UndoArgs;
use crate::exit::Exit;
use crate::{input, output, tell};
use anyhow::{Result, anyhow, bail};
use counterfoil_contract::did_you_mean;
use counterfoil_engine::Engine;
use counterfoil_workspace::workspace::{FoldingState, Workspaces};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(crate) fn run(args: &UndoArgs) -> Result<Exit> {
    let state = input::state(&args.place)?;
    super::runs::expect_runs(&state)?;
    let engine = Engine::open_to_read(&state)?;
    let run = engine.journal().resolve(&args.run)?;
    if engine.journal().run(&run)?.driver.is_some_and(|driver| driver.live) {
        bail!(
            "run {run} is being driven, and may bring in more; end it with `counterfoil cancel {run}` first"
        );
    }
    // As for a run that goes on: a repository that was moved took its runs along.
    let repo = match (&args.place.repo, &args.place.state) {
        (None, Some(_)) => PathBuf::from(engine.fold(&run)?.repo),
        (named, _) => input::repository(named.as_deref())?,
    };
    let workspaces = Workspaces::new(&state, &repo);
    let foldings = workspaces.foldings(&run);
    let known: BTreeSet<&str> = foldings.iter().map(|folding| folding.id.as_str()).collect();
    let workspace = match &args.workspace {
        Some(name) => Some(named(name, &known).map_err(|hint| {
            anyhow!("run {run} brought in nothing from a workspace '{name}'; {hint}")
        })?),
        None => None,
    };
    let meant = foldings.iter().filter(|folding| workspace.is_none_or(|id| folding.id == id));
    if meant.clone().all(|folding| folding.state == FoldingState::Undone) {
        let why =
            if foldings.is_empty() { "nothing was brought in" } else { "it was put back already" };
        output::words(&format!("there is nothing to undo in {}: {why}\n", repo.display()));
        return Ok(Exit::Good);
    }
    let undone = workspaces.undo(&run, workspace)?;
    output::words(&tell::undone(&undone));
    Ok(undone.changed_since.is_empty().into())
}

/// The workspace that is meant: by its whole name, or without the number behind it where there is
/// one such. The error is a hint.
fn named<'a>(name: &str, known: &BTreeSet<&'a str>) -> Result<&'a str, String> {
    if let Some(id) = known.get(name) {
        return Ok(id);
    }
    let numbered = |id: &&&str| id.rsplit_once('#').is_some_and(|(path, _)| path == name);
    let numbered: Vec<&str> = known.iter().filter(numbered).copied().collect();
    match numbered.as_slice() {
        [one] => Ok(one),
        [] if known.is_empty() => Err("nothing was brought in from any".to_owned()),
        [] => Err(did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
            format!("there are {}", known.iter().copied().collect::<Vec<_>>().join(", "))
        })),
        several => Err(format!("there are {}: say which", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_named_as_the_story_names_it() {
        let known = BTreeSet::from(["build/a#1", "build/b#1", "build/b#2", "fix"]);
        for (name, meant) in [
            ("build/a#1", Ok("build/a#1")),
            ("build/a", Ok("build/a#1")),
            ("fix", Ok("fix")),
            ("build/b", Err("there are build/b#1, build/b#2: say which")),
            ("build/a#9", Err("did you mean 'build/a#1'?")),
            ("somewhere else", Err("there are build/a#1, build/b#1, build/b#2, fix")),
        ] {
            assert_eq!(named(name, &known), meant.map_err(str::to_owned), "{name}");
        }
        assert_eq!(named("a", &BTreeSet::new()), Err("nothing was brought in from any".to_owned()));
    }
}
