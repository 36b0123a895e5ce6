//! Looking at a workspace: what changed since the attempt began, what may not have, which tests are
//! gone. All of it blocks, so it runs on a thread for that.

use super::{Scene, aside};
use counterfoil_flow::ChangedFiles;
use counterfoil_verify::claims::VerifyConfig;
use counterfoil_verify::config::NOISE;
use counterfoil_verify::inventory::TestDelta;
use counterfoil_verify::protect::ForbiddenChange;
use counterfoil_verify::workspace_diff::WorkspaceDiff;
use counterfoil_workspace::snapshot::{Change, Settings, Snapshotter};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Of each list so many paths stand in the journal.
const MOST_LISTED: usize = 10_000;

/// The trees that a run looks at again and again: each remembers what it has hashed.
#[derive(Default)]
pub(crate) struct Trees {
    idle: Mutex<BTreeMap<PathBuf, Snapshotter>>,
}

impl Trees {
    fn take(&self, scene: &Scene) -> Snapshotter {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(&scene.folder);
        let mut tree = idle.unwrap_or_else(|| {
            let open = |noise: &[&str]| {
                let settings = Settings {
                    excluded: [scene.state.clone()].into(),
                    content_store: Some(scene.state.join("contents")),
                    unreported: noise.iter().map(|&glob| glob.to_owned()).collect(),
                };
                Snapshotter::open(&scene.folder, settings)
            };
            let tree = open(&[]);
            // Where git does not say what is a product of the work and what is the work, habit
            // does.
            if tree.is_git() { tree } else { open(&NOISE) }
        });
        for ours in scene.published.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            tree.exclude(ours.clone());
        }
        tree
    }

    fn give_back(&self, folder: &Path, tree: Snapshotter) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned(), tree);
    }
}

/// A workspace that is being looked at.
pub(super) struct Look {
    pub(super) observed: WorkspaceDiff,
    began: SystemTime,
    pub(super) delta: TestDelta,
    /// What was written that may not be, since the attempt began.
    pub(super) breaches: Vec<ForbiddenChange>,
    /// Of those, the ones that the last look found: new ones, and what could not be put back
    /// before.
    pub(super) fresh: Vec<ForbiddenChange>,
    pub(super) restored: Vec<PathBuf>,
    pub(super) unrestored: Vec<(PathBuf, String)>,
    /// Whether something stood there that was set aside.
    pub(super) set_aside: bool,
    /// Who else was at work here, in words.
    pub(super) company: Option<String>,
    /// The checks as they were defined before the attempt: it may not redefine them.
    pub(super) config: Result<VerifyConfig, String>,
}

impl Look {
    /// The first look, before anything happens.
    pub(super) fn first(trees: &Trees, scene: &Scene) -> Self {
        let mut tree = trees.take(scene);
        let before = tree.snapshot();
        let began = before.taken;
        Self {
            config: VerifyConfig::load(tree.folder(), tree.top())
                .map_err(|error| error.to_string()),
            observed: WorkspaceDiff::new(tree, before, Some(began)),
            began,
            delta: TestDelta::default(),
            breaches: Vec::new(),
            fresh: Vec::new(),
            restored: Vec::new(),
            unrestored: Vec::new(),
            set_aside: false,
            company: None,
        }
    }

    /// Looks again, and puts back what may not be changed.
    pub(super) fn again(&mut self, scene: &Scene) {
        self.observed.refresh();
        self.company = (scene.company)(self.began);
        self.fresh = scene.rules.violations(self.observed.last_changes());
        if self.company.is_some() {
            // It may be the other's work: that is said once.
            let known: HashSet<&PathBuf> =
                self.breaches.iter().map(|breach| &breach.path).collect();
            self.fresh.retain(|breach| {
                !known.contains(&breach.path) || self.restored.contains(&breach.path)
            });
        }
        if !self.fresh.is_empty() {
            self.put_back(scene);
            self.observed.refresh();
        }
        self.delta = self.observed.test_delta();
    }

    /// Puts back what may not be changed. What stood there is set aside first: it may be somebody's
    /// work.
    fn put_back(&mut self, scene: &Scene) {
        let paths: Vec<PathBuf> = self.fresh.iter().map(|breach| breach.path.clone()).collect();
        let again: HashSet<&PathBuf> = paths.iter().collect();
        // What could not be put back before is tried again, and what was put back was written
        // again.
        self.breaches.retain(|breach| !again.contains(&breach.path));
        self.restored.retain(|path| !again.contains(path));
        self.unrestored.retain(|(path, _)| !again.contains(path));
        self.breaches.extend(self.fresh.iter().cloned());
        if let Some(company) = &self.company {
            // It may be the other's work, which is not ours to undo.
            let why = format!("left as it is, since {company}");
            self.unrestored.extend(paths.into_iter().map(|path| (path, why.clone())));
            return;
        }
        let mut safe = Vec::new();
        for (path, set) in aside::set_aside(self.observed.snapshotter(), &scene.set_aside(), paths)
        {
            match set {
                Ok(stood) => {
                    self.set_aside |= stood;
                    safe.push(path);
                }
                Err(error) => {
                    let why = format!("what stands there could not be set aside: {error}");
                    self.unrestored.push((path, why));
                }
            }
        }
        let failed = self.observed.restore(&safe);
        let lost: HashSet<&PathBuf> = failed.iter().map(|(path, _)| path).collect();
        self.restored.extend(safe.into_iter().filter(|path| !lost.contains(path)));
        self.unrestored.extend(failed);
    }

    /// What changed, as it stands in the journal.
    pub(super) fn changed(&self) -> ChangedFiles {
        let changes = self.observed.last_changes();
        let moved: HashSet<&PathBuf> =
            changes.renamed.iter().flat_map(|(from, to)| [from, to]).collect();
        let of = |wanted: Change| -> Vec<String> {
            let these = changes
                .files
                .iter()
                .filter(|(path, change)| **change == wanted && !moved.contains(path));
            these.map(|(path, _)| shown(path)).take(MOST_LISTED).collect()
        };
        let renamed = changes.renamed.iter().map(|(from, to)| (shown(from), shown(to)));
        ChangedFiles {
            added: of(Change::Added),
            modified: of(Change::Modified),
            deleted: of(Change::Deleted),
            renamed: renamed.take(MOST_LISTED).collect(),
            // A file that was renamed is one, and stands there twice.
            total: changes.files.len().saturating_sub(changes.renamed.len()) as u64,
            notes: changes.notes.iter().chain(&self.company).cloned().collect(),
        }
    }

    pub(super) fn end(self, scene: &Scene, trees: &Trees) {
        trees.give_back(&scene.folder, self.observed.into_snapshotter());
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
