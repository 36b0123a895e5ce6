//! The command `counterfoil claims`.

use crate::cli::{StatsArgs, StatsFormat};
use crate::exit::Exit;
use crate::{output, render, state_folder};
use anyhow::Result;
use counterfoil_contract::text::display_path;
use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::ledger::{Dimension, Ledger, Stats, Tally};
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) fn run(args: &StatsArgs) -> Result<Exit> {
    let state = state_folder::of(&args.location)?;
    let by: Vec<Dimension> = args.by.iter().copied().map(Into::into).collect();
    let Counted { tally, if_empty, is_damaged } = count_claims(&state, args, &by)?;
    match args.format {
        StatsFormat::Json => {
            output::write_json(&tally.report(&by))?;
        }
        StatsFormat::Csv => output::write_stdout(&render::stats::csv(&tally, &by)?)?,
        StatsFormat::Human if tally.groups.is_empty() => {
            output::write_stdout(&format!("{if_empty}\n"))?;
        }
        StatsFormat::Human => {
            output::write_stdout(&render::stats::tables(&tally, &by, output::stdout_style()))?;
        }
    }
    Ok(if is_damaged { Exit::State } else { Exit::Success })
}

/// What was counted.
#[derive(Default)]
struct Counted {
    tally: Tally,
    /// The message if there is nothing.
    if_empty: String,
    /// Whether a run cannot be read, or only in part.
    is_damaged: bool,
}

fn count_claims(state: &Path, args: &StatsArgs, by: &[Dimension]) -> Result<Counted> {
    if !state.join("journal.db").exists() {
        return Ok(Counted { if_empty: no_runs(state), ..Counted::default() });
    }
    let engine = state_folder::open_to_read(state)?;
    let runs = engine.journal().runs(None)?;
    let mut stats = Stats::new(by);
    let (mut has_runs, mut is_damaged) = (false, false);
    // Oldest first.
    for run in runs.iter().rev().filter(|run| is_selected(run, args)) {
        has_runs = true;
        let read =
            engine.each_event_of(&run.id, &Ledger::KINDS, |event, at| stats.on_event(&event, at));
        // A damaged run does not affect the others.
        if let Err(error) = read {
            is_damaged = true;
            let message = format!("run {} is only counted in part: {error}", run.id);
            output::write_message("warning", &message);
        }
    }
    let if_empty = match (has_runs, &args.workflow) {
        (true, _) => "the runs have no agent attempts yet, so there are no claims".to_owned(),
        (false, Some(name)) if !runs.iter().any(|run| run.workflow == *name) => {
            let known: BTreeSet<&str> = runs.iter().map(|run| run.workflow.as_str()).collect();
            let known: Vec<&str> = known.into_iter().collect();
            format!("there are no runs of '{name}'; available: {}", known.join(", "))
        }
        (false, _) if runs.is_empty() => no_runs(state),
        (false, _) => "no run has started since then".to_owned(),
    };
    Ok(Counted { tally: stats.tally(), if_empty, is_damaged })
}

fn no_runs(state: &Path) -> String {
    format!("there are no runs in {}, so there are no claims", display_path(state))
}

fn is_selected(run: &RunInfo, args: &StatsArgs) -> bool {
    let workflow = args.workflow.as_ref().is_none_or(|name| run.workflow == *name);
    workflow && args.since.is_none_or(|since| run.created_at >= since)
}
