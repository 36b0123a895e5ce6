//! One run: output, clocks, stops and the end of the child, until nothing of it is left.

use super::launch::SpawnError;
use super::pipes::Pipes;
use super::process_tree::ProcessTree;
use super::{Cause, ChildOutcome, ChildSpec, Exit, OutputSink, StopRequest, Timeouts};
use process_wrap::tokio::ChildWrapper;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// How often to look who is there while the child runs: it reaps orphans, and whoever is seen once
/// stays known, even if it hides its environment and leaves the session later.
const SCAN_INTERVAL: Duration = Duration::from_secs(5);
/// The same while the descendants of a child that was asked to end may still end by themselves.
const STOPPING_SCAN_INTERVAL: Duration = Duration::from_millis(20);
/// How long a child may take to end after SIGKILL; longer only if it hangs in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// What the pipes may still hold when everyone is dead: more pieces than the largest pipes have
/// room for.
const MAX_FINAL_CHUNKS: usize = 64;
/// How long to wait for one of them; longer only if a stranger was given the pipe.
const FINAL_CHUNK_TIMEOUT: Duration = Duration::from_millis(200);

/// A child at some point of its run.
pub(super) struct ChildRun {
    /// First, so that a run that is dropped kills the tree while the child is not reaped yet.
    tree: ProcessTree,
    child: Box<dyn ChildWrapper>,
    program: String,
    pipes: Pipes,
    stdin_writer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    timeouts: Timeouts,
    started: Instant,
    last_output: Option<Instant>,
    /// Since when the watcher has all it needs.
    finishing: Option<Instant>,
    phase: Phase,
    cause: Cause,
    status: Option<ExitStatus>,
    /// The watcher wants no more.
    sink_stopped: bool,
    next_scan: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The tree was asked to end, and is killed then.
    Ending(Option<Instant>),
    /// The child has ended by itself, and its pipes are read until then.
    Lingering(Option<Instant>),
    Over,
}

enum Event {
    Exited(io::Result<ExitStatus>),
    Stop(StopRequest),
    /// Nobody can stop us any more.
    StopSenderDropped,
    Deadline,
    StdinWritten,
    Scan,
    /// Output came, and this is what the watcher says to it.
    Output(SinkAnswer),
    /// Both pipes are at their end.
    Closed,
    Silent(Cause),
}

/// What the watcher says to an output.
enum SinkAnswer {
    Continue,
    /// It has all it needs; the child may come to its end.
    Complete,
    /// It wants no more.
    Stop,
}

impl ChildRun {
    pub(super) fn new(
        mut child: Box<dyn ChildWrapper>,
        program: String,
        tree: ProcessTree,
        spec: ChildSpec,
    ) -> Self {
        let now = Instant::now();
        let pipes = Pipes::new(child.stdout().take(), child.stderr().take());
        let stdin_writer =
            child.stdin().take().map(|stdin| Box::pin(write_stdin(stdin, spec.stdin)) as _);
        Self {
            tree,
            child,
            program,
            pipes,
            stdin_writer,
            timeouts: spec.timeouts,
            started: now,
            last_output: None,
            finishing: None,
            phase: Phase::Running,
            cause: Cause::Finished,
            status: None,
            sink_stopped: false,
            next_scan: now + SCAN_INTERVAL,
        }
    }

    /// Goes on until nothing of the child is left.
    pub(super) async fn finish(
        mut self,
        sink: &mut dyn OutputSink,
        mut stop: watch::Receiver<StopRequest>,
    ) -> Result<ChildOutcome, SpawnError> {
        let mut stop_sender_alive = true;
        let request = *stop.borrow_and_update();
        self.stop(request);
        while self.phase != Phase::Over {
            match self.next(sink, &mut stop, stop_sender_alive).await {
                Event::Exited(status) => {
                    self.tree.child_reaped();
                    self.status = Some(status.map_err(|source| self.lost_child(source))?);
                    self.next_scan = Instant::now();
                    if self.phase == Phase::Running {
                        self.phase = Phase::Lingering(after(self.next_scan, self.timeouts.linger));
                    }
                }
                Event::Stop(how) => self.stop(how),
                Event::StopSenderDropped => stop_sender_alive = false,
                // Whoever has said all keeps what it said, whichever clock ends it.
                Event::Deadline if self.phase == Phase::Running && self.finishing.is_some() => {
                    self.end(Cause::Finishing);
                }
                Event::Deadline if self.phase == Phase::Running => self.end(Cause::Total),
                Event::Deadline => self.phase = Phase::Over,
                Event::StdinWritten => self.stdin_writer = None,
                Event::Scan => self.scan(),
                Event::Output(answer) => {
                    let now = Instant::now();
                    self.last_output = Some(now);
                    match answer {
                        SinkAnswer::Continue => {}
                        SinkAnswer::Complete => self.finishing = Some(now),
                        SinkAnswer::Stop => {
                            self.sink_stopped = true;
                            self.end(Cause::SinkStopped);
                        }
                    }
                }
                Event::Closed => {}
                Event::Silent(cause) => self.end(cause),
            }
            if matches!(self.phase, Phase::Lingering(_)) && !self.pipes.are_open() {
                self.phase = Phase::Over;
            }
        }
        self.clear(sink).await
    }

    /// What happens next. The order matters: output may come without end, so whatever ends it is
    /// asked first; silence is no silence while there is output to read.
    async fn next(
        &mut self,
        sink: &mut dyn OutputSink,
        stop: &mut watch::Receiver<StopRequest>,
        stop_sender_alive: bool,
    ) -> Event {
        let deadline = self.deadline();
        let silence = self.silence();
        let (sink_stopped, finishing) = (self.sink_stopped, self.finishing.is_some());
        tokio::select! {
            biased;
            status = self.child.wait(), if self.status.is_none() => Event::Exited(status),
            changed = stop.changed(), if stop_sender_alive => match changed {
                Ok(()) => Event::Stop(*stop.borrow_and_update()),
                Err(_) => Event::StopSenderDropped,
            },
            () = at(deadline), if deadline.is_some() => Event::Deadline,
            () = finish_stdin(&mut self.stdin_writer), if self.stdin_writer.is_some() => Event::StdinWritten,
            () = sleep_until(self.next_scan), if !matches!(self.phase, Phase::Lingering(_)) => Event::Scan,
            output = self.pipes.read(), if self.pipes.are_open() => match output {
                Some(_) if sink_stopped => Event::Output(SinkAnswer::Continue),
                Some(output) => Event::Output(match sink.output(output) {
                    ControlFlow::Break(()) => SinkAnswer::Stop,
                    ControlFlow::Continue(()) if finishing => SinkAnswer::Continue,
                    ControlFlow::Continue(()) if sink.finished() => SinkAnswer::Complete,
                    ControlFlow::Continue(()) => SinkAnswer::Continue,
                }),
                None => Event::Closed,
            },
            () = at(silence.map(|(at, _)| at)), if silence.is_some() => {
                Event::Silent(silence.map_or(Cause::Idle, |(_, cause)| cause))
            }
        }
    }

    /// When the phase is over, whatever comes.
    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                let total = self.timeouts.total.and_then(|total| after(self.started, total));
                let finish = self.finishing.and_then(|since| after(since, self.timeouts.finish));
                total.into_iter().chain(finish).min()
            }
            Phase::Ending(at) | Phase::Lingering(at) => at,
            Phase::Over => None,
        }
    }

    /// When the child has been silent for too long, and what that is called.
    fn silence(&self) -> Option<(Instant, Cause)> {
        if self.phase != Phase::Running || self.finishing.is_some() {
            return None;
        }
        let (since, clock, cause) = match (self.last_output, self.timeouts.startup) {
            (Some(last_output), _) => (last_output, self.timeouts.idle?, Cause::Idle),
            (None, Some(startup)) => (self.started, startup, Cause::Startup),
            (None, None) => (self.started, self.timeouts.idle?, Cause::Idle),
        };
        after(since, clock).map(|at| (at, cause))
    }

    fn stop(&mut self, how: StopRequest) {
        match how {
            StopRequest::None => {}
            StopRequest::Graceful => self.end(Cause::Stopped),
            StopRequest::Immediate => {
                if self.phase == Phase::Running {
                    self.cause = Cause::Stopped;
                }
                self.phase = Phase::Over;
            }
        }
    }

    /// Begins the end, if the child has not come to one: the first cause is the cause.
    fn end(&mut self, cause: Cause) {
        match self.phase {
            Phase::Running => {
                self.cause = cause;
                self.tree.terminate();
                self.phase = Phase::Ending(after(Instant::now(), self.timeouts.grace));
            }
            // The child is gone, but the watcher did not like the last it wrote.
            Phase::Lingering(_) if cause == Cause::SinkStopped => self.cause = cause,
            Phase::Lingering(_) => self.phase = Phase::Over,
            Phase::Ending(_) | Phase::Over => {}
        }
    }

    fn scan(&mut self) {
        // Who was started after the child was asked may have been started to end well, until the
        // child is gone.
        let ending = matches!(self.phase, Phase::Ending(_)) && self.status.is_some();
        let alive = if ending { self.tree.terminate() } else { self.tree.scan() };
        if ending && alive == 0 {
            self.phase = Phase::Over;
        }
        self.next_scan =
            Instant::now() + if ending { STOPPING_SCAN_INTERVAL } else { SCAN_INTERVAL };
    }

    /// Kills what is left, and reads what it has written.
    async fn clear(mut self, sink: &mut dyn OutputSink) -> Result<ChildOutcome, SpawnError> {
        self.tree.clear().await;
        let status = match self.status {
            Some(status) => Some(status),
            None => match timeout(KILL_TIMEOUT, self.child.wait()).await {
                Ok(status) => Some(status.map_err(|source| self.lost_child(source))?),
                Err(_) => None,
            },
        };
        for _ in 0..MAX_FINAL_CHUNKS {
            let Ok(Some(output)) = timeout(FINAL_CHUNK_TIMEOUT, self.pipes.read()).await else {
                break;
            };
            if !self.sink_stopped && sink.output(output).is_break() {
                self.sink_stopped = true;
                if self.cause == Cause::Finished {
                    self.cause = Cause::SinkStopped;
                }
            }
        }
        if status.is_none() {
            tracing::warn!(
                program = self.program,
                "the child does not end after SIGKILL; it may hang in the kernel"
            );
        }
        Ok(ChildOutcome {
            cause: self.cause,
            exit: status.map_or(Exit::Signal(9), exit),
            wall: self.started.elapsed(),
            left_behind: self.tree.killed(),
        })
    }

    fn lost_child(&self, source: io::Error) -> SpawnError {
        SpawnError::Lost { program: self.program.clone(), source }
    }
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

/// Writes all of stdin and closes it. A child need not read it.
async fn write_stdin(mut stdin: ChildStdin, bytes: Vec<u8>) {
    if let Err(error) = stdin.write_all(&bytes).await
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        tracing::debug!(%error, "stdin of the child broke");
    }
}

async fn finish_stdin(stdin_writer: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    if let Some(stdin_writer) = stdin_writer {
        stdin_writer.await;
    }
}

/// A moment so far off that it cannot be told is never.
fn after(since: Instant, clock: Duration) -> Option<Instant> {
    since.checked_add(clock)
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
