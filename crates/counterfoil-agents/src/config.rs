//! The key `agent` and the tables `[agents]`, `[prices]` and `[redact]` of `counterfoil.toml`: which
//! program is assigned to an agent, with which model and flags, what models cost, and what is
//! redacted in recordings. Other
//! tables belong to other crates and are ignored here.

mod command;
mod retry;

pub use command::{
    CONVERSATION, CommandError, CommandSettings, Condition, ErrorSource, OutputDialect, Pointer,
    TextSource, TextTake, UsageSource, UsageTake,
};

use crate::prices::{Price, Prices};
use crate::redact;
use counterfoil_contract::text::indent_further;
use counterfoil_flow::{Access, FailureKind, RetryRule};
use counterfoil_process::parse_timeout;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// The project's settings for agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agents {
    /// The spec for all agents without one of their own.
    pub rest: Option<String>,
    /// Settings by name: of a workflow agent, of a subagent, or of a program.
    pub named: BTreeMap<String, Settings>,
    /// What models cost.
    pub prices: Prices,
}

/// The settings of one agent or program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The spec of the program that is assigned to the agent.
    pub spec: Option<String>,
    /// The contract of its result, where no workflow names one.
    pub contract: Option<String>,
    /// The path of the program, if it is not the one on PATH.
    pub program: Option<PathBuf>,
    /// The model that the program uses.
    pub model: Option<String>,
    /// Further flags. They follow ours.
    pub flags: Vec<String>,
    /// Environment variables that are passed on. A `*` at the end matches any suffix.
    pub pass: Vec<String>,
    /// Environment variables that are set.
    pub env: BTreeMap<String, String>,
    /// How long the program may take to write its first output.
    pub startup: Option<Duration>,
    /// How long the program may write nothing.
    pub idle: Option<Duration>,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// The channels besides the text through which it may return its result. The first one that
    /// its program has is used.
    pub channels: Option<Vec<Channel>>,
    /// What it may do in the workspace. Overrides the workflow.
    pub access: Option<Access>,
    /// What a denied action means for a valid result.
    pub denied: Option<Denied>,
    /// How often and how long a step waits for the program's service, by kind of failure.
    pub retry: BTreeMap<FailureKind, RetryRule>,
    /// How a `command:` agent continues a conversation, and what its output means.
    pub command: CommandSettings,
}

/// A channel for a result, besides the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The program's own structured output.
    Native,
    /// The tool that receives results. Without this channel, our server is not attached.
    Submit,
}

/// What a denied action means for a valid result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denied {
    /// It is noted in the report.
    #[default]
    Note,
    /// The attempt ends as `permission`.
    Fail,
}

/// The settings for agents and recordings in `counterfoil.toml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentConfig {
    /// The settings for agents.
    pub agents: Agents,
    /// Patterns that are redacted in recordings, in addition to the known kinds of secrets.
    pub redact: Vec<String>,
}

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentConfigError {
    /// What is wrong, with the line and a suggestion.
    pub message: String,
}

impl AgentConfig {
    /// Parses the text of a configuration file.
    ///
    /// # Errors
    ///
    /// The text is not TOML, or a setting of an agent or a pattern is invalid.
    pub fn parse(text: &str) -> Result<Self, AgentConfigError> {
        let wrong = |message: String| AgentConfigError { message };
        let file: File =
            toml::from_str(text).map_err(|error| wrong(indent_further(&error.to_string())))?;
        let line = |byte: usize| text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1;
        let mut config = Self::default();
        for (name, written) in file.agents {
            let start = written.span().start;
            let settings = written.into_inner().validate().map_err(|(offset, why)| {
                wrong(format!(
                    "line {}: the agent '{name}' {why}",
                    line(if offset == 0 { start } else { offset })
                ))
            })?;
            config.agents.named.insert(name, settings);
        }
        config.agents.rest = file.agent;
        for (model, price) in file.prices {
            if !price.get_ref().is_valid() {
                return Err(wrong(format!(
                    "line {}: the price of {model:?} is not an amount of US dollars per million tokens",
                    line(price.span().start)
                )));
            }
            config.agents.prices.own.insert(model, price.into_inner());
        }
        for pattern in file.redact.patterns {
            if let Err(error) = redact::compile_pattern(pattern.get_ref()) {
                return Err(wrong(format!(
                    "line {}: {:?} in redact.patterns cannot be used: {}",
                    line(pattern.span().start),
                    pattern.get_ref(),
                    error.why,
                )));
            }
            config.redact.push(pattern.into_inner());
        }
        Ok(config)
    }
}

/// The parts of the file that are read here.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    agents: BTreeMap<String, Spanned<Written>>,
    #[serde(default)]
    prices: BTreeMap<String, Spanned<Price>>,
    #[serde(default)]
    redact: Redact,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Redact {
    patterns: Vec<Spanned<String>>,
}

impl Agents {
    /// The settings of an agent with a given program. The agent's own settings override those of
    /// the program.
    pub fn settings(&self, agent: &str, program: &str) -> Settings {
        let base = self.named.get(program).cloned().unwrap_or_default();
        match self.named.get(agent) {
            Some(own) if agent != program => own.clone().merged_over(base),
            _ => base,
        }
    }
}

impl Settings {
    /// These settings, completed with others. Flags and passed variables are those of both.
    #[must_use]
    pub fn merged_over(self, base: Self) -> Self {
        let both = |mut first: Vec<String>, then: Vec<String>| {
            first.extend(then);
            first
        };
        Self {
            spec: self.spec.or(base.spec),
            contract: self.contract.or(base.contract),
            program: self.program.or(base.program),
            model: self.model.or(base.model),
            flags: both(base.flags, self.flags),
            pass: both(base.pass, self.pass),
            env: base.env.into_iter().chain(self.env).collect(),
            startup: self.startup.or(base.startup),
            idle: self.idle.or(base.idle),
            timeout: self.timeout.or(base.timeout),
            channels: self.channels.or(base.channels),
            access: self.access.or(base.access),
            denied: self.denied.or(base.denied),
            retry: retry::merged(self.retry, base.retry),
            command: self.command.merged_over(base.command),
        }
    }

    /// The channels besides the text through which the agent may return its result, the preferred
    /// one first. By default this is the program's own: it takes no further request to the model.
    pub fn channels(&self) -> &[Channel] {
        self.channels.as_deref().unwrap_or(&[Channel::Native, Channel::Submit])
    }
}

/// Settings as they are written in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    spec: Option<String>,
    contract: Option<String>,
    program: Option<PathBuf>,
    model: Option<String>,
    flags: Vec<String>,
    pass: Vec<String>,
    env: BTreeMap<String, String>,
    startup: Option<Spanned<String>>,
    idle: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    channels: Option<Vec<Channel>>,
    access: Option<Access>,
    denied: Option<Denied>,
    retry: retry::Written,
    command: command::WrittenCommand,
}

impl Written {
    /// Validates the settings. An error has the byte offset, or 0 for the table, and a message.
    fn validate(self) -> Result<Settings, (usize, String)> {
        let timeout = |name: &str, written: Option<Spanned<String>>| {
            let Some(written) = written else { return Ok(None) };
            let wrong = |why: String| (written.span().start, format!("has the {name} {why}"));
            parse_timeout(written.get_ref()).map(Some).map_err(|error| wrong(error.to_string()))
        };
        for text in [&self.spec, &self.contract, &self.model].into_iter().flatten() {
            if text.trim().is_empty() {
                return Err((0, "has an empty text; remove the key or fill it in".to_owned()));
            }
        }
        let nul = self.flags.iter().chain(self.env.values()).chain(self.env.keys());
        if nul.into_iter().any(|text| text.contains('\0')) {
            return Err((0, "has a NUL character in its flags or variables; remove it".to_owned()));
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            return Err((0, format!("sets the variable {name:?}, which is not a valid name")));
        }
        let misplaced = |pattern: &&String| {
            let name = pattern.trim_start_matches('!');
            name.is_empty() || name.contains('=') || name[..name.len() - 1].contains('*')
        };
        if let Some(pattern) = self.pass.iter().find(misplaced) {
            let why = "write the name of a variable, or its beginning and a `*` at the end";
            return Err((0, format!("has the wrong name {pattern:?} in `pass`; {why}")));
        }
        Ok(Settings {
            startup: timeout("startup", self.startup)?,
            idle: timeout("idle", self.idle)?,
            timeout: timeout("timeout", self.timeout)?,
            spec: self.spec,
            contract: self.contract,
            program: self.program,
            model: self.model,
            flags: self.flags,
            pass: self.pass,
            env: self.env,
            channels: self.channels,
            access: self.access,
            denied: self.denied,
            retry: self.retry.validate()?,
            command: self.command.validate()?,
        })
    }
}
