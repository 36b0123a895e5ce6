//! The key `agent` and the tables `[agents]` and `[redact]` of `counterfoil.toml`: which program is
//! assigned to an agent, with which model and flags, and what is taken out of recordings. Other
//! tables belong to other crates and are ignored here.

use crate::recording::redact;
use counterfoil_flow::Access;
use counterfoil_process::parse_timeout;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// What a project says of its agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    /// Who plays the agents that nobody else plays.
    pub rest: Option<String>,
    /// By name: an agent of a workflow, a subagent, or a program for all that it plays.
    pub named: BTreeMap<String, Settings>,
}

/// What is set for one of them. What is left out is as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Who plays it.
    pub spec: Option<String>,
    /// What it must hand back, where no workflow says so.
    pub contract: Option<String>,
    /// The program, if it is not the one on PATH.
    pub program: Option<PathBuf>,
    /// The model.
    pub model: Option<String>,
    /// Flags behind ours.
    pub flags: Vec<String>,
    /// Variables of ours that are handed on; `*` at the end stands for anything.
    pub pass: Vec<String>,
    /// Variables that are set.
    pub env: BTreeMap<String, String>,
    /// How long its first sign of life may take.
    pub startup: Option<Duration>,
    /// How long it may be silent.
    pub idle: Option<Duration>,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// By which ways beside the text it may hand back its result.
    pub channels: Option<Vec<Channel>>,
    /// What it may do to the workspace, over what the workflow says.
    pub access: Option<Access>,
    /// What a denied permission means for a result that is good otherwise.
    pub denied: Option<Denied>,
}

/// A way to hand back a result, beside the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The program's own structured output.
    Native,
    /// The tool that takes results.
    Submit,
}

/// What a denied permission means for a result that is good otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denied {
    /// It is said beside the result.
    #[default]
    Note,
    /// The attempt ends as `permission`.
    Fail,
}

/// What `counterfoil.toml` says of agents and recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// The project's agents.
    pub agents: Agents,
    /// Patterns of what is taken out of recordings, beside what is known to be secret.
    pub redact: Vec<String>,
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentConfigError {
    /// What is wrong with it, with the line, and the way out.
    pub message: String,
}

impl AgentConfig {
    /// Reads the text of a configuration file.
    ///
    /// # Errors
    ///
    /// The text is not TOML, or a setting of an agent or a pattern cannot be used.
    pub fn parse(text: &str) -> Result<Self, AgentConfigError> {
        let wrong = |message: String| AgentConfigError { message };
        let file: File =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        let line = |byte: usize| text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1;
        let mut config = Self::default();
        for (name, written) in file.agents {
            let start = written.span().start;
            let settings = written.into_inner().checked().map_err(|(place, why)| {
                wrong(format!(
                    "line {}: the agent '{name}' {why}",
                    line(if place == 0 { start } else { place })
                ))
            })?;
            config.agents.named.insert(name, settings);
        }
        config.agents.rest = file.agent;
        for pattern in file.redact.patterns {
            if let Err(why) = redact::pattern(pattern.get_ref()) {
                return Err(wrong(format!(
                    "line {}: {:?} in redact.patterns cannot be used: {why}",
                    line(pattern.span().start),
                    pattern.get_ref(),
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
    redact: Redact,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Redact {
    patterns: Vec<Spanned<String>>,
}

impl Agents {
    /// What is set for an agent that a program plays: its own settings over those of the program.
    pub fn settings(&self, agent: &str, program: &str) -> Settings {
        let base = self.named.get(program).cloned().unwrap_or_default();
        match self.named.get(agent) {
            Some(own) if agent != program => own.clone().over(base),
            _ => base,
        }
    }
}

impl Settings {
    /// These settings, and others where they say nothing. Flags and variables to hand on are those
    /// of both.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
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
        }
    }

    /// Whether it may hand back its result by a way.
    pub fn has(&self, channel: Channel) -> bool {
        self.channels.as_ref().is_none_or(|channels| channels.contains(&channel))
    }
}

/// Settings as they are written.
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
}

impl Written {
    /// The settings, or what is wrong with them, and where: the byte.
    fn checked(self) -> Result<Settings, (usize, String)> {
        let clock = |name: &str, written: Option<Spanned<String>>| {
            let Some(written) = written else { return Ok(None) };
            let wrong = |why: String| (written.span().start, format!("has the {name} {why}"));
            parse_timeout(written.get_ref()).map(Some).map_err(|error| wrong(error.to_string()))
        };
        for text in [&self.spec, &self.contract, &self.model].into_iter().flatten() {
            if text.trim().is_empty() {
                return Err((0, "has an empty text; leave the key out or fill it in".to_owned()));
            }
        }
        let nul = self.flags.iter().chain(self.env.values()).chain(self.env.keys());
        if nul.into_iter().any(|text| text.contains('\0')) {
            return Err((0, "has a NUL in its flags or variables; take it out".to_owned()));
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            return Err((0, format!("sets the variable {name:?}, which is no name of one")));
        }
        Ok(Settings {
            startup: clock("startup", self.startup)?,
            idle: clock("idle", self.idle)?,
            timeout: clock("timeout", self.timeout)?,
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
        })
    }
}
