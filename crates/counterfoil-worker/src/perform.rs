//! Performs one attempt of any kind. A driver hands in the request that `turn` gave it and records
//! what comes back; it needs nothing else of this crate.

use crate::active_folders::{ActiveFolders, FolderGuard};
use crate::attempt::{AgentRequest, Completed, Handle, Witness, attempt};
use crate::examine::{Examiner, Scene, Trees};
use crate::{deed, errands, shell};
use counterfoil_agents::cast::Cast;
use counterfoil_contract::Contract;
use counterfoil_flow::{
    AgentWork, AttemptRequest, AttemptWork, Budget, Bundle, Event, FileCheck, WorkspaceOp,
};
use counterfoil_verify::protect::WriteRules;
use counterfoil_workspace::workspaces::Workspaces;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder for files that attempts need while they run, within the state folder.
pub const SCRATCH: &str = "scratch";

/// Finds a contract of the run's bundle by its id, with or without a version.
pub type Contracts = dyn Fn(&str) -> Option<Arc<Contract>> + Send + Sync;

/// Finds the contracts of a bundle by their ids. Without a version, it is the newest one.
pub fn contracts_of(bundle: &Bundle) -> Arc<Contracts> {
    let definitions = bundle.contracts.clone();
    Arc::new(move |id: &str| {
        let named = |name: &&String| {
            name.as_str() == id || name.rsplit_once('@').is_some_and(|(name, _)| name == id)
        };
        // The newest has the highest number, which is not the last in the order of names.
        let version =
            |name: &str| name.rsplit_once('@').and_then(|(_, number)| number.parse::<u64>().ok());
        let (_, definition) = definitions
            .iter()
            .filter(|(name, _)| named(name))
            .max_by_key(|(name, _)| version(name))?;
        Contract::compile(definition.clone()).ok().map(Arc::new)
    })
}

/// What all attempts of a run share: where they work, which programs are assigned to agents, and
/// what has to be known across attempts.
pub struct WorkerContext {
    run: String,
    repo: PathBuf,
    state: PathBuf,
    agents: Cast,
    contracts: Arc<Contracts>,
    workspaces: Arc<Workspaces>,
    snapshots: Arc<Trees>,
    /// Files of the workflow that lie in the repository: agents must not change them.
    workflow_files: Vec<String>,
    /// Files that the engine writes itself. They do not count as changes of the work tree.
    published: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Held while a commit is made.
    committing: Arc<tokio::sync::Mutex<()>>,
    active: Arc<ActiveFolders>,
}

/// One attempt to perform.
#[derive(Clone, Debug)]
pub struct PerformRequest {
    /// What to do, as `turn` returned it.
    pub start: AttemptRequest,
    /// What is left of the run's budget.
    pub budget_left: Budget,
}

impl WorkerContext {
    /// The context of a run: its id, the repository it works in, the state folder, the programs
    /// assigned to its agents, and its contracts.
    pub fn new(
        run: &str,
        repo: &Path,
        state: &Path,
        agents: Cast,
        contracts: Arc<Contracts>,
        workspaces: Arc<Workspaces>,
    ) -> Self {
        Self {
            run: run.to_owned(),
            repo: repo.to_owned(),
            state: state.to_owned(),
            agents,
            contracts,
            workspaces,
            snapshots: Arc::default(),
            workflow_files: Vec::new(),
            published: Arc::default(),
            committing: Arc::default(),
            active: Arc::default(),
        }
    }

    /// Protects the files of the workflow itself that lie in the repository.
    #[must_use]
    pub fn with_workflow_files(mut self, files: Vec<String>) -> Self {
        self.workflow_files = files;
        self
    }

    /// The programs assigned to the run's agents.
    pub fn agents(&self) -> &Cast {
        &self.agents
    }

    /// The folder that work is done in: the repository, or a workspace of its own.
    pub fn folder(&self, workspace: Option<&str>) -> PathBuf {
        match workspace {
            Some(id) => self.workspaces.folder(&self.run, id),
            None => self.repo.clone(),
        }
    }

    /// Marks files as written by the engine itself.
    pub fn add_published(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
    }

    /// Which of some files are missing, as a fact for the run.
    pub fn check_files(&self, check: &FileCheck) -> Event {
        let folder = self.folder(check.workspace.as_deref());
        let missing =
            check.paths.iter().filter(|path| !folder.join(path).exists()).cloned().collect();
        Event::ContextChecked { frame: check.frame.clone(), missing }
    }

    /// Opens, merges or discards a workspace; what came of it is a fact for the run. The operation
    /// may be one that was performed before, partly or as a whole. It blocks.
    pub fn workspace_op(&self, op: &WorkspaceOp) -> Event {
        let published = self.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
        errands::run(&self.workspaces, &self.run, op, &published)
    }

    /// Where an attempt keeps files that are not part of its work.
    fn scratch(&self, attempt: &str) -> PathBuf {
        let state = std::path::absolute(&self.state).unwrap_or_else(|_| self.state.clone());
        state.join(SCRATCH).join(&self.run).join(attempt.replace(['/', '\0'], "-"))
    }

    /// The verifier of an agent's attempt.
    fn verifier(
        &self,
        work: &AgentWork,
        marker: &str,
        folder: &Path,
        handle: &Arc<dyn Handle>,
        guard: &FolderGuard,
    ) -> Result<Box<dyn Witness>, String> {
        let rules = WriteRules::new(work.writes.as_deref(), &work.protect, &self.workflow_files)
            .map_err(|error| error.to_string())?;
        let shared = work.workspace.is_none();
        let (others, handle_of) = (guard.observer(), handle.clone());
        let scene = Scene {
            folder: folder.to_owned(),
            state: self.state.clone(),
            marker: marker.to_owned(),
            contract: work.contract.clone(),
            claims: work.claims.clone(),
            rules,
            protection: work.protected,
            tests: work.tests,
            published: self.published.clone(),
            contracts: self.contracts.clone(),
            company: Box::new(move |since| {
                if !shared {
                    return None;
                }
                others().or_else(|| handle_of.concurrent_writer(since))
            }),
            stop: handle.stop(),
        };
        Ok(Box::new(Examiner::new(scene, self.snapshots.clone())))
    }
}

/// Performs an attempt to its end: an agent session, a command, or a step that the engine runs
/// itself. What it needs of its driver it asks of the handle.
pub async fn perform(
    request: PerformRequest,
    context: Arc<WorkerContext>,
    handle: Arc<dyn Handle>,
) -> Completed {
    let PerformRequest { start, budget_left } = request;
    let AttemptRequest { attempt: id, work, .. } = start;
    let marker = format!("{}/{id}", context.run);
    let folder = context.folder(work.workspace());
    match work {
        AttemptWork::Command(work) => shell::run(id, marker, *work, folder, handle).await,
        AttemptWork::Read(work) => {
            deed::look(id, handle, move || deed::read::read(&folder, &work)).await
        }
        AttemptWork::Changes(work) => {
            let state = context.state.clone();
            deed::look(id, handle, move || deed::changes::look(&folder, &state, &work)).await
        }
        AttemptWork::Commit(work) => {
            let state = context.state.clone();
            let place = deed::commit::Place { folder, state, turn: context.committing.clone() };
            deed::commit::commit(id, marker, *work, place, handle).await
        }
        AttemptWork::Agent(work) => {
            let Some(agent) = context.agents.get(&work.agent) else {
                let reason = format!("no program is assigned to agent '{}'", work.agent);
                return Completed::failed(&id, reason);
            };
            let guard = context.active.enter(&id, &folder);
            let mut verifier = None;
            if agent.changes_files() || !work.claims.is_empty() {
                match context.verifier(&work, &marker, &folder, &handle, &guard) {
                    Ok(one) => verifier = Some(one),
                    Err(why) => return Completed::failed(&id, why),
                }
            }
            let request = AgentRequest {
                scratch: context.scratch(&id),
                attempt: id,
                marker,
                work: *work,
                cwd: folder,
                left: budget_left,
            };
            let done = attempt(request, agent, handle, verifier).await;
            drop(guard);
            done
        }
    }
}
