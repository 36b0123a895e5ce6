//! Decides which programs of a repository `git commit` runs: hooks, signing programs, filters.

use counterfoil_contract::text::join_limited;
use counterfoil_workspace::git::programs;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The maximum number of names in a note.
const MAX_NAMES: usize = 10;

/// What a commit runs of the repository's own programs.
pub(super) struct TrustedPrograms {
    /// `key=value` for each setting that is used as it was.
    pub(super) overrides: Vec<String>,
    /// The folder with the hooks that are run, if it is not the repository's own.
    pub(super) hooks: Option<tempfile::TempDir>,
    /// What is not used.
    pub(super) notes: Vec<String>,
}

/// Decides which programs of the repository a commit runs: those that are as they were when the run
/// began. A hook that was changed or removed would have judged the commit, so there is none then.
pub(super) fn trusted_programs(folder: &Path) -> Result<TrustedPrograms, String> {
    let changes = programs::changes(folder)
        .map_err(|error| format!("the settings of git cannot be used: {error}"))?;
    let Some(changes) = changes else {
        // No agent has worked in this run.
        return Ok(TrustedPrograms { overrides: Vec::new(), hooks: None, notes: Vec::new() });
    };
    let list = |names: &BTreeSet<String>| join_limited(names.iter().map(String::as_str), MAX_NAMES);
    if !changes.lost_hooks.is_empty() {
        return Err(format!(
            "nothing was committed, because hooks changed since the run began: {}; look at them, and commit yourself",
            list(&changes.lost_hooks)
        ));
    }
    let mut notes = Vec::new();
    if !changes.settings.is_empty() {
        let names = list(&changes.settings);
        notes.push(format!(
            "settings of git that changed since the run began were not used: {names}"
        ));
    }
    if !changes.new_hooks.is_empty() {
        let names = list(&changes.new_hooks);
        notes.push(format!("hooks that are new since the run began were not run: {names}"));
    }
    // A folder of its own in any case: what is added to the repository's later is not run either.
    let hooks = hooks_folder(&changes.kept_hooks)
        .map_err(|error| format!("hooks cannot be run: {error}"))?;
    let hooks = Some(hooks);
    Ok(TrustedPrograms { overrides: changes.overrides, hooks, notes })
}

/// A folder with some hooks. Each is started by its own path, beside which it may expect other files.
fn hooks_folder(hooks: &BTreeMap<String, PathBuf>) -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("counterfoil-hooks-").tempdir()?;
    for (name, path) in hooks {
        let path = path.to_string_lossy();
        let quoted = shlex::try_quote(&path).map_err(std::io::Error::other)?;
        let file = folder.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\nexec {quoted} \"$@\"\n"))?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(folder)
}
