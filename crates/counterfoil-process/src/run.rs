//! The event loop of one supervised child: output, timeouts, stop requests, and the removal of what
//! is left.

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
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// How often processes are scanned while the child runs. A scan reaps orphans and records
/// descendants, which stay known even if they later hide their environment or leave the session.
const SCAN_INTERVAL: Duration = Duration::from_secs(5);
/// The scan interval while the descendants of a child that was asked to stop may still exit by
/// themselves.
const STOPPING_SCAN_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait for a child to exit after SIGKILL. It takes longer only if the child is blocked
/// in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest number of chunks read from the pipes after all processes are dead: more than the
/// largest pipes can hold.
const MAX_FINAL_CHUNKS: usize = 64;
/// How long to wait for one of these chunks. It takes longer only if an unrelated process holds the
/// pipe.
const FINAL_CHUNK_TIMEOUT: Duration = Duration::from_millis(200);

/// A supervised child and the state of its run.
pub(super) struct ChildRun {
    /// The first field, so that a dropped run kills the tree while the child is not reaped yet.
    tree: ProcessTree,
    child: Box<dyn ChildWrapper>,
    program: String,
    pipes: Pipes,
    stdin_writer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    timeouts: Timeouts,
    started: Instant,
    last_output: Option<Instant>,
    /// When the sink reported that the output is complete.
    finishing: Option<Instant>,
    phase: Phase,
    cause: Cause,
    status: Option<ExitStatus>,
    /// The sink returned `Break`: no more output is passed on.
    sink_stopped: bool,
    next_scan: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The tree received SIGTERM and is killed at this time.
    Ending(Option<Instant>),
    /// The child has exited by itself, and its pipes are read until this time.
    Lingering(Option<Instant>),
    Over,
}

enum Event {
    Exited(io::Result<ExitStatus>),
    Stop(StopRequest),
    /// The sender of stop requests was dropped.
    StopSenderDropped,
    Deadline,
    StdinWritten,
    Scan,
    /// Output arrived, and this is the answer of the sink.
    Output(SinkAnswer),
    /// Both pipes are closed.
    Closed,
    Silent(Cause),
}

/// The answer of the sink to a chunk of output.
enum SinkAnswer {
    Continue,
    /// The output is complete. The child may exit.
    Complete,
    /// The child is to be stopped.
    Stop,
}

impl ChildRun {
    pub(super) fn new(
        mut child: Box<dyn ChildWrapper>,
        program: String,
        tree: ProcessTree,
        spec: ChildSpec,
        input: Option<mpsc::Receiver<Vec<u8>>>,
    ) -> Self {
        let now = Instant::now();
        let pipes = Pipes::new(child.stdout().take(), child.stderr().take());
        let stdin_writer =
            child.stdin().take().map(|stdin| Box::pin(write_stdin(stdin, spec.stdin, input)) as _);
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

    /// Runs until no descendant of the child is left.
    pub(super) async fn finish(
        mut self,
        sink: &mut dyn OutputSink,
        stop: watch::Receiver<StopRequest>,
    ) -> Result<ChildOutcome, SpawnError> {
        self.run(sink, stop, false).await?;
        self.clear(sink).await
    }

    /// Begins an exchange: the child goes on, and the timeouts count from here. The first one has a
    /// startup timeout.
    pub(super) fn begin_exchange(&mut self, timeouts: Timeouts, is_first: bool) {
        let now = Instant::now();
        self.timeouts = timeouts;
        self.finishing = None;
        if !is_first {
            self.tree.resume();
            self.started = now;
            self.last_output = Some(now);
        }
    }

    /// Runs until the output is complete, and suspends the child and its descendants then: `None`.
    /// Otherwise none of them is left.
    pub(super) async fn exchange(
        &mut self,
        sink: &mut dyn OutputSink,
        stop: watch::Receiver<StopRequest>,
    ) -> Result<Option<ChildOutcome>, SpawnError> {
        self.run(sink, stop, true).await?;
        if self.phase == Phase::Running {
            self.tree.suspend();
            return Ok(None);
        }
        self.clear(sink).await.map(Some)
    }

    /// Closes stdin and asks all processes to end. It blocks until they have, or for `grace`.
    pub(super) fn terminate_now(&mut self, grace: Duration) {
        self.stdin_writer = None;
        self.tree.terminate_now(grace);
    }

    /// Runs until the child is to be cleared away, or until the output is complete if the child is
    /// left running then.
    async fn run(
        &mut self,
        sink: &mut dyn OutputSink,
        mut stop: watch::Receiver<StopRequest>,
        pauses: bool,
    ) -> Result<(), SpawnError> {
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
                // A child whose output is complete counts as finishing, whichever timeout ends it.
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
                        SinkAnswer::Complete if pauses && self.phase == Phase::Running => {
                            return Ok(());
                        }
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
        Ok(())
    }

    /// Waits for the next event. The order matters: output may be endless, so everything that can
    /// end the run is polled first. The silence timeouts are polled last, because unread output is
    /// not silence.
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

    /// When the current phase ends at the latest.
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

    /// When the child will have been silent for too long, and which timeout that is.
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

    /// Starts stopping the child if it is still running. The first cause is the one reported.
    fn end(&mut self, cause: Cause) {
        match self.phase {
            Phase::Running => {
                self.cause = cause;
                self.tree.terminate();
                self.phase = Phase::Ending(after(Instant::now(), self.timeouts.grace));
            }
            // The child has exited, but the sink rejected its last output.
            Phase::Lingering(_) if cause == Cause::SinkStopped => self.cause = cause,
            Phase::Lingering(_) => self.phase = Phase::Over,
            Phase::Ending(_) | Phase::Over => {}
        }
    }

    fn scan(&mut self) {
        // Until the child has exited, processes started after SIGTERM are left alone: they may be
        // part of its orderly shutdown.
        let ending = matches!(self.phase, Phase::Ending(_)) && self.status.is_some();
        let alive = if ending { self.tree.terminate() } else { self.tree.scan() };
        if ending && alive == 0 {
            self.phase = Phase::Over;
        }
        self.next_scan =
            Instant::now() + if ending { STOPPING_SCAN_INTERVAL } else { SCAN_INTERVAL };
    }

    /// Kills the remaining processes and reads the rest of their output.
    async fn clear(&mut self, sink: &mut dyn OutputSink) -> Result<ChildOutcome, SpawnError> {
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
                "the child did not exit after SIGKILL; it may be blocked in the kernel"
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

/// Writes all bytes to stdin, then those that arrive until nobody can send more, and closes it. A
/// child need not read them.
async fn write_stdin(
    mut stdin: ChildStdin,
    mut bytes: Vec<u8>,
    mut input: Option<mpsc::Receiver<Vec<u8>>>,
) {
    loop {
        if let Err(error) = stdin.write_all(&bytes).await {
            if error.kind() != io::ErrorKind::BrokenPipe {
                tracing::debug!(%error, "writing to the stdin of the child failed");
            }
            return;
        }
        let Some(input) = &mut input else { return };
        let Some(next) = input.recv().await else { return };
        bytes = next;
    }
}

async fn finish_stdin(stdin_writer: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    if let Some(stdin_writer) = stdin_writer {
        stdin_writer.await;
    }
}

/// The time after a duration. `None` (never) if it is too far in the future to be represented.
fn after(since: Instant, clock: Duration) -> Option<Instant> {
    since.checked_add(clock)
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
