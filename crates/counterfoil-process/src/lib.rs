//! Runs one child, an agent or a check, so that nothing of it is left behind and its output cannot
//! hurt us.
//!
//! The child leads a session of its own and carries a marker in its environment. Its output is
//! handed on in pieces of bounded size, clocks watch it, and whatever ends it, the whole tree is
//! killed: by its control group where the kernel gives us one, and always by ancestry, by session
//! and by the marker, so that a descendant that daemonised is found as well. The marker also finds
//! what a supervisor left that was itself killed: see [`sweep`].

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod descendants;
mod launch;
#[cfg(target_os = "linux")]
mod orphans;
mod own_children;
mod pipes;
#[cfg(not(target_os = "linux"))]
mod process_group;
mod process_tree;
#[cfg(target_os = "linux")]
mod rlimit_tag;
mod run;
mod scan;
#[cfg(target_os = "linux")]
mod table;
mod timeout;

pub use launch::SpawnError;
pub use timeout::{InvalidTimeout, parse_timeout};

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// The variable that carries the marker in the environment of the child and of all its descendants.
pub const MARKER: &str = "COUNTERFOIL_ATTEMPT";

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct ChildSpec {
    /// The program and its arguments; nothing is passed through a shell.
    pub argv: Vec<OsString>,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// The environment it starts from.
    pub environment: Environment,
    /// Variables set on top of that; the later one wins.
    pub extra: Vec<(OsString, OsString)>,
    /// What it reads on stdin, before the end of it.
    pub stdin: Vec<u8>,
    /// Names this attempt; no other running process tree may carry the same, or it is killed with
    /// this one.
    pub marker: String,
    /// How long it may take.
    pub timeouts: Timeouts,
}

/// The environment a child starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// Ours.
    #[default]
    Inherit,
    /// These variables and no others.
    Only(Vec<(OsString, OsString)>),
}

/// How long a child may take; a clock left out never strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the first byte of output.
    pub startup: Option<Duration>,
    /// From one output to the next, on either pipe; counted from the start if there is no startup
    /// clock.
    pub idle: Option<Duration>,
    /// From the start until the child itself has ended.
    pub total: Option<Duration>,
    /// Until the child itself has ended, once its watcher has all it needs; silence no longer
    /// counts then.
    pub finish: Duration,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How long the pipes may stay open after the child itself has ended.
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

/// Whether, and how, to end a child from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopRequest {
    /// Let it run.
    #[default]
    None,
    /// SIGTERM to the whole tree, the grace, then SIGKILL to what is left.
    Graceful,
    /// SIGKILL to the whole tree.
    Immediate,
}

/// A piece of output, of at most 64 KiB, cut anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Written to stdout.
    Stdout(&'a [u8]),
    /// Written to stderr.
    Stderr(&'a [u8]),
}

/// Sees the output as it comes.
pub trait OutputSink: Send {
    /// Takes a piece of output; on `Break` the child is ended as by [`StopRequest::Graceful`] and no more is
    /// handed on.
    ///
    /// The child waits on a full pipe while this runs, so it should be quick.
    fn output(&mut self, output: Output<'_>) -> ControlFlow<()>;

    /// Whether all that matters has been said, asked after each output until it is so. Some
    /// programs say that they are done and then do not end: from here on the child has
    /// [`Timeouts::finish`], and what it still writes is handed on.
    fn finished(&self) -> bool {
        false
    }
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The child ended by itself.
    Finished,
    /// It did not write anything in time.
    Startup,
    /// It fell silent.
    Idle,
    /// It took too long.
    Total,
    /// It had said all, and did not end in time.
    Finishing,
    /// It was stopped from outside.
    Stopped,
    /// The watcher had seen enough.
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

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildOutcome {
    /// Why.
    pub cause: Cause,
    /// How.
    pub exit: Exit,
    /// From the start until nothing of it was left.
    pub wall: Duration,
    /// Descendants that did not end with the child and had to be killed with SIGKILL.
    pub left_behind: usize,
}

/// By what means nothing of a child is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A control group for each child, and the walk as well.
    Cgroup,
    /// A walk over all processes: descendants, orphans (we adopt them), sessions, markers.
    Walk,
    /// The process group of the child, and no more; who leaves it is not found.
    ProcessGroup,
}

impl std::fmt::Display for Containment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Cgroup => "a control group for each child",
            Self::Walk => "orphans adopted, and a walk over all descendants",
            Self::ProcessGroup => "the process group only",
        })
    }
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// How many processes it ended.
    pub killed: usize,
}

/// Runs one child to its end, hands its output to the watcher, and leaves nothing of it behind.
///
/// Dropping the future kills the tree, and blocks until that is done.
///
/// On Linux this process becomes the parent of orphaned descendants, and reaps them. Other children
/// of this process are left to whoever started them, with one exception that cannot be told from an
/// orphan: a child that the first thread started and that leads a session of its own. Start such a
/// one here.
///
/// # Errors
///
/// If the child cannot be started, or is reaped by someone else.
pub async fn supervise(
    spec: ChildSpec,
    sink: &mut dyn OutputSink,
    stop: watch::Receiver<StopRequest>,
) -> Result<ChildOutcome, SpawnError> {
    process_tree::adopt_orphans();
    let (child, program, tree) = process_tree::start(&spec.marker, || launch::launch(&spec))?;
    run::ChildRun::new(child, program, tree, spec).finish(sink, stop).await
}

/// Ends every process of this user whose environment carries exactly this marker, with all its
/// descendants: by SIGTERM, and a second later by SIGKILL.
///
/// For resuming after a crash of our own. Never touches this process or one it descends from.
/// Blocks: a few milliseconds if there is nothing, and until they are gone (at most some seconds)
/// otherwise. Elsewhere than on Linux, where no other process's environment can be read, it finds
/// nothing.
pub fn sweep(marker: &str) -> SweepReport {
    SweepReport { killed: process_tree::sweep(marker) }
}

/// By what means children are contained here. Tries it out, once: some milliseconds.
///
/// With `COUNTERFOIL_CGROUP=off` in our environment no control groups are made.
#[must_use]
pub fn containment() -> Containment {
    process_tree::containment()
}
