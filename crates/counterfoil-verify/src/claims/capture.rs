//! Captures the output of a check.

use super::Figures;
use super::passes;
use super::runner::{Runner, Unfinished};
use super::unittest;
use crate::config::CheckCommand;
use counterfoil_process::{Output, OutputSink};
use std::ops::ControlFlow;

/// The maximum length of the output in the evidence. The end of the output is kept.
const MAX_TAIL_BYTES: usize = 4 << 10;
/// The maximum number of bytes of the output that an excerpt is made of, from its end.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// The maximum number of bytes of each stream that are searched for figures, from its end.
const MAX_STREAM_BYTES: usize = 1 << 20;

/// Captures the output of a check: its end as evidence, and a longer part of each stream for
/// figures.
#[derive(Default)]
pub(super) struct OutputCapture {
    /// The end of both streams, as they arrived.
    output: Vec<u8>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl OutputSink for OutputCapture {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        let (bytes, stream) = match output {
            Output::Stdout(bytes) => (bytes, &mut self.stdout),
            Output::Stderr(bytes) => (bytes, &mut self.stderr),
        };
        append_bounded(stream, bytes, MAX_STREAM_BYTES);
        append_bounded(&mut self.output, bytes, MAX_OUTPUT_BYTES);
        ControlFlow::Continue(())
    }
}

/// Appends bytes and keeps only the last `max` bytes. The buffer may grow to twice that length
/// before it is cut, so that each byte moves at most once.
fn append_bounded(end: &mut Vec<u8>, bytes: &[u8], max: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(max)..];
    end.extend_from_slice(bytes);
    if end.len() > 2 * max {
        end.drain(..end.len() - max);
    }
}

impl OutputCapture {
    pub(super) fn tail(&self) -> String {
        self.end(MAX_TAIL_BYTES)
    }

    pub(super) fn output(&self) -> String {
        self.end(MAX_OUTPUT_BYTES)
    }

    /// At most `max` bytes of the end of the output, as plain text.
    fn end(&self, max: usize) -> String {
        let cut = self.output.len().saturating_sub(max);
        // Do not start in the middle of a character.
        let from =
            (cut..self.output.len()).find(|at| self.output[*at] & 0xc0 != 0x80).unwrap_or(cut);
        let from = if cut > 0 { next_line(&self.output, from) } else { from };
        let text = String::from_utf8_lossy(&self.output[from..]).replace("\r\n", "\n");
        let lines = text.split('\n').map(|line| {
            let line = super::figures::strip_ansi(line);
            line.chars().filter(|c| *c == '\t' || !c.is_control()).collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// What was written to standard error, from its beginning unless it is long.
    pub(super) fn first_errors(&self) -> String {
        let errors = &self.stderr[..self.stderr.len().min(MAX_TAIL_BYTES)];
        String::from_utf8_lossy(errors).into_owned()
    }

    pub(super) fn last_line(&self) -> Option<String> {
        let tail = self.tail();
        let last = tail.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(super::format::truncate(last, 200))
    }

    /// The figures that the command printed.
    pub(super) fn figures(&self, run: &CheckCommand) -> Option<Figures> {
        let (stdout, stderr) = (stream_end(&self.stdout), stream_end(&self.stderr));
        let errors = String::from_utf8_lossy(stderr);
        // unittest prints one summary, on standard error. Others are from tests.
        if Runner::of(run) == Some(Runner::Unittest) {
            let is_only = unittest::summaries(&errors).len() == 1;
            return unittest::at_end(&errors).filter(|_| is_only).map(|summary| summary.figures);
        }
        let printed = Figures::from_output(stdout);
        match (printed, unittest::at_end(&errors).map(|summary| summary.figures)) {
            // Which of them is printed by a test is not known.
            (Some(one), Some(other)) if one != other => None,
            (one, other) => one.or(other).or_else(|| Figures::from_output(stderr)),
        }
    }

    /// Whether tests may have passed that the counts of the check do not tell of: it may have called
    /// several runners, and its report may be of one of them.
    pub(super) fn may_have_passes(&self, run: &CheckCommand, is_reported: bool) -> bool {
        let stdout = String::from_utf8_lossy(stream_end(&self.stdout));
        let stderr = String::from_utf8_lossy(stream_end(&self.stderr));
        let is_one_run = Runner::of(run).is_some() && !is_reported;
        passes::has_other_program(&stdout, &stderr)
            || !is_one_run && (passes::are_in(&stdout) || passes::are_in(&stderr))
    }

    /// How a run that exited with 0 did not end as a test run does. Of a long output, the end is not
    /// enough to tell.
    pub(super) fn unfinished(&self, run: &CheckCommand) -> Option<Unfinished> {
        let runner = Runner::of(run)?;
        if self.stdout.len().max(self.stderr.len()) >= MAX_STREAM_BYTES {
            return None;
        }
        let stdout = String::from_utf8_lossy(&self.stdout);
        runner.unfinished(&stdout, &String::from_utf8_lossy(&self.stderr))
    }
}

/// Where the next line begins, or the same place if there is none. Nobody recognises a secret by its
/// end, so that what is left of a line is not kept.
fn next_line(bytes: &[u8], from: usize) -> usize {
    let begin =
        bytes[from..].iter().position(|byte| *byte == b'\n').map_or(from, |at| from + at + 1);
    if bytes[begin..].trim_ascii().is_empty() { from } else { begin }
}

/// The part of a stream that is searched for figures.
fn stream_end(stream: &[u8]) -> &[u8] {
    &stream[stream.len().saturating_sub(MAX_STREAM_BYTES)..]
}
