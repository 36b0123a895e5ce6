//! Runs in words: lines as they go, the ending, the story, the list. Rendering only.

use countersign_engine::journal::RunInfo;
use countersign_engine::{Attempt, Report, Step};
use countersign_flow::{Event, Fold, Moved, Usage, Workflow};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// An event as a line, if it is worth one.
pub(crate) fn event(event: &Event, _at: i64, fold: &Fold) -> Option<String> {
    match event {
        Event::RunStarted(started) => Some(format!("run {} of {}", started.run, started.workflow)),
        Event::RunResumed { .. } => Some(format!("resumed run {} of {}", fold.run, fold.workflow)),
        Event::AttemptStarted { path, agent, n, .. } => {
            Some(format!("  · {}", started(path, agent.as_deref(), *n)))
        }
        Event::RepairAsked { attempt, reply, .. } => {
            let codes =
                if reply.codes.is_empty() { String::new() } else { format!(" ({})", reply.codes.join(", ")) };
            Some(format!("  ↺ {attempt}: the result was {}{codes}, asked again", reply.status))
        }
        Event::AttemptEnded(ended) => {
            let mark = if ended.outcome.trouble().is_none() { "✓" } else { "✗" };
            let reason = if ended.reason.is_empty() {
                String::new()
            } else {
                format!(": {}", one_line(&ended.reason))
            };
            Some(format!("  {mark} {} {}{}{reason}", ended.attempt, ended.outcome.name(), cost(&ended.usage)))
        }
        Event::AttemptLost { attempt } => {
            Some(format!("  ✗ {attempt} was in flight when its process died; it starts anew"))
        }
        Event::RetryPlanned { frame, trouble, retry, after_ms, .. } => {
            let place = if frame.is_empty() { fold.place() } else { frame.clone() };
            let wait = if *after_ms > 0 { format!(" in {}", time(*after_ms)) } else { String::new() };
            Some(format!("  ↺ {place}: {} again{wait} (retry {retry})", trouble.name()))
        }
        Event::Asked { questions, .. } => Some(
            questions
                .iter()
                .map(|asked| format!("  ? {}: {}", asked.id, one_line(&asked.question)))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        Event::Answered { question, answer, by } => Some(format!("  ! {question}: {answer} ({by})")),
        Event::Moved(moved) => Some(moved_line(moved)),
        Event::StepFailed { reason, .. } => Some(format!("  ✗ {}", one_line(reason))),
        Event::BudgetReached { what } => Some(format!("  ✗ the budget is used up: {what}")),
        Event::ArtifactFailed { path, reason } => Some(format!("  ✗ {path} could not be written: {reason}")),
        Event::FrameEnded { frame, outcome, reason, .. } if *outcome != countersign_flow::End::Done => {
            Some(format!("  ✗ {frame} {}: {}", outcome.name(), one_line(reason)))
        }
        _ => None,
    }
}

fn moved_line(moved: &Moved) -> String {
    let place = if moved.frame.is_empty() { String::new() } else { format!("{}: ", moved.frame) };
    format!("  → {place}{} to {}{}", moved.from, moved.to, because(moved))
}

fn because(moved: &Moved) -> String {
    let mut why = match (&moved.exhausted, moved.trouble, &moved.guard) {
        (Some(limit), _, _) => format!(", since the limit '{limit}' is used up"),
        (None, Some(trouble), _) => format!(", on {}", trouble.name()),
        (None, None, Some(guard)) => format!(", since {guard}"),
        (None, None, None) => String::new(),
    };
    for (name, count) in &moved.counts {
        let _ = write!(why, " [{name} {count}]");
    }
    why
}

/// An attempt that starts.
pub(crate) fn started(path: &[String], agent: Option<&str>, n: u32) -> String {
    let again = if n > 1 { format!(" #{n}") } else { String::new() };
    match agent {
        Some(agent) => format!("{}{again} {agent}", path.join("/")),
        None => format!("{}{again} command", path.join("/")),
    }
}

/// The last lines of a run.
pub(crate) fn ending(report: &Report) -> String {
    let mut text = String::new();
    let failures = failures(report);
    if !failures.is_empty() && report.outcome != "done" {
        text.push_str("\nwhat failed:\n");
        for line in failures {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "\n{}", headline(report));
    for question in &report.questions {
        let choices =
            if question.choices.is_empty() { "TEXT".to_owned() } else { question.choices.join("|") };
        let _ = writeln!(text, "  {}", one_line(&question.question));
        let _ = writeln!(text, "  countersign answer {} {} {choices} --resume", report.run, question.id);
    }
    let _ = writeln!(text, "more: countersign show {}", report.run);
    text
}

/// How it ended, in a line.
fn headline(report: &Report) -> String {
    let cause = report.cause.map(|cause| format!(" ({})", cause.name())).unwrap_or_default();
    let reason =
        if report.reason.is_empty() { String::new() } else { format!(": {}", one_line(&report.reason)) };
    let rounds = match report.iterations {
        0 | 1 => String::new(),
        more => format!(", {more} iterations"),
    };
    format!("{}{cause} at '{}'{reason}{rounds}{}", report.outcome, report.state, cost(&report.usage))
}

fn failures(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for attempt in report.attempts.iter().chain(&report.commands) {
        if let Some(outcome) = attempt.outcome.as_deref().filter(|outcome| *outcome != "accepted") {
            lines.push(format!(
                "{} #{} {outcome}: {}",
                attempt.path.join("/"),
                attempt.n,
                one_line(&attempt.reason)
            ));
        }
    }
    // What happened last says most.
    let from = lines.len().saturating_sub(10);
    lines.split_off(from)
}

/// The story of a run: its way through the states, each attempt, why each transition was taken.
pub(crate) fn story(report: &Report, workflow: Option<&Workflow>) -> String {
    let mut text = format!("run {} of {}\n{}\n\n", report.run, report.workflow, headline(report));
    let mut told: Vec<(i64, usize, String)> = Vec::new();
    for attempt in report.attempts.iter().chain(&report.commands) {
        told.push((attempt.started_at, told.len(), attempt_lines(attempt, workflow)));
    }
    // An attempt that started with a transition stands behind it.
    let attempts = told.len();
    for step in &report.path {
        told.push((step.at, told.len() + attempts, step_lines(step)));
    }
    let mut lines: Vec<(i64, u8, usize, String)> =
        told.into_iter().map(|(at, order, line)| (at, u8::from(order < attempts), order, line)).collect();
    lines.sort_by(|a, b| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)));
    for (_, _, _, line) in lines {
        text.push_str(&line);
    }
    if !report.variables.is_empty() {
        text.push_str("\nvariables:\n");
        for (name, value) in &report.variables {
            let _ = writeln!(text, "  {name} = {}", short(value));
        }
    }
    for question in &report.questions {
        let _ = writeln!(text, "\nopen: {} ({})", one_line(&question.question), question.id);
        if !question.choices.is_empty() {
            let _ = writeln!(text, "  answer with one of: {}", question.choices.join(", "));
        }
    }
    text
}

fn attempt_lines(attempt: &Attempt, workflow: Option<&Workflow>) -> String {
    let outcome = attempt.outcome.as_deref().unwrap_or("running");
    let repairs = match attempt.repairs_asked {
        0 => String::new(),
        1 => ", 1 repair asked".to_owned(),
        more => format!(", {more} repairs asked"),
    };
    let mut text = format!(
        "{} {outcome}{repairs}{}\n",
        started(&attempt.path, attempt.agent.as_deref(), attempt.n),
        cost(&attempt.usage)
    );
    if !attempt.reason.is_empty() {
        let _ = writeln!(text, "    {}", one_line(&attempt.reason));
    }
    if let Some(value) = &attempt.value {
        let role =
            workflow.zip(attempt.agent.as_ref()).and_then(|(workflow, agent)| workflow.agents.get(agent));
        let shown = role.map_or_else(|| short(value), |role| role.contract.show(value));
        let _ = writeln!(text, "    {shown}");
    }
    let mut seen = BTreeSet::new();
    for violation in &attempt.violations {
        let part = |name: &str| violation.get(name).and_then(Value::as_str).unwrap_or_default();
        let line = format!("    {} {}: {}", part("code"), part("pointer"), one_line(part("message")));
        if seen.insert(line.clone()) {
            let _ = writeln!(text, "{line}");
        }
    }
    if let Some(reply) = attempt.replies.last().filter(|_| outcome != "accepted") {
        let _ = writeln!(text, "    said: {}", reply.transcript);
    }
    text
}

fn step_lines(step: &Step) -> String {
    let mut text = format!("{}\n", moved_line(&step.moved).trim_end());
    if !step.moved.saw.is_empty() {
        let saw: Vec<String> =
            step.moved.saw.iter().map(|(path, value)| format!("{path} = {}", short(value))).collect();
        let _ = writeln!(text, "      saw {}", saw.join(", "));
    }
    for (name, value) in &step.moved.set {
        let _ = writeln!(text, "      {name} := {}", short(value));
    }
    text
}

/// The list of runs.
pub(crate) fn runs(runs: &[RunInfo]) -> String {
    let mut text = String::new();
    for run in runs {
        let state = &run.summary.state;
        let reason = if run.summary.reason.is_empty() {
            String::new()
        } else {
            format!("  {}", one_line(&run.summary.reason))
        };
        let when = jiff::Timestamp::from_millisecond(run.created_at)
            .map(|at| at.strftime("%Y-%m-%d %H:%M").to_string())
            .unwrap_or_default();
        let _ =
            writeln!(text, "{}  {when}  {:<16} {:<11} {state}{reason}", run.id, run.workflow, outcome(run));
    }
    if runs.is_empty() {
        text.push_str("no runs\n");
    }
    text
}

/// How a run of the list stands.
pub(crate) fn outcome(run: &RunInfo) -> &str {
    let live = run.driver.as_ref().is_some_and(|driver| driver.live);
    match &run.summary.outcome {
        Some(outcome) => outcome,
        None if live => "running",
        None => "interrupted",
    }
}

fn cost(usage: &Usage) -> String {
    let mut text = String::new();
    let tokens = usage.input_tokens + usage.output_tokens;
    if tokens > 0 {
        let _ = write!(text, ", {tokens} tokens");
    }
    if usage.cost_usd > 0.0 {
        let _ = write!(text, ", ${:.2}", usage.cost_usd);
    }
    if usage.wall_ms >= 100 {
        let _ = write!(text, ", {}", time(usage.wall_ms));
    }
    text
}

fn time(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 120 { text } else { text.chars().take(119).chain(['…']).collect() }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 300 { line } else { line.chars().take(299).chain(['…']).collect() }
}
