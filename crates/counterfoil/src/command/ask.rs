//! Asks the questions of a waiting run at the terminal, and continues it with the answers.

use super::run::{Reporting, Takeup, print_report, resume_run};
use super::serve::{RunDashboard, WaitEnd};
use crate::cli::{RunFormat, StateLocation};
use crate::exit::Exit;
use crate::{input, output, person, render, state_folder};
use anyhow::Result;
use counterfoil_engine::{Question, RunReport};

/// The outcome of a run that waits for an answer.
const WAITING: &str = "waiting";
/// The outcome of a run that was answered and that nobody has resumed since.
const ANSWERED: &str = "answered";
/// The outcome of a run that a process drives.
const RUNNING: &str = "running";

/// The exit code of a run. At a terminal, a run that waits is continued with the answers that are
/// typed, or given in its dashboard; elsewhere, and if a question is left open, it goes on waiting.
pub(crate) fn ask_and_resume(reporting: &Reporting<'_>, report: &RunReport) -> Result<Exit> {
    if let Some(dashboard) = reporting.dashboard {
        return wait_in_dashboard(dashboard, reporting, report);
    }
    if !asks(reporting, report) {
        return Ok(Exit::from_run(report));
    }
    for question in &report.questions {
        if !ask(reporting.location, &report.run, question)? {
            let flags = render::location_flags(reporting.location) + &reporting.notify_flag();
            let commands =
                render::questions(reporting.program, &report.run, &report.questions, &flags);
            output::write_stderr(&format!("left open; answer later:\n{commands}"));
            return Ok(Exit::from_run(report));
        }
    }
    resume_run(reporting, &report.run, &[], &Takeup::default())
}

/// Keeps a dashboard open after a run. A run that waits is continued once it has an answer. If another
/// process cancels it, or continues it to its end, the end is reported here, too.
fn wait_in_dashboard(
    dashboard: &RunDashboard,
    reporting: &Reporting<'_>,
    report: &RunReport,
) -> Result<Exit> {
    if report.outcome != WAITING {
        dashboard.stay(&report.run)?;
        return Ok(Exit::from_run(report));
    }
    let engine = state_folder::open_to_read(&state_folder::of(reporting.location)?)?;
    let mut was_answered = false;
    let end = dashboard.wait_for(&report.run, || {
        let outcome = engine.report(&report.run)?.outcome;
        let is_answered = outcome == ANSWERED;
        // `answer --resume` goes on itself a moment after it has answered.
        let is_late = std::mem::replace(&mut was_answered, is_answered);
        Ok(if is_answered { is_late } else { !matches!(outcome.as_str(), WAITING | RUNNING) })
    })?;
    let now = engine.report(&report.run)?;
    // The report says so only as long as no other process continues the run.
    if end == WaitEnd::Ready && now.outcome == ANSWERED {
        drop(engine);
        return resume_run(reporting, &report.run, &[], &Takeup::default());
    }
    if holds_back(reporting, report) || now.outcome != WAITING {
        print_report(&engine, reporting, &now)?;
    }
    Ok(match now.outcome.as_str() {
        // Another process goes on with it, or has to.
        RUNNING | ANSWERED => Exit::Waiting,
        _ => Exit::from_run(&now),
    })
}

/// Whether the report of a run is printed only after its dashboard was waited in: programs read one
/// document, and the run may go on.
pub(crate) fn holds_back(reporting: &Reporting<'_>, report: &RunReport) -> bool {
    reporting.dashboard.is_some()
        && reporting.format != RunFormat::Human
        && report.outcome == WAITING
}

/// Whether the questions of a run are asked here: it waits, a person sits at the terminal, and there
/// is no dashboard in which they are answered.
pub(crate) fn asks(reporting: &Reporting<'_>, report: &RunReport) -> bool {
    let is_waiting = report.outcome == WAITING && !report.questions.is_empty();
    let at_terminal = input::is_terminal() && output::stderr_is_terminal();
    is_waiting
        && at_terminal
        && reporting.format == RunFormat::Human
        && reporting.dashboard.is_none()
        // An agent that starts a run in a terminal of its own must not answer for people.
        && person::require_outside_of_attempts("answer").is_ok()
}

/// Asks a question until the answer is valid. False if it stays open and has to be answered.
fn ask(location: &StateLocation, run: &str, question: &Question) -> Result<bool> {
    let engine = state_folder::open(&state_folder::of(location)?)?;
    output::write_stderr(&render::question_prompt(question, output::stderr_line_style()));
    loop {
        output::write_stderr("> ");
        let Some(line) = input::read_terminal_line() else {
            output::write_stderr("\n");
            return Ok(question.optional);
        };
        let answer = match line.trim() {
            "" => return Ok(question.optional),
            typed => chosen(question, typed).unwrap_or(typed).to_owned(),
        };
        match engine.answer(run, &question.id, &answer, person::current()) {
            Ok(()) => return Ok(true),
            Err(error) => output::write_error(&error.into()),
        }
    }
}

/// The choice with a number, as the prompt shows them.
fn chosen<'a>(question: &'a Question, typed: &str) -> Option<&'a str> {
    let number: usize = typed.parse().ok()?;
    question.choices.get(number.checked_sub(1)?).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_choice_and_everything_else_is_the_answer() {
        let question = Question {
            id: "go".to_owned(),
            question: String::new(),
            choices: vec!["yes".to_owned(), "no".to_owned()],
            pattern: None,
            optional: false,
        };
        for (typed, choice) in
            [("1", Some("yes")), ("2", Some("no")), ("0", None), ("3", None), ("yes", None)]
        {
            assert_eq!(chosen(&question, typed), choice, "{typed}");
        }
    }
}
