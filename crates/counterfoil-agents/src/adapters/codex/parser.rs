//! Parses the events of `codex exec --json`.

use super::error_text;
use super::tools::{
    Command, Edit, Failed, Plan, Search, ServerCall, ToolMessage, denied_in_stderr,
};
use crate::adapters::common::{
    Line, StreamAnomalies, Turn, activity_line, classify, push_note, truncate,
};
use crate::adapters::{
    Failure, ParsedReply, ReplyProgress, StreamEnd, StreamParser, UsageMeter, Verdict,
};
use counterfoil_flow::AttemptOutcome;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Codex waits for a network without end, and reports this after some seconds and then every
/// minute. After this many reports in a row, which takes more than a minute, the reply has failed.
const MAX_NETWORK_WAITS: usize = 5;

/// The items that only occur after the server was reached.
const WORK_ITEMS: [&str; 6] = [
    "agent_message",
    "reasoning",
    "command_execution",
    "mcp_tool_call",
    "file_change",
    "web_search",
];

/// The items that are calls of tools.
const CALL_ITEMS: [&str; 4] = ["command_execution", "mcp_tool_call", "file_change", "web_search"];

/// The state of the parser.
pub(super) struct CodexParser {
    zone: TimeZone,
    conversation: Option<String>,
    text: String,
    /// Whether a tool of others was called after that text.
    text_is_old: bool,
    turn: Turn,
    end: Option<TurnEnd>,
    usage: Option<Usage>,
    /// The last error message.
    last_error: Option<String>,
    /// How often in a row it reported that it waits for a network.
    network_waits: usize,
    denied: Vec<String>,
    anomalies: StreamAnomalies,
}

/// The final event.
#[derive(Clone)]
enum TurnEnd {
    Completed,
    Failed(Option<String>),
}

/// The kind of an event or an item.
#[derive(Deserialize)]
struct Kind<'l> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'l, str>,
}

#[derive(Deserialize)]
struct Started {
    thread_id: String,
}

#[derive(Deserialize)]
struct Completed {
    usage: Usage,
}

#[derive(Clone, Copy, Deserialize)]
struct Usage {
    /// Includes tokens from a cache.
    input_tokens: u64,
    /// Includes tokens for reasoning.
    output_tokens: u64,
}

#[derive(Deserialize)]
struct FailedTurn {
    error: ErrorMessage,
}

#[derive(Deserialize)]
struct ErrorMessage {
    message: String,
}

#[derive(Deserialize)]
struct Message {
    text: String,
}

/// A tool call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolCall {
    id: String,
    tool: String,
}

#[derive(Deserialize)]
struct ItemEvent<T> {
    item: T,
}

impl CodexParser {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            conversation: None,
            text: String::new(),
            text_is_old: false,
            turn: Turn::default(),
            end: None,
            usage: None,
            last_error: None,
            network_waits: 0,
            denied: Vec::new(),
            anomalies: StreamAnomalies::default(),
        }
    }

    /// Parses an event. A failure is noted, because something important may be lost.
    fn parse_event<T: DeserializeOwned>(&mut self, kind: &str, line: &str) -> Option<T> {
        serde_json::from_str(line).map_err(|why| self.anomalies.unexpected_shape(kind, &why)).ok()
    }

    fn event(&mut self, kind: &str, line: &str) -> Option<String> {
        match kind {
            "thread.started" => {
                let id = self.parse_event::<Started>(kind, line)?.thread_id;
                match &self.conversation {
                    Some(first) if *first != id => {
                        self.anomalies
                            .note(format!("a second conversation started: {}", truncate(&id, 80)));
                    }
                    Some(_) => {}
                    None => self.conversation = Some(id),
                }
                None
            }
            "turn.started" => {
                self.text.clear();
                self.turn.forget();
                self.network_waits = 0;
                None
            }
            "turn.completed" => {
                self.end_turn(TurnEnd::Completed);
                if let Some(completed) = self.parse_event::<Completed>(kind, line) {
                    self.usage = Some(completed.usage);
                }
                None
            }
            "turn.failed" => {
                let message =
                    self.parse_event::<FailedTurn>(kind, line).map(|failed| failed.error.message);
                let activity = message.as_deref().and_then(activity_line);
                self.end_turn(TurnEnd::Failed(message));
                activity
            }
            "error" => {
                let message = self.parse_event::<ErrorMessage>(kind, line)?.message;
                if message.contains("waiting for network") {
                    self.network_waits += 1;
                }
                let activity = activity_line(&message);
                self.last_error = Some(message);
                activity
            }
            "item.started" | "item.updated" | "item.completed" => {
                let item = serde_json::from_str::<ItemEvent<Kind>>(line);
                let item =
                    item.map_err(|why| self.anomalies.unexpected_shape(kind, &why)).ok()?.item.kind;
                self.item(&item, kind == "item.completed", line)
            }
            _ => None,
        }
    }

    fn item(&mut self, kind: &str, completed: bool, line: &str) -> Option<String> {
        if WORK_ITEMS.contains(&kind) {
            self.network_waits = 0;
        }
        if CALL_ITEMS.contains(&kind)
            && let Ok(call) = serde_json::from_str::<ItemEvent<ToolCall>>(line)
        {
            if self.turn.call(&call.item.tool, Some(&call.item.id)) {
                self.text_is_old = true;
            } else {
                // What was written before the result was submitted is not the final text.
                self.turn.message(std::mem::take(&mut self.text));
            }
            if completed {
                self.turn.result(&call.item.id);
            }
        }
        match kind {
            "agent_message" => {
                let text = self.parse_event::<ItemEvent<Message>>(kind, line)?.item.text;
                let activity = activity_line(&text);
                if completed {
                    let before = std::mem::replace(&mut self.text, text);
                    if !std::mem::take(&mut self.text_is_old) {
                        self.turn.message(before);
                    }
                }
                activity
            }
            "reasoning" => {
                activity_line(&self.parse_event::<ItemEvent<Message>>(kind, line)?.item.text)
            }
            "command_execution" => {
                let command = self.parse_event::<ItemEvent<Command>>(kind, line)?.item;
                if completed && let Some(denied) = command.denied() {
                    push_note(&mut self.denied, denied);
                }
                command.activity()
            }
            "mcp_tool_call" => {
                let call = self.parse_event::<ItemEvent<ServerCall>>(kind, line)?.item;
                match call.failed() {
                    Some(Failed::Denied(why)) => push_note(&mut self.denied, why),
                    Some(Failed::Other(why)) => self.anomalies.note(why),
                    None => {}
                }
                call.activity()
            }
            "file_change" => {
                let edit = self.parse_event::<ItemEvent<Edit>>(kind, line)?.item;
                if let Some(denied) = edit.denied() {
                    push_note(&mut self.denied, denied);
                }
                edit.activity()
            }
            "web_search" => self.parse_event::<ItemEvent<Search>>(kind, line)?.item.activity(),
            "todo_list" => self.parse_event::<ItemEvent<Plan>>(kind, line)?.item.activity(),
            // A warning, despite its name: the turn continues.
            "error" => {
                let message = self.parse_event::<ItemEvent<ToolMessage>>(kind, line)?.item.message;
                self.anomalies.note(format!("it reports: {}", truncate(&message, 200)));
                activity_line(&message)
            }
            _ => None,
        }
    }

    fn end_turn(&mut self, end: TurnEnd) {
        self.network_waits = 0;
        if self.end.replace(end).is_some() {
            self.anomalies.note("there was more than one final event; the last one counts");
        }
    }

    fn verdict(&mut self, end: &StreamEnd<'_>) -> Verdict {
        match self.end.take() {
            Some(TurnEnd::Completed) => Verdict::Complete,
            Some(TurnEnd::Failed(message)) => {
                let message = message.or(self.last_error.take()).unwrap_or_default();
                Verdict::Failed(error_text::failure(&message, end.at, &self.zone))
            }
            None if self.network_waits >= MAX_NETWORK_WAITS => {
                let message = self.last_error.take().unwrap_or_default();
                let reason =
                    format!("it cannot reach its model's server: {}", truncate(&message, 300));
                Verdict::Failed(Failure::new(AttemptOutcome::Transport, reason))
            }
            None => {
                if let Some(message) = self.last_error.take() {
                    let message = truncate(&message, 300);
                    self.anomalies.note(format!("its last message was: {message}"));
                }
                error_text::failure_to_start(end.errors).map_or(Verdict::Missing, Verdict::Failed)
            }
        }
    }
}

impl StreamParser for CodexParser {
    fn on_line(&mut self, line: &[u8]) -> Option<String> {
        let object = match classify(line) {
            Line::Blank => return None,
            Line::Other(other) => {
                self.anomalies.non_event(other);
                return None;
            }
            Line::Object(object) => String::from_utf8_lossy(object),
        };
        let Ok(Kind { kind }) = serde_json::from_str::<Kind>(&object) else {
            self.anomalies.non_event(object.as_bytes());
            return None;
        };
        self.event(&kind, &object)
    }

    fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    fn progress(&self) -> ReplyProgress<'_> {
        let (calls, open_call) = self.turn.progress();
        ReplyProgress { model: None, calls, open_call }
    }

    fn finished(&self) -> bool {
        self.end.is_some() || self.network_waits >= MAX_NETWORK_WAITS
    }

    fn finish(mut self: Box<Self>, end: &StreamEnd<'_>) -> ParsedReply {
        let verdict = self.verdict(end);
        for denied in denied_in_stderr(end.errors) {
            push_note(&mut self.denied, denied);
        }
        // Without a reported usage, as after a failure, there is no total to compare with.
        let meter = self.usage.map_or_else(UsageMeter::default, |usage| UsageMeter {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            tokens_are_cumulative: true,
            ..UsageMeter::default()
        });
        ParsedReply {
            verdict,
            text: self.text,
            earlier: self.turn.into_messages(),
            conversation: self.conversation,
            meter,
            denied: self.denied,
            anomalies: self.anomalies.into_notes(),
            ..ParsedReply::default()
        }
    }
}
