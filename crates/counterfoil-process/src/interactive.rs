//! A supervised child that is talked to: it reads messages from stdin and answers them on stdout, for
//! as long as somebody has a message for it.

use super::run::ChildRun;
use super::{ChildOutcome, ChildSpec, OutputSink, SpawnError, StopRequest, Timeouts};
use super::{launch, platform, process_tree};
use std::process::Stdio;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long a child that nobody talks to any more may take to exit after SIGTERM.
const DROP_GRACE: Duration = Duration::from_secs(1);

/// A child that is talked to while it runs. It runs only during an [`exchange`](Self::exchange):
/// between two of them it is suspended with all its descendants (SIGSTOP), so that they change nothing
/// while nobody observes them.
///
/// Dropping it closes stdin, sends SIGTERM, kills after a second what is left of the process tree,
/// and blocks until that is done.
pub struct InteractiveChild {
    run: ChildRun,
    /// Whether there was no exchange yet.
    is_new: bool,
    /// Whether no process of it is left.
    is_over: bool,
}

/// How an exchange with a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// The sink has all that it waited for. The child is suspended until the next exchange.
    Complete,
    /// The child has ended, and no descendant of it is left.
    Ended(ChildOutcome),
}

impl InteractiveChild {
    /// Starts a child. It reads the bytes of the spec and then those that are sent to `input`, and
    /// its stdin is closed when nobody can send more. The timeouts of the spec do not apply: each
    /// exchange has its own.
    ///
    /// # Errors
    ///
    /// The child cannot be started.
    pub fn start(spec: ChildSpec, input: mpsc::Receiver<Vec<u8>>) -> Result<Self, SpawnError> {
        platform::adopt_orphans();
        let (child, program, tree) =
            process_tree::start(&spec.marker, || launch::launch(&spec, Stdio::piped()))?;
        let run = ChildRun::new(child, program, tree, spec, Some(input));
        Ok(Self { run, is_new: true, is_over: false })
    }

    /// Passes output to the sink until the sink has all that it waits for, or the child ends. The
    /// timeouts count from the beginning of the exchange, and only the first one has a startup
    /// timeout. Returns `None` if the child had ended before.
    ///
    /// # Errors
    ///
    /// Other code in this process reaped the child.
    pub async fn exchange(
        &mut self,
        timeouts: Timeouts,
        sink: &mut dyn OutputSink,
        stop: watch::Receiver<StopRequest>,
    ) -> Result<Option<Exchange>, SpawnError> {
        if self.is_over {
            return Ok(None);
        }
        self.run.begin_exchange(timeouts, std::mem::take(&mut self.is_new));
        let ended = self.run.exchange(sink, stop).await;
        self.is_over = !matches!(ended, Ok(None));
        ended.map(|ended| Some(ended.map_or(Exchange::Complete, Exchange::Ended)))
    }
}

impl Drop for InteractiveChild {
    fn drop(&mut self) {
        if !self.is_over {
            self.run.terminate_now(DROP_GRACE);
        }
    }
}
