//! Checks of the setup: `probe` inspects the machine and the project, `diagnose` derives findings
//! from what it saw.

mod command_agents;
mod diagnose;
mod login;
mod own_settings;
mod probe;
mod workflows;

pub(crate) use diagnose::diagnose;
pub(crate) use probe::probe;

use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// The result of `counterfoil doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Diagnosis {
    /// Whether no finding is a failure.
    pub(crate) ok: bool,
    /// The repository that was checked.
    pub(crate) repo: PathBuf,
    /// The problems, failures first.
    pub(crate) findings: Vec<Finding>,
    /// The supported agent programs.
    pub(crate) programs: Vec<Program>,
    /// The checks of the project, which agents can run through the MCP server.
    pub(crate) checks: Vec<String>,
    /// The checks that passed.
    #[serde(rename = "fine")]
    pub(crate) passed: Vec<String>,
}

/// A problem of the setup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// The severity.
    pub(crate) level: Level,
    /// The program or file that the finding is about.
    pub(crate) about: String,
    /// The problem.
    pub(crate) message: String,
    /// How to fix it: a command, or an edit of a file.
    pub(crate) fix: String,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// Something that the project needs does not work.
    Fail,
    /// Something works, with restrictions.
    Warn,
}

/// A supported agent program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Program {
    /// The name of the program, as used in agent specs.
    pub(crate) name: String,
    /// Whether the program is installed and usable.
    pub(crate) state: State,
    /// Whether the project assigns the program to an agent.
    pub(crate) needed: bool,
    /// The path of the program.
    pub(crate) path: Option<PathBuf>,
    /// The version of the program.
    pub(crate) version: Option<String>,
    /// The oldest supported version and the newest tested one.
    pub(crate) known: (String, String),
    /// The source of its credentials, or none if none was detected.
    pub(crate) login: Option<String>,
    /// The channels through which it can return a result. The first one is used, unless it is
    /// `native` and the schema of a contract cannot be used.
    pub(crate) channels: Vec<&'static str>,
    /// What its agents may do by default; none if it cannot be used.
    pub(crate) permissions: Option<Permissions>,
    /// What the user's own settings add to its agents or forbid them, a line for each file.
    pub(crate) settings: Vec<String>,
    /// The command that installs it.
    pub(crate) install: String,
}

impl Program {
    /// Whether our server is attached, which runs the checks of the project.
    pub(crate) fn runs_checks(&self) -> bool {
        self.channels.contains(&"submit")
    }
}

/// What the agents of a program may do, by their access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Permissions {
    /// Agents that must not write files.
    pub(crate) read_only: &'static str,
    /// Agents that may write files.
    pub(crate) workspace_write: &'static str,
}

/// The state of an agent program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Installed in a tested version.
    Good,
    /// Installed in a version newer than the newest tested one.
    Newer,
    /// Installed, but the version is unknown.
    Unknown,
    /// Installed in a version that is not supported any more.
    Old,
    /// Installed, but it does not run.
    Broken,
    /// Not installed.
    Missing,
}

impl State {
    /// Whether the program can be assigned to agents.
    pub(crate) fn is_usable(self) -> bool {
        matches!(self, Self::Good | Self::Newer | Self::Unknown)
    }
}
