//! The policy: which places a contained command may write, read, or not see. Pure: the folders were
//! found before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a contained command may do in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read and execute.
    Read,
    /// It sees nothing there.
    Hidden,
    /// An empty folder of its own, which is gone afterwards.
    Private,
    /// Read and write.
    Write,
}

/// A file or folder, and what a contained command may do in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path, without symbolic links.
    pub path: PathBuf,
    /// What the command may do.
    pub access: Access,
    /// Whether it is a folder.
    pub folder: bool,
}

/// The files and folders that a policy is made of: absolute, without symbolic links, existing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// The work tree. The command may write it.
    pub(super) workspace: PathBuf,
    /// What belongs to git: `.git` of the work tree, its git folder and the common one.
    pub(super) git: Vec<PathBuf>,
    /// The state folder of runs.
    pub(super) state: Option<PathBuf>,
    /// The home folder.
    pub(super) home: Option<PathBuf>,
    /// Caches of build tools.
    pub(super) caches: Vec<PathBuf>,
    /// Folders for temporary files.
    pub(super) temporary: Vec<PathBuf>,
    /// Folders with the sockets of services.
    pub(super) sockets: Vec<PathBuf>,
    /// What stays visible in such a folder.
    pub(super) visible: Vec<PathBuf>,
    /// Files and folders with credentials.
    pub(super) secrets: Vec<PathBuf>,
    /// Where programs are that the command uses.
    pub(super) programs: Vec<PathBuf>,
    /// What the settings make writable.
    pub(super) writable: Vec<PathBuf>,
    /// What the settings hide.
    pub(super) hidden: Vec<PathBuf>,
    /// Which of these paths are files.
    pub(super) files: std::collections::BTreeSet<PathBuf>,
}

/// The places of a policy, parents before what is in them. A place that changes nothing is left out.
pub(super) fn places(around: &Surroundings) -> Vec<Place> {
    let mut access: BTreeMap<&Path, Access> = BTreeMap::new();
    // The later entry wins if two name the same path.
    let known = || {
        let own = [Some(&around.workspace), around.state.as_ref(), around.home.as_ref()];
        let lists = [&around.git, &around.caches, &around.programs, &around.writable];
        own.into_iter().flatten().chain(lists.into_iter().flatten())
    };
    for socket in &around.sockets {
        access.insert(socket, Access::Hidden);
        for path in known().filter(|path| path.starts_with(socket)) {
            access.insert(path, Access::Read);
        }
    }
    for folder in &around.temporary {
        access.insert(folder, Access::Private);
        // What is known in there stays visible, with what is beside it.
        for path in known() {
            if let Some(top) = entry_of(folder, path) {
                access.insert(top, Access::Read);
            }
        }
    }
    access.extend(around.visible.iter().map(|path| (path.as_path(), Access::Read)));
    access.extend(around.home.iter().map(|path| (path.as_path(), Access::Read)));
    access.extend(around.secrets.iter().map(|path| (path.as_path(), Access::Hidden)));
    access.extend(around.caches.iter().map(|path| (path.as_path(), Access::Write)));
    access.extend(around.writable.iter().map(|path| (path.as_path(), Access::Write)));
    access.insert(&around.workspace, Access::Write);
    access.extend(around.git.iter().map(|path| (path.as_path(), Access::Read)));
    access.extend(around.state.iter().map(|path| (path.as_path(), Access::Read)));
    // A run in a worktree of the state folder: what the run works in is not what it keeps.
    if around.state.as_ref() == Some(&around.workspace) {
        access.insert(&around.workspace, Access::Write);
    }
    access.extend(around.hidden.iter().map(|path| (path.as_path(), Access::Hidden)));
    // A folder between a writable one and one that is not could be moved away, with what is in it.
    let pins: Vec<&Path> = access
        .iter()
        .filter(|(path, access)| **access != Access::Write && path.parent().is_some())
        .flat_map(|(path, _)| between(path, &access))
        .collect();
    for pin in pins {
        access.entry(pin).or_insert(Access::Write);
    }
    let pinned = |path: &Path| access.keys().any(|other| *other != path && other.starts_with(path));
    let mut places: Vec<Place> = access
        .iter()
        .filter(|(path, own)| {
            let above = path.ancestors().skip(1).find_map(|above| access.get(above));
            let above = above.copied().unwrap_or(Access::Read);
            // Nothing is visible in an empty folder anyway.
            if (above, **own) == (Access::Private, Access::Hidden) {
                return false;
            }
            above != **own || **own == Access::Private || (**own == Access::Write && pinned(path))
        })
        .map(|(path, access)| Place {
            path: path.to_path_buf(),
            access: *access,
            folder: !around.files.contains(*path),
        })
        .collect();
    places.sort_by_key(|place| place.path.components().count());
    places
}

/// The entry of a folder that a path lies in, or is.
fn entry_of<'a>(folder: &Path, path: &'a Path) -> Option<&'a Path> {
    let depth = folder.components().count() + 1;
    (path.starts_with(folder) && path != folder)
        .then(|| path.ancestors().find(|above| above.components().count() == depth))
        .flatten()
}

/// The folders between a path and the place that it lies in, if that one is writable.
fn between<'a>(path: &'a Path, access: &BTreeMap<&Path, Access>) -> Vec<&'a Path> {
    let mut folders = Vec::new();
    for above in path.ancestors().skip(1) {
        match access.get(above) {
            Some(Access::Write) => return folders,
            Some(_) => return Vec::new(),
            None => folders.push(above),
        }
    }
    Vec::new()
}

/// What the policy says of a path.
#[cfg(test)]
pub(super) fn access_of(places: &[Place], path: &Path) -> Access {
    let place = places.iter().rev().find(|place| path.starts_with(&place.path));
    place.map_or(Access::Read, |place| place.access)
}

#[cfg(test)]
#[path = "places/tests.rs"]
mod tests;
