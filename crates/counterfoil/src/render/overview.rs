//! A run on one screen: a line for each step that is over, what is in progress, and the outcome.

use super::event_lines::{EventFormatter, INDENT, OutputMode};
use super::lines;
use super::run_summary::Ending;
use super::text::one_line;
use super::timeline::program_line;
use crate::report::overview::{OverviewLine, Shown, Weight, fold};
use counterfoil_contract::diagnostic::Style;
use counterfoil_flow::{AttemptOutcome, Event, RunState, Workflow};
use std::fmt::Write;
use std::sync::Arc;

/// Collects the events of a run that its screen shows.
pub(crate) struct Overview {
    formatter: EventFormatter,
    style: Style,
    /// The line of the run itself.
    title: String,
    lines: Vec<OverviewLine>,
}

impl Overview {
    pub(crate) fn new(workflow: Option<Arc<Workflow>>, style: Style) -> Self {
        let mut formatter = EventFormatter::new(OutputMode::Overview, style);
        if let Some(workflow) = workflow {
            formatter.set_workflow(workflow);
        }
        Self { formatter, style, title: String::new(), lines: Vec::new() }
    }

    /// Adds the next event.
    pub(crate) fn on_event(&mut self, event: &Event, at: i64, run: &RunState) {
        // The line of an attempt that ended is the last that knows its agent.
        let program = match event {
            Event::AttemptEnded(ended) => {
                program_line(ended, self.formatter.agent(&ended.attempt), run)
            }
            _ => None,
        };
        let path = match event {
            Event::AttemptEnded(ended) => self.formatter.attempt_path(&ended.attempt),
            Event::RepairAsked { attempt, .. } => self.formatter.attempt_path(attempt),
            Event::Answered { question, .. } => question.clone(),
            _ => String::new(),
        };
        let Some(line) = self.formatter.event_line(event, at, run) else { return };
        let details = match event {
            Event::RunStarted(_) => {
                self.title = line;
                return;
            }
            // How it went from one step to the next is in the timeline.
            Event::TransitionTaken(_) | Event::RetryPlanned { .. } | Event::FannedOut { .. } => {
                return;
            }
            _ => self.formatter.details(event),
        };
        let is_refuted = details.iter().any(|detail| detail.starts_with('✗'));
        let weight = match event {
            _ if is_refuted => Weight::Trouble,
            // A command that failed is accepted, but its line says that it failed.
            Event::AttemptEnded(ended)
                if ended.outcome == AttemptOutcome::Accepted && !self.formatter.is_failure() =>
            {
                Weight::Finished
            }
            Event::AttemptEnded(_) => Weight::Trouble,
            Event::WorkspaceMerged { conflicts, .. } if !conflicts.is_empty() => Weight::Trouble,
            Event::WorkspaceMerged { .. } | Event::Answered { .. } | Event::RunResumed(_) => {
                Weight::Finished
            }
            _ => Weight::Notable,
        };
        // The screen names what is wrong with a step; its files are counted at the end.
        let marked = details.iter().filter(|detail| detail.starts_with(['✗', '○']));
        let mut text = line;
        for detail in marked.chain(&program) {
            let _ = write!(text, "\n{}", lines::line(INDENT, detail, self.style));
        }
        let rows = text.lines().count();
        self.lines.push(OverviewLine { path, text, rows, weight });
    }

    /// The screen: as many rows as the terminal has.
    pub(crate) fn finish(self, ending: &Ending<'_>, height: usize) -> String {
        let used = 4 + ending.render().lines().count() + self.formatter.open_attempts().count();
        self.folded(ending, height.saturating_sub(used))
    }

    /// This number of lines, those that matter, and the end. A long line counts as one.
    pub(crate) fn story(mut self, ending: &Ending<'_>, lines: usize) -> String {
        for line in &mut self.lines {
            line.rows = 1;
        }
        self.folded(ending, lines)
    }

    fn folded(self, ending: &Ending<'_>, rows: usize) -> String {
        let mut text = format!("{}\n", self.title);
        for shown in fold(&self.lines, rows) {
            match shown {
                Shown::Line(line) => {
                    let _ = writeln!(text, "{}", line.text);
                }
                Shown::Folded { count, paths } => {
                    let paths = one_line(&paths.join(", "));
                    let separator = if paths.is_empty() { "" } else { ": " };
                    let folded = format!("· … {count} finished{separator}{paths}");
                    let _ = writeln!(text, "{}", lines::line("        ", &folded, self.style));
                }
            }
        }
        for attempt in self.formatter.open_attempts() {
            let line = format!("· in progress: {attempt}");
            let _ = writeln!(text, "{}", lines::line("        ", &line, self.style));
        }
        text + "\n" + &ending.render()
    }
}
