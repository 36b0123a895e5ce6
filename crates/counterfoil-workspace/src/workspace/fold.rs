//! Bringing the work of a workspace into the repository.

use super::disk::{Root, Standing, pour};
use super::judge::{self, Ruling, Why, is_binary, judge};
use super::keep::{remove, survey, write_patch};
use super::plan::{Change, Image, Plan, Way};
use super::record::{self, Bytes, Content, Kind, Record, Stage};
use super::shadow::Difference;
use super::{Desk, Error, Folded, FoldingState, Step, Workspaces, at, lock, seen_from};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger texts are not merged.
const LARGEST_MERGED: u64 = 32 << 20;

pub(super) fn fold(spaces: &Workspaces, run: &str, id: &str) -> Result<Folded, Error> {
    let _lock = lock::alone(&spaces.state)?;
    let desk = spaces.desk(run, id);
    let Some(mut record) = desk.record()? else { return Err(desk.not_open()) };
    let name = match &record.stage {
        Stage::Opening | Stage::Discarded(_) => return Err(desk.not_open()),
        Stage::Folded(folded) => {
            let folded = folded.clone();
            remove(spaces, &desk, &record)?;
            return Ok(folded);
        }
        Stage::Folding(name) => name.clone(),
        Stage::Open => {
            if !desk.worktree.is_dir() {
                return Err(Error::Lost { folder: desk.worktree });
            }
            match prepare(spaces, &desk, &record)? {
                Prepared::Over(folded) => return conclude(spaces, &desk, record, folded),
                Prepared::Plan(name) => {
                    record.stage = Stage::Folding(name.clone());
                    desk.write(&record)?;
                    spaces.step(Step::Decided);
                    name
                }
            }
        }
    };
    let folded = finish(spaces, &desk, &record, &name)?;
    conclude(spaces, &desk, record, folded)
}

/// Writes the outcome down and removes the workspace.
fn conclude(
    spaces: &Workspaces,
    desk: &Desk,
    mut record: Record,
    folded: Folded,
) -> Result<Folded, Error> {
    record.stage = Stage::Folded(folded.clone());
    desk.write(&record)?;
    spaces.step(Step::Concluded);
    remove(spaces, desk, &record)?;
    Ok(folded)
}

enum Prepared {
    /// There is nothing to write, or it must not be written.
    Over(Folded),
    /// The plan of this name is on disk.
    Plan(String),
}

/// A path to write, and how.
struct Item<'a> {
    difference: &'a Difference,
    stands: Standing,
    ruling: Ruling,
}

fn prepare(spaces: &Workspaces, desk: &Desk, record: &Record) -> Result<Prepared, Error> {
    let (differences, mut notes) = survey(desk, record)?;
    notes.extend(moved_head(desk, record));
    let top = &record.top.0;
    let root = Root::open(top).map_err(at("open", top))?;
    let mut items = Vec::new();
    for difference in &differences {
        let path = top.join(&difference.path);
        let stands = root.look(&difference.path).map_err(at("read", &path))?;
        let was = difference.was.as_ref().map(|held| &held.content);
        let ruling = judge(was, difference.worked.as_ref(), stands.content());
        if ruling != Ruling::Nothing {
            items.push(Item { difference, stands, ruling });
        }
    }
    hinder(top, &mut items)?;
    let mut conflicts: BTreeMap<PathBuf, Why> = BTreeMap::new();
    for item in &items {
        if let Ruling::Conflict(why) = item.ruling {
            conflicts.insert(item.difference.path.clone(), why);
        }
    }
    spaces.step(Step::Compared);
    if items.is_empty() {
        return Ok(Prepared::Over(Folded { notes, ..Folded::default() }));
    }
    // The merges are tried also if there are conflicts: all of them should be named.
    let mut draft = Draft::begin(desk)?;
    for item in items.iter().filter(|item| !matches!(item.ruling, Ruling::Conflict(_))) {
        if let Err(why) = draft.add(desk, record, &root, item)? {
            conflicts.insert(item.difference.path.clone(), why);
        }
    }
    if !conflicts.is_empty() {
        draft.abandon()?;
        let kept = write_patch(spaces, desk, record, &differences)?;
        let folded = Folded { kept: Some(kept), ..Folded::default() };
        return Ok(Prepared::Over(with_conflicts(folded, &record.prefix.0, &conflicts, notes)));
    }
    draft.finish(spaces, desk, record, notes).map(Prepared::Plan)
}

/// Names the conflicts, and gives the reason of each.
fn with_conflicts(
    mut folded: Folded,
    prefix: &Path,
    conflicts: &BTreeMap<PathBuf, Why>,
    notes: Vec<String>,
) -> Folded {
    let mut named: Vec<_> =
        conflicts.iter().map(|(path, why)| (seen_from(prefix, path), *why)).collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    folded.notes.extend(named.iter().map(|(path, why)| format!("{path} {}", why.words())));
    folded.notes.extend(notes);
    folded.conflicts = named.into_iter().map(|(path, _)| path).collect();
    folded
}

/// What an agent committed in the workspace is not taken over, only the files are.
fn moved_head(desk: &Desk, record: &Record) -> Option<String> {
    let (common, began) = (record.repository.as_ref()?, record.head.as_ref()?);
    let entries = std::fs::read_dir(common.0.join("worktrees")).ok()?;
    let entry = entries.flatten().find(|entry| {
        super::keep::aim(&entry.path())
            .is_some_and(|aim| aim.file_name() == desk.worktree.file_name())
    })?;
    let head = std::fs::read_to_string(entry.path().join("HEAD")).ok()?;
    match head.trim().strip_prefix("ref: ") {
        Some(branch) => Some(format!(
            "{branch} was checked out in the workspace; its files are folded, it is left as it is"
        )),
        None if head.trim() == began => None,
        None => Some(format!(
            "{} was committed in the workspace; its files are folded, the commit is not",
            head.trim()
        )),
    }
}

/// Makes conflicts of what cannot be written where it belongs.
fn hinder(top: &Path, items: &mut [Item<'_>]) -> Result<(), Error> {
    let deleted: BTreeSet<PathBuf> = items
        .iter()
        .filter(|item| item.ruling == Ruling::Take && item.difference.worked.is_none())
        .map(|item| item.difference.path.clone())
        .collect();
    for item in items.iter_mut() {
        if item.difference.worked.is_none() {
            continue;
        }
        let hindrance = match &item.stands {
            Standing::Nothing | Standing::Content(_) => None,
            Standing::Special => Some(Why::Special),
            Standing::BelowFile(file) => (!deleted.contains(file)).then_some(Why::Folder),
            Standing::BehindLink(link) => (!deleted.contains(link)).then_some(Why::Through),
            Standing::Folder => {
                (!is_emptied(top, &item.difference.path, &deleted)?).then_some(Why::Folder)
            }
        };
        if let Some(why) = hindrance {
            item.ruling = Ruling::Conflict(why);
        }
    }
    Ok(())
}

/// Whether nothing is left of a folder when these files are deleted.
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
            // Somebody made it, and nobody deleted it.
            return Ok(false);
        }
    }
    Ok(true)
}

/// A plan in the making: the images are on their way to disk, nothing is written to the repository.
struct Draft {
    name: String,
    folder: PathBuf,
    before: Images,
    after: Images,
    changes: Vec<Change>,
}

/// Bytes of many files, one behind the other.
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
    /// Begins a plan. Those that a crash left unbegun are removed: the record does not know them.
    fn begin(desk: &Desk) -> Result<Self, Error> {
        let mut n = 1;
        let (name, folder) = loop {
            let name = if n == 1 { desk.name.clone() } else { format!("{}.{n}", desk.name) };
            let folder = desk.undo.join(&name);
            match Plan::read(&folder)? {
                Some(plan) if plan.state != FoldingState::Begun => n += 1,
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

    /// Adds a path; or why it cannot be.
    fn add(
        &mut self,
        desk: &Desk,
        record: &Record,
        root: &Root,
        item: &Item<'_>,
    ) -> Result<Result<(), Why>, Error> {
        let path = &item.difference.path;
        let full = record.top.0.join(path);
        let found = root.copy(path, &mut self.before.file).map_err(at("keep", &full))?;
        let before = found.content().cloned().map(|content| self.before.add(content));
        let is_still = match (item.stands.content(), &before) {
            (Some(stands), Some(before)) => stands.is(&before.content),
            (stands, before) => stands.is_none() && before.is_none(),
        };
        if !is_still {
            return Ok(Err(Why::Meanwhile));
        }
        let after = match (item.ruling, &item.difference.worked, &before) {
            (Ruling::Take, None, _) => None,
            (Ruling::Combine(bytes, kind), Some(_), Some(before)) => {
                let mode = with_kind(before.content.mode, kind);
                Some(match bytes {
                    judge::Bytes::Worked => self.take(desk, path, kind, mode)?,
                    judge::Bytes::Standing => {
                        let found =
                            root.copy(path, &mut self.after.file).map_err(at("read", &full))?;
                        match found.content() {
                            Some(content) if content.is(&before.content) => {
                                self.after.add(Content { kind, mode, ..content.clone() })
                            }
                            _ => return Ok(Err(Why::Meanwhile)),
                        }
                    }
                    judge::Bytes::Merged => match merge(desk, record, root, item)? {
                        Ok(text) => {
                            let (hash, size) = pour(&mut text.as_slice(), &mut self.after.file)
                                .map_err(at("write", &self.after.path))?;
                            self.after.add(Content { kind, hash, size, mode })
                        }
                        Err(why) => return Ok(Err(why)),
                    },
                })
            }
            (_, Some(worked), before) => {
                let mode = match before {
                    Some(before) if before.content.kind != Kind::Link => {
                        with_kind(before.content.mode, worked.kind)
                    }
                    _ => worked.mode,
                };
                Some(self.take(desk, path, worked.kind, mode)?)
            }
            (_, None, _) => None,
        };
        self.changes.push(Change { path: Bytes(path.clone()), before, after });
        Ok(Ok(()))
    }

    /// The bytes of the workspace, as they are now.
    fn take(&mut self, desk: &Desk, path: &Path, kind: Kind, mode: u32) -> Result<Image, Error> {
        let full = desk.worktree.join(path);
        let from = Root::open(&desk.worktree).map_err(at("open", &desk.worktree))?;
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

    /// Writes the plan; its name.
    fn finish(
        self,
        spaces: &Workspaces,
        desk: &Desk,
        record: &Record,
        notes: Vec<String>,
    ) -> Result<String, Error> {
        self.before.sync()?;
        self.after.sync()?;
        spaces.step(Step::Imaged);
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
                        drop(around.insert(Bytes(folder.to_owned()), meta.mode() & 0o7777))
                    }
                    (None, Some(_)) => drop(made.insert(Bytes(folder.to_owned()))),
                    _ => {}
                }
            }
        }
        let plan = Plan {
            version: record::VERSION,
            run: record.run.clone(),
            id: record.id.clone(),
            order: next_order(desk)?,
            at: jiff::Timestamp::now().as_millisecond(),
            state: FoldingState::Begun,
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
        spaces.step(Step::Planned);
        Ok(self.name)
    }
}

/// The number of the next folding of a run. A number may be left out, and none is given twice.
fn next_order(desk: &Desk) -> Result<u64, Error> {
    let path = desk.undo.join("order.json");
    let order = record::read::<u64>(&path)?.unwrap_or(0) + 1;
    record::write(&path, &order)?;
    Ok(order)
}

/// Permissions with the right to execute given or taken, as git does it: to those who may read.
fn with_kind(mode: u32, kind: Kind) -> u32 {
    if kind == Kind::Program { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 }
}

/// Both changes of a text in one, or why not.
fn merge(
    desk: &Desk,
    record: &Record,
    root: &Root,
    item: &Item<'_>,
) -> Result<Result<Vec<u8>, Why>, Error> {
    let (Some(was), Some(worked), Some(stands)) =
        (&item.difference.was, &item.difference.worked, item.stands.content())
    else {
        return Ok(Err(Why::Base));
    };
    if [was.content.size, worked.size, stands.size].iter().any(|size| *size > LARGEST_MERGED) {
        return Ok(Err(Why::Binary));
    }
    let Some(blob) = was.blob.as_ref().filter(|_| record.git) else { return Ok(Err(Why::NoGit)) };
    let shadow = desk.shadow(record);
    // The repository's objects are borrowed; they may be gone.
    let Ok(was) = shadow.bytes(blob) else { return Ok(Err(Why::Base)) };
    let path = &item.difference.path;
    let mut sides = [Vec::new(), Vec::new()];
    root.copy(path, &mut sides[0]).map_err(at("read", &record.top.0.join(path)))?;
    let workspace = Root::open(&desk.worktree).map_err(at("open", &desk.worktree))?;
    workspace.copy(path, &mut sides[1]).map_err(at("read", &desk.worktree.join(path)))?;
    let [stands, worked] = sides;
    if is_binary(&was) || is_binary(&worked) || is_binary(&stands) {
        return Ok(Err(Why::Binary));
    }
    Ok(shadow.merge(&was, &worked, &stands)?.ok_or(Why::Overlap))
}

/// Follows a plan to its end, also if that was begun before a crash.
fn finish(spaces: &Workspaces, desk: &Desk, record: &Record, name: &str) -> Result<Folded, Error> {
    let folder = desk.undo.join(name);
    let Some(mut plan) = Plan::read(&folder)? else {
        let why = "what folding was to do is gone".to_owned();
        return Err(Error::Damaged { path: folder.join("manifest.json"), why });
    };
    let total = plan.changes.len() as u64;
    if plan.state == FoldingState::Done {
        return Ok(Folded { changed: total, notes: plan.notes, ..Folded::default() });
    }
    let followed = plan.follow(spaces, &folder, Way::Fold)?;
    spaces.step(Step::Settled);
    if followed.touched.is_empty() {
        plan.state = FoldingState::Done;
        plan.write(&folder)?;
        // Undoing needs what was, not what is.
        let _ = std::fs::remove_file(folder.join("after"));
        spaces.step(Step::Done);
        return Ok(Folded { changed: total, notes: plan.notes, ..Folded::default() });
    }
    let kept = if desk.worktree.is_dir() {
        let (differences, _) = survey(desk, record)?;
        Some(write_patch(spaces, desk, record, &differences)?)
    } else {
        None
    };
    plan.state = FoldingState::Stopped;
    plan.write(&folder)?;
    spaces.step(Step::Done);
    let conflicts = followed.touched.iter().map(|path| (path.clone(), Why::Meanwhile)).collect();
    let mut folded = Folded { changed: followed.done.len() as u64, kept, ..Folded::default() };
    if !followed.done.is_empty() {
        let mut names: Vec<_> = followed.done.iter().map(|path| plan.seen(path)).collect();
        names.sort();
        folded.notes.push(format!(
            "already written, and left so; undo puts them back: {}",
            names.join(", ")
        ));
    }
    Ok(with_conflicts(folded, &record.prefix.0, &conflicts, plan.notes))
}
