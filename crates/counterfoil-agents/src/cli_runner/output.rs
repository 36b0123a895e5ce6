//! The output of a program while it works, and when it is stopped.

use crate::adapters::{ReplyProgress, StreamParser};
use crate::agent::{AgentProgress, PromptContext};
use crate::line_buffer::LineBuffer;
use crate::stderr_end::StderrEnd;
use crate::submissions;
use counterfoil_contract::Status;
use counterfoil_flow::Usage;
use counterfoil_process::{
    ChildOutcome, ChildSpec, Output, OutputSink, SpawnError, StopRequest, supervise,
};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{Notify, watch};

/// How much of the end of standard error is kept.
const MAX_STDERR_BYTES: usize = 64 << 10;

/// Supervises a program that is stopped by `stop`, or when `limit` ends. Then it returns what that
/// said.
pub(super) async fn supervise_until<T>(
    spawn: ChildSpec,
    sink: &mut OutputCollector<'_>,
    mut stop: watch::Receiver<StopRequest>,
    limit: impl Future<Output = T>,
) -> (Result<ChildOutcome, SpawnError>, Option<T>) {
    let (sender, receiver) = watch::channel(*stop.borrow_and_update());
    let supervised = supervise(spawn, sink, receiver);
    tokio::pin!(supervised, limit);
    let mut reached = None;
    loop {
        tokio::select! {
            ended = &mut supervised => return (ended, reached),
            Ok(()) = stop.changed() => {
                sender.send_replace(*stop.borrow_and_update());
                reached = None;
            }
            what = &mut limit, if reached.is_none() && *sender.borrow() == StopRequest::None => {
                reached = Some(what);
                sender.send_replace(StopRequest::Graceful);
            }
        }
    }
}

/// Writes the output of a program to the transcript and passes it line by line to the parser.
pub(super) struct OutputCollector<'r> {
    pub(super) context: &'r mut PromptContext,
    pub(super) lines: LineBuffer,
    pub(super) parser: Box<dyn StreamParser>,
    /// The id of the conversation, for those who follow its record.
    pub(super) conversation: Arc<OnceLock<String>>,
    /// The end of standard error.
    pub(super) errors: StderrEnd,
    /// Whether the id of the conversation was passed on.
    is_announced: bool,
    /// The submissions, if the program is ended after an accepted one.
    submissions: Option<SubmissionWatch>,
    progress: SharedProgress,
}

/// How far a program is, by its events and by its record, for progress displays.
#[derive(Clone)]
pub(super) struct SharedProgress {
    latest: Arc<Mutex<AgentProgress>>,
    tell: Arc<dyn Fn(&AgentProgress) + Send + Sync>,
}

impl SharedProgress {
    /// Progress that is told to a display.
    pub(super) fn new(tell: Arc<dyn Fn(&AgentProgress) + Send + Sync>) -> Self {
        Self { latest: Arc::default(), tell }
    }

    /// What the prompt has used so far.
    pub(super) fn usage(&self) -> Usage {
        self.latest().usage
    }

    fn latest(&self) -> MutexGuard<'_, AgentProgress> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known, and tells it.
    pub(super) fn update(&self, change: impl FnOnce(&mut AgentProgress)) {
        let mut latest = self.latest();
        change(&mut latest);
        (self.tell)(&latest);
    }
}

/// Waits for a submission that is accepted.
#[derive(Clone)]
pub(super) struct SubmissionWatch {
    /// The file of submissions.
    pub(super) file: PathBuf,
    /// The offset up to which that file was read before the prompt.
    pub(super) from: u64,
    /// Is told when the last submission is accepted and no tool call is open.
    pub(super) accepted: Arc<Notify>,
}

impl SubmissionWatch {
    /// Whether the last submission is accepted.
    pub(super) fn is_accepted(&self) -> bool {
        let read = submissions::read(&self.file, self.from);
        read.is_ok_and(|(all, _)| all.last().is_some_and(|last| last.status == Status::Accepted))
    }
}

impl<'r> OutputCollector<'r> {
    /// Collects what a program writes. `conversation` is set as soon as the program tells its id.
    pub(super) fn new(
        context: &'r mut PromptContext,
        parser: Box<dyn StreamParser>,
        conversation: Arc<OnceLock<String>>,
        submissions: Option<SubmissionWatch>,
        progress: SharedProgress,
    ) -> Self {
        let (lines, errors, is_announced) =
            (LineBuffer::default(), StderrEnd::of(MAX_STDERR_BYTES), false);
        Self { context, lines, parser, conversation, errors, is_announced, submissions, progress }
    }

    /// Tells how far the program is.
    fn tell_progress(&self) {
        let ReplyProgress { model, calls, open_call } = self.parser.progress();
        self.progress.update(|latest| {
            if let Some(model) = model {
                latest.model = Some(model.to_owned());
            }
            latest.calls = calls;
            latest.open_call = open_call.map(str::to_owned);
        });
    }
}

impl OutputSink for OutputCollector<'_> {
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()> {
        match output {
            Output::Stdout(bytes) => {
                let (parser, activity) = (&mut self.parser, &self.context.activity);
                self.lines.push(bytes, |line| {
                    if let Some(text) = parser.on_line(line) {
                        activity(&text);
                    }
                });
                if !self.is_announced
                    && let Some(id) = self.parser.conversation()
                {
                    self.conversation.get_or_init(|| id.to_owned());
                    (self.context.conversation)(id);
                    self.is_announced = true;
                }
                self.tell_progress();
                let watch = self.submissions.as_ref().filter(|_| !self.parser.has_open_calls());
                if let Some(watch) = watch.filter(|watch| watch.is_accepted()) {
                    watch.accepted.notify_one();
                }
                if self.context.transcript.write(bytes).is_err() {
                    // The transcript keeps the error, and the worker reports it.
                    return ControlFlow::Break(());
                }
            }
            Output::Stderr(bytes) => {
                self.errors.push(bytes);
            }
        }
        ControlFlow::Continue(())
    }

    fn finished(&self) -> bool {
        self.parser.finished()
    }
}
