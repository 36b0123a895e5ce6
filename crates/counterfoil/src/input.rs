//! Reading what was named on the command line: bounded, and with errors that name the thing.

use crate::cli::Place;
use anyhow::{Context, Result, bail};
use counterfoil_contract::{Contract, Registry, ResolveError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name and the bytes of a file, or of standard input for `-`. At most one byte more than
/// `limit` is read: enough to see that it is too much.
pub(crate) fn read(path: &Path, limit: usize) -> Result<(String, Vec<u8>)> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin()
            .lock()
            .take(most)
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        return Ok(("<stdin>".to_owned(), bytes));
    }
    let name = path.display().to_string();
    if path.is_dir() {
        bail!("{name} is a folder; name a file, or - for standard input");
    }
    let file = std::fs::File::open(path).with_context(|| format!("cannot open {name}"))?;
    file.take(most).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    Ok((name, bytes))
}

/// The built-in contracts and those in the given folders.
pub(crate) fn registry(folders: &[PathBuf]) -> Result<Registry> {
    let mut registry = counterfoil_packs::registry();
    for folder in folders {
        registry.add_folder(folder)?;
    }
    Ok(registry)
}

/// A contract by id, or from a file if the name looks like one.
pub(crate) fn contract(name: &str, folders: &[PathBuf]) -> Result<Arc<Contract>> {
    let path = Path::new(name);
    let looks_like_file = path
        .extension()
        .is_some_and(|extension| matches!(extension.to_str(), Some("yaml" | "yml" | "json")));
    if looks_like_file {
        return Ok(Arc::new(Contract::from_file(path)?));
    }
    // Most of the time one contract is wanted, and its pack is enough to have it.
    if folders.is_empty()
        && let Ok(contract) = counterfoil_packs::registry_for(name).get(name)
    {
        return Ok(contract);
    }
    registry(folders)?.get(name).map_err(|error| match error {
        ResolveError::NotFound(error) => anyhow::Error::new(error),
        ResolveError::Load(error) => anyhow::Error::new(error),
    })
}

/// Where the work is done: the folder that was named, or the repository around the current folder.
pub(crate) fn repository(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        return named
            .canonicalize()
            .with_context(|| format!("cannot open the repository {}", named.display()));
    }
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let around = here
        .ancestors()
        .find(|folder| folder.join(".git").exists() || folder.join(".counterfoil").is_dir());
    Ok(around.unwrap_or(&here).to_owned())
}

/// The folder that keeps the runs.
pub(crate) fn state(place: &Place) -> Result<PathBuf> {
    match &place.state {
        Some(state) => Ok(state.clone()),
        None => Ok(repository(place.repo.as_deref())?.join(".counterfoil")),
    }
}
