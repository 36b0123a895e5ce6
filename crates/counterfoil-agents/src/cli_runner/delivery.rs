//! How an agent returns its result, and which of our tools it gets. There is one way at a time, and
//! the prompt names no other: an agent with several would have to guess which of them counts.

use super::{CliAgent, CliSession};
use crate::adapters::Server;
use crate::agent::{Agent, Message, Prompt};
use crate::check_service::CheckService;
use crate::config::Channel;
use counterfoil_contract::Contract;
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::render::vendor;
use serde_json::Value;
use std::path::PathBuf;

/// The schema of the reply in the program's dialect, if it can be used, or else a note if the user
/// should know why not.
pub(super) fn schema(agent: &CliAgent, contract: &Contract) -> (Option<Value>, Option<String>) {
    let (adapter, settings) = (agent.adapter, &agent.settings);
    if !settings.channels().contains(&Channel::Native) || adapter.structured_output().is_none() {
        return (None, None);
    }
    let lowered = vendor::schema(contract, adapter.dialect());
    if !lowered.is_usable() {
        return (None, None);
    }
    let (size, max) = (lowered.schema.to_string().len(), adapter.max_schema_bytes());
    if size > max {
        let note = format!(
            "{} was not given the schema, because it has {size} bytes and the limit is {max}",
            adapter.name()
        );
        return (None, Some(note));
    }
    (Some(lowered.schema), None)
}

impl CliSession {
    /// The channel of the result: the first one that is allowed and that the program has. `None` is
    /// the text.
    pub(super) fn channel(&self) -> Option<Channel> {
        self.agent.settings.channels().iter().copied().find(|channel| match channel {
            Channel::Native => self.schema.is_some(),
            Channel::Submit => self.agent.has_tools(),
        })
    }

    /// How the agent is told to return its result.
    fn delivery(&self) -> Delivery {
        match self.channel() {
            Some(Channel::Native) => self.agent.adapter.structured_output().unwrap_or_default(),
            Some(Channel::Submit) if !self.nothing_submitted => {
                Delivery::Tool { name: Server::TOOL, server: Some(Server::NAME) }
            }
            Some(Channel::Submit) | None => Delivery::Text,
        }
    }

    /// Our server, if the agent needs one of its tools.
    pub(super) fn server(&self) -> Option<Server> {
        let receives = self.channel() == Some(Channel::Submit);
        let checks = self.task.checks.as_ref().filter(|_| self.agent.has_tools());
        let program = self.agent.environment.executable.as_ref()?;
        (receives || checks.is_some()).then(|| Server {
            command: vec![
                program.display().to_string(),
                "mcp".to_owned(),
                "--session".to_owned(),
                self.session_file().display().to_string(),
            ],
            receives,
            call_timeout: checks.map(CheckService::call_timeout),
        })
    }

    /// The file that configures the server.
    pub(super) fn session_file(&self) -> PathBuf {
        self.task.scratch.join("session.json")
    }

    /// The text of a prompt, with the checks of the project and the only way to return the result.
    pub(super) fn prompt_text(&self, prompt: &Prompt) -> String {
        let checks = self.task.checks.as_ref().filter(|_| self.agent.has_tools());
        let message = match (&prompt.message, checks) {
            // The conversation has the task and the instructions on checks already.
            (Message::Task { earlier: Some(earlier), .. }, _) if self.continues => {
                Message::Continue(earlier.clone())
            }
            (Message::Task { task, earlier }, Some(checks)) => Message::Task {
                task: format!("{task}\n\n{}", check_instructions(checks)),
                earlier: earlier.clone(),
            },
            _ => return prompt.text(self.delivery()),
        };
        Prompt { message, ..prompt.clone() }.text(self.delivery())
    }
}

/// What an agent was asked first and what it said last. A new conversation knows neither.
#[derive(Default)]
pub(super) struct LastExchange {
    first: Option<String>,
    reply: String,
}

impl LastExchange {
    /// How much of the end of a reply is repeated. The result is usually at the end.
    const MAX_REPEATED_BYTES: usize = 60_000;

    pub(super) fn remember(&mut self, asked: &str, reply: &str) {
        self.first.get_or_insert_with(|| asked.to_owned());
        let start = reply.floor_char_boundary(reply.len().saturating_sub(Self::MAX_REPEATED_BYTES));
        reply[start..].clone_into(&mut self.reply);
    }
}

impl CliSession {
    /// The text of a prompt for a new conversation: with the first prompt and the last reply, if there
    /// were any.
    pub(super) fn anew(&self, prompt: &Prompt) -> String {
        let text = self.prompt_text(prompt);
        let LastExchange { first, reply } = &self.last_exchange;
        match first {
            Some(first) => {
                format!(
                    "You were asked this:\n\n{first}\n\nYou answered this:\n\n{reply}\n\n{text}"
                )
            }
            None => text,
        }
    }
}

/// The instructions on the tool that runs checks.
pub(crate) fn check_instructions(checks: &CheckService) -> String {
    let names: Vec<String> = checks.names.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "The project has these checks: {}. The tool `{}` (of the server `{}`) runs one of them by its \
         name in your folder and returns its output. Use it instead of a command of your own, also if you \
         may not run commands, and rely on nothing that it did not show.",
        names.join(", "),
        Server::RUN_CHECK,
        Server::NAME
    )
}

#[cfg(test)]
mod tests;
