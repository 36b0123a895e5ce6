//! Whether this process was started by a supervised child, directly or through others.
//!
//! Commands that only a person may give ask this. The environment is not enough: `env -i` empties
//! it. So the traces that a supervisor leaves on its children are looked for in this process and in
//! all its ancestors, and the supervisor itself among the ancestors: it adopts orphans, so that a
//! double fork leads to it.

use crate::MARKER;
use crate::platform::{self, Ancestor};

/// How it is known that this process runs inside of a supervised child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enclosure {
    /// Its own environment carries the marker.
    Environment {
        /// The value of the marker.
        marker: String,
    },
    /// It or an ancestor carries the marker, the tag or the control group of a supervised child.
    Marked {
        /// The process that carries it.
        pid: i32,
    },
    /// An ancestor is a supervisor.
    Supervisor {
        /// The process id of the supervisor.
        pid: i32,
    },
}

impl std::fmt::Display for Enclosure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment { marker } => write!(formatter, "{MARKER}={marker} is set"),
            Self::Marked { pid } => write!(formatter, "process {pid} belongs to an attempt"),
            Self::Supervisor { pid } => {
                write!(formatter, "process {pid}, which drives a run, started it")
            }
        }
    }
}

/// Whether this process runs inside of a supervised child. A supervisor is recognised by its
/// program: that of this process, or one with this file name.
///
/// On macOS the traces of an ancestor are its environment, which programs of the system hide, and its
/// program. There are no others, and orphans are adopted by nobody.
#[must_use]
pub fn enclosure(supervisor: &str) -> Option<Enclosure> {
    if let Some(marker) = std::env::var_os(MARKER).filter(|marker| !marker.is_empty()) {
        return Some(Enclosure::Environment { marker: marker.to_string_lossy().into_owned() });
    }
    Some(match platform::enclosing_ancestor(supervisor)? {
        Ancestor::Marked(pid) => Enclosure::Marked { pid },
        Ancestor::Supervisor(pid) => Enclosure::Supervisor { pid },
    })
}

/// Tells others that this process shows runs and drives none: a run that it starts is not inside of an
/// attempt. Call it on the main thread.
pub fn announce_dashboard() {
    platform::name_dashboard();
}
