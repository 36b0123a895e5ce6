//! Observes a workspace: which files changed since the attempt began, which protected files were
//! written, and which tests were removed. All of it blocks, so it runs on a blocking thread.

use super::{AttemptScope, backup};
use crate::run_start::{config_at, config_files};
use counterfoil_contract::claim::ClaimKind;
use counterfoil_contract::text::display_path;
use counterfoil_flow::ChangedFiles;
use counterfoil_verify::claims::{CommitsBefore, Refs, VerifyConfig, WorkspaceView};
use counterfoil_verify::config::NOISE;
use counterfoil_verify::inventory::TestDelta;
use counterfoil_verify::protect::ForbiddenChange;
use counterfoil_verify::workspace_diff::{WorkspaceDiff, put_forward};
use counterfoil_workspace::git::programs;
use counterfoil_workspace::snapshot::{Change, Settings, Snapshot, Snapshotter, StartFiles};
use counterfoil_workspace::workspaces::{StepChanges, Workspaces, readable_name};
use counterfoil_workspace::{Durability, save_json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The maximum length of each list of paths in the journal.
const MAX_LISTED: usize = 10_000;

/// The folder of a workspace, and what does not count as a change of it.
#[derive(Clone)]
pub(crate) struct WorkFolder {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The state folder: the engine's own files, stored file contents, outcomes of checks.
    pub(crate) state: PathBuf,
    /// The folder that keeps the state of workspaces at their first look, for this run.
    pub(crate) baselines: PathBuf,
    /// The files that the engine writes itself.
    pub(crate) published: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl WorkFolder {
    /// The files that keep the state of the workspace at its first look. The ignore rules are those
    /// of the start of the run, in every workspace.
    fn start_files(&self) -> StartFiles {
        let folder = self.folder.to_string_lossy();
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        StartFiles {
            first_look: self.baselines.join("first-looks").join(readable_name(&name, &[&folder])),
            ignore_rules: self.baselines.join("ignore-rules"),
        }
    }

    /// Whether it is known what the workspace was at its first look.
    pub(crate) fn has_first_look(&self) -> bool {
        self.start_files().first_look.exists()
    }

    fn settings(&self) -> Settings {
        Settings {
            excluded: [self.state.clone()].into(),
            content_store: Some(self.state.join("contents")),
            unreported: Vec::new(),
            start_files: Some(self.start_files()),
        }
    }

    /// Takes snapshots with the files that the engine writes itself. They are compared with what the
    /// folder was at its first look if an agent has worked since, else with what it is now.
    pub(crate) fn complete_view(&self, agent_has_worked: bool) -> Snapshotter {
        let mut settings = self.settings();
        if !agent_has_worked {
            settings.start_files = None;
        }
        let mut tree = Snapshotter::open(&self.folder, settings);
        put_files_forward(&mut tree, self);
        tree
    }

    /// The file that keeps which files are put back to the start of the run while a check runs.
    pub(crate) fn put_back_file(&self) -> PathBuf {
        let folder = self.folder.to_string_lossy();
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        self.baselines.join("put-back").join(readable_name(&name, &[&folder]))
    }

    /// The files that the engine has written itself so far.
    pub(crate) fn published(&self) -> BTreeSet<PathBuf> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A process may have been killed while it ran a check with files from the start of the run.
fn put_files_forward(tree: &mut Snapshotter, scope: &WorkFolder) {
    for (path, why) in put_forward(tree, &scope.put_back_file()) {
        tracing::warn!(path = %display_path(&path), why, "a file is as when the run began");
    }
}

/// The snapshotters of a run, by folder. They are reused because each caches the hashes of files.
#[derive(Default)]
pub(crate) struct SnapshotterPool {
    idle: Mutex<BTreeMap<PathBuf, Snapshotter>>,
}

impl SnapshotterPool {
    pub(crate) fn take(&self, scope: &WorkFolder) -> Snapshotter {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(&scope.folder);
        let mut tree = idle.unwrap_or_else(|| {
            let open = |noise: &[&str]| {
                let unreported = noise.iter().map(|&glob| glob.to_owned()).collect();
                let settings = Settings { unreported, ..scope.settings() };
                Snapshotter::open(&scope.folder, settings)
            };
            let tree = open(&[]);
            // Without git there are no ignore rules: well-known build folders are ignored instead.
            if tree.is_git() { tree } else { open(&NOISE) }
        });
        for ours in scope.published() {
            tree.exclude(ours);
        }
        put_files_forward(&mut tree, scope);
        tree
    }

    pub(crate) fn give_back(&self, folder: &Path, tree: Snapshotter) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned(), tree);
    }
}

/// A workspace under observation.
pub(super) struct WorkspaceObservation {
    pub(super) observed: WorkspaceDiff,
    began: SystemTime,
    /// The workspace when this attempt began, if the step had attempts before.
    start: Option<Snapshot>,
    pub(super) delta: TestDelta,
    /// The protected files that were written since the attempt began.
    pub(super) breaches: Vec<ForbiddenChange>,
    /// Those that the last observation found: new ones, and files that could not be restored
    /// before.
    pub(super) fresh: Vec<ForbiddenChange>,
    /// Those that were changed while the checks of the result ran.
    pub(super) by_checks: Vec<PathBuf>,
    pub(super) restored: Vec<PathBuf>,
    pub(super) unrestored: Vec<(PathBuf, String)>,
    /// Whether files were backed up before they were restored.
    pub(super) has_backup: bool,
    /// Describes who else wrote in the workspace.
    pub(super) concurrent_writer: Option<String>,
    /// What else is to be said about the changes.
    pub(super) notes: Vec<String>,
    /// The configuration before the attempt, so that the attempt cannot redefine its checks.
    pub(super) config: Result<VerifyConfig, String>,
    /// The commits from before the step.
    pub(super) commits_before: CommitsBefore,
}

impl WorkspaceObservation {
    /// Takes the first snapshot, before the attempt begins. A later attempt of the same step is
    /// compared with the snapshot before the first one: what that one did counts as well.
    pub(super) fn begin(snapshotters: &SnapshotterPool, scope: &AttemptScope) -> Self {
        let mut tree = snapshotters.take(&scope.folder);
        for place in scope.rules.protected_places() {
            tree.watch(&place);
        }
        let file = scope.baseline();
        let saved = if scope.is_first() { None } else { tree.load(&file) };
        if let Some(before) = saved {
            let mut observation = Self::since(tree, before, scope);
            observation.commits_before = saved_refs(scope);
            // The checks are those from before the step: a change of them is undone first.
            observation.update(scope);
            observation.start = observation.observed.last_snapshot();
            observation.load_config(scope);
            return observation;
        }
        let before = tree.snapshot();
        let saved = before.save(&file);
        let mut observation = Self::since(tree, before, scope);
        observation.commits_before = refs_now(scope);
        if let Err(error) = saved {
            let note = format!("the state before the step cannot be kept for a retry: {error}");
            observation.notes.push(note);
        }
        if !scope.is_first() {
            observation.notes.push(
                "the state before the first attempt is not known; changes are those of this attempt"
                    .to_owned(),
            );
        }
        observation.load_config(scope);
        observation
    }

    fn load_config(&mut self, scope: &AttemptScope) {
        let ignored = self.observed.ignored(&config_files(self.observed.snapshotter()));
        let start = scope.run_start.get();
        let config = config_at(start.as_ref(), self.observed.snapshotter(), &ignored);
        self.config = config.map_err(|error| error.to_string());
    }

    /// An observation of the changes since a snapshot.
    fn since(tree: Snapshotter, before: Snapshot, scope: &AttemptScope) -> Self {
        let began = before.taken;
        let observed = WorkspaceDiff::new(tree, before, Some(began))
            .with_run_start(scope.run_start.get(), scope.folder.put_back_file());
        Self {
            config: Ok(VerifyConfig::default()),
            commits_before: CommitsBefore::Unknown(String::new()),
            observed,
            notes: Vec::new(),
            began,
            start: None,
            delta: TestDelta::default(),
            breaches: Vec::new(),
            fresh: Vec::new(),
            by_checks: Vec::new(),
            restored: Vec::new(),
            unrestored: Vec::new(),
            has_backup: false,
            concurrent_writer: None,
        }
    }

    /// Observes the workspace again, and restores protected files.
    pub(super) fn update(&mut self, scope: &AttemptScope) {
        self.observed.refresh();
        self.concurrent_writer = (scope.concurrent_writer)(self.began);
        self.fresh = scope.rules.violations(self.observed.last_changes());
        if self.concurrent_writer.is_some() {
            // It may be the work of the other writer, so it is reported only once.
            let known: HashSet<&PathBuf> =
                self.breaches.iter().map(|breach| &breach.path).collect();
            self.fresh.retain(|breach| {
                !known.contains(&breach.path) || self.restored.contains(&breach.path)
            });
        }
        if !self.fresh.is_empty() {
            self.restore_protected(scope);
            self.observed.refresh();
        }
        self.delta = self.observed.test_delta();
    }

    /// The step is done: the steps that follow are judged by the files that it was to change.
    pub(super) fn move_start(&mut self, scope: &AttemptScope) {
        let Some(now) = self.observed.last_snapshot() else { return };
        let changed = self.observed.last_changes().files.keys();
        let named: Vec<PathBuf> = changed.filter(|path| scope.rules.names(path)).cloned().collect();
        scope.run_start.move_files(self.observed.snapshotter(), &now, &named);
    }

    /// Records the changes since this attempt began, so that they can be shown and undone. What was
    /// written before is recorded by an attempt before; after a crash, it may be a person's work.
    /// Changes in a worktree are recorded when it is merged; those of several writers belong to nobody
    /// alone.
    pub(super) fn record_changes(&mut self, scope: &AttemptScope) {
        if scope.main.is_some() || self.concurrent_writer.is_some() {
            return;
        }
        let tree = self.observed.snapshotter();
        let since_start = match (&self.start, self.observed.last_snapshot()) {
            (Some(start), Some(now)) => Some(tree.changes(start, &now)),
            _ => None,
        };
        let before = self.start.as_ref().unwrap_or_else(|| self.observed.before());
        let changed = &since_start.as_ref().unwrap_or_else(|| self.observed.last_changes()).files;
        let files: Vec<PathBuf> = changed.keys().filter_map(|path| tree.from_top(path)).collect();
        if files.is_empty() {
            return;
        }
        let (run, attempt) = scope.run_and_attempt();
        let top = self.observed.top();
        let created = changed.iter().filter(|(_, change)| **change == Change::Added);
        let created: Vec<PathBuf> = created.filter_map(|(path, _)| tree.from_top(path)).collect();
        let read = |paths: &[&Path]| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| top.join(path)).collect();
            let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
            tree.files_at(before, &paths)
        };
        let existed = folders_before(tree, before, &created);
        let changes = StepChanges { top, files, before: &read, existed };
        let workspaces = Workspaces::new(&scope.folder.state, &scope.folder.folder);
        if let Err(error) = workspaces.record_step(run, attempt, &changes) {
            self.notes.push(format!("the changes of this attempt cannot be undone: {error}"));
        }
    }

    /// Observes the workspace again after checks ran: what they run may have been written by the
    /// agent.
    pub(super) fn update_after_checks(&mut self, scope: &AttemptScope) {
        let mut all = std::mem::take(&mut self.fresh);
        self.update(scope);
        let known: HashSet<&PathBuf> = all.iter().map(|breach| &breach.path).collect();
        self.fresh.retain(|breach| !known.contains(&breach.path));
        self.by_checks = self.fresh.iter().map(|breach| breach.path.clone()).collect();
        all.append(&mut self.fresh);
        self.fresh = all;
    }

    /// Restores protected files. Their current content is backed up first: it may be somebody's
    /// work.
    fn restore_protected(&mut self, scope: &AttemptScope) {
        let paths: Vec<PathBuf> = self.fresh.iter().map(|breach| breach.path.clone()).collect();
        let again: HashSet<&PathBuf> = paths.iter().collect();
        // Files that could not be restored are tried again. Files that were restored have been
        // written again.
        self.breaches.retain(|breach| !again.contains(&breach.path));
        self.restored.retain(|path| !again.contains(path));
        self.unrestored.retain(|(path, _)| !again.contains(path));
        self.breaches.extend(self.fresh.iter().cloned());
        if let Some(concurrent_writer) = &self.concurrent_writer {
            // It may be the work of the other writer, so it is not undone.
            let why = format!("left as it is, since {concurrent_writer}");
            self.unrestored.extend(paths.into_iter().map(|path| (path, why.clone())));
            return;
        }
        let mut safe = Vec::new();
        for (path, backed_up) in
            backup::back_up(self.observed.snapshotter(), &scope.backup_folder(), paths)
        {
            match backed_up {
                Ok(existed) => {
                    self.has_backup |= existed;
                    safe.push(path);
                }
                Err(error) => {
                    let why = format!("its current content could not be backed up: {error}");
                    self.unrestored.push((path, why));
                }
            }
        }
        let failed = self.observed.restore(&safe);
        let lost: HashSet<&PathBuf> = failed.iter().map(|(path, _)| path).collect();
        self.restored.extend(safe.into_iter().filter(|path| !lost.contains(path)));
        self.unrestored.extend(failed);
    }

    /// The changed files, as the journal records them.
    pub(super) fn changed(&self) -> ChangedFiles {
        let changes = self.observed.last_changes();
        let moved: HashSet<&PathBuf> =
            changes.renamed.iter().flat_map(|(from, to)| [from, to]).collect();
        let paths = |wanted: Change| -> Vec<String> {
            let these = changes
                .files
                .iter()
                .filter(|(path, change)| **change == wanted && !moved.contains(path));
            these.map(|(path, _)| path_text(path)).take(MAX_LISTED).collect()
        };
        let renamed = changes.renamed.iter().map(|(from, to)| (path_text(from), path_text(to)));
        ChangedFiles {
            added: paths(Change::Added),
            modified: paths(Change::Modified),
            deleted: paths(Change::Deleted),
            renamed: renamed.take(MAX_LISTED).collect(),
            // A renamed file is listed under both names.
            total: changes.files.len().saturating_sub(changes.renamed.len()) as u64,
            notes: changes
                .notes
                .iter()
                .chain(&self.notes)
                .chain(&self.concurrent_writer)
                .cloned()
                .collect(),
        }
    }

    /// Returns the snapshotter to the pool.
    pub(super) fn end(self, scope: &AttemptScope, snapshotters: &SnapshotterPool) {
        snapshotters.give_back(&scope.folder.folder, self.observed.into_snapshotter());
    }
}

/// Reads the refs, and keeps them for later attempts of the step. It is left out where no claim needs
/// them.
fn refs_now(scope: &AttemptScope) -> CommitsBefore {
    if !scope.claims.iter().any(|claim| claim.claim.kind == ClaimKind::Commit) {
        return CommitsBefore::Unknown(String::new());
    }
    match Refs::read(&scope.folder.folder) {
        Ok(refs) => {
            if refs.is_none() && programs::had_repository(&scope.folder.folder) {
                // It may come back with commits from before.
                let why = "there was no repository any more before the step";
                return CommitsBefore::Unknown(why.to_owned());
            }
            // Where there has been none since the run began, no commit existed.
            let none = || Refs { unreached: Some(BTreeSet::new()), ..Refs::default() };
            let refs = refs.unwrap_or_else(none);
            if let Err(error) = save_json(&scope.refs_file(), Durability::Unsynced, &refs) {
                tracing::warn!(%error, "the refs before the step cannot be kept for a retry");
            }
            CommitsBefore::Refs(refs)
        }
        Err(error) => CommitsBefore::Unknown(error.to_string()),
    }
}

/// The refs that were kept by the first attempt of the step.
fn saved_refs(scope: &AttemptScope) -> CommitsBefore {
    let read = std::fs::read(scope.refs_file()).map_err(|error| error.to_string());
    match read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())) {
        Ok(refs) => CommitsBefore::Refs(refs),
        Err(why) => CommitsBefore::Unknown(format!("the refs before the step are lost ({why})")),
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The folders around files that were created which were there before.
fn folders_before(tree: &Snapshotter, before: &Snapshot, created: &[PathBuf]) -> BTreeSet<PathBuf> {
    let around: HashSet<&Path> = created
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect();
    if around.is_empty() {
        return BTreeSet::new();
    }
    let known = tree.files_in(before, tree.top());
    let folders = known.iter().flat_map(|path| path.ancestors().skip(1));
    folders.filter(|folder| around.contains(folder)).map(Path::to_owned).collect()
}
