//! Reads stdout and stderr of a child alternately into two fixed buffers, so that a flood on one
//! cannot starve the other.

use super::Output;
use super::platform;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{ChildStderr, ChildStdout};

/// How many bytes are read and passed on at once. A pipe holds no more by default.
const CHUNK_SIZE: usize = 64 * 1024;

/// The two output pipes of a child.
pub(super) struct Pipes {
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    /// The pipe to read first next time.
    turn: Name,
}

#[derive(Clone, Copy)]
enum Name {
    Stdout,
    Stderr,
}

impl Pipes {
    pub(super) fn new(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) -> Self {
        // Some programs exit without waiting for their output to be read and lose what the pipe has
        // no room for, which may be their final event.
        if let Some(stdout) = &stdout {
            platform::enlarge_pipe(stdout);
        }
        Self { stdout: Pipe::new(stdout), stderr: Pipe::new(stderr), turn: Name::Stdout }
    }

    /// Whether a pipe is still open.
    pub(super) fn are_open(&self) -> bool {
        self.stdout.source.is_some() || self.stderr.source.is_some()
    }

    /// The next chunk of output, or `None` when both pipes are closed. Cancel-safe.
    pub(super) async fn read(&mut self) -> Option<Output<'_>> {
        let from = poll_fn(|context| self.poll(context)).await?;
        Some(match from {
            Name::Stdout => Output::Stdout(self.stdout.chunk()),
            Name::Stderr => Output::Stderr(self.stderr.chunk()),
        })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Name>> {
        let order = match self.turn {
            Name::Stdout => [Name::Stdout, Name::Stderr],
            Name::Stderr => [Name::Stderr, Name::Stdout],
        };
        for name in order {
            let (polled, next) = match name {
                Name::Stdout => (self.stdout.poll(context), Name::Stderr),
                Name::Stderr => (self.stderr.poll(context), Name::Stdout),
            };
            if matches!(polled, Poll::Ready(true)) {
                self.turn = next;
                return Poll::Ready(Some(name));
            }
        }
        if self.are_open() { Poll::Pending } else { Poll::Ready(None) }
    }
}

/// One pipe and the bytes last read from it.
struct Pipe<S> {
    source: Option<S>,
    buffer: Box<[u8]>,
    filled: usize,
}

impl<S: AsyncRead + Unpin> Pipe<S> {
    fn new(source: Option<S>) -> Self {
        Self { source, buffer: vec![0; CHUNK_SIZE].into_boxed_slice(), filled: 0 }
    }

    fn chunk(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// Whether something was read. At its end or on an error, the pipe is closed.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let Some(source) = &mut self.source else { return Poll::Ready(false) };
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let read: io::Result<()> = ready!(Pin::new(source).poll_read(context, &mut buffer));
        self.filled = buffer.filled().len();
        if let Err(error) = &read {
            tracing::debug!(%error, "reading from a pipe of the child failed");
        }
        if read.is_err() || self.filled == 0 {
            self.source = None;
            return Poll::Ready(false);
        }
        Poll::Ready(true)
    }
}
