//! Starts attempts and workspace operations, each in a task of its own.

use super::{RunDriver, TRANSCRIPT_CAP};
use crate::journal::Journal;
use crate::observer::RunObserver;
use counterfoil_agents::agent::AgentProgress;
use counterfoil_agents::transcript::{TranscriptError, TranscriptSink};
use counterfoil_flow::{AttemptRequest, Budget, Event, WorkspaceOp};
use counterfoil_process::StopRequest;
use counterfoil_worker::{
    AttemptContext, AttemptResult, PerformRequest, TranscriptMode, WorkerContext, perform,
    workspace_of_fact, workspace_op_failed,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// A message from a task to the driver.
pub(super) enum DriverMessage {
    /// An event during an attempt.
    Progress(Box<Event>),
    /// An attempt ended.
    AttemptDone(Box<AttemptResult>),
    /// A workspace operation ended, with this fact.
    WorkspaceOpDone(Box<Event>),
}

/// The running tasks of a run.
pub(super) struct ActiveTasks {
    /// The senders of stop requests, by attempt.
    pub(super) stops: BTreeMap<String, watch::Sender<StopRequest>>,
    pub(super) handles: JoinSet<()>,
    pub(super) sender: mpsc::UnboundedSender<DriverMessage>,
    /// The queue of workspace operations; the first one is running. They run one after the other,
    /// so that attempts start in the order in which they were decided.
    pub(super) workspace_ops: VecDeque<WorkspaceOp>,
    /// Performs the attempts.
    pub(super) worker: Arc<WorkerContext>,
}

impl ActiveTasks {
    pub(super) fn new(
        sender: mpsc::UnboundedSender<DriverMessage>,
        worker: Arc<WorkerContext>,
    ) -> Self {
        Self {
            stops: BTreeMap::new(),
            handles: JoinSet::new(),
            sender,
            workspace_ops: VecDeque::new(),
            worker,
        }
    }
}

impl RunDriver {
    /// Queues a workspace operation, unless it is queued already.
    pub(super) fn queue_workspace_op(op: WorkspaceOp, tasks: &mut ActiveTasks) {
        if tasks.workspace_ops.contains(&op) {
            return;
        }
        tasks.workspace_ops.push_back(op);
        if tasks.workspace_ops.len() == 1 {
            Self::start_next_workspace_op(tasks);
        }
    }

    /// Removes the first workspace operation from the queue if a fact is its result, and starts the
    /// next one.
    pub(super) fn finish_workspace_op(facts: &[Event], tasks: &mut ActiveTasks) {
        let is_done = |op: &WorkspaceOp| {
            facts.iter().any(|fact| workspace_of_fact(fact) == Some(&op.workspace))
        };
        if tasks.workspace_ops.front().is_some_and(is_done) {
            tasks.workspace_ops.pop_front();
            Self::start_next_workspace_op(tasks);
        }
    }

    fn start_next_workspace_op(tasks: &mut ActiveTasks) {
        let Some(op) = tasks.workspace_ops.front().cloned() else { return };
        let (worker, sender) = (tasks.worker.clone(), tasks.sender.clone());
        tasks.handles.spawn(async move {
            let failed = workspace_op_failed(&op, "the operation panicked");
            let done = tokio::task::spawn_blocking(move || worker.workspace_op(&op));
            let _ =
                sender.send(DriverMessage::WorkspaceOpDone(Box::new(done.await.unwrap_or(failed))));
        });
    }

    pub(super) fn start_attempt(
        &self,
        start: AttemptRequest,
        tasks: &mut ActiveTasks,
        span: tracing::Span,
    ) {
        let (stop, stopped) = watch::channel(StopRequest::None);
        tasks.stops.insert(start.attempt.clone(), stop);
        let handle: Arc<dyn AttemptContext> = Arc::new(LocalAttemptContext {
            journal: self.journal.clone(),
            run: self.run_state.run.clone(),
            repo: self.run_state.repo.clone(),
            attempt: start.attempt.clone(),
            stop: stopped,
            sender: tasks.sender.clone(),
            observer: self.observer.clone(),
        });
        let guard =
            CompletionGuard { attempt: start.attempt.clone(), sender: Some(tasks.sender.clone()) };
        let request = PerformRequest { start, budget_left: self.budget_left() };
        let worker = tasks.worker.clone();
        let attempt = async move { guard.complete(perform(request, worker, handle).await) };
        tasks.handles.spawn(attempt.instrument(span));
    }

    /// The remaining budget of the run. The time budget is checked by `turn`.
    fn budget_left(&self) -> Budget {
        let (budget, usage) = (&self.run_state.budget, &self.run_state.usage);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        Budget {
            tokens: budget.tokens.map(|most| most.saturating_sub(tokens)),
            cost_usd: budget.cost_usd.map(|most| (most - usage.cost_usd).max(0.0)),
            ..Budget::default()
        }
    }
}

/// Whether a run works in this repository.
pub(crate) fn works_in(journal: &Journal, run: &str, repo: &str) -> bool {
    let mut same = false;
    let _ = journal.visit(run, 1, |row| {
        if let Ok(Event::RunStarted(started)) = serde_json::from_slice(&row.body) {
            same = started.repo == repo;
        }
        std::ops::ControlFlow::Break(())
    });
    same
}

/// Reports the result of an attempt to the driver. If it is dropped without a result, because the
/// attempt panicked, it reports a failure, so that the run does not wait forever.
struct CompletionGuard {
    attempt: String,
    sender: Option<mpsc::UnboundedSender<DriverMessage>>,
}

impl CompletionGuard {
    fn complete(mut self, done: AttemptResult) {
        if let Some(sender) = self.sender.take() {
            let _ = sender.send(DriverMessage::AttemptDone(Box::new(done)));
        }
    }
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            let reason = "the attempt panicked".to_owned();
            let _ = sender.send(DriverMessage::AttemptDone(Box::new(AttemptResult::failed(
                &self.attempt,
                reason,
            ))));
        }
    }
}

/// The context of an attempt that runs in the process of its driver.
struct LocalAttemptContext {
    journal: Journal,
    run: String,
    repo: String,
    attempt: String,
    stop: watch::Receiver<StopRequest>,
    sender: mpsc::UnboundedSender<DriverMessage>,
    observer: Arc<dyn RunObserver>,
}

impl AttemptContext for LocalAttemptContext {
    fn heartbeat(&self, activity: &str) {
        self.observer.on_activity(&self.attempt, activity);
    }

    fn agent_progress(&self, progress: &AgentProgress) {
        self.observer.on_agent_progress(&self.attempt, progress);
    }

    fn notice(&self, line: &str) {
        self.observer.on_notice(line);
    }

    fn stop(&self) -> watch::Receiver<StopRequest> {
        self.stop.clone()
    }

    fn transcript(
        &self,
        name: &str,
        mode: TranscriptMode,
    ) -> Result<Box<dyn TranscriptSink>, TranscriptError> {
        let store = self.journal.transcripts();
        let transcript = match mode {
            TranscriptMode::OwnFile => store.create(&self.run, name, TRANSCRIPT_CAP),
            TranscriptMode::RunLog => store.create_in_log(&self.run, name, TRANSCRIPT_CAP),
        };
        Ok(Box::new(transcript?))
    }

    fn concurrent_writer(&self, since: SystemTime) -> Option<String> {
        let since = since
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_millis()).ok())?;
        let others = self.journal.concurrent_runs(&self.run, since).ok()?;
        let other =
            others.into_iter().find(|other| works_in(&self.journal, &other.id, &self.repo))?;
        Some(format!("run {} was running in the same folder at the same time", other.id))
    }

    fn progress(&self, event: Event) {
        let _ = self.sender.send(DriverMessage::Progress(Box::new(event)));
    }
}
