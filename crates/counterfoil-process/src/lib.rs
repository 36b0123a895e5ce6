//! Supervises one child process, an agent or a check: bounds its output and its time, and leaves no
//! descendant running.
//!
//! The child leads its own session and carries a marker in its environment. Its output is passed on
//! in chunks of bounded size, and timeouts apply. Whatever ends the child, the whole process tree
//! is killed: through a control group where the kernel provides one, and always by ancestry, by
//! session and by the marker, which also finds descendants that daemonised. If the supervisor itself is
//! killed, a watchdog does so ([`watch_with`]), and if that is killed as well, [`sweep`] finds what was
//! left by the marker.

pub mod contain;
mod enclosure;
mod interactive;
mod launch;
mod membership;
mod output_files;
mod own_children;
mod pipes;
mod platform;
mod process_tree;
mod run;
mod scan;
mod signalling;
mod timeout;
mod unended;
mod watchdog;

pub use enclosure::{Enclosure, announce_dashboard, enclosure};
pub use interactive::{Exchange, InteractiveChild};
pub use launch::SpawnError;
pub use output_files::{input_file, output_files};
pub use platform::{
    ProcessLife, boot_id, is_without_modes, process_life, process_namespace, program_name,
};
pub use timeout::{InvalidTimeout, parse_timeout};
pub use unended::could_not_be_ended;
pub use watchdog::{own_marker, start_watchdog, watch, watch_with};

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::sync::watch;

/// The environment variable that carries the marker in the child and all its descendants.
pub const MARKER: &str = "COUNTERFOIL_ATTEMPT";

/// The child process to run: program, environment, input and timeouts.
#[derive(Clone, Debug)]
pub struct ChildSpec {
    /// The program and its arguments. No shell is involved.
    pub argv: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The environment to start from.
    pub environment: Environment,
    /// Variables set on top of the environment. A later entry overrides an earlier one.
    pub extra: Vec<(OsString, OsString)>,
    /// The bytes written to stdin before it is closed.
    pub stdin: Vec<u8>,
    /// Identifies this attempt. It must be unique among running process trees: a tree with the same
    /// marker is killed along with this one.
    pub marker: String,
    /// The timeouts that apply to the child.
    pub timeouts: Timeouts,
}

/// The environment that a child starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// The environment of this process.
    #[default]
    Inherit,
    /// Only these variables.
    Only(Vec<(OsString, OsString)>),
}

/// The timeouts of a child. One that is `None` never applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start until the first byte of output.
    pub startup: Option<Duration>,
    /// From one output to the next, on either pipe. Counted from the start if there is no startup
    /// timeout.
    pub idle: Option<Duration>,
    /// From the start until the child itself has exited.
    pub total: Option<Duration>,
    /// From the moment the sink reports that the output is complete until the child itself has
    /// exited. The idle timeout does not apply then.
    pub finish: Duration,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// How long the pipes may stay open after the child itself has exited.
    pub linger: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            startup: None,
            idle: None,
            total: None,
            finish: Duration::from_secs(10),
            grace: Duration::from_secs(5),
            linger: Duration::from_secs(1),
        }
    }
}

/// Whether and how the child is to be stopped from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopRequest {
    /// Let the child run.
    #[default]
    None,
    /// Send SIGTERM to the whole tree, wait for the grace period, then send SIGKILL to what is
    /// left.
    Graceful,
    /// Send SIGKILL to the whole tree.
    Immediate,
}

/// A chunk of output of at most 64 KiB, cut at an arbitrary position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Bytes written to stdout.
    Stdout(&'a [u8]),
    /// Bytes written to stderr.
    Stderr(&'a [u8]),
}

/// Receives the output of a child while it runs.
pub trait OutputSink: Send {
    /// Receives a chunk of output. On `Break` the child is stopped as by [`StopRequest::Graceful`]
    /// and no more output is passed on.
    ///
    /// The child blocks on a full pipe while this runs, so it should be quick.
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()>;

    /// Whether the output is complete. Asked after each chunk until it returns `true`. Some
    /// programs report that they are done and then do not exit: from here on the child has
    /// [`Timeouts::finish`] to exit, and what it still writes is passed on.
    fn finished(&self) -> bool {
        false
    }
}

/// Why supervision of the child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The child exited by itself.
    Finished,
    /// No output arrived within the startup timeout.
    Startup,
    /// No output arrived within the idle timeout.
    Idle,
    /// The total timeout expired.
    Total,
    /// The output was complete, but the child did not exit within the finish timeout.
    Finishing,
    /// A [`StopRequest`] stopped it.
    Stopped,
    /// The [`OutputSink`] returned `Break`.
    SinkStopped,
}

/// How the child itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// How a supervised child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildOutcome {
    /// Why it ended.
    pub cause: Cause,
    /// The exit code or signal of the child itself.
    pub exit: Exit,
    /// Wall time from the start until no descendant was left.
    pub wall: Duration,
    /// How many descendants outlived the child and were killed with SIGKILL.
    pub left_behind: usize,
}

/// The mechanism that keeps descendants from outliving a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A control group for each child, in addition to the process scan.
    Cgroup,
    /// A scan of all processes: descendants, orphans (which this process adopts), sessions and
    /// markers.
    Walk,
    /// A scan of all processes: descendants, sessions and markers, where they can be read. Nobody
    /// adopts orphans: a descendant that left the session, whose parent exited between two scans and
    /// whose environment is hidden or cleared, is not found.
    Table,
}

impl std::fmt::Display for Containment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Cgroup => "a control group for each child",
            Self::Walk => "adopting orphans and scanning all descendants",
            Self::Table => "scanning the process table; orphans are not adopted",
        })
    }
}

/// The result of a [`sweep`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// How many processes were ended.
    pub killed: usize,
}

/// Runs one child to its end, passes its output to the sink, and leaves no descendant running.
///
/// Dropping the future kills the process tree and blocks until that is done.
///
/// On Linux this process becomes the parent of orphaned descendants and reaps them. Other children
/// of this process are left alone, with one exception that cannot be distinguished from an orphan:
/// a child that was started by the main thread and leads its own session. Start such a child
/// through this function.
///
/// # Errors
///
/// The child cannot be started, or other code in this process reaped it.
pub async fn supervise(
    spec: ChildSpec,
    sink: &mut dyn OutputSink,
    stop: watch::Receiver<StopRequest>,
) -> Result<ChildOutcome, SpawnError> {
    platform::adopt_orphans();
    let stdin = if spec.stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
    let (child, program, tree) =
        process_tree::start(&spec.marker, || launch::launch(&spec, stdin))?;
    run::ChildRun::new(child, program, tree, spec, None).finish(sink, stop).await
}

/// Ends every process of this user whose environment carries exactly this marker, and all their
/// descendants: SIGTERM first, SIGKILL after one second.
///
/// Use it to resume after a crash of the supervisor. It never touches this process or its
/// ancestors. It blocks for a few milliseconds if there is nothing to end, and otherwise until the
/// processes are gone (at most some seconds). On macOS, programs of the system hide their environment:
/// it finds them only as descendants of others.
pub fn sweep(marker: &str) -> SweepReport {
    SweepReport { killed: process_tree::sweep(marker) }
}

/// The containment that is available here. The first call tests it, which takes some milliseconds.
///
/// With `COUNTERFOIL_CGROUP=off` in the environment of this process, no control groups are created.
#[must_use]
pub fn containment() -> Containment {
    platform::containment()
}
