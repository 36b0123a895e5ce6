//! Drives one run: it passes facts to `turn`, records the events in one transaction, and then
//! starts the work. All decisions are made by `turn`.

mod step_log;
mod tasks;

pub(crate) use tasks::works_in;

use crate::artifacts::{self, PendingArtifacts, PriorWrite, PublishError};
use crate::clock::Clock;
use crate::error::Error;
use crate::journal::{self, Batch, Journal, Lease, NewEvent, Summary};
use crate::observer::RunObserver;
use counterfoil_agents::transcript::TranscriptError;
use counterfoil_flow::{
    Event, Origin, Outcome, Rendered, Rendering, RunState, Turn, Workflow, artifact_paths,
    artifacts, turn,
};
use counterfoil_process::StopRequest;
use counterfoil_worker::WorkerContext;
use counterfoil_workspace::NoRoom;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use step_log::StepLog;
use tasks::{ActiveTasks, DriverMessage};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The number of events between two snapshots of the run state.
const SNAPSHOT_EVERY: u64 = 64;
/// How often the inbox is polled while nothing else happens.
const INBOX_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum time between two turns.
const MAX_SLEEP: Duration = Duration::from_mins(1);
/// How long to wait for stopped attempts when the driver ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(40);
/// Delays before a write is retried if the disk is full or the journal is locked.
const WRITE_RETRY_MS: [u64; 6] = [100, 300, 1000, 2000, 4000, 8000];
/// The maximum size of a transcript.
const TRANSCRIPT_CAP: u64 = 2 << 30;

/// Drives one run.
pub(crate) struct RunDriver {
    pub(crate) journal: Journal,
    pub(crate) lease: Lease,
    pub(crate) workflow: Arc<Workflow>,
    pub(crate) run_state: RunState,
    pub(crate) repo: PathBuf,
    /// Performs the attempts.
    pub(crate) worker: Arc<WorkerContext>,
    pub(crate) observer: Arc<dyn RunObserver>,
    pub(crate) stop: watch::Receiver<StopRequest>,
    /// Artifacts from before the run was resumed. A crash may have prevented writing the last ones.
    pub(crate) pending: PendingArtifacts,
    /// The first error of writing a transcript, or the lack of room for what an agent does. The run
    /// stops there and can be resumed.
    pub(crate) transcript_error: Option<TranscriptError>,
    pub(crate) clock: Clock,
}

/// A message from another process to the driver of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum InboxMessage {
    Answer {
        question: String,
        answer: String,
        by: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Box<Origin>>,
    },
    Cancel {
        by: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Box<Origin>>,
    },
}

impl From<InboxMessage> for Event {
    fn from(message: InboxMessage) -> Self {
        match message {
            InboxMessage::Answer { question, answer, by, from } => {
                Self::Answered { question, answer, by, from }
            }
            InboxMessage::Cancel { by, from } => Self::CancelRequested { by, from },
        }
    }
}

impl RunDriver {
    /// Drives the run as a task of the runtime. The attempts that it starts are then tasks of the
    /// same worker thread, which avoids switches between threads. Dropping the future ends the
    /// task.
    pub(crate) async fn spawn_and_join(self, first: Vec<Event>) -> Result<RunState, Error> {
        self.observer.on_run_attached(&self.workflow);
        let run = self.run_state.run.clone();
        let mut task = JoinSet::new();
        task.spawn(self.run(first));
        match task.join_next().await {
            Some(Ok(driven)) => driven,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            _ => Err(Error::Interrupted { run }),
        }
    }

    /// Drives the run until it ends, waits for an answer, or is stopped.
    async fn run(mut self, mut first: Vec<Event>) -> Result<RunState, Error> {
        let (sender, mut messages) = mpsc::unbounded_channel();
        let mut tasks = ActiveTasks::new(sender, self.worker.clone());
        first.extend(self.publish_pending()?);
        let driven = self.turns(first, &mut tasks, &mut messages).await;
        // Whatever the result, nothing is left running.
        for stop in tasks.stops.values() {
            let _ = stop.send(StopRequest::Immediate);
        }
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, async {
            while tasks.handles.join_next().await.is_some() {}
        })
        .await;
        tasks.handles.abort_all();
        driven?;
        let Self { lease, run_state, worker, .. } = self;
        let outcome = run_state.ended.as_ref().map(|ended| ended.outcome);
        if matches!(outcome, Some(Outcome::Done | Outcome::Cancelled)) {
            worker.forget_baselines();
        }
        lease.release()?;
        Ok(run_state)
    }

    async fn turns(
        &mut self,
        first: Vec<Event>,
        tasks: &mut ActiveTasks,
        messages: &mut mpsc::UnboundedReceiver<DriverMessage>,
    ) -> Result<(), Error> {
        let mut facts = first;
        let mut snapshot = self.run_state.seq;
        let mut requested = StopRequest::None;
        let mut is_first = true;
        let mut log = StepLog::new(&self.journal, &self.run_state);
        loop {
            let mut consumed = Vec::new();
            if is_first || facts.is_empty() {
                is_first = false;
                consumed = self.take_messages(&mut facts)?;
            }
            let turned = timed_turn(
                &self.workflow,
                &mut self.run_state,
                std::mem::take(&mut facts),
                &mut self.clock,
            );
            self.record(&turned, consumed, &mut snapshot).await?;
            if let Some(error) = self.transcript_error.take() {
                return Err(journal::Error::from(error).into());
            }
            for (event, at) in &turned.events {
                log.on_event(event, &self.run_state);
                self.observer.on_event(event, *at, &self.run_state);
                if let Event::AttemptEnded(ended) = event {
                    tasks.stops.remove(&ended.attempt);
                }
            }
            if turned.renders_artifacts() {
                facts.extend(self.publish(&turned.rendered, PriorWrite::No)?);
            }
            facts.extend(turned.file_checks.iter().map(|check| self.worker.check_files(check)));
            facts.extend(self.scripted_answers(&turned));
            for op in turned.workspace_ops {
                Self::queue_workspace_op(op, tasks);
            }
            for start in turned.attempts {
                let span = log.span(&start.attempt, &self.run_state);
                self.start_attempt(start, tasks, span);
            }
            for attempt in &turned.stops {
                let stop = if requested == StopRequest::Immediate {
                    StopRequest::Immediate
                } else {
                    StopRequest::Graceful
                };
                if let Some(sender) = tasks.stops.get(attempt) {
                    sender.send_if_modified(|now| std::mem::replace(now, stop) != stop);
                }
            }
            if !facts.is_empty() {
                continue;
            }
            let idle = self.run_state.attempts.is_empty() && tasks.workspace_ops.is_empty();
            if idle && (self.run_state.stopped.is_some() || turned.wake_at.is_none()) {
                return Ok(());
            }
            facts = self.wait(turned.wake_at, &mut requested, messages).await;
            Self::finish_workspace_op(&facts, tasks);
        }
    }

    /// Waits for a message, a stop request or the time of the next turn.
    async fn wait(
        &mut self,
        wake_at: Option<i64>,
        requested: &mut StopRequest,
        messages: &mut mpsc::UnboundedReceiver<DriverMessage>,
    ) -> Vec<Event> {
        let now = self.clock.now();
        let until =
            |time: i64| Duration::from_millis(u64::try_from(time.saturating_sub(now)).unwrap_or(0));
        let sleep = wake_at.map_or(MAX_SLEEP, until).min(MAX_SLEEP);
        let mut facts = Vec::new();
        let mut stop = self.stop.clone();
        let before = *requested;
        tokio::select! {
            biased;
            some = messages.recv() => {
                facts.extend(some.into_iter().flat_map(|message| self.on_message(message)));
                // Messages that have arrived meanwhile are part of the same turn.
                while let Ok(more) = messages.try_recv() {
                    facts.extend(self.on_message(more));
                }
            }
            stop = async { stop.wait_for(|stop| *stop != before).await.map_or(before, |stop| *stop) }, if stop.has_changed().is_ok() => {
                *requested = stop;
                if self.run_state.stopped.is_none() && stop != StopRequest::None {
                    facts.push(Event::RunStopped { reason: "stopped".to_owned() });
                }
            }
            () = tokio::time::sleep(sleep.min(INBOX_POLL_INTERVAL)) => {}
        }
        facts
    }

    /// Adds the messages from other processes to the facts and returns their ids.
    fn take_messages(&self, facts: &mut Vec<Event>) -> Result<Vec<i64>, Error> {
        let mut consumed = Vec::new();
        for stored in self.lease.messages()? {
            consumed.push(stored.id);
            if let Ok(message) = serde_json::from_slice::<InboxMessage>(&stored.body) {
                facts.push(message.into());
            }
        }
        Ok(consumed)
    }

    async fn record(
        &mut self,
        turned: &Turn,
        consumed: Vec<i64>,
        snapshot: &mut u64,
    ) -> Result<(), Error> {
        if turned.events.is_empty() && consumed.is_empty() {
            return Ok(());
        }
        let mut batch = batch(&turned.events, &self.run_state)?;
        batch.consumed = consumed;
        let rests = self.run_state.ended.is_some() || self.run_state.is_resting();
        if rests || self.run_state.seq >= *snapshot + SNAPSHOT_EVERY {
            batch.snapshot = Some(serde_json::to_vec(&self.run_state)?);
            *snapshot = self.run_state.seq;
        }
        for pause in WRITE_RETRY_MS {
            match self.lease.append(batch.clone()).await {
                // The limit of this process on the size of files stays.
                Err(journal::Error::Full { why: NoRoom::FileLimit, .. }) => break,
                Err(journal::Error::Full { .. } | journal::Error::Busy { .. }) => {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                done => return Ok(done.map(|_| ())?),
            }
        }
        Ok(self.lease.append(batch).await.map(|_| ())?)
    }

    /// Writes the artifacts of the run, and those of the events of a turn. Returns the fact that one
    /// could not be written.
    ///
    /// # Errors
    ///
    /// There is no room. The events are recorded, so the artifacts are written when the run is
    /// resumed.
    fn publish(&self, of_events: &[Rendering], when: PriorWrite) -> Result<Option<Event>, Error> {
        let current = artifacts(&self.workflow, &self.run_state);
        let rendered = current.and_then(|mut rendered| {
            rendered.extend(of_events.iter().cloned().collect::<Result<Vec<Rendered>, _>>()?);
            Ok(rendered)
        });
        let published = rendered.map_err(PublishError::from).and_then(|rendered| {
            self.mark_published(rendered.iter().map(|one| one.path.as_str()));
            artifacts::publish(&self.repo, &rendered, when)
        });
        match published {
            Ok(_) => Ok(None),
            Err(error) if error.no_room.is_some() => Err(no_room(&self.repo, error)),
            Err(PublishError { path, reason, .. }) => {
                Ok(Some(Event::ArtifactFailed { path, reason }))
            }
        }
    }

    /// Marks the files of artifacts as written by the engine.
    fn mark_published<'p>(&self, paths: impl Iterator<Item = &'p str>) {
        let paths = paths.filter_map(|path| artifacts::inside(&self.repo, path).ok());
        self.worker.add_published(paths);
    }

    /// Marks the files of earlier artifacts, and writes those that a crash may have prevented.
    fn publish_pending(&mut self) -> Result<Option<Event>, Error> {
        let ours = artifact_paths(&self.workflow, &self.run_state);
        let pending = std::mem::take(&mut self.pending);
        self.mark_published(ours.iter().map(String::as_str).chain(pending.published()));
        match pending.into_unwritten() {
            Some(unwritten) => self.publish(&unwritten, PriorWrite::Perhaps),
            None => Ok(None),
        }
    }

    /// The answers that a script provides for the questions of a turn.
    fn scripted_answers(&self, turned: &Turn) -> Vec<Event> {
        let asked = turned.events.iter().filter_map(|(event, _)| match event {
            Event::Asked { questions, .. } => Some(questions),
            _ => None,
        });
        let mut answers = Vec::new();
        for question in asked.flatten() {
            // An answer that is not valid is refused, and the next one is tried.
            while let Some(answer) = self.worker.agents().answer(&question.id) {
                match self.run_state.check_answer(&question.id, &answer) {
                    Ok(()) => {
                        answers.push(Event::Answered {
                            question: question.id.clone(),
                            answer,
                            by: "script".to_owned(),
                            from: None,
                        });
                        break;
                    }
                    Err(why) => {
                        self.observer.on_notice(&format!(
                            "the script's answer to '{}' was refused: {why}",
                            question.id
                        ));
                    }
                }
            }
        }
        answers
    }

    /// Whether the disk of the repository is full, so that a failure is nobody's fault. The run then
    /// stops and can be resumed.
    fn is_repo_full(&mut self) -> bool {
        let Some(why) = NoRoom::in_folder(&self.repo) else { return false };
        let path = self.repo.clone();
        self.transcript_error.get_or_insert(TranscriptError::Full { path, why });
        true
    }

    /// Turns a message of an attempt into facts.
    fn on_message(&mut self, message: DriverMessage) -> Vec<Event> {
        match message {
            DriverMessage::Progress(event) => vec![*event],
            DriverMessage::WorkspaceOpDone(event) => {
                // The operation is repeated when the run is resumed.
                if matches!(*event, Event::WorkspaceFailed { .. }) && self.is_repo_full() {
                    return Vec::new();
                }
                vec![*event]
            }
            DriverMessage::AttemptDone(done) => {
                // The attempt stays in flight: it is repeated when the run is resumed.
                if let Some(error) = done.transcript_error {
                    self.transcript_error.get_or_insert(error);
                    return Vec::new();
                }
                if done.ended.outcome.failure().is_some() && self.is_repo_full() {
                    return Vec::new();
                }
                let exceeded = done.budget_exceeded.map(|what| Event::BudgetReached { what });
                [Event::AttemptEnded(Box::new(done.ended))].into_iter().chain(exceeded).collect()
            }
        }
    }
}

/// The error of a run that is interrupted because there is no room for an artifact.
pub(crate) fn no_room(repo: &Path, error: PublishError) -> Error {
    let why = error.no_room.unwrap_or(NoRoom::Disk);
    journal::Error::Full { path: repo.join(error.path), why }.into()
}

/// A turn at the current time. Time that the clock skipped is recorded before the facts, so that it does
/// not count.
pub(crate) fn timed_turn(
    workflow: &Workflow,
    run_state: &mut RunState,
    mut facts: Vec<Event>,
    clock: &mut Clock,
) -> Turn {
    let now = clock.now();
    // The time before a run was resumed does not count anyway.
    let is_pause =
        facts.iter().any(|fact| matches!(fact, Event::RunResumed(_) | Event::RunReopened(_)));
    if let Some(ms) = clock.take_skipped().filter(|_| !is_pause) {
        facts.insert(0, Event::TimeSkipped { ms });
    }
    turn(workflow, run_state, facts, now)
}

/// Events for the journal, with the summary for lists of runs.
pub(crate) fn batch(events: &[(Event, i64)], run_state: &RunState) -> Result<Batch, Error> {
    let new = events.iter().map(|(event, at)| {
        Ok(NewEvent { at: *at, kind: event.kind().into(), body: serde_json::to_vec(event)? })
    });
    let new = new.collect::<Result<_, serde_json::Error>>()?;
    Ok(Batch {
        events: new,
        snapshot: None,
        summary: Some(summary(run_state)),
        consumed: Vec::new(),
    })
}

fn summary(run_state: &RunState) -> Summary {
    let status = crate::run_report::status(run_state);
    Summary {
        outcome: status.outcome.map(str::to_owned),
        cause: status.cause.map(|cause| cause.name().to_owned()),
        state: status.state,
        reason: status.reason,
        iterations: run_state.iterations,
        input_tokens: run_state.usage.input_tokens,
        output_tokens: run_state.usage.output_tokens,
        cost_usd: run_state.usage.cost_usd,
        wall_ms: run_state.usage.wall_ms,
        questions: run_state.open_questions().count() as u64,
    }
}
