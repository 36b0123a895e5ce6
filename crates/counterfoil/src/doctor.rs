//! Whether what is needed is there, and what is in the way: looking (`look`) and judging (`judge`)
//! are apart.

mod judge;
mod login;
mod look;

pub(crate) use judge::judge;
pub(crate) use look::look;

use serde::Serialize;
use std::path::PathBuf;

/// What the doctor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnosis {
    /// Whether everything that is needed works.
    pub(crate) ok: bool,
    /// Where it looked.
    pub(crate) repo: PathBuf,
    /// What is in the way, the worst first.
    pub(crate) findings: Vec<Finding>,
    /// The programs that play agents.
    pub(crate) programs: Vec<Program>,
    /// What else is as it should be.
    pub(crate) fine: Vec<String>,
}

/// Something that is in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// How bad it is.
    pub(crate) level: Level,
    /// What it is about: a program, a file.
    pub(crate) about: String,
    /// What is wrong.
    pub(crate) message: String,
    /// What mends it: a command, or what to write where.
    pub(crate) fix: String,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// Something that is needed does not work.
    Fail,
    /// Something works less well than it could.
    Warn,
}

/// A program that plays agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Program {
    /// As it is named in specs.
    pub(crate) name: String,
    /// How it stands.
    pub(crate) state: State,
    /// Whether the project says that it plays.
    pub(crate) needed: bool,
    /// Where it is.
    pub(crate) path: Option<PathBuf>,
    /// Its version.
    pub(crate) version: Option<String>,
    /// The versions that are known to work: the oldest, and the newest that was tried.
    pub(crate) known: (String, String),
    /// By what it is logged in, as far as that can be seen from outside; none if nothing was seen.
    pub(crate) login: Option<String>,
    /// By which ways it can hand back a result, the strongest first.
    pub(crate) channels: Vec<&'static str>,
    /// How it is installed.
    pub(crate) install: String,
}

/// How a program stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It is there, in a version that is known to work.
    Good,
    /// It is there, in a newer version than was tried.
    Newer,
    /// It is there, and does not say which version it is.
    Unknown,
    /// It is there, and too old.
    Old,
    /// It is there, and does not run.
    Broken,
    /// It is not there.
    Missing,
}

impl State {
    /// Whether it can play.
    pub(crate) fn plays(self) -> bool {
        matches!(self, Self::Good | Self::Newer | Self::Unknown)
    }
}
