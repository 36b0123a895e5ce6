//! The events of a run as lines: while the run is in progress, and in the timeline afterwards.

use super::claims::{Explained, attempt_details, repair_details};
use super::lines;
use super::text::timestamp;
use counterfoil_contract::diagnostic::Style;
pub(crate) use counterfoil_engine::event_text::OutputMode;
use counterfoil_engine::event_text::{EventText, beginning};
use counterfoil_flow::{Event, RunState, Workflow};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The indentation of details below an event; as wide as the clock.
pub(crate) const INDENT: &str = "          ";

/// Formats the events of a run, in order.
#[derive(Debug)]
pub(crate) struct EventFormatter {
    text: EventText,
    style: Style,
    started_at: i64,
    /// Whether the text of the last event with a line is about a failure.
    is_failure: bool,
    /// The claims that were explained below the replies of each attempt in progress.
    explained: BTreeMap<String, Explained>,
}

impl EventFormatter {
    /// A formatter for a run that is in progress or over.
    pub(crate) fn new(mode: OutputMode, style: Style) -> Self {
        let text = EventText::new(mode);
        Self { text, style, started_at: 0, is_failure: false, explained: BTreeMap::new() }
    }

    /// Learns from an event of an earlier process, without a line.
    pub(crate) fn on_past_event(&mut self, event: &Event) {
        self.text.on_past_event(event);
    }

    /// The title of an attempt in progress.
    pub(crate) fn title(&self, attempt: &str) -> String {
        self.text.title(attempt)
    }

    /// Sets the workflow of the run.
    pub(crate) fn set_workflow(&mut self, workflow: Arc<Workflow>) {
        self.text.set_workflow(workflow);
    }

    /// The titles of the attempts that started and have not ended.
    pub(crate) fn open_attempts(&self) -> impl Iterator<Item = String> {
        self.text.open_attempts()
    }

    /// The path of an attempt in progress.
    pub(crate) fn attempt_path(&self, attempt: &str) -> String {
        self.text.attempt_path(attempt)
    }

    /// The agent of an attempt in progress.
    pub(crate) fn agent(&self, attempt: &str) -> Option<&str> {
        self.text.agent(attempt)
    }

    /// The line of an event, if it has one.
    pub(crate) fn event_line(&mut self, event: &Event, at: i64, run: &RunState) -> Option<String> {
        if let Some((what, because)) = beginning(event, &run.run, &run.workflow) {
            self.started_at = match event {
                Event::RunStarted(_) => at,
                _ => run.started_at,
            };
            let beginning = format!("{what}, {}{because}", timestamp(at));
            return Some(lines::line("", &beginning, self.style));
        }
        let text = self.text.message(event, at, run)?;
        self.is_failure = text.starts_with('✗');
        let clock = format!("{} ", clock(at.saturating_sub(self.started_at)));
        // The lines of a text that continues have no clock of their own.
        let beside = " ".repeat(clock.len());
        let all = text.lines().map(|line| {
            let prefix = if line.starts_with(' ') { &beside } else { &clock };
            lines::line(prefix, line, self.style)
        });
        Some(all.collect::<Vec<_>>().join("\n"))
    }

    /// Whether the last line says that something failed.
    pub(crate) fn is_failure(&self) -> bool {
        self.is_failure
    }

    /// The lines below that of an event: below the end of an attempt its changes and claims, below a
    /// requested repair the claims that it is requested for.
    pub(crate) fn details(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::AttemptEnded(ended) => {
                let mut explained = self.explained.remove(&ended.attempt).unwrap_or_default();
                attempt_details(ended, &mut explained)
            }
            Event::RepairAsked { attempt, claims, .. } => {
                repair_details(claims, self.explained.entry(attempt.clone()).or_default())
            }
            _ => Vec::new(),
        }
    }

    /// The lines of an event while the run is in progress, with those below it.
    pub(crate) fn event_lines(&mut self, event: &Event, at: i64, run: &RunState) -> Option<String> {
        let mut text = self.event_line(event, at, run)?;
        for line in self.details(event) {
            let _ = write!(text, "\n{}", lines::line(INDENT, &line, self.style));
        }
        Some(text)
    }
}

/// The time since the run started, as `h:mm:ss`.
fn clock(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60)
}
