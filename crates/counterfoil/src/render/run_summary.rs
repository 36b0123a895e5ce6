//! The last lines of a run: what failed, how it ended, what to do next.

use super::claims;
use super::event_lines::attempt_title;
use super::text::{one_line, shell_quote, usage_suffix};
use crate::cli::StateLocation;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::{Attempt, Question, RunReport};
use std::fmt::Write;
use std::path::Path;

/// The number of failures that are repeated at the end. The last ones matter most.
const MAX_FAILURES: usize = 10;
/// The number of choices for which the full answer command is printed.
const MAX_ANSWER_COMMANDS: usize = 4;

/// Names the processes that could not be ended.
pub(crate) fn unended_processes(pids: &[i32]) -> String {
    let list = pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "warning: processes of agents or checks could not be ended, because they run as another user or are blocked in \
         the kernel: {list}; end them with `sudo kill -9`\n"
    )
}

/// The summary of a run. `flags` are the options that commands need to find the run.
pub(crate) fn run_summary(
    report: &RunReport,
    entries: &[Entry],
    state: &Path,
    flags: &str,
) -> String {
    let mut text = String::from("\n");
    if report.outcome != "done" {
        let failures = failures(report);
        if !failures.is_empty() {
            text.push_str("failed:\n");
        }
        for line in failures.iter().rev().take(MAX_FAILURES).rev() {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "{}", headline(report, flags));
    if let Some(line) = failing_output(report, state) {
        let _ = writeln!(text, "  {line}");
    }
    text += &questions(report, flags);
    let _ = writeln!(text, "{}", figures(report));
    text += &claims::summary(entries);
    text += &reopenings(report);
    if report.reopenable {
        let _ = writeln!(text, "reopen: counterfoil resume {}{flags}", report.run);
    }
    let _ = writeln!(text, "details: counterfoil show {}{flags}", report.run);
    if !entries.is_empty() {
        let _ = writeln!(text, "evidence: counterfoil show {}{flags} --claims", report.run);
    }
    text
}

/// The outcome in one line, and how to continue if that is possible.
pub(super) fn headline(report: &RunReport, flags: &str) -> String {
    let cause = report.cause.map(|cause| format!(" ({})", cause.name())).unwrap_or_default();
    let reason = match report.outcome.as_str() {
        // The questions follow.
        "waiting" => " for an answer".to_owned(),
        "interrupted" => {
            format!("; continue with `counterfoil resume {}{flags}`", report.run)
        }
        "cancelled" if report.resumable => {
            format!(": stopped; continue with `counterfoil resume {}{flags}`", report.run)
        }
        _ if report.reason.is_empty() => String::new(),
        _ => format!(": {}", one_line(&report.reason)),
    };
    // A final state often has the name of the outcome.
    let state = if report.state == report.outcome {
        String::new()
    } else {
        format!(" in state '{}'", report.state)
    };
    format!("{}{cause}{state}{reason}", report.outcome)
}

/// By whom, when and why the run was reopened.
pub(super) fn reopenings(report: &RunReport) -> String {
    let mut text = String::new();
    for reopened in &report.reopened {
        let because = match reopened.because.as_str() {
            "" => String::new(),
            because => format!(": {}", one_line(because)),
        };
        let _ = writeln!(
            text,
            "reopened by {} after it had ended as {}{because}",
            reopened.by,
            reopened.outcome.name()
        );
    }
    text
}

/// The open questions, with the commands that answer them.
pub(super) fn questions(report: &RunReport, flags: &str) -> String {
    let mut text = String::new();
    for question in &report.questions {
        let optional = if question.optional { " (optional)" } else { "" };
        let mut lines = question.question.trim().lines();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(text, "  {}{optional}: {first}", question.id);
        for line in lines {
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
        for answer in answer_arguments(question) {
            let _ = writeln!(
                text,
                "    counterfoil answer {} {} {answer} --resume{flags}",
                report.run,
                shell_quote(&question.id)
            );
        }
        if !question.choices.is_empty() {
            let _ =
                writeln!(text, "    your words may follow the choice: … CHOICE \"WORDS\" --resume");
        }
        if question.choices.len() > MAX_ANSWER_COMMANDS {
            let _ = writeln!(text, "    CHOICE is one of: {}", question.choices.join(", "));
        }
        if let Some(pattern) = &question.pattern {
            let _ = writeln!(text, "    TEXT must match {pattern}");
        }
    }
    text
}

/// The possible values of the answer argument, or a placeholder.
fn answer_arguments(question: &Question) -> Vec<String> {
    match question.choices.len() {
        0 => vec!["TEXT".to_owned()],
        1..=MAX_ANSWER_COMMANDS => {
            question.choices.iter().map(|choice| shell_quote(choice)).collect()
        }
        _ => vec!["CHOICE".to_owned()],
    }
}

/// Iterations, attempts, commands and usage.
pub(super) fn figures(report: &RunReport) -> String {
    let mut text = match report.iterations {
        0 | 1 => String::new(),
        more => format!("{more} iterations, "),
    };
    text += &pluralize(report.attempts.len(), "attempt");
    if !report.commands.is_empty() {
        let _ = write!(text, ", {}", pluralize(report.commands.len(), "command"));
    }
    text + &usage_suffix(&report.usage)
}

/// The failed attempts that no later attempt at the same path corrected, except the one whose
/// reason the headline gives already.
fn failures(report: &RunReport) -> Vec<String> {
    let all: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
    let accepted = |attempt: &Attempt| attempt.outcome.as_deref() == Some("accepted");
    let mut lines = Vec::new();
    for attempt in &all {
        let Some(outcome) = attempt.outcome.as_deref().filter(|outcome| *outcome != "accepted")
        else {
            continue;
        };
        let corrected = all
            .iter()
            .any(|later| later.path == attempt.path && later.n > attempt.n && accepted(later));
        if !corrected && attempt.reason != report.reason {
            let name = attempt_title(
                &attempt.path.join("/"),
                attempt.agent.as_deref(),
                attempt.builtin.as_ref(),
                attempt.n,
            );
            lines.push(format!("{name}: {outcome}: {}", one_line(&attempt.reason)));
        }
    }
    lines
}

/// The file with the output of the attempt that made the run fail.
fn failing_output(report: &RunReport, state: &Path) -> Option<String> {
    let mut all = report.attempts.iter().chain(&report.commands);
    let failed =
        all.rfind(|attempt| attempt.reason == report.reason && !report.reason.is_empty())?;
    let reply = failed.replies.last()?;
    output_file(state, reply.text.as_ref().unwrap_or(&reply.transcript))
}

/// The line that names a transcript, if there is one and it is not empty.
pub(super) fn output_file(state: &Path, transcript: &str) -> Option<String> {
    let path = state.join(transcript);
    let bytes = std::fs::metadata(&path).ok()?.len();
    (bytes > 0).then(|| format!("output: {}", path.display()))
}

/// The options with which a command finds a run that is not in the default location.
pub(crate) fn location_flags(location: &StateLocation) -> String {
    let flag = |name: &str, path: Option<&Path>| match path {
        Some(path) => format!(" --{name} {}", shell_quote(&path.display().to_string())),
        None => String::new(),
    };
    flag("repo", location.repo.as_deref()) + &flag("state", location.state.as_deref())
}
