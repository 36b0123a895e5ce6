//! Reading the events of `codex exec --json`.

use super::said;
use super::tools::{Command, Edit, Failed, Plan, Said, Search, ServerCall, denied_in};
use crate::agent::adapter::common::{Line, Odd, cut, look, remark, words};
use crate::agent::adapter::{End, Failure, Heard, Meter, Reader, Verdict};
use counterfoil_flow::AttemptOutcome;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// It waits for a network for ever, and says so at first after seconds, then every minute. After so
/// many times in a row, which is more than a minute, nothing is expected of it any more.
const PATIENCE: usize = 5;

/// The items that only a server that was reached brings about.
const WORK: [&str; 6] = [
    "agent_message",
    "reasoning",
    "command_execution",
    "mcp_tool_call",
    "file_change",
    "web_search",
];

/// What was understood so far.
pub(super) struct Stream {
    zone: TimeZone,
    conversation: Option<String>,
    text: String,
    end: Option<Ended>,
    usage: Option<Usage>,
    /// The last thing it complained of, and how often it has said that it waits for a network
    /// since anything else happened.
    complaint: Option<String>,
    waits: usize,
    denied: Vec<String>,
    odd: Odd,
}

/// The last event.
#[derive(Clone)]
enum Ended {
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
    /// Those from a cache too.
    input_tokens: u64,
    /// Those for thinking too.
    output_tokens: u64,
}

#[derive(Deserialize)]
struct FailedTurn {
    error: Complaint,
}

#[derive(Deserialize)]
struct Complaint {
    message: String,
}

#[derive(Deserialize)]
struct Message {
    text: String,
}

#[derive(Deserialize)]
struct Of<T> {
    item: T,
}

impl Stream {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            conversation: None,
            text: String::new(),
            end: None,
            usage: None,
            complaint: None,
            waits: 0,
            denied: Vec::new(),
            odd: Odd::default(),
        }
    }

    /// An event in the shape that is known. Another shape is said, since something that matters may
    /// be lost.
    fn shaped<T: DeserializeOwned>(&mut self, kind: &str, line: &str) -> Option<T> {
        serde_json::from_str(line).map_err(|why| self.odd.shape(kind, &why)).ok()
    }

    fn event(&mut self, kind: &str, line: &str) -> Option<String> {
        match kind {
            "thread.started" => {
                let id = self.shaped::<Started>(kind, line)?.thread_id;
                match &self.conversation {
                    Some(first) if *first != id => {
                        self.odd.say(format!("a second conversation began: {}", cut(&id, 80)));
                    }
                    Some(_) => {}
                    None => self.conversation = Some(id),
                }
                None
            }
            "turn.started" => {
                self.text.clear();
                self.waits = 0;
                None
            }
            "turn.completed" => {
                self.ended(Ended::Completed);
                if let Some(completed) = self.shaped::<Completed>(kind, line) {
                    self.usage = Some(completed.usage);
                }
                None
            }
            "turn.failed" => {
                let said = self.shaped::<FailedTurn>(kind, line).map(|failed| failed.error.message);
                let shown = said.as_deref().and_then(words);
                self.ended(Ended::Failed(said));
                shown
            }
            "error" => {
                let said = self.shaped::<Complaint>(kind, line)?.message;
                if said.contains("waiting for network") {
                    self.waits += 1;
                }
                let shown = words(&said);
                self.complaint = Some(said);
                shown
            }
            "item.started" | "item.updated" | "item.completed" => {
                let item = serde_json::from_str::<Of<Kind>>(line);
                let item = item.map_err(|why| self.odd.shape(kind, &why)).ok()?.item.kind;
                self.item(&item, kind == "item.completed", line)
            }
            _ => None,
        }
    }

    fn item(&mut self, kind: &str, completed: bool, line: &str) -> Option<String> {
        if WORK.contains(&kind) {
            self.waits = 0;
        }
        match kind {
            "agent_message" => {
                let text = self.shaped::<Of<Message>>(kind, line)?.item.text;
                let shown = words(&text);
                if completed {
                    self.text = text;
                }
                shown
            }
            "reasoning" => words(&self.shaped::<Of<Message>>(kind, line)?.item.text),
            "command_execution" => {
                let command = self.shaped::<Of<Command>>(kind, line)?.item;
                if completed && let Some(denied) = command.denied() {
                    remark(&mut self.denied, denied);
                }
                command.words()
            }
            "mcp_tool_call" => {
                let call = self.shaped::<Of<ServerCall>>(kind, line)?.item;
                match call.failed() {
                    Some(Failed::Denied(why)) => remark(&mut self.denied, why),
                    Some(Failed::Otherwise(why)) => self.odd.say(why),
                    None => {}
                }
                call.words()
            }
            "file_change" => {
                let edit = self.shaped::<Of<Edit>>(kind, line)?.item;
                if let Some(denied) = edit.denied() {
                    remark(&mut self.denied, denied);
                }
                edit.words()
            }
            "web_search" => self.shaped::<Of<Search>>(kind, line)?.item.words(),
            "todo_list" => self.shaped::<Of<Plan>>(kind, line)?.item.words(),
            // A warning, in spite of its name: the turn goes on.
            "error" => {
                let said = self.shaped::<Of<Said>>(kind, line)?.item.message;
                self.odd.say(format!("it says: {}", cut(&said, 200)));
                words(&said)
            }
            _ => None,
        }
    }

    fn ended(&mut self, end: Ended) {
        self.waits = 0;
        if self.end.replace(end).is_some() {
            self.odd.say("it ended more than once: the last end counts");
        }
    }

    fn verdict(&mut self, end: &End<'_>) -> Verdict {
        match self.end.take() {
            Some(Ended::Completed) => Verdict::Whole,
            Some(Ended::Failed(said)) => {
                let said = said.or(self.complaint.take()).unwrap_or_default();
                Verdict::Failed(said::failure(&said, end.at, &self.zone))
            }
            None if self.waits >= PATIENCE => {
                let said = self.complaint.take().unwrap_or_default();
                let reason = format!("it cannot reach its model's server: {}", cut(&said, 300));
                Verdict::Failed(Failure::new(AttemptOutcome::Transport, reason))
            }
            None => {
                if let Some(said) = self.complaint.take() {
                    self.odd.say(format!("before it ended, it said: {}", cut(&said, 300)));
                }
                said::failure_to_start(end.errors).map_or(Verdict::Missing, Verdict::Failed)
            }
        }
    }
}

impl Reader for Stream {
    fn line(&mut self, line: &[u8]) -> Option<String> {
        let object = match look(line) {
            Line::Blank => return None,
            Line::Other(other) => {
                self.odd.noise(other);
                return None;
            }
            Line::Object(object) => String::from_utf8_lossy(object),
        };
        let Ok(Kind { kind }) = serde_json::from_str::<Kind>(&object) else {
            self.odd.noise(object.as_bytes());
            return None;
        };
        self.event(&kind, &object)
    }

    fn finished(&self) -> bool {
        self.end.is_some() || self.waits >= PATIENCE
    }

    fn read(mut self: Box<Self>, end: &End<'_>) -> Heard {
        let verdict = self.verdict(end);
        for denied in denied_in(end.errors) {
            remark(&mut self.denied, denied);
        }
        // Where it tells no usage, as after a failure, there is nothing to take a difference of.
        let meter = self.usage.map_or_else(Meter::default, |usage| Meter {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            tokens_add_up: true,
            ..Meter::default()
        });
        Heard {
            verdict,
            text: self.text,
            conversation: self.conversation,
            meter,
            denied: self.denied,
            odd: self.odd.told(),
            ..Heard::default()
        }
    }
}
