//! A project as people set it up: its `counterfoil.toml`, and the contracts of its own.

use crate::input;
use anyhow::Result;
use counterfoil_contract::{Contract, Registry};
use counterfoil_engine::config::{Config, ConfigError, FILE};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder with a project's own contracts, beside its `counterfoil.toml`.
pub(crate) const CONTRACTS: &str = "contracts";
/// The folder that keeps what is ours.
pub(crate) const STATE: &str = ".counterfoil";

/// The folder of the nearest `counterfoil.toml`, from a folder up to the top of its repository;
/// without a repository, all the way up.
pub(crate) fn home(folder: &Path) -> Option<PathBuf> {
    let top = top(folder);
    folder
        .ancestors()
        .find(|above| above.join(FILE).symlink_metadata().is_ok() || top.as_deref() == Some(*above))
        .filter(|found| found.join(FILE).symlink_metadata().is_ok())
        .map(Path::to_owned)
}

/// The top of the repository around a folder.
pub(crate) fn top(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned)
}

/// What a project says, by the folder of its `counterfoil.toml`.
pub(crate) fn config(home: &Path) -> Result<Config, ConfigError> {
    Config::load(home, home)
}

/// The folder with a project's own contracts, if it has one.
pub(crate) fn contracts(home: &Path) -> Option<PathBuf> {
    Some(home.join(CONTRACTS)).filter(|folder| folder.is_dir())
}

/// A contract by its id: a built-in one, one in the given folders, or one of the project's own. A
/// contract that is broken stands in the way of its own use alone where it can be had without it.
pub(crate) fn contract(id: &str, given: &[PathBuf], home: Option<&Path>) -> Result<Arc<Contract>> {
    if given.is_empty()
        && let Ok(contract) = counterfoil_packs::registry_for(id).get(id)
    {
        return Ok(contract);
    }
    let mut folders = given.to_vec();
    folders.extend(home.and_then(contracts));
    input::contract(id, &folders)
}

/// The built-in contracts and the project's own.
pub(crate) fn registry(home: &Path) -> Result<Registry> {
    input::registry(&contracts(home).into_iter().collect::<Vec<_>>())
}
