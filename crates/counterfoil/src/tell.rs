//! Runs in words: lines as they go, the ending, the story, the list. Rendering only.

pub(crate) mod claims;
pub(crate) mod demo;
pub(crate) mod doctor;
mod lines;
pub(crate) mod packs;
pub(crate) mod replay;
pub(crate) mod setup;
pub(crate) mod stats;
mod story;
mod table;

pub(crate) use lines::{Teller, title};
pub(crate) use story::Story;

use counterfoil_engine::journal::RunInfo;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::{Attempt, Question, Report};
use counterfoil_flow::Usage;
use counterfoil_workspace::workspace::Undone;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Failures that are repeated at the end; what happened last says most.
const REPEATED: usize = 10;
/// More choices than this are listed rather than written out as commands.
const WRITTEN_OUT: usize = 4;

/// The last lines of a run: what failed, how it ended, what to do now. `place` is what commands
/// need to find it.
pub(crate) fn ending(report: &Report, entries: &[Entry], state: &Path, place: &str) -> String {
    let mut text = String::from("\n");
    if report.outcome != "done" {
        let failures = failures(report);
        if !failures.is_empty() {
            text.push_str("what failed:\n");
        }
        for line in failures.iter().rev().take(REPEATED).rev() {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "{}", headline(report, place));
    if let Some(said) = last_words(report, state) {
        let _ = writeln!(text, "  {said}");
    }
    text += &questions(report, place);
    let _ = writeln!(text, "{}", figures(report));
    text += &claims::summary(entries);
    let more = if entries.is_empty() {
        ""
    } else {
        ", and with --claims what the claims were held against"
    };
    let _ = writeln!(text, "more: counterfoil show {}{place}{more}", report.run);
    text
}

/// How it stands, in a line, and how to go on where it can.
fn headline(report: &Report, place: &str) -> String {
    let cause = report.cause.map(|cause| format!(" ({})", cause.name())).unwrap_or_default();
    let reason = match report.outcome.as_str() {
        // The questions stand below.
        "waiting" => ", for an answer".to_owned(),
        "interrupted" => format!("; go on with `counterfoil resume {}{place}`", report.run),
        _ if report.reason.is_empty() => String::new(),
        _ => format!(": {}", one_line(&report.reason)),
    };
    // A state is often named for the end it is.
    let place = if report.state == report.outcome {
        String::new()
    } else {
        format!(" at '{}'", report.state)
    };
    format!("{}{cause}{place}{reason}", report.outcome)
}

/// The open questions, with the commands that answer them.
fn questions(report: &Report, place: &str) -> String {
    let mut text = String::new();
    for question in &report.questions {
        let optional = if question.optional { " (optional)" } else { "" };
        let _ = writeln!(text, "  {}: {}{optional}", question.id, one_line(&question.question));
        for answer in answers(question) {
            let _ = writeln!(
                text,
                "    counterfoil answer {} {} {answer} --resume{place}",
                report.run,
                quoted(&question.id)
            );
        }
        if question.choices.len() > WRITTEN_OUT {
            let _ = writeln!(text, "    CHOICE is one of: {}", question.choices.join(", "));
        }
        if let Some(pattern) = &question.pattern {
            let _ = writeln!(text, "    TEXT has the form {pattern}");
        }
    }
    text
}

/// What can stand in the place of the answer.
fn answers(question: &Question) -> Vec<String> {
    match question.choices.len() {
        0 => vec!["TEXT".to_owned()],
        1..=WRITTEN_OUT => question.choices.iter().map(|choice| quoted(choice)).collect(),
        _ => vec!["CHOICE".to_owned()],
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What it took.
fn figures(report: &Report) -> String {
    let mut text = match report.iterations {
        0 | 1 => String::new(),
        more => format!("{more} iterations, "),
    };
    text += &many(report.attempts.len(), "attempt");
    if !report.commands.is_empty() {
        let _ = write!(text, ", {}", many(report.commands.len(), "command"));
    }
    text + &cost(&report.usage)
}

/// What failed and was not made good by a later attempt, unless the headline says so already.
fn failures(report: &Report) -> Vec<String> {
    let all: Vec<&Attempt> = report.attempts.iter().chain(&report.commands).collect();
    let accepted = |attempt: &Attempt| attempt.outcome.as_deref() == Some("accepted");
    let mut lines = Vec::new();
    for attempt in &all {
        let Some(outcome) = attempt.outcome.as_deref().filter(|outcome| *outcome != "accepted")
        else {
            continue;
        };
        let made_good = all
            .iter()
            .any(|later| later.path == attempt.path && later.n > attempt.n && accepted(later));
        if !made_good && attempt.reason != report.reason {
            let name = title(
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

/// What the last attempt said, if that is what the run failed by.
fn last_words(report: &Report, state: &Path) -> Option<String> {
    let mut all = report.attempts.iter().chain(&report.commands);
    let failed =
        all.rfind(|attempt| attempt.reason == report.reason && !report.reason.is_empty())?;
    let reply = failed.replies.last()?;
    said(state, reply.text.as_ref().unwrap_or(&reply.transcript))
}

/// Where something that was said stands, if anything was.
fn said(state: &Path, transcript: &str) -> Option<String> {
    let path = state.join(transcript);
    let bytes = std::fs::metadata(&path).ok()?.len();
    (bytes > 0).then(|| format!("said: {}", path.display()))
}

/// What a command needs to find a run that is not where it would look by itself.
pub(crate) fn place(repo: Option<&Path>, state: Option<&Path>) -> String {
    let named = |flag: &str, path: Option<&Path>| match path {
        Some(path) => format!(" --{flag} {}", quoted(&path.display().to_string())),
        None => String::new(),
    };
    named("repo", repo) + &named("state", state)
}

/// The list of runs.
pub(crate) fn runs(runs: &[RunInfo]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let mut rows =
        vec![["RUN", "STARTED", "WORKFLOW", "OUTCOME", "STATE", "SPENT", "WHY"].map(str::to_owned)];
    let length = telling(runs);
    for run in runs {
        let summary = &run.summary;
        let usage = Usage {
            input_tokens: summary.input_tokens,
            output_tokens: summary.output_tokens,
            cost_usd: summary.cost_usd,
            wall_ms: summary.wall_ms,
        };
        let spent = cost(&usage);
        let cause = summary.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        rows.push([
            run.id.chars().take(length).collect(),
            date(run.created_at),
            run.workflow.clone(),
            format!("{}{cause}", outcome(run)),
            summary.state.clone(),
            spent.trim_start_matches(", ").to_owned(),
            one_line(&summary.reason),
        ]);
    }
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// How much of the ids tells the runs apart; their first part is the time.
fn telling(runs: &[RunInfo]) -> usize {
    const SHORTEST: usize = 13;
    let mut ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    ids.sort_unstable();
    let common = |pair: &[&str]| {
        pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b).count() + 1
    };
    ids.windows(2).map(common).max().unwrap_or(0).max(SHORTEST)
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

/// What came of putting back what a run brought in.
pub(crate) fn undone(undone: &Undone) -> String {
    let mut text = String::new();
    if undone.changed_since.is_empty() {
        let files = usize::try_from(undone.restored).unwrap_or(usize::MAX);
        let verb = if files == 1 { "is" } else { "are" };
        let _ = writeln!(text, "undone: {} {verb} as before", many(files, "file"));
    } else {
        text.push_str("nothing was put back: these files were changed since\n");
        for path in undone.changed_since.iter().take(REPEATED) {
            let _ = writeln!(text, "  {}", clean(path));
        }
        if undone.changed_since.len() > REPEATED {
            let _ = writeln!(text, "  … and {} more", undone.changed_since.len() - REPEATED);
        }
        text.push_str(
            "put them back as the run left them and undo again, or undo other workspaces by their names\n",
        );
    }
    for note in &undone.notes {
        let _ = writeln!(text, "note: {}", one_line(note));
    }
    text
}

/// A time, to the minute.
fn date(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
        .unwrap_or_default()
}

pub(crate) fn cost(usage: &Usage) -> String {
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

fn many(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A value where it must not take the line: of a long list or object only how long it is.
fn brief(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match value {
        Value::Array(items) if text.len() > LONGEST => format!("[{}]", many(items.len(), "item")),
        Value::Object(fields) if text.len() > LONGEST => {
            format!("{{{}}}", many(fields.len(), "field"))
        }
        _ if text.chars().count() > LONGEST => {
            text.chars().take(LONGEST - 1).chain(['…']).collect()
        }
        _ => text,
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 120 { text } else { text.chars().take(119).chain(['…']).collect() }
}

/// A text without what a terminal would act upon: control characters of an agent, or of a file's
/// name, must not reach it, nor may those that change the direction of writing.
fn clean(text: &str) -> String {
    let acts =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if acts(c) { ' ' } else { c }).collect()
}

fn one_line(text: &str) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 300 { line } else { line.chars().take(299).chain(['…']).collect() }
}
