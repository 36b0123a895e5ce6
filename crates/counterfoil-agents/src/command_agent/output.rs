//! Writes the output of a `command:` agent to the transcript, and reads it.

use super::events::EventParser;
use crate::adapters::{StreamParser, UsageMeter};
use crate::agent::PromptContext;
use crate::line_buffer::LineBuffer;
use crate::stderr_end::StderrEnd;
use counterfoil_flow::{Budget, Usage};
use counterfoil_process::{Output, OutputSink};
use std::ops::ControlFlow;

/// Writes the output of a program to the transcript, and reads it.
pub(super) struct OutputCollector<'r> {
    pub(super) context: &'r mut PromptContext,
    pub(super) read: Read,
    /// The end of standard error.
    pub(super) errors: StderrEnd,
}

/// What is kept of standard output.
pub(super) enum Read {
    /// As much of the text as the contract reads.
    Text { text: Vec<u8>, max_text: usize },
    /// What its events say.
    Events(Box<EventReader>),
}

/// Reads events.
pub(super) struct EventReader {
    pub(super) parser: EventParser,
    pub(super) lines: LineBuffer,
    /// The usage before this prompt.
    pub(super) before: UsageMeter,
    /// What this prompt may use.
    pub(super) budget: Budget,
    /// Why the program is stopped: it used what it may use, and goes on.
    pub(super) over_limit: Option<String>,
}

impl EventReader {
    fn push(&mut self, bytes: &[u8], activity: &dyn Fn(&str)) {
        let Self { parser, lines, before, budget, over_limit } = self;
        lines.push(bytes, |line| {
            if over_limit.is_none() && !parser.finished() {
                *over_limit = exceeded(&parser.meter().since(before), budget);
            }
            if let Some(text) = parser.on_line(line) {
                activity(&text);
            }
        });
        // The last event came together with the one that reached the limit.
        if self.parser.finished() {
            self.over_limit = None;
        }
    }
}

/// Which limit was reached.
fn exceeded(used: &Usage, budget: &Budget) -> Option<String> {
    let tokens = used.input_tokens.saturating_add(used.output_tokens);
    if let Some(most) = budget.tokens.filter(|most| tokens >= *most && tokens > 0) {
        return Some(format!("stopped at its limit: {tokens} of {most} tokens were used"));
    }
    let most = budget.cost_usd.filter(|most| used.cost_usd >= *most && used.cost_usd > 0.0)?;
    Some(format!("stopped at its limit: ${:.2} of ${most:.2} were used", used.cost_usd))
}

/// How much of the end of standard error is kept.
pub(super) const MAX_STDERR_BYTES: usize = 4096;

impl OutputSink for OutputCollector<'_> {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let activity = self.context.activity.clone();
        match output {
            Output::Stdout(bytes) => {
                match &mut self.read {
                    Read::Text { text, max_text } => {
                        let room = max_text.saturating_sub(text.len()).min(bytes.len());
                        text.extend_from_slice(&bytes[..room]);
                        show_last_line(bytes, &*activity);
                    }
                    Read::Events(reader) => reader.push(bytes, &*activity),
                }
                // Only standard output goes into the transcript: it is what the contract validates.
                if self.context.transcript.write(bytes).is_err() {
                    // The transcript keeps the error, and the worker reports it.
                    return ControlFlow::Break(());
                }
                if matches!(&self.read, Read::Events(reader) if reader.over_limit.is_some()) {
                    return ControlFlow::Break(());
                }
            }
            Output::Stderr(bytes) => {
                self.errors.push(bytes);
                show_last_line(bytes, &*activity);
            }
        }
        ControlFlow::Continue(())
    }

    fn finished(&self) -> bool {
        matches!(&self.read, Read::Events(reader) if reader.parser.finished())
    }
}

/// Passes the last line of some output to progress displays.
fn show_last_line(bytes: &[u8], activity: &dyn Fn(&str)) {
    let mut lines = bytes.split(|byte| *byte == b'\n').rev();
    if let Some(line) = lines.find(|line| !line.trim_ascii().is_empty()) {
        activity(String::from_utf8_lossy(&line[..line.len().min(400)]).trim());
    }
}
