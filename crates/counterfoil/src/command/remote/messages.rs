//! The messages of an event stream (`text/event-stream`).

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// What a stream has next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A message: its name and its data.
    Event(String, String),
    /// A comment. Servers send it to keep an idle connection open.
    Comment,
}

/// Reads the messages of a stream.
pub(super) struct Messages<R> {
    reader: BufReader<R>,
    /// The most bytes of a line, and of the data of a message.
    max: u64,
    name: String,
    data: String,
}

impl<R: Read> Messages<R> {
    pub(super) fn new(reader: R, max: u64) -> Self {
        Self { reader: BufReader::new(reader), max, name: String::new(), data: String::new() }
    }

    /// The next message. `None` if the stream has ended; a message that is cut off is dropped.
    pub(super) fn next_message(&mut self) -> io::Result<Option<Message>> {
        loop {
            let Some(line) = self.line()? else { return Ok(None) };
            if line.is_empty() {
                let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
                if !data.is_empty() {
                    return Ok(Some(Message::Event(name, data)));
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line.as_str(), ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" => return Ok(Some(Message::Comment)),
                "event" => value.clone_into(&mut self.name),
                "data" => {
                    if (self.data.len() + value.len()) as u64 > self.max {
                        return Err(too_long());
                    }
                    if !self.data.is_empty() {
                        self.data.push('\n');
                    }
                    self.data.push_str(value);
                }
                // The number of an event is part of its data.
                _ => {}
            }
        }
    }

    /// The next line, without its end. `None` at the end of the stream.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(self.max).read_until(b'\n', &mut bytes)?;
        if bytes.pop() != Some(b'\n') {
            // Without an end, it is cut off or too long.
            return if bytes.len() as u64 + 1 >= self.max { Err(too_long()) } else { Ok(None) };
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let line = String::from_utf8(bytes);
        line.map(Some).map_err(|_| io::Error::new(ErrorKind::InvalidData, "a line is not UTF-8"))
    }
}

fn too_long() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a message is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, max: u64) -> Result<Vec<Message>, String> {
        let mut messages = Messages::new(text.as_bytes(), max);
        let mut all = Vec::new();
        while let Some(message) = messages.next_message().map_err(|error| error.to_string())? {
            all.push(message);
        }
        Ok(all)
    }

    fn event(name: &str, data: &str) -> Message {
        Message::Event(name.to_owned(), data.to_owned())
    }

    #[test]
    fn messages_have_a_name_and_data() {
        let text = "id: 1\nevent: event\ndata: {\"seq\":1}\n\n:\n\ndata:a\r\ndata: b\r\n\r\nevent: end\ndata: 1\n\n";
        let expected =
            [event("event", "{\"seq\":1}"), Message::Comment, event("", "a\nb"), event("end", "1")];
        assert_eq!(all(text, 1000).unwrap(), expected);
    }

    #[test]
    fn a_message_that_is_cut_off_is_dropped() {
        assert_eq!(all("data: a\n\nevent: event\ndata: b", 1000).unwrap(), [event("", "a")]);
        assert_eq!(all("data: a\n\ndata: b\n", 1000).unwrap(), [event("", "a")]);
        assert_eq!(all("", 1000).unwrap(), []);
    }

    #[test]
    fn a_message_without_an_end_is_refused() {
        assert!(all(&"x".repeat(100), 20).is_err());
        assert!(all(&"data: 1234567890\n".repeat(10), 20).is_err());
    }
}
