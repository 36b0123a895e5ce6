//! The files of a project: its `counterfoil.toml`, its contracts and its state folder.

use crate::input;
use anyhow::Result;
use counterfoil_contract::text::display_path;
use counterfoil_contract::{Contract, Registry};
use counterfoil_engine::config::{Config, ConfigError, FILE};
use counterfoil_workspace::git::repository_top;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder with a project's own contracts, beside its `counterfoil.toml`.
pub(crate) const CONTRACTS_FOLDER: &str = "contracts";
/// The folder with the runs and other state of a project.
pub(crate) const STATE_FOLDER: &str = ".counterfoil";

/// The folder of the nearest `counterfoil.toml`, from a folder up to the root of its repository or,
/// without a repository, up to the root of the file system.
pub(crate) fn config_folder(folder: &Path) -> Option<PathBuf> {
    folders_up_to_root(folder).find(|folder| exists(&folder.join(FILE))).map(Path::to_owned)
}

/// A folder and its parents up to the root of its repository or, without one, of the file system.
fn folders_up_to_root(folder: &Path) -> impl Iterator<Item = &Path> {
    let root = repository_root(folder);
    let depth = root.map_or(usize::MAX, |root| {
        folder.ancestors().position(|parent| parent == root).unwrap_or_default() + 1
    });
    folder.ancestors().take(depth)
}

/// The former names of the files of a project, and their names now. The old ones are never read.
const OLD_NAMES: [(&str, &str); 2] =
    [("countersign.toml", "counterfoil.toml"), (".countersign", ".counterfoil")];

/// A warning if a folder, or a parent up to the root of its repository, has files with the former
/// name of this program.
pub(crate) fn old_names_warning(folder: &Path) -> Option<String> {
    let fixes: Vec<String> = OLD_NAMES
        .iter()
        .filter_map(|(old, new)| {
            let folder = folders_up_to_root(folder).find(|folder| exists(&folder.join(old)))?;
            let old = folder.join(old);
            Some(if exists(&folder.join(new)) {
                format!("remove {} ({new} is used)", display_path(&old))
            } else {
                format!("rename {} to {new}", display_path(&old))
            })
        })
        .collect();
    let advice = fixes.join(", ");
    (!fixes.is_empty()).then(|| {
        format!(
            "Counterfoil was called Countersign before and does not read the old files: {advice}"
        )
    })
}

/// Whether a path exists, even if it is a broken link.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The root of the repository around a folder.
pub(crate) fn repository_root(folder: &Path) -> Option<PathBuf> {
    repository_top(folder).map(Path::to_owned)
}

/// Loads the `counterfoil.toml` in a folder.
pub(crate) fn load_config(folder: &Path) -> Result<Config, ConfigError> {
    Config::load(folder, folder)
}

/// The folder with a project's own contracts, if it has one.
pub(crate) fn contracts_folder(config_folder: &Path) -> Option<PathBuf> {
    Some(config_folder.join(CONTRACTS_FOLDER)).filter(|folder| folder.is_dir())
}

/// A contract by its id: a built-in one, one in the given folders, or one of the project. A built-in
/// contract is found even if a contract of the project cannot be loaded.
pub(crate) fn contract(
    id: &str,
    folders: &[PathBuf],
    config_folder: Option<&Path>,
) -> Result<Arc<Contract>> {
    if folders.is_empty()
        && let Ok(contract) = counterfoil_packs::registry_for(id).get(id)
    {
        return Ok(contract);
    }
    let mut folders = folders.to_vec();
    folders.extend(config_folder.and_then(contracts_folder));
    input::contract(id, &folders)
}

/// The built-in contracts and those of the project.
pub(crate) fn registry(config_folder: &Path) -> Result<Registry> {
    input::registry(&contracts_folder(config_folder).into_iter().collect::<Vec<_>>())
}
