//! The command `counterfoil show`.

use super::runs::open_read_only;
use crate::cli::{ListFormat, ShowArgs};
use crate::exit::Exit;
use crate::report::step::StepDiff;
use crate::{output, render};
use anyhow::{Context as _, Result, anyhow, bail};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::TranscriptReader;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::lists::{ClaimList, EventLine, named};
use counterfoil_engine::trouble::{TroubleReport, all_trouble};
use counterfoil_engine::{Attempt, DiffLimits, Engine, RunReport};
use counterfoil_flow::{Event, RunState, Workflow};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether there are new events.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);

/// Where the events and the workflow of a run come from.
pub(super) trait Source {
    /// Visits all events with their times.
    fn each_event(&self, visit: &mut dyn FnMut(&Event, i64)) -> Result<()>;

    /// The workflow with which the run was started, if it can be read.
    fn workflow(&self) -> Option<Arc<Workflow>>;
}

/// A run of a state folder.
struct LocalRun<'a> {
    engine: &'a Engine,
    run_state: &'a RunState,
}

impl Source for LocalRun<'_> {
    fn each_event(&self, visit: &mut dyn FnMut(&Event, i64)) -> Result<()> {
        Ok(self.engine.each_event(&self.run_state.run, 1, |event, at| visit(&event, at))?)
    }

    fn workflow(&self) -> Option<Arc<Workflow>> {
        self.engine.workflow(self.run_state).ok()
    }
}

/// A run as it is shown as a whole.
pub(super) struct Screen<'a> {
    pub(super) report: &'a RunReport,
    pub(super) entries: &'a [Entry],
    pub(super) run_state: &'a RunState,
    /// The folder with the transcripts; none if they are on another machine.
    pub(super) state: Option<&'a Path>,
    /// The options that commands need to find the run.
    pub(super) flags: &'a str,
}

pub(crate) fn show(args: &ShowArgs) -> Result<Exit> {
    if let Some(server) = &args.remote.server {
        return super::remote::show(server, args);
    }
    let engine = open_read_only(&args.location)?;
    let run = engine.journal().resolve(&args.run)?;
    if args.events {
        return print_events(&engine, &run);
    }
    if args.claims {
        let entries = engine.ledger(&run)?.entries();
        let report = args.step.is_some().then(|| engine.report(&run)).transpose()?;
        return print_entries(&run, entries, report.as_ref(), args);
    }
    if args.follow {
        return follow(&engine, &run, args);
    }
    let view = engine.view(&run)?;
    let report = view.report()?;
    if let Some(step) = &args.step {
        return show_step(&engine, &report, step, args);
    }
    let screen = Screen {
        report: &report,
        entries: &view.claims(),
        run_state: view.run_state(),
        state: Some(engine.journal().folder()),
        flags: &render::location_flags(&args.location),
    };
    print_screen(&screen, &LocalRun { engine: &engine, run_state: view.run_state() }, args)
}

/// Prints a run as a whole: its screen, its timeline, its trouble or its report.
pub(super) fn print_screen(
    screen: &Screen<'_>,
    source: &dyn Source,
    args: &ShowArgs,
) -> Result<Exit> {
    let Screen { report, entries, run_state, state, flags } = *screen;
    let style = output::stdout_line_style();
    let more = if args.timeline { "" } else { " --timeline" };
    let program = render::PROGRAM;
    let notify = "";
    let ending = render::Ending { program, report, entries, state, flags, style, more, notify };
    match args.format {
        ListFormat::Json if args.trouble => {
            let trouble = all_trouble(report, entries);
            output::write_json(&TroubleReport { run: &report.run, trouble })?;
        }
        ListFormat::Json if args.timeline => {
            bail!("the timeline is text; `--events` prints every event as a line of JSON");
        }
        ListFormat::Json => output::write_json(report)?,
        ListFormat::Human if args.trouble => {
            let trouble = all_trouble(report, entries);
            output::write_stdout(&render::trouble(&trouble, style))?;
        }
        ListFormat::Human if args.timeline => {
            let workflow = source.workflow();
            let mut timeline = render::Timeline::new(workflow.as_deref(), state, style);
            source.each_event(&mut |event, at| timeline.on_event(event, at, run_state))?;
            output::write_stdout(&timeline.finish(&ending))?;
        }
        ListFormat::Human => {
            let mut overview = render::Overview::new(source.workflow(), style);
            source.each_event(&mut |event, at| overview.on_event(event, at, run_state))?;
            output::write_stdout(&overview.finish(&ending, output::stdout_height()))?;
        }
    }
    Ok(Exit::Success)
}

/// Prints the journal, one event per line.
fn print_events(engine: &Engine, run: &str) -> Result<Exit> {
    let mut lines = String::new();
    let mut written = Ok(());
    engine.journal().visit(run, 1, |event| {
        match serde_json::to_string(&EventLine::new(&event)) {
            Ok(line) => {
                lines.push_str(&line);
                lines.push('\n');
                ControlFlow::Continue(())
            }
            Err(error) => {
                written = Err(error);
                ControlFlow::Break(())
            }
        }
    })?;
    written?;
    output::write_json_lines(&lines)?;
    Ok(Exit::Success)
}

/// Prints the claims of a run, or of a step, and their verdicts. For a step, the report says what it is.
pub(super) fn print_entries(
    run: &str,
    mut entries: Vec<Entry>,
    report: Option<&RunReport>,
    args: &ShowArgs,
) -> Result<Exit> {
    if let (Some(report), Some(step)) = (report, &args.step) {
        let step = find_step(report, step)?;
        entries.retain(|entry| is_of(entry, &step));
    }
    match args.format {
        ListFormat::Human => {
            output::write_stdout(&render::claims::page(&entries, output::stdout_line_style()))?;
        }
        ListFormat::Json => {
            output::write_json(&ClaimList::new(run, entries))?;
        }
    }
    Ok(Exit::Success)
}

/// Prints the events of a run, and those to come, until it ends or waits.
fn follow(engine: &Engine, run: &str, args: &ShowArgs) -> Result<Exit> {
    let style = output::stdout_line_style();
    let mut view = engine.view_from_start(run)?;
    let mut formatter = render::EventFormatter::new(render::OutputMode::Live, style);
    loop {
        // Asked before the events are read: what happens afterwards is read the next time.
        let is_driven = view.is_driven()?;
        let mut text = String::new();
        view.catch_up(|event, at, run_state| {
            if let Some(lines) = formatter.event_lines(event, at, run_state) {
                text.push_str(&lines);
                text.push('\n');
            }
        })?;
        output::write_stdout(&text)?;
        if !is_driven || view.run_state().ended.is_some() {
            break;
        }
        std::thread::sleep(FOLLOW_INTERVAL);
    }
    let (report, entries) = (view.report()?, view.claims());
    let ending = render::Ending {
        program: render::PROGRAM,
        report: &report,
        entries: &entries,
        state: Some(engine.journal().folder()),
        flags: &render::location_flags(&args.location),
        style,
        more: "",
        notify: "",
    };
    output::write_stdout(&format!("\n{}", ending.render()))?;
    Ok(Exit::Success)
}

/// A visit of a state: its path and number, and its attempts in order.
struct StepOfRun<'a> {
    path: String,
    visit: u32,
    attempts: Vec<&'a Attempt>,
}

/// Finds a step by its path or an unambiguous part of it, or by `PATH#VISIT`. Without a number it is
/// the last visit.
fn find_step<'a>(report: &'a RunReport, step: &str) -> Result<StepOfRun<'a>> {
    let all = || report.attempts.iter().chain(&report.commands);
    let path_of = |attempt: &Attempt| attempt.path.join("/");
    let (path, visit) = match step.rsplit_once('#') {
        Some((path, visit)) if !all().any(|attempt| path_of(attempt) == step) => {
            let visit: u32 = visit
                .parse()
                .map_err(|_| anyhow!("'{visit}' is not the number of a visit; write PATH#N"))?;
            (path, Some(visit))
        }
        _ => (step, None),
    };
    let paths: BTreeSet<String> = all().map(path_of).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let path = match named(paths.iter().copied(), path).as_slice() {
        [one] => *one,
        [] => {
            let hint = did_you_mean(path, paths.iter().copied())
                .unwrap_or_else(|| format!("it has: {}", paths.join(", ")));
            bail!("run {} has no step '{path}'; {hint}", report.run);
        }
        several => bail!(
            "'{path}' may be one of several steps of run {}: {}; write more of its path",
            report.run,
            several.join(", ")
        ),
    };
    let known = || all().filter(|attempt| path_of(attempt) == path);
    let last = known().map(|attempt| attempt.visit).max().unwrap_or_default();
    let visit = visit.unwrap_or(last);
    let attempts: Vec<&Attempt> = known().filter(|attempt| attempt.visit == visit).collect();
    if attempts.is_empty() {
        let visits = pluralize(last as usize, "visit");
        bail!("'{path}' has {visits} in this run, and none with the number {visit}");
    }
    Ok(StepOfRun { path: path.to_owned(), visit, attempts })
}

fn is_of(entry: &Entry, step: &StepOfRun<'_>) -> bool {
    entry.path.join("/") == step.path && entry.visit == step.visit
}

fn unrecorded(step: &StepOfRun<'_>) -> String {
    let changed = step.attempts.iter().filter_map(|attempt| attempt.changed.as_ref());
    if changed.map(|changed| changed.total).sum::<u64>() == 0 {
        return format!("{} changed no files", step.path);
    }
    format!(
        "there is no record of the changes of {}: those of a worktree are recorded when it is merged, and \
         `counterfoil clean` removes old records",
        step.path
    )
}

/// Prints a step, or a part of it.
fn show_step(engine: &Engine, report: &RunReport, step: &str, args: &ShowArgs) -> Result<Exit> {
    let step = find_step(report, step)?;
    let Some(last) = step.attempts.last() else { bail!("the step has no attempt") };
    let files = TranscriptReader::new(engine.journal().folder());
    let unknown = |what: &str| anyhow!("there is no {what} of {}, visit {}", step.path, step.visit);
    if args.diff {
        // An attempt includes what the earlier ones of the same visit changed.
        let id = |attempt: &&Attempt| format!("{}#{}", attempt.path.join("/"), attempt.n);
        let attempts: Vec<String> = step.attempts.iter().map(id).collect();
        let diff = engine.files_diff(&report.run, &attempts, &DiffLimits::NONE)?;
        let Some(diff) = diff else { bail!("{}", unrecorded(&step)) };
        let style = output::stdout_line_style();
        match args.format {
            ListFormat::Json => output::write_json(&StepDiff { diff: diff.unified() })?,
            ListFormat::Human => output::write_stdout(&render::diff::unified(&diff, style))?,
        }
        return Ok(Exit::Success);
    }
    if args.result || args.format == ListFormat::Json {
        match (&last.value, args.result) {
            (Some(value), true) => output::write_json(value)?,
            (None, true) => return Err(unknown("result")),
            (_, false) => output::write_json(&step.attempts)?,
        }
        return Ok(Exit::Success);
    }
    if args.prompt {
        let replies: Vec<_> = step.attempts.iter().flat_map(|attempt| &attempt.replies).collect();
        let mut text = String::new();
        for (at, reply) in replies.iter().enumerate() {
            let prompt = files
                .prompt(reply)
                .with_context(|| format!("cannot read the prompt of {}", step.path))?;
            if replies.len() > 1 {
                let blank = if at == 0 { "" } else { "\n" };
                text += &format!("{blank}== prompt {} of {} ==\n\n", at + 1, replies.len());
            }
            text += &String::from_utf8_lossy(&prompt);
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        if text.is_empty() {
            return Err(unknown("prompt"));
        }
        output::write_stdout(&text)?;
        return Ok(Exit::Success);
    }
    if args.reply {
        let reply = last.replies.last().ok_or_else(|| unknown("reply"))?;
        let bytes = files
            .reply(reply)
            .with_context(|| format!("cannot read the reply of {}", step.path))?;
        output::write_stdout(&String::from_utf8_lossy(&bytes))?;
        return Ok(Exit::Success);
    }
    let mut entries = engine.ledger(&report.run)?.entries();
    entries.retain(|entry| is_of(entry, &step));
    let command = format!(
        "counterfoil show {}{} {}",
        report.run,
        render::location_flags(&args.location),
        render::shell_quote(&format!("{}#{}", step.path, step.visit))
    );
    let style = output::stdout_line_style();
    output::write_stdout(&render::step(&step.attempts, &entries, &command, style))?;
    Ok(Exit::Success)
}
