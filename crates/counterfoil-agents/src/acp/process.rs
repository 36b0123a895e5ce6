//! Talks to the process of a conversation: lines in both directions, the transcript, and what stops it.

use super::outgoing;
use super::turn::Turn;
use crate::agent::PromptContext;
use crate::line_buffer::LineBuffer;
use crate::stderr_end::StderrEnd;
use counterfoil_process::{
    Exchange, InteractiveChild, Output, OutputSink, SpawnError, StopRequest, Timeouts,
};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How many messages may wait until the program reads them.
pub(super) const MAX_UNREAD: usize = 1024;
/// How long a program may take to end its turn after it was asked to.
const CANCEL_GRACE: Duration = Duration::from_secs(3);
/// How much of the end of standard error is kept.
const MAX_STDERR_BYTES: usize = 64 << 10;

/// Why an exchange was stopped by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// Somebody asked for it.
    Requested,
    /// The program did not open a conversation in time.
    NotReady,
}

/// How far a turn is, for those who may stop it.
#[derive(Debug, Default)]
struct Progress {
    /// Whether the conversation is open.
    is_ready: bool,
    /// The conversation whose prompt is not answered.
    cancellable: Option<String>,
}

/// Passes lines between a program and a turn.
pub(super) struct TurnSink<'r, 'c> {
    context: &'r mut PromptContext,
    /// The lines of the process: one may begin in one turn and end in the next.
    lines: &'r mut LineBuffer,
    /// The turn.
    pub(super) turn: Turn<'c>,
    input: mpsc::Sender<Vec<u8>>,
    progress: Arc<Mutex<Progress>>,
    /// The end of standard error.
    pub(super) errors: StderrEnd,
    /// Whether the transcript is in the middle of a line.
    in_line: bool,
    /// Whether the program does not read what it is sent.
    pub(super) is_deaf: bool,
}

impl<'r, 'c> TurnSink<'r, 'c> {
    /// A sink for a turn, whose first line is sent.
    pub(super) fn new(
        context: &'r mut PromptContext,
        lines: &'r mut LineBuffer,
        turn: Turn<'c>,
        first: Vec<u8>,
        input: mpsc::Sender<Vec<u8>>,
    ) -> Self {
        let mut sink = Self {
            context,
            lines,
            turn,
            input,
            progress: Arc::default(),
            errors: StderrEnd::of(MAX_STDERR_BYTES),
            in_line: false,
            is_deaf: false,
        };
        sink.note_progress();
        let _ = sink.send(first);
        sink
    }

    /// Sends a line and writes it into the transcript.
    fn send(&mut self, line: Vec<u8>) -> ControlFlow<()> {
        if std::mem::take(&mut self.in_line) {
            let _ = self.context.transcript.write(b"\n");
        }
        let is_written = self.context.transcript.write(&line).is_ok();
        // If nobody reads any more, the end of the program tells why.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.input.try_send(line) {
            self.is_deaf = true;
            return ControlFlow::Break(());
        }
        if is_written { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn note_progress(&self) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.cancellable = self.turn.cancellable().map(str::to_owned);
        progress.is_ready |= progress.cancellable.is_some() || self.turn.is_over();
    }

    /// Takes a piece of output that ends with the line or in the middle of it.
    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        if self.context.transcript.write(piece).is_err() {
            // The transcript keeps the error, and the worker reports it.
            return ControlFlow::Break(());
        }
        self.in_line = !piece.ends_with(b"\n");
        let at = jiff::Timestamp::now().as_millisecond();
        let (turn, mut reactions) = (&mut self.turn, Vec::new());
        self.lines.push(piece, |line| reactions.push(turn.on_line(line, at)));
        for reaction in reactions {
            if let Some(text) = reaction.activity {
                (self.context.activity)(&text);
            }
            if let Some(line) = reaction.send {
                self.send(line)?;
            }
        }
        self.note_progress();
        (self.context.progress)(&self.turn.progress());
        if self.turn.must_end() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl OutputSink for TurnSink<'_, '_> {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        match output {
            Output::Stdout(bytes) => {
                // Line by line, so that our answers stand behind what they answer.
                bytes.split_inclusive(|byte| *byte == b'\n').try_for_each(|piece| self.take(piece))
            }
            Output::Stderr(bytes) => {
                self.errors.push(bytes);
                ControlFlow::Continue(())
            }
        }
    }

    fn finished(&self) -> bool {
        self.turn.is_over()
    }
}

/// Lets a program work on a turn. A stop request cancels the turn first, so that the program can end
/// what it does, and ends the program if that takes long. So does a conversation that is not open
/// after `startup`.
pub(super) async fn exchange(
    child: &mut InteractiveChild,
    timeouts: Timeouts,
    startup: Duration,
    sink: &mut TurnSink<'_, '_>,
) -> (Result<Option<Exchange>, SpawnError>, Option<Stopped>) {
    let mut stop = sink.context.stop.clone();
    let (progress, input) = (sink.progress.clone(), sink.input.clone());
    let progress = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let (sender, receiver) = watch::channel(*stop.borrow_and_update());
    let mut stopped = (*sender.borrow() != StopRequest::None).then_some(Stopped::Requested);
    let ready_by = Instant::now() + startup;
    let mut cancelled_until: Option<Instant> = None;
    let mut awaits_ready = true;
    let mut stop_sender_alive = true;
    let exchange = child.exchange(timeouts, sink, receiver);
    tokio::pin!(exchange);
    loop {
        tokio::select! {
            ended = &mut exchange => return (ended, stopped),
            changed = stop.changed(), if stop_sender_alive => {
                stop_sender_alive = changed.is_ok();
                let request = *stop.borrow_and_update();
                if request == StopRequest::None {
                    continue;
                }
                stopped = Some(Stopped::Requested);
                let session = progress().cancellable.clone();
                match session.filter(|_| request == StopRequest::Graceful) {
                    Some(session) if cancelled_until.is_none() => {
                        let _ = input.try_send(outgoing::cancel(&session));
                        cancelled_until = Some(Instant::now() + CANCEL_GRACE);
                    }
                    _ => drop(sender.send_replace(request)),
                }
            }
            () = sleep_until(cancelled_until), if cancelled_until.is_some() => {
                cancelled_until = None;
                sender.send_replace(StopRequest::Graceful);
            }
            () = tokio::time::sleep_until(ready_by), if awaits_ready => {
                awaits_ready = false;
                if !progress().is_ready && stopped.is_none() {
                    stopped = Some(Stopped::NotReady);
                    sender.send_replace(StopRequest::Graceful);
                }
            }
        }
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
