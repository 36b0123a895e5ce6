//! The last message in a transcript of Claude Code, for versions that do not send it along. No I/O.

use serde_json::Value;

/// So much of the end of a transcript is read.
pub(crate) const TAIL: u64 = 8 << 20;

/// Whose message is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker<'a> {
    /// The main agent.
    Main,
    /// A subagent, by its id where it is known.
    Subagent(Option<&'a str>),
}

impl Speaker<'_> {
    fn said(self, line: &Value) -> bool {
        let aside = line.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
        match self {
            Self::Main => !aside,
            Self::Subagent(None) => aside,
            Self::Subagent(Some(id)) => match line.get("agentId").and_then(Value::as_str) {
                Some(other) => other == id,
                None => aside,
            },
        }
    }
}

/// The text of the last message of an agent, from the end of a transcript: one JSON object a line,
/// of which the first may be cut. A message stands on several lines if it has several parts. Lines
/// that are something else are passed over.
pub(crate) fn last_message(tail: &[u8], speaker: Speaker<'_>) -> Option<String> {
    let mut id: Option<String> = None;
    let mut parts: Vec<String> = Vec::new();
    for line in tail.rsplit(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        let is_message = line.get("type").and_then(Value::as_str) == Some("assistant")
            && line.get("isApiErrorMessage").and_then(Value::as_bool) != Some(true);
        if !is_message || !speaker.said(&line) {
            continue;
        }
        let Some(message) = line.get("message") else { continue };
        let this = message.get("id").and_then(Value::as_str);
        if !parts.is_empty() && (this.is_none() || this != id.as_deref()) {
            break;
        }
        let text = text_of(message.get("content"));
        if !text.is_empty() {
            id = this.map(str::to_owned);
            parts.push(text);
        }
    }
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

fn text_of(content: Option<&Value>) -> String {
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

    fn said(id: &str, text: &str) -> Value {
        json!({"type": "assistant", "isSidechain": false, "message": {"id": id, "role": "assistant",
            "content": [{"type": "text", "text": text}]}})
    }

    fn by(mut line: Value, agent: Option<&str>) -> Value {
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
    fn the_parts_of_the_last_message_are_put_together() {
        let tool = json!({"type": "assistant", "message": {"id": "m2", "content": [{"type": "tool_use"}]}});
        let text = lines(&[
            said("m1", "before"),
            said("m2", "one"),
            tool,
            said("m2", "two"),
            json!({"type": "system"}),
        ]);
        assert_eq!(last_message(&text, Speaker::Main).as_deref(), Some("one\ntwo"));
    }

    #[test]
    fn a_first_line_that_is_cut_and_lines_that_are_none_are_passed_over() {
        let mut text = b"\"text\": \"cut\"}]}}\n".to_vec();
        text.extend(lines(&[said("m1", "good")]));
        text.extend(
            b"\xff\xfe garbage\n[]\n7\n{\"type\": \"assistant\"}\n{\"type\": \"assistant\", \"mess",
        );
        assert_eq!(last_message(&text, Speaker::Main).as_deref(), Some("good"));
    }

    #[test]
    fn each_speaker_has_their_own_last_message() {
        let text = lines(&[
            said("m1", "main"),
            by(said("m2", "of a"), Some("a")),
            by(said("m3", "of b"), Some("b")),
            by(said("m4", "of somebody"), None),
        ]);
        let last = |speaker| last_message(&text, speaker).unwrap_or_default();
        assert_eq!(last(Speaker::Main), "main");
        assert_eq!(last(Speaker::Subagent(None)), "of somebody");
        let text = lines(&[by(said("m2", "of a"), Some("a")), by(said("m3", "of b"), Some("b"))]);
        assert_eq!(last_message(&text, Speaker::Subagent(Some("a"))).as_deref(), Some("of a"));
    }

    #[test]
    fn what_an_error_of_the_api_says_is_no_message() {
        let mut error = said("m2", "API Error: 500");
        error["isApiErrorMessage"] = json!(true);
        assert_eq!(last_message(&lines(&[error.clone()]), Speaker::Main), None);
        assert_eq!(
            last_message(&lines(&[said("m1", "good"), error]), Speaker::Main).as_deref(),
            Some("good")
        );
        assert_eq!(last_message(b"", Speaker::Main), None);
    }
}
