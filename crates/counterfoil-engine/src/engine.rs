//! The embedded engine: starts, resumes, answers and cancels the runs of a state folder.

mod read;
mod resume;
mod undo;
mod view;
mod workflows;

use crate::artifacts::{self, PendingArtifacts};
use crate::clock::{Clock, wall};
use crate::config;
use crate::driver::{InboxMessage, RunDriver, batch, no_room, timed_turn};
use crate::error::Error;
use crate::journal::{self, Journal, Lease, NewRun};
use crate::lists;
use crate::observer::RunObserver;
use crate::run_inputs::validate_inputs;
use crate::run_report::{ANSWERED, RunReport};
use crate::unheld_limits::unheld_limits;
use counterfoil_agents::assignment::AgentAssignments;
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_flow::{
    AnswerError, Budget, Bundle, Changes, DECIDE, DecidedBy, Event, Outcome, Resumed, RunState,
    Started, Workflow,
};
use counterfoil_process::StopRequest;
use counterfoil_process::contain::{Kind, Launcher};
use counterfoil_worker::{WorkerContext, bundle_contracts, perform_workspace_op};
use counterfoil_workspace::git;
use counterfoil_workspace::workspaces::{Workspaces, readable_name};
use resume::checked_changes;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use workflows::Workflows;

pub use view::RunView;

/// The options of a new run.
pub struct StartOptions {
    /// The workflow to run.
    pub workflow: Workflow,
    /// The inputs of the workflow.
    pub inputs: Map<String, Value>,
    /// Limits that override those of the workflow.
    pub budget: Budget,
    /// The programs assigned to the agents.
    pub agents: AgentAssignments,
    /// The folder in which the agents work.
    pub repo: PathBuf,
    /// The folders of the workflow's files and contracts, where they are known. Agents must not
    /// change those of these files that are in `repo`.
    pub workflow_folders: Vec<PathBuf>,
    /// How commands and checks are contained.
    pub launcher: Launcher,
}

/// A new run that is not driven yet, with the right to drive it. If this is dropped, the run is
/// interrupted and can be resumed.
pub struct CreatedRun {
    lease: Lease,
    workflow: Arc<Workflow>,
    /// Its first event, and when it was recorded.
    started: (Event, i64),
    run_state: RunState,
    agents: AgentAssignments,
    repo: PathBuf,
    launcher: Launcher,
    clock: Clock,
}

impl CreatedRun {
    /// The id of the run.
    pub fn run(&self) -> &str {
        &self.run_state.run
    }
}

/// What changes when a run is resumed.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// New programs for agents, by the name of the agent.
    pub named: BTreeMap<String, String>,
    /// The new program for all other agents.
    pub rest: Option<String>,
    /// The environment of the agents.
    pub environment: AgentEnvironment,
    /// The new folder in which the agents work, if the repository has moved.
    pub repo: Option<PathBuf>,
    /// The person or program that resumes the run.
    pub by: DecidedBy,
    /// Whether a configuration is accepted that changed while an agent was at work.
    pub accept_config: bool,
    /// More budget, other limits and inputs, and the reason.
    pub changes: Changes,
}

/// The folder in a repository for worktrees, if the state folder is elsewhere.
const IN_REPOSITORY: &str = ".counterfoil";

/// Drives and reads the runs of a state folder.
#[derive(Clone, Debug)]
pub struct Engine {
    journal: Journal,
    workflows: Workflows,
}

impl From<Journal> for Engine {
    fn from(journal: Journal) -> Self {
        Self { journal, workflows: Workflows::default() }
    }
}

fn settings(keys: Option<&Path>) -> journal::Settings {
    journal::Settings { keys: keys.map(Path::to_owned), ..journal::Settings::default() }
}

/// The signal that stops a driver: the run ends its attempts and can be resumed.
pub type StopSignal = watch::Receiver<StopRequest>;

impl Engine {
    /// Opens a state folder and creates it if it does not exist. With a folder of keys, other
    /// programs cannot alter the journal without being noticed.
    ///
    /// # Errors
    ///
    /// The folder or the journal in it cannot be used.
    pub fn open(state: &Path, keys: Option<&Path>) -> Result<Self, Error> {
        Ok(Journal::open_with(state, settings(keys))?.into())
    }

    /// Opens a state folder for reading only.
    ///
    /// # Errors
    ///
    /// There is no journal in the folder, or it cannot be read.
    pub fn open_to_read(state: &Path, keys: Option<&Path>) -> Result<Self, Error> {
        Ok(Journal::open_to_read_with(state, &settings(keys))?.into())
    }

    /// The journal of the state folder.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Starts a run and drives it until it ends, waits for an answer, or is stopped.
    ///
    /// # Errors
    ///
    /// The inputs are not valid, or the journal cannot be written.
    pub async fn start(
        &self,
        options: StartOptions,
        observer: Arc<dyn RunObserver>,
        stop: StopSignal,
    ) -> Result<RunReport, Error> {
        let created = self.create(options)?;
        self.drive(created, observer, stop).await
    }

    /// Records a new run. Other processes see it at once; its steps begin when it is driven.
    ///
    /// # Errors
    ///
    /// The inputs are not valid, or the journal cannot be written.
    pub fn create(&self, options: StartOptions) -> Result<CreatedRun, Error> {
        let StartOptions { workflow, inputs, budget, agents, repo, workflow_folders, launcher } =
            options;
        let inputs = validate_inputs(&workflow, inputs)?;
        let bundle = workflow.bundle.to_bytes()?;
        let run = uuid::Uuid::now_v7().to_string();
        let started = Event::RunStarted(Box::new(Started {
            run: run.clone(),
            workflow: workflow.name.clone(),
            version: workflow.version,
            bundle: Bundle::hash(&bundle),
            decide: DECIDE,
            inputs,
            agents: agents.assigned(),
            budget: workflow.budget.with(&budget),
            repo: repo.display().to_string(),
            observed: git::repository_top(&repo).unwrap_or(&repo).display().to_string(),
            own: workflow_files_in_repo(&workflow, &workflow_folders, &repo),
            base: git::head(&repo),
            config: Some(config::digest(&repo)),
        }));
        let mut clock = Clock::from(0);
        let at = clock.now();
        let mut run_state = RunState::default();
        run_state.apply(&started, at);
        let new = NewRun {
            id: &run,
            workflow: &workflow.name,
            version: workflow.version,
            bundle: &bundle,
            at,
        };
        let lease = self.journal.create(new, batch(&[(started.clone(), at)], &run_state)?)?;
        let workflow = Arc::new(workflow);
        self.workflows.keep(&run_state.bundle, &workflow);
        let started = (started, at);
        Ok(CreatedRun { lease, workflow, started, run_state, agents, repo, launcher, clock })
    }

    /// Drives a new run until it ends, waits for an answer, or is stopped.
    ///
    /// # Errors
    ///
    /// The journal cannot be written.
    pub async fn drive(
        &self,
        created: CreatedRun,
        observer: Arc<dyn RunObserver>,
        stop: StopSignal,
    ) -> Result<RunReport, Error> {
        let CreatedRun { lease, workflow, started, run_state, agents, repo, launcher, clock } =
            created;
        let (started, at) = started;
        observer.on_event(&started, at, &run_state);
        announce_containment(&launcher, &*observer);
        for limit in unheld_limits(&workflow, &run_state.budget, &agents) {
            observer.on_notice(&limit);
        }
        let workspaces = self.sweep_workspaces(&run_state, &repo, &*observer);
        let worker = self.worker(&workflow, &run_state, agents, (&repo, workspaces), launcher);
        let driver = RunDriver {
            journal: self.journal.clone(),
            lease,
            workflow,
            run_state,
            worker,
            repo,
            observer,
            stop,
            pending: PendingArtifacts::default(),
            transcript_error: None,
            clock,
        };
        let run_state = driver.spawn_and_join(Vec::new()).await?;
        self.report_of(&run_state)
    }

    /// Resumes a run and drives it. Completed steps never run again. Attempts that were in flight
    /// are repeated, after their remaining processes are killed. A run that ended without being
    /// done is reopened at the step that ended it, unless it was cancelled.
    ///
    /// # Errors
    ///
    /// There is no such run, it is done, cancelled or undone, it would end again at once, another
    /// process drives it, its folder does not exist, or the journal cannot be read or written.
    pub async fn resume(
        &self,
        run: &str,
        options: &ResumeOptions,
        observer: Arc<dyn RunObserver>,
        stop: StopSignal,
    ) -> Result<RunReport, Error> {
        let run = self.journal.resolve(run)?;
        let (lease, run_state) = self.acquire_open_or_ended(&run)?;
        if let Some(undone) = run_state.undone.last() {
            lease.release()?;
            return Err(Error::Undone { run, by: undone.by.clone() });
        }
        if let Some(ended) = &run_state.ended
            && matches!(ended.outcome, Outcome::Done | Outcome::Cancelled)
        {
            let outcome = ended.outcome.name().to_owned();
            lease.release()?;
            // There may have been no room for them, or the program was killed before it wrote them.
            if self.republish_final_artifacts(&run)? {
                observer.on_notice("artifacts of the run that were missing were written");
            }
            return Err(Error::Ended { run, outcome });
        }
        let repo = options.repo.clone().unwrap_or_else(|| PathBuf::from(&run_state.repo));
        // Without the folder every step would fail, and the run with them.
        if !repo.is_dir() {
            return Err(Error::NoRepository { run, repo });
        }
        let launcher = options.environment.launcher.clone();
        let workflow = self.workflow(&run_state)?;
        let pending = self.pending_artifacts(&workflow, &run_state)?;
        let agents = self.reassign_agents(&workflow, &run_state, options)?;
        let mut changed = agents.assigned();
        changed.retain(|name, assigned| run_state.agents.get(name) != Some(assigned));
        let changes = checked_changes(&workflow, &options.changes)?;
        let facts = if run_state.ended.is_some() {
            vec![self.reopening(&workflow, &run_state, changed, changes, &options.by)?]
        } else {
            let config = config::digest(&repo);
            if !run_state.attempts.is_empty()
                && !options.accept_config
                && run_state.config.as_ref().is_some_and(|before| *before != config)
            {
                lease.release()?;
                return Err(Error::ConfigChanged { run });
            }
            let DecidedBy { by, from } = options.by.clone();
            let config = Some(config);
            let resumed = Resumed { by, from, agents: changed, changes, config, to_cancel: false };
            self.resume_events(&workflow, &run_state, &repo, &agents, resumed)?
        };
        announce_containment(&launcher, &*observer);
        let limits = run_state.budget.with(&options.changes.budget);
        for limit in unheld_limits(&workflow, &limits, &agents) {
            observer.on_notice(&limit);
        }
        let workspaces = self.sweep_workspaces(&run_state, &repo, &*observer);
        let worker = self.worker(&workflow, &run_state, agents, (&repo, workspaces), launcher);
        let clock = Clock::from(run_state.last_at);
        let driver = RunDriver {
            journal: self.journal.clone(),
            lease,
            workflow,
            run_state,
            worker,
            repo,
            observer,
            stop,
            pending,
            transcript_error: None,
            clock,
        };
        let run_state = driver.spawn_and_join(facts).await?;
        self.report_of(&run_state)
    }

    /// The worker that performs the attempts of a run.
    fn worker(
        &self,
        workflow: &Workflow,
        run_state: &RunState,
        agents: AgentAssignments,
        (repo, workspaces): (&Path, Arc<Workspaces>),
        launcher: Launcher,
    ) -> Arc<WorkerContext> {
        let contracts = bundle_contracts(&workflow.bundle);
        let state = self.journal.folder();
        let worktrees = workspaces.paths_in_repository();
        let context =
            WorkerContext::new(&run_state.run, repo, state, agents, contracts, workspaces);
        // The home folder may be in the repository.
        let keys = self.journal.keys().map(Path::to_owned);
        context.add_published(worktrees.into_iter().chain(keys));
        // Nobody else is to blame for what we print.
        context.add_output_files(counterfoil_process::output_files());
        let context = context.with_workflow_files(run_state.own.clone());
        Arc::new(context.with_workflow(&workflow.name).with_launcher(launcher))
    }

    /// Records an answer to a question. If another process drives the run, the answer is sent to
    /// it; otherwise the run continues when it is resumed.
    ///
    /// # Errors
    ///
    /// There is no such run or question, the answer is not valid, or the journal cannot be written.
    pub fn answer(
        &self,
        run: &str,
        question: &str,
        answer: &str,
        by: impl Into<DecidedBy>,
    ) -> Result<(), Error> {
        let DecidedBy { by, from } = by.into();
        let run = self.journal.resolve(run)?;
        match self.acquire(&run) {
            Ok((lease, mut run_state)) => {
                let question = question_id(&run_state, question)?;
                run_state.check_answer(&question, answer)?;
                // One that was answered stays so when an optional question is answered, too.
                let waited = run_state.is_resting()
                    || self.journal.run(&run)?.summary.outcome.as_deref() == Some(ANSWERED);
                let fact = Event::Answered { question, answer: answer.to_owned(), by, from };
                let at = wall().max(run_state.last_at);
                // Nobody drove the run, even if it was interrupted with work in progress.
                let skipped = u64::try_from(at.saturating_sub(run_state.last_at)).unwrap_or(0);
                let mut events = vec![(fact, at)];
                if !run_state.is_resting() && skipped > 0 {
                    events.insert(0, (Event::TimeSkipped { ms: skipped }, at));
                }
                for (event, at) in &events {
                    run_state.apply(event, *at);
                }
                let mut batch = batch(&events, &run_state)?;
                batch.snapshot = Some(serde_json::to_vec(&run_state)?);
                let is_answered = waited && !run_state.is_resting();
                if let Some(summary) = batch.summary.as_mut().filter(|_| is_answered) {
                    summary.outcome = Some(ANSWERED.to_owned());
                }
                lease.append_blocking(batch)?;
                Ok(lease.release()?)
            }
            Err(Error::Journal(journal::Error::AlreadyDriven { .. })) => {
                let run_state = self.run_state(&run)?;
                let question = question_id(&run_state, question)?;
                run_state.check_answer(&question, answer)?;
                let message =
                    InboxMessage::Answer { question, answer: answer.to_owned(), by, from };
                self.journal.send_message(
                    &run,
                    "answer",
                    &serde_json::to_vec(&message)?,
                    wall(),
                )?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Cancels a run. If another process drives it, that process is asked to; otherwise its
    /// remaining processes are killed here, and what their attempts used is counted as far as the
    /// agents in this environment can tell.
    ///
    /// # Errors
    ///
    /// There is no such run, it has ended, or the journal cannot be read or written.
    pub fn cancel(
        &self,
        run: &str,
        environment: AgentEnvironment,
        by: impl Into<DecidedBy>,
    ) -> Result<CancelOutcome, Error> {
        let DecidedBy { by, from } = by.into();
        let run = self.journal.resolve(run)?;
        match self.acquire(&run) {
            Ok((lease, mut run_state)) => {
                let workflow = self.workflow(&run_state)?;
                let resumed = Resumed {
                    by: by.clone(),
                    from: from.clone(),
                    to_cancel: true,
                    ..Resumed::default()
                };
                let repo = Path::new(&run_state.repo);
                let options = ResumeOptions { environment, ..ResumeOptions::default() };
                // Programs that are gone since do not keep a run open.
                let agents = self.reassign_agents(&workflow, &run_state, &options);
                let agents = agents.unwrap_or_default();
                let mut facts =
                    self.resume_events(&workflow, &run_state, repo, &agents, resumed)?;
                facts.push(Event::CancelRequested { by, from });
                let mut clock = Clock::from(run_state.last_at);
                // Open workspaces are discarded first; the run ends when they are gone.
                while !facts.is_empty() {
                    let told = std::mem::take(&mut facts);
                    let turned = timed_turn(&workflow, &mut run_state, told, &mut clock);
                    let mut batch = batch(&turned.events, &run_state)?;
                    batch.snapshot = Some(serde_json::to_vec(&run_state)?);
                    lease.append_blocking(batch)?;
                    let workspaces = self.workspaces(Path::new(&run_state.repo));
                    let perform =
                        |op| perform_workspace_op(&workspaces, &run, op, &BTreeSet::new());
                    facts.extend(turned.workspace_ops.iter().map(perform));
                }
                lease.release()?;
                let published =
                    artifacts::publish_final(&workflow, &run_state, PendingArtifacts::default());
                published.map_err(|error| no_room(Path::new(&run_state.repo), error))?;
                Ok(CancelOutcome::Cancelled)
            }
            Err(Error::Journal(journal::Error::AlreadyDriven { .. })) => {
                let message = InboxMessage::Cancel { by, from };
                self.journal.send_message(
                    &run,
                    "cancel",
                    &serde_json::to_vec(&message)?,
                    wall(),
                )?;
                Ok(CancelOutcome::Requested)
            }
            Err(error) => Err(error),
        }
    }

    /// The workspaces of a repository. Worktrees are always in the repository, so that tools find
    /// what they look for in the folders above them: `node_modules`, a virtual environment, the
    /// settings of a workspace.
    pub fn workspaces(&self, repo: &Path) -> Workspaces {
        let state = self.journal.folder();
        let workspaces = Workspaces::new(state, repo);
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (state, repo) = (real(state), real(repo));
        let top = git::repository_top(&repo).unwrap_or(&repo);
        if state.starts_with(top) {
            return workspaces;
        }
        // Another state folder of the same repository removes its own worktrees only.
        let name = readable_name("worktrees", &[&state.to_string_lossy()]);
        workspaces.with_worktrees(&top.join(IN_REPOSITORY).join(name))
    }

    /// The workspaces of a repository. Those that belong to no open run are removed first.
    fn sweep_workspaces(
        &self,
        run_state: &RunState,
        repo: &Path,
        observer: &dyn RunObserver,
    ) -> Arc<Workspaces> {
        let workspaces = self.workspaces(repo);
        let is_open = |run: &str, id: &str| {
            let has = |run_state: &RunState| {
                run_state.ended.is_none() && run_state.workspaces().any(|(open, _)| open == id)
            };
            if run == run_state.run {
                has(run_state)
            } else {
                self.run_state(run).is_ok_and(|other| has(&other))
            }
        };
        for swept in workspaces.sweep(&is_open) {
            let kept =
                swept.kept.map(|kept| format!("; its work is kept in {kept}")).unwrap_or_default();
            observer.on_notice(&format!(
                "a worktree that run {} left behind was removed{kept}",
                swept.run
            ));
        }
        Arc::new(workspaces)
    }
}

/// Says how the commands of a run are contained, if they are.
fn announce_containment(launcher: &Launcher, observer: &dyn RunObserver) {
    let settings = launcher.settings();
    if settings.kind != Kind::None {
        let network = if settings.network { "" } else { ", without a network" };
        observer.on_notice(&format!(
            "commands, checks and command agents are contained by {}{network}",
            settings.kind
        ));
    }
}

/// The result of [`Engine::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The run is cancelled.
    Cancelled,
    /// The process that drives the run was asked to cancel it.
    Requested,
}

/// The id of a question, given the id or an unambiguous part of it.
fn question_id(run_state: &RunState, question: &str) -> Result<String, AnswerError> {
    // It may have an answer already, which is said then.
    if run_state.questions.contains_key(question) {
        return Ok(question.to_owned());
    }
    let open = run_state.open_questions().map(|(id, _)| id.as_str());
    lists::question_id(open, question).map(str::to_owned)
}

/// The files of a workflow that are in the repository, relative to it.
fn workflow_files_in_repo(workflow: &Workflow, folders: &[PathBuf], repo: &Path) -> Vec<String> {
    let Ok(repo) = repo.canonicalize() else { return Vec::new() };
    let mut own = BTreeSet::new();
    for folder in folders {
        let files = workflow.bundle.files.keys().map(|file| folder.join(file));
        // A contract that is added to a folder of contracts counts as well.
        let folders = workflow.contract_paths.iter().map(|path| folder.join(path));
        for path in files.chain(folders).filter_map(|path| path.canonicalize().ok()) {
            own.extend(path.strip_prefix(&repo).ok().and_then(Path::to_str).map(str::to_owned));
        }
    }
    own.into_iter().collect()
}
