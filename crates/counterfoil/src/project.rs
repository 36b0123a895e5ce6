//! The files of a project: its `counterfoil.toml`, its contracts and its state folder.

use crate::input::{self, ContractFile};
use crate::{output, shell};
use anyhow::Result;
use counterfoil_contract::registry::NotFound;
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

/// The folder of the nearest `counterfoil.toml` from the current folder up. It is empty if that is
/// the current folder, so that the names of the files in it are short.
pub(crate) fn current_config_folder() -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?;
    let folder = config_folder(&current)?;
    Some(if folder == current { PathBuf::new() } else { folder })
}

/// Says that a `counterfoil.toml` around the current folder is not read, because it is below the
/// repository that a command works in.
pub(crate) fn note_unread_config(repo: &Path) {
    let current = std::env::current_dir().unwrap_or_default();
    let below =
        current.ancestors().take_while(|folder| *folder != repo && folder.starts_with(repo));
    let Some(folder) = below.filter(|folder| exists(&folder.join(FILE))).last() else { return };
    let message = format!(
        "{} is not read, because the repository is {}; to use it, work in its folder with --repo {}",
        display_path(&folder.join(FILE)),
        display_path(repo),
        shell::quote(&folder.display().to_string())
    );
    output::write_message("note", &message);
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

/// A contract from a file or by its id: a built-in one, one in the given folders, or else one of the
/// project. The others are found even if a contract of the project cannot be loaded.
pub(crate) fn contract(
    id: &str,
    folders: &[PathBuf],
    config_folder: Option<&Path>,
) -> Result<Arc<Contract>> {
    let found = input::contract(id, folders);
    let is_unknown = found.as_ref().is_err_and(anyhow::Error::is::<NotFound>);
    if is_unknown && let Some(all) = with_own_contracts(folders, config_folder) {
        return input::contract(id, &all);
    }
    found.map_err(|error| match config_folder {
        Some(_) => error,
        None => with_folder(error, id, folders, Path::new(""), " without a counterfoil.toml"),
    })
}

/// A contract as [`contract`] finds it for the project around the current folder.
pub(crate) fn contract_here(id: &str, folders: &[PathBuf]) -> Result<Arc<Contract>> {
    contract(id, folders, current_config_folder().as_deref())
}

/// A contract as [`input::contract`] finds it, which does not look into the project. If the project
/// has the contract, the error says how to name its folder.
pub(crate) fn named_contract(id: &str, folders: &[PathBuf]) -> Result<Arc<Contract>> {
    input::contract(id, folders).map_err(|error| match current_config_folder() {
        Some(home) => with_folder(error, id, folders, &home, ""),
        None => error,
    })
}

/// The error that a contract is unknown, with the folder of the project that has it, if it does.
/// `without` says why that folder was not searched.
fn with_folder(
    error: anyhow::Error,
    id: &str,
    folders: &[PathBuf],
    home: &Path,
    without: &str,
) -> anyhow::Error {
    let message = error.downcast_ref::<NotFound>().map(|error| error.message.clone());
    let (Some(message), Some(own)) = (message, contracts_folder(home)) else { return error };
    let files = own_contracts(folders, Some(home)).unwrap_or_default();
    let name = id.split_once('@').map_or(id, |(name, _)| name);
    if !files.iter().any(|file| file.id().as_deref() == Some(name)) {
        return error;
    }
    let folder = shell::quote(&own.to_string_lossy());
    let hint = format!(
        "the project has it in {}, which this command does not search{without}: name it with --contracts {folder}",
        display_path(&own)
    );
    anyhow::Error::new(NotFound { message, hint: Some(hint) })
}

/// The given folders and that with the project's own contracts. None if there is none, or if they
/// include it. No folder is inside another one, so that no file is read twice.
pub(crate) fn with_own_contracts(
    folders: &[PathBuf],
    config_folder: Option<&Path>,
) -> Option<Vec<PathBuf>> {
    let own = config_folder.and_then(contracts_folder)?;
    if folders.iter().any(|folder| is_inside(&own, folder)) {
        return None;
    }
    let others = folders.iter().filter(|folder| !is_inside(folder, &own));
    Some(others.cloned().chain([own.clone()]).collect())
}

/// The files of the project's own contracts that are in none of the given folders.
pub(crate) fn own_contracts(
    folders: &[PathBuf],
    config_folder: Option<&Path>,
) -> Result<Vec<ContractFile>> {
    let Some(own) = config_folder.and_then(contracts_folder) else { return Ok(Vec::new()) };
    let mut files = input::contract_files(&own)?;
    files.retain(|file| !folders.iter().any(|folder| is_inside(&file.path, folder)));
    Ok(files)
}

/// Whether a path is a folder or in it, with all links resolved.
fn is_inside(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// The built-in contracts and those of the project.
pub(crate) fn registry(config_folder: &Path) -> Result<Registry> {
    input::registry(&contracts_folder(config_folder).into_iter().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_of_contracts_is_read_twice() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["contracts/team", "other"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let home = Some(root.path());
        let own = at("contracts");
        for (given, expected) in [
            (vec![], Some(vec![own.clone()])),
            (vec![at("other")], Some(vec![at("other"), own.clone()])),
            (vec![own.clone()], None),
            (vec![at("other/../contracts")], None),
            (vec![root.path().to_owned()], None),
            (vec![at("contracts/team")], Some(vec![own.clone()])),
            (vec![at("missing")], Some(vec![at("missing"), own.clone()])),
        ] {
            assert_eq!(with_own_contracts(&given, home), expected, "{given:?}");
        }
        assert_eq!(with_own_contracts(&[], None), None);
        assert_eq!(with_own_contracts(&[], Some(&at("other"))), None);
    }
}
