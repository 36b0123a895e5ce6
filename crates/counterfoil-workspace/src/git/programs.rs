//! Programs that a repository makes git run: hooks, filters, signing programs. An agent can add some
//! in passing, and they would run with the rights of the engine. So the settings of the start of a
//! run count: [`trust`] remembers them, and every command of ours runs with them.

use super::settings::{self, SettingsCache};
use super::{GitError, common_folder, repository_top};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Settings with these names start programs, or decide which ones are started, or what is committed.
const PROGRAM_SETTINGS: [&str; 21] = [
    "core.hookspath",
    "core.fsmonitor",
    "core.attributesfile",
    "core.autocrlf",
    "core.editor",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.sshcommand",
    "core.askpass",
    "core.alternaterefscommand",
    "commit.gpgsign",
    "gpg.format",
    "gpg.program",
    "diff.external",
    "interactive.difffilter",
];
/// So do settings in these sections, with these last parts.
const PROGRAM_SECTIONS: [(&str, &[&str]); 6] = [
    ("gpg.", &["program", "defaultkeycommand"]),
    ("filter.", &["clean", "smudge", "process", "required"]),
    ("trailer.", &["command", "cmd"]),
    ("diff.", &["command", "textconv"]),
    ("merge.", &["driver"]),
    ("hook.", &["command", "event"]),
];
/// What counts where nothing is configured.
const DEFAULT_VALUES: [(&str, &str); 15] = [
    ("core.fsmonitor", "false"),
    ("core.autocrlf", "false"),
    ("core.eol", "native"),
    ("core.filemode", "true"),
    ("core.ignorecase", "false"),
    ("core.safecrlf", "warn"),
    ("core.sparsecheckout", "false"),
    ("core.sparsecheckoutcone", "false"),
    ("core.symlinks", "true"),
    ("commit.gpgsign", "false"),
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.format", "openpgp"),
];
/// Commands that run no program of the repository.
const PLAIN_COMMANDS: [&str; 14] = [
    "rev-parse",
    "for-each-ref",
    "cat-file",
    "rev-list",
    "log",
    "config",
    "symbolic-ref",
    "var",
    "init",
    "diff-tree",
    "check-ignore",
    "check-attr",
    "ls-tree",
    "show-ref",
];
/// The names of hooks. Git runs nothing else of the folder by itself.
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];
/// How many other files beside the hooks are looked at. Hooks may source them.
const MAX_FILES_BESIDE: usize = 1000;
/// The largest hook that is trusted.
const MAX_HOOK_BYTES: u64 = 256 << 20;

/// What git of a repository runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitPrograms {
    /// The values of each setting, by its name.
    settings: BTreeMap<String, Vec<String>>,
    /// The git folder that all worktrees share, from the top; none without a repository.
    common: Option<PathBuf>,
    /// The folder with the hooks, from the top; none without a repository.
    hooks_folder: Option<PathBuf>,
    /// The digest of each executable hook; none if it is too large to be trusted.
    hooks: BTreeMap<String, Option<String>>,
    /// The digest of each other file beside the hooks.
    beside: BTreeMap<String, Option<String>>,
}

/// What changed since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramChanges {
    /// `key=value` for each setting that has to be overridden, so that git runs what it ran then.
    pub overrides: Vec<String>,
    /// The names of the settings that changed.
    pub settings: BTreeSet<String>,
    /// Hooks that are new. They are not run.
    pub new_hooks: BTreeSet<String>,
    /// Hooks that were changed or removed, and files beside them.
    pub lost_hooks: BTreeSet<String>,
    /// The unchanged hooks.
    pub kept_hooks: BTreeMap<String, PathBuf>,
}

impl ProgramChanges {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.new_hooks.is_empty() && self.lost_hooks.is_empty()
    }
}

/// The repository of a run, as it was when the run began.
#[derive(Clone, Debug)]
struct TrustedRepository {
    /// The folder that the run works in, or the top of its repository.
    top: PathBuf,
    /// What its git ran; an error if that could not be read.
    programs: Result<GitPrograms, String>,
}

impl TrustedRepository {
    /// The git folder that all worktrees share; none if there was no repository.
    fn common(&self) -> Option<PathBuf> {
        Some(self.top.join(self.programs.as_ref().ok()?.common.as_ref()?))
    }
}

/// The repositories of the runs of this process.
static TRUSTED: LazyLock<Mutex<Vec<TrustedRepository>>> = LazyLock::new(Mutex::default);

/// Remembers what the git of the repository around a folder may run from now on. Where there is no
/// repository yet, it is what git runs in one without settings of its own.
pub fn trust(folder: &Path, programs: Result<GitPrograms, String>) {
    let top = top(folder);
    let mut trusted = TRUSTED.lock().unwrap_or_else(PoisonError::into_inner);
    trusted.retain(|known| known.top != top);
    trusted.push(TrustedRepository { top, programs });
}

/// What changed in the repository around a folder since [`trust`] was called for it. None if it never
/// was.
///
/// # Errors
///
/// Git cannot read its settings, could not when the run began, or there is another repository than
/// then.
pub fn changes(folder: &Path) -> Result<Option<ProgramChanges>, GitError> {
    let Some(trusted) = trusted(folder) else { return Ok(None) };
    let refuse = |reason: String| GitError::NotRun { command: "config".to_owned(), reason };
    let before = trusted.common();
    let start = trusted.programs.map_err(|why| {
        refuse(format!("its settings could not be read when the run began ({why})"))
    })?;
    if before.is_some() && before != common(folder) {
        let reason = "the git folder is another one than when the run began".to_owned();
        return Err(refuse(reason));
    }
    Ok(Some(start.changes(&trusted.top, &GitPrograms::read(folder)?)))
}

/// Whether there was a repository around a folder when [`trust`] was called.
pub fn had_repository(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let trusted = TRUSTED.lock().unwrap_or_else(PoisonError::into_inner);
    trusted.iter().any(|known| folder.starts_with(&known.top) && known.common().is_some())
}

/// What is remembered of the repository around a folder. A worktree shares the git folder; otherwise
/// the place counts, so that a git folder that was moved or exchanged is noticed.
fn trusted(folder: &Path) -> Option<TrustedRepository> {
    let (top, common) = (top(folder), common(folder));
    let trusted = TRUSTED.lock().unwrap_or_else(PoisonError::into_inner);
    let shares = |known: &&TrustedRepository| common.is_some() && known.common() == common;
    let found = trusted.iter().find(shares);
    found.or_else(|| trusted.iter().find(|known| known.top == top)).cloned()
}

/// The top of the repository around a folder, else the folder, without symbolic links.
fn top(folder: &Path) -> PathBuf {
    let top = repository_top(folder).unwrap_or(folder);
    top.canonicalize().unwrap_or_else(|_| top.to_owned())
}

/// The settings that a command of ours needs, so that git runs what it ran at the start.
pub(super) fn overrides(folder: &Path, command: &str) -> Result<Vec<String>, GitError> {
    if PLAIN_COMMANDS.contains(&command) {
        return Ok(Vec::new());
    }
    Ok(changes(folder)?.map(|changes| changes.overrides).unwrap_or_default())
}

impl GitPrograms {
    /// Reads what the git of the repository around a folder runs.
    ///
    /// # Errors
    ///
    /// Git cannot read its settings.
    pub fn read(folder: &Path) -> Result<Self, GitError> {
        Ok(Self::from_settings(folder, settings::list(folder)?))
    }

    /// Reads it, and lists the settings of git only if one of their files changed.
    ///
    /// # Errors
    ///
    /// Git cannot read its settings.
    pub fn read_changed(folder: &Path, cache: &SettingsCache) -> Result<Self, GitError> {
        Ok(Self::from_settings(folder, cache.list(folder)?))
    }

    fn from_settings(folder: &Path, listed: Vec<settings::Setting>) -> Self {
        let mut settings: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in listed {
            // Our own commands set these themselves.
            let is_ours = super::SAFE_CONFIG.iter().any(|ours| {
                ours.split_once('=')
                    .is_some_and(|(name, ours)| name.eq_ignore_ascii_case(&key) && ours == value)
            });
            if is_program(&key) && !is_ours {
                settings.entry(key).or_default().push(value);
            }
        }
        let hooks_folder = match settings.get("core.hookspath").and_then(|all| all.last()) {
            Some(path) => Some(top(folder).join(expand_home(path))),
            None => common(folder).map(|common| common.join("hooks")),
        };
        let hooks = hooks_folder.as_deref().map(read_hooks).unwrap_or_default();
        let beside = hooks_folder.as_deref().filter(|_| !hooks.is_empty()).map(read_beside);
        // From the top, so that a repository can be moved while a run waits.
        let top = top(folder);
        let from_top = |path: PathBuf| path.strip_prefix(&top).map(Path::to_owned).unwrap_or(path);
        Self {
            settings,
            common: common(folder).map(from_top),
            hooks_folder: hooks_folder.map(from_top),
            hooks,
            beside: beside.unwrap_or_default(),
        }
    }

    /// What counts as trusted when a person goes on with a run. `seen` was there when no agent was at
    /// work any more, and `now` is there: what differs was changed since then, by somebody else.
    #[must_use]
    pub fn with_changes_since(mut self, seen: &Self, now: &Self) -> Self {
        take_over(&mut self.settings, &seen.settings, &now.settings);
        take_over(&mut self.hooks, &seen.hooks, &now.hooks);
        take_over(&mut self.beside, &seen.beside, &now.beside);
        self
    }

    /// What is different now, given the top of the repository.
    fn changes(&self, top: &Path, now: &Self) -> ProgramChanges {
        let mut changes = ProgramChanges::default();
        let keys: BTreeSet<&String> = self.settings.keys().chain(now.settings.keys()).collect();
        for key in keys {
            if self.settings.get(key) == now.settings.get(key) {
                continue;
            }
            changes.settings.insert(key.clone());
            match self.settings.get(key) {
                Some(values) => {
                    changes.overrides.extend(values.iter().map(|value| format!("{key}={value}")));
                }
                None => changes.overrides.push(format!("{key}={}", without_value(key))),
            }
        }
        // The folder may be another one now. A hook counts where it was.
        let is_same = |name: &String, was: &Option<String>| {
            let path = self.hooks_folder.as_ref().map(|folder| top.join(folder).join(name));
            path.filter(|path| was.is_some() && digest(path) == *was)
        };
        for (name, was) in &self.hooks {
            match is_same(name, was) {
                Some(path) => drop(changes.kept_hooks.insert(name.clone(), path)),
                None => drop(changes.lost_hooks.insert(name.clone())),
            }
        }
        let beside = self.beside.iter().filter(|(name, was)| is_same(name, was).is_none());
        changes.lost_hooks.extend(beside.map(|(name, _)| name.clone()));
        let new = now.hooks.keys().filter(|name| !self.hooks.contains_key(*name));
        changes.new_hooks.extend(new.cloned());
        changes
    }
}

/// Takes over what differs between two maps.
fn take_over<V: Clone + PartialEq>(
    to: &mut BTreeMap<String, V>,
    seen: &BTreeMap<String, V>,
    now: &BTreeMap<String, V>,
) {
    for name in seen.keys().chain(now.keys()).filter(|name| seen.get(*name) != now.get(*name)) {
        match now.get(name) {
            Some(value) => drop(to.insert(name.clone(), value.clone())),
            None => drop(to.remove(name)),
        }
    }
}

/// The git folder that all worktrees of the repository around a folder share.
fn common(folder: &Path) -> Option<PathBuf> {
    repository_top(folder).and_then(common_folder)
}

fn is_program(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    PROGRAM_SETTINGS.contains(&lower.as_str())
        || PROGRAM_SECTIONS.iter().any(|(section, names)| {
            lower.starts_with(section)
                && names
                    .iter()
                    .any(|name| lower.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')))
        })
}

/// The value with which a setting that was not there has no effect.
fn without_value(key: &str) -> &'static str {
    let lower = key.to_ascii_lowercase();
    let default = DEFAULT_VALUES.iter().find(|(name, _)| *name == lower);
    match default {
        Some((_, value)) => value,
        None if lower.ends_with(".required") => "false",
        None => "",
    }
}

fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

fn read_hooks(folder: &Path) -> BTreeMap<String, Option<String>> {
    let hooks = HOOKS.iter().map(|name| (*name, folder.join(name)));
    let executable = hooks.filter(|(_, path)| is_executable(path));
    executable.map(|(name, path)| (name.to_owned(), digest(&path))).collect()
}

/// The other files in the folder of hooks, without the examples of git.
fn read_beside(folder: &Path) -> BTreeMap<String, Option<String>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_other = !name.ends_with(".sample") && !HOOKS.contains(&name.as_str());
        (is_other && entry.path().is_file()).then(|| (name, entry.path()))
    });
    files.take(MAX_FILES_BESIDE).map(|(name, path)| (name, digest(&path))).collect()
}

fn is_executable(path: &Path) -> bool {
    let meta = std::fs::metadata(path);
    meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The digest of a regular file; none if it is not one, too large, or cannot be read.
fn digest(path: &Path) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_HOOK_BYTES {
        return None;
    }
    let mut hash = Sha256::new();
    let mut file = std::fs::File::open(path).ok()?.take(MAX_HOOK_BYTES);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            read => hash.update(buffer.get(..read)?),
        }
    }
    // Whether it is run is part of what it is.
    let mode = meta.permissions().mode() & 0o111;
    Some(format!("{}-{mode:o}", hex::encode(hash.finalize())))
}
