//! A vendor's program as an agent: what is known of it before a conversation begins.

use super::CliSession;
use crate::adapters::record::{RecordPlace, RecordReader, is_plain};
use crate::adapters::{Adapter, adapter};
use crate::agent::{Agent, Identity, Measure, Session, Task};
use crate::config::{Channel, Settings};
use crate::environment::AgentEnvironment;
use crate::environment::installed::{self, Installed, ProgramError};
use crate::prices::Prices;
use counterfoil_flow::{FailureKind, RetryRule, Usage};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A vendor's command-line program as an agent.
#[derive(Clone)]
pub struct CliAgent {
    pub(super) adapter: &'static dyn Adapter,
    pub(super) installed: Installed,
    pub(super) settings: Settings,
    pub(super) environment: AgentEnvironment,
}

impl CliAgent {
    /// Creates the agent `agent` from the program `program`.
    ///
    /// # Errors
    ///
    /// The program is not installed, does not run, or is too old.
    pub fn new(
        program: &str,
        agent: &str,
        environment: &AgentEnvironment,
    ) -> Result<Self, ProgramError> {
        let Some(adapter) = adapter(program) else {
            return Err(ProgramError::Missing {
                name: program.to_owned(),
                why: "it is unknown".to_owned(),
                install: String::new(),
            });
        };
        let settings = environment.agents.settings(agent, program);
        let installed = installed::require(adapter, &settings, environment)?;
        Ok(Self { adapter, installed, settings, environment: environment.clone() })
    }

    /// What models cost.
    pub(super) fn prices(&self) -> &Prices {
        &self.environment.agents.prices
    }

    /// The files in which the program recorded a conversation.
    pub(super) fn record_files(&self, conversation: &str, scratch: &Path) -> Vec<PathBuf> {
        if !is_plain(conversation) {
            return Vec::new();
        }
        let env = |name: &str| self.variable(name);
        self.adapter.record_files(&RecordPlace { conversation, scratch, env: &env })
    }

    /// Whether the program still has its record of a conversation.
    pub(super) fn has_record(&self, conversation: &str, scratch: &Path) -> bool {
        !self.record_files(conversation, scratch).is_empty()
    }

    /// A variable of the program's environment. The configured ones override those that are
    /// inherited.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let set = self.settings.env.get(name).map(OsString::from);
        set.or_else(|| self.environment.variable(name))
    }
}

impl Agent for CliAgent {
    fn open(&self, task: Task) -> Box<dyn Session> {
        Box::new(CliSession::new(self.clone(), task))
    }

    fn identity(&self) -> Identity {
        Identity { model: self.settings.model.clone(), version: self.installed.version.clone() }
    }

    fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }

    fn unknown_usage(&self, measure: Measure) -> Option<String> {
        // Every program that has an adapter reports its tokens.
        if measure == Measure::Tokens {
            return None;
        }
        let name = self.adapter.name();
        let configured = || self.adapter.configured_model(&|name| self.variable(name));
        let model = self.settings.model.clone().or_else(configured);
        match model {
            _ if self.adapter.reports_cost() => None,
            None => Some(format!(
                "{name} reports only tokens, and its model is not known before it starts; set \
                 `model` in [agents.{name}]"
            )),
            Some(model) if self.prices().of(&model).is_none() => Some(format!(
                "{name} reports only tokens, and there is no price for {model}; set it as \
                 [prices.\"{model}\"] in counterfoil.toml"
            )),
            Some(_) => None,
        }
    }

    fn retry(&self) -> BTreeMap<FailureKind, RetryRule> {
        self.settings.retry.clone()
    }

    fn recorded_usage(&self, conversation: &str, scratch: &Path) -> Option<Usage> {
        let files = self.record_files(conversation, scratch);
        let mut reader = RecordReader::new(self.adapter.record_parser());
        let record = (!files.is_empty()).then(|| reader.read(files))?;
        let cost_usd = self.prices().cost(&record.used_by_model()).unwrap_or_default();
        let used = record.used();
        let (input_tokens, output_tokens) = (used.input, used.output);
        Some(Usage { input_tokens, output_tokens, cost_usd, wall_ms: 0 })
    }

    fn has_tools(&self) -> bool {
        self.environment.executable.is_some() && self.settings.channels().contains(&Channel::Submit)
    }
}
