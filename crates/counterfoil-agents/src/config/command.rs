//! The table `[agents.NAME.command]`: how a `command:` agent continues a conversation, and what its
//! output means.

mod written;

pub(super) use written::WrittenCommand;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The placeholder for the id of a conversation in a command line.
pub const CONVERSATION: &str = "{conversation}";

/// How a `command:` agent continues a conversation, and what its output means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSettings {
    /// The dialect of its output.
    pub output: Option<OutputDialect>,
    /// The command line that continues a conversation.
    pub resume: Option<Vec<String>>,
    /// Where the id of the conversation is.
    pub conversation: Option<Pointer>,
    /// Where the text of its messages is.
    pub text: Option<TextSource>,
    /// Where its usage is.
    pub usage: Option<UsageSource>,
    /// Which event says that the reply is complete.
    pub done: Option<Condition>,
    /// Where its errors are.
    pub error: Option<ErrorSource>,
}

/// The dialect of a program's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputDialect {
    /// The output is the text of the reply.
    #[default]
    Text,
    /// The events of `claude -p --output-format stream-json`.
    ClaudeStreamJson,
    /// A JSON object on each line, whose fields are found by JSON pointers.
    Jsonl,
}

impl OutputDialect {
    /// The name of the dialect in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::ClaudeStreamJson => "claude-stream-json",
            Self::Jsonl => "jsonl",
        }
    }
}

/// A JSON pointer (RFC 6901) to a field of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer(String);

impl Pointer {
    /// Parses a pointer. The whole event cannot be pointed to.
    ///
    /// # Errors
    ///
    /// The text is not a JSON pointer; the error says why and what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("\"\" is the whole event; point to a field of it, as in \"/result\"".into());
        }
        if !text.starts_with('/') {
            let path = text.trim_start_matches(['$', '.', '#']).replace('.', "/");
            let path = path.trim_matches('/');
            return Err(format!("{text:?} is not a JSON pointer; write \"/{path}\""));
        }
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('~') {
            if !after.starts_with(['0', '1']) {
                return Err(format!(
                    "{text:?} is not a JSON pointer: a `~` in a name is written `~0`, a `/` `~1`"
                ));
            }
            rest = after;
        }
        Ok(Self(text.to_owned()))
    }

    /// The pointer as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value that it points to. Null counts as nothing.
    pub fn find<'v>(&self, event: &'v Value) -> Option<&'v Value> {
        event.pointer(&self.0).filter(|value| !value.is_null())
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

/// What the fields of an event have to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition(pub Vec<(Pointer, Value)>);

impl Condition {
    /// Whether an event satisfies the condition.
    pub fn holds(&self, event: &Value) -> bool {
        self.0.iter().all(|(pointer, expected)| pointer.find(event) == Some(expected))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(pointer, value)| format!("{pointer} = {value}"));
        f.write_str(&each.collect::<Vec<_>>().join(" and "))
    }
}

/// Where the text of a program's messages is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSource {
    /// The text, or a part of it.
    pub at: Pointer,
    /// Only events that satisfy this have text of the agent.
    pub when: Condition,
    /// The id of the message that a text is a part of. Parts of a message are joined.
    pub message: Option<Pointer>,
    /// Which texts are the reply.
    pub take: TextTake,
}

/// Which of a program's texts are the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextTake {
    /// The last message.
    #[default]
    Last,
    /// All texts, joined.
    All,
}

/// Where a program's usage is. The values of several pointers are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSource {
    /// Input tokens.
    pub input: Vec<Pointer>,
    /// Input tokens that came from a cache, if `input` does not contain them.
    pub cached: Vec<Pointer>,
    /// Output tokens.
    pub output: Vec<Pointer>,
    /// The cost in US dollars.
    pub cost: Vec<Pointer>,
    /// Only events that satisfy this report usage.
    pub when: Condition,
    /// What the numbers of several events mean.
    pub take: UsageTake,
}

/// What the numbers of several events mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageTake {
    /// Each event reports its own usage: they are added.
    Sum,
    /// The last event reports the usage of the prompt.
    Last,
    /// The last event reports the usage of the whole conversation so far.
    Conversation,
}

/// Where a program's errors are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSource {
    /// The message.
    pub at: Pointer,
    /// The HTTP status of the model's API.
    pub status: Option<Pointer>,
    /// Only events that satisfy this are errors.
    pub when: Condition,
}

/// Settings that do not fit together. They may come from the tables of the agent and of its program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the agent '{agent}' cannot be run: {why} ([agents.{agent}.command] in counterfoil.toml, or the table of its program)"
)]
pub struct CommandError {
    /// The agent.
    pub agent: String,
    /// What is wrong, and what to write instead.
    pub why: String,
}

impl CommandSettings {
    /// These settings, completed with others.
    #[must_use]
    pub fn merged_over(self, base: Self) -> Self {
        Self {
            output: self.output.or(base.output),
            resume: self.resume.or(base.resume),
            conversation: self.conversation.or(base.conversation),
            text: self.text.or(base.text),
            usage: self.usage.or(base.usage),
            done: self.done.or(base.done),
            error: self.error.or(base.error),
        }
    }

    /// The dialect of the output.
    pub fn dialect(&self) -> OutputDialect {
        self.output.unwrap_or_default()
    }

    /// Whether a conversation is continued by its id.
    pub fn resumes_by_id(&self) -> bool {
        self.resume.iter().flatten().any(|word| word.contains(CONVERSATION))
    }

    /// Checks that the settings fit together and fit the command line of the agent.
    ///
    /// # Errors
    ///
    /// What is wrong, and what to write instead.
    pub fn check(&self, argv: &[String]) -> Result<(), String> {
        let dialect = self.dialect();
        let pointing = [
            ("text", self.text.is_some()),
            ("done", self.done.is_some()),
            ("conversation", self.conversation.is_some()),
            ("usage", self.usage.is_some()),
            ("error", self.error.is_some()),
        ];
        let mut present = pointing.iter().filter(|(_, present)| *present).map(|(name, _)| *name);
        match dialect {
            OutputDialect::Text => {
                if let Some(name) = present.next() {
                    return Err(format!(
                        "`{name}` points into events, and its output is text; \
                         set output = \"jsonl\" or \"claude-stream-json\", or remove `{name}`"
                    ));
                }
            }
            OutputDialect::ClaudeStreamJson => {
                if let Some(name) = present.next().filter(|name| ["text", "done"].contains(name)) {
                    return Err(format!(
                        "the dialect claude-stream-json says what `{name}` is; \
                         remove `{name}`, or set output = \"jsonl\""
                    ));
                }
            }
            OutputDialect::Jsonl => {
                if self.text.is_none() {
                    return Err("its output is jsonl, and nothing says where its text is; \
                                add text = { at = \"/…\" }"
                        .to_owned());
                }
            }
        }
        let named = argv.iter().any(|word| word.contains(CONVERSATION));
        if self.resume.is_none() {
            return match &self.conversation {
                Some(_) => Err(format!(
                    "`conversation` is of no use without `resume`; \
                     add the command line that continues a conversation, with {CONVERSATION}"
                )),
                None if named => Err(format!(
                    "its command line has {CONVERSATION}, and there is no `resume`; \
                     add the command line that continues a conversation"
                )),
                None => Ok(()),
            };
        }
        if !self.resumes_by_id() {
            if self.conversation.is_some() || named {
                return Err(format!("`resume` does not use the id; add {CONVERSATION} to it"));
            }
            return Ok(());
        }
        if self.conversation.is_none() && !named && dialect != OutputDialect::ClaudeStreamJson {
            return Err(format!(
                "`resume` has {CONVERSATION}, and nothing says which id that is; add \
                 conversation = \"/…\" for the place of the id in its events, or {CONVERSATION} to \
                 the command line of the agent if the program lets us choose it"
            ));
        }
        Ok(())
    }
}
