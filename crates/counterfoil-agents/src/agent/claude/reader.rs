//! Understands the events of Claude Code.

use super::events::{Block, Denied, Init, Kind, Last, Message, Rate, Retry, Turn};
use super::failure::{refusal, rejected_until, unstarted};
use super::meter;
use crate::agent::adapter::common::{
    Field, Line, Odd, advised, cut, event, look, reason, remark, words,
};
use crate::agent::adapter::{End, Failure, Heard, Meter, Reader, Server, Verdict};
use counterfoil_flow::AttemptOutcome;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::VecDeque;

/// The tool that its own schema channel is.
const STRUCTURED: &str = "StructuredOutput";

/// How a reply ends whose every try at that tool was turned down.
const GAVE_UP: &str = "error_max_structured_output_retries";

/// The model of messages that it writes itself.
const SYNTHETIC: &str = "<synthetic>";

/// The most calls of tools that are remembered until they are denied.
const MOST_CALLS: usize = 256;

/// What was understood so far.
#[derive(Debug, Default)]
pub(super) struct ClaudeReader {
    odd: Odd,
    conversation: Option<String>,
    model: Option<String>,
    version: Option<String>,
    /// The last message of its own, and its id: a message comes in parts.
    text: String,
    message: Option<String>,
    /// What it last handed to its own schema channel.
    structured: Option<Value>,
    /// The last calls: their ids, and what for.
    calls: VecDeque<(String, String)>,
    /// The last calls that failed: their ids, and what it was told.
    refusals: VecDeque<(String, String)>,
    /// The calls that were denied.
    denied_ids: Vec<String>,
    denied: Vec<String>,
    /// When a limit is lifted, in milliseconds since 1970.
    reset_at: Option<i64>,
    /// How long a server that was asked too much wants to be left alone, in milliseconds.
    pause: Option<i64>,
    /// What was used until its last event.
    meter: Meter,
    lasts: usize,
    last: Option<Last>,
}

impl Reader for ClaudeReader {
    fn line(&mut self, line: &[u8]) -> Option<String> {
        let object = match look(line) {
            Line::Blank => return None,
            Line::Object(object) => object,
            Line::Other(noise) => {
                self.odd.noise(noise);
                return None;
            }
        };
        let kind: Kind = match event(object) {
            Ok(kind) => kind,
            Err(error) if error.is_eof() => {
                let begin = String::from_utf8_lossy(&object[..object.len().min(400)]);
                self.odd.say(format!("an event is cut off: {}", cut(&begin, 80)));
                return None;
            }
            Err(_) => {
                self.odd.noise(object);
                return None;
            }
        };
        let Some(name) = kind.kind.get() else {
            self.odd.noise(object);
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
                self.known("assistant", object).and_then(|turn| self.assistant(turn))
            }
            ("user", _) => self.known("user", object).and_then(|turn| self.user(turn)),
            ("result", _) => {
                // Whatever its shape is, it is the end.
                let last: Last = self.known("result", object).unwrap_or_default();
                self.meter = meter::used(self.meter, &last, self.version.as_deref());
                self.last = Some(last);
                self.lasts += 1;
                None
            }
            _ => None,
        }
    }

    fn finished(&self) -> bool {
        self.lasts > 0
    }

    fn read(mut self: Box<Self>, end: &End<'_>) -> Heard {
        let Some(last) = self.last.take() else {
            let verdict = unstarted(end).map_or(Verdict::Missing, Verdict::Failed);
            return self.heard(verdict);
        };
        for (name, why) in last.odd() {
            let why = cut(&why, 200);
            self.odd
                .say(format!("its last event has `{name}` in a shape that is not known: {why}"));
        }
        if self.lasts > 1 {
            self.odd.say(format!("it ended {} times; the last one counts", self.lasts));
        }
        for refused in last.permission_denials.get().into_iter().flatten() {
            let what = refused.tool_name.get().map(|name| call(name, &refused.tool_input));
            let answered =
                self.refusals.iter().find(|(id, _)| Some(id) == refused.tool_use_id.get());
            let why = answered.map_or("it may not", |(_, why)| why).to_owned();
            self.deny(refused.tool_use_id.get(), what, &why);
        }
        let verdict = self.verdict(&last, end);
        let gave_up = last.subtype.get().is_some_and(|subtype| subtype == GAVE_UP);
        let handed = self.structured.take();
        let mut heard = Heard { exit: i32::from(gave_up), ..self.heard(verdict) };
        heard.conversation = last.session_id.known().or(heard.conversation);
        if heard.verdict == Verdict::Whole {
            heard.structured = last.structured_output.or(handed.filter(|_| gave_up));
            heard.text = last.result.known().unwrap_or(heard.text);
        }
        heard
    }
}

impl ClaudeReader {
    fn known<E: DeserializeOwned>(&mut self, kind: &str, object: &[u8]) -> Option<E> {
        event(object).map_err(|why| self.odd.shape(kind, &why)).ok()
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
                self.odd.say("it could not start the server that takes results");
            }
        }
        None
    }

    fn assistant(&mut self, turn: Turn) -> Option<String> {
        if let Some(why) = turn.message.odd() {
            self.odd.shape("assistant", &why);
        }
        let own = turn.parent_tool_use_id.get().is_none();
        let message: Message = turn.message.known()?;
        if message.model.get().is_some_and(|model| model == SYNTHETIC) {
            return None;
        }
        if own {
            self.model = message.model.known().or(self.model.take());
        }
        let id = message.id.known();
        let mut told = None;
        for block in message.content.known().unwrap_or_default() {
            let Some(block) = block.known() else { continue };
            match block.kind.get().map(String::as_str) {
                Some("text") => {
                    let text = block.text.known().unwrap_or_default();
                    told = words(&text).or(told);
                    if own {
                        self.say(id.as_deref(), text);
                    }
                }
                Some("tool_use") => told = self.called(block, own).or(told),
                _ => {}
            }
        }
        told
    }

    /// Takes a text of its own: a further part of the last message, or a new one.
    fn say(&mut self, id: Option<&str>, text: String) {
        if id.is_some() && id == self.message.as_deref() {
            self.text.push_str(&text);
        } else {
            self.text = text;
            self.message = id.map(str::to_owned);
        }
    }

    fn called(&mut self, block: Block, own: bool) -> Option<String> {
        let name = block.name.known()?;
        let what = call(&name, &block.input);
        if let Some(id) = block.id.known() {
            push(&mut self.calls, (id, what.clone()));
        }
        if own && name == STRUCTURED {
            self.structured = Some(block.input);
        }
        Some(what)
    }

    /// What calls came to, where they failed. A tool that was taken away is no denial in its
    /// events, only an answer to the call; and older versions tell what was denied only at the
    /// end, without why.
    fn user(&mut self, turn: Turn) -> Option<String> {
        for block in turn.message.known()?.content.known().unwrap_or_default() {
            let Some(block) = block.known() else { continue };
            let (Some(true), Some(said)) = (block.is_error.get(), block.content.as_str()) else {
                continue;
            };
            if said.contains("is disabled for this session") {
                self.deny(block.tool_use_id.get(), None, "it does not have this tool");
            } else if let Some(id) = block.tool_use_id.known() {
                push(&mut self.refusals, (id, cut(sentence(said), 200)));
            }
        }
        None
    }

    fn denied(&mut self, denied: Denied) -> Option<String> {
        let why = denied.message.known().unwrap_or_default();
        let why = if why.trim().is_empty() { "it may not" } else { sentence(&why) };
        self.deny(denied.tool_use_id.get(), denied.tool_name.known(), why);
        None
    }

    /// Remembers a call that was denied, once.
    fn deny(&mut self, id: Option<&String>, what: Option<String>, why: &str) {
        let known = id.and_then(|id| self.calls.iter().rev().find(|(call, _)| call == id));
        let what =
            known.map(|(_, what)| what.clone()).or(what).unwrap_or_else(|| "a tool".to_owned());
        if let Some(id) = id {
            if self.denied_ids.contains(id) {
                return;
            }
            if self.denied_ids.len() < MOST_CALLS {
                self.denied_ids.push(id.clone());
            }
        }
        remark(&mut self.denied, format!("{what}: {}", cut(why, 200)));
    }

    fn retry(&mut self, retry: &Retry) -> String {
        let status = retry.error_status.get();
        if status == Some(&429) {
            // A pause that its server asks for is in whole seconds; one of its own is not.
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
                Some(error) => cut(error, 80),
            },
        };
        let times = match (retry.attempt.get(), retry.max_retries.get()) {
            (Some(attempt), Some(most)) => format!(" ({attempt} of {most})"),
            _ => String::new(),
        };
        format!("{why}, it tries again{times}")
    }

    fn rate(&mut self, rate: Rate) -> Option<String> {
        let reset = rate.rate_limit_info.known().and_then(|info| rejected_until(&info))?;
        self.reset_at = Some(reset);
        Some("a limit of its account is used up".to_owned())
    }

    fn verdict(&mut self, last: &Last, end: &End<'_>) -> Verdict {
        let said =
            last.errors.get().map(|errors| errors.join("; ")).filter(|errors| !errors.is_empty());
        let said = said.or_else(|| last.result.get().cloned()).unwrap_or_default();
        let agent = |advice: &str| {
            Verdict::Failed(Failure::new(AttemptOutcome::Agent, advised(&reason(&said), advice)))
        };
        match (last.subtype.get().map(String::as_str), &last.is_error) {
            (Some(GAVE_UP), _) => {
                self.odd.say(
                    "its own check of the schema turned down what it handed back until it gave up; \
                     the last of it is held against the contract",
                );
                Verdict::Whole
            }
            (Some("error_max_turns"), _) => {
                agent("a higher `--max-turns` in `flags` gives it more")
            }
            (Some("error_max_budget_usd"), _) => {
                agent("a higher `--max-budget-usd` in `flags` gives it more")
            }
            (Some("success"), Field::Known(false) | Field::Absent) => Verdict::Whole,
            (_, Field::Known(true)) => {
                Verdict::Failed(refusal(last, &said, end, self.reset_at(end)))
            }
            (Some(subtype), _) if subtype.starts_with("error") => {
                Verdict::Failed(refusal(last, &said, end, self.reset_at(end)))
            }
            (Some(subtype), Field::Known(false)) => {
                self.odd.say(format!("it ended in a way that is not known: {}", cut(subtype, 80)));
                Verdict::Whole
            }
            _ => Verdict::Failed(Failure::new(
                AttemptOutcome::Agent,
                "its last event does not say whether it succeeded; its version may be newer than those that are known to work",
            )),
        }
    }

    /// When a limit is lifted, as far as its events before the last one tell.
    fn reset_at(&self, end: &End<'_>) -> Option<i64> {
        self.reset_at.or_else(|| Some(end.at.saturating_add(self.pause?)))
    }

    fn heard(self, verdict: Verdict) -> Heard {
        Heard {
            verdict,
            text: self.text,
            conversation: self.conversation,
            model: self.model,
            version: self.version,
            meter: self.meter,
            denied: self.denied,
            odd: self.odd.told(),
            ..Heard::default()
        }
    }
}

/// Keeps the last of them.
fn push(list: &mut VecDeque<(String, String)>, what: (String, String)) {
    if list.len() == MOST_CALLS {
        list.pop_front();
    }
    list.push_back(what);
}

/// A call of a tool in words: its name, and what for.
fn call(name: &str, input: &Value) -> String {
    let what =
        ["command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description"]
            .iter()
            .find_map(|key| input.get(key)?.as_str());
    let name = cut(name, 80);
    match what {
        Some(what) => format!("{name} ({})", cut(what, 80)),
        None => name,
    }
}

/// The first sentence of a text.
fn sentence(text: &str) -> &str {
    let text = text.trim();
    text.find(". ").map_or(text, |end| &text[..end]).trim_end_matches('.')
}
