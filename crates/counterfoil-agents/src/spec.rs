//! Agent specs: the short texts, such as `claude` or `script:FILE`, that select the program behind
//! an agent.

use crate::acp::{self, AcpAgent};
use crate::adapters;
use crate::agent::Agent;
use crate::cli_runner::CliAgent;
use crate::command_agent::{CommandAgent, program_name};
use crate::config::CommandError;
use crate::environment::AgentEnvironment;
use crate::environment::installed::{self, MissingCommand, ProgramError};
use crate::script_agent::{ScriptAgent, ScriptError};
use std::path::PathBuf;
use std::sync::Arc;

/// A parsed agent spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSpec {
    /// A program with an adapter, by its name.
    Cli(&'static str),
    /// `acp:CMDLINE`
    Acp(Vec<String>),
    /// `command:CMDLINE`
    Command(Vec<String>),
    /// `script:FILE`
    Script(PathBuf),
}

/// A text that is not a valid agent spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{spec}' is not an agent: {why}; write {}acp:CMDLINE, command:CMDLINE or script:FILE",
    known_programs()
)]
pub struct SpecError {
    /// The invalid spec.
    pub spec: String,
    /// What is wrong with it.
    pub why: String,
}

/// The names of all programs with an adapter, each followed by a comma.
fn known_programs() -> String {
    adapters::adapters().iter().map(|adapter| format!("{}, ", adapter.name())).collect()
}

/// An agent that cannot be created from its spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnavailableAgent {
    /// The script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The program is not installed, does not run, or is too old.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The program of a command is not there.
    #[error(transparent)]
    Missing(#[from] MissingCommand),
    /// The settings of a command do not fit together.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl AgentSpec {
    /// Parses a spec.
    ///
    /// # Errors
    ///
    /// The text names no known program and no valid command or script.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let wrong = |why: &str| SpecError { spec: text.to_owned(), why: why.to_owned() };
        if let Some(adapter) = adapters::adapter(text) {
            return Ok(Self::Cli(adapter.name()));
        }
        match text.split_once(':') {
            Some((kind @ ("acp" | "command"), line)) => match shlex::split(line) {
                None => Err(wrong("a quote is not closed")),
                Some(argv) if argv.first().is_none_or(String::is_empty) => {
                    Err(wrong("the program is missing"))
                }
                Some(argv) if kind == "acp" => Ok(Self::Acp(argv)),
                Some(argv) => Ok(Self::Command(argv)),
            },
            Some(("script", "")) => Err(wrong("the file is missing")),
            Some(("script", file)) => Ok(Self::Script(PathBuf::from(file))),
            _ => {
                let kind = text.split(':').next().unwrap_or_default();
                let names = adapters::adapters().iter().map(|adapter| adapter.name());
                let suggestion = counterfoil_contract::suggest::did_you_mean(
                    kind,
                    names.chain(["acp", "command", "script"]),
                );
                Err(wrong(&suggestion.unwrap_or_else(|| format!("'{kind}' is unknown"))))
            }
        }
    }

    /// Whether one agent object serves all agents with this spec. Scripts need it: their replies
    /// have one order. Programs with settings have their own for each agent.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    /// Creates the agent for the workflow agent `name`. `played` lists the recorded replies that a
    /// run has used already.
    ///
    /// # Errors
    ///
    /// The program is not installed or too old, a command is not there, or the script cannot be read.
    pub fn agent(
        &self,
        name: &str,
        environment: &AgentEnvironment,
        played: &[u32],
    ) -> Result<Arc<dyn Agent>, UnavailableAgent> {
        Ok(match self {
            Self::Cli(program) => Arc::new(CliAgent::new(program, name, environment)?),
            Self::Acp(argv) => {
                let settings = environment.agents.settings(name, acp::NAME);
                let argv = installed::locate(argv, &settings, environment)?;
                Arc::new(AcpAgent::new(argv, name, environment))
            }
            Self::Command(argv) => {
                let settings = environment.agents.settings(name, program_name(argv));
                let argv = installed::locate(argv, &settings, environment)?;
                Arc::new(CommandAgent::configured(argv, name, environment)?)
            }
            Self::Script(file) => {
                let agent = ScriptAgent::load(&environment.folder.join(file), played)?;
                Arc::new(agent.with_launcher(environment.launcher.clone()))
            }
        })
    }
}
