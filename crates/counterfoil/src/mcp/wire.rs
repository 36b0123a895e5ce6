//! Lines in and out. Reading and writing block, so each has a thread of its own; neither keeps the
//! process alive when the other side is gone.

use super::frame::{self, Frame};
use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};

/// A longer line is no message that is kept.
const LONGEST: usize = 16 << 20;
/// So much of a longer line is read through for its id.
const SEARCHED: u64 = 64 << 20;
/// So many messages wait to be handled.
const WAITING: usize = 16;
/// What was answered is written within this time of the end, or nobody reads it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The two ends of a connection. A clone is the same connection.
#[derive(Clone)]
pub(super) struct Wire {
    lines: Arc<Mutex<mpsc::Receiver<Frame>>>,
    out: mpsc::UnboundedSender<Vec<u8>>,
}

/// The writing end, to be waited for.
pub(super) struct Writing {
    done: oneshot::Receiver<()>,
}

impl Wire {
    /// Opens a connection over what can be read and written.
    pub(super) fn open<R, W>(input: R, output: W) -> io::Result<(Self, Writing)>
    where
        R: FnOnce() -> Box<dyn BufRead> + Send + 'static,
        W: Write + Send + 'static,
    {
        let (heard, lines) = mpsc::channel(WAITING);
        thread::Builder::new().name("mcp-in".into()).spawn(move || {
            let mut input = input();
            while let Some(frame) = next(&mut input, LONGEST) {
                if heard.blocking_send(frame).is_err() {
                    return;
                }
            }
        })?;
        let (out, mut said) = mpsc::unbounded_channel::<Vec<u8>>();
        let (finished, done) = oneshot::channel();
        let mut output = output;
        thread::Builder::new().name("mcp-out".into()).spawn(move || {
            while let Some(line) = said.blocking_recv() {
                if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                    break;
                }
            }
            let _ = finished.send(());
        })?;
        Ok((Self { lines: Arc::new(Mutex::new(lines)), out }, Writing { done }))
    }

    fn say(&self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.out.send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Writing {
    /// Waits until everything is written, but not for a reader that does not read.
    pub(super) async fn end(self, wire: Wire) {
        drop(wire);
        let _ = tokio::time::timeout(LAST_WORDS, self.done).await;
    }
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        // In the order of the calls, whenever the futures are asked.
        std::future::ready(self.say(&message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let frame = {
                let mut lines = self.lines.lock().await;
                tokio::select! {
                    frame = lines.recv() => frame?,
                    // Nobody hears us any more.
                    () = self.out.closed() => return None,
                }
            };
            match frame {
                Frame::Message(message) => return Some(*message),
                Frame::Fault(id, error) => self.say(&JsonRpcMessage::error(error, id)).ok()?,
                Frame::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The next line; none at the end. A last line that breaks off is passed over: nobody waits for an
/// answer to it.
fn next(input: &mut impl BufRead, longest: usize) -> Option<Frame> {
    let mut line = Vec::new();
    let most = longest as u64 + 1;
    input.take(most).read_until(b'\n', &mut line).ok()?;
    match line.last() {
        None => None,
        Some(b'\n') => Some(frame::read(&line)),
        Some(_) if line.len() > longest => {
            let mut rest = Rest { input, ended: false };
            let found = frame::oversized(&line, (&mut rest).take(SEARCHED), longest);
            io::copy(&mut rest, &mut io::sink()).ok()?;
            Some(found)
        }
        Some(_) => match frame::read(&line) {
            whole @ Frame::Message(_) => Some(whole),
            Frame::Fault(..) | Frame::Nothing => None,
        },
    }
}

/// What is left of a line, without its end.
struct Rest<'i, I> {
    input: &'i mut I,
    ended: bool,
}

impl<I: BufRead> Read for Rest<'_, I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ended || into.is_empty() {
            return Ok(0);
        }
        let there = self.input.fill_buf()?;
        let there = &there[..there.len().min(into.len())];
        let end = there.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(there.len());
        into[..taken].copy_from_slice(&there[..taken]);
        self.ended = end.is_some();
        let consumed = taken + usize::from(self.ended);
        self.input.consume(consumed);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8], longest: usize) -> Vec<String> {
        // A small buffer, so that lines come in pieces.
        let mut input = io::BufReader::with_capacity(7, bytes);
        let mut seen = Vec::new();
        while let Some(frame) = next(&mut input, longest) {
            seen.push(match frame {
                Frame::Message(_) => "message".to_owned(),
                Frame::Fault(id, _) => {
                    format!("fault {}", id.map_or("-".to_owned(), |id| id.to_string()))
                }
                Frame::Nothing => "nothing".to_owned(),
            });
        }
        seen
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    #[test]
    fn a_line_that_is_too_long_does_not_take_the_next_with_it() {
        let long = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{}"}}"#, "x".repeat(500));
        let bytes = format!("{PING}\n{long}\n{PING}\n\n{}\n{PING}\n", "y".repeat(500));
        assert_eq!(
            frames(bytes.as_bytes(), 100),
            ["message", "fault 9", "message", "nothing", "fault -", "message"]
        );
    }

    #[test]
    fn the_limit_is_that_of_the_line_without_its_end() {
        assert_eq!(frames(format!("{PING}\n").as_bytes(), PING.len()), ["message"]);
        assert_eq!(frames(format!("{PING}\n").as_bytes(), PING.len() - 1), ["fault 1"]);
    }

    #[test]
    fn a_line_that_breaks_off_is_the_end_and_a_whole_message_without_one_is_heard() {
        assert_eq!(frames(format!("{PING}\n{}", &PING[..20]).as_bytes(), 100), ["message"]);
        assert_eq!(frames(format!("{PING}\n{PING}").as_bytes(), 100), ["message", "message"]);
        assert_eq!(frames("y".repeat(500).as_bytes(), 100), ["fault -"]);
        assert!(frames(b"", 100).is_empty());
    }
}
