//! The tool calls of an attempt, as its agent tells of them while it works.

use super::super::run::now::is_at_work;
use crate::activity::growing;
use crate::folders::RunPlace;
use crate::format::{self, Mark};
use crate::site::Site;
use crate::tool_calls::MAX_CALLS;
use askama::Template;
use counterfoil_engine::{Attempt, GrowingTranscript, RunReport, ToolCall, TranscriptCalls};
use std::collections::VecDeque;

/// The tool calls of an attempt: the last ones, oldest first.
#[derive(Default, Template)]
#[template(path = "attempt-calls.html")]
pub(super) struct Calls {
    is_agent: bool,
    rows: Vec<Row>,
    total: u64,
    /// The calls before the first one that is shown.
    earlier: u64,
    /// Why there are none.
    note: String,
    /// The bytes of transcripts that were not read yet.
    unread: u64,
    /// The transcripts: the number of the reply, and the address.
    transcripts: Vec<(usize, String)>,
}

struct Row {
    tool: String,
    target: String,
    mark: Mark,
    took: String,
}

/// What was read of the transcripts of an attempt.
#[derive(Default)]
struct Read {
    /// The last calls, oldest first.
    calls: VecDeque<ToolCall>,
    total: u64,
    unread: u64,
    has_events: bool,
    problem: String,
}

pub(super) fn calls(site: &Site, place: &RunPlace, report: &RunReport, attempt: &Attempt) -> Calls {
    if attempt.agent.is_none() {
        return Calls::default();
    }
    let id = format::attempt_id(&attempt.path, attempt.n);
    let is_running = is_at_work(attempt, report);
    let replies = attempt.replies.iter().enumerate().filter(|(_, reply)| reply.text.is_some());
    let mut transcripts: Vec<(usize, String)> =
        replies.map(|(at, reply)| (at + 1, reply.transcript.clone())).collect();
    // What an interrupted attempt wrote is in the same place.
    let growing = attempt.outcome.is_none().then(|| growing(place, &report.attempts, attempt));
    let number = attempt.replies.len() + 1;
    let found = growing.as_ref().and_then(GrowingTranscript::find);
    transcripts.extend(found.map(|(reference, _)| (number, reference)));
    let mut read = Read::default();
    let mut size = 0;
    for (of_reply, reference) in &transcripts {
        let added = site.tool_calls.read(place, reference, |calls| {
            read.add(calls);
            calls.read()
        });
        match added {
            Ok(bytes) if *of_reply == number => size = bytes,
            Ok(_) => {}
            Err(why) => read.problem = why.to_string(),
        }
    }
    site.tool_calls.watch(place, &id, growing.map(|growing| (growing, size)));
    let address = format!(
        "/api/v1/runs/{}/attempts/{}/replies",
        format::encode(&place.run),
        format::encode(&id)
    );
    Calls {
        is_agent: true,
        note: note(&read, transcripts.is_empty(), is_running),
        rows: read.calls.iter().map(|call| row(call, is_running)).collect(),
        total: read.total,
        earlier: read.total.saturating_sub(read.calls.len() as u64),
        unread: read.unread,
        transcripts: transcripts
            .into_iter()
            .map(|(number, _)| (number, format!("{address}/{number}/transcript")))
            .collect(),
    }
}

impl Read {
    /// Adds a transcript that follows those before.
    fn add(&mut self, calls: &TranscriptCalls) {
        self.calls.extend(calls.last().cloned());
        let beyond = self.calls.len().saturating_sub(MAX_CALLS);
        self.calls.drain(..beyond);
        self.total += calls.total();
        self.unread += calls.unread();
        self.has_events |= calls.has_events();
    }
}

/// Why there are no calls; empty if there are.
fn note(read: &Read, has_no_transcript: bool, is_running: bool) -> String {
    if !read.problem.is_empty() {
        return format!("A transcript cannot be read: {}", format::text(&read.problem));
    }
    let note = match (read.total > 0, read.has_events, is_running) {
        (true, _, _) => "",
        (_, _, true) if has_no_transcript => "The agent has told nothing yet.",
        (_, _, true) => "The agent has told of no tool call so far.",
        (_, true, false) => "The agent called no tool.",
        (_, false, false) => "This agent has no events that tell of tool calls.",
    };
    note.to_owned()
}

fn row(call: &ToolCall, is_running: bool) -> Row {
    Row {
        tool: format::cell(&call.call.tool),
        target: format::cell(&call.call.target),
        mark: format::call_outcome(call.outcome, is_running),
        took: call.duration_ms().map(format::duration).unwrap_or_default(),
    }
}
