//! Making a workspace.

use super::disk::{clear, is_plain};
use super::list::{self, Listed};
use super::place::{self, Place, Repository};
use super::record::{self, Bytes, Held, Listing, Record, Stage};
use super::{Desk, Error, Opened, Step, Workspaces, at, keep, lock};
use crate::git::{Call, Failure};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most bytes of a plain copy.
const MOST_BYTES: u64 = 4 << 30;
/// So often a worktree is added before that failed.
const TRIES: u32 = 3;

pub(super) fn open(
    spaces: &Workspaces,
    run: &str,
    id: &str,
    without: &BTreeSet<PathBuf>,
) -> Result<Opened, Error> {
    let _reading = lock::together(&spaces.state)?;
    let desk = spaces.desk(run, id);
    let _ours = lock::folder(&desk.base)?;
    if let Some(record) = desk.record()? {
        match &record.stage {
            Stage::Open if desk.worktree.is_dir() => {
                return Ok(Opened { folder: desk.folder(&record), notes: record.notes });
            }
            Stage::Folding(_) => {
                return Err(Error::Unfinished { run: run.to_owned(), id: id.to_owned() });
            }
            // Half made, over, or removed by somebody: nothing in it is anybody's work.
            _ => keep::remove(spaces, &desk, &record)?,
        }
    }
    let mut place = place::find(&spaces.repo)?;
    let without = without_from(spaces, &place, without);
    let listed = find(&mut place, &without)?;
    let git = place.git;
    let repository = place.repository.take();
    let worktree_of = repository.as_ref().filter(|repository| repository.head.is_some());
    let mut record = Record {
        version: record::VERSION,
        run: run.to_owned(),
        id: id.to_owned(),
        stage: Stage::Opening,
        top: Bytes(place.top.clone()),
        prefix: Bytes(place.prefix.clone()),
        repository: worktree_of.map(|repository| Bytes(repository.common.clone())),
        head: worktree_of.and_then(|repository| repository.head.clone()),
        git,
        listing: if repository.is_some() { Listing::Git } else { Listing::Walk },
        excludes: repository.as_ref().and_then(|repository| repository.excludes.clone()).map(Bytes),
        without: without.into_iter().map(Bytes).collect(),
        sealed: 0,
        notes: Vec::new(),
    };
    desk.write(&record)?;
    spaces.step(Step::Announced);
    match fill(spaces, &desk, &mut record, &place, repository.as_ref(), listed) {
        Ok(opened) => Ok(opened),
        Err(error) => {
            // If that fails as well, a sweep finds it: it is announced.
            let _ = keep::remove(spaces, &desk, &record);
            Err(error)
        }
    }
}

/// Makes the folder, fills it and keeps what it looks like.
fn fill(
    spaces: &Workspaces,
    desk: &Desk,
    record: &mut Record,
    place: &Place,
    repository: Option<&Repository>,
    mut listed: Listed,
) -> Result<Opened, Error> {
    clear(&desk.worktree).map_err(at("remove", &desk.worktree))?;
    make(spaces, desk, place, repository, &listed)?;
    spaces.step(Step::Added);

    let most = record.repository.is_none().then_some(MOST_BYTES);
    let mut held = super::copy::copy(&place.top, &desk.worktree, &mut listed, most)?;
    let folder = desk.folder(record);
    std::fs::create_dir_all(&folder).map_err(at("create", &folder))?;
    spaces.step(Step::Copied);

    keep_base(desk, record, repository, &mut held)?;
    let base = desk.base.join("base.json");
    record::write(&base, &held)?;
    record.sealed = record::changed_at(&std::fs::metadata(&base).map_err(at("read", &base))?);
    spaces.step(Step::Based);

    record.notes.clone_from(&place.notes);
    record.notes.append(&mut listed.notes);
    record.stage = Stage::Open;
    desk.write(record)?;
    spaces.step(Step::Opened);
    Ok(Opened { folder, notes: record.notes.clone() })
}

/// The files to copy. A folder that its repository ignores is treated as if it lay outside.
fn find(place: &mut Place, without: &BTreeSet<PathBuf>) -> Result<Listed, Error> {
    if place.repository.is_some() {
        let mut listed = list::repository(&place.top)?;
        let folder = place.top.join(&place.prefix);
        let is_known = place.prefix.as_os_str().is_empty()
            || listed
                .files
                .range(place.prefix.clone()..)
                .next()
                .is_some_and(|path| path.starts_with(&place.prefix))
            || std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none());
        if is_known {
            listed.files.retain(|path| is_plain(path) && !is_without(without, path));
            return Ok(listed);
        }
        place.repository = None;
        place.top = folder;
        place.prefix = PathBuf::new();
        place.notes =
            vec!["the repository ignores the folder: this is a plain copy of it".to_owned()];
    }
    let without = without.clone();
    let mut listed = list::walk(&place.top, move |path| is_without(&without, path))?;
    listed.files.retain(|path| is_plain(path));
    Ok(listed)
}

/// Whether a path is one of those left out, or lies in one.
pub(super) fn is_without(without: &BTreeSet<PathBuf>, path: &Path) -> bool {
    !without.is_empty() && path.ancestors().any(|path| without.contains(path))
}

/// What is left out, from the top. The state folder always is.
fn without_from(
    spaces: &Workspaces,
    place: &Place,
    without: &BTreeSet<PathBuf>,
) -> BTreeSet<PathBuf> {
    let repo = place.top.join(&place.prefix);
    let real = |path: &Path| {
        // What does not exist yet has a folder that does.
        let mut there = path;
        while let Some(parent) = there.parent() {
            if let Ok(found) = std::fs::canonicalize(there) {
                return found.join(path.strip_prefix(there).unwrap_or(Path::new("")));
            }
            there = parent;
        }
        path.to_owned()
    };
    let all = without.iter().chain([&spaces.state]);
    let below = all.filter_map(|path| {
        let path = repo.join(path);
        let plain = path.strip_prefix(&place.top).map(Path::to_owned).ok();
        plain.or_else(|| real(&path).strip_prefix(&place.top).map(Path::to_owned).ok())
    });
    below.filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Makes the folder: a worktree, or a plain one.
fn make(
    spaces: &Workspaces,
    desk: &Desk,
    place: &Place,
    repository: Option<&Repository>,
    listed: &Listed,
) -> Result<(), Error> {
    let folder = &desk.worktree;
    let Some((repository, head)) =
        repository.and_then(|repository| Some((repository, repository.head.as_ref()?)))
    else {
        std::fs::create_dir_all(folder).map_err(at("create", folder))?;
        if repository.is_some() {
            // Otherwise git would find the user's repository above, and work on its index.
            Call::new(folder, ["init", "-q", "--template="]).run()?;
        }
        return Ok(());
    };
    let around = folder.parent().unwrap_or(folder);
    std::fs::create_dir_all(around).map_err(at("create", around))?;
    add(spaces, &place.top, repository, folder, head)?;
    Call::new(folder, ["read-tree", head]).run()?;
    if !listed.sparse.is_empty() {
        let mut names = Vec::new();
        for path in &listed.sparse {
            names.extend_from_slice(path.as_os_str().as_bytes());
            names.push(0);
        }
        // A file that is staged there and not in the commit is not known here; it is only a mark.
        let _ = Call::new(folder, ["update-index", "--skip-worktree", "-z", "--stdin"])
            .stdin(names)
            .ask();
    }
    Ok(())
}

/// Adds a worktree to git's list, without files.
fn add(
    spaces: &Workspaces,
    top: &Path,
    repository: &Repository,
    folder: &Path,
    head: &str,
) -> Result<(), Error> {
    let mut left = TRIES;
    loop {
        let _list = lock::list(&spaces.state)?;
        keep::forget(&repository.common, folder);
        let call = Call::new(top, ["worktree", "add", "--quiet", "--detach", "--no-checkout"]);
        left -= 1;
        match call.arg(folder).arg(head).run() {
            Ok(_) => return Ok(()),
            // Somebody who does not know our lock may have removed the list, as git does with its
            // last entry.
            Err(Failure::Refused { .. }) if left > 0 => {
                clear(folder).map_err(at("remove", folder))?
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Keeps the bytes of the base: those that the repository has not, if there is git, and all of them
/// if not.
fn keep_base(
    desk: &Desk,
    record: &Record,
    repository: Option<&Repository>,
    held: &mut [Held],
) -> Result<(), Error> {
    if !record.git {
        let store = desk.base.join("content");
        clear(&store).map_err(at("remove", &store))?;
        std::fs::create_dir_all(&store).map_err(at("create", &store))?;
        for file in held.iter().filter(|file| file.content.kind != record::Kind::Link) {
            let (from, to) = (desk.worktree.join(&file.path.0), store.join(&file.content.hash));
            if !to.exists() {
                std::fs::copy(&from, to).map_err(at("keep", &from))?;
            }
        }
        return Ok(());
    }
    let folder = desk.base.join("git");
    clear(&folder).map_err(at("remove", &folder))?;
    let shadow = desk.shadow(record);
    shadow.make(
        repository.map(|repository| (repository.common.as_path(), repository.format.as_str())),
    )?;
    let files = held.iter().map(|file| (file.path.0.as_path(), file.content.kind));
    let blobs = shadow.keep(&desk.worktree, files)?;
    for (file, blob) in held.iter_mut().zip(blobs) {
        file.blob = Some(blob);
    }
    Ok(())
}
