//! The last lines of a run: how it ended, what went wrong, what to do next.

use super::text::{one_line, shell_quote, timestamp, usage_suffix};
use super::{claims, lines};
use crate::cli::StateLocation;
use crate::hint::budget_flag;
use crate::report::run::{self, RunFiles};
use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::text::{join_limited, pluralize};
use counterfoil_engine::event_text::attempt_title;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::lists;
use counterfoil_engine::trouble::{self, Trouble};
use counterfoil_engine::{Attempt, Question, RunReport};
use std::fmt::Write;
use std::path::Path;

/// The name of this program in commands, where it is on the `PATH`.
pub(crate) const PROGRAM: &str = "counterfoil";
/// The number of problems that are repeated at the end.
const MAX_TROUBLE: usize = 10;
/// The number of undone steps that are named at the end.
const MAX_STEPS: usize = 5;
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

/// The end of a run: what its last lines say.
pub(crate) struct Ending<'a> {
    /// The program that commands name, quoted for a shell.
    pub(crate) program: &'a str,
    pub(crate) report: &'a RunReport,
    pub(crate) entries: &'a [Entry],
    /// The folder with the transcripts; none if they are on another machine.
    pub(crate) state: Option<&'a Path>,
    /// The options that commands need to find the run.
    pub(crate) flags: &'a str,
    pub(crate) style: Style,
    /// The option of `show` with which it shows more than was printed above.
    pub(crate) more: &'static str,
    /// The option of commands that continue the run with which they notify as before; empty if nobody
    /// was notified.
    pub(crate) notify: &'a str,
}

impl Ending<'_> {
    /// The outcome and why, the trouble once more, claims, files, what it took, and what to do next.
    pub(crate) fn render(&self) -> String {
        let Self { program, report, entries, flags, style, notify, .. } = self;
        let headline = headline(report);
        let mut text = lines::lines("", &headline, *style);
        if let Some(line) = failing_output(report, self.state) {
            text += &lines::lines("  ", &line, *style);
        }
        text += &self.trouble(headline);
        if let Some(totals) = &report.claims {
            text += &lines::lines("", &claims::totals(totals), *style);
        }
        let files = run::files(report);
        if files.total > 0 {
            text += &lines::lines("", &files_line(&files), *style);
        }
        text += &lines::lines("", &figures(report), *style);
        for history in [reopenings(report), undoings(report), interruptions(report)] {
            text += &lines::lines("", &history, *style);
        }
        // Commands are not wrapped, so that they can be copied.
        let _ = writeln!(text, "details: {program} show {}{flags}{}", report.run, self.more);
        if !entries.is_empty() {
            let _ = writeln!(text, "evidence: {program} show {}{flags} --claims", report.run);
        }
        // A run is resumed where it is.
        let is_here = self.state.is_some();
        if report.reopenable && is_here {
            let more = report.used_up.map(|part| format!(" {}", budget_flag(part)));
            let more = more.unwrap_or_default();
            let _ = writeln!(text, "reopen: {program} resume {}{flags}{notify}{more}", report.run);
        } else if report.resumable
            && is_here
            && matches!(shown_outcome(report), "answered" | "interrupted")
        {
            let _ = writeln!(text, "continue: {program} resume {}{flags}{notify}", report.run);
        }
        text + &questions(program, &report.run, &report.questions, &format!("{flags}{notify}"))
    }

    /// The trouble that the headline does not name.
    fn trouble(&self, headline: String) -> String {
        let trouble = trouble::trouble(self.report, self.entries);
        let failed = failing_attempt(self.report).map(|attempt| (attempt, headline));
        let trouble = trouble_lines(&trouble, failed);
        let mut text = String::new();
        // The last ones matter most.
        let hidden = trouble.len().saturating_sub(MAX_TROUBLE);
        if hidden > 0 {
            let _ = writeln!(
                text,
                "  … and {hidden} more: {} show {}{} --trouble",
                self.program, self.report.run, self.flags
            );
        }
        for one in &trouble[hidden..] {
            text += &lines::lines("  ", one, self.style);
        }
        text
    }
}

/// Something that went wrong, on a line that begins with its mark.
pub(super) fn trouble_line(trouble: &Trouble<'_>) -> String {
    let of = |entry: &Entry| {
        let title =
            attempt_title(&entry.path.join("/"), entry.agent.as_deref(), None, entry.place());
        let line = claims::marked_verdict_line(&entry.claim);
        let (mark, line) = line.split_once(' ').unwrap_or_default();
        format!("{mark} {title}: {line}")
    };
    match trouble {
        Trouble::Failed(attempt) => {
            let outcome = attempt.ending().unwrap_or_default();
            let title = attempt_title(
                &attempt.path.join("/"),
                attempt.agent.as_deref(),
                attempt.builtin.as_ref(),
                attempt.place(),
            );
            format!("✗ {title}: {outcome}: {}", one_line(&attempt.why()))
        }
        Trouble::Refuted(entry) if entry.corrected => {
            let line = of(entry);
            format!("↺{}; corrected later", line.trim_start_matches('✗'))
        }
        Trouble::Refuted(entry) | Trouble::Unverifiable(entry) => of(entry),
        Trouble::Corrected(attempt) => {
            let line = trouble_line(&Trouble::Failed(attempt));
            let later = match attempt.failure() {
                Some(_) => "a later attempt succeeded",
                None => "a later attempt was accepted",
            };
            format!("↺{}; {later}", line.trim_start_matches('✗'))
        }
    }
}

/// Everything that went wrong in a run, whether or not it was corrected.
pub(crate) fn trouble(trouble: &[Trouble<'_>], style: Style) -> String {
    if trouble.is_empty() {
        return "nothing went wrong\n".to_owned();
    }
    trouble_lines(trouble, None).iter().map(|one| lines::lines("", one, style)).collect()
}

/// A line for each trouble. A claim that the line of its failed attempt names has none of its own, and
/// the same line of several replies stands there once. `failed` is an attempt that was named before,
/// with its line.
fn trouble_lines(trouble: &[Trouble<'_>], failed: Option<(&Attempt, String)>) -> Vec<String> {
    let mut named: Vec<(&Attempt, String)> = failed.into_iter().collect();
    let mut all: Vec<String> = Vec::new();
    for one in trouble {
        let line = trouble_line(one);
        let is_named = match one {
            Trouble::Failed(attempt) | Trouble::Corrected(attempt) => {
                named.push((*attempt, line.clone()));
                false
            }
            Trouble::Refuted(entry) | Trouble::Unverifiable(entry) => {
                let claim = claims::mismatch_line(&entry.claim);
                named.iter().any(|(attempt, line)| {
                    attempt.path == entry.path && attempt.n == entry.n && line.contains(&claim)
                })
            }
        };
        if !is_named && !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

fn files_line(files: &RunFiles) -> String {
    let count = if files.is_uncounted { "more than " } else { "" };
    format!("files: {count}{} changed{}", files.total, claims::names(files))
}

/// The outcome as people read it: what can be resumed was interrupted rather than cancelled.
fn shown_outcome(report: &RunReport) -> &str {
    match report.outcome.as_str() {
        "cancelled" if report.resumable => "interrupted",
        outcome => outcome,
    }
}

/// The outcome in one line, with its mark.
pub(super) fn headline(report: &RunReport) -> String {
    let mark = match shown_outcome(report) {
        "done" => "✓",
        "waiting" => "?",
        "running" => "·",
        "answered" | "interrupted" => "○",
        _ => "✗",
    };
    let cause = report.cause.map(|cause| format!(" ({})", cause.name())).unwrap_or_default();
    let reason = match report.outcome.as_str() {
        // The questions follow.
        "waiting" => " for an answer".to_owned(),
        _ if report.reason.is_empty() => String::new(),
        _ => format!(": {}", one_line(&report.reason)),
    };
    // A final state often has the name of the outcome.
    let state = if report.state == report.outcome {
        String::new()
    } else {
        format!(" in state '{}'", report.state)
    };
    format!("{mark} {}{cause}{state}{reason}", shown_outcome(report))
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

/// By whom and when files that the run changed were put back to what they were.
fn undoings(report: &RunReport) -> String {
    let mut text = String::new();
    for undone in &report.undone {
        let files = pluralize(usize::try_from(undone.files).unwrap_or(usize::MAX), "file");
        let _ = writeln!(
            text,
            "undone by {} at {}: {files} of {}",
            one_line(&undone.by),
            timestamp(undone.at),
            one_line(&join_limited(&undone.steps, MAX_STEPS))
        );
    }
    text
}

/// When the process of the run ended in the middle of a step, and who took the run up.
fn interruptions(report: &RunReport) -> String {
    let mut text = String::new();
    for interrupted in &report.interrupted {
        let _ = writeln!(
            text,
            "interrupted: its process ended after {}; taken up by {} at {}",
            timestamp(interrupted.after),
            interrupted.taken_up_by,
            timestamp(interrupted.taken_up_at)
        );
    }
    text
}

/// The open questions, with the commands that answer them.
pub(crate) fn questions(program: &str, run: &str, questions: &[Question], flags: &str) -> String {
    let run = shell_quote(run);
    let mut text = String::new();
    for question in questions {
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
                "    {program} answer {run} {} {answer} --resume{flags}",
                shell_quote(&question.id)
            );
        }
        if question.choices.len() > MAX_ANSWER_COMMANDS {
            let choices: Vec<String> =
                question.choices.iter().map(|choice| shell_quote(choice)).collect();
            let _ = writeln!(text, "    CHOICE is one of: {}", choices.join(", "));
        }
        if !question.choices.is_empty() {
            let _ =
                writeln!(text, "    your words may follow the choice: … CHOICE \"WORDS\" --resume");
        }
        if let Some(pattern) = &question.pattern {
            let _ = writeln!(text, "    TEXT must match {pattern}");
        }
    }
    text
}

/// What is missing of `answer RUN WORD`, where the word may be a question or an answer, and the commands
/// that answer the open questions.
pub(crate) fn without_answer(run: &str, open: &[Question], word: &str, flags: &str) -> String {
    let ids = lists::named(open.iter().map(|question| question.id.as_str()), word);
    let is_named = |question: &&Question| ids.contains(&question.id.as_str());
    let named: Vec<Question> = open.iter().filter(is_named).cloned().collect();
    let (head, shown) = match (ids.as_slice(), open) {
        ([id], _) => (format!("give the answer to '{id}'"), named.as_slice()),
        ([], []) => return format!("run {run} has no open question"),
        ([], _) => (format!("'{word}' is not an open question of run {run}; open"), open),
        _ => (format!("'{word}' may be one of several questions"), named.as_slice()),
    };
    let shown = questions(PROGRAM, run, shown, flags);
    // It is an error, whose further lines are indented: others are taken for a part of a name.
    let lines = shown.trim_end().lines().map(|line| if line.is_empty() { "  " } else { line });
    format!("{head}:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// A question as it is asked at the terminal: its whole text, the choices by number, and what an answer
/// must look like.
pub(crate) fn question_prompt(question: &Question, style: Style) -> String {
    let optional = if question.optional { " (optional)" } else { "" };
    let mut text =
        format!("\n{}", lines::lines("", &format!("? {}{optional}", question.id), style));
    for line in question.question.trim().lines() {
        text += &lines::lines("  ", line.trim_end(), style);
    }
    for (index, choice) in question.choices.iter().enumerate() {
        text += &lines::lines("  ", &format!("{}  {choice}", index + 1), style);
    }
    let hint = match (question.choices.len(), &question.pattern) {
        (0, None) => "type the answer".to_owned(),
        (0, Some(pattern)) => format!("type the answer; it must match {pattern}"),
        _ => "type a number, or a choice and your words: CHOICE: WORDS".to_owned(),
    };
    text + &lines::lines("  ", &format!("{hint}; an empty line leaves it open"), style)
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

/// The attempt that made the run fail: the headline has its reason.
fn failing_attempt(report: &RunReport) -> Option<&Attempt> {
    let mut all = report.attempts.iter().chain(&report.commands);
    all.rfind(|attempt| attempt.why() == report.reason && !report.reason.is_empty())
}

/// The file with the output of the attempt that made the run fail.
fn failing_output(report: &RunReport, state: Option<&Path>) -> Option<String> {
    let reply = failing_attempt(report)?.replies.last()?;
    output_file(state, reply.text.as_ref().unwrap_or(&reply.transcript))
}

/// The line that names the file with all that an agent or a command printed, if there is one here and it is not empty.
pub(super) fn output_file(state: Option<&Path>, transcript: &str) -> Option<String> {
    let path = state?.join(transcript);
    let bytes = std::fs::metadata(&path).ok()?.len();
    (bytes > 0).then(|| format!("full output: {}", path.display()))
}

/// The options with which a command finds a run that is not in the default location.
pub(crate) fn location_flags(location: &StateLocation) -> String {
    let flag = |name: &str, path: Option<&Path>| match path {
        Some(path) => format!(" --{name} {}", shell_quote(&path.display().to_string())),
        None => String::new(),
    };
    flag("repo", location.repo.as_deref()) + &flag("state", location.state.as_deref())
}
