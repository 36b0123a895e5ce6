//! The tool calls of a transcript: a list that grows with it. The dialect of a transcript is that of
//! the first event in it that some program writes.

use crate::acp;
use crate::adapters::call_events::{Call, CallEvent};
use crate::adapters::common::{Line, classify};
use crate::adapters::{Adapter, adapters};
use crate::line_buffer::LineBuffer;
use std::collections::{HashSet, VecDeque};

pub use crate::adapters::call_events::CallOutcome;

/// The most ids of calls that are remembered, so that no call counts twice.
const MAX_IDS: usize = 1 << 16;
/// The most lines that are read in search of a dialect.
const MAX_FOREIGN_LINES: u32 = 10_000;

/// A tool call of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// What is called, and with what.
    pub call: Call,
    /// How it ended, if it did.
    pub outcome: Option<CallOutcome>,
    /// When it ended, in milliseconds since 1970, if the events have times.
    pub ended_at: Option<i64>,
}

impl ToolCall {
    /// How long it took in milliseconds, if the events have times.
    pub fn duration_ms(&self) -> Option<u64> {
        u64::try_from(self.ended_at? - self.call.at?).ok()
    }
}

#[derive(Clone, Copy)]
enum Dialect {
    Program(&'static dyn Adapter),
    Protocol,
}

impl Dialect {
    fn all() -> impl Iterator<Item = Self> {
        adapters().iter().map(|adapter| Self::Program(*adapter)).chain([Self::Protocol])
    }

    fn call_events(self, object: &[u8]) -> Option<Vec<CallEvent>> {
        match self {
            Self::Program(adapter) => adapter.call_events(object),
            Self::Protocol => acp::call_events(object),
        }
    }
}

/// The last tool calls of a transcript, and the number of all.
pub struct ToolCalls {
    lines: LineBuffer,
    found: Found,
}

struct Found {
    dialect: Option<Dialect>,
    foreign_lines: u32,
    /// The last calls, oldest first.
    calls: VecDeque<ToolCall>,
    max: usize,
    total: u64,
    ids: HashSet<String>,
}

impl ToolCalls {
    /// Keeps at most `max` calls.
    pub fn new(max: usize) -> Self {
        let found = Found {
            dialect: None,
            foreign_lines: 0,
            calls: VecDeque::new(),
            max,
            total: 0,
            ids: HashSet::new(),
        };
        Self { lines: LineBuffer::default(), found }
    }

    /// Adds a further piece of the transcript.
    pub fn push(&mut self, piece: &[u8]) {
        let found = &mut self.found;
        self.lines.push(piece, |line| found.on_line(line));
    }

    /// The last calls, oldest first.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &ToolCall> {
        self.found.calls.iter()
    }

    /// The number of all calls.
    pub fn total(&self) -> u64 {
        self.found.total
    }

    /// Whether the transcript has events of a program that we know.
    pub fn has_events(&self) -> bool {
        self.found.dialect.is_some()
    }
}

impl Found {
    fn on_line(&mut self, line: &[u8]) {
        let Line::Object(object) = classify(line) else { return };
        let events = match self.dialect {
            Some(dialect) => dialect.call_events(object),
            None if self.foreign_lines >= MAX_FOREIGN_LINES => None,
            None => Dialect::all().find_map(|dialect| {
                let events = dialect.call_events(object)?;
                self.dialect = Some(dialect);
                Some(events)
            }),
        };
        if self.dialect.is_none() {
            self.foreign_lines = self.foreign_lines.saturating_add(1);
        }
        for event in events.into_iter().flatten() {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: CallEvent) {
        match event {
            CallEvent::Called(call) => self.called(call),
            CallEvent::Ended { id, outcome, at } => {
                // A call that was denied has an error as its result as well.
                if let Some(call) = self.known(&id)
                    && call.outcome != Some(CallOutcome::Denied)
                {
                    call.outcome = Some(outcome);
                    call.ended_at = at;
                }
            }
            CallEvent::IdsBeginAnew => {
                self.ids.clear();
                for known in &mut self.calls {
                    known.call.id = None;
                }
            }
        }
    }

    fn called(&mut self, call: Call) {
        if let Some(id) = &call.id {
            if self.ids.contains(id) {
                if let Some(known) = self.known(id)
                    && !call.target.is_empty()
                {
                    known.call.target = call.target;
                }
                return;
            }
            if self.ids.len() < MAX_IDS {
                self.ids.insert(id.clone());
            }
        }
        if self.calls.len() >= self.max {
            self.calls.pop_front();
        }
        self.calls.push_back(ToolCall { call, ..ToolCall::default() });
        self.total += 1;
    }

    /// A call by its id, if it is one of the last.
    fn known(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.calls.iter_mut().rev().find(|call| call.call.id.as_deref() == Some(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], max: usize) -> (Vec<String>, u64) {
        let mut calls = ToolCalls::new(max);
        for line in lines {
            let (one, other) = line.split_at(line.len() / 2);
            calls.push(one.as_bytes());
            calls.push(format!("{other}\n").as_bytes());
        }
        let shown = |call: &ToolCall| {
            let ToolCall { call: Call { tool, target, .. }, outcome, .. } = call;
            let took = call.duration_ms().map(|ms| format!(" {ms} ms")).unwrap_or_default();
            format!("{tool} ({target}) {outcome:?}{took}")
        };
        (calls.last().map(shown).collect(), calls.total())
    }

    #[test]
    fn calls_of_claude_code_have_targets_and_outcomes() {
        let (calls, total) = read(
            &[
                "a banner",
                r#"{"type":"system","subtype":"init"}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"2","name":"Edit","input":{"file_path":"a.rs"}}]}}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"3","name":"Web","input":{}}]}}"#,
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","is_error":true}]}}"#,
                r#"{"type":"system","subtype":"permission_denied","tool_use_id":"2"}"#,
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"2","is_error":true}]}}"#,
            ],
            9,
        );
        assert_eq!(calls, ["Bash (ls) Some(Failed)", "Edit (a.rs) Some(Denied)", "Web () None"]);
        assert_eq!(total, 3);
    }

    #[test]
    fn calls_of_codex_count_once_and_ids_of_another_process_are_others() {
        let started = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -lc 'cargo test'","status":"in_progress"}}"#;
        let (calls, total) = read(
            &[
                r#"{"type":"thread.started","thread_id":"t"}"#,
                started,
                r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -lc 'cargo test'","status":"failed"}}"#,
                r#"{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":[{"path":"a"},{"path":"b"}],"status":"completed"}}"#,
                r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"x"}}"#,
                r#"{"type":"thread.started","thread_id":"u"}"#,
                started,
            ],
            9,
        );
        assert_eq!(
            calls,
            [
                "command (cargo test) Some(Failed)",
                "edit (a and 1 more) Some(Succeeded)",
                "command (cargo test) None"
            ]
        );
        assert_eq!(total, 3);
    }

    #[test]
    fn calls_of_gemini_have_durations() {
        let (calls, _) = read(
            &[
                r#"{"type":"init","session_id":"s"}"#,
                r#"{"type":"tool_use","timestamp":"2026-11-15T16:16:40.810Z","tool_name":"write_file","tool_id":"1","parameters":{"file_path":"a.txt"}}"#,
                r#"{"type":"tool_result","timestamp":"2026-11-15T16:16:41.107Z","tool_id":"1","status":"success"}"#,
            ],
            9,
        );
        assert_eq!(calls, ["write_file (a.txt) Some(Succeeded) 297 ms"]);
    }

    #[test]
    fn calls_of_the_protocol_are_read_from_updates() {
        let update = |update: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
            )
        };
        let (calls, total) = read(
            &[
                r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#,
                &update(
                    r#"{"sessionUpdate":"tool_call","toolCallId":"a","title":"Read a.rs","name":"read"}"#,
                ),
                &update(
                    r#"{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}"#,
                ),
            ],
            9,
        );
        assert_eq!(calls, ["read (Read a.rs) Some(Succeeded)"]);
        assert_eq!(total, 1);
    }

    #[test]
    fn only_the_last_calls_are_kept_and_all_are_counted() {
        let lines: Vec<String> = (0..500)
            .map(|n| format!(r#"{{"type":"tool_use","tool_name":"t{n}","tool_id":"{n}"}}"#))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (calls, total) = read(&lines, 2);
        assert_eq!(
            (calls, total),
            (vec!["t498 () None".to_owned(), "t499 () None".to_owned()], 500)
        );
    }

    #[test]
    fn what_no_program_writes_has_no_events() {
        let mut calls = ToolCalls::new(9);
        calls.push(b"plain text\n{\"kind\":\"own\"}\n[1]\n{\n");
        assert!(!calls.has_events());
        calls.push(b"{\"type\":\"system\",\"subtype\":\"init\"}\n");
        assert!(calls.has_events());
    }
}
