//! Starting work: attempts and workspace operations, each in a task of its own.

use super::{Drive, TRANSCRIPT_CAP, Watcher};
use crate::journal::Journal;
use counterfoil_agents::transcript::{TranscriptError, TranscriptSink};
use counterfoil_flow::{AttemptRequest, Budget, Event, WorkspaceOp};
use counterfoil_process::StopRequest;
use counterfoil_worker::{Completed, Handle, Kept, PerformRequest, WorkerContext, perform};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// What somebody at work tells the driver.
pub(super) enum News {
    /// On the way.
    Progress(Box<Event>),
    /// An attempt is over.
    Done(Box<Completed>),
    /// An errand is.
    Back(Box<Event>),
}

/// What is at work.
pub(super) struct Running {
    pub(super) stops: BTreeMap<String, watch::Sender<StopRequest>>,
    pub(super) tasks: JoinSet<()>,
    pub(super) sender: mpsc::UnboundedSender<News>,
    /// Errands that nobody came back from yet, the first of them on its way: one after the other,
    /// so that attempts start in the order in which they were decided.
    pub(super) workspace_ops: VecDeque<WorkspaceOp>,
    /// What performs the attempts.
    pub(super) worker: Arc<WorkerContext>,
}

impl Running {
    pub(super) fn new(sender: mpsc::UnboundedSender<News>, worker: Arc<WorkerContext>) -> Self {
        Self {
            stops: BTreeMap::new(),
            tasks: JoinSet::new(),
            sender,
            workspace_ops: VecDeque::new(),
            worker,
        }
    }
}

impl Drive {
    /// Has somebody see to a workspace, unless that is under way.
    pub(super) fn send(op: WorkspaceOp, running: &mut Running) {
        if running.workspace_ops.contains(&op) {
            return;
        }
        running.workspace_ops.push_back(op);
        if running.workspace_ops.len() == 1 {
            Self::set_out(running);
        }
    }

    /// Somebody may have come back from an errand; then the next sets out.
    pub(super) fn came_back(facts: &[Event], running: &mut Running) {
        let is_back = |op: &WorkspaceOp| {
            facts.iter().any(|fact| counterfoil_worker::of(fact) == Some(&op.workspace))
        };
        if running.workspace_ops.front().is_some_and(is_back) {
            running.workspace_ops.pop_front();
            Self::set_out(running);
        }
    }

    fn set_out(running: &mut Running) {
        let Some(op) = running.workspace_ops.front().cloned() else { return };
        let (worker, sender) = (running.worker.clone(), running.sender.clone());
        running.tasks.spawn(async move {
            let failed = counterfoil_worker::failed(&op, "the thread that saw to it broke off");
            let done = tokio::task::spawn_blocking(move || worker.workspace_op(&op));
            let _ = sender.send(News::Back(Box::new(done.await.unwrap_or(failed))));
        });
    }

    pub(super) fn start(&self, start: AttemptRequest, running: &mut Running) {
        let (stop, stopped) = watch::channel(StopRequest::None);
        running.stops.insert(start.attempt.clone(), stop);
        let handle: Arc<dyn Handle> = Arc::new(Reaching {
            journal: self.journal.clone(),
            run: self.fold.run.clone(),
            repo: self.fold.repo.clone(),
            attempt: start.attempt.clone(),
            stop: stopped,
            sender: running.sender.clone(),
            watcher: self.watcher.clone(),
        });
        let word = Word { attempt: start.attempt.clone(), sender: Some(running.sender.clone()) };
        let request = PerformRequest { start, budget_left: self.budget_left() };
        let worker = running.worker.clone();
        running.tasks.spawn(async move {
            word.give(perform(request, worker, handle).await);
        });
    }

    fn budget_left(&self) -> Budget {
        let (budget, usage) = (&self.fold.budget, &self.fold.usage);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        Budget {
            tokens: budget.tokens.map(|most| most.saturating_sub(tokens)),
            cost_usd: budget.cost_usd.map(|most| (most - usage.cost_usd).max(0.0)),
            ..Budget::default()
        }
    }
}

/// Whether a run works in this repository.
fn works_in(journal: &Journal, run: &str, repo: &str) -> bool {
    let mut same = false;
    let _ = journal.visit(run, 1, |row| {
        if let Ok(Event::RunStarted(started)) = serde_json::from_slice(&row.body) {
            same = started.repo == repo;
        }
        std::ops::ControlFlow::Break(())
    });
    same
}

/// The word that an attempt owes its driver: one that ends without it, by a panic, has failed, and
/// the run does not wait for it forever.
struct Word {
    attempt: String,
    sender: Option<mpsc::UnboundedSender<News>>,
}

impl Word {
    fn give(mut self, done: Completed) {
        if let Some(sender) = self.sender.take() {
            let _ = sender.send(News::Done(Box::new(done)));
        }
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            let reason = "the attempt broke off: nobody plays the agent, or it panicked".to_owned();
            let _ = sender.send(News::Done(Box::new(Completed::failed(&self.attempt, reason))));
        }
    }
}

/// An attempt's reach into the embedded engine.
struct Reaching {
    journal: Journal,
    run: String,
    repo: String,
    attempt: String,
    stop: watch::Receiver<StopRequest>,
    sender: mpsc::UnboundedSender<News>,
    watcher: Arc<dyn Watcher>,
}

impl Handle for Reaching {
    fn heartbeat(&self, activity: &str) {
        self.watcher.activity(&self.attempt, activity);
    }

    fn stop(&self) -> watch::Receiver<StopRequest> {
        self.stop.clone()
    }

    fn transcript(
        &self,
        name: &str,
        kept: Kept,
    ) -> Result<Box<dyn TranscriptSink>, TranscriptError> {
        let store = self.journal.transcripts();
        let transcript = match kept {
            Kept::InFiles => store.create(&self.run, name, TRANSCRIPT_CAP),
            Kept::InLines => store.in_log(&self.run, name, TRANSCRIPT_CAP),
        };
        Ok(Box::new(transcript?))
    }

    fn concurrent_writer(&self, since: SystemTime) -> Option<String> {
        let since = since
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_millis()).ok())?;
        let others = self.journal.beside(&self.run, since).ok()?;
        let other =
            others.into_iter().find(|other| works_in(&self.journal, &other.id, &self.repo))?;
        Some(format!("run {} was at work in the same folder at the same time", other.id))
    }

    fn progress(&self, event: Event) {
        let _ = self.sender.send(News::Progress(Box::new(event)));
    }
}
