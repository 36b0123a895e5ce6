//! Parses the events of Gemini CLI.

use super::failure::{self, ErrorEvent};
use super::{EDIT_TOOLS, SHELL_TOOL};
use crate::adapters::common::{
    Field, Line, StreamAnomalies, Turn, activity_line, classify, parse_event, push_note, truncate,
};
use crate::adapters::{
    ParsedReply, ReplyProgress, Server, StreamEnd, StreamParser, UsageMeter, Verdict,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The type of an event.
#[derive(Deserialize)]
pub(super) struct Tag {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Init {
    session_id: Field<String>,
    model: Field<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    role: String,
    content: String,
    delta: Field<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolUse {
    #[serde(rename = "tool_name")]
    pub(super) name: String,
    #[serde(rename = "tool_id")]
    pub(super) id: Field<String>,
    /// Any JSON, as the model wrote it.
    pub(super) parameters: Value,
    pub(super) timestamp: Field<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolResult {
    #[serde(rename = "tool_id")]
    pub(super) id: Field<String>,
    pub(super) error: Field<ErrorDetails>,
    pub(super) timestamp: Field<String>,
}

/// An error or a warning.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorDetails {
    severity: Field<String>,
    #[serde(rename = "type")]
    kind: Field<String>,
    message: String,
}

impl ErrorDetails {
    /// Whether a policy forbids the call.
    pub(super) fn is_policy_violation(&self) -> bool {
        self.kind.get().is_some_and(|kind| kind == POLICY_VIOLATION)
    }
}

/// The final event. Only its status is required.
#[derive(Deserialize)]
struct ResultEvent {
    status: String,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    stats: Field<Stats>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stats {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    models: BTreeMap<String, Stats>,
}

/// The most open tool calls that are remembered.
const MAX_OPEN_CALLS: usize = 1024;

/// The state of the parser.
#[derive(Default)]
pub(super) struct GeminiParser {
    text: String,
    /// The offset of the first incomplete line in the text.
    line_start: usize,
    /// Whether the message has ended, so that further text starts another message.
    message_ended: bool,
    conversation: Option<String>,
    model: Option<String>,
    turn: Turn,
    /// The tool calls without a result, by id.
    open: HashMap<String, String>,
    denied: Vec<String>,
    anomalies: StreamAnomalies,
    /// The last error before the final event.
    last_error: Option<String>,
    results: usize,
    verdict: Option<Result<(), ErrorEvent>>,
    meter: UsageMeter,
}

impl StreamParser for GeminiParser {
    fn on_line(&mut self, line: &[u8]) -> Option<String> {
        let object = match classify(line) {
            Line::Blank => return None,
            Line::Other(other) => {
                self.anomalies.non_event(other);
                return None;
            }
            Line::Object(object) => object,
        };
        let Ok(Tag { kind }) = parse_event(object) else {
            self.anomalies.non_event(object);
            return None;
        };
        match &*kind {
            "init" => self.parse(&kind, object, Self::init),
            "message" => self.parse(&kind, object, Self::message),
            "tool_use" => self.parse(&kind, object, |parser, call| Some(parser.tool_use(call))),
            "tool_result" => self.parse(&kind, object, Self::tool_result),
            "error" => self.parse(&kind, object, Self::error),
            "result" => self.parse(&kind, object, Self::result),
            _ => None,
        }
    }

    fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    fn finished(&self) -> bool {
        self.verdict.is_some()
    }

    fn progress(&self) -> ReplyProgress<'_> {
        let (calls, open_call) = self.turn.progress();
        ReplyProgress { model: self.model.as_deref(), calls, open_call }
    }

    fn finish(mut self: Box<Self>, end: &StreamEnd<'_>) -> ParsedReply {
        failure::warnings(end.errors).for_each(|warning| self.anomalies.note(warning));
        if self.results > 1 {
            self.anomalies
                .note(format!("there were {} final events; the last one counts", self.results));
        }
        let mut last_error = self.last_error.take();
        let verdict = match self.verdict {
            Some(Ok(())) => Verdict::Complete,
            Some(Err(mut error)) => {
                if error.message.is_empty() {
                    error.message = last_error.take().unwrap_or_default();
                }
                Verdict::Failed(failure::from_result(&error, end))
            }
            None => failure::from_stderr(end).map_or(Verdict::Missing, Verdict::Failed),
        };
        if let Some(error) = last_error {
            self.anomalies.note(warning(&error));
        }
        ParsedReply {
            verdict,
            exit: 0,
            text: self.text,
            earlier: self.turn.into_messages(),
            structured: None,
            conversation: self.conversation,
            model: self.model,
            version: None,
            meter: self.meter,
            denied: self.denied,
            anomalies: self.anomalies.into_notes(),
        }
    }
}

impl GeminiParser {
    /// Parses an event and handles it. A failure to parse is noted.
    fn parse<E: DeserializeOwned>(
        &mut self,
        kind: &str,
        object: &[u8],
        handle: impl FnOnce(&mut Self, E) -> Option<String>,
    ) -> Option<String> {
        match parse_event(object) {
            Ok(event) => handle(self, event),
            Err(error) => {
                self.anomalies.unexpected_shape(kind, &error);
                None
            }
        }
    }

    fn init(&mut self, init: Init) -> Option<String> {
        self.conversation = init.session_id.known().or(self.conversation.take());
        self.model = init.model.known().or(self.model.take());
        None
    }

    fn message(&mut self, message: Message) -> Option<String> {
        if message.role != "assistant" {
            return None;
        }
        let is_delta = message.delta.known() == Some(true);
        if std::mem::take(&mut self.message_ended) || !is_delta {
            self.end_message();
        }
        self.message_ended = !is_delta;
        self.text.push_str(&message.content);
        // Text becomes an activity line when its line is complete.
        let line_end = message.content.rfind('\n')? + self.text.len() - message.content.len();
        let start = std::mem::replace(&mut self.line_start, line_end + 1);
        activity_line(self.text[start..line_end].lines().next_back()?)
    }

    /// Ends a message before a tool call or a new message: it is not the final text.
    fn end_message(&mut self) {
        self.turn.message(std::mem::take(&mut self.text));
        self.line_start = 0;
    }

    fn tool_use(&mut self, call: ToolUse) -> String {
        let activity = match main_argument(&call.parameters) {
            Some(argument) => truncate(&format!("{} {argument}", call.name), 160),
            None => truncate(&call.name, 160),
        };
        self.end_message();
        self.turn.call(&call.name, call.id.get().map(String::as_str));
        if let Some(id) = call.id.known().filter(|_| self.open.len() < MAX_OPEN_CALLS) {
            self.open.insert(id, call.name);
        }
        activity
    }

    fn tool_result(&mut self, result: ToolResult) -> Option<String> {
        let id = result.id.known().unwrap_or_default();
        let tool = self.open.remove(&id);
        self.turn.result(&id);
        if let Some(why) = result.error.mismatch() {
            self.anomalies.unexpected_shape("tool_result", &why);
        }
        let error = result.error.known()?;
        let kind = error.kind.known().unwrap_or_default();
        // If the call was missed: ids begin with the name of the tool.
        let tool = tool
            .or_else(|| id.split_once("__").map(|(tool, _)| tool.to_owned()))
            .unwrap_or_default();
        let restricted = EDIT_TOOLS.contains(&&*tool) || tool == SHELL_TOOL;
        let denied = match &*kind {
            POLICY_VIOLATION => true,
            // A tool that the mode or a policy forbids is not registered.
            "tool_not_registered" => restricted,
            _ => restricted && DENIALS.iter().any(|denial| error.message.contains(denial)),
        };
        if denied {
            let why = if kind == "tool_not_registered" {
                "its access does not include this tool"
            } else {
                &error.message
            };
            push_note(&mut self.denied, format!("{}: {}", truncate(&tool, 60), truncate(why, 240)));
        } else if kind == "tool_not_registered" && tool.contains(Server::NAME) {
            self.anomalies.note(format!(
                "`{}` was called but is missing: the server that receives results is not attached",
                truncate(&tool, 80)
            ));
        }
        None
    }

    fn error(&mut self, error: ErrorDetails) -> Option<String> {
        let activity = activity_line(&error.message);
        if error.severity.get().is_some_and(|severity| severity == "warning") {
            self.anomalies.note(warning(&error.message));
        } else {
            self.last_error = Some(error.message);
        }
        activity
    }

    fn result(&mut self, last: ResultEvent) -> Option<String> {
        self.results += 1;
        self.message_ended = true;
        self.verdict = Some(match &*last.status {
            "success" => Ok(()),
            status => {
                if status != "error" {
                    self.anomalies.note(format!(
                        "its final event has the unknown status `{}`",
                        truncate(status, 60)
                    ));
                }
                Err(self.parse_error(last.error))
            }
        });
        match last.stats {
            Field::Known(stats) => self.count(&stats),
            Field::Mismatched(why) => {
                self.anomalies.unexpected_shape("result", &format!("stats: {why}"));
            }
            Field::Absent => {}
        }
        None
    }

    /// The error of the final event, of any JSON type.
    fn parse_error(&mut self, error: Value) -> ErrorEvent {
        match error {
            Value::Null => ErrorEvent::default(),
            Value::String(message) => ErrorEvent { kind: String::new(), message },
            other => {
                let text = other.to_string();
                match serde_json::from_value::<ErrorDetails>(other) {
                    Ok(error) => ErrorEvent {
                        kind: error.kind.known().unwrap_or_default(),
                        message: error.message,
                    },
                    Err(error) => {
                        self.anomalies.unexpected_shape("result", &format!("error: {error}"));
                        ErrorEvent { kind: String::new(), message: text }
                    }
                }
            }
        }
    }

    fn count(&mut self, stats: &Stats) {
        // The reasoning tokens are only part of the total.
        let output = stats.total_tokens.saturating_sub(stats.input_tokens).max(stats.output_tokens);
        self.meter = UsageMeter {
            input_tokens: stats.input_tokens,
            output_tokens: output,
            ..UsageMeter::default()
        };
        let most_used = stats
            .models
            .iter()
            .filter(|(_, used)| used.total_tokens > 0)
            .max_by_key(|(_, used)| used.total_tokens);
        if let Some((model, _)) = most_used {
            self.model = Some(model.clone());
        }
    }
}

/// A note with a message of the program.
fn warning(message: &str) -> String {
    format!("it reports: {}", truncate(message, 240))
}

/// The kind of error of a call that a policy forbids.
const POLICY_VIOLATION: &str = "policy_violation";

/// The messages of tools for denied actions.
const DENIALS: [&str; 4] =
    ["Path not in workspace", "Access denied", "denied by policy", "requires user confirmation"];

/// The most descriptive argument of a tool call.
pub(super) fn main_argument(parameters: &Value) -> Option<&str> {
    [
        "command",
        "file_path",
        "absolute_path",
        "dir_path",
        "path",
        "pattern",
        "query",
        "agent_name",
        "prompt",
    ]
    .iter()
    .find_map(|name| parameters.get(name)?.as_str())
}
