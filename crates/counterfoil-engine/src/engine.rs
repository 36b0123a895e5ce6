//! The embedded engine: runs in a state folder, started, resumed, answered, cancelled.

mod error;

pub use error::Error;

use crate::clock::wall;
use crate::drive::{Drive, Letter, Watcher, batch};
use crate::given::{given, merged};
use crate::journal::{self, Journal, Lease, NewRun};
use crate::ledger::Ledger;
use crate::publish::{self, Trail};
use crate::story::{self, Report};
use counterfoil_agents::agent::Equipment;
use counterfoil_agents::cast::Cast;
use counterfoil_flow::{
    AssignedAgent, Budget, Bundle, DECIDE, Event, RunState, Started, Workflow, artifact_paths,
    reload, turn,
};
use counterfoil_process::{StopRequest, sweep};
use counterfoil_worker::{SCRATCH, WorkerContext, contracts_of, perform_workspace_op};
use counterfoil_workspace::git::recent_writes;
use counterfoil_workspace::workspaces::Workspaces;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// A run to start.
pub struct Launch {
    /// What to run.
    pub workflow: Workflow,
    /// What it is given.
    pub inputs: Map<String, Value>,
    /// What it may cost, over what the workflow says.
    pub budget: Budget,
    /// Who plays its agents.
    pub cast: Cast,
    /// Where the work is done.
    pub repo: PathBuf,
    /// The folder of the workflow's files, and others with its contracts, where they are known.
    /// What of them stands where the work is done is protected from agents.
    pub home: Vec<PathBuf>,
}

/// Who plays the agents of a run that is resumed, where it is not as it was.
#[derive(Clone, Debug, Default)]
pub struct Recast {
    /// By agent.
    pub named: BTreeMap<String, String>,
    /// All others.
    pub rest: Option<String>,
    /// What agents are equipped with.
    pub equipment: Equipment,
    /// Where the work is done, if the repository moved.
    pub repo: Option<PathBuf>,
}

/// Runs in a state folder.
#[derive(Clone)]
pub struct Engine {
    journal: Journal,
}

/// How a driven run stands: it ended, waits, or was stopped.
pub type Stopped = watch::Receiver<StopRequest>;

impl Engine {
    /// Opens a state folder, and makes it if it is not there.
    pub fn open(state: &Path) -> Result<Self, Error> {
        Ok(Self { journal: Journal::open(state)? })
    }

    /// Opens a state folder that is only looked at.
    pub fn open_to_read(state: &Path) -> Result<Self, Error> {
        Ok(Self { journal: Journal::open_to_read(state)? })
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Starts a run and drives it until it ends, waits for somebody, or is stopped.
    pub async fn start(
        &self,
        launch: Launch,
        watcher: Arc<dyn Watcher>,
        stop: Stopped,
    ) -> Result<Report, Error> {
        let Launch { workflow, inputs, budget, cast, repo, home } = launch;
        let inputs = given(&workflow, inputs)?;
        let bundle = workflow.bundle.to_bytes()?;
        let run = uuid::Uuid::now_v7().to_string();
        let started = Event::RunStarted(Box::new(Started {
            run: run.clone(),
            workflow: workflow.name.clone(),
            version: workflow.version,
            bundle: Bundle::hash(&bundle),
            decide: DECIDE,
            inputs,
            agents: cast.players(),
            budget: merged(&workflow.budget, &budget),
            repo: repo.display().to_string(),
            own: own(&workflow, &home, &repo),
            base: counterfoil_workspace::git::head(&repo),
        }));
        let at = wall();
        let mut fold = RunState::default();
        fold.apply(&started, at);
        let new = NewRun {
            id: &run,
            workflow: &workflow.name,
            version: workflow.version,
            bundle: &bundle,
            at,
        };
        let lease = self.journal.create(new, batch(&[(started.clone(), at)], &fold)?)?;
        watcher.event(&started, at, &fold);
        let workspaces = self.swept(&fold, &repo, &*watcher);
        let worker = self.worker(&workflow, &fold, cast, &repo, workspaces);
        let drive = Drive {
            journal: self.journal.clone(),
            lease,
            workflow: Arc::new(workflow),
            fold,
            worker,
            repo,
            watcher,
            stop,
            unwritten: None,
            unkept: None,
        };
        let fold = drive.on_a_worker(Vec::new()).await?;
        self.report_of(&fold)
    }

    /// Takes a run up again and drives it on. Completed steps never run again; attempts that were
    /// in flight are fenced, what is left of their processes is killed, and they start anew.
    pub async fn resume(
        &self,
        run: &str,
        recast: &Recast,
        watcher: Arc<dyn Watcher>,
        stop: Stopped,
    ) -> Result<Report, Error> {
        let run = self.journal.resolve(run)?;
        let (lease, fold) = match self.take(&run) {
            Err(error @ Error::Ended { .. }) => {
                self.show_end_again(&run)?;
                return Err(error);
            }
            taken => taken?,
        };
        let repo = recast.repo.clone().unwrap_or_else(|| PathBuf::from(&fold.repo));
        // Every step would fail there, and the run with them; it waits instead.
        if !repo.is_dir() {
            return Err(Error::NoRepository { run, repo });
        }
        let workflow = self.workflow(&fold)?;
        let unwritten = self.trail(&workflow, &fold)?.unwritten();
        let cast = self.recast(&workflow, &fold, recast)?;
        let mut players = cast.players();
        players.retain(|name, player| fold.agents.get(name) != Some(player));
        let facts = self.taken_up(&workflow, &fold, &repo, players)?;
        let workspaces = self.swept(&fold, &repo, &*watcher);
        let worker = self.worker(&workflow, &fold, cast, &repo, workspaces);
        let drive = Drive {
            journal: self.journal.clone(),
            lease,
            workflow: Arc::new(workflow),
            fold,
            worker,
            repo,
            watcher,
            stop,
            unwritten,
            unkept: None,
        };
        let fold = drive.on_a_worker(facts).await?;
        self.report_of(&fold)
    }

    /// What performs the attempts of a run.
    fn worker(
        &self,
        workflow: &Workflow,
        fold: &RunState,
        cast: Cast,
        repo: &Path,
        workspaces: Arc<Workspaces>,
    ) -> Arc<WorkerContext> {
        let contracts = contracts_of(&workflow.bundle);
        let state = self.journal.folder();
        let context = WorkerContext::new(&fold.run, repo, state, cast, contracts, workspaces);
        Arc::new(context.with_workflow_files(fold.own.clone()))
    }

    /// Records an answer; `resume` goes on. If the run is being driven, its driver takes the answer
    /// up.
    pub fn answer(&self, run: &str, question: &str, answer: &str, by: &str) -> Result<(), Error> {
        let run = self.journal.resolve(run)?;
        match self.take(&run) {
            Ok((lease, mut fold)) => {
                let question = full_id(&fold, question);
                fold.check_answer(&question, answer)?;
                let fact =
                    Event::Answered { question, answer: answer.to_owned(), by: by.to_owned() };
                let at = wall().max(fold.last_at);
                fold.apply(&fact, at);
                let mut batch = batch(&[(fact, at)], &fold)?;
                batch.snapshot = Some(serde_json::to_vec(&fold)?);
                lease.append_blocking(batch)?;
                Ok(lease.release()?)
            }
            Err(Error::Journal(journal::Error::Held { .. })) => {
                let fold = self.fold(&run)?;
                let question = full_id(&fold, question);
                fold.check_answer(&question, answer)?;
                let letter =
                    Letter::Answer { question, answer: answer.to_owned(), by: by.to_owned() };
                self.journal.post(&run, "answer", &serde_json::to_vec(&letter)?, wall())?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Ends a run for good. If it is being driven, its driver ends it; otherwise what is left of
    /// its processes is killed here.
    pub fn cancel(&self, run: &str, by: &str) -> Result<Cancelled, Error> {
        let run = self.journal.resolve(run)?;
        match self.take(&run) {
            Ok((lease, mut fold)) => {
                let workflow = self.workflow(&fold)?;
                let mut facts =
                    self.taken_up(&workflow, &fold, Path::new(&fold.repo), BTreeMap::new())?;
                facts.push(Event::CancelRequested { by: by.to_owned() });
                // What is open is dropped first, and the run ends when it is gone; each errand is
                // asked for once.
                while !facts.is_empty() {
                    let turned = turn(&workflow, &mut fold, std::mem::take(&mut facts), wall());
                    let mut batch = batch(&turned.events, &fold)?;
                    batch.snapshot = Some(serde_json::to_vec(&fold)?);
                    lease.append_blocking(batch)?;
                    let workspaces = self.workspaces(Path::new(&fold.repo));
                    let carry_out =
                        |errand| perform_workspace_op(&workspaces, &run, errand, &BTreeSet::new());
                    facts.extend(turned.workspace_ops.iter().map(carry_out));
                }
                lease.release()?;
                publish::show_end(&workflow, &fold);
                Ok(Cancelled::Now)
            }
            Err(Error::Journal(journal::Error::Held { .. })) => {
                let letter = Letter::Cancel { by: by.to_owned() };
                self.journal.post(&run, "cancel", &serde_json::to_vec(&letter)?, wall())?;
                Ok(Cancelled::Asked)
            }
            Err(error) => Err(error),
        }
    }

    /// How a run stands, with all its attempts.
    pub fn report(&self, run: &str) -> Result<Report, Error> {
        let run = self.journal.resolve(run)?;
        let fold = self.fold(&run)?;
        self.report_of(&fold)
    }

    /// What is known of a run.
    pub fn fold(&self, run: &str) -> Result<RunState, Error> {
        let mut fold = RunState::default();
        self.each_event(run, 1, |event, at| fold.apply(&event, at))?;
        Ok(fold)
    }

    /// The claims of a run, and how they stand.
    pub fn ledger(&self, run: &str) -> Result<Ledger, Error> {
        let run = self.journal.resolve(run)?;
        let mut ledger = Ledger::new();
        self.each_event_of(&run, &Ledger::KINDS, |event, at| ledger.hear(&event, at))?;
        Ok(ledger)
    }

    /// Every event of a run, in order.
    pub fn each_event(
        &self,
        run: &str,
        from: u64,
        look: impl FnMut(Event, i64),
    ) -> Result<(), Error> {
        self.look_at(run, from, |_| true, look)
    }

    /// The events of a run that are of these kinds, in order. The others are held to their digests
    /// and not read further.
    pub fn each_event_of(
        &self,
        run: &str,
        kinds: &[&str],
        look: impl FnMut(Event, i64),
    ) -> Result<(), Error> {
        self.look_at(run, 1, |kind| kinds.contains(&kind), look)
    }

    fn look_at(
        &self,
        run: &str,
        from: u64,
        wanted: impl Fn(&str) -> bool,
        mut look: impl FnMut(Event, i64),
    ) -> Result<(), Error> {
        let mut failed = None;
        self.journal.visit(run, from, |row| {
            if !wanted(&row.kind) {
                return ControlFlow::Continue(());
            }
            match serde_json::from_slice::<Event>(&row.body) {
                Ok(event) => {
                    look(event, row.at);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(Error::Unreadable {
                        run: run.to_owned(),
                        seq: row.seq,
                        why: error.to_string(),
                    });
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// The workflow that a run began with.
    pub fn workflow(&self, fold: &RunState) -> Result<Workflow, Error> {
        let bytes = self.journal.bundle(&fold.bundle)?;
        let bundle = Bundle::from_bytes(&bytes)?;
        Ok(reload(&bundle).map_err(Box::new)?)
    }

    /// The workspaces of a repository.
    pub fn workspaces(&self, repo: &Path) -> Workspaces {
        Workspaces::new(self.journal.folder(), repo)
    }

    /// The workspaces of a repository, without those that belong to nobody any more.
    fn swept(&self, fold: &RunState, repo: &Path, watcher: &dyn Watcher) -> Arc<Workspaces> {
        let workspaces = self.workspaces(repo);
        let is_open = |run: &str, id: &str| {
            let has = |fold: &RunState| {
                fold.ended.is_none() && fold.workspaces().any(|(open, _)| open == id)
            };
            if run == fold.run { has(fold) } else { self.fold(run).is_ok_and(|other| has(&other)) }
        };
        for swept in workspaces.sweep(&is_open) {
            let kept =
                swept.kept.map(|kept| format!("; its work is kept in {kept}")).unwrap_or_default();
            watcher.remark(&format!(
                "a worktree that run {} left behind was removed{kept}",
                swept.run
            ));
        }
        Arc::new(workspaces)
    }

    fn report_of(&self, fold: &RunState) -> Result<Report, Error> {
        let mut story = story::Teller::default();
        self.each_event(&fold.run, 1, |event, at| story.hear(&event, at))?;
        let live = self.journal.run(&fold.run)?.driver.is_some_and(|driver| driver.live);
        Ok(story.report(fold, live))
    }

    /// A run that ended shows its end, even if we were killed before that was written; unless a
    /// newer run shows itself.
    fn show_end_again(&self, run: &str) -> Result<(), Error> {
        if self.journal.resolve("last")? == run {
            let fold = self.fold(run)?;
            publish::show_end(&self.workflow(&fold)?, &fold);
        }
        Ok(())
    }

    /// Takes the lease of a run and loads what is known of it: the latest snapshot and the events
    /// behind it.
    fn take(&self, run: &str) -> Result<(Lease, RunState), Error> {
        let (lease, standing) = self.journal.take(run)?;
        let loaded = self.load(run, standing);
        match loaded {
            Ok(fold) => Ok((lease, fold)),
            Err(error) => {
                lease.release()?;
                Err(error)
            }
        }
    }

    fn load(&self, run: &str, standing: journal::Standing) -> Result<RunState, Error> {
        let mut from = 1;
        let mut fold = RunState::default();
        // A snapshot that this version cannot read is no loss: the events say the same.
        if let Some(snapshot) = standing.snapshot
            && let Ok(read) = serde_json::from_slice::<RunState>(&snapshot.body)
        {
            (fold, from) = (read, snapshot.seq + 1);
        }
        let mut newer = None;
        self.each_event(run, from, |event, at| {
            if let Event::RunStarted(started) = &event
                && started.decide > DECIDE
            {
                newer = Some(started.decide);
            }
            fold.apply(&event, at);
        })?;
        if let Some(found) = newer {
            return Err(Error::Newer { run: run.to_owned(), found });
        }
        match &fold.ended {
            Some(ended) => {
                Err(Error::Ended { run: run.to_owned(), outcome: ended.outcome.name().to_owned() })
            }
            None => Ok(fold),
        }
    }

    /// The facts of taking a run up again: what was in flight is lost, and its processes are
    /// killed.
    fn taken_up(
        &self,
        workflow: &Workflow,
        fold: &RunState,
        repo: &Path,
        agents: BTreeMap<String, AssignedAgent>,
    ) -> Result<Vec<Event>, Error> {
        let by = format!("process {}", std::process::id());
        let mut facts = vec![Event::RunResumed { by, agents }];
        let mut began = BTreeMap::new();
        if !fold.attempts.is_empty() {
            self.each_event_of(&fold.run, &["attempt-started"], |event, at| {
                if let Event::AttemptStarted { attempt, agent: Some(_), .. } = event {
                    began.insert(attempt, at);
                }
            })?;
        }
        let ours = artifact_paths(workflow, fold);
        // Nobody is left who needs it.
        let _ = std::fs::remove_dir_all(self.journal.folder().join(SCRATCH).join(&fold.run));
        for (attempt, frame) in &fold.attempts {
            sweep(&format!("{}/{attempt}", fold.run));
            // What was done in a worktree is gone with it, or stays in it.
            let since = began.get(attempt).filter(|_| !fold.has_own_workspace(frame));
            let mut changed =
                since.map(|since| recent_writes::written_since(repo, *since)).unwrap_or_default();
            changed.retain(|path| !ours.contains(path));
            facts.push(Event::AttemptLost { attempt: attempt.clone(), changed });
        }
        Ok(facts)
    }

    /// What a run recorded last, with the artifacts that belong to it.
    fn trail(&self, workflow: &Workflow, fold: &RunState) -> Result<Trail, Error> {
        let (mut trail, mut then) = (Trail::default(), RunState::default());
        let in_parts = workflow.machines.values().any(|machine| !machine.artifacts.is_empty());
        let stepwise = in_parts || workflow.main.artifacts.iter().any(|artifact| artifact.append);
        // What shows how the run stands needs only to know whether it moved; what belongs to single
        // events, how it stood then.
        let from = if stepwise { 1 } else { fold.seq.saturating_sub(Trail::LENGTH).max(1) };
        if !stepwise && workflow.main.artifacts.is_empty() {
            return Ok(trail);
        }
        self.each_event(&fold.run, from, |event, at| {
            then.apply(&event, at);
            trail.hear(workflow, &then, &event, at, fold.last_at);
        })?;
        Ok(trail)
    }

    fn recast(&self, workflow: &Workflow, fold: &RunState, recast: &Recast) -> Result<Cast, Error> {
        let mut named: BTreeMap<String, String> =
            fold.agents.iter().map(|(name, player)| (name.clone(), player.spec.clone())).collect();
        for (name, spec) in &mut named {
            if let Some(new) = recast.named.get(name).or(recast.rest.as_ref()) {
                spec.clone_from(new);
            }
        }
        let scripted = named.values().any(|spec| spec.starts_with("script:"));
        let (mut played, mut answered) = (Vec::new(), Vec::new());
        if scripted {
            self.each_event(&fold.run, 1, |event, _| match event {
                Event::RepairAsked { reply, .. } => played.extend(reply.played),
                Event::AttemptEnded(ended) => {
                    played.extend(ended.reply.and_then(|reply| reply.played))
                }
                Event::Answered { question, answer, by } if by == "script" => {
                    answered.push((question, answer));
                }
                _ => {}
            })?;
        }
        let cast = Cast::from_specs(workflow, &named, None, &recast.equipment, &played)?;
        for (question, answer) in answered {
            // Those before it were refused.
            while cast.answer(&question).is_some_and(|refused| refused != answer) {}
        }
        Ok(cast)
    }
}

/// What came of a wish to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The run is cancelled.
    Now,
    /// The process that drives it was asked to.
    Asked,
}

/// A question by its id, or by a part of it where that is enough.
fn full_id(fold: &RunState, question: &str) -> String {
    if fold.questions.contains_key(question) {
        return question.to_owned();
    }
    let mut fits = fold.open_questions().map(|(id, _)| id).filter(|id| {
        // The number of a question that came again can be left out, and so can the path before its name.
        let name = id.rsplit_once('#').map_or(id.as_str(), |(name, _)| name);
        name.strip_suffix(question).is_some_and(|path| path.is_empty() || path.ends_with(['/', '.']))
            // Also by the state that runs the sub-workflow which asks.
            || name.strip_prefix(question).is_some_and(|rest| rest.starts_with('/'))
    });
    match (fits.next(), fits.next()) {
        (Some(only), None) => only.clone(),
        _ => question.to_owned(),
    }
}

/// The files of a workflow that stand in the repository, relative to it.
fn own(workflow: &Workflow, home: &[PathBuf], repo: &Path) -> Vec<String> {
    let Ok(repo) = repo.canonicalize() else { return Vec::new() };
    let mut own = BTreeSet::new();
    for folder in home {
        let files = workflow.bundle.files.keys().map(|file| folder.join(file));
        for path in files.filter_map(|path| path.canonicalize().ok()) {
            own.extend(path.strip_prefix(&repo).ok().and_then(Path::to_str).map(str::to_owned));
        }
    }
    own.into_iter().collect()
}
