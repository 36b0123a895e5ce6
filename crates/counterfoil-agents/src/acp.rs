//! `acp:` agents: any program that speaks the Agent Client Protocol (version 1) on its standard input
//! and output.
//!
//! One process serves one attempt: repairs are further prompts in the same conversation. The result
//! comes through our MCP server, which is attached to the conversation.

mod calls;
mod conversation;
mod failure;
mod incoming;
mod outgoing;
mod permission;
mod process;
mod session;
mod turn;
mod usage;

pub(crate) use calls::call_events;

use crate::agent::{Agent, Measure, Session, Task};
use crate::config::{Channel, Settings};
use crate::environment::AgentEnvironment;
use counterfoil_flow::{FailureKind, RetryRule};
use session::AcpSession;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of the settings for all agents with this spec.
pub const NAME: &str = "acp";

/// A program that speaks the Agent Client Protocol as an agent.
#[derive(Clone, Debug)]
pub struct AcpAgent {
    argv: Vec<String>,
    settings: Settings,
    environment: AgentEnvironment,
}

impl AcpAgent {
    /// Creates the agent `agent` from a program with arguments, without a shell.
    pub fn new(argv: Vec<String>, agent: &str, environment: &AgentEnvironment) -> Self {
        let settings = environment.agents.settings(agent, NAME);
        Self { argv, settings, environment: environment.clone() }
    }

    /// The name of the program, for messages.
    fn program(&self) -> &str {
        let program = self.argv.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program)
    }
}

impl Agent for AcpAgent {
    fn open(&self, task: Task) -> Box<dyn Session> {
        Box::new(AcpSession::new(self.clone(), task))
    }

    fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }

    fn retry(&self) -> BTreeMap<FailureKind, RetryRule> {
        self.settings.retry.clone()
    }

    fn unknown_usage(&self, measure: Measure) -> Option<String> {
        let what = match measure {
            Measure::Cost => "what it costs",
            Measure::Tokens => "how many tokens it uses",
        };
        Some(format!("a program of the Agent Client Protocol need not tell {what}"))
    }

    /// A contained program cannot write where submissions are stored.
    fn has_tools(&self) -> bool {
        self.environment.executable.is_some()
            && self.environment.launcher.fingerprint().is_none()
            && self.settings.channels().contains(&Channel::Submit)
    }
}
