//! One run: output, clocks, stops and the end of the child, until nothing of it is left.

use super::launch::SpawnError;
use super::pipes::Pipes;
use super::tree::Tree;
use super::{Cause, Clocks, Ended, Exit, Spawn, Stop, Watch};
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
const LOOK: Duration = Duration::from_secs(5);
/// The same while the descendants of a child that was asked to end may still end by themselves.
const LOOK_CLOSELY: Duration = Duration::from_millis(20);
/// How long a child may take to end after SIGKILL; longer only if it hangs in the kernel.
const KILLED: Duration = Duration::from_secs(10);
/// What the pipes may still hold when everyone is dead: more pieces than the largest pipes have
/// room for.
const LAST_PIECES: usize = 64;
/// How long to wait for one of them; longer only if a stranger was given the pipe.
const LAST_PIECE: Duration = Duration::from_millis(200);

/// A child at some point of its run.
pub(super) struct Run {
    /// First, so that a run that is dropped kills the tree while the child is not reaped yet.
    tree: Tree,
    child: Box<dyn ChildWrapper>,
    program: String,
    pipes: Pipes,
    feeding: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    clocks: Clocks,
    started: Instant,
    heard: Option<Instant>,
    /// Since when the watcher has all it needs.
    finishing: Option<Instant>,
    phase: Phase,
    cause: Cause,
    status: Option<ExitStatus>,
    /// The watcher wants no more.
    deaf: bool,
    look_at: Instant,
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
    Stop(Stop),
    /// Nobody can stop us any more.
    Alone,
    Deadline,
    Fed,
    Look,
    /// Output came, and this is what the watcher says to it.
    Output(Said),
    /// Both pipes are at their end.
    Closed,
    Silence(Cause),
}

/// What the watcher says to an output.
enum Said {
    More,
    /// It has all it needs; the child may come to its end.
    Enough,
    /// It wants no more.
    Break,
}

impl Run {
    pub(super) fn new(
        mut child: Box<dyn ChildWrapper>,
        program: String,
        tree: Tree,
        spawn: Spawn,
    ) -> Self {
        let now = Instant::now();
        let pipes = Pipes::new(child.stdout().take(), child.stderr().take());
        let feeding = child.stdin().take().map(|stdin| Box::pin(feed(stdin, spawn.stdin)) as _);
        Self {
            tree,
            child,
            program,
            pipes,
            feeding,
            clocks: spawn.clocks,
            started: now,
            heard: None,
            finishing: None,
            phase: Phase::Running,
            cause: Cause::Finished,
            status: None,
            deaf: false,
            look_at: now + LOOK,
        }
    }

    /// Goes on until nothing of the child is left.
    pub(super) async fn finish(
        mut self,
        watch: &mut dyn Watch,
        mut stop: watch::Receiver<Stop>,
    ) -> Result<Ended, SpawnError> {
        let mut listening = true;
        let asked = *stop.borrow_and_update();
        self.stop(asked);
        while self.phase != Phase::Over {
            match self.next(watch, &mut stop, listening).await {
                Event::Exited(status) => {
                    self.tree.child_is_gone();
                    self.status = Some(status.map_err(|source| self.lost(source))?);
                    self.look_at = Instant::now();
                    if self.phase == Phase::Running {
                        self.phase = Phase::Lingering(after(self.look_at, self.clocks.linger));
                    }
                }
                Event::Stop(how) => self.stop(how),
                Event::Alone => listening = false,
                // Whoever has said all keeps what it said, whichever clock ends it.
                Event::Deadline if self.phase == Phase::Running && self.finishing.is_some() => {
                    self.end(Cause::Finishing);
                }
                Event::Deadline if self.phase == Phase::Running => self.end(Cause::Total),
                Event::Deadline => self.phase = Phase::Over,
                Event::Fed => self.feeding = None,
                Event::Look => self.look(),
                Event::Output(said) => {
                    let now = Instant::now();
                    self.heard = Some(now);
                    match said {
                        Said::More => {}
                        Said::Enough => self.finishing = Some(now),
                        Said::Break => {
                            self.deaf = true;
                            self.end(Cause::Watcher);
                        }
                    }
                }
                Event::Closed => {}
                Event::Silence(cause) => self.end(cause),
            }
            if matches!(self.phase, Phase::Lingering(_)) && !self.pipes.are_open() {
                self.phase = Phase::Over;
            }
        }
        self.clear(watch).await
    }

    /// What happens next. The order matters: output may come without end, so whatever ends it is
    /// asked first; silence is no silence while there is output to read.
    async fn next(
        &mut self,
        watch: &mut dyn Watch,
        stop: &mut watch::Receiver<Stop>,
        listening: bool,
    ) -> Event {
        let deadline = self.deadline();
        let silence = self.silence();
        let (deaf, finishing) = (self.deaf, self.finishing.is_some());
        tokio::select! {
            biased;
            status = self.child.wait(), if self.status.is_none() => Event::Exited(status),
            changed = stop.changed(), if listening => match changed {
                Ok(()) => Event::Stop(*stop.borrow_and_update()),
                Err(_) => Event::Alone,
            },
            () = at(deadline), if deadline.is_some() => Event::Deadline,
            () = fed(&mut self.feeding), if self.feeding.is_some() => Event::Fed,
            () = sleep_until(self.look_at), if !matches!(self.phase, Phase::Lingering(_)) => Event::Look,
            output = self.pipes.read(), if self.pipes.are_open() => match output {
                Some(_) if deaf => Event::Output(Said::More),
                Some(output) => Event::Output(match watch.output(output) {
                    ControlFlow::Break(()) => Said::Break,
                    ControlFlow::Continue(()) if finishing => Said::More,
                    ControlFlow::Continue(()) if watch.finished() => Said::Enough,
                    ControlFlow::Continue(()) => Said::More,
                }),
                None => Event::Closed,
            },
            () = at(silence.map(|(at, _)| at)), if silence.is_some() => {
                Event::Silence(silence.map_or(Cause::Idle, |(_, cause)| cause))
            }
        }
    }

    /// When the phase is over, whatever comes.
    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                let total = self.clocks.total.and_then(|total| after(self.started, total));
                let finish = self.finishing.and_then(|since| after(since, self.clocks.finish));
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
        let (since, clock, cause) = match (self.heard, self.clocks.startup) {
            (Some(heard), _) => (heard, self.clocks.idle?, Cause::Idle),
            (None, Some(startup)) => (self.started, startup, Cause::Startup),
            (None, None) => (self.started, self.clocks.idle?, Cause::Idle),
        };
        after(since, clock).map(|at| (at, cause))
    }

    fn stop(&mut self, how: Stop) {
        match how {
            Stop::No => {}
            Stop::Gently => self.end(Cause::Stopped),
            Stop::AtOnce => {
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
                self.tree.ask_to_end();
                self.phase = Phase::Ending(after(Instant::now(), self.clocks.grace));
            }
            // The child is gone, but the watcher did not like the last it wrote.
            Phase::Lingering(_) if cause == Cause::Watcher => self.cause = cause,
            Phase::Lingering(_) => self.phase = Phase::Over,
            Phase::Ending(_) | Phase::Over => {}
        }
    }

    fn look(&mut self) {
        // Who was started after the child was asked may have been started to end well, until the
        // child is gone.
        let ending = matches!(self.phase, Phase::Ending(_)) && self.status.is_some();
        let alive = if ending { self.tree.ask_to_end() } else { self.tree.look() };
        if ending && alive == 0 {
            self.phase = Phase::Over;
        }
        self.look_at = Instant::now() + if ending { LOOK_CLOSELY } else { LOOK };
    }

    /// Kills what is left, and reads what it has written.
    async fn clear(mut self, watch: &mut dyn Watch) -> Result<Ended, SpawnError> {
        self.tree.clear().await;
        let status = match self.status {
            Some(status) => Some(status),
            None => match timeout(KILLED, self.child.wait()).await {
                Ok(status) => Some(status.map_err(|source| self.lost(source))?),
                Err(_) => None,
            },
        };
        for _ in 0..LAST_PIECES {
            let Ok(Some(output)) = timeout(LAST_PIECE, self.pipes.read()).await else { break };
            if !self.deaf && watch.output(output).is_break() {
                self.deaf = true;
                if self.cause == Cause::Finished {
                    self.cause = Cause::Watcher;
                }
            }
        }
        if status.is_none() {
            tracing::warn!(
                program = self.program,
                "the child does not end after SIGKILL; it may hang in the kernel"
            );
        }
        Ok(Ended {
            cause: self.cause,
            exit: status.map_or(Exit::Signal(9), exit),
            wall: self.started.elapsed(),
            left_behind: self.tree.killed(),
        })
    }

    fn lost(&self, source: io::Error) -> SpawnError {
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
async fn feed(mut stdin: ChildStdin, bytes: Vec<u8>) {
    if let Err(error) = stdin.write_all(&bytes).await
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        tracing::debug!(%error, "stdin of the child broke");
    }
}

async fn fed(feeding: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    if let Some(feeding) = feeding {
        feeding.await;
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
