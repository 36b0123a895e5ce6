//! Parses the events of Claude Code.

use super::events::{
    Block, DeniedEvent, EventType, Init, Message, MessageEvent, RateLimitEvent, ResultEvent,
    RetryEvent,
};
use super::failure::{from_result, from_stderr, rejected_until};
use super::usage;
use crate::adapters::common::{
    Field, Line, StreamAnomalies, Turn, activity_line, classify, parse_event, push_note, reason,
    truncate, with_advice,
};
use crate::adapters::{
    Failure, ParsedReply, ReplyProgress, Server, StreamEnd, StreamParser, UsageMeter, Verdict,
};
use counterfoil_flow::AttemptOutcome;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::VecDeque;

/// The tool that returns structured output.
pub(super) const STRUCTURED: &str = "StructuredOutput";

/// The subtype of the final event when every call of that tool was rejected.
const GAVE_UP: &str = "error_max_structured_output_retries";

/// The model name of messages that Claude Code writes itself.
const SYNTHETIC: &str = "<synthetic>";

/// The most tool calls that are remembered in case they are denied.
const MAX_CALLS: usize = 256;

/// The state of the parser.
#[derive(Debug, Default)]
pub(super) struct ClaudeParser {
    anomalies: StreamAnomalies,
    conversation: Option<String>,
    model: Option<String>,
    version: Option<String>,
    /// The last message of the main agent, and its id. A message may arrive in parts.
    text: String,
    message: Option<String>,
    /// Whether a tool of others was called after that message.
    text_is_old: bool,
    turn: Turn,
    /// The last structured output.
    structured: Option<Value>,
    /// The id of the call that returned it, until the program has accepted it.
    structured_call: Option<String>,
    structured_is_accepted: bool,
    /// The last tool calls: id and description.
    calls: VecDeque<(String, String)>,
    /// The last failed tool calls: id and message.
    failed_calls: VecDeque<(String, String)>,
    /// The ids of denied tool calls.
    denied_ids: Vec<String>,
    denied: Vec<String>,
    /// When a limit is lifted, in milliseconds since 1970.
    reset_at: Option<i64>,
    /// The pause that a rate-limiting server asked for, in milliseconds.
    pause: Option<i64>,
    /// The usage up to the final event.
    meter: UsageMeter,
    results: usize,
    last_result: Option<ResultEvent>,
}

impl StreamParser for ClaudeParser {
    fn on_line(&mut self, line: &[u8]) -> Option<String> {
        let object = match classify(line) {
            Line::Blank => return None,
            Line::Object(object) => object,
            Line::Other(noise) => {
                self.anomalies.non_event(noise);
                return None;
            }
        };
        let kind: EventType = match parse_event(object) {
            Ok(kind) => kind,
            Err(error) if error.is_eof() => {
                let begin = String::from_utf8_lossy(&object[..object.len().min(400)]);
                self.anomalies.note(format!("an event is cut off: {}", truncate(&begin, 80)));
                return None;
            }
            Err(_) => {
                self.anomalies.non_event(object);
                return None;
            }
        };
        let Some(name) = kind.kind.get() else {
            self.anomalies.non_event(object);
            return None;
        };
        match (name.as_str(), kind.subtype.get().map(String::as_str)) {
            ("system", Some("init")) => self.known("init", object).and_then(|init| self.init(init)),
            ("system", Some("permission_denied")) => {
                self.known("permission_denied", object).and_then(|denied| self.denied(denied))
            }
            ("system", Some("api_retry")) => {
                self.known("api_retry", object).map(|retry| self.retry(&retry))
            }
            ("rate_limit_event", _) => {
                self.known("rate_limit_event", object).and_then(|rate| self.rate(rate))
            }
            ("assistant", _) => {
                self.known("assistant", object).and_then(|event| self.assistant(event))
            }
            ("user", _) => self.known("user", object).and_then(|event| self.user(event)),
            ("result", _) => {
                // Even if it cannot be parsed, it is the final event.
                let last: ResultEvent = self.known("result", object).unwrap_or_default();
                self.meter = usage::accumulate(self.meter, &last, self.version.as_deref());
                self.last_result = Some(last);
                self.results += 1;
                None
            }
            _ => None,
        }
    }

    fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    fn finished(&self) -> bool {
        self.results > 0
    }

    fn progress(&self) -> ReplyProgress<'_> {
        let (calls, open_call) = self.turn.progress();
        ReplyProgress { model: self.model.as_deref(), calls, open_call }
    }

    fn finish(mut self: Box<Self>, end: &StreamEnd<'_>) -> ParsedReply {
        let Some(last) = self.last_result.take() else {
            let verdict = from_stderr(end).map_or(Verdict::Missing, Verdict::Failed);
            let structured = self.structured.take().filter(|_| self.structured_is_accepted);
            return ParsedReply { structured, ..self.into_reply(verdict) };
        };
        for (name, why) in last.mismatches() {
            let why = truncate(&why, 200);
            self.anomalies
                .note(format!("`{name}` of the final event has an unexpected structure: {why}"));
        }
        if self.results > 1 {
            self.anomalies
                .note(format!("there were {} final events; the last one counts", self.results));
        }
        for denied in last.permission_denials.get().into_iter().flatten() {
            let call = denied.tool_name.get().map(|name| describe_call(name, &denied.tool_input));
            let failed =
                self.failed_calls.iter().find(|(id, _)| Some(id) == denied.tool_use_id.get());
            let why = failed.map_or("not permitted", |(_, why)| why).to_owned();
            self.deny(denied.tool_use_id.get(), call, &why);
        }
        let verdict = self.verdict(&last, end);
        let gave_up = last.subtype.get().is_some_and(|subtype| subtype == GAVE_UP);
        let last_output = self.structured.take();
        let accepted_output = last_output.clone().filter(|_| self.structured_is_accepted);
        let mut reply = ParsedReply { exit: i32::from(gave_up), ..self.into_reply(verdict) };
        reply.conversation = last.session_id.known().or(reply.conversation);
        if reply.verdict == Verdict::Complete {
            reply.structured = last.structured_output.or(last_output.filter(|_| gave_up));
            reply.text = last.result.known().unwrap_or(reply.text);
        } else {
            reply.structured = accepted_output;
        }
        reply
    }
}

impl ClaudeParser {
    fn known<E: DeserializeOwned>(&mut self, kind: &str, object: &[u8]) -> Option<E> {
        parse_event(object).map_err(|why| self.anomalies.unexpected_shape(kind, &why)).ok()
    }

    fn init(&mut self, init: Init) -> Option<String> {
        self.conversation = init.session_id.known().or(self.conversation.take());
        self.model = init.model.known().or(self.model.take());
        self.version = init.claude_code_version.known().or(self.version.take());
        for server in init.mcp_servers.known().unwrap_or_default() {
            let is = |field: &Field<String>, value: &str| {
                field.get().is_some_and(|field| field == value)
            };
            if is(&server.name, Server::NAME) && is(&server.status, "failed") {
                self.anomalies.note("it could not start the server that receives results");
            }
        }
        None
    }

    fn assistant(&mut self, event: MessageEvent) -> Option<String> {
        if let Some(why) = event.message.mismatch() {
            self.anomalies.unexpected_shape("assistant", &why);
        }
        let own = event.parent_tool_use_id.get().is_none();
        let message: Message = event.message.known()?;
        if message.model.get().is_some_and(|model| model == SYNTHETIC) {
            return None;
        }
        if own {
            self.model = message.model.known().or(self.model.take());
        }
        let id = message.id.known();
        let mut activity = None;
        for block in message.content.known().unwrap_or_default() {
            let Some(block) = block.known() else { continue };
            match block.kind.get().map(String::as_str) {
                Some("text") => {
                    let text = block.text.known().unwrap_or_default();
                    activity = activity_line(&text).or(activity);
                    if own {
                        self.add_text(id.as_deref(), text);
                    }
                }
                Some("tool_use") => activity = self.tool_call(block, own).or(activity),
                _ => {}
            }
        }
        activity
    }

    /// Adds text of the main agent: a further part of the last message, or a new message.
    fn add_text(&mut self, id: Option<&str>, text: String) {
        if id.is_some() && id == self.message.as_deref() {
            self.text.push_str(&text);
        } else {
            let before = std::mem::replace(&mut self.text, text);
            if !std::mem::take(&mut self.text_is_old) {
                self.turn.message(before);
            }
            self.message = id.map(str::to_owned);
        }
    }

    fn tool_call(&mut self, block: Block, own: bool) -> Option<String> {
        let name = block.name.known()?;
        let call = describe_call(&name, &block.input);
        let id = block.id.known();
        if own && name == STRUCTURED {
            self.structured = Some(block.input);
            self.structured_call.clone_from(&id);
            self.structured_is_accepted = false;
        } else if self.turn.call(&name, id.as_deref()) {
            self.text_is_old = true;
            self.structured_is_accepted = false;
        } else {
            // What was written before the result was submitted is not the final text.
            self.turn.message(std::mem::take(&mut self.text));
            self.message = None;
        }
        if let Some(id) = id {
            push(&mut self.calls, (id, call.clone()));
        }
        Some(call)
    }

    /// Records failed tool calls. A call of a disabled tool causes no denial event, only a tool
    /// result. Older versions list denied calls only in the final event, without a reason.
    fn user(&mut self, event: MessageEvent) -> Option<String> {
        for block in event.message.known()?.content.known().unwrap_or_default() {
            let Some(block) = block.known() else { continue };
            if let Some(id) = block.tool_use_id.get() {
                self.turn.result(id);
                if self.structured_call.as_ref() == Some(id) {
                    self.structured_is_accepted = block.is_error.get() != Some(&true);
                }
            }
            let (Some(true), Some(message)) = (block.is_error.get(), block.content.as_str()) else {
                continue;
            };
            if message.contains("is disabled for this session") {
                self.deny(block.tool_use_id.get(), None, "the tool is not available");
            } else if let Some(id) = block.tool_use_id.known() {
                push(&mut self.failed_calls, (id, truncate(first_sentence(message), 200)));
            }
        }
        None
    }

    fn denied(&mut self, denied: DeniedEvent) -> Option<String> {
        let why = denied.message.known().unwrap_or_default();
        let why = if why.trim().is_empty() { "not permitted" } else { first_sentence(&why) };
        self.deny(denied.tool_use_id.get(), denied.tool_name.known(), why);
        None
    }

    /// Records a denied tool call once.
    fn deny(&mut self, id: Option<&String>, call: Option<String>, why: &str) {
        let known = id.and_then(|id| self.calls.iter().rev().find(|(known, _)| known == id));
        let call =
            known.map(|(_, call)| call.clone()).or(call).unwrap_or_else(|| "a tool".to_owned());
        if let Some(id) = id {
            if self.denied_ids.contains(id) {
                return;
            }
            if self.denied_ids.len() < MAX_CALLS {
                self.denied_ids.push(id.clone());
            }
        }
        push_note(&mut self.denied, format!("{call}: {}", truncate(why, 200)));
    }

    fn retry(&mut self, retry: &RetryEvent) -> String {
        let status = retry.error_status.get();
        if status == Some(&429) {
            // A pause that the server asks for has whole seconds; the program's own backoff does
            // not.
            let pause = retry
                .retry_delay_ms
                .get()
                .copied()
                .filter(|pause| (1000.0..86_400_000.0).contains(pause));
            #[expect(clippy::cast_possible_truncation, reason = "it is less than a day")]
            let pause = pause.map(|pause| pause as i64);
            self.pause = pause.filter(|pause| pause % 1000 == 0);
        }
        let why = match status {
            Some(status) => format!("its server answered with HTTP {status}"),
            None => match retry.error.get().map(String::as_str) {
                Some("unknown") | None => "its server cannot be reached".to_owned(),
                Some(error) => truncate(error, 80),
            },
        };
        let count = match (retry.attempt.get(), retry.max_retries.get()) {
            (Some(attempt), Some(max)) => format!(" ({attempt} of {max})"),
            _ => String::new(),
        };
        format!("{why}, retrying{count}")
    }

    fn rate(&mut self, rate: RateLimitEvent) -> Option<String> {
        let reset = rate.rate_limit_info.known().and_then(|info| rejected_until(&info))?;
        self.reset_at = Some(reset);
        Some("a limit of its account is reached".to_owned())
    }

    fn verdict(&mut self, last: &ResultEvent, end: &StreamEnd<'_>) -> Verdict {
        let message =
            last.errors.get().map(|errors| errors.join("; ")).filter(|errors| !errors.is_empty());
        let message = message.or_else(|| last.result.get().cloned()).unwrap_or_default();
        let agent = |advice: &str| {
            Verdict::Failed(Failure::new(
                AttemptOutcome::Agent,
                with_advice(&reason(&message), advice),
            ))
        };
        match (last.subtype.get().map(String::as_str), &last.is_error) {
            (Some(GAVE_UP), _) => {
                self.anomalies.note(
                    "its own schema validation rejected every result until it gave up; \
                     the last result is validated against the contract",
                );
                Verdict::Complete
            }
            (Some("error_max_turns"), _) => agent("raise `--max-turns` in `flags`"),
            (Some("error_max_budget_usd"), _) => agent("raise `--max-budget-usd` in `flags`"),
            (Some("success"), Field::Known(false) | Field::Absent) => Verdict::Complete,
            (_, Field::Known(true)) => {
                Verdict::Failed(from_result(last, &message, end, self.reset_at(end)))
            }
            (Some(subtype), _) if subtype.starts_with("error") => {
                Verdict::Failed(from_result(last, &message, end, self.reset_at(end)))
            }
            (Some(subtype), Field::Known(false)) => {
                self.anomalies.note(format!(
                    "the final event has an unknown subtype: {}",
                    truncate(subtype, 80)
                ));
                Verdict::Complete
            }
            _ => Verdict::Failed(Failure::new(
                AttemptOutcome::Agent,
                "its final event does not say whether it succeeded; its version may be newer than the tested ones",
            )),
        }
    }

    /// When a limit is lifted, according to the events before the final one.
    fn reset_at(&self, end: &StreamEnd<'_>) -> Option<i64> {
        self.reset_at.or_else(|| Some(end.at.saturating_add(self.pause?)))
    }

    fn into_reply(self, verdict: Verdict) -> ParsedReply {
        ParsedReply {
            verdict,
            text: self.text,
            earlier: self.turn.into_messages(),
            conversation: self.conversation,
            model: self.model,
            version: self.version,
            meter: self.meter,
            denied: self.denied,
            anomalies: self.anomalies.into_notes(),
            ..ParsedReply::default()
        }
    }
}

/// Appends an entry and drops the oldest one if the list is full.
fn push(list: &mut VecDeque<(String, String)>, entry: (String, String)) {
    if list.len() == MAX_CALLS {
        list.pop_front();
    }
    list.push_back(entry);
}

/// A tool call as text: the name and the main argument.
fn describe_call(name: &str, input: &Value) -> String {
    let argument = main_argument(input);
    let name = truncate(name, 80);
    match argument {
        Some(argument) => format!("{name} ({})", truncate(argument, 80)),
        None => name,
    }
}

/// The most descriptive argument of a tool call.
pub(super) fn main_argument(input: &Value) -> Option<&str> {
    ["command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description"]
        .iter()
        .find_map(|key| input.get(key)?.as_str())
}

/// The first sentence of a text.
fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    text.find(". ").map_or(text, |end| &text[..end]).trim_end_matches('.')
}
