//! What the events of Gemini CLI say.

use super::failure::{self, Told};
use super::{EDITS, SHELL};
use crate::agent::adapter::common::{Field, Line, Odd, cut, event, look, remark, words};
use crate::agent::adapter::{End, Heard, Meter, Reader, Server, Verdict};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Which event it is.
#[derive(Deserialize)]
struct Tag {
    #[serde(rename = "type")]
    kind: String,
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
struct ToolUse {
    #[serde(rename = "tool_name")]
    name: String,
    #[serde(rename = "tool_id")]
    id: Field<String>,
    /// Whatever the model wrote.
    parameters: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolResult {
    #[serde(rename = "tool_id")]
    id: Field<String>,
    error: Field<Said>,
}

/// An error, or a remark on the way.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    severity: Field<String>,
    #[serde(rename = "type")]
    kind: Field<String>,
    message: String,
}

/// The last event. Whatever shape the rest of it has, its status is what counts.
#[derive(Deserialize)]
struct Last {
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

/// A conversation with more calls open than this is told of the first ones only.
const MOST_OPEN: usize = 1024;

/// Understands the events of one reply.
#[derive(Default)]
pub(super) struct Events {
    text: String,
    /// Where the line begins that is not whole yet.
    line: usize,
    /// What was said is over: what comes next is another message.
    over: bool,
    conversation: Option<String>,
    model: Option<String>,
    /// The tools that were called and have not answered, by the ids of the calls.
    open: HashMap<String, String>,
    denied: Vec<String>,
    odd: Odd,
    /// The last error that was told on the way.
    trouble: Option<String>,
    ends: usize,
    verdict: Option<Result<(), Told>>,
    meter: Meter,
}

impl Reader for Events {
    fn line(&mut self, line: &[u8]) -> Option<String> {
        let object = match look(line) {
            Line::Blank => return None,
            Line::Other(other) => {
                self.odd.noise(other);
                return None;
            }
            Line::Object(object) => object,
        };
        let Ok(Tag { kind }) = event(object) else {
            self.odd.noise(object);
            return None;
        };
        match &*kind {
            "init" => self.take(&kind, object, Self::init),
            "message" => self.take(&kind, object, Self::message),
            "tool_use" => {
                self.forget();
                self.take(&kind, object, |events, call| Some(events.tool_use(call)))
            }
            "tool_result" => self.take(&kind, object, Self::tool_result),
            "error" => self.take(&kind, object, Self::error),
            "result" => self.take(&kind, object, Self::result),
            _ => None,
        }
    }

    fn finished(&self) -> bool {
        self.verdict.is_some()
    }

    fn read(mut self: Box<Self>, end: &End<'_>) -> Heard {
        failure::remarks(end.errors).for_each(|remark| self.odd.say(remark));
        if self.ends > 1 {
            self.odd.say(format!("it ended {} times; the last time counts", self.ends));
        }
        let mut trouble = self.trouble.take();
        let verdict = match self.verdict {
            Some(Ok(())) => Verdict::Whole,
            Some(Err(mut told)) => {
                if told.message.is_empty() {
                    told.message = trouble.take().unwrap_or_default();
                }
                Verdict::Failed(failure::of(&told, end))
            }
            None => failure::without_events(end).map_or(Verdict::Missing, Verdict::Failed),
        };
        if let Some(trouble) = trouble {
            self.odd.say(warned(&trouble));
        }
        Heard {
            verdict,
            exit: 0,
            text: self.text,
            structured: None,
            conversation: self.conversation,
            model: self.model,
            version: None,
            meter: self.meter,
            denied: self.denied,
            odd: self.odd.told(),
        }
    }
}

impl Events {
    /// Takes an event in the shape that is known; another shape is said to be one.
    fn take<E: DeserializeOwned>(
        &mut self,
        kind: &str,
        object: &[u8],
        understand: impl FnOnce(&mut Self, E) -> Option<String>,
    ) -> Option<String> {
        match event(object) {
            Ok(known) => understand(self, known),
            Err(error) => {
                self.odd.shape(kind, &error);
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
        let piece = message.delta.known() == Some(true);
        if std::mem::take(&mut self.over) || !piece {
            self.forget();
        }
        self.over = !piece;
        self.text.push_str(&message.content);
        // Pieces are for watching when the line that they belong to is whole.
        let whole = message.content.rfind('\n')? + self.text.len() - message.content.len();
        let begun = std::mem::replace(&mut self.line, whole + 1);
        words(self.text[begun..whole].lines().next_back()?)
    }

    /// What is said before a tool is called, or before another end, is not the answer.
    fn forget(&mut self) {
        self.text.clear();
        self.line = 0;
    }

    fn tool_use(&mut self, call: ToolUse) -> String {
        let told = match telling(&call.parameters) {
            Some(what) => cut(&format!("{} {what}", call.name), 160),
            None => cut(&call.name, 160),
        };
        if let Some(id) = call.id.known().filter(|_| self.open.len() < MOST_OPEN) {
            self.open.insert(id, call.name);
        }
        told
    }

    fn tool_result(&mut self, result: ToolResult) -> Option<String> {
        let id = result.id.known().unwrap_or_default();
        let tool = self.open.remove(&id);
        if let Some(why) = result.error.odd() {
            self.odd.shape("tool_result", &why);
        }
        let error = result.error.known()?;
        let kind = error.kind.known().unwrap_or_default();
        // Ids begin with the name of the tool, should the call have been missed.
        let tool = tool
            .or_else(|| id.split_once("__").map(|(tool, _)| tool.to_owned()))
            .unwrap_or_default();
        let guarded = EDITS.contains(&&*tool) || tool == SHELL;
        let refused = match &*kind {
            "policy_violation" => true,
            // A tool that the mode or a policy forbids is not there.
            "tool_not_registered" => guarded,
            _ => guarded && REFUSALS.iter().any(|refusal| error.message.contains(refusal)),
        };
        if refused {
            let why = if kind == "tool_not_registered" {
                "what it may do here does not include it"
            } else {
                &error.message
            };
            remark(&mut self.denied, format!("{}: {}", cut(&tool, 60), cut(why, 240)));
        } else if kind == "tool_not_registered" && tool.contains(Server::NAME) {
            self.odd.say(format!(
                "`{}` was called and not there: the server that takes results is not attached",
                cut(&tool, 80)
            ));
        }
        None
    }

    fn error(&mut self, said: Said) -> Option<String> {
        let told = words(&said.message);
        if said.severity.get().is_some_and(|severity| severity == "warning") {
            self.odd.say(warned(&said.message));
        } else {
            self.trouble = Some(said.message);
        }
        told
    }

    fn result(&mut self, last: Last) -> Option<String> {
        self.ends += 1;
        self.over = true;
        self.verdict = Some(match &*last.status {
            "success" => Ok(()),
            status => {
                if status != "error" {
                    self.odd.say(format!(
                        "it ended with the status `{}`, which is not known",
                        cut(status, 60)
                    ));
                }
                Err(self.told(last.error))
            }
        });
        match last.stats {
            Field::Known(stats) => self.count(&stats),
            Field::Odd(why) => self.odd.shape("result", &format!("stats: {why}")),
            Field::Absent => {}
        }
        None
    }

    /// The error of a last event, in whatever shape.
    fn told(&mut self, error: Value) -> Told {
        match error {
            Value::Null => Told::default(),
            Value::String(message) => Told { kind: String::new(), message },
            other => {
                let as_it_is = other.to_string();
                match serde_json::from_value::<Said>(other) {
                    Ok(said) => {
                        Told { kind: said.kind.known().unwrap_or_default(), message: said.message }
                    }
                    Err(error) => {
                        self.odd.shape("result", &format!("error: {error}"));
                        Told { kind: String::new(), message: as_it_is }
                    }
                }
            }
        }
    }

    fn count(&mut self, stats: &Stats) {
        // The thoughts of a model are only in the total.
        let output = stats.total_tokens.saturating_sub(stats.input_tokens).max(stats.output_tokens);
        self.meter =
            Meter { input_tokens: stats.input_tokens, output_tokens: output, ..Meter::default() };
        let most = stats
            .models
            .iter()
            .filter(|(_, used)| used.total_tokens > 0)
            .max_by_key(|(_, used)| used.total_tokens);
        if let Some((model, _)) = most {
            self.model = Some(model.clone());
        }
    }
}

/// A remark on the way, in the program's words.
fn warned(said: &str) -> String {
    format!("it says: {}", cut(said, 240))
}

/// What a tool says when it may not do what it is asked for.
const REFUSALS: [&str; 4] =
    ["Path not in workspace", "Access denied", "denied by policy", "requires user confirmation"];

/// What tells most about a call.
fn telling(parameters: &Value) -> Option<&str> {
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
