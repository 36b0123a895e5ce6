//! `countersign undo`

use crate::cli::UndoArgs;
use crate::exit::Exit;
use crate::{input, output, tell};
use anyhow::{Result, bail};
use countersign_contract::did_you_mean;
use countersign_engine::Engine;
use countersign_engine::workspace::{FoldingState, Workspaces};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(crate) fn run(args: &UndoArgs) -> Result<Exit> {
    let state = input::state(&args.place)?;
    super::runs::expect_runs(&state)?;
    let engine = Engine::open_to_read(&state)?;
    let run = engine.journal().resolve(&args.run)?;
    if engine.journal().run(&run)?.driver.is_some_and(|driver| driver.live) {
        bail!(
            "run {run} is being driven, and may bring in more; end it with `countersign cancel {run}` first"
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
    if let Some(id) = args.workspace.as_deref().filter(|id| !known.contains(id)) {
        let hint = did_you_mean(id, known.iter().copied()).unwrap_or_else(|| match known.len() {
            0 => "nothing was brought in from any".to_owned(),
            _ => format!("there are {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        });
        bail!("run {run} brought in nothing from a workspace '{id}'; {hint}");
    }
    let meant = foldings.iter().filter(|folding| args.workspace.as_ref().is_none_or(|id| folding.id == *id));
    if meant.clone().all(|folding| folding.state == FoldingState::Undone) {
        let why = if foldings.is_empty() { "nothing was brought in" } else { "it was put back already" };
        output::words(&format!("there is nothing to undo in {}: {why}\n", repo.display()));
        return Ok(Exit::Good);
    }
    let undone = workspaces.undo(&run, args.workspace.as_deref())?;
    output::words(&tell::undone(&undone));
    Ok(undone.changed_since.is_empty().into())
}
