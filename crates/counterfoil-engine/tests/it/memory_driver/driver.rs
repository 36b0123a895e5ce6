//! The loop of the in-memory driver: facts, a turn, and the work that the turn returns.

use super::context::{MemoryContext, Message, Transcripts};
use super::core::MemoryRun;
use counterfoil_agents::assignment::AgentAssignments;
use counterfoil_flow::{AttemptRequest, Budget, Bundle, DECIDE, Event, Started, Turn, Workflow};
use counterfoil_process::StopRequest;
use counterfoil_worker::{PerformRequest, WorkerContext, bundle_contracts, perform};
use counterfoil_workspace::workspaces::Workspaces;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};

/// Drives one run until it ends or only waits.
pub(crate) struct MemoryDriver {
    workflow: Workflow,
    run: MemoryRun,
    worker: Arc<WorkerContext>,
    transcripts: Transcripts,
    stops: BTreeMap<String, watch::Sender<StopRequest>>,
    sender: mpsc::UnboundedSender<Message>,
    messages: mpsc::UnboundedReceiver<Message>,
}

impl MemoryDriver {
    /// A driver for a new run that works in `repo`. `scratch` is for worktrees and temporary files.
    pub(crate) fn new(
        workflow: Workflow,
        agents: AgentAssignments,
        repo: &Path,
        scratch: &Path,
    ) -> Self {
        let contracts = bundle_contracts(&workflow.bundle);
        let workspaces = Arc::new(Workspaces::new(scratch, repo));
        let worker = WorkerContext::new("memory", repo, scratch, agents, contracts, workspaces);
        let (sender, messages) = mpsc::unbounded_channel();
        Self {
            workflow,
            run: MemoryRun::default(),
            worker: Arc::new(worker),
            transcripts: Transcripts::default(),
            stops: BTreeMap::new(),
            sender,
            messages,
        }
    }

    /// Drives the run and returns it with its transcripts.
    pub(crate) async fn drive(mut self, repo: &Path) -> (MemoryRun, BTreeMap<String, Vec<u8>>) {
        let mut facts = self.run.first_facts(&self.started(repo), "memory".to_owned());
        loop {
            let turn = self.run.turn(&self.workflow, std::mem::take(&mut facts), now());
            facts = self.work(&turn).await;
            for request in turn.attempts {
                self.start(request);
            }
            if !facts.is_empty() {
                continue;
            }
            if self.run.run_state.attempts.is_empty() && turn.wake_at.is_none() {
                break;
            }
            facts = self.wait(turn.wake_at).await;
        }
        let transcripts = self.transcripts.lock().unwrap().clone();
        (self.run, transcripts)
    }

    fn started(&self, repo: &Path) -> Event {
        Event::RunStarted(Box::new(Started {
            run: "memory".to_owned(),
            workflow: self.workflow.name.clone(),
            version: self.workflow.version,
            bundle: Bundle::hash(&self.workflow.bundle.to_bytes().unwrap()),
            decide: DECIDE,
            inputs: Map::<String, Value>::new(),
            agents: self.worker.agents().assigned(),
            budget: self.workflow.budget.clone(),
            repo: repo.display().to_string(),
            observed: String::new(),
            own: Vec::new(),
            base: counterfoil_workspace::git::head(repo),
            config: None,
        }))
    }

    /// Does the work of a turn that is not an attempt, and returns the facts.
    async fn work(&mut self, turn: &Turn) -> Vec<Event> {
        let mut facts: Vec<Event> =
            turn.file_checks.iter().map(|check| self.worker.check_files(check)).collect();
        for (event, _) in &turn.events {
            let Event::Asked { questions, .. } = event else { continue };
            for question in questions {
                if let Some(answer) = self.worker.agents().answer(&question.id) {
                    let (question, by) = (question.id.clone(), "script".to_owned());
                    facts.push(Event::Answered { question, answer, by, from: None });
                }
            }
        }
        for op in &turn.workspace_ops {
            let (worker, op) = (self.worker.clone(), op.clone());
            let done = tokio::task::spawn_blocking(move || worker.workspace_op(&op));
            facts.push(done.await.unwrap());
        }
        for attempt in &turn.stops {
            if let Some(stop) = self.stops.get(attempt) {
                stop.send_replace(StopRequest::Graceful);
            }
        }
        facts
    }

    fn start(&mut self, start: AttemptRequest) {
        let (stop, stopped) = watch::channel(StopRequest::None);
        self.stops.insert(start.attempt.clone(), stop);
        let context = Arc::new(MemoryContext {
            stop: stopped,
            messages: self.sender.clone(),
            transcripts: self.transcripts.clone(),
        });
        let request = PerformRequest { start, budget_left: Budget::default() };
        let (worker, sender) = (self.worker.clone(), self.sender.clone());
        tokio::spawn(async move {
            let result = perform(request, worker, context).await;
            drop(sender.send(Message::Done(Box::new(result))));
        });
    }

    /// Waits for an attempt or for the time of the next turn.
    async fn wait(&mut self, wake_at: Option<i64>) -> Vec<Event> {
        let sleep = wake_at.map_or(Duration::MAX, |at| {
            Duration::from_millis(u64::try_from(at.saturating_sub(now())).unwrap_or(0))
        });
        let Ok(message) = tokio::time::timeout(sleep, self.messages.recv()).await else {
            return Vec::new();
        };
        match message.unwrap() {
            Message::Progress(event) => vec![*event],
            Message::Done(result) => {
                assert!(result.transcript_error.is_none());
                self.stops.remove(&result.ended.attempt);
                let exceeded = result.budget_exceeded.map(|what| Event::BudgetReached { what });
                std::iter::once(Event::AttemptEnded(Box::new(result.ended)))
                    .chain(exceeded)
                    .collect()
            }
        }
    }
}

/// The time in milliseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}
