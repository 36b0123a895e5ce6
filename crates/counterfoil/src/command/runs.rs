//! The commands `counterfoil runs`, `show`, `answer` and `cancel`.

use super::run::Takeup;
use crate::cli::{AnswerArgs, ListFormat, RunRef, RunsArgs, ShowArgs, StateLocation};
use crate::exit::Exit;
use crate::{output, person, render, state_folder};
use anyhow::Result;
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_engine::config::Config;
use counterfoil_engine::{CancelOutcome, Engine, ledger};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Opens the state folder for reading.
fn open_read_only(location: &StateLocation) -> Result<Engine> {
    let state = state_folder::of(location)?;
    state_folder::require_runs(&state)?;
    state_folder::open_to_read(&state)
}

pub(crate) fn list(args: &RunsArgs) -> Result<Exit> {
    let engine = open_read_only(&args.location)?;
    let runs = engine.journal().runs(Some(args.limit))?;
    let mut reopened = BTreeMap::new();
    for run in &runs {
        if let Some(last) = engine.last_reopening(&run.id)? {
            reopened.insert(run.id.as_str(), last);
        }
    }
    match args.format {
        ListFormat::Human => {
            let reopened = reopened.keys().copied().collect();
            output::write_stdout(&render::run_list(&runs, &reopened))?;
        }
        ListFormat::Json => {
            let runs: Vec<Value> = runs
                .iter()
                .map(|run| {
                    let reopened = reopened.get(run.id.as_str());
                    json!({
                        "run": run.id,
                        "workflow": run.workflow,
                        "version": run.version,
                        "outcome": render::run_outcome(run),
                        "cause": run.summary.cause,
                        "state": run.summary.state,
                        "reason": run.summary.reason,
                        "iterations": run.summary.iterations,
                        "questions": run.summary.questions,
                        "reopened": reopened.map_or(0, |(times, _)| *times),
                        "reopened_by": reopened.map(|(_, last)| &last.by),
                        "started_at": run.created_at,
                        "updated_at": run.updated_at,
                        "usage": {
                            "input_tokens": run.summary.input_tokens,
                            "output_tokens": run.summary.output_tokens,
                            "cost_usd": run.summary.cost_usd,
                            "wall_ms": run.summary.wall_ms,
                        },
                    })
                })
                .collect();
            output::write_json(&runs)?;
        }
    }
    Ok(Exit::Success)
}

pub(crate) fn show(args: &ShowArgs) -> Result<Exit> {
    let engine = open_read_only(&args.location)?;
    let run = engine.journal().resolve(&args.run)?;
    if args.events {
        let mut lines = String::new();
        engine.journal().visit(&run, 1, |event| {
            let mut line = json!({"seq": event.seq, "at": event.at, "kind": event.kind});
            // The body is nested under its kind; the printed line is flat.
            let body: Option<Value> = serde_json::from_slice(&event.body).ok();
            let fields =
                body.as_ref().and_then(|body| body.get(&event.kind)).and_then(Value::as_object);
            if let (Some(line), Some(fields)) = (line.as_object_mut(), fields) {
                line.extend(fields.clone());
            }
            lines.push_str(&line.to_string());
            lines.push('\n');
            std::ops::ControlFlow::Continue(())
        })?;
        output::write_json_lines(&lines)?;
        return Ok(Exit::Success);
    }
    if args.claims {
        return print_claims(&engine, &run, args.format);
    }
    let report = engine.report(&run)?;
    match args.format {
        ListFormat::Json => output::write_json(&report)?,
        ListFormat::Human => {
            let run_state = engine.run_state(&run)?;
            let workflow = engine.workflow(&run_state).ok();
            let mut timeline = render::Timeline::new(
                workflow.as_ref(),
                engine.journal().folder(),
                render::location_flags(&args.location),
            );
            engine.each_event(&run, 1, |event, at| timeline.on_event(&event, at, &run_state))?;
            output::write_stdout(&timeline.finish(&report, &engine.ledger(&run)?.entries()))?;
        }
    }
    Ok(Exit::Success)
}

/// Prints the claims of a run and their verdicts.
fn print_claims(engine: &Engine, run: &str, format: ListFormat) -> Result<Exit> {
    let entries = engine.ledger(run)?.entries();
    match format {
        ListFormat::Human => {
            output::write_stdout(&render::claims::table(&entries, output::stdout_style()))?;
        }
        ListFormat::Json => {
            let summary = ledger::totals(&entries);
            let all = json!({"run": run, "claims": entries, "summary": summary});
            output::write_json(&all)?;
        }
    }
    Ok(Exit::Success)
}

pub(crate) fn answer(args: &AnswerArgs) -> Result<Exit> {
    person::require_outside_of_attempts("answer")?;
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let run = {
        let engine = state_folder::open(&state)?;
        // Resolved once: `last` may be another run by the time the hint below is used.
        let run = engine.journal().resolve(&args.run)?;
        let answer = match &args.words {
            Some(words) => format!("{}: {words}", args.answer),
            None => args.answer.clone(),
        };
        engine.answer(&run, &args.question, &answer, person::current())?;
        run
    };
    if args.resume {
        return super::run::resume_run(&args.location, &run, &[], &Takeup::default(), args.format);
    }
    output::write_stderr(&format!(
        "answer recorded; continue the run with `counterfoil resume {run}{}`\n",
        render::location_flags(&args.location)
    ));
    Ok(Exit::Success)
}

pub(crate) fn cancel(args: &RunRef) -> Result<Exit> {
    person::require_outside_of_attempts("cancel")?;
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let engine = state_folder::open(&state)?;
    let environment = environment_of_run(&engine, &args.location, &state, &args.run);
    let environment = environment.unwrap_or_else(|error| {
        output::write_stderr(&format!("note: what lost attempts used is not counted: {error}\n"));
        AgentEnvironment::default()
    });
    output::write_stderr(match engine.cancel(&args.run, environment, person::current())? {
        CancelOutcome::Cancelled => "cancelled\n",
        CancelOutcome::Requested => "cancellation requested from the process that runs it\n",
    });
    Ok(Exit::Success)
}

/// The environment in which the agents of a run are found, with their settings and prices.
fn environment_of_run(
    engine: &Engine,
    location: &StateLocation,
    state: &Path,
    run: &str,
) -> Result<AgentEnvironment> {
    let recorded = engine.run_state(&engine.journal().resolve(run)?)?.repo;
    let repo = state_folder::repository_of_run(location, state, &recorded)?;
    Ok(super::run::agent_environment(Config::load(&repo, &repo)?, state))
}
