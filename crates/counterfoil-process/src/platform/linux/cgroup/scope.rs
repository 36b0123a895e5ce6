//! The control groups of one child: the one it is being added to, or those that a previous
//! supervisor left behind.

use super::{Group, REFUSED, hierarchy, leftover_groups, remove_stale};
use crate::membership::Process;
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self, Receiver};

/// The control groups that contain the descendants of a child. Dropping it kills whatever is left
/// in them.
#[derive(Debug)]
pub(in super::super) struct CgroupScope(State);

#[derive(Debug)]
enum State {
    /// The child is being added on another thread. The kernel waits some milliseconds until no
    /// process is being forked anywhere, which would be most of the cost of a short attempt. A
    /// group that is no longer awaited is dropped there.
    Entering(Receiver<Group>),
    In(Vec<Group>),
}

impl CgroupScope {
    /// A group for a child that has just been started. Empty where none can be created.
    pub(in super::super) fn for_child(child: Process, marker: &str) -> Self {
        let Some(hierarchy) = hierarchy() else { return Self::none() };
        let Ok(runtime) = Handle::try_current() else { return Self::none() };
        let marker = marker.to_owned();
        let (sender, entering) = oneshot::channel();
        // Not in a plain thread: the runtime waits for this task when it shuts down, so that no
        // empty group is left.
        runtime.spawn_blocking(move || {
            remove_stale(hierarchy);
            let entered = Group::make(hierarchy, &marker).and_then(|group| {
                group.add(&child)?;
                group.add_descendants(&child);
                Ok(group)
            });
            match entered {
                Ok(group) => drop(sender.send(group)),
                Err(error) => note_refusal(&error),
            }
        });
        Self(State::Entering(entering))
    }

    /// The groups that were created for a marker and still exist.
    pub(in super::super) fn for_marker(marker: &str) -> Self {
        Self(State::In(
            hierarchy().map(|hierarchy| leftover_groups(hierarchy, marker)).unwrap_or_default(),
        ))
    }

    pub(in super::super) fn none() -> Self {
        Self(State::In(Vec::new()))
    }

    /// Whether the child is still being added.
    pub(in super::super) fn is_entering(&mut self) -> bool {
        self.settle();
        matches!(self.0, State::Entering(_))
    }

    /// The ids of all processes in its groups.
    pub(in super::super) fn members(&mut self) -> HashSet<i32> {
        let mut members = HashSet::new();
        self.groups().iter().for_each(|group| group.members(&mut members));
        members
    }

    /// Whether a process in its groups is alive.
    pub(in super::super) fn is_populated(&mut self) -> bool {
        self.groups().iter().any(Group::is_populated)
    }

    /// Kills all processes in its groups at once.
    pub(in super::super) fn kill(&mut self) {
        self.groups().iter().filter(|group| group.is_populated()).for_each(Group::kill);
    }

    fn groups(&mut self) -> &[Group] {
        self.settle();
        match &self.0 {
            State::Entering(_) => &[],
            State::In(groups) => groups,
        }
    }

    fn settle(&mut self) {
        let State::Entering(entering) = &mut self.0 else { return };
        match entering.try_recv() {
            Ok(group) => self.0 = State::In(vec![group]),
            Err(TryRecvError::Closed) => self.0 = State::In(Vec::new()),
            Err(TryRecvError::Empty) => {}
        }
    }
}

/// Remembers a refusal that is permanent.
fn note_refusal(error: &io::Error) {
    let transient =
        [Errno::SRCH, Errno::AGAIN, Errno::NOSPC, Errno::NOMEM, Errno::INTR, Errno::NODEV];
    let is_transient =
        transient.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    if !is_transient {
        REFUSED.store(true, Ordering::Relaxed);
    }
    tracing::debug!(%error, is_transient, "a child runs without a control group");
}
