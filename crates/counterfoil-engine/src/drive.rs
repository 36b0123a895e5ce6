//! Driving one run: facts in, a turn, the events to the journal in one transaction, and only then
//! the work. It decides nothing; `turn` does.

mod work;

use crate::clock::Clock;
use crate::engine::Error;
use crate::journal::{self, Batch, Journal, Lease, Row, Summary};
use crate::publish::{self, Written};
use counterfoil_agents::transcript::TranscriptError;
use counterfoil_flow::{
    Event, Rendered, Rendering, RunState, Turn, Workflow, artifact_paths, artifacts, turn,
};
use counterfoil_process::StopRequest;
use counterfoil_worker::WorkerContext;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use work::{News, Running};

/// Sees a run as it goes: the live tree, plain lines, nothing.
pub trait Watcher: Send + Sync {
    /// A run of this workflow is driven from here on.
    fn takes_up(&self, workflow: &Arc<Workflow>) {
        let _ = workflow;
    }
    /// An event was recorded.
    fn event(&self, event: &Event, at: i64, fold: &RunState);
    /// An attempt did something.
    fn activity(&self, attempt: &str, line: &str);
    /// Something that is no event of the run, but that somebody should know.
    fn remark(&self, line: &str) {
        let _ = line;
    }
}

/// A watcher that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn event(&self, _: &Event, _: i64, _: &RunState) {}
    fn activity(&self, _: &str, _: &str) {}
}

/// How many events pass between two snapshots of the fold.
const SNAPSHOT_EVERY: u64 = 64;
/// How often the inbox is looked into while nothing else happens.
const INBOX: Duration = Duration::from_millis(250);
/// The longest wait without looking at the clock.
const NAP: Duration = Duration::from_mins(1);
/// Attempts that were told to stop are waited for this long.
const LAST_WAIT: Duration = Duration::from_secs(40);
/// Pauses before a write is tried again that met a full disk or a locked journal.
const WRITE_AGAIN: [u64; 6] = [100, 300, 1000, 2000, 4000, 8000];
/// The largest transcript kept.
const TRANSCRIPT_CAP: u64 = 2 << 30;

/// A run that is being driven.
pub(crate) struct Drive {
    pub(crate) journal: Journal,
    pub(crate) lease: Lease,
    pub(crate) workflow: Arc<Workflow>,
    pub(crate) fold: RunState,
    pub(crate) repo: PathBuf,
    /// What performs its attempts.
    pub(crate) worker: Arc<WorkerContext>,
    pub(crate) watcher: Arc<dyn Watcher>,
    pub(crate) stop: watch::Receiver<StopRequest>,
    /// What belongs to the last events before it was taken up, if a kill may have kept it from
    /// being written.
    pub(crate) unwritten: Option<Vec<Rendering>>,
    /// Why what an attempt said could not be kept: the run stops there, and goes on when it is
    /// resumed.
    pub(crate) unkept: Option<TranscriptError>,
}

/// Something posted by another process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Letter {
    Answer { question: String, answer: String, by: String },
    Cancel { by: String },
}

impl From<Letter> for Event {
    fn from(letter: Letter) -> Self {
        match letter {
            Letter::Answer { question, answer, by } => Self::Answered { question, answer, by },
            Letter::Cancel { by } => Self::CancelRequested { by },
        }
    }
}

impl Drive {
    /// Drives the run as a task of the runtime: the attempts it starts are then tasks of the same
    /// worker, and a step does not go from thread to thread. Dropping the future ends it.
    pub(crate) async fn on_a_worker(self, first: Vec<Event>) -> Result<RunState, Error> {
        self.watcher.takes_up(&self.workflow);
        let mut task = JoinSet::new();
        task.spawn(self.run(first));
        match task.join_next().await {
            Some(Ok(driven)) => driven,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            _ => Err(Error::Broken),
        }
    }

    /// Drives the run until it ends, waits for somebody, or is stopped.
    async fn run(mut self, mut first: Vec<Event>) -> Result<RunState, Error> {
        let (sender, mut news) = mpsc::unbounded_channel();
        let mut running = Running::new(sender, self.worker.clone());
        first.extend(self.catch_up());
        let driven = self.turns(first, &mut running, &mut news).await;
        // However it ended, nothing of it is left running.
        for stop in running.stops.values() {
            let _ = stop.send(StopRequest::Immediate);
        }
        let _ = tokio::time::timeout(LAST_WAIT, async {
            while running.tasks.join_next().await.is_some() {}
        })
        .await;
        running.tasks.abort_all();
        driven?;
        let Self { lease, fold, .. } = self;
        lease.release()?;
        Ok(fold)
    }

    async fn turns(
        &mut self,
        first: Vec<Event>,
        running: &mut Running,
        news: &mut mpsc::UnboundedReceiver<News>,
    ) -> Result<(), Error> {
        let mut clock = Clock::from(self.fold.last_at);
        let mut facts = first;
        let mut snapshot = self.fold.seq;
        let mut told = StopRequest::None;
        let mut fresh = true;
        loop {
            let mut consumed = Vec::new();
            if fresh || facts.is_empty() {
                fresh = false;
                consumed = self.letters(&mut facts)?;
            }
            let turned =
                turn(&self.workflow, &mut self.fold, std::mem::take(&mut facts), clock.now());
            self.record(&turned, consumed, &mut snapshot).await?;
            if let Some(error) = self.unkept.take() {
                return Err(journal::Error::from(error).into());
            }
            for (event, at) in &turned.events {
                self.watcher.event(event, *at, &self.fold);
                if let Event::AttemptEnded(ended) = event {
                    running.stops.remove(&ended.attempt);
                }
            }
            if turned.renders_artifacts() {
                facts.extend(self.publish(&turned.rendered, Written::No));
            }
            facts.extend(turned.file_checks.iter().map(|look| self.worker.check_files(look)));
            facts.extend(self.ready_answers(&turned));
            for errand in turned.workspace_ops {
                Self::send(errand, running);
            }
            for start in turned.attempts {
                self.start(start, running);
            }
            for attempt in &turned.stops {
                let stop = if told == StopRequest::Immediate {
                    StopRequest::Immediate
                } else {
                    StopRequest::Graceful
                };
                if let Some(sender) = running.stops.get(attempt) {
                    sender.send_if_modified(|now| std::mem::replace(now, stop) != stop);
                }
            }
            if !facts.is_empty() {
                continue;
            }
            let idle = self.fold.attempts.is_empty() && running.workspace_ops.is_empty();
            if idle && (self.fold.stopped.is_some() || turned.wake_at.is_none()) {
                return Ok(());
            }
            facts = self.wait(turned.wake_at, &mut clock, &mut told, news).await;
            Self::came_back(&facts, running);
        }
    }

    /// Waits for something to happen.
    async fn wait(
        &mut self,
        wake_at: Option<i64>,
        clock: &mut Clock,
        told: &mut StopRequest,
        news: &mut mpsc::UnboundedReceiver<News>,
    ) -> Vec<Event> {
        let now = clock.now();
        let until =
            |time: i64| Duration::from_millis(u64::try_from(time.saturating_sub(now)).unwrap_or(0));
        let nap = wake_at.map_or(NAP, until).min(NAP);
        let mut facts = Vec::new();
        let mut stop = self.stop.clone();
        let before = *told;
        tokio::select! {
            biased;
            some = news.recv() => {
                facts.extend(some.into_iter().flat_map(|news| self.hear(news)));
                // What else has come in the meantime is part of the same turn.
                while let Ok(more) = news.try_recv() {
                    facts.extend(self.hear(more));
                }
            }
            stop = async { stop.wait_for(|stop| *stop != before).await.map_or(before, |stop| *stop) }, if stop.has_changed().is_ok() => {
                *told = stop;
                if self.fold.stopped.is_none() && stop != StopRequest::None {
                    let reason = format!("stopped; `counterfoil resume {}` goes on", self.fold.run);
                    facts.push(Event::RunStopped { reason });
                }
            }
            () = tokio::time::sleep(nap.min(INBOX)) => {}
        }
        facts
    }

    /// What others posted, as facts.
    fn letters(&self, facts: &mut Vec<Event>) -> Result<Vec<i64>, Error> {
        let mut consumed = Vec::new();
        for posted in self.lease.posted()? {
            consumed.push(posted.id);
            if let Ok(letter) = serde_json::from_slice::<Letter>(&posted.body) {
                facts.push(letter.into());
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
        let mut batch = batch(&turned.events, &self.fold)?;
        batch.consumed = consumed;
        let rests = self.fold.ended.is_some() || self.fold.is_resting();
        if rests || self.fold.seq >= *snapshot + SNAPSHOT_EVERY {
            batch.snapshot = Some(serde_json::to_vec(&self.fold)?);
            *snapshot = self.fold.seq;
        }
        for pause in WRITE_AGAIN {
            match self.lease.append(batch.clone()).await {
                Err(journal::Error::Full { .. } | journal::Error::Busy { .. }) => {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                done => return Ok(done.map(|_| ())?),
            }
        }
        Ok(self.lease.append(batch).await.map(|_| ())?)
    }

    /// Writes what belongs to the events of a turn, and how the run itself stands.
    fn publish(&self, of_events: &[Rendering], when: Written) -> Option<Event> {
        let standing = artifacts(&self.workflow, &self.fold);
        let published = standing.and_then(|mut rendered| {
            rendered.extend(of_events.iter().cloned().collect::<Result<Vec<Rendered>, _>>()?);
            self.claim(rendered.iter().map(|one| one.path.as_str()));
            publish::publish(&self.repo, &rendered, when)
        });
        published.err().map(|(path, reason)| Event::ArtifactFailed { path, reason })
    }

    /// The files of artifacts are known as ours.
    fn claim<'p>(&self, paths: impl Iterator<Item = &'p str>) {
        let paths = paths.filter_map(|path| publish::inside(&self.repo, path).ok());
        self.worker.add_published(paths);
    }

    /// Taken up again: the files that are ours are known again, and what a kill kept from being
    /// written is written.
    fn catch_up(&mut self) -> Option<Event> {
        let ours = artifact_paths(&self.workflow, &self.fold);
        self.claim(ours.iter().map(String::as_str));
        let unwritten = self.unwritten.take()?;
        self.publish(&unwritten, Written::Perhaps)
    }

    /// Answers that a script has ready.
    fn ready_answers(&self, turned: &Turn) -> Vec<Event> {
        let asked = turned.events.iter().filter_map(|(event, _)| match event {
            Event::Asked { questions, .. } => Some(questions),
            _ => None,
        });
        let mut answers = Vec::new();
        for question in asked.flatten() {
            // One that does not fit is refused as anybody's is, and the question stands: the next
            // one is taken.
            while let Some(answer) = self.worker.agents().answer(&question.id) {
                match self.fold.check_answer(&question.id, &answer) {
                    Ok(()) => {
                        answers.push(Event::Answered {
                            question: question.id.clone(),
                            answer,
                            by: "script".to_owned(),
                        });
                        break;
                    }
                    Err(why) => {
                        self.watcher
                            .remark(&format!("the script's answer to '{}': {why}", question.id));
                    }
                }
            }
        }
        answers
    }

    /// What an attempt said, as facts.
    fn hear(&mut self, news: News) -> Vec<Event> {
        match news {
            News::Progress(event) | News::Back(event) => vec![*event],
            News::Done(done) => {
                // It stays in flight: it is fenced and started anew when the run goes on.
                if let Some(error) = done.unkept {
                    self.unkept.get_or_insert(error);
                    return Vec::new();
                }
                let used_up = done.used_up.map(|what| Event::BudgetReached { what });
                [Event::AttemptEnded(Box::new(done.ended))].into_iter().chain(used_up).collect()
            }
        }
    }
}

/// Events as rows, with the summary that lists show.
pub(crate) fn batch(events: &[(Event, i64)], fold: &RunState) -> Result<Batch, Error> {
    let rows = events.iter().map(|(event, at)| {
        Ok(Row { at: *at, kind: event.kind().into(), body: serde_json::to_vec(event)? })
    });
    let rows = rows.collect::<Result<_, serde_json::Error>>()?;
    Ok(Batch { rows, snapshot: None, summary: Some(summary(fold)), consumed: Vec::new() })
}

fn summary(fold: &RunState) -> Summary {
    let standing = crate::story::standing(fold);
    Summary {
        outcome: standing.outcome.map(str::to_owned),
        cause: standing.cause.map(|cause| cause.name().to_owned()),
        state: standing.state,
        reason: standing.reason,
        iterations: fold.iterations,
        input_tokens: fold.usage.input_tokens,
        output_tokens: fold.usage.output_tokens,
        cost_usd: fold.usage.cost_usd,
        wall_ms: fold.usage.wall_ms,
        questions: fold.open_questions().count() as u64,
    }
}
