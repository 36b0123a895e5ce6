//! Merges the work of a workspace into the repository.

use super::disk::{FileState, Root, copy_and_hash};
use super::metadata::{self, Content, EncodedPath, Kind, Record, Stage};
use super::plan::{Change, Direction, Image, Plan};
use super::save_patch::{find_differences, remove, write_patch};
use super::scratch_repo::Difference;
use super::three_way::{self, ConflictReason, MergeDecision, decide, is_binary};
use super::{
    Error, MergeOutcome, MergeRecordState, Step, WorkspacePaths, Workspaces, at, lock, relative_to,
};
use crate::git::GitCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger files are not merged as text.
const MAX_MERGE_SIZE: u64 = 32 << 20;

pub(super) fn merge_back(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
    is_by_product: &dyn Fn(&Path) -> bool,
) -> Result<MergeOutcome, Error> {
    let _lock = lock::exclusive(&workspaces.state)?;
    let paths = workspaces.paths(run, id);
    let Some(mut record) = paths.record()? else { return Err(paths.not_open()) };
    let name = match &record.stage {
        Stage::Opening | Stage::Discarded(_) => return Err(paths.not_open()),
        Stage::Merged(outcome) => {
            let outcome = outcome.clone();
            remove(workspaces, &paths, &record)?;
            return Ok(outcome);
        }
        Stage::Merging(name) => name.clone(),
        Stage::Open => {
            if !paths.worktree.is_dir() {
                return Err(Error::Lost { folder: paths.worktree });
            }
            match prepare(workspaces, &paths, &record, is_by_product)? {
                Prepared::Over(outcome) => return conclude(workspaces, &paths, record, outcome),
                Prepared::Plan(name) => {
                    record.stage = Stage::Merging(name.clone());
                    paths.write(&record)?;
                    workspaces.step(Step::Decided);
                    name
                }
            }
        }
    };
    let outcome = finish(workspaces, &paths, &record, &name)?;
    conclude(workspaces, &paths, record, outcome)
}

/// Records the outcome and removes the workspace.
fn conclude(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    mut record: Record,
    outcome: MergeOutcome,
) -> Result<MergeOutcome, Error> {
    record.stage = Stage::Merged(outcome.clone());
    paths.write(&record)?;
    workspaces.step(Step::Concluded);
    remove(workspaces, paths, &record)?;
    Ok(outcome)
}

enum Prepared {
    /// There is nothing to write, or there are conflicts.
    Over(MergeOutcome),
    /// The plan of this name is on disk.
    Plan(String),
}

/// A path to write, and how to write it.
struct Item<'a> {
    difference: &'a Difference,
    repository_state: FileState,
    decision: MergeDecision,
}

fn prepare(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
    is_by_product: &dyn Fn(&Path) -> bool,
) -> Result<Prepared, Error> {
    let (differences, mut notes) = find_differences(paths, record)?;
    notes.extend(note_moved_head(paths, record));
    let top = &record.top.0;
    let root = Root::open(top).map_err(at("open", top))?;
    let mut items = Vec::new();
    for difference in &differences {
        let path = top.join(&difference.path);
        let repository_state = root.state(&difference.path).map_err(at("read", &path))?;
        let base = difference.base.as_ref().map(|base| &base.content);
        let decision = decide(base, difference.workspace.as_ref(), repository_state.content());
        if decision != MergeDecision::Nothing {
            items.push(Item { difference, repository_state, decision });
        }
    }
    mark_blocked(top, &mut items)?;
    let mut conflicts: BTreeMap<PathBuf, ConflictReason> = BTreeMap::new();
    for item in &items {
        if let MergeDecision::Conflict(why) = item.decision {
            conflicts.insert(item.difference.path.clone(), why);
        }
    }
    workspaces.step(Step::Compared);
    if items.is_empty() {
        return Ok(Prepared::Over(MergeOutcome { notes, ..MergeOutcome::default() }));
    }
    // Text merges are tried even if there are conflicts, so that all conflicts are reported.
    let mut draft = Draft::begin(paths)?;
    for item in items.iter().filter(|item| !matches!(item.decision, MergeDecision::Conflict(_))) {
        if let Err(why) = draft.add(paths, record, &root, item)? {
            conflicts.insert(item.difference.path.clone(), why);
        }
    }
    for path in by_products(record, &conflicts, is_by_product)? {
        conflicts.remove(&path);
        let path = relative_to(&record.prefix.0, &path);
        notes.push(format!(
            "{path} was changed in both places; it is a by-product, so it stays as it is in the \
             repository"
        ));
    }
    if conflicts.is_empty() && draft.changes.is_empty() {
        draft.abandon()?;
        return Ok(Prepared::Over(MergeOutcome { notes, ..MergeOutcome::default() }));
    }
    if !conflicts.is_empty() {
        draft.abandon()?;
        let kept = write_patch(workspaces, paths, record, &differences)?;
        let outcome = MergeOutcome { kept: Some(kept), ..MergeOutcome::default() };
        return Ok(Prepared::Over(with_conflicts(outcome, &record.prefix.0, &conflicts, notes)));
    }
    draft.finish(workspaces, paths, record, notes).map(Prepared::Plan)
}

/// The by-products among the files that both sides changed, except for those that git tracks.
fn by_products(
    record: &Record,
    conflicts: &BTreeMap<PathBuf, ConflictReason>,
    is_by_product: &dyn Fn(&Path) -> bool,
) -> Result<BTreeSet<PathBuf>, Error> {
    let is_one = |path: &Path| is_by_product(path.strip_prefix(&record.prefix.0).unwrap_or(path));
    let mut found: BTreeSet<PathBuf> = conflicts
        .iter()
        .filter(|(path, why)| why.is_of_both_sides() && is_one(path))
        .map(|(path, _)| path.clone())
        .collect();
    if !found.is_empty() && record.repository.is_some() {
        let mut list = GitCommand::new(&record.top.0, ["ls-files", "-z", "--"]);
        for path in &found {
            list = list.arg(path);
        }
        let tracked = list.env("GIT_LITERAL_PATHSPECS", "1").run()?.stdout;
        for path in tracked.split(|byte| *byte == 0) {
            found.remove(Path::new(OsStr::from_bytes(path)));
        }
    }
    Ok(found)
}

/// Adds the conflicts and the reason for each.
fn with_conflicts(
    mut outcome: MergeOutcome,
    prefix: &Path,
    conflicts: &BTreeMap<PathBuf, ConflictReason>,
    notes: Vec<String>,
) -> MergeOutcome {
    let mut named: Vec<_> =
        conflicts.iter().map(|(path, why)| (relative_to(prefix, path), *why)).collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    outcome.notes.extend(named.iter().map(|(path, reason)| format!("{path} {}", reason.message())));
    outcome.notes.extend(notes);
    outcome.conflicts = named.into_iter().map(|(path, _)| path).collect();
    outcome
}

/// A note if an agent committed in the workspace: only the files are merged, not the commits.
fn note_moved_head(paths: &WorkspacePaths, record: &Record) -> Option<String> {
    let (common, began) = (record.repository.as_ref()?, record.head.as_ref()?);
    let entries = std::fs::read_dir(common.0.join("worktrees")).ok()?;
    let entry = entries.flatten().find(|entry| {
        super::save_patch::target(&entry.path())
            .is_some_and(|target| target.file_name() == paths.worktree.file_name())
    })?;
    let head = std::fs::read_to_string(entry.path().join("HEAD")).ok()?;
    match head.trim().strip_prefix("ref: ") {
        Some(branch) => Some(format!(
            "{branch} was checked out in the workspace; its files are merged, the branch is not changed"
        )),
        None if head.trim() == began => None,
        None => Some(format!(
            "{} was committed in the workspace; its files are merged, the commit is not",
            head.trim()
        )),
    }
}

/// Turns changes that cannot be written at their path into conflicts.
fn mark_blocked(top: &Path, items: &mut [Item<'_>]) -> Result<(), Error> {
    let deleted: BTreeSet<PathBuf> = items
        .iter()
        .filter(|item| item.decision == MergeDecision::Take && item.difference.workspace.is_none())
        .map(|item| item.difference.path.clone())
        .collect();
    for item in items.iter_mut() {
        if item.difference.workspace.is_none() {
            continue;
        }
        let obstacle = match &item.repository_state {
            FileState::Nothing | FileState::Content(_) => None,
            FileState::Special => Some(ConflictReason::Special),
            FileState::BelowFile(file) => {
                (!deleted.contains(file)).then_some(ConflictReason::FolderInTheWay)
            }
            FileState::BehindLink(link) => {
                (!deleted.contains(link)).then_some(ConflictReason::BehindLink)
            }
            FileState::Folder => (!is_emptied(top, &item.difference.path, &deleted)?)
                .then_some(ConflictReason::FolderInTheWay),
        };
        if let Some(why) = obstacle {
            item.decision = MergeDecision::Conflict(why);
        }
    }
    Ok(())
}

/// Whether a folder is empty once these files are deleted.
fn is_emptied(top: &Path, folder: &Path, deleted: &BTreeSet<PathBuf>) -> Result<bool, Error> {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let full = top.join(&folder);
        let mut is_empty = true;
        for entry in std::fs::read_dir(&full).map_err(at("read", &full))? {
            let entry = entry.map_err(at("read", &full))?;
            is_empty = false;
            let path = folder.join(entry.file_name());
            if entry.file_type().map_err(at("read", &full))?.is_dir() {
                open.push(path);
            } else if !deleted.contains(&path) {
                return Ok(false);
            }
        }
        if is_empty {
            // An empty folder that already existed is not ours to remove.
            return Ok(false);
        }
    }
    Ok(true)
}

/// A plan being built: file contents are written to disk, nothing is written to the repository.
struct Draft {
    name: String,
    folder: PathBuf,
    before: Images,
    after: Images,
    changes: Vec<Change>,
}

/// The contents of many files, concatenated in one file.
struct Images {
    path: PathBuf,
    file: BufWriter<File>,
    end: u64,
}

impl Images {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let file = File::create(&path).map_err(at("create", &path))?;
        Ok(Self { path, file: BufWriter::new(file), end: 0 })
    }

    fn add(&mut self, content: Content) -> Image {
        let offset = self.end;
        self.end += content.size;
        Image { content, offset }
    }

    fn sync(mut self) -> Result<(), Error> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .map_err(at("write", &self.path))
    }
}

impl Draft {
    /// Starts a plan. Plans that a crash left uncommitted are removed: the metadata does not refer
    /// to them.
    fn begin(paths: &WorkspacePaths) -> Result<Self, Error> {
        let mut n = 1;
        let (name, folder) = loop {
            let name = if n == 1 { paths.name.clone() } else { format!("{}.{n}", paths.name) };
            let folder = paths.undo.join(&name);
            match Plan::read(&folder)? {
                Some(plan) if plan.state != MergeRecordState::Begun => n += 1,
                _ => {
                    super::disk::clear(&folder).map_err(at("remove", &folder))?;
                    break (name, folder);
                }
            }
        };
        std::fs::create_dir_all(&folder).map_err(at("create", &folder))?;
        let before = Images::create(folder.join("before"))?;
        let after = Images::create(folder.join("after"))?;
        Ok(Self { name, folder, before, after, changes: Vec::new() })
    }

    /// Adds a path, or returns why it cannot be merged.
    fn add(
        &mut self,
        paths: &WorkspacePaths,
        record: &Record,
        root: &Root,
        item: &Item<'_>,
    ) -> Result<Result<(), ConflictReason>, Error> {
        let path = &item.difference.path;
        let full = record.top.0.join(path);
        let found = root.copy(path, &mut self.before.file).map_err(at("keep", &full))?;
        let before = found.content().cloned().map(|content| self.before.add(content));
        let is_still = match (item.repository_state.content(), &before) {
            (Some(repository_state), Some(before)) => repository_state.is(&before.content),
            (repository_state, before) => repository_state.is_none() && before.is_none(),
        };
        if !is_still {
            return Ok(Err(ConflictReason::ChangedDuringMerge));
        }
        let after = match (item.decision, &item.difference.workspace, &before) {
            (MergeDecision::Take, None, _) => None,
            (MergeDecision::Combine(bytes, kind), Some(_), Some(before)) => {
                let mode = with_kind(before.content.mode, kind);
                Some(match bytes {
                    three_way::ByteSource::Workspace => self.take(paths, path, kind, mode)?,
                    three_way::ByteSource::Repository => {
                        let found =
                            root.copy(path, &mut self.after.file).map_err(at("read", &full))?;
                        match found.content() {
                            Some(content) if content.is(&before.content) => {
                                self.after.add(Content { kind, mode, ..content.clone() })
                            }
                            _ => return Ok(Err(ConflictReason::ChangedDuringMerge)),
                        }
                    }
                    three_way::ByteSource::Merged => match merge(paths, record, root, item)? {
                        Ok(text) => {
                            let (hash, size) =
                                copy_and_hash(&mut text.as_slice(), &mut self.after.file)
                                    .map_err(at("write", &self.after.path))?;
                            self.after.add(Content { kind, hash, size, mode })
                        }
                        Err(why) => return Ok(Err(why)),
                    },
                })
            }
            (_, Some(workspace), before) => {
                let mode = match before {
                    Some(before) if before.content.kind != Kind::Link => {
                        with_kind(before.content.mode, workspace.kind)
                    }
                    _ => workspace.mode,
                };
                Some(self.take(paths, path, workspace.kind, mode)?)
            }
            (_, None, _) => None,
        };
        self.changes.push(Change { path: EncodedPath(path.clone()), before, after });
        Ok(Ok(()))
    }

    /// Adds the bytes of the workspace as they are now.
    fn take(
        &mut self,
        paths: &WorkspacePaths,
        path: &Path,
        kind: Kind,
        mode: u32,
    ) -> Result<Image, Error> {
        let full = paths.worktree.join(path);
        let from = Root::open(&paths.worktree).map_err(at("open", &paths.worktree))?;
        let found = from.copy(path, &mut self.after.file).map_err(at("read", &full))?;
        match found.content() {
            Some(content) if (content.kind == Kind::Link) == (kind == Kind::Link) => {
                Ok(self.after.add(Content { kind, mode, ..content.clone() }))
            }
            _ => Err(at("read", &full)(std::io::Error::other("it changed while it was read"))),
        }
    }

    fn abandon(self) -> Result<(), Error> {
        super::disk::clear(&self.folder).map_err(at("remove", &self.folder))
    }

    /// Writes the plan and returns its name.
    fn finish(
        self,
        workspaces: &Workspaces,
        paths: &WorkspacePaths,
        record: &Record,
        notes: Vec<String>,
    ) -> Result<String, Error> {
        self.before.sync()?;
        self.after.sync()?;
        workspaces.step(Step::Imaged);
        let top = &record.top.0;
        let (mut made, mut around) = (BTreeSet::new(), BTreeMap::new());
        for change in &self.changes {
            for folder in
                change.path.0.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty())
            {
                let meta = std::fs::symlink_metadata(top.join(folder))
                    .ok()
                    .filter(std::fs::Metadata::is_dir);
                match (meta, &change.after) {
                    (Some(meta), None) => {
                        around.insert(EncodedPath(folder.to_owned()), meta.mode() & 0o7777);
                    }
                    (None, Some(_)) => drop(made.insert(EncodedPath(folder.to_owned()))),
                    _ => {}
                }
            }
        }
        let plan = Plan {
            version: metadata::VERSION,
            run: record.run.clone(),
            id: record.id.clone(),
            order: next_order(paths)?,
            at: jiff::Timestamp::now().as_millisecond(),
            state: MergeRecordState::Begun,
            top: record.top.clone(),
            prefix: record.prefix.clone(),
            changes: self.changes,
            made,
            around,
            notes,
        };
        plan.write(&self.folder)?;
        if let Some(runs) = self.folder.parent() {
            File::open(runs).and_then(|folder| folder.sync_all()).map_err(at("write", runs))?;
        }
        workspaces.step(Step::Planned);
        Ok(self.name)
    }
}

/// The sequence number of the next merge of a run. Numbers may be skipped, but are never reused.
fn next_order(paths: &WorkspacePaths) -> Result<u64, Error> {
    let path = paths.undo.join("order.json");
    let order = metadata::read::<u64>(&path)?.unwrap_or(0) + 1;
    metadata::write(&path, &order)?;
    Ok(order)
}

/// The permissions with the executable bit set or cleared. As in git, every class that may read may execute.
fn with_kind(mode: u32, kind: Kind) -> u32 {
    if kind == Kind::Program { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 }
}

/// Merges both changes of a text file, or returns why that is impossible.
fn merge(
    paths: &WorkspacePaths,
    record: &Record,
    root: &Root,
    item: &Item<'_>,
) -> Result<Result<Vec<u8>, ConflictReason>, Error> {
    let (Some(base), Some(workspace), Some(repository_state)) =
        (&item.difference.base, &item.difference.workspace, item.repository_state.content())
    else {
        return Ok(Err(ConflictReason::BaseUnreadable));
    };
    if [base.content.size, workspace.size, repository_state.size]
        .iter()
        .any(|size| *size > MAX_MERGE_SIZE)
    {
        return Ok(Err(ConflictReason::Binary));
    }
    let Some(blob) = base.blob.as_ref().filter(|_| record.git) else {
        return Ok(Err(ConflictReason::NoGit));
    };
    let scratch_repo = paths.scratch_repo(record);
    // The objects are shared with the repository, which may have removed them.
    let Ok(base) = scratch_repo.bytes(blob) else { return Ok(Err(ConflictReason::BaseUnreadable)) };
    let path = &item.difference.path;
    let mut sides = [Vec::new(), Vec::new()];
    root.copy(path, &mut sides[0]).map_err(at("read", &record.top.0.join(path)))?;
    let workspace = Root::open(&paths.worktree).map_err(at("open", &paths.worktree))?;
    workspace.copy(path, &mut sides[1]).map_err(at("read", &paths.worktree.join(path)))?;
    let [repository_state, workspace] = sides;
    if is_binary(&base) || is_binary(&workspace) || is_binary(&repository_state) {
        return Ok(Err(ConflictReason::Binary));
    }
    Ok(scratch_repo.merge(&base, &workspace, &repository_state)?.ok_or(ConflictReason::Overlap))
}

/// Applies a plan, including one that was started before a crash.
fn finish(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
    name: &str,
) -> Result<MergeOutcome, Error> {
    let folder = paths.undo.join(name);
    let Some(mut plan) = Plan::read(&folder)? else {
        let why = "the merge plan is missing".to_owned();
        return Err(Error::Damaged { path: folder.join("manifest.json"), why });
    };
    let total = plan.changes.len() as u64;
    if plan.state == MergeRecordState::Done {
        return Ok(MergeOutcome { changed: total, notes: plan.notes, ..MergeOutcome::default() });
    }
    let applied = plan.apply(workspaces, &folder, Direction::Merge)?;
    workspaces.step(Step::Settled);
    if applied.changed_since.is_empty() {
        plan.state = MergeRecordState::Done;
        plan.write(&folder)?;
        // Undo needs only the old contents.
        let _ = std::fs::remove_file(folder.join("after"));
        workspaces.step(Step::Done);
        return Ok(MergeOutcome { changed: total, notes: plan.notes, ..MergeOutcome::default() });
    }
    let kept = if paths.worktree.is_dir() {
        let (differences, _) = find_differences(paths, record)?;
        Some(write_patch(workspaces, paths, record, &differences)?)
    } else {
        None
    };
    plan.state = MergeRecordState::Stopped;
    plan.write(&folder)?;
    workspaces.step(Step::Done);
    let conflicts = applied
        .changed_since
        .iter()
        .map(|path| (path.clone(), ConflictReason::ChangedDuringMerge))
        .collect();
    let mut outcome =
        MergeOutcome { changed: applied.done.len() as u64, kept, ..MergeOutcome::default() };
    if !applied.done.is_empty() {
        let mut names: Vec<_> = applied.done.iter().map(|path| plan.display_path(path)).collect();
        names.sort();
        outcome.notes.push(format!(
            "these files were already written and stay changed; undo restores them: {}",
            names.join(", ")
        ));
    }
    Ok(with_conflicts(outcome, &record.prefix.0, &conflicts, plan.notes))
}
