//! Containment of a command: what it may write, what it does not see, and whether it has a network.
//!
//! A policy is a list of places with an access each ([`Place`]); the deepest place that contains a
//! path decides, and everything else can be read. Deciding is pure: `places` makes the policy,
//! `bwrap` and `landlock_argv` turn it into the argument list to launch. Looking is apart:
//! `surroundings` finds the folders, `probe` tries what this system offers, and `enter` is the
//! process that restricts itself and then becomes the command. [`Launcher`] puts them together.
//!
//! A command is never started with less than its settings ask for: the launcher returns an error.

mod bwrap;
#[cfg(target_os = "linux")]
mod enter;
mod landlock_argv;
mod launcher;
mod places;
mod probe;
mod surroundings;

#[cfg(target_os = "linux")]
pub use enter::{EnterError, enter};
pub use landlock_argv::COMMAND;
pub use launcher::{Launcher, SetupFailure, Unavailable};
pub use places::{Access, Place};
pub use probe::{Availability, Landlock, Support, probe_here};

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// The mechanism that contains a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The command is not contained.
    #[default]
    None,
    /// `bwrap` (bubblewrap): name spaces of the kernel, set up by an installed program.
    Bwrap,
    /// Landlock: the command restricts itself. No program has to be installed.
    Landlock,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::None, Self::Bwrap, Self::Landlock];

    /// The name, as in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How commands are contained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The mechanism.
    pub kind: Kind,
    /// Whether the command has a network.
    pub network: bool,
    /// Further files and folders that it may write. `~/` stands for the home folder.
    pub writable: Vec<PathBuf>,
    /// Further files and folders that it does not see. `~/` stands for the home folder.
    pub hidden: Vec<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { kind: Kind::None, network: true, writable: Vec::new(), hidden: Vec::new() }
    }
}

/// What the process that restricts itself is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restriction {
    /// The places, parents before what is in them.
    pub places: Vec<Place>,
    /// Whether places are mounted. Otherwise only rules apply: no place lies in a writable one.
    pub mounts: bool,
    /// Whether TCP is allowed.
    pub network: bool,
    /// The working directory.
    pub cwd: PathBuf,
    /// The command and its arguments.
    pub argv: Vec<OsString>,
}

/// The exit code of a process that could not restrict itself.
pub const NOT_CONTAINED: i32 = 125;
/// What the message of such a process begins with.
pub const NOT_CONTAINED_PREFIX: &str = "the command cannot be contained: ";
