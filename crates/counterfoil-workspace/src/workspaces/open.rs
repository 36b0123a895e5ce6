//! Opens a workspace.

use super::disk::{clear, is_plain, real_path};
use super::file_list::{self, Listed};
use super::locate::{self, Location, Repository};
use super::metadata::{self, BaseFile, EncodedPath, Listing, Record, Stage};
use super::{
    Error, Opened, Step, WorkspacePaths, Workspaces, at, lock, save_patch, worktrees_folder,
};
use crate::git::{GitCommand, GitError};
use crate::make_private_folder;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The largest size of a plain copy in bytes.
const MAX_COPY_BYTES: u64 = 4 << 30;
/// How often adding a worktree is tried.
const MAX_ATTEMPTS: u32 = 3;

pub(super) fn open(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
    without: &BTreeSet<PathBuf>,
    work: Option<&str>,
) -> Result<Opened, Error> {
    let opened = open_locked(workspaces, run, id, without, work);
    if opened.is_err() {
        worktrees_folder::remove_if_nobody_works(workspaces);
    }
    opened
}

fn open_locked(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
    without: &BTreeSet<PathBuf>,
    work: Option<&str>,
) -> Result<Opened, Error> {
    let _shared_lock = lock::shared(&workspaces.state)?;
    let paths = workspaces.paths(run, id);
    let _folder_lock = lock::folder(&paths.base)?;
    worktrees_folder::create(workspaces)?;
    if let Some(record) = paths.record()? {
        match &record.stage {
            Stage::Open if paths.worktree.is_dir() => {
                return Ok(Opened { folder: paths.folder(&record), notes: record.notes });
            }
            Stage::Merging(_) => {
                return Err(Error::Unfinished { run: run.to_owned(), id: id.to_owned() });
            }
            // Half created, ended, or removed by another program: there is no work in it.
            _ => save_patch::remove(workspaces, &paths, &record)?,
        }
    }
    let mut location = locate::find(&workspaces.repo)?;
    let without = excluded_paths(workspaces, &location, without);
    let listed = list_files(&mut location, &without)?;
    let git = location.git;
    let repository = location.repository.take();
    let worktree_of = repository.as_ref().filter(|repository| repository.head.is_some());
    let mut record = Record {
        version: metadata::VERSION,
        run: run.to_owned(),
        id: id.to_owned(),
        stage: Stage::Opening,
        top: EncodedPath(location.top.clone()),
        prefix: EncodedPath(location.prefix.clone()),
        repository: worktree_of.map(|repository| EncodedPath(repository.common.clone())),
        head: worktree_of.and_then(|repository| repository.head.clone()),
        git,
        listing: if repository.is_some() { Listing::Git } else { Listing::Walk },
        excludes: repository
            .as_ref()
            .and_then(|repository| repository.excludes.clone())
            .map(EncodedPath),
        without: without.into_iter().map(EncodedPath).collect(),
        sealed: 0,
        notes: Vec::new(),
    };
    paths.write(&record)?;
    workspaces.step(Step::Announced);
    let sources = Sources { location: &location, repository: repository.as_ref(), work };
    match populate(workspaces, &paths, &mut record, &sources, listed) {
        Ok(opened) => Ok(opened),
        Err(error) => {
            // If that fails as well, a sweep finds it by its metadata.
            let _ = save_patch::remove(workspaces, &paths, &record);
            Err(error)
        }
    }
}

/// What a workspace is filled from.
struct Sources<'a> {
    location: &'a Location,
    repository: Option<&'a Repository>,
    /// Where earlier work is saved.
    work: Option<&'a str>,
}

/// Creates the folder, copies the files, saves the base and applies earlier work.
fn populate(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &mut Record,
    sources: &Sources<'_>,
    mut listed: Listed,
) -> Result<Opened, Error> {
    let (location, repository) = (sources.location, sources.repository);
    clear(&paths.worktree).map_err(at("remove", &paths.worktree))?;
    create_folder(workspaces, paths, location, repository, &listed)?;
    workspaces.step(Step::Added);

    let max_bytes = record.repository.is_none().then_some(MAX_COPY_BYTES);
    let mut base_files = super::copy::copy(&location.top, &paths.worktree, &mut listed, max_bytes)?;
    let folder = paths.folder(record);
    std::fs::create_dir_all(&folder).map_err(at("create", &folder))?;
    workspaces.step(Step::Copied);

    save_base(paths, record, repository, &mut base_files)?;
    let base = paths.base.join("base.json");
    metadata::write(&base, &base_files)?;
    record.sealed = metadata::changed_at(&std::fs::metadata(&base).map_err(at("read", &base))?);
    workspaces.step(Step::Based);

    if let Some(work) = sources.work {
        super::restore::apply(workspaces, paths, record, work)?;
        workspaces.step(Step::Restored);
    }

    record.notes.clone_from(&location.notes);
    record.notes.append(&mut listed.notes);
    record.stage = Stage::Open;
    paths.write(record)?;
    workspaces.step(Step::Opened);
    Ok(Opened { folder, notes: record.notes.clone() })
}

/// The files to copy. A folder that its repository ignores is treated as if it were outside of it.
fn list_files(location: &mut Location, without: &BTreeSet<PathBuf>) -> Result<Listed, Error> {
    if location.repository.is_some() {
        let mut listed = file_list::repository(&location.top)?;
        let folder = location.top.join(&location.prefix);
        let is_known = location.prefix.as_os_str().is_empty()
            || listed
                .files
                .range(location.prefix.clone()..)
                .next()
                .is_some_and(|path| path.starts_with(&location.prefix))
            || std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none());
        if is_known {
            listed.files.retain(|path| is_plain(path) && !is_excluded(without, path));
            return Ok(listed);
        }
        location.repository = None;
        location.top = folder;
        location.prefix = PathBuf::new();
        location.notes =
            vec!["the repository ignores the folder: this is a plain copy of it".to_owned()];
    }
    let without = without.clone();
    let mut listed = file_list::walk(&location.top, move |path| is_excluded(&without, path))?;
    listed.files.retain(|path| is_plain(path));
    Ok(listed)
}

/// Whether a path is excluded or lies in an excluded folder.
pub(super) fn is_excluded(without: &BTreeSet<PathBuf>, path: &Path) -> bool {
    !without.is_empty() && path.ancestors().any(|path| without.contains(path))
}

/// The excluded paths, relative to the top. The state folder is always excluded.
fn excluded_paths(
    workspaces: &Workspaces,
    location: &Location,
    without: &BTreeSet<PathBuf>,
) -> BTreeSet<PathBuf> {
    let repo = location.top.join(&location.prefix);
    let all = without.iter().chain([&workspaces.state, &workspaces.worktrees]);
    let below = all.filter_map(|path| {
        let path = repo.join(path);
        let plain = path.strip_prefix(&location.top).map(Path::to_owned).ok();
        plain.or_else(|| real_path(&path).strip_prefix(&location.top).map(Path::to_owned).ok())
    });
    below.filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Creates the folder: a worktree, or a plain one.
fn create_folder(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    location: &Location,
    repository: Option<&Repository>,
    listed: &Listed,
) -> Result<(), Error> {
    let folder = &paths.worktree;
    let Some((repository, head)) =
        repository.and_then(|repository| Some((repository, repository.head.as_ref()?)))
    else {
        std::fs::create_dir_all(folder).map_err(at("create", folder))?;
        if repository.is_some() {
            // Otherwise git would find the repository of the user above it and work on its index.
            GitCommand::new(folder, ["init", "-q", "--template="]).run()?;
        }
        return Ok(());
    };
    let around = folder.parent().unwrap_or(folder);
    std::fs::create_dir_all(around).map_err(at("create", around))?;
    add_worktree(workspaces, &location.top, repository, folder, head)?;
    GitCommand::new(folder, ["read-tree", head]).run()?;
    if !listed.sparse.is_empty() {
        let mut names = Vec::new();
        for path in &listed.sparse {
            names.extend_from_slice(path.as_os_str().as_bytes());
            names.push(0);
        }
        // A file that is staged there but not committed is unknown here. Failing to mark it is
        // harmless.
        let _ = GitCommand::new(folder, ["update-index", "--skip-worktree", "-z", "--stdin"])
            .stdin(names)
            .output();
    }
    Ok(())
}

/// Adds an empty worktree to the list of git.
fn add_worktree(
    workspaces: &Workspaces,
    top: &Path,
    repository: &Repository,
    folder: &Path,
    head: &str,
) -> Result<(), Error> {
    let mut attempts_left = MAX_ATTEMPTS;
    loop {
        let _list = lock::worktree_list(&workspaces.state)?;
        save_patch::remove_worktree_entry(&repository.common, folder);
        let call =
            GitCommand::new(top, ["worktree", "add", "--quiet", "--detach", "--no-checkout"]);
        attempts_left -= 1;
        match call.arg(folder).arg(head).run() {
            Ok(_) => return Ok(()),
            // Another program, which does not use our lock, may have removed the list, as git does
            // with its last entry.
            Err(GitError::Failed { .. }) if attempts_left > 0 => {
                clear(folder).map_err(at("remove", folder))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Saves the bytes of the base: with git those that the repository does not have, without git all
/// of them.
fn save_base(
    paths: &WorkspacePaths,
    record: &Record,
    repository: Option<&Repository>,
    base_files: &mut [BaseFile],
) -> Result<(), Error> {
    if !record.git {
        let store = paths.base.join("content");
        clear(&store).map_err(at("remove", &store))?;
        make_private_folder(&store).map_err(at("create", &store))?;
        for file in base_files.iter().filter(|file| file.content.kind != metadata::Kind::Link) {
            let (from, to) = (paths.worktree.join(&file.path.0), store.join(&file.content.hash));
            if !to.exists() {
                std::fs::copy(&from, to).map_err(at("keep", &from))?;
            }
        }
        return Ok(());
    }
    let folder = paths.base.join("git");
    clear(&folder).map_err(at("remove", &folder))?;
    let scratch_repo = paths.scratch_repo(record);
    scratch_repo.create(
        repository.map(|repository| (repository.common.as_path(), repository.format.as_str())),
    )?;
    let files = base_files.iter().map(|file| (file.path.0.as_path(), file.content.kind));
    let blobs = scratch_repo.store(&paths.worktree, files)?;
    for (file, blob) in base_files.iter_mut().zip(blobs) {
        file.blob = Some(blob);
    }
    Ok(())
}
