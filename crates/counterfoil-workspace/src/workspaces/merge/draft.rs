//! The plan of a merge while it is built: what each file was before, and what it will be.

use super::Item;
use crate::make_private_folder;
use crate::snapshot::FileAt;
use crate::workspaces::disk::{self, Root, copy_and_hash};
use crate::workspaces::metadata::{self, Content, EncodedPath, Kind, Record};
use crate::workspaces::plan::{Change, Image, Plan};
use crate::workspaces::three_way::{ByteSource, ConflictReason, MergeDecision, is_binary};
use crate::workspaces::written::WrittenList;
use crate::workspaces::{Error, MergeRecordState, Step, WorkspacePaths, Workspaces, at};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger files are not merged as text.
const MAX_MERGE_SIZE: u64 = 32 << 20;

/// A plan being built: file contents are written to disk, nothing is written to the repository.
pub(in crate::workspaces) struct Draft {
    name: String,
    folder: PathBuf,
    before: Images,
    after: Images,
    pub(in crate::workspaces) changes: Vec<Change>,
}

/// The repository that a plan changes.
#[derive(Clone, Copy)]
pub(in crate::workspaces) struct Target<'a> {
    /// The folder that the paths are relative to.
    pub(in crate::workspaces) top: &'a Path,
    /// The folder that the user works in, relative to it.
    pub(in crate::workspaces) prefix: &'a Path,
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
    pub(in crate::workspaces) fn begin(paths: &WorkspacePaths) -> Result<Self, Error> {
        let mut n = 1;
        let (name, folder) = loop {
            let name = if n == 1 { paths.name.clone() } else { format!("{}.{n}", paths.name) };
            let folder = paths.undo.join(&name);
            match Plan::read(&folder)? {
                Some(plan) if plan.state != MergeRecordState::Begun => n += 1,
                _ => {
                    disk::clear(&folder).map_err(at("remove", &folder))?;
                    break (name, folder);
                }
            }
        };
        make_private_folder(&folder).map_err(at("create", &folder))?;
        let before = Images::create(folder.join("before"))?;
        let after = Images::create(folder.join("after"))?;
        Ok(Self { name, folder, before, after, changes: Vec::new() })
    }

    /// Adds a path, or returns why it cannot be merged.
    pub(super) fn add(
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
                    ByteSource::Workspace => self.take(paths, path, kind, mode)?,
                    ByteSource::Repository => {
                        let found =
                            root.copy(path, &mut self.after.file).map_err(at("read", &full))?;
                        match found.content() {
                            Some(content) if content.is(&before.content) => {
                                self.after.add(Content { kind, mode, ..content.clone() })
                            }
                            _ => return Ok(Err(ConflictReason::ChangedDuringMerge)),
                        }
                    }
                    ByteSource::Merged => match merge(paths, record, root, item)? {
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

    /// Adds a path that was changed already, given what it was before.
    pub(in crate::workspaces) fn add_done(
        &mut self,
        root: &Root,
        top: &Path,
        path: &Path,
        before: Option<&FileAt>,
    ) -> Result<(), Error> {
        let full = top.join(path);
        let found = root.copy(path, &mut self.after.file).map_err(at("keep", &full))?;
        let after = found.content().cloned().map(|content| self.after.add(content));
        let before = match before {
            None => None,
            Some(file) => {
                let (hash, size) = copy_and_hash(&mut file.bytes.as_slice(), &mut self.before.file)
                    .map_err(at("write", &self.before.path))?;
                let kind = match file {
                    FileAt { is_link: true, .. } => Kind::Link,
                    FileAt { mode, .. } if mode & 0o100 != 0 => Kind::Program,
                    FileAt { .. } => Kind::File,
                };
                let now = after.as_ref().filter(|after| after.content.kind != Kind::Link);
                let mode = match now {
                    Some(now) if !file.is_own_mode => with_kind(now.content.mode, kind),
                    // Others may read what git checks out.
                    None if !file.is_own_mode => file.mode & !0o022,
                    _ => file.mode,
                };
                Some(self.before.add(Content { kind, hash, size, mode }))
            }
        };
        let is_same = match (&before, &after) {
            (Some(before), Some(after)) => before.content.is(&after.content),
            (before, after) => before.is_none() && after.is_none(),
        };
        if !is_same {
            self.changes.push(Change { path: EncodedPath(path.to_owned()), before, after });
        }
        Ok(())
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

    /// The number of bytes that are kept so far.
    pub(in crate::workspaces) fn bytes(&self) -> u64 {
        self.before.end + self.after.end
    }

    pub(in crate::workspaces) fn abandon(self) -> Result<(), Error> {
        disk::clear(&self.folder).map_err(at("remove", &self.folder))
    }

    /// Writes the plan of a merge and returns its name.
    pub(super) fn finish(
        self,
        workspaces: &Workspaces,
        paths: &WorkspacePaths,
        record: &Record,
        notes: Vec<String>,
    ) -> Result<String, Error> {
        let (mut made, mut around) = (BTreeSet::new(), BTreeMap::new());
        let top = &record.top.0;
        for change in &self.changes {
            for folder in folders_of(change) {
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
        let target = Target { top, prefix: &record.prefix.0 };
        let name = self.name.clone();
        WrittenList::create(&self.folder)?;
        self.write(workspaces, paths, target, |plan| Plan { made, around, notes, ..plan })?;
        Ok(name)
    }

    /// Writes the plan of changes that were made already. `is_new` says which folders were created
    /// for them.
    pub(in crate::workspaces) fn finish_done(
        self,
        workspaces: &Workspaces,
        paths: &WorkspacePaths,
        target: Target<'_>,
        is_new: impl Fn(&Path) -> bool,
        left_out: Vec<EncodedPath>,
    ) -> Result<(), Error> {
        let added = self.changes.iter().filter(|change| change.before.is_none());
        let made: BTreeSet<EncodedPath> = added
            .flat_map(folders_of)
            .filter(|folder| is_new(folder))
            .map(|folder| EncodedPath(folder.to_owned()))
            .collect();
        let state = MergeRecordState::Done;
        self.write(workspaces, paths, target, |plan| Plan { state, made, left_out, ..plan })
    }

    fn write(
        self,
        workspaces: &Workspaces,
        paths: &WorkspacePaths,
        target: Target<'_>,
        with: impl FnOnce(Plan) -> Plan,
    ) -> Result<(), Error> {
        self.before.sync()?;
        self.after.sync()?;
        workspaces.step(Step::Imaged);
        let plan = with(Plan {
            version: metadata::VERSION,
            run: paths.run.clone(),
            id: paths.id.clone(),
            order: next_order(paths)?,
            at: jiff::Timestamp::now().as_millisecond(),
            state: MergeRecordState::Begun,
            top: EncodedPath(target.top.to_owned()),
            prefix: EncodedPath(target.prefix.to_owned()),
            changes: self.changes,
            made: BTreeSet::new(),
            around: BTreeMap::new(),
            left_out: Vec::new(),
            stopped_by: Vec::new(),
            notes: Vec::new(),
        });
        plan.write(&self.folder)?;
        if let Some(runs) = self.folder.parent() {
            File::open(runs).and_then(|folder| folder.sync_all()).map_err(at("write", runs))?;
        }
        workspaces.step(Step::Planned);
        Ok(())
    }
}

/// The folders around the path of a change, below the top.
fn folders_of(change: &Change) -> impl Iterator<Item = &Path> {
    change.path.0.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty())
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
