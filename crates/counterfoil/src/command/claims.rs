//! `counterfoil claims stats`

use crate::cli::{ClaimsCommand, StatsArgs, StatsFormat};
use crate::exit::Exit;
use crate::{input, output, tell};
use anyhow::Result;
use counterfoil_engine::Engine;
use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::ledger::{Dimension, Ledger, Stats, Tally};
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) fn run(command: &ClaimsCommand) -> Result<Exit> {
    match command {
        ClaimsCommand::Stats(args) => stats(args),
    }
}

fn stats(args: &StatsArgs) -> Result<Exit> {
    let state = input::state(&args.place)?;
    let by: Vec<Dimension> = args.by.iter().copied().map(Into::into).collect();
    let (tally, nothing) = counted(&state, args, &by)?;
    match args.format {
        StatsFormat::Json => {
            output::data(&(serde_json::to_string_pretty(&tell::stats::json(&tally, &by))? + "\n"))?;
        }
        StatsFormat::Csv => output::data(&tell::stats::csv(&tally, &by)?)?,
        StatsFormat::Human if tally.groups.is_empty() => output::data(&format!("{nothing}\n"))?,
        StatsFormat::Human => {
            output::data(&tell::stats::tables(&tally, &by, output::style_of_data()))?
        }
    }
    Ok(Exit::Good)
}

/// The figures, and what to say if there are none.
fn counted(state: &Path, args: &StatsArgs, by: &[Dimension]) -> Result<(Tally, String)> {
    if !state.join("journal.db").exists() {
        let nothing = format!("there are no runs in {}; nothing was claimed yet", state.display());
        return Ok((Tally::default(), nothing));
    }
    let engine = Engine::open_to_read(state)?;
    let runs = engine.journal().runs(None)?;
    let mut stats = Stats::new(by);
    let mut heard = false;
    // The oldest first, as they happened.
    for run in runs.iter().rev().filter(|run| is_meant(run, args)) {
        heard = true;
        let read =
            engine.each_event_of(&run.id, &Ledger::KINDS, |event, at| stats.hear(&event, at));
        // One run that is damaged does not take the others away.
        if let Err(error) = read {
            output::words(&format!(
                "warning: of run {} only the beginning is counted: {error}\n",
                run.id
            ));
        }
    }
    let nothing = match (heard, &args.workflow) {
        (true, _) => "the runs have no attempts of agents yet; nothing was claimed".to_owned(),
        (false, Some(name)) if !runs.iter().any(|run| run.workflow == *name) => {
            let known: BTreeSet<&str> = runs.iter().map(|run| run.workflow.as_str()).collect();
            let known: Vec<&str> = known.into_iter().collect();
            format!("there are no runs of '{name}'; there are runs of {}", known.join(", "))
        }
        (false, _) if runs.is_empty() => {
            format!("there are no runs in {}; nothing was claimed yet", state.display())
        }
        (false, _) => "no run began since then".to_owned(),
    };
    Ok((stats.tally(), nothing))
}

fn is_meant(run: &RunInfo, args: &StatsArgs) -> bool {
    let workflow = args.workflow.as_ref().is_none_or(|name| run.workflow == *name);
    workflow && args.since.is_none_or(|since| run.created_at >= since)
}
