//! Reads and writes lines. Both operations block, so each has a thread of its own. Neither thread
//! keeps the process alive after the client has disconnected.

use super::message::{self, Incoming};
use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};

/// The size limit of a message.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The most bytes of an oversized line that are searched for the id of the request.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;
/// The most messages that are queued before reading pauses.
const QUEUE_CAPACITY: usize = 16;
/// The time allowed for writing pending responses at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection. Clones share the connection.
#[derive(Clone)]
pub(super) struct StdioTransport {
    incoming: Arc<Mutex<mpsc::Receiver<Incoming>>>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
}

/// The writer thread, to be waited for.
pub(super) struct WriterHandle {
    done: oneshot::Receiver<()>,
}

impl StdioTransport {
    /// Opens a connection over a reader and a writer.
    pub(super) fn open<R, W>(input: R, output: W) -> io::Result<(Self, WriterHandle)>
    where
        R: FnOnce() -> Box<dyn BufRead> + Send + 'static,
        W: Write + Send + 'static,
    {
        let (sender, incoming) = mpsc::channel(QUEUE_CAPACITY);
        thread::Builder::new().name("mcp-in".into()).spawn(move || {
            let mut input = input();
            while let Some(line) = next(&mut input, MAX_MESSAGE_BYTES) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        let (outgoing, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let (finished, done) = oneshot::channel();
        let mut output = output;
        thread::Builder::new().name("mcp-out".into()).spawn(move || {
            while let Some(line) = lines.blocking_recv() {
                if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                    break;
                }
            }
            let _ = finished.send(());
        })?;
        Ok((Self { incoming: Arc::new(Mutex::new(incoming)), outgoing }, WriterHandle { done }))
    }

    fn queue(&self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.outgoing.send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl WriterHandle {
    /// Waits until everything is written, or until the timeout if the client does not read.
    pub(super) async fn finish(self, transport: StdioTransport) {
        drop(transport);
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, self.done).await;
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        // Queues at once, so that the order of calls does not depend on when futures are polled.
        std::future::ready(self.queue(&message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let line = {
                let mut incoming = self.incoming.lock().await;
                tokio::select! {
                    line = incoming.recv() => line?,
                    // The writer thread ended: the client closed its end.
                    () = self.outgoing.closed() => return None,
                }
            };
            match line {
                Incoming::Message(message) => return Some(*message),
                Incoming::Invalid(id, error) => {
                    self.queue(&JsonRpcMessage::error(error, id)).ok()?;
                }
                Incoming::Ignored => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the next line, or none at the end of input. A truncated last line is ignored, because its
/// sender no longer waits for a reply.
fn next(input: &mut impl BufRead, max_bytes: usize) -> Option<Incoming> {
    let mut line = Vec::new();
    input.take(max_bytes as u64 + 1).read_until(b'\n', &mut line).ok()?;
    match line.last() {
        None => None,
        Some(b'\n') => Some(message::parse(&line)),
        Some(_) if line.len() > max_bytes => {
            let mut rest = RestOfLine { input, ended: false };
            let error = message::oversized(&line, (&mut rest).take(MAX_SEARCHED_BYTES), max_bytes);
            io::copy(&mut rest, &mut io::sink()).ok()?;
            Some(error)
        }
        Some(_) => match message::parse(&line) {
            complete @ Incoming::Message(_) => Some(complete),
            Incoming::Invalid(..) | Incoming::Ignored => None,
        },
    }
}

/// A reader of the rest of a line, without its line ending.
struct RestOfLine<'i, I> {
    input: &'i mut I,
    ended: bool,
}

impl<I: BufRead> Read for RestOfLine<'_, I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let available = self.input.fill_buf()?;
        let available = &available[..available.len().min(buffer.len())];
        let end = available.iter().position(|byte| *byte == b'\n');
        let copied = end.unwrap_or(available.len());
        buffer[..copied].copy_from_slice(&available[..copied]);
        self.ended = end.is_some();
        let consumed = copied + usize::from(self.ended);
        self.input.consume(consumed);
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8], max_bytes: usize) -> Vec<String> {
        // A small buffer, so that lines arrive in pieces.
        let mut input = io::BufReader::with_capacity(7, bytes);
        let mut kinds = Vec::new();
        while let Some(line) = next(&mut input, max_bytes) {
            kinds.push(match line {
                Incoming::Message(_) => "message".to_owned(),
                Incoming::Invalid(id, _) => {
                    format!("invalid {}", id.map_or("-".to_owned(), |id| id.to_string()))
                }
                Incoming::Ignored => "ignored".to_owned(),
            });
        }
        kinds
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    #[test]
    fn an_oversized_line_does_not_affect_the_next() {
        let long = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{}"}}"#, "x".repeat(500));
        let bytes = format!("{PING}\n{long}\n{PING}\n\n{}\n{PING}\n", "y".repeat(500));
        assert_eq!(
            parsed(bytes.as_bytes(), 100),
            ["message", "invalid 9", "message", "ignored", "invalid -", "message"]
        );
    }

    #[test]
    fn the_limit_does_not_include_the_line_ending() {
        assert_eq!(parsed(format!("{PING}\n").as_bytes(), PING.len()), ["message"]);
        assert_eq!(parsed(format!("{PING}\n").as_bytes(), PING.len() - 1), ["invalid 1"]);
    }

    #[test]
    fn a_truncated_last_line_is_ignored_and_a_complete_one_is_parsed() {
        assert_eq!(parsed(format!("{PING}\n{}", &PING[..20]).as_bytes(), 100), ["message"]);
        assert_eq!(parsed(format!("{PING}\n{PING}").as_bytes(), 100), ["message", "message"]);
        assert_eq!(parsed("y".repeat(500).as_bytes(), 100), ["invalid -"]);
        assert!(parsed(b"", 100).is_empty());
    }
}
