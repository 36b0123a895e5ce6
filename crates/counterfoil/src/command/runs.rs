//! The commands `counterfoil runs`, `answer` and `cancel`.

use super::remote;
use super::run::{Reporting, Takeup};
use crate::cli::{AnswerArgs, ListFormat, RunFormat, RunRef, RunsArgs, StateLocation};
use crate::exit::Exit;
use crate::{output, person, render, state_folder};
use anyhow::{Result, bail};
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::config::Config;
use counterfoil_engine::journal::{self, RunInfo};
use counterfoil_engine::lists::{AfterEnd, OpenQuestions, RunListItem};
use counterfoil_engine::{CancelOutcome, Engine, Error};
use std::collections::BTreeMap;
use std::path::Path;

/// The outcome of a listed run whose events are damaged.
pub(super) const DAMAGED: &str = "damaged";
/// The outcome of a listed run to whose journal another program wrote.
pub(super) const ALTERED: &str = "altered";
/// The most events that are checked for a list of runs, so that it does not take seconds.
const MAX_EXAMINED: u64 = 50_000;

/// Opens the state folder for reading, or says that there are no runs and how to start one.
fn open_if_any(location: &StateLocation) -> Result<Option<Engine>> {
    let state = state_folder::of(location)?;
    if !state_folder::has_runs(&state)? {
        output::write_stderr(
            "no runs yet; start one with `counterfoil run PACK --task TEXT`, or try `counterfoil demo`\n",
        );
        return Ok(None);
    }
    Ok(Some(state_folder::open_to_read(&state)?))
}

/// Opens the state folder for reading.
pub(super) fn open_read_only(location: &StateLocation) -> Result<Engine> {
    let state = state_folder::of(location)?;
    state_folder::require_runs(&state)?;
    state_folder::open_to_read(&state)
}

pub(crate) fn list(args: &RunsArgs) -> Result<Exit> {
    if let Some(server) = &args.remote.server {
        return remote::list(server, args);
    }
    let Some(engine) = open_if_any(&args.location)? else {
        if args.format == ListFormat::Json {
            output::write_json(&Vec::<RunListItem>::new())?;
        }
        return Ok(Exit::Success);
    };
    let mut runs = engine.journal().runs(Some(args.limit))?;
    let mut after: BTreeMap<String, AfterEnd> = BTreeMap::new();
    let (mut room, mut is_damaged) = (Room::default(), false);
    for run in &mut runs {
        is_damaged |= run.altered;
        match examine(&engine, run, &mut room) {
            Ok(found) => {
                after.insert(run.id.clone(), found);
            }
            Err(Error::Journal(error)) if is_damage(&error) => {
                is_damaged = true;
                // A row that was altered says so already.
                if !run.altered {
                    run.summary.outcome = Some(DAMAGED.to_owned());
                    run.summary.cause = None;
                    run.summary.reason = error.to_string();
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    match args.format {
        ListFormat::Human => {
            let after = after.iter().map(|(id, after)| (id.as_str(), after.words())).collect();
            let style = output::stdout_line_style();
            output::write_stdout(&render::run_list(&runs, &after, style))?;
        }
        ListFormat::Json => {
            let unknown = AfterEnd::default();
            let item =
                |run: &RunInfo| RunListItem::new(run, after.get(&run.id).unwrap_or(&unknown));
            let runs: Vec<RunListItem> = runs.iter().map(item).collect();
            output::write_json(&runs)?;
        }
    }
    if let Some(note) = room.note() {
        output::write_message("note", &note);
    }
    Ok(if is_damaged { Exit::State } else { Exit::Success })
}

/// Checks the events of a run, unless too many were read already. Returns what happened to it after
/// its end.
fn examine(engine: &Engine, run: &RunInfo, room: &mut Room) -> Result<AfterEnd, Error> {
    if room.takes(run.last_seq) {
        engine.journal().verify(&run.id)?;
    }
    engine.after_end(&run.id)
}

/// How many events can still be checked for a list of runs, and how many of its runs were not checked.
struct Room {
    events: u64,
    unchecked: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { events: MAX_EXAMINED, unchecked: 0 }
    }
}

impl Room {
    /// Whether so many events are checked. Those of a smaller run may be, if they are not.
    fn takes(&mut self, events: u64) -> bool {
        let rest = self.events.checked_sub(events);
        match rest {
            Some(rest) => self.events = rest,
            None => self.unchecked += 1,
        }
        rest.is_some()
    }

    /// What is said if runs were not checked.
    fn note(&self) -> Option<String> {
        let runs = (self.unchecked > 0).then(|| pluralize(self.unchecked, "run"))?;
        Some(format!(
            "the events of {runs} were not checked for damage, because only {MAX_EXAMINED} are for a \
             list; `counterfoil show RUN` checks those of a run"
        ))
    }
}

/// Whether an error is about one run, so that the others can be listed.
fn is_damage(error: &journal::Error) -> bool {
    use journal::Error as Problem;
    matches!(
        error,
        Problem::Broken { .. }
            | Problem::Damaged { .. }
            | Problem::Behind { .. }
            | Problem::Altered { .. }
    )
}

pub(crate) fn answer(args: &AnswerArgs) -> Result<Exit> {
    let (run, question, answer) = match (&args.run, &args.question, &args.answer) {
        (Some(run), Some(question), Some(answer)) => (run, question, answer),
        (Some(run), Some(word), None) => return without_answer(args, run, word),
        (run, _, _) => {
            return match &args.remote.server {
                Some(server) => remote::list_questions(server, args, run.as_deref()),
                None => list_questions(args, run.as_deref()),
            };
        }
    };
    person::require_outside_of_attempts("answer")?;
    let answer = match &args.words {
        Some(words) => format!("{answer}: {words}"),
        None => answer.clone(),
    };
    if let Some(server) = &args.remote.server {
        return remote::answer(server, args, (run.as_str(), question.as_str(), answer.as_str()));
    }
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let run = {
        let engine = state_folder::open(&state)?;
        // Resolved once: `last` may be another run by the time the hint below is used.
        let run = engine.journal().resolve(run)?;
        engine.answer(&run, question, &answer, person::current())?;
        run
    };
    if args.resume {
        let reporting = Reporting {
            location: &args.location,
            format: args.format,
            notify: args.notify.as_deref(),
            story: false,
            dashboard: None,
            program: render::PROGRAM,
        };
        return super::run::resume_run(&reporting, &run, &[], &Takeup::default());
    }
    output::write_stderr(&format!(
        "answer recorded; continue the run with `counterfoil resume {run}{}`\n",
        render::location_flags(&args.location)
    ));
    Ok(Exit::Success)
}

/// Says what is missing of `answer RUN WORD`: the answer to a question, or the question.
fn without_answer(args: &AnswerArgs, run: &str, word: &str) -> Result<Exit> {
    if let Some(server) = &args.remote.server {
        return remote::without_answer(server, run, word);
    }
    let engine = open_read_only(&args.location)?;
    let report = engine.report(&engine.journal().resolve(run)?)?;
    let flags = render::location_flags(&args.location);
    bail!(render::without_answer(&report.run, &report.questions, word, &flags))
}

/// Lists the open questions of a run, or of all runs.
fn list_questions(args: &AnswerArgs, run: Option<&str>) -> Result<Exit> {
    let Some(engine) = open_if_any(&args.location)? else {
        if args.format == RunFormat::Json {
            output::write_json(&Vec::<OpenQuestions>::new())?;
        }
        return Ok(Exit::Success);
    };
    let runs: Vec<String> = match run {
        Some(run) => vec![engine.journal().resolve(run)?],
        None => {
            let all = engine.journal().runs(None)?.into_iter();
            all.filter(|run| run.summary.questions > 0).map(|run| run.id).collect()
        }
    };
    let reports: Vec<_> = runs.iter().map(|run| engine.report(run)).collect::<Result<_, _>>()?;
    if args.format == RunFormat::Json {
        let open: Vec<OpenQuestions> = reports.iter().filter_map(OpenQuestions::of).collect();
        output::write_json(&open)?;
        return Ok(Exit::Success);
    }
    let flags = render::location_flags(&args.location);
    let mut text = String::new();
    for report in reports.iter().filter(|report| !report.questions.is_empty()) {
        text += &format!("run {} of {}\n", report.run, report.workflow);
        text += &render::questions(render::PROGRAM, &report.run, &report.questions, &flags);
    }
    if text.is_empty() {
        output::write_stderr("no question is open\n");
    }
    output::write_stdout(&text)?;
    Ok(Exit::Success)
}

pub(crate) fn cancel(args: &RunRef) -> Result<Exit> {
    person::require_outside_of_attempts("cancel")?;
    if let Some(server) = &args.remote.server {
        return remote::cancel(server, &args.run);
    }
    let state = state_folder::of(&args.location)?;
    state_folder::require_runs(&state)?;
    let engine = state_folder::open(&state)?;
    // Resolved once: `last` may be another run by the time it is cancelled.
    let run = engine.journal().resolve(&args.run)?;
    let environment = environment_of_run(&engine, &args.location, &state, &run);
    let environment = environment.unwrap_or_else(|error| {
        let message = format!("what lost attempts used is not counted: {error}");
        output::write_message("note", &message);
        AgentEnvironment::default()
    });
    output::write_stderr(match engine.cancel(&run, environment, person::current())? {
        CancelOutcome::Cancelled => "cancelled\n",
        CancelOutcome::Requested => "cancellation requested from the process that runs it\n",
    });
    Ok(Exit::Success)
}

/// The environment in which the agents of a run are found, with their settings and prices. `run` is
/// its id.
pub(super) fn environment_of_run(
    engine: &Engine,
    location: &StateLocation,
    state: &Path,
    run: &str,
) -> Result<AgentEnvironment> {
    let recorded = engine.run_state(run)?.repo;
    let repo = state_folder::repository_of_run(location, state, &recorded)?;
    Ok(super::run::agent_environment(Config::load(&repo, &repo)?, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_beyond_the_limit_are_said_not_to_be_checked() {
        let mut room = Room::default();
        assert!(room.takes(MAX_EXAMINED - 10));
        assert_eq!(room.note(), None);
        assert!(!room.takes(11));
        assert!(room.takes(10), "a smaller one");
        assert!(!room.takes(1));
        let note = room.note().unwrap_or_default();
        assert!(note.starts_with("the events of 2 runs were not checked"), "{note}");
    }
}
