//! One line of a client: a message, or what is wrong with it and to whom that can be said.

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::error::Category;
use std::io::{BufReader, Read};

/// A line that was read.
#[derive(Debug)]
pub(super) enum Frame {
    /// A message.
    Message(Box<ClientJsonRpcMessage>),
    /// Something else, and the error that says so.
    Fault(Option<RequestId>, ErrorData),
    /// Nothing that is answered: a blank line, a notification or a response that is out of form.
    Nothing,
}

/// What can be said of a message without reading all of it.
#[derive(Default, Deserialize)]
struct Head {
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

impl Head {
    /// Reads what there is, if the line begins as a message does: a list would be taken for its
    /// fields in order.
    fn read(start: &[u8], line: impl Read) -> Option<Self> {
        start
            .trim_ascii_start()
            .starts_with(b"{")
            .then(|| serde_json::from_reader(line).ok())
            .flatten()
    }

    /// The id, if it can be one.
    fn id(&self) -> Option<RequestId> {
        serde_json::from_value(self.id.clone()?).ok()
    }

    /// Nobody waits for an answer to a notification, and to answer a response would go round in
    /// circles.
    fn is_unanswered(&self) -> bool {
        (self.method.is_some() && self.id.is_none())
            || self.result.is_some()
            || self.error.is_some()
    }
}

/// Reads a line, without its end.
pub(super) fn read(line: &[u8]) -> Frame {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Frame::Nothing;
    }
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let words =
                format!("the line is not UTF-8: byte {} begins no character", error.valid_up_to());
            return Frame::Fault(None, ErrorData::parse_error(words, None));
        }
    };
    match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        Ok(message) => Frame::Message(Box::new(message)),
        Err(error) => fault(text, &error),
    }
}

fn fault(text: &str, error: &serde_json::Error) -> Frame {
    let head = Head::read(text.as_bytes(), text.as_bytes());
    if head.as_ref().is_some_and(Head::is_unanswered) {
        return Frame::Nothing;
    }
    let id = head.as_ref().and_then(Head::id);
    let words = match (&head, error.classify()) {
        // It can be read up to the depth that messages may have.
        (Some(_), Category::Syntax) => {
            format!("the message cannot be read: {error}; have it nested less deep")
        }
        (None, Category::Syntax | Category::Eof | Category::Io) => {
            return Frame::Fault(
                None,
                ErrorData::parse_error(format!("the line is not JSON: {error}"), None),
            );
        }
        (None, Category::Data) if text.starts_with('[') => {
            "send one message a line; there are no batches".to_owned()
        }
        (None, Category::Data) => "a message is a JSON object".to_owned(),
        (Some(head), _) => match head {
            Head { jsonrpc, .. } if jsonrpc.as_ref().is_none_or(|version| version != "2.0") => {
                "`jsonrpc` must be \"2.0\"".to_owned()
            }
            Head { method: None, .. } => "a request has a `method`".to_owned(),
            Head { method: Some(method), .. } if !method.is_string() => {
                "`method` must be a text".to_owned()
            }
            Head { id: Some(_), .. } if id.is_none() => {
                "`id` must be a text or a whole number".to_owned()
            }
            _ => "the message is no request, notification or response".to_owned(),
        },
    };
    Frame::Fault(id, ErrorData::invalid_request(words, None))
}

/// What is said of a line that is too long to be kept, of which only the start is here; the rest is
/// read through for its id alone.
pub(super) fn oversized(start: &[u8], rest: impl Read, most: usize) -> Frame {
    let head = Head::read(start, BufReader::new(start.chain(rest))).unwrap_or_default();
    if head.is_unanswered() {
        return Frame::Nothing;
    }
    let words = format!("the message is longer than {most} bytes; say less");
    Frame::Fault(head.id(), ErrorData::invalid_request(words, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &[u8]) -> (Option<String>, i32, String) {
        match read(line) {
            Frame::Fault(id, error) => {
                (id.map(|id| id.to_string()), error.code.0, error.message.into_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_answered_to_whom_it_can_be() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":4,"method":"x","params":{}1{}}}"#,
            "[".repeat(300),
            "]".repeat(300)
        );
        for (line, id, code, words) in [
            ("hello", None, -32700, "not JSON"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"#, None, -32700, "not JSON"),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None, -32600, "no batches"),
            ("17", None, -32600, "a JSON object"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some("1"), -32600, "`jsonrpc`"),
            (r#"{"id":"a","method":"ping"}"#, Some("a"), -32600, "`jsonrpc`"),
            (r#"{"jsonrpc":"2.0","id":2}"#, Some("2"), -32600, "`method`"),
            (
                r#"{"jsonrpc":"2.0","id":2,"method":7}"#,
                Some("2"),
                -32600,
                "`method` must be a text",
            ),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None, -32600, "`id`"),
            (&deep, Some("4"), -32600, "nested less deep"),
        ] {
            let (found, number, message) = said(line.as_bytes());
            assert_eq!((found.as_deref(), number), (id, code), "{line:.80}: {message}");
            assert!(message.contains(words), "{line:.80}: {message}");
        }
        let (id, code, message) = said(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
        assert_eq!((id, code), (None, -32700));
        assert!(message.contains("byte 34 begins no character"), "{message}");
    }

    #[test]
    fn nobody_is_told_who_does_not_wait() {
        for line in [
            "",
            "  \r",
            "\u{feff}",
            r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        ] {
            assert!(matches!(read(line.as_bytes()), Frame::Nothing), "{line}");
        }
    }

    #[test]
    fn messages_are_read_with_or_without_what_editors_add() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r",
            r#"{"jsonrpc":"2.0","id":1,"method":"of/our/own","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/of/our/own"}"#,
        ] {
            assert!(matches!(read(line.as_bytes()), Frame::Message(_)), "{line}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_answered_by_its_id_wherever_it_stands() {
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
                Frame::Fault(found, error) => {
                    assert_eq!(found.map(|id| id.to_string()).as_deref(), id);
                    assert!(error.message.contains("longer than 100 bytes"), "{}", error.message);
                }
                other => panic!("{other:?}"),
            }
        }
        let notification =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"a":"{long}"}}}}"#);
        assert!(matches!(oversized(notification.as_bytes(), &b""[..], 100), Frame::Nothing));
    }
}
