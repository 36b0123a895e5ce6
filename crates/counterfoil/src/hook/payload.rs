//! The payload that Claude Code sends to a hook on standard input. No I/O.

use serde_json::{Map, Value};
use std::path::PathBuf;
use strum::{EnumString, IntoStaticStr};

/// The size limit of a payload.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// The hook event, with the name that Claude Code uses in payloads and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
pub(crate) enum Event {
    /// The main agent is about to end its turn.
    Stop,
    /// A subagent is about to return its result.
    SubagentStop,
}

impl Event {
    /// The name of the event in payloads and settings.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// The subcommand of `counterfoil hook` that handles the event.
    fn subcommand(self) -> &'static str {
        match self {
            Self::Stop => "claude-stop",
            Self::SubagentStop => "claude-subagent-stop",
        }
    }
}

/// The fields of a payload that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The id of the session.
    pub(crate) session_id: Option<String>,
    /// The id of the prompt that the turn answers. Older versions do not send it.
    pub(crate) prompt_id: Option<String>,
    /// The id of the subagent instance.
    pub(crate) agent_id: Option<String>,
    /// The type of the agent: the name in its definition file.
    pub(crate) agent_type: Option<String>,
    /// The working directory of the session.
    pub(crate) cwd: Option<PathBuf>,
    /// The last message of the agent.
    pub(crate) message: Option<String>,
    /// The path of the transcript; the subagent's own transcript if there is one.
    pub(crate) transcript: Option<PathBuf>,
    /// Whether the turn continues because a hook blocked its end.
    pub(crate) stop_hook_active: Option<bool>,
}

impl Payload {
    /// Parses the payload of an event. The error says what is wrong and how to fix it.
    pub(crate) fn parse(bytes: &[u8], event: Event) -> Result<Self, String> {
        if bytes.len() > MAX_PAYLOAD_BYTES {
            return Err(format!(
                "the payload is larger than {MAX_PAYLOAD_BYTES} bytes; nothing was checked"
            ));
        }
        if bytes.trim_ascii().is_empty() {
            return Err(format!(
                "there is no payload on standard input; Claude Code runs this command as its {} hook, set up by \
                 `counterfoil init`",
                event.name()
            ));
        }
        let object: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| {
            format!("the payload is not a JSON object: {error}; nothing was checked")
        })?;
        match optional_string(&object, "hook_event_name")?.as_deref() {
            Some(name) if name == event.name() => {}
            Some(name) => {
                let hint = match name.parse::<Event>() {
                    Ok(other) => format!("use `counterfoil hook {}`", other.subcommand()),
                    Err(_) => format!("move the hook to {} in the settings", event.name()),
                };
                return Err(format!(
                    "the payload is for the event {name:?}, but this is the {} hook; {hint}",
                    event.name()
                ));
            }
            None => {
                return Err("the payload does not name its event; nothing was checked".to_owned());
            }
        }
        let subagent_transcript = if event == Event::SubagentStop {
            optional_string(&object, "agent_transcript_path")?
        } else {
            None
        };
        let transcript = match subagent_transcript {
            Some(path) => Some(path),
            None => optional_string(&object, "transcript_path")?,
        };
        let stop_hook_active = match object.get("stop_hook_active") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(active)) => Some(*active),
            Some(_) => return Err(wrong_type("stop_hook_active", "true or false")),
        };
        Ok(Self {
            session_id: optional_string(&object, "session_id")?
                .filter(|session| !session.is_empty()),
            prompt_id: optional_string(&object, "prompt_id")?,
            agent_id: optional_string(&object, "agent_id")?,
            agent_type: optional_string(&object, "agent_type")?.filter(|kind| !kind.is_empty()),
            cwd: optional_string(&object, "cwd")?.map(PathBuf::from),
            message: optional_string(&object, "last_assistant_message")?,
            transcript: transcript.map(PathBuf::from),
            stop_hook_active,
        })
    }
}

/// The string at a key; null counts as missing.
fn optional_string(object: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong_type(key, "a string")),
    }
}

fn wrong_type(key: &str, expected: &str) -> String {
    format!("{key} in the payload is not {expected}; nothing was checked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_claude_code_are_parsed() {
        let bytes = include_bytes!("../../tests/fixtures/hooks/subagent-stop.json");
        let payload = Payload::parse(bytes, Event::SubagentStop).unwrap();
        assert_eq!(payload.agent_type.as_deref(), Some("qa"));
        assert_eq!(payload.agent_id.as_deref(), Some("a61fa5a00ae091de8"));
        assert_eq!(payload.stop_hook_active, Some(true));
        assert_eq!(payload.message.as_deref(), Some("sub two"));
        assert!(payload.transcript.unwrap().ends_with("subagents/agent-a61fa5a00ae091de8.jsonl"));
        let bytes = include_bytes!("../../tests/fixtures/hooks/stop.json");
        let payload = Payload::parse(bytes, Event::Stop).unwrap();
        assert_eq!(
            (payload.agent_id, payload.agent_type, payload.stop_hook_active),
            (None, None, Some(false))
        );
        assert_eq!(payload.cwd.as_deref(), Some(std::path::Path::new("/repo")));
    }

    #[test]
    fn an_invalid_payload_is_an_error_with_a_hint() {
        for (bytes, expected) in [
            (&b""[..], "no payload on standard input"),
            (b" \n", "set up by `counterfoil init`"),
            (b"{", "not a JSON object"),
            (b"[]", "not a JSON object"),
            (b"\xff\xfe", "not a JSON object"),
            (b"{}", "does not name its event"),
            (
                br#"{"hook_event_name": "SubagentStop"}"#,
                "use `counterfoil hook claude-subagent-stop`",
            ),
            (br#"{"hook_event_name": "PreToolUse"}"#, "move the hook to Stop"),
            (
                br#"{"hook_event_name": "Stop", "session_id": 7}"#,
                "session_id in the payload is not a string",
            ),
            (
                br#"{"hook_event_name": "Stop", "stop_hook_active": "yes"}"#,
                "stop_hook_active in the payload is not true or false",
            ),
        ] {
            let error = Payload::parse(bytes, Event::Stop).unwrap_err();
            assert!(error.contains(expected), "{}: {error}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn an_oversized_payload_is_not_parsed() {
        let error = Payload::parse(&vec![b' '; MAX_PAYLOAD_BYTES + 1], Event::Stop).unwrap_err();
        assert!(error.contains("larger than"), "{error}");
    }
}
