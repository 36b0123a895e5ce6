//! Finds the last message in a transcript of Claude Code, for versions that do not send it in the
//! payload. No I/O.

use serde_json::Value;

/// The number of bytes that are read from the end of a transcript.
pub(crate) const TAIL_BYTES: u64 = 8 << 20;

/// The agent whose message is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker<'a> {
    /// The main agent.
    Main,
    /// A subagent, by its id if it is known.
    Subagent(Option<&'a str>),
}

impl Speaker<'_> {
    /// Whether a line of the transcript is a message of this agent.
    fn matches(self, line: &Value) -> bool {
        let is_sidechain = line.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
        match self {
            Self::Main => !is_sidechain,
            Self::Subagent(None) => is_sidechain,
            Self::Subagent(Some(id)) => match line.get("agentId").and_then(Value::as_str) {
                Some(other) => other == id,
                None => is_sidechain,
            },
        }
    }
}

/// The text of the last message of an agent. `tail` is the end of a transcript, with one JSON
/// object on each line; the first line may be truncated. A message with several parts has one line
/// for each part. Other lines are skipped.
pub(crate) fn last_message(tail: &[u8], speaker: Speaker<'_>) -> Option<String> {
    let mut id: Option<String> = None;
    let mut parts: Vec<String> = Vec::new();
    for line in tail.rsplit(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        let is_message = line.get("type").and_then(Value::as_str) == Some("assistant")
            && line.get("isApiErrorMessage").and_then(Value::as_bool) != Some(true);
        if !is_message || !speaker.matches(&line) {
            continue;
        }
        let Some(message) = line.get("message") else { continue };
        let message_id = message.get("id").and_then(Value::as_str);
        if !parts.is_empty() && (message_id.is_none() || message_id != id.as_deref()) {
            break;
        }
        let text = message_text(message.get("content"));
        if !text.is_empty() {
            id = message_id.map(str::to_owned);
            parts.push(text);
        }
    }
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

fn message_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter(|part| part["type"] == "text");
            texts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(id: &str, text: &str) -> Value {
        json!({"type": "assistant", "isSidechain": false, "message": {"id": id, "role": "assistant",
            "content": [{"type": "text", "text": text}]}})
    }

    fn from_subagent(mut line: Value, agent: Option<&str>) -> Value {
        line["isSidechain"] = json!(true);
        if let Some(agent) = agent {
            line["agentId"] = json!(agent);
        }
        line
    }

    fn lines(lines: &[Value]) -> Vec<u8> {
        lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    }

    #[test]
    fn the_parts_of_the_last_message_are_joined() {
        let tool = json!({"type": "assistant", "message": {"id": "m2", "content": [{"type": "tool_use"}]}});
        let text = lines(&[
            message("m1", "before"),
            message("m2", "one"),
            tool,
            message("m2", "two"),
            json!({"type": "system"}),
        ]);
        assert_eq!(last_message(&text, Speaker::Main).as_deref(), Some("one\ntwo"));
    }

    #[test]
    fn truncated_and_malformed_lines_are_skipped() {
        let mut text = b"\"text\": \"cut\"}]}}\n".to_vec();
        text.extend(lines(&[message("m1", "good")]));
        text.extend(
            b"\xff\xfe garbage\n[]\n7\n{\"type\": \"assistant\"}\n{\"type\": \"assistant\", \"mess",
        );
        assert_eq!(last_message(&text, Speaker::Main).as_deref(), Some("good"));
    }

    #[test]
    fn each_agent_has_its_own_last_message() {
        let text = lines(&[
            message("m1", "main"),
            from_subagent(message("m2", "of a"), Some("a")),
            from_subagent(message("m3", "of b"), Some("b")),
            from_subagent(message("m4", "without an id"), None),
        ]);
        let last = |speaker| last_message(&text, speaker).unwrap_or_default();
        assert_eq!(last(Speaker::Main), "main");
        assert_eq!(last(Speaker::Subagent(None)), "without an id");
        let text = lines(&[
            from_subagent(message("m2", "of a"), Some("a")),
            from_subagent(message("m3", "of b"), Some("b")),
        ]);
        assert_eq!(last_message(&text, Speaker::Subagent(Some("a"))).as_deref(), Some("of a"));
    }

    #[test]
    fn an_api_error_is_not_a_message() {
        let mut error = message("m2", "API Error: 500");
        error["isApiErrorMessage"] = json!(true);
        assert_eq!(last_message(&lines(&[error.clone()]), Speaker::Main), None);
        assert_eq!(
            last_message(&lines(&[message("m1", "good"), error]), Speaker::Main).as_deref(),
            Some("good")
        );
        assert_eq!(last_message(b"", Speaker::Main), None);
    }
}
