//! A small client of HTTP/1.1, which can send what no browser would.

use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long an answer or a message is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request. It names the host and the port of the server, unless that is changed.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    address: SocketAddr,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(address: SocketAddr, method: &str, target: &str) -> Self {
        let headers = vec![("host".to_owned(), address.to_string())];
        let (method, target) = (method.to_owned(), target.to_owned());
        Self { address, method, target, headers, body: Vec::new() }
    }

    /// Adds a header. One of the same name stays.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// A body of a media type, or without one if the type is empty.
    pub(crate) fn body(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let request = self.without("content-type");
        if kind.is_empty() { request } else { request.header("content-type", kind) }
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Sends the request and reads the whole answer.
    pub(crate) fn send(&self) -> Answer {
        let (mut connection, mut answer) = self.open();
        let until = Instant::now() + PATIENCE;
        if self.method == "HEAD" || matches!(answer.status, 204 | 304) {
            return answer;
        }
        if answer.is_chunked() {
            let mut chunks = Chunks::default();
            while !chunks.take_from(&mut connection.raw) {
                assert_eq!(connection.fill(until), Filled::More, "{self:?}: {chunks:?}");
            }
            answer.body = chunks.bytes;
        } else if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().unwrap();
            while connection.raw.len() < length {
                assert_eq!(connection.fill(until), Filled::More, "{self:?}: too short");
            }
            answer.body = connection.raw;
        } else {
            while connection.fill(until) == Filled::More {}
            answer.body = connection.raw;
        }
        answer
    }

    /// Sends the request and reads the beginning of a stream of messages.
    pub(crate) fn follow(&self) -> Messages {
        let (connection, answer) = self.open();
        assert_eq!(answer.status, 200, "{self:?}");
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        Messages { connection, answer, chunks: Chunks::default(), is_over: false }
    }

    fn open(&self) -> (Connection, Answer) {
        let Self { address, method, target, headers, body } = self;
        let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        if !is_chunked && (method == "POST" || !body.is_empty()) {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut socket = TcpStream::connect(address).unwrap();
        // The server may refuse a request before it has read all of it.
        let _ = socket.write_all(&[head.as_bytes(), body.as_slice()].concat());
        let mut connection = Connection { socket, raw: Vec::new() };
        let until = Instant::now() + PATIENCE;
        let end = loop {
            if let Some(at) = connection.raw.windows(4).position(|part| part == b"\r\n\r\n") {
                break at;
            }
            assert_eq!(connection.fill(until), Filled::More, "no answer to {self:?}");
        };
        let head: Vec<u8> = connection.raw.drain(..end + 4).collect();
        (connection, Answer::from_head(&String::from_utf8(head).unwrap()))
    }
}

#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    /// What was received and not used.
    raw: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Filled {
    More,
    End,
    Late,
}

impl Connection {
    /// Waits for more bytes.
    fn fill(&mut self, until: Instant) -> Filled {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Filled::Late;
        }
        self.socket.set_read_timeout(Some(left)).unwrap();
        let mut bytes = [0; 8 << 10];
        match self.socket.read(&mut bytes) {
            Ok(0) => Filled::End,
            Ok(count) => {
                self.raw.extend_from_slice(&bytes[..count]);
                Filled::More
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    Filled::Late
                }
                _ => Filled::End,
            },
        }
    }
}

/// The content of chunks.
#[derive(Debug, Default)]
struct Chunks {
    bytes: Vec<u8>,
}

impl Chunks {
    /// Takes the whole chunks out of what was received. True after the last one.
    fn take_from(&mut self, raw: &mut Vec<u8>) -> bool {
        while let Some(line) = raw.windows(2).position(|part| part == b"\r\n") {
            let size = std::str::from_utf8(&raw[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let end = line + 2 + size;
            if raw.len() < end + 2 {
                return false;
            }
            self.bytes.extend_from_slice(&raw[line + 2..end]);
            raw.drain(..end + 2);
            if size == 0 {
                return true;
            }
        }
        false
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn from_head(head: &str) -> Self {
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        Self { status, headers: headers.collect(), body: Vec::new() }
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let first = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice in {self:?}");
        first
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The problem that the answer is, with this status and code.
    #[track_caller]
    pub(crate) fn expect_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        for part in ["type", "title", "detail"] {
            assert!(problem[part].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
    }
}

/// A message of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: String,
}

/// A stream of messages.
#[derive(Debug)]
pub(crate) struct Messages {
    connection: Connection,
    pub(crate) answer: Answer,
    chunks: Chunks,
    is_over: bool,
}

impl Messages {
    /// The next message. None if the stream ends first, or nothing arrives in time.
    fn wait(&mut self, wait: Duration) -> Option<Message> {
        let until = Instant::now() + wait;
        loop {
            let bytes = &mut self.chunks.bytes;
            if let Some(end) = bytes.windows(2).position(|part| part == b"\n\n") {
                let raw: Vec<u8> = bytes.drain(..end + 2).collect();
                let message = parse(&String::from_utf8(raw).unwrap());
                if message == Message::default() {
                    continue;
                }
                return Some(message);
            }
            if self.is_over {
                return None;
            }
            // The first messages may have come with the head.
            let taken = self.chunks.bytes.len();
            self.is_over = self.chunks.take_from(&mut self.connection.raw);
            if self.is_over || self.chunks.bytes.len() > taken {
                continue;
            }
            match self.connection.fill(until) {
                Filled::More => {}
                Filled::End => self.is_over = true,
                Filled::Late => return None,
            }
        }
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Message {
        self.next_within(PATIENCE)
    }

    #[track_caller]
    pub(crate) fn next_within(&mut self, wait: Duration) -> Message {
        let found = self.wait(wait);
        found.unwrap_or_else(|| panic!("no message; the end: {}", self.is_over))
    }

    /// Nothing arrives for half a second, and the stream does not end.
    #[track_caller]
    pub(crate) fn stays_silent(&mut self) {
        assert_eq!(self.wait(Duration::from_millis(500)), None);
        assert!(!self.is_over, "the stream ended");
    }

    /// The stream ends, without a further message.
    #[track_caller]
    pub(crate) fn ends(&mut self) {
        assert_eq!(self.wait(PATIENCE), None);
        assert!(self.is_over, "the stream goes on");
    }
}

fn parse(raw: &str) -> Message {
    let mut message = Message::default();
    for line in raw.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => value.clone_into(&mut message.id),
            "event" => value.clone_into(&mut message.event),
            "data" if message.data.is_empty() => value.clone_into(&mut message.data),
            "data" => message.data.push_str(&format!("\n{value}")),
            _ => {}
        }
    }
    message
}
