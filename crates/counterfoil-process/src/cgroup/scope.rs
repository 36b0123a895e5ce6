//! The groups of one child: the one it is on its way into, or those that were left by a supervisor
//! before us.

use super::super::table::Process;
use super::{Group, REFUSED, hierarchy, leftover_groups, remove_stale};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self, Receiver};

/// Where those are kept who belong to a child. Dropped, nobody is left in it.
#[derive(Debug)]
pub(in super::super) struct CgroupScope(State);

#[derive(Debug)]
enum State {
    /// The kernel first waits until no process anywhere is in the middle of being born, some
    /// milliseconds, which would be most of what a short attempt costs; so that is done beside
    /// it. A group that nobody waits for any more is dropped there.
    Entering(Receiver<Group>),
    In(Vec<Group>),
}

impl CgroupScope {
    /// A group for a child that has just been started; empty where there can be none.
    pub(in super::super) fn for_child(child: Process, marker: &str) -> Self {
        let Some(hierarchy) = hierarchy() else { return Self::none() };
        let Ok(runtime) = Handle::try_current() else { return Self::none() };
        let marker = marker.to_owned();
        let (sender, entering) = oneshot::channel();
        // Not in a thread of its own: the runtime waits for this one at its end, so that no empty
        // group is left.
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

    /// The groups that were made for a marker and are still there.
    pub(in super::super) fn for_marker(marker: &str) -> Self {
        Self(State::In(
            hierarchy().map(|hierarchy| leftover_groups(hierarchy, marker)).unwrap_or_default(),
        ))
    }

    pub(in super::super) fn none() -> Self {
        Self(State::In(Vec::new()))
    }

    /// Whether the child is on its way in.
    pub(in super::super) fn is_entering(&mut self) -> bool {
        self.settle();
        matches!(self.0, State::Entering(_))
    }

    /// Who is in it.
    pub(in super::super) fn members(&mut self) -> HashSet<i32> {
        let mut members = HashSet::new();
        self.groups().iter().for_each(|group| group.members(&mut members));
        members
    }

    /// Whether anyone is alive in it.
    pub(in super::super) fn is_populated(&mut self) -> bool {
        self.groups().iter().any(Group::is_populated)
    }

    /// Kills all in it at one stroke.
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

/// Remembers a refusal that would only come again.
fn note_refusal(error: &io::Error) {
    let passing =
        [Errno::SRCH, Errno::AGAIN, Errno::NOSPC, Errno::NOMEM, Errno::INTR, Errno::NODEV];
    let again = passing.iter().any(|passing| error.raw_os_error() == Some(passing.raw_os_error()));
    if !again {
        REFUSED.store(true, Ordering::Relaxed);
    }
    tracing::debug!(%error, again, "a child goes without a control group");
}
