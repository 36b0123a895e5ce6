//! What a hook is told on its standard input. No I/O.

use serde_json::{Map, Value};
use std::path::PathBuf;

/// A longer payload is not read to its end.
pub(crate) const LONGEST: usize = 64 << 20;

/// What happened, as Claude Code names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The main agent is about to end its turn.
    Stop,
    /// A subagent is about to hand back.
    SubagentStop,
}

impl Event {
    /// As it stands in the payload and in the settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
        }
    }

    /// The hook of ours that is for it.
    pub(crate) fn hook(self) -> &'static str {
        match self {
            Self::Stop => "claude-stop",
            Self::SubagentStop => "claude-subagent-stop",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Stop, Self::SubagentStop].into_iter().find(|event| event.name() == name)
    }
}

/// A payload, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The session.
    pub(crate) session: Option<String>,
    /// The prompt that the turn answers. Versions before it was told have none.
    pub(crate) prompt: Option<String>,
    /// The subagent, one of perhaps several of its type.
    pub(crate) agent: Option<String>,
    /// The agent's type: the name in its file.
    pub(crate) kind: Option<String>,
    /// Where the session works.
    pub(crate) cwd: Option<PathBuf>,
    /// What the agent said last.
    pub(crate) message: Option<String>,
    /// Where everything that was said stands; the subagent's own file where there is one.
    pub(crate) transcript: Option<PathBuf>,
    /// Whether the turn goes on because a hook blocked its end.
    pub(crate) active: Option<bool>,
}

impl Payload {
    /// Reads a payload that should be of an event. The error says what is wrong, and the way out.
    pub(crate) fn read(bytes: &[u8], event: Event) -> Result<Self, String> {
        if bytes.len() > LONGEST {
            return Err(format!("the payload is longer than {LONGEST} bytes; nothing was checked"));
        }
        if bytes.trim_ascii().is_empty() {
            return Err(format!(
                "there is no payload on standard input; Claude Code runs this as a hook of {}, and `counterfoil init` \
                 sets it up",
                event.name()
            ));
        }
        let object: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| {
            format!("the payload is not a JSON object: {error}; nothing was checked")
        })?;
        match text(&object, "hook_event_name")?.as_deref() {
            Some(name) if name == event.name() => {}
            Some(name) => {
                let way = match Event::named(name) {
                    Some(other) => {
                        format!("for that one there is `counterfoil hook {}`", other.hook())
                    }
                    None => format!("move it to {} in the settings", event.name()),
                };
                return Err(format!(
                    "the payload is of the event {name:?}, and this is the hook of {}; {way}",
                    event.name()
                ));
            }
            None => {
                return Err("the payload does not name its event; nothing was checked".to_owned());
            }
        }
        let own = if event == Event::SubagentStop {
            text(&object, "agent_transcript_path")?
        } else {
            None
        };
        let transcript = match own {
            Some(own) => Some(own),
            None => text(&object, "transcript_path")?,
        };
        let active = match object.get("stop_hook_active") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(active)) => Some(*active),
            Some(_) => return Err(unlike("stop_hook_active", "true or false")),
        };
        Ok(Self {
            session: text(&object, "session_id")?.filter(|session| !session.is_empty()),
            prompt: text(&object, "prompt_id")?,
            agent: text(&object, "agent_id")?,
            kind: text(&object, "agent_type")?.filter(|kind| !kind.is_empty()),
            cwd: text(&object, "cwd")?.map(PathBuf::from),
            message: text(&object, "last_assistant_message")?,
            transcript: transcript.map(PathBuf::from),
            active,
        })
    }
}

/// A text by its key; null is as good as left out.
fn text(object: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(unlike(key, "a text")),
    }
}

fn unlike(key: &str, expected: &str) -> String {
    format!("in the payload, {key} is not {expected}; nothing was checked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_as_claude_code_sends_it() {
        let bytes = include_bytes!("../../tests/fixtures/hooks/subagent-stop.json");
        let payload = Payload::read(bytes, Event::SubagentStop).unwrap();
        assert_eq!(payload.kind.as_deref(), Some("qa"));
        assert_eq!(payload.agent.as_deref(), Some("a61fa5a00ae091de8"));
        assert_eq!(payload.active, Some(true));
        assert_eq!(payload.message.as_deref(), Some("sub two"));
        assert!(payload.transcript.unwrap().ends_with("subagents/agent-a61fa5a00ae091de8.jsonl"));
        let bytes = include_bytes!("../../tests/fixtures/hooks/stop.json");
        let payload = Payload::read(bytes, Event::Stop).unwrap();
        assert_eq!((payload.agent, payload.kind, payload.active), (None, None, Some(false)));
        assert_eq!(payload.cwd.as_deref(), Some(std::path::Path::new("/repo")));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_way_out() {
        for (bytes, said) in [
            (&b""[..], "no payload on standard input"),
            (b" \n", "`counterfoil init` sets it up"),
            (b"{", "not a JSON object"),
            (b"[]", "not a JSON object"),
            (b"\xff\xfe", "not a JSON object"),
            (b"{}", "does not name its event"),
            (
                br#"{"hook_event_name": "SubagentStop"}"#,
                "there is `counterfoil hook claude-subagent-stop`",
            ),
            (br#"{"hook_event_name": "PreToolUse"}"#, "move it to Stop"),
            (br#"{"hook_event_name": "Stop", "session_id": 7}"#, "session_id is not a text"),
            (
                br#"{"hook_event_name": "Stop", "stop_hook_active": "yes"}"#,
                "stop_hook_active is not true or false",
            ),
        ] {
            let error = Payload::read(bytes, Event::Stop).unwrap_err();
            assert!(error.contains(said), "{}: {error}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn what_is_too_long_is_not_parsed() {
        let error = Payload::read(&vec![b' '; LONGEST + 1], Event::Stop).unwrap_err();
        assert!(error.contains("longer than"), "{error}");
    }
}
