//! Setting aside what stands in the way of putting a file back: it may be somebody's work.

use counterfoil_workspace::snapshot::Snapshotter;
use std::io;
use std::path::{Component, Path, PathBuf};

/// An attempt is looked at this often at most.
const MOST_LOOKS: u32 = 10_000;

/// Copies what stands at these paths into a new folder, and says of each whether anything did. What
/// was set aside before is never written over, and no link that somebody put there is followed.
pub(super) fn set_aside(
    tree: &Snapshotter,
    aside: &Path,
    paths: Vec<PathBuf>,
) -> Vec<(PathBuf, io::Result<bool>)> {
    let mut folder = None;
    // Links last: no folder is ever made through one of them.
    let (links, files): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| tree.is_link(path));
    let copied = files.into_iter().chain(links).map(|path| {
        let copied = copy(tree, aside, &mut folder, &path);
        (path, copied)
    });
    copied.collect()
}

fn copy(
    tree: &Snapshotter,
    aside: &Path,
    folder: &mut Option<PathBuf>,
    path: &Path,
) -> io::Result<bool> {
    tree.copy_out(path, || {
        let folder = match folder {
            Some(folder) => folder,
            None => folder.insert(fresh(aside)?),
        };
        // What stands above the workspace's folder is kept among the rest.
        let inside: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let to = folder.join(inside);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(to)
    })
}

/// A folder that nothing was set aside in yet.
fn fresh(aside: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(aside)?;
    for n in 1..=MOST_LOOKS {
        let folder = aside.join(n.to_string());
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{} is full", aside.display())))
}
