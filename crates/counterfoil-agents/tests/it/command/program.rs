//! A program that plays an agent, and a conversation with it.

use counterfoil_agents::agent::{Agent, AgentReply, Message, Prompt, PromptContext, Task};
use counterfoil_agents::command_agent::CommandAgent;
use counterfoil_agents::config::AgentConfig;
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_agents::transcript::{StoredTranscript, TranscriptError, TranscriptSink};
use counterfoil_contract::{Contract, Definition, Framing};
use counterfoil_flow::{Access, Budget};
use counterfoil_process::StopRequest;
use serde_json::json;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// A folder with a program named `acme`.
pub(super) struct Program {
    folder: TempDir,
    /// The variables of Counterfoil's environment.
    pub(super) variables: Vec<(&'static str, &'static str)>,
    /// What each prompt may use.
    pub(super) budget: Budget,
}

impl Program {
    /// A program that keeps its arguments, its environment and its prompt, and then runs a script of
    /// the shell. `$1` tells the calls apart.
    pub(super) fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acme");
        let text = format!(
            "#!/bin/sh\ncd \"${{0%/*}}\"\nn=$(ls | grep -c '^prompt-')\n\
             echo \"$*\" > args-$n; cat > prompt-$n; env > env-$n\n{script}\n"
        );
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, variables: Vec::new(), budget: Budget::default() }
    }

    /// A program that prints one recorded stream for the first call and another for each further
    /// one.
    pub(super) fn recorded(first: &str, then: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/command/streams");
        Self::new(&format!(
            "if [ $n = 0 ]; then cat {folder}/{first}.jsonl; else cat {folder}/{then}.jsonl; fi"
        ))
    }

    /// A file that the program wrote.
    pub(super) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// The command line, with arguments.
    pub(super) fn argv(&self, arguments: &[&str]) -> Vec<String> {
        let program = self.folder.path().join("acme").display().to_string();
        std::iter::once(program).chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }

    /// The agent with settings, in which `ACME` before a space is the path of the program.
    pub(super) fn agent(&self, arguments: &[&str], settings: &str) -> Result<CommandAgent, String> {
        let path = self.folder.path().join("acme").display().to_string();
        let config = AgentConfig::parse(&settings.replace("ACME ", &format!("{path} ")))
            .map_err(|error| error.to_string())?;
        let mut environment = AgentEnvironment::from_process(config.agents, None);
        let path = std::env::var_os("PATH").unwrap();
        environment.variables = [(OsString::from("PATH"), path)]
            .into_iter()
            .chain(self.variables.iter().map(|(name, value)| (name.into(), value.into())))
            .collect();
        CommandAgent::configured(self.argv(arguments), "qa", &environment)
            .map_err(|error| error.to_string())
    }

    /// Asks the agent some things in one conversation.
    pub(super) fn ask(&self, arguments: &[&str], settings: &str, times: usize) -> Vec<AgentReply> {
        let agent = self.agent(arguments, settings).unwrap();
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
        let definition = Definition::new("acme/qa", 1, Framing::AnyJson, schema);
        let contract = Arc::new(Contract::compile(definition).unwrap());
        let mut session = agent.open(Task {
            agent: "qa".to_owned(),
            marker: format!("command-test/{}", self.folder.path().display()),
            cwd: self.folder.path().to_owned(),
            scratch: self.folder.path().join("scratch"),
            access: Access::ReadOnly,
            contract: contract.clone(),
            context: counterfoil_contract::Context::default(),
            startup: None,
            idle: None,
            checks: None,
            earlier: None,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_keep, stop) = watch::channel(StopRequest::None);
        let ask = |n: usize| {
            let message = Message::Task { task: format!("question {n}"), earlier: None };
            let prompt = Prompt { contract: contract.clone(), message };
            let mut context = PromptContext {
                stop: stop.clone(),
                total: Duration::from_mins(1),
                budget: self.budget.clone(),
                transcript: Box::new(Forgotten),
                conversation: Arc::new(|_| {}),
                activity: Arc::new(|_| {}),
                progress: Arc::new(|_| {}),
            };
            runtime.block_on(session.ask(&prompt, &mut context))
        };
        (0..times).map(ask).collect()
    }
}

/// A transcript that nobody reads.
struct Forgotten;

impl TranscriptSink for Forgotten {
    fn write(&mut self, _: &[u8]) -> Result<(), TranscriptError> {
        Ok(())
    }

    fn error(&self) -> Option<&TranscriptError> {
        None
    }

    fn finish(self: Box<Self>) -> Result<StoredTranscript, TranscriptError> {
        Ok(self.close())
    }

    fn close(self: Box<Self>) -> StoredTranscript {
        StoredTranscript {
            path: String::new(),
            sha256: String::new(),
            bytes: 0,
            truncated_at: None,
        }
    }
}
