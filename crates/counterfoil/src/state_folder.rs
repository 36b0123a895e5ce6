//! Where the runs of a repository are kept: outside of the work tree, so that neither `git clean`
//! nor an agent that removes the wrong folder destroys them.
//!
//! In this order: `--state`, the variable `COUNTERFOIL_STATE`, the key `state` of
//! `counterfoil.toml`, and `counterfoil/NAME-HASH` in the user's folder for state. The hash is that
//! of the git folder that all worktrees of the repository share, so that each of them finds the
//! same runs without a pointer file; without git it is that of the folder itself.

use crate::cli::StateLocation;
use crate::project::{self, STATE_FOLDER};
use crate::{input, output, shell};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::text::display_path;
use counterfoil_engine::config::FILE;
use counterfoil_engine::{Engine, journal};
use counterfoil_workspace::git;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The variable that names the state folder. A relative path begins at the repository.
const VARIABLE: &str = "COUNTERFOIL_STATE";

/// The folder in the work tree with the only runs of the repository that was looked at.
static IN_TREE: OnceLock<PathBuf> = OnceLock::new();

/// The folder with the runs.
pub(crate) fn of(location: &StateLocation) -> Result<PathBuf> {
    match &location.state {
        Some(state) => Ok(state.clone()),
        None => of_repository(&input::repository(location.repo.as_deref())?),
    }
}

/// The folder with the runs of a repository, if none is named. What there is to say about it is
/// said once.
pub(crate) fn of_repository(repo: &Path) -> Result<PathBuf> {
    static SAID: std::sync::Once = std::sync::Once::new();
    let found = find(repo)?;
    if let Some(note) = found.note {
        SAID.call_once(|| output::write_message("note", &note));
    }
    if let Some(in_tree) = found.in_tree {
        // Whatever was found first was said.
        let _ = IN_TREE.set(in_tree);
    }
    Ok(found.folder)
}

/// The location by which later commands find a state folder. An agent may have removed the
/// repository by which it was found.
pub(crate) fn lasting(location: &StateLocation, state: &Path) -> StateLocation {
    let found = input::repository(location.repo.as_deref()).and_then(|repo| find(&repo));
    let is_found = location.state.is_some() || found.is_ok_and(|found| found.folder == state);
    let state = if is_found { location.state.clone() } else { Some(state.to_owned()) };
    StateLocation { state, ..location.clone() }
}

/// Opens a state folder, and creates it if it does not exist.
pub(crate) fn open(state: &Path) -> Result<Engine> {
    let keys = keys_folder();
    let engine = Engine::open(state, keys.as_deref())?;
    if keys.is_none() {
        let note = "the journal has no key (HOME and XDG_DATA_HOME are not set), so changes to it \
                    by other programs are not noticed";
        output::write_message("note", note);
    }
    say_notices(&engine);
    Ok(engine)
}

/// Opens a state folder for reading only.
pub(crate) fn open_to_read(state: &Path) -> Result<Engine> {
    let engine = Engine::open_to_read(state, keys_folder().as_deref())?;
    say_notices(&engine);
    Ok(engine)
}

/// Whether the state folder has runs. An error if it had some and they are lost.
pub(crate) fn has_runs(state: &Path) -> Result<bool> {
    journal::refuse_lost(state, keys_folder().as_deref())?;
    Ok(state.join("journal.db").exists())
}

/// Returns an error if the state folder has no runs. Commands that only read create no journal.
pub(crate) fn require_runs(state: &Path) -> Result<()> {
    if has_runs(state)? {
        return Ok(());
    }
    let hint = match IN_TREE.get() {
        Some(in_tree) => format!("read those in the work tree with `{}`", state_flag(in_tree)),
        None => "start one with `counterfoil run`".to_owned(),
    };
    bail!("there are no runs in {}; {hint}", display_path(state))
}

/// The option that names a state folder.
fn state_flag(folder: &Path) -> String {
    format!("--state {}", shell::quote(&folder.display().to_string()))
}

fn say_notices(engine: &Engine) {
    for notice in engine.journal().notices() {
        output::write_message("note", &notice.to_string());
    }
}

/// The folder with the keys of journals: outside of the state folders, so that a program that may
/// write a journal need not be able to read its key.
pub(crate) fn keys_folder() -> Option<PathBuf> {
    let base = base(std::env::var_os("XDG_DATA_HOME"), std::env::home_dir(), ".local/share")?;
    Some(base.join("keys"))
}

/// The repository that a command about a run works on: the one that is named, else the one that
/// contains the state folder, which may have been moved with it, else the one that the run
/// recorded, unless it is gone.
pub(crate) fn repository_of_run(
    location: &StateLocation,
    state: &Path,
    recorded: &str,
) -> Result<PathBuf> {
    if location.repo.is_some() {
        return input::repository(location.repo.as_deref());
    }
    let recorded = PathBuf::from(recorded);
    if location.state.is_some() {
        return Ok(recorded);
    }
    let current = input::repository(None)?;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_moved = real(state).starts_with(real(&current)) || !recorded.is_dir();
    Ok(if is_moved { current } else { recorded })
}

/// The state folder of a repository, and what to tell the user about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) folder: PathBuf,
    pub(crate) note: Option<String>,
    /// The folder in the work tree, if only that one has runs: those of a demo, or of somebody who
    /// named it.
    in_tree: Option<PathBuf>,
}

/// The state folder of a repository that was not named on the command line.
pub(crate) fn find(repo: &Path) -> Result<Found> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return Ok(Found { folder: repo.join(named), note: None, in_tree: None });
    }
    if let Some(folder) = configured(repo)? {
        return Ok(Found { folder, note: None, in_tree: None });
    }
    let base = base(std::env::var_os("XDG_STATE_HOME"), std::env::home_dir(), ".local/state");
    Ok(by_default(repo, base.as_deref()))
}

/// The program's folder in one of the user's: the one that a variable names, else a default in the
/// home folder, which is that of the user's account if `HOME` is not set. A relative path is
/// ignored, as the specification of these variables says.
fn base(xdg: Option<OsString>, home: Option<PathBuf>, default: &str) -> Option<PathBuf> {
    let xdg = xdg.map(PathBuf::from).filter(|path| path.is_absolute());
    let home = home.filter(|home| home.is_absolute());
    xdg.or_else(|| Some(home?.join(default))).map(|base| base.join("counterfoil"))
}

fn by_default(repo: &Path, base: Option<&Path>) -> Found {
    let in_tree = repo.join(STATE_FOLDER);
    let Some(base) = base else {
        let note = format!(
            "there is no home folder for state (HOME and XDG_STATE_HOME are not set), so the runs \
             are kept in {}, where an agent can remove them",
            display_path(&in_tree)
        );
        return Found { folder: in_tree, note: Some(note), in_tree: None };
    };
    let folder = base.join(name(repo));
    let has_runs = |folder: &Path| folder.join("journal.db").exists();
    let in_tree = (has_runs(&in_tree) && !has_runs(&folder)).then_some(in_tree);
    let note = in_tree.as_deref().map(|in_tree| {
        format!(
            "the runs in {} are only found with `{}`",
            display_path(in_tree),
            state_flag(in_tree)
        )
    });
    Found { folder, note, in_tree }
}

/// The name of the state folder of a repository: readable, and different for each repository.
fn name(repo: &Path) -> String {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let repo = real(repo);
    let common = git::repository_top(&repo).and_then(git::common_folder);
    let identity = common.as_deref().unwrap_or(&repo);
    // The repository's folder is around its git folder. A bare one is its git folder.
    let shown = match identity.file_name() {
        Some(git) if git == ".git" => identity.parent().unwrap_or(identity),
        _ => identity,
    };
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let shown = shown.file_name().unwrap_or_default().to_string_lossy();
    let shown: String =
        shown.chars().take(40).map(|char| if plain(char) { char } else { '-' }).collect();
    let shown = shown.trim_start_matches(['.', '-']);
    let shown = if shown.is_empty() { "root" } else { shown };
    let hash = hex::encode(Sha256::digest(identity.as_os_str().as_bytes()));
    format!("{shown}-{}", hash.get(..12).unwrap_or(&hash))
}

/// The folder that the key `state` of the project's `counterfoil.toml` names, relative to that file.
/// Only this key is read: an error in another part of the file does not hide the runs.
fn configured(repo: &Path) -> Result<Option<PathBuf>> {
    let Some(home) = project::config_folder(repo) else { return Ok(None) };
    let path = home.join(FILE);
    let name = display_path(&path);
    // A pipe in its place is not opened: that would wait for a writer.
    let bytes = counterfoil_verify::config::read(&path).map_err(|why| anyhow!("{name}: {why}"))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    if !text.contains("state") {
        return Ok(None);
    }
    let file: toml_edit::DocumentMut = text
        .parse()
        .with_context(|| format!("{name} cannot be read, so its key `state` cannot"))?;
    let Some(value) = file.get("state") else { return Ok(None) };
    match value.as_str().map(str::trim) {
        Some(folder) if !folder.is_empty() => Ok(Some(home.join(folder))),
        _ => bail!("{name}: `state` must be the path of a folder, such as state = \"../runs\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_for_state_is_absolute_or_none() {
        let path = |text: &str| Some(PathBuf::from(text));
        for (xdg, home, expected) in [
            (Some("/x"), path("/h"), path("/x/counterfoil")),
            (Some("x"), path("/h"), path("/h/.local/state/counterfoil")),
            (Some(""), path("/h"), path("/h/.local/state/counterfoil")),
            (None, path("/h"), path("/h/.local/state/counterfoil")),
            (None, path("h"), None),
            (None, path(""), None),
            (None, None, None),
        ] {
            let found = base(xdg.map(OsString::from), home.clone(), ".local/state");
            assert_eq!(found, expected, "{xdg:?} {home:?}");
        }
    }

    #[test]
    fn without_a_home_the_runs_are_in_the_tree_and_that_is_said() {
        let found = by_default(Path::new("/nowhere/repo"), None);
        assert_eq!(found.folder, Path::new("/nowhere/repo/.counterfoil"));
        assert!(found.note.unwrap().contains("HOME and XDG_STATE_HOME are not set"));
    }

    #[test]
    fn names_are_readable_and_different() {
        let [one, other] =
            ["/nowhere/a/my repo", "/nowhere/b/my repo"].map(|path| name(Path::new(path)));
        assert!(one.starts_with("my-repo-") && other.starts_with("my-repo-"), "{one} {other}");
        assert_ne!(one, other);
        assert!(name(Path::new("/")).starts_with("root-"));
        assert!(name(Path::new("/nowhere/.hidden")).starts_with("hidden-"));
    }
}
