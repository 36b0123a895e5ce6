//! `counterfoil runs`, `show`, `answer` and `cancel`

use crate::cli::{AnswerArgs, ListFormat, OneRun, Place, RunsArgs, ShowArgs};
use crate::exit::Exit;
use crate::{input, output, tell};
use anyhow::{Result, bail};
use counterfoil_engine::{Cancelled, Engine, ledger};
use serde_json::{Value, json};
use std::path::Path;

/// A state folder to look at.
fn looked_at(place: &Place) -> Result<Engine> {
    let state = input::state(place)?;
    expect_runs(&state)?;
    Ok(Engine::open_to_read(&state)?)
}

/// A folder without runs is an error that says so; looking makes no journal.
pub(crate) fn expect_runs(state: &Path) -> Result<()> {
    if !state.join("journal.db").exists() {
        bail!("there are no runs in {}; start one with `counterfoil run`", state.display());
    }
    Ok(())
}

pub(crate) fn list(args: &RunsArgs) -> Result<Exit> {
    let engine = looked_at(&args.place)?;
    let runs = engine.journal().runs(Some(args.limit))?;
    match args.format {
        ListFormat::Human => output::data(&tell::runs(&runs))?,
        ListFormat::Json => {
            let runs: Vec<Value> = runs
                .iter()
                .map(|run| {
                    json!({
                        "run": run.id,
                        "workflow": run.workflow,
                        "version": run.version,
                        "outcome": tell::outcome(run),
                        "cause": run.summary.cause,
                        "state": run.summary.state,
                        "reason": run.summary.reason,
                        "iterations": run.summary.iterations,
                        "questions": run.summary.questions,
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
            output::data(&(serde_json::to_string_pretty(&runs)? + "\n"))?;
        }
    }
    Ok(Exit::Good)
}

pub(crate) fn show(args: &ShowArgs) -> Result<Exit> {
    let engine = looked_at(&args.place)?;
    let run = engine.journal().resolve(&args.run)?;
    if args.events {
        let mut lines = String::new();
        engine.journal().visit(&run, 1, |event| {
            let mut line = json!({"seq": event.seq, "at": event.at, "kind": event.kind});
            // The body is named by its kind; a line is flat.
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
        output::data(&lines)?;
        return Ok(Exit::Good);
    }
    if args.claims {
        return claims(&engine, &run, args.format);
    }
    let report = engine.report(&run)?;
    match args.format {
        ListFormat::Json => output::data(&(serde_json::to_string_pretty(&report)? + "\n"))?,
        ListFormat::Human => {
            let fold = engine.fold(&run)?;
            let workflow = engine.workflow(&fold).ok();
            let mut story =
                tell::Story::new(workflow.as_ref(), engine.journal().folder(), args.place.words());
            engine.each_event(&run, 1, |event, at| story.hear(&event, at, &fold))?;
            output::data(&story.told(&report, &engine.ledger(&run)?.entries()))?;
        }
    }
    Ok(Exit::Good)
}

/// What was claimed in a run, against what was observed.
fn claims(engine: &Engine, run: &str, format: ListFormat) -> Result<Exit> {
    let entries = engine.ledger(run)?.entries();
    match format {
        ListFormat::Human => output::data(&tell::claims::table(&entries, output::style_of_data()))?,
        ListFormat::Json => {
            let summary = ledger::totals(&entries);
            let all = json!({"run": run, "claims": entries, "summary": summary});
            output::data(&(serde_json::to_string_pretty(&all)? + "\n"))?;
        }
    }
    Ok(Exit::Good)
}

pub(crate) fn answer(args: &AnswerArgs) -> Result<Exit> {
    let state = input::state(&args.place)?;
    expect_runs(&state)?;
    let who = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let run = {
        let engine = Engine::open(&state)?;
        // What is last now need not be when somebody reads this.
        let run = engine.journal().resolve(&args.run)?;
        engine.answer(&run, &args.question, &args.answer, &who)?;
        run
    };
    if args.resume {
        return super::run::drive_on(&args.place, &run, &[], args.format);
    }
    output::words(&format!("recorded; `counterfoil resume {run}{}` goes on\n", args.place.words()));
    Ok(Exit::Good)
}

pub(crate) fn cancel(args: &OneRun) -> Result<Exit> {
    let state = input::state(&args.place)?;
    expect_runs(&state)?;
    let engine = Engine::open(&state)?;
    let who = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    output::words(match engine.cancel(&args.run, &who)? {
        Cancelled::Now => "cancelled\n",
        Cancelled::Asked => "the process that drives it was asked to end it\n",
    });
    Ok(Exit::Good)
}
