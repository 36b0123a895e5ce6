//! Backs up files before protected content is restored over them: they may be somebody's work.

use counterfoil_contract::text::display_path;
use counterfoil_workspace::make_private_folder;
use counterfoil_workspace::snapshot::Snapshotter;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The maximum number of backups of an attempt.
const MAX_BACKUPS: u32 = 10_000;

/// Copies the files at these paths into a new folder, and returns for each path whether there was a
/// file. Existing backups are never overwritten and links are not followed.
pub(super) fn back_up(
    tree: &Snapshotter,
    backup: &Path,
    paths: Vec<PathBuf>,
) -> Vec<(PathBuf, io::Result<bool>)> {
    let mut folder = None;
    // Links are copied last, so that no folder is created through one of them.
    let (links, files): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| tree.is_link(path));
    let copied = files.into_iter().chain(links).map(|path| {
        let copied = copy(tree, backup, &mut folder, &path);
        (path, copied)
    });
    copied.collect()
}

fn copy(
    tree: &Snapshotter,
    backup: &Path,
    folder: &mut Option<PathBuf>,
    path: &Path,
) -> io::Result<bool> {
    tree.copy_out(path, || {
        let folder = match folder {
            Some(folder) => folder,
            None => folder.insert(create_folder(backup)?),
        };
        // Files above the workspace folder are stored beside the others.
        let inside: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let to = folder.join(inside);
        if let Some(parent) = to.parent() {
            make_private_folder(parent)?;
        }
        Ok(to)
    })
}

/// Creates a new folder for a backup.
fn create_folder(backup: &Path) -> io::Result<PathBuf> {
    make_private_folder(backup)?;
    for n in 1..=MAX_BACKUPS {
        let folder = backup.join(n.to_string());
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{} is full", display_path(backup))))
}
