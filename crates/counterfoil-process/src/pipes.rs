//! Reads both pipes of a child in turns, so that a flood on one cannot starve the other, in two
//! fixed buffers.

use super::Output;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{ChildStderr, ChildStdout};

/// The most that is read, and handed on, at once. A pipe holds no more by default.
const CHUNK_SIZE: usize = 64 * 1024;
/// What we ask a pipe to hold. There are programs that do not wait for what they have written: what
/// their pipe had no room for when they end is lost, and that may be their last event. It is as
/// much as anybody may ask for on Linux.
#[cfg(target_os = "linux")]
const PIPE_CAPACITY: usize = 1024 * 1024;

/// Both pipes of a child.
pub(super) struct Pipes {
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    /// Whose turn it is to be read first.
    turn: Name,
}

#[derive(Clone, Copy)]
enum Name {
    Stdout,
    Stderr,
}

impl Pipes {
    pub(super) fn new(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) -> Self {
        #[cfg(target_os = "linux")]
        if let Some(stdout) = &stdout
            && let Err(error) = rustix::pipe::fcntl_setpipe_size(stdout, PIPE_CAPACITY)
        {
            tracing::debug!(%error, "a pipe of the child stays as it is");
        }
        Self { stdout: Pipe::new(stdout), stderr: Pipe::new(stderr), turn: Name::Stdout }
    }

    /// Whether more may come.
    pub(super) fn are_open(&self) -> bool {
        self.stdout.source.is_some() || self.stderr.source.is_some()
    }

    /// The next piece of output, or nothing when both pipes are at their end. Loses nothing if
    /// dropped.
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

/// One pipe and what was last read from it.
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

    /// Whether something was read; at its end, or if it breaks, the pipe is closed.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let Some(source) = &mut self.source else { return Poll::Ready(false) };
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let read: io::Result<()> = ready!(Pin::new(source).poll_read(context, &mut buffer));
        self.filled = buffer.filled().len();
        if let Err(error) = &read {
            tracing::debug!(%error, "a pipe of the child broke");
        }
        if read.is_err() || self.filled == 0 {
            self.source = None;
            return Poll::Ready(false);
        }
        Poll::Ready(true)
    }
}
