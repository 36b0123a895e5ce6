//! Runs a scripted agent, and tells what it got.

use counterfoil_agents::agent::{
    AgentReply, Message, Prompt, PromptContext, ReplyDetails, ReplyStatus, Session, Task,
};
use counterfoil_agents::config::AgentConfig;
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_agents::spec::AgentSpec;
use counterfoil_agents::transcript::{StoredTranscript, TranscriptError, TranscriptSink};
use counterfoil_contract::{Contract, Definition, Framing, Report};
use counterfoil_flow::{Access, Budget, Usage};
use counterfoil_process::StopRequest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// A part of a message.
pub(super) fn text(text: &str) -> Value {
    json!({"text": text})
}

/// The end of a turn.
pub(super) fn end_turn() -> Value {
    json!({"answer": {"stopReason": "end_turn"}})
}

/// The outcome and the reason of a failed reply.
pub(super) fn agent_reply(status: &ReplyStatus) -> (&'static str, &str) {
    match status {
        ReplyStatus::Complete => ("complete", ""),
        ReplyStatus::Failed { outcome, reason, .. } => (outcome.name(), reason),
    }
}

/// A scripted agent and the folder of its files.
pub(super) struct Scripted {
    folder: TempDir,
    argv: Option<String>,
    executable: Option<PathBuf>,
    variables: Vec<(String, String)>,
    settings: String,
    access: Access,
    pub(super) startup: Option<Duration>,
    pub(super) idle: Option<Duration>,
    pub(super) total: Duration,
    pub(super) budget: Budget,
}

impl Scripted {
    pub(super) fn new(script: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("script.json"), script.to_string()).unwrap();
        std::fs::write(folder.path().join("log.jsonl"), "").unwrap();
        std::fs::create_dir(folder.path().join("repo")).unwrap();
        Self {
            folder,
            argv: None,
            executable: None,
            variables: Vec::new(),
            settings: String::new(),
            access: Access::ReadOnly,
            startup: None,
            idle: None,
            total: Duration::from_mins(1),
            budget: Budget::default(),
        }
    }

    /// Another program than the scripted one.
    pub(super) fn program(command_line: &str) -> Self {
        Self { argv: Some(command_line.to_owned()), ..Self::new(json!({})) }
    }

    pub(super) fn with_executable(mut self, path: &str) -> Self {
        self.executable = Some(path.into());
        self
    }

    pub(super) fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    pub(super) fn with_settings(mut self, settings: &str) -> Self {
        settings.clone_into(&mut self.settings);
        self
    }

    pub(super) fn with_variables(mut self, variables: &[(&str, &str)]) -> Self {
        let owned = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        self.variables = owned.collect();
        self
    }

    pub(super) fn cwd(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(super) fn open(&self) -> Conversation {
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/acp_agent.py");
        let path = self.folder.path();
        let command_line = self.argv.clone().unwrap_or_else(|| {
            let (script, log) = (path.join("script.json"), path.join("log.jsonl"));
            format!("python3 -B {} {} {}", agent.display(), script.display(), log.display())
        });
        let agents = AgentConfig::parse(&self.settings).unwrap().agents;
        let mut environment = AgentEnvironment::from_process(agents, self.executable.clone());
        let variables = self.variables.iter();
        environment.variables.extend(variables.map(|(name, value)| (name.into(), value.into())));
        let spec = AgentSpec::parse(&format!("acp:{command_line}")).unwrap();
        assert!(!spec.is_shared());
        let agent = spec.agent("dev", &environment, &[]).unwrap();
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
        let definition = Definition::new("acme/check", 1, Framing::AnyJson, schema);
        let contract = Arc::new(Contract::compile(definition).unwrap());
        let scratch = path.join("scratch/attempt");
        let session = agent.open(Task {
            earlier: None,
            agent: "dev".into(),
            marker: format!("acp-test-{}-{}", std::process::id(), path.display()),
            cwd: self.cwd(),
            scratch: scratch.clone(),
            access: self.access,
            contract: contract.clone(),
            context: counterfoil_contract::Context::default(),
            startup: self.startup,
            idle: self.idle,
            checks: None,
        });
        Conversation { session, contract, scratch, total: self.total, budget: self.budget.clone() }
    }

    fn log(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.folder.path().join("log.jsonl")).unwrap();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What the agent logged under a name.
    pub(super) fn logged(&self, name: &str) -> Vec<Value> {
        self.log().into_iter().filter_map(|mut line| Some(line.get_mut(name)?.take())).collect()
    }

    /// The messages of a method that the agent got.
    pub(super) fn got(&self, method: &str) -> Vec<Value> {
        self.logged("got").into_iter().filter(|message| message["method"] == method).collect()
    }

    /// Whether the processes that the agent started have ended. It must have started one.
    pub(super) fn children_are_gone(&self) -> bool {
        let children = self.logged("child");
        assert!(!children.is_empty());
        children.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    }

    /// The environment of the running program.
    pub(super) fn environment_of_program(&self) -> BTreeMap<String, String> {
        let marker = format!("{}/log.jsonl", self.folder.path().display());
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let read = |path: PathBuf| {
            String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
        };
        let found = processes.into_iter().find(|path| read(path.join("cmdline")).contains(&marker));
        let environment = read(found.expect("the program runs").join("environ"));
        let variables = environment.split('\0').filter_map(|line| line.split_once('='));
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

/// A conversation with a scripted agent.
pub(super) struct Conversation {
    session: Box<dyn Session>,
    contract: Arc<Contract>,
    scratch: PathBuf,
    total: Duration,
    budget: Budget,
}

/// A reply, with what was seen on the way.
pub(super) struct Seen {
    pub(super) status: ReplyStatus,
    pub(super) text: String,
    pub(super) usage: Usage,
    pub(super) details: ReplyDetails,
    pub(super) transcript: String,
    pub(super) activity: Vec<String>,
}

impl Conversation {
    pub(super) fn scratch(&self) -> PathBuf {
        self.scratch.clone()
    }

    /// The report on a text.
    pub(super) fn report(&self, text: &[u8]) -> Report {
        self.contract.check_bytes(text)
    }

    pub(super) async fn ask_task(&mut self, task: &str) -> Seen {
        self.ask(Message::Task { task: task.to_owned(), earlier: None }).await
    }

    pub(super) async fn ask(&mut self, message: Message) -> Seen {
        let (_sender, stop) = watch::channel(StopRequest::None);
        self.ask_with(message, stop, |_| {}).await
    }

    /// Asks, and requests a stop when an activity appears.
    pub(super) async fn ask_and_stop_after(&mut self, activity: &'static str) -> Seen {
        let (sender, stop) = watch::channel(StopRequest::None);
        let on_activity = move |line: &str| {
            if line == activity {
                sender.send_replace(StopRequest::Graceful);
            }
        };
        self.ask_with(Message::Task { task: "Do it".into(), earlier: None }, stop, on_activity)
            .await
    }

    async fn ask_with(
        &mut self,
        message: Message,
        stop: watch::Receiver<StopRequest>,
        on_activity: impl Fn(&str) + Send + Sync + 'static,
    ) -> Seen {
        let prompt = Prompt { contract: self.contract.clone(), message };
        let (lines, transcript) =
            (Arc::<Mutex<Vec<String>>>::default(), SharedTranscript::default());
        let seen = lines.clone();
        let mut context = PromptContext {
            conversation: Arc::new(|_| {}),
            progress: Arc::new(|_| {}),
            stop,
            total: self.total,
            budget: self.budget.clone(),
            transcript: Box::new(transcript.clone()),
            activity: Arc::new(move |line: &str| {
                seen.lock().unwrap().push(line.to_owned());
                on_activity(line);
            }),
        };
        let AgentReply { text, usage, status, details, .. } =
            self.session.ask(&prompt, &mut context).await;
        let transcript = String::from_utf8(transcript.0.lock().unwrap().clone()).unwrap();
        let activity = lines.lock().unwrap().clone();
        Seen {
            status,
            text: String::from_utf8(text).unwrap(),
            usage,
            details,
            transcript,
            activity,
        }
    }
}

#[derive(Clone, Default)]
struct SharedTranscript(Arc<Mutex<Vec<u8>>>);

impl TranscriptSink for SharedTranscript {
    fn write(&mut self, bytes: &[u8]) -> Result<(), TranscriptError> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn error(&self) -> Option<&TranscriptError> {
        None
    }

    fn finish(self: Box<Self>) -> Result<StoredTranscript, TranscriptError> {
        Ok(self.close())
    }

    fn close(self: Box<Self>) -> StoredTranscript {
        let bytes = self.0.lock().unwrap().len() as u64;
        StoredTranscript { path: String::new(), sha256: String::new(), bytes, truncated_at: None }
    }
}
