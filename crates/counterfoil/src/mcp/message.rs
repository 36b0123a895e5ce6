//! Parses one line from the client: a message, or an error and the request it belongs to.

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::error::Category;
use std::io::{BufReader, Read};

/// A parsed line.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A valid message.
    Message(Box<ClientJsonRpcMessage>),
    /// An invalid line: the id of the request, if known, and the error to send.
    Invalid(Option<RequestId>, ErrorData),
    /// A line that gets no reply: a blank line, or a malformed notification or response.
    Ignored,
}

/// The envelope of a message. Its parameters are not read.
#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    jsonrpc: Option<Value>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<Value>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl Envelope {
    /// Parses the envelope if the line is an object. A list would be taken for the fields in order.
    fn read(start: &[u8], line: impl Read) -> Option<Self> {
        start
            .trim_ascii_start()
            .starts_with(b"{")
            .then(|| serde_json::from_reader(line).ok())
            .flatten()
    }

    /// The id, if it is valid.
    fn id(&self) -> Option<RequestId> {
        serde_json::from_value(self.id.clone()?).ok()
    }

    /// Whether the message gets no reply: notifications expect none, and a reply to a response
    /// could loop.
    fn expects_no_reply(&self) -> bool {
        (self.method.is_some() && self.id.is_none())
            || self.result.is_some()
            || self.error.is_some()
    }
}

/// Parses a line.
pub(super) fn parse(line: &[u8]) -> Incoming {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Incoming::Ignored;
    }
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let problem = format!("the line is not UTF-8 (at byte {})", error.valid_up_to());
            return Incoming::Invalid(None, ErrorData::parse_error(problem, None));
        }
    };
    match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        Ok(message) => Incoming::Message(Box::new(message)),
        Err(error) => invalid(text, &error),
    }
}

fn invalid(text: &str, error: &serde_json::Error) -> Incoming {
    let envelope = Envelope::read(text.as_bytes(), text.as_bytes());
    if envelope.as_ref().is_some_and(Envelope::expects_no_reply) {
        return Incoming::Ignored;
    }
    let id = envelope.as_ref().and_then(Envelope::id);
    let problem = match (&envelope, error.classify()) {
        // The envelope is valid, so the nesting of the parameters is too deep.
        (Some(_), Category::Syntax) => {
            format!("the message is nested too deeply: {error}")
        }
        (None, Category::Syntax | Category::Eof | Category::Io) => {
            return Incoming::Invalid(
                None,
                ErrorData::parse_error(format!("the line is not valid JSON: {error}"), None),
            );
        }
        (None, Category::Data) if text.starts_with('[') => {
            "batches are not supported; send one message per line".to_owned()
        }
        (None, Category::Data) => "a message must be a JSON object".to_owned(),
        (Some(envelope), _) => match envelope {
            Envelope { jsonrpc, .. } if jsonrpc.as_ref().is_none_or(|version| version != "2.0") => {
                "`jsonrpc` must be \"2.0\"".to_owned()
            }
            Envelope { method: None, .. } => "a request must have a `method`".to_owned(),
            Envelope { method: Some(method), .. } if !method.is_string() => {
                "`method` must be a string".to_owned()
            }
            Envelope { id: Some(_), .. } if id.is_none() => {
                "`id` must be a string or an integer".to_owned()
            }
            _ => "the message is not a request, notification or response".to_owned(),
        },
    };
    Incoming::Invalid(id, ErrorData::invalid_request(problem, None))
}

/// The error for a line that exceeds the limit. Only its start is in memory; the rest is streamed
/// to find the id of the request.
pub(super) fn oversized(start: &[u8], rest: impl Read, max_bytes: usize) -> Incoming {
    let envelope = Envelope::read(start, BufReader::new(start.chain(rest))).unwrap_or_default();
    if envelope.expects_no_reply() {
        return Incoming::Ignored;
    }
    let problem = format!("the message is larger than {max_bytes} bytes");
    Incoming::Invalid(envelope.id(), ErrorData::invalid_request(problem, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(line: &[u8]) -> (Option<String>, i32, String) {
        match parse(line) {
            Incoming::Invalid(id, error) => {
                (id.map(|id| id.to_string()), error.code.0, error.message.into_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_invalid_message_is_answered_with_its_id_if_known() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":4,"method":"x","params":{}1{}}}"#,
            "[".repeat(300),
            "]".repeat(300)
        );
        for (line, id, code, expected) in [
            ("hello", None, -32700, "not valid JSON"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"#, None, -32700, "not valid JSON"),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                None,
                -32600,
                "batches are not supported",
            ),
            ("17", None, -32600, "a JSON object"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some("1"), -32600, "`jsonrpc`"),
            (r#"{"id":"a","method":"ping"}"#, Some("a"), -32600, "`jsonrpc`"),
            (r#"{"jsonrpc":"2.0","id":2}"#, Some("2"), -32600, "`method`"),
            (
                r#"{"jsonrpc":"2.0","id":2,"method":7}"#,
                Some("2"),
                -32600,
                "`method` must be a string",
            ),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None, -32600, "`id`"),
            (&deep, Some("4"), -32600, "nested too deeply"),
        ] {
            let (found, number, message) = error_of(line.as_bytes());
            assert_eq!((found.as_deref(), number), (id, code), "{line:.80}: {message}");
            assert!(message.contains(expected), "{line:.80}: {message}");
        }
        let (id, code, message) = error_of(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
        assert_eq!((id, code), (None, -32700));
        assert!(message.contains("not UTF-8 (at byte 34)"), "{message}");
    }

    #[test]
    fn messages_that_expect_no_reply_are_ignored() {
        for line in [
            "",
            "  \r",
            "\u{feff}",
            r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        ] {
            assert!(matches!(parse(line.as_bytes()), Incoming::Ignored), "{line}");
        }
    }

    #[test]
    fn byte_order_marks_and_carriage_returns_are_accepted() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r",
            r#"{"jsonrpc":"2.0","id":1,"method":"custom/method","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/custom/method"}"#,
        ] {
            assert!(matches!(parse(line.as_bytes()), Incoming::Message(_)), "{line}");
        }
    }

    #[test]
    fn an_oversized_line_is_answered_by_its_id_wherever_it_is() {
        let long = "x".repeat(1000);
        for (line, id) in [
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"a":"{long}"}}}}"#
                ),
                Some("7"),
            ),
            (
                format!(
                    r#"{{"method":"tools/call","params":{{"a":"{long}"}},"jsonrpc":"2.0","id":"b"}}"#
                ),
                Some("b"),
            ),
            (long.clone(), None),
            (format!(r#"["2.0", 7, "{long}"]"#), None),
        ] {
            let (start, rest) = line.as_bytes().split_at(100);
            match oversized(start, rest, 100) {
                Incoming::Invalid(found, error) => {
                    assert_eq!(found.map(|id| id.to_string()).as_deref(), id);
                    assert!(error.message.contains("larger than 100 bytes"), "{}", error.message);
                }
                other => panic!("{other:?}"),
            }
        }
        let notification =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"a":"{long}"}}}}"#);
        assert!(matches!(oversized(notification.as_bytes(), &b""[..], 100), Incoming::Ignored));
    }
}
