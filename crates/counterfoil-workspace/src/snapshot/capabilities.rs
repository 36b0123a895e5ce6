//! Finds out what a file system can do, where the configuration of a repository is not trusted.

use super::git::{FsCapabilities, RepositoryLocation};
use counterfoil_process::is_without_modes;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// The capabilities of the file system of a repository. What is configured counts only where it
/// hides nothing: an agent may have written it.
pub(super) fn observed(location: &RepositoryLocation) -> FsCapabilities {
    let configured = location.capabilities;
    let trusted = FsCapabilities::default();
    if configured == trusted {
        return trusted;
    }
    let device = |path: &Path| path.metadata().ok().map(|meta| meta.dev());
    let top = location.top.as_path();
    let git_dir = location.git_dir.as_path();
    let is_same = device(git_dir).is_some() && device(git_dir) == device(top);
    let folders = is_same.then_some(git_dir).into_iter().chain([top]);
    let found = folders
        .map(probe)
        .find_map(Result::ok)
        .unwrap_or_else(|| FsCapabilities { file_mode: !is_without_modes(top), ..trusted });
    FsCapabilities {
        file_mode: configured.file_mode || found.file_mode,
        ignore_case: configured.ignore_case && found.ignore_case,
        symlinks: configured.symlinks || found.symlinks,
    }
}

/// Tries out what is possible in a folder.
fn probe(folder: &Path) -> io::Result<FsCapabilities> {
    let folder = tempfile::Builder::new().prefix(".counterfoil-").tempdir_in(folder)?;
    let path = folder.path().join("probe");
    let file = File::create_new(&path)?;
    let mut keeps = true;
    for mode in [0o600, 0o700] {
        // An error, too, says that the mode cannot be set.
        let set = file.set_permissions(Permissions::from_mode(mode));
        keeps &= set.is_ok() && file.metadata()?.mode() & 0o700 == mode;
    }
    Ok(FsCapabilities {
        file_mode: keeps,
        ignore_case: folder.path().join("PROBE").symlink_metadata().is_ok(),
        symlinks: symlink("probe", folder.path().join("link")).is_ok(),
    })
}
