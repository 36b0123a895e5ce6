//! Performs one attempt of any kind. A driver passes the request that `turn` returned and records
//! the result.

use crate::active_folders::{ActiveFolders, FolderGuard};
use crate::agent_attempt::{self, AttemptInput, Verifier};
use crate::attempt::{AttemptContext, AttemptResult};
use crate::check_server::CheckServer;
use crate::checks::{self, CheckPlace};
use crate::contracts::ContractLookup;
use crate::output_files::{add_output_files, output_files};
use crate::run_start::RunStart;
use crate::slow_look::announce_if_slow;
use crate::verification::{
    AttemptScope, KnownWork, SnapshotterPool, WorkFolder, WorkspaceVerifier,
};
use crate::workspace_ops::{perform_workspace_op, workspace_op_failed};
use crate::{builtin, shell};
use counterfoil_agents::agent::Agent;
use counterfoil_agents::assignment::AgentAssignments;
use counterfoil_contract::Context;
use counterfoil_flow::{
    Access, AgentWork, AttemptRequest, AttemptWork, Budget, Event, FileCheck, WorkspaceOp,
    WorkspaceOpKind,
};
use counterfoil_process::contain::Launcher;
use counterfoil_verify::claims::CheckCache;
use counterfoil_verify::protect::WriteRules;
use counterfoil_workspace::git::SettingsCache;
use counterfoil_workspace::git::programs::{self, GitPrograms};
use counterfoil_workspace::workspaces::Workspaces;
use counterfoil_workspace::{Durability, save_json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder for temporary files of attempts, within the state folder.
pub const SCRATCH: &str = "scratch";

/// What all attempts of a run share: the folders, the programs assigned to agents, and what
/// attempts need to know of each other.
pub struct WorkerContext {
    run: String,
    workflow: Option<String>,
    repo: PathBuf,
    state: PathBuf,
    agents: AgentAssignments,
    contracts: Arc<ContractLookup>,
    workspaces: Arc<Workspaces>,
    snapshots: Arc<SnapshotterPool>,
    /// Files of the workflow that lie in the repository: agents must not change them.
    workflow_files: Vec<String>,
    /// Files that the engine writes itself. They do not count as changes of the work tree.
    published: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Locked while a commit is made.
    committing: Arc<tokio::sync::Mutex<()>>,
    active: Arc<ActiveFolders>,
    /// What is known of checks that were run.
    check_cache: Arc<CheckCache>,
    /// The repository when the run began.
    run_start: Arc<RunStart>,
    /// How many agents are at work.
    agents_at_work: AtomicUsize,
    git_settings: SettingsCache,
    /// What the engine itself changed.
    known_work: Arc<KnownWork>,
    /// How commands and checks are contained.
    launcher: Launcher,
}

/// One attempt to perform.
#[derive(Clone, Debug)]
pub struct PerformRequest {
    /// What to do, as `turn` returned it.
    pub start: AttemptRequest,
    /// The remaining budget of the run.
    pub budget_left: Budget,
}

impl WorkerContext {
    /// The context of a run: its id, the repository it works in, the state folder, the programs
    /// assigned to its agents, and its contracts.
    pub fn new(
        run: &str,
        repo: &Path,
        state: &Path,
        agents: AgentAssignments,
        contracts: Arc<ContractLookup>,
        workspaces: Arc<Workspaces>,
    ) -> Self {
        let run_start = crate::verification::baselines(state, run).join("run-start");
        Self {
            run: run.to_owned(),
            workflow: None,
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
            check_cache: Arc::default(),
            run_start: Arc::new(RunStart::new(run_start)),
            agents_at_work: AtomicUsize::new(0),
            git_settings: SettingsCache::default(),
            known_work: Arc::default(),
            launcher: Launcher::default(),
        }
    }

    /// Sets how commands and checks are contained. Agents have their own launcher.
    #[must_use]
    pub fn with_launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = launcher;
        self
    }

    /// Protects the files of the workflow itself that lie in the repository.
    #[must_use]
    pub fn with_workflow_files(mut self, files: Vec<String>) -> Self {
        self.workflow_files = files;
        self
    }

    /// Names the workflow, for contracts with fields that are filled in.
    #[must_use]
    pub fn with_workflow(mut self, name: &str) -> Self {
        self.workflow = Some(name.to_owned());
        self
    }

    /// What is known of an attempt before it begins.
    fn known(&self, start: &AttemptRequest) -> Context {
        // The path is a state, or a state, an item key and an inner state.
        let items: Vec<&str> = start.path.iter().skip(1).step_by(2).map(String::as_str).collect();
        Context {
            run: Some(self.run.clone()),
            workflow: self.workflow.clone(),
            step: Some(start.state.clone()),
            task: (!items.is_empty()).then(|| items.join("/")),
            attempt: Some(start.attempt.clone()),
            ..Context::default()
        }
    }

    /// The programs assigned to the run's agents.
    pub fn agents(&self) -> &AgentAssignments {
        &self.agents
    }

    /// The folder of a workspace; without one, the repository.
    pub fn folder(&self, workspace: Option<&str>) -> PathBuf {
        match workspace {
            Some(id) => self.workspaces.folder(&self.run, id),
            None => self.repo.clone(),
        }
    }

    /// Marks files as written by the engine itself, so that they do not count as changes.
    pub fn add_published(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
    }

    /// Marks the files that this process prints to, and those that earlier processes of the run
    /// printed to: a log in the repository is nobody's change.
    pub fn add_output_files(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        if let Err(error) = add_output_files(&self.state, &self.run, paths.iter().cloned()) {
            tracing::warn!(%error, "a process that resumes the run does not know of the log");
        }
        self.add_published(output_files(&self.state, &self.run).into_iter().chain(paths));
    }

    /// Checks which of some files are missing, reads how checks are configured, and returns the fact
    /// for the run.
    pub fn check_files(&self, check: &FileCheck) -> Event {
        let folder = self.folder(check.workspace.as_deref());
        let missing =
            check.paths.iter().filter(|path| !folder.join(path).exists()).cloned().collect();
        let checks = (!check.checks.is_empty()).then(|| {
            let place = self.work_folder(&folder);
            let mut tree = self.snapshots.take(&place);
            let start = self.run_start.get();
            let planned = checks::plan(start.as_ref(), &mut tree, Some(&check.checks));
            self.snapshots.give_back(&folder, tree);
            planned
        });
        Event::ContextChecked { frame: check.frame.clone(), missing, checks }
    }

    fn work_folder(&self, folder: &Path) -> WorkFolder {
        WorkFolder {
            folder: folder.to_owned(),
            state: self.state.clone(),
            baselines: crate::verification::baselines(&self.state, &self.run),
            published: self.published.clone(),
        }
    }

    /// Whether an agent has worked in this run, in this process or an earlier one.
    fn has_run_start(&self) -> bool {
        self.run_start.exists()
    }

    fn programs_file(&self) -> PathBuf {
        crate::verification::baselines(&self.state, &self.run).join("git-programs")
    }

    /// An agent begins to work: what git runs is not known again before it has ended.
    fn agent_begins(&self) {
        self.agents_at_work.fetch_add(1, Ordering::SeqCst);
        let _ = std::fs::remove_file(seen_programs(&self.programs_file()));
    }

    /// An agent has ended. Keeps what git runs if no other agent is at work. It blocks.
    fn agent_ended(&self) {
        if self.agents_at_work.fetch_sub(1, Ordering::SeqCst) == 1
            && let Ok(programs) = GitPrograms::read_changed(&self.repo, &self.git_settings)
        {
            save_programs(&seen_programs(&self.programs_file()), &programs);
        }
    }

    /// Looks at the repository as the run begins: before the first agent. It blocks.
    fn look_at_start(&self) {
        if self.run_start.get().is_none() {
            trust_programs(&self.repo, &self.programs_file());
            let mut tree = self.snapshots.take(&self.work_folder(&self.repo));
            self.run_start.look(&mut tree);
            self.snapshots.give_back(&self.repo, tree);
        }
    }

    /// Where the checks of an attempt run.
    fn check_place(&self, folder: &Path, marker: &str) -> CheckPlace {
        CheckPlace {
            cache: self.check_cache.clone(),
            run_start: self.run_start.get(),
            rules: None,
            folder: self.work_folder(folder),
            snapshotters: self.snapshots.clone(),
            contracts: self.contracts.clone(),
            marker: marker.to_owned(),
            launcher: self.launcher.clone(),
            restores: None,
        }
    }

    /// Starts to serve the project's checks to an agent that can call tools.
    async fn check_server(
        &self,
        agent: &dyn Agent,
        work: &AgentWork,
        scratch: &Path,
        mut place: CheckPlace,
        guard: &FolderGuard,
        context: &Arc<dyn AttemptContext>,
    ) -> Option<CheckServer> {
        if !agent.has_tools() {
            return None;
        }
        let (folder, pool) = (place.folder.clone(), self.snapshots.clone());
        let start = self.run_start.get();
        let read = tokio::task::spawn_blocking(move || {
            let mut tree = pool.take(&folder);
            let planned = checks::plan(start.as_ref(), &mut tree, None);
            pool.give_back(&folder.folder, tree);
            planned
        });
        let planned = read.await.ok().filter(|planned| !planned.checks.is_empty())?;
        if work.access == Access::ReadOnly {
            // Another attempt may write in the same folder.
            let others = guard.observer();
            place.restores = Some(Arc::new(move || others().is_none()));
        }
        match CheckServer::start(scratch, planned, place, context.clone()) {
            Ok(server) => Some(server),
            Err(error) => {
                tracing::warn!(%error, "the checks of the project cannot be offered to the agent");
                None
            }
        }
    }

    /// Opens, merges or discards a workspace and returns the fact for the run. It is safe to repeat
    /// an operation that was performed before, partly or completely. It blocks.
    pub fn workspace_op(&self, op: &WorkspaceOp) -> Event {
        if self.has_run_start() {
            // Git runs what it ran then, also in a process that resumes the run with this.
            self.look_at_start();
        }
        let published = self.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let perform = || perform_workspace_op(&self.workspaces, &self.run, op, &published);
        if op.kind != WorkspaceOpKind::Merge {
            return perform();
        }
        // What nobody verified is not merged.
        let worktree = self.work_folder(&self.folder(Some(&op.workspace)));
        if let Some(why) = self.known_work.changed_meanwhile(&worktree, &self.snapshots) {
            return workspace_op_failed(op, &why);
        }
        self.known_work.merging(&self.work_folder(&self.repo), &self.snapshots, perform)
    }

    /// Removes what was kept to verify the steps of the run. It is over for good.
    pub fn forget_baselines(&self) {
        let _ = std::fs::remove_dir_all(crate::verification::baselines(&self.state, &self.run));
    }

    /// The folder for temporary files of an attempt.
    fn scratch(&self, attempt: &str) -> PathBuf {
        scratch_folder(&self.state, &self.run, attempt)
    }

    /// Creates the verifier of an agent's attempt.
    fn verifier(
        &self,
        work: &AgentWork,
        (marker, first): (&str, String),
        folder: &Path,
        context: &Arc<dyn AttemptContext>,
        guard: &FolderGuard,
    ) -> Result<Box<dyn Verifier>, String> {
        let rules = WriteRules::new(work.writes.as_deref(), &work.protect, &self.workflow_files)
            .map_err(|error| error.to_string())?;
        let shared = work.workspace.is_none();
        let (others, context_of_writer) = (guard.observer(), context.clone());
        let scope = AttemptScope {
            folder: self.work_folder(folder),
            marker: marker.to_owned(),
            launcher: self.launcher.clone(),
            first,
            contract: work.contract.clone(),
            claims: work.claims.clone(),
            rules,
            protection: work.protected,
            tests: work.tests,
            contracts: self.contracts.clone(),
            concurrent_writer: Box::new(move |since| {
                if !shared {
                    return None;
                }
                others().or_else(|| context_of_writer.concurrent_writer(since))
            }),
            stop: context.stop(),
            cache: self.check_cache.clone(),
            run_start: self.run_start.clone(),
            main: work.workspace.as_ref().map(|_| self.work_folder(&self.repo)),
            known_work: self.known_work.clone(),
        };
        Ok(Box::new(WorkspaceVerifier::new(scope, self.snapshots.clone())))
    }
}

/// The folder for temporary files of an attempt, in the state folder.
pub fn scratch_folder(state: &Path, run: &str, attempt: &str) -> PathBuf {
    let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
    state.join(SCRATCH).join(run).join(attempt.replace(['/', '\0'], "-"))
}

/// Remembers what git of the repository runs when the run begins: nothing else of it is run later.
fn trust_programs(repo: &Path, file: &Path) {
    let read = |file: &Path| -> Option<GitPrograms> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    };
    let now = GitPrograms::read(repo).map_err(|error| error.to_string());
    let programs = match (read(file), read(&seen_programs(file)), now) {
        // A person may have changed something while no agent was at work.
        (Some(kept), Some(seen), Ok(now)) => Ok(kept.with_changes_since(&seen, &now)),
        (Some(kept), ..) => Ok(kept),
        (None, _, now) => now,
    };
    if let Ok(programs) = &programs {
        save_programs(file, programs);
    }
    programs::trust(repo, programs);
}

/// The file that keeps what git ran after the last agent.
fn seen_programs(file: &Path) -> PathBuf {
    file.with_extension("seen")
}

fn save_programs(file: &Path, programs: &GitPrograms) {
    if let Err(error) = save_json(file, Durability::Unsynced, programs) {
        tracing::warn!(%error, "the settings of git cannot be kept");
    }
}

/// Performs an attempt to its end: an agent session, a command, or a built-in step.
pub async fn perform(
    request: PerformRequest,
    worker: Arc<WorkerContext>,
    context: Arc<dyn AttemptContext>,
) -> AttemptResult {
    let PerformRequest { start, budget_left } = request;
    let known = worker.known(&start);
    let AttemptRequest { attempt: id, first, work, .. } = start;
    let marker = format!("{}/{id}", worker.run);
    let folder = worker.folder(work.workspace());
    // Commands of the workflow may set the project up before the first agent. After it, the start
    // counts for all work, also in a process that resumes the run with a check or a commit.
    if matches!(work, AttemptWork::Agent(_)) || worker.has_run_start() {
        let first = worker.clone();
        let looked = tokio::task::spawn_blocking(move || first.look_at_start());
        let notice = |line: &str| context.notice(line);
        let _ = announce_if_slow(looked, &worker.repo, &notice).await;
    }
    if !matches!(work, AttemptWork::Agent(_) | AttemptWork::Read(_) | AttemptWork::Changes(_)) {
        // A command or a check may change the worktree.
        worker.known_work.left(&folder, None);
    }
    if matches!(work, AttemptWork::Command(_)) {
        worker.check_cache.clear();
    }
    match work {
        AttemptWork::Command(work) => {
            let place = shell::CommandPlace { repo: folder, launcher: worker.launcher.clone() };
            shell::run(id, marker, *work, place, context).await
        }
        AttemptWork::Read(work) => {
            builtin::run_read_only(id, context, move || builtin::read::read(&folder, &work)).await
        }
        AttemptWork::Changes(work) => {
            let (place, agent_has_worked) = (worker.work_folder(&folder), worker.has_run_start());
            let read = move || builtin::changes::read(&place, agent_has_worked, &work);
            builtin::run_read_only(id, context, read).await
        }
        AttemptWork::Commit(work) => {
            let repo = builtin::commit::CommitRepo {
                place: worker.work_folder(&folder),
                agent_has_worked: worker.has_run_start(),
                lock: worker.committing.clone(),
            };
            builtin::commit::commit(id, marker, *work, repo, context).await
        }
        AttemptWork::Checks(work) => {
            let mut place = worker.check_place(&folder, &marker);
            let rules =
                WriteRules::new(work.writes.as_deref(), &work.protect, &worker.workflow_files);
            match rules {
                Ok(rules) => place.rules = Some(Arc::new(rules)),
                Err(error) => return AttemptResult::failed(&id, error.to_string()),
            }
            checks::run(id, *work, place, context).await
        }
        AttemptWork::Agent(work) => {
            let Some(agent) = worker.agents.get(&work.agent) else {
                let reason = format!("no program is assigned to agent '{}'", work.agent);
                return AttemptResult::failed(&id, reason);
            };
            worker.agent_begins();
            let guard = worker.active.enter(&id, &folder);
            let mut verifier = None;
            if agent.changes_files() || !work.claims.is_empty() {
                match worker.verifier(&work, (&marker, first), &folder, &context, &guard) {
                    Ok(one) => verifier = Some(one),
                    Err(why) => return AttemptResult::failed(&id, why),
                }
            }
            let scratch = worker.scratch(&id);
            let mut place = worker.check_place(&folder, &marker);
            // While the agent is at work, what a check finds is not kept for others: another process of the
            // agent can change files while it runs, and change them back.
            place.cache = Arc::new(worker.check_cache.copy());
            let rules =
                WriteRules::new(work.writes.as_deref(), &work.protect, &worker.workflow_files);
            match rules {
                Ok(rules) => place.rules = Some(Arc::new(rules)),
                Err(error) => return AttemptResult::failed(&id, error.to_string()),
            }
            let server =
                worker.check_server(&*agent, &work, &scratch, place, &guard, &context).await;
            let input = AttemptInput {
                scratch,
                checks: server.as_ref().map(CheckServer::service),
                attempt: id,
                marker,
                work: *work,
                cwd: folder,
                budget_left,
                known,
            };
            let result = agent_attempt::run(input, agent, context, verifier).await;
            if let Some(server) = server {
                server.close().await;
            }
            drop(guard);
            let ended = worker.clone();
            let _ = tokio::task::spawn_blocking(move || ended.agent_ended()).await;
            result
        }
    }
}
