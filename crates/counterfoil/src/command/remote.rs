//! The commands about runs, asked of a running server (`--server URL`) instead of a state folder.
//!
//! What a server answers is not trusted: it is bounded, checked for its form, and escaped when it is
//! printed. Pages are made from the events of a run by the same code as for a run that is here.

mod address;
mod client;
mod follow;
mod messages;
mod run;

use super::runs::{ALTERED, DAMAGED};
use crate::cli::{AnswerArgs, ListFormat, RunFormat, RunsArgs, ShowArgs};
use crate::exit::Exit;
use crate::{output, render};
use anyhow::{Result, anyhow, bail};
use client::{Client, Problem, segment};
use counterfoil_contract::text::escape_control;
use counterfoil_engine::Question;
use counterfoil_engine::journal::{RunInfo, Summary};
use counterfoil_engine::lists::{OpenQuestions, RunListItem, question_id};
use follow::{Printing, Stopped};
use run::RemoteRun;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The most runs that the server puts on a page.
const PAGE: usize = 200;

/// The most runs of which the open questions are listed.
const MAX_WAITING: usize = 10_000;

/// A page of runs.
#[derive(Deserialize)]
struct RunsPage {
    runs: Vec<RunListItem>,
    next: Option<String>,
}

/// The open questions of a run.
#[derive(Deserialize)]
struct AskedQuestions {
    run: String,
    questions: Vec<AskedQuestion>,
}

/// A question, with what an answer to it has to name.
#[derive(Deserialize)]
struct AskedQuestion {
    #[serde(flatten)]
    question: Question,
    etag: String,
}

/// The exit code of a command that asked a server. A run that is damaged has the exit code that it has
/// where it is.
fn finish(result: Result<Exit>) -> Result<Exit> {
    match result {
        Err(error) if error.downcast_ref::<Problem>().is_some_and(Problem::is_damage) => {
            output::write_error(&error);
            Ok(Exit::State)
        }
        result => result,
    }
}

/// Lists the runs of a server.
pub(super) fn list(server: &str, args: &RunsArgs) -> Result<Exit> {
    finish(Client::new(server).and_then(|client| {
        let runs = runs(&client, "all", args.limit)?;
        match args.format {
            ListFormat::Human => {
                let infos: Vec<RunInfo> = runs.iter().map(info).collect();
                let after = runs.iter().map(|run| (run.run.as_str(), run.words_after_end()));
                let style = output::stdout_line_style();
                output::write_stdout(&render::run_list(&infos, &after.collect(), style))?;
            }
            ListFormat::Json => output::write_json(&runs)?,
        }
        let is_damaged = |run: &RunListItem| matches!(run.outcome.as_str(), ALTERED | DAMAGED);
        Ok(if runs.iter().any(is_damaged) { Exit::State } else { Exit::Success })
    }))
}

/// The first runs of a group, newest first.
fn runs(client: &Client, group: &str, limit: usize) -> Result<Vec<RunListItem>> {
    let mut all: Vec<RunListItem> = Vec::new();
    let mut after = String::new();
    while all.len() < limit {
        let count = (limit - all.len()).min(PAGE);
        let query = format!("/runs?group={group}&limit={count}&after={}", segment(&after));
        let page: RunsPage = client.get(&query)?;
        all.extend(page.runs.into_iter().take(count));
        match page.next {
            Some(next) if next != after => after = next,
            _ => break,
        }
    }
    Ok(all)
}

/// A run of the list in the form in which a journal has it.
fn info(run: &RunListItem) -> RunInfo {
    RunInfo {
        id: run.run.clone(),
        workflow: run.workflow.clone(),
        version: run.version,
        bundle: String::new(),
        created_at: run.started_at,
        updated_at: run.updated_at,
        summary: Summary {
            outcome: Some(run.outcome.clone()),
            cause: run.cause.clone(),
            state: run.state.clone(),
            reason: run.reason.clone(),
            iterations: run.iterations,
            input_tokens: run.usage.input_tokens,
            output_tokens: run.usage.output_tokens,
            cost_usd: run.usage.cost_usd,
            wall_ms: run.usage.wall_ms,
            questions: run.questions,
        },
        last_seq: 0,
        driver: None,
        altered: false,
    }
}

/// Shows a run of a server.
pub(super) fn show(server: &str, args: &ShowArgs) -> Result<Exit> {
    if args.step.is_some() && !args.claims {
        bail!(
            "a step is only shown where its run is; with --server, `show` prints the run, or with \
             --claims the claims of a step"
        );
    }
    finish(Client::new(server).and_then(|client| {
        let flags = client.flags();
        let is_json = args.format == ListFormat::Json;
        let is_page = args.trouble || args.timeline || args.claims || args.events || args.follow;
        if is_json && !is_page {
            output::write_json(&report(&client, &args.run)?)?;
            return Ok(Exit::Success);
        }
        if is_json && args.claims && args.step.is_none() {
            let claims: Value = client.get(&format!("/runs/{}/claims", segment(&args.run)))?;
            output::write_json(&claims)?;
            return Ok(Exit::Success);
        }
        let standing = run::standing(&client, &args.run)?;
        if args.events {
            run::print_lines(&client, &standing.run)?;
            return Ok(Exit::Success);
        }
        if args.follow {
            return follow::follow(&client, &standing.run, &flags);
        }
        let run = RemoteRun::fetch(&client, &standing)?;
        let (report, entries) = (run.report(&standing), run.claims());
        if args.claims {
            return super::show::print_entries(&report.run, entries, Some(&report), args);
        }
        let screen = super::show::Screen {
            report: &report,
            entries: &entries,
            run_state: run.run_state(),
            state: None,
            flags: &flags,
        };
        super::show::print_screen(&screen, &run, args)
    }))
}

/// The report of a run as JSON, without what the server adds to it.
fn report(client: &Client, run: &str) -> Result<Map<String, Value>> {
    let mut report: Map<String, Value> = client.get(&format!("/runs/{}", segment(run)))?;
    for added in ["seq", "driven"] {
        report.shift_remove(added);
    }
    Ok(report)
}

/// Answers a question of a run of a server.
pub(super) fn answer(
    server: &str,
    args: &AnswerArgs,
    (run, question, answer): (&str, &str, &str),
) -> Result<Exit> {
    finish(Client::new(server).and_then(|client| {
        let asked: AskedQuestions = client.get(&format!("/runs/{}/questions", segment(run)))?;
        let ids = asked.questions.iter().map(|asked| asked.question.id.as_str());
        let id = question_id(ids, question)?;
        let open = asked.questions.iter().find(|asked| asked.question.id == id);
        let Some(open) = open else { bail!("question '{id}' is not open") };
        let run = run::checked_id(&asked.run)?;
        let path =
            format!("/runs/{}/questions/{}/answer", segment(run), segment(&open.question.id));
        let said = client.post(&path, &json!({ "answer": answer }), Some(&open.etag))?;
        if args.resume {
            return resume(&client, run, &said, args.format);
        }
        output::write_stderr(&format!(
            "{}\na run that no process drives is continued where it is, with \
             `counterfoil resume {run}` or in the dashboard\n",
            escape_control(&said)
        ));
        Ok(Exit::Success)
    }))
}

/// Has the server continue a run, and follows it until it ends or waits. The outcome and the exit code
/// are those of the run, as where it is. `answered` is what the server said of the answer.
fn resume(client: &Client, run: &str, answered: &str, format: RunFormat) -> Result<Exit> {
    let before = run::standing(client, run)?.seq;
    let sent = client.post(&format!("/runs/{}/resume", segment(run)), &json!({}), None);
    let said = match sent {
        Ok(said) => format!("answer recorded; {said}"),
        // The dashboard of a run: its own process goes on with the run by itself.
        Err(error) if error.downcast_ref::<Problem>().is_some_and(Problem::is_not_allowed) => {
            answered.to_owned()
        }
        // A run that fails within a moment is an error to the server. Its events tell more.
        Err(error)
            if error.downcast_ref::<Problem>().is_some_and(Problem::is_refusal)
                && run::standing(client, run)?.seq > before =>
        {
            "answer recorded; the run went on, and has stopped again".to_owned()
        }
        Err(error) => return Err(error.context("the answer is recorded")),
    };
    output::write_stderr(&format!("{}\n", escape_control(&said)));
    follow::until_taken_up(client, run, before)?;
    let is_human = format == RunFormat::Human;
    let style = output::stderr_line_style();
    let printing = Printing {
        // Only the events from here on, as a process that drives the run prints them.
        after: if is_human { before } else { u64::MAX },
        write: |text| {
            output::write_stderr(text);
            Ok(())
        },
        style,
    };
    let Stopped { report, entries } = follow::until_stopped(client, run, &printing)?;
    match format {
        RunFormat::Human => {
            let ending = render::Ending {
                program: render::PROGRAM,
                report: &report,
                entries: &entries,
                state: None,
                flags: &client.flags(),
                style,
                more: "",
                notify: "",
            };
            output::write_stderr(&format!("\n{}", ending.render()));
        }
        RunFormat::Json => output::write_json(&report)?,
        RunFormat::Junit => output::write_xml(&render::junit::run(&report, &entries)?)?,
        RunFormat::Github => output::write_stdout(&render::github::run(&report, &entries))?,
    }
    Ok(Exit::from_run(&report))
}

/// Lists the open questions of a run, or of all runs of a server.
pub(super) fn list_questions(server: &str, args: &AnswerArgs, run: Option<&str>) -> Result<Exit> {
    finish(Client::new(server).and_then(|client| {
        let runs = match run {
            Some(run) => vec![run.to_owned()],
            None => {
                // One that was answered may still have questions, for which it does not wait.
                let open = runs(&client, "needs-person", MAX_WAITING)?;
                open.into_iter().filter(|run| run.questions > 0).map(|run| run.run).collect()
            }
        };
        let mut all: Vec<OpenQuestions> = Vec::new();
        for run in runs {
            let open: OpenQuestions = client.get(&format!("/runs/{}", segment(&run)))?;
            if !open.questions.is_empty() {
                all.push(open);
            }
        }
        if args.format == RunFormat::Json {
            output::write_json(&all)?;
            return Ok(Exit::Success);
        }
        let flags = client.flags();
        let mut text = String::new();
        for open in &all {
            text += &format!("run {} of {}\n", open.run, open.workflow);
            text += &render::questions(render::PROGRAM, &open.run, &open.questions, &flags);
        }
        if text.is_empty() {
            output::write_stderr("no question is open\n");
        }
        output::write_stdout(&text)?;
        Ok(Exit::Success)
    }))
}

/// Says what is missing of `answer RUN WORD`.
pub(super) fn without_answer(server: &str, run: &str, word: &str) -> Result<Exit> {
    finish(Client::new(server).and_then(|client| {
        let open: OpenQuestions = client.get(&format!("/runs/{}", segment(run)))?;
        let text = render::without_answer(&open.run, &open.questions, word, &client.flags());
        Err(anyhow!(text))
    }))
}

/// Cancels a run of a server.
pub(super) fn cancel(server: &str, run: &str) -> Result<Exit> {
    finish(Client::new(server).and_then(|client| {
        let said = client.post(&format!("/runs/{}/cancel", segment(run)), &json!({}), None)?;
        output::write_stderr(&format!("{}\n", escape_control(&said)));
        Ok(Exit::Success)
    }))
}
