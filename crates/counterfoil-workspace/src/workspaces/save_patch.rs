//! Removes a workspace and saves its work as a patch.

use super::copy::observe;
use super::disk::{clear, is_plain};
use super::file_list::{self, Parents};
use super::metadata::{self, BaseFile, Listing, Record, Stage, is_missing};
use super::open::is_excluded;
use super::scratch_repo::Difference;
use super::{Error, Step, WorkspacePaths, Workspaces, at, lock, plan, worktrees_folder};
use crate::make_private_folder;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) fn discard(
    workspaces: &Workspaces,
    run: &str,
    id: &str,
) -> Result<Option<String>, Error> {
    let exclusive = lock::exclusive(&workspaces.state)?;
    let paths = workspaces.paths(run, id);
    let Some(record) = paths.record()? else { return Err(paths.not_open()) };
    let kept = save_and_remove(workspaces, &paths, record)?;
    worktrees_folder::remove_if_unused(workspaces, &exclusive);
    Ok(kept)
}

/// Saves the work of a workspace, records where, and removes the workspace.
pub(super) fn save_and_remove(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    mut record: Record,
) -> Result<Option<String>, Error> {
    let kept = match &record.stage {
        Stage::Opening => None,
        Stage::Open => {
            plan::remove_uncommitted(paths)?;
            save(workspaces, paths, &record)?
        }
        Stage::Merging(name) => {
            plan::stop(paths, name)?;
            save(workspaces, paths, &record)?
        }
        Stage::Merged(outcome) => {
            let kept = outcome.kept.clone();
            remove(workspaces, paths, &record)?;
            return Ok(kept);
        }
        Stage::Discarded(kept) => kept.clone(),
    };
    record.stage = Stage::Discarded(kept.clone());
    paths.write(&record)?;
    workspaces.step(Step::Concluded);
    remove(workspaces, paths, &record)?;
    Ok(kept)
}

/// The differences between a workspace and its base, with notes.
pub(super) fn find_differences(
    paths: &WorkspacePaths,
    record: &Record,
) -> Result<(Vec<Difference>, Vec<String>), Error> {
    let base = paths.base.join("base.json");
    let base_files: Vec<BaseFile> = metadata::read(&base)?
        .ok_or_else(|| Error::Damaged { path: base, why: "it does not exist".to_owned() })?;
    let mut base_files: BTreeMap<PathBuf, BaseFile> =
        base_files.into_iter().map(|file| (file.path.0.clone(), file)).collect();
    let without: BTreeSet<PathBuf> = record.without.iter().map(|path| path.0.clone()).collect();
    let mut notes = Vec::new();
    let mut files = match record.listing {
        Listing::Git => {
            let (files, nested) = paths.scratch_repo(record).files(&paths.worktree)?;
            notes.extend(nested.iter().map(|path| {
                let display_path = super::relative_to(&record.prefix.0, path);
                format!("{display_path} is a separate repository: its files are included, its history is not")
            }));
            files
        }
        Listing::Walk => {
            let without = without.clone();
            let listed = file_list::walk(&paths.worktree, move |path| is_excluded(&without, path))?;
            notes.extend(listed.notes);
            listed.files
        }
    };
    files.extend(base_files.keys().cloned());
    let mut parents = Parents::new(&paths.worktree);
    let mut differences = Vec::new();
    for path in files {
        if !is_plain(&path) || is_excluded(&without, &path) {
            continue;
        }
        let base = base_files.remove(&path);
        let full = paths.worktree.join(&path);
        let now = if parents.are_real(&path) {
            observe(&full, base.as_ref().map(|base| (base, record.sealed)))
                .map_err(at("read", &full))?
        } else {
            None
        };
        let same = match (&base, &now) {
            (Some(base), Some(now)) => base.content.is(now),
            (base, now) => base.is_none() && now.is_none(),
        };
        if !same {
            differences.push(Difference { path, base, workspace: now });
        }
    }
    Ok((differences, notes))
}

/// Saves the work as a patch. Returns where, or `None` if there was no work.
fn save(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
) -> Result<Option<String>, Error> {
    if !paths.worktree.is_dir() {
        return Ok(None);
    }
    let (differences, _) = find_differences(paths, record)?;
    if differences.is_empty() {
        return Ok(None);
    }
    write_patch(workspaces, paths, record, &differences).map(Some)
}

/// Writes the differences as a patch, or as files if git cannot. Returns where.
pub(super) fn write_patch(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
    differences: &[Difference],
) -> Result<String, Error> {
    make_private_folder(&paths.kept).map_err(at("create", &paths.kept))?;
    let draft = paths.kept.join(format!("{}.part", paths.name));
    clear(&draft).map_err(at("remove", &draft))?;
    let is_patch = record.git && {
        let file = File::create(&draft).map_err(at("create", &draft))?;
        let end = file.try_clone().map_err(at("create", &draft))?;
        match paths.scratch_repo(record).patch(&paths.worktree, differences, file) {
            Ok(()) => end.sync_all().map(|()| true).map_err(at("write", &draft))?,
            // The objects are shared with the repository, which may have removed them. The files
            // are still here.
            Err(Error::Git(why)) => {
                tracing::warn!(
                    why,
                    "cannot write a patch of the workspace, so its files are saved"
                );
                clear(&draft).map_err(at("remove", &draft))?;
                false
            }
            Err(error) => return Err(error),
        }
    };
    let ending = if is_patch {
        "patch"
    } else {
        write_files(&paths.worktree, &draft, differences)?;
        "files"
    };
    let path = unused_path(&paths.kept, &paths.name, ending, &draft);
    std::fs::rename(&draft, &path).map_err(at("write", &path))?;
    workspaces.step(Step::Kept);
    Ok(workspaces.display_path(&path))
}

/// Without git: copies the changed files to a folder, with a list of the deleted ones.
fn write_files(from: &Path, to: &Path, differences: &[Difference]) -> Result<(), Error> {
    let mut deleted = Vec::new();
    for difference in differences {
        let (source, target) =
            (from.join(&difference.path), to.join("files").join(&difference.path));
        if difference.workspace.is_none() {
            deleted.extend_from_slice(difference.path.as_os_str().as_bytes());
            deleted.push(b'\n');
            continue;
        }
        let folder = target.parent().unwrap_or(to);
        make_private_folder(folder).map_err(at("create", folder))?;
        let copied = match std::fs::read_link(&source) {
            Ok(points_to) => std::os::unix::fs::symlink(points_to, &target),
            Err(_) => std::fs::copy(&source, &target).map(drop),
        };
        copied.map_err(at("keep", &source))?;
    }
    let list = to.join("deleted");
    make_private_folder(to).map_err(at("create", to))?;
    std::fs::write(&list, deleted).map_err(at("write", &list))
}

/// A path that is not in use, or the one with the same content from before a crash.
pub(super) fn unused_path(folder: &Path, name: &str, ending: &str, draft: &Path) -> PathBuf {
    let ours = std::fs::read(draft).ok();
    let mut path = folder.join(format!("{name}.{ending}"));
    for n in 2..10_000 {
        let is_ours = ours.is_some() && std::fs::read(&path).ok() == ours;
        if is_ours || std::fs::symlink_metadata(&path).is_err() {
            break;
        }
        path = folder.join(format!("{name}.{n}.{ending}"));
    }
    path
}

/// Removes a workspace and its base. Its metadata stays.
pub(super) fn remove(
    workspaces: &Workspaces,
    paths: &WorkspacePaths,
    record: &Record,
) -> Result<(), Error> {
    clear(&paths.worktree).map_err(at("remove", &paths.worktree))?;
    if let Some(around) = paths.worktree.parent() {
        // Succeeds only if this was the last workspace of the run.
        let _ = std::fs::remove_dir(around);
    }
    workspaces.step(Step::Removed);
    if let Some(repository) = &record.repository {
        let _list = lock::worktree_list(&workspaces.state)?;
        remove_worktree_entry(&repository.0, &paths.worktree);
    }
    workspaces.step(Step::Forgotten);
    for name in ["git", "content"] {
        let path = paths.base.join(name);
        clear(&path).map_err(at("remove", &path))?;
    }
    let base = paths.base.join("base.json");
    match std::fs::remove_file(&base) {
        Err(error) if !is_missing(&error) => Err(at("remove", &base)(error)),
        _ => Ok(()),
    }
}

/// Removes the entry of a worktree whose folder is gone. Other entries are left alone, stale or
/// not.
pub(super) fn remove_worktree_entry(common: &Path, worktree: &Path) {
    let entries = common.join("worktrees");
    for entry in std::fs::read_dir(&entries).into_iter().flatten().flatten() {
        let ours = match target(&entry.path()) {
            Some(target) => is_same(&target, worktree),
            // Git was killed before it wrote the path of the worktree. The entry is recognised by
            // its name, which only our worktree can have.
            None => worktree.file_name().is_some_and(|name| is_named(&entry.file_name(), name)),
        };
        if ours && clear(&entry.path()).is_err() {
            tracing::warn!(entry = %entry.path().display(), "the entry of a worktree could not be removed");
        }
    }
    // As git does when the last entry is removed.
    let _ = std::fs::remove_dir(entries);
}

/// The worktree that an entry points to. `None` if it is not recorded.
pub(super) fn target(entry: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(entry.join("gitdir")).ok()?;
    let path = Path::new(OsStr::from_bytes(bytes.strip_suffix(b"\n").unwrap_or(&bytes)));
    if path.as_os_str().is_empty() {
        return None;
    }
    entry.join(path).parent().map(Path::to_owned)
}

/// Whether two paths name the same folder, which may not exist.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let around = std::fs::canonicalize(path.parent()?).ok()?;
        Some(around.join(path.file_name()?))
    };
    one == other
        || one.file_name() == other.file_name()
            && real(one).is_some_and(|one| Some(one) == real(other))
}

/// Whether git derived the name of an entry from this one: it appends digits if the name is taken.
fn is_named(entry: &OsStr, name: &OsStr) -> bool {
    entry
        .as_bytes()
        .strip_prefix(name.as_bytes())
        .is_some_and(|rest| rest.iter().all(u8::is_ascii_digit))
}
