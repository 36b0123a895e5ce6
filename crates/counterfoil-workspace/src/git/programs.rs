//! Programs that a repository makes git run: hooks, filters, signing programs. An agent can add some
//! in passing, and they would run with the rights of the engine. So the settings of the start of a
//! run count: [`trust`] remembers them, and every command of ours runs with them.

use super::{GitCommand, GitError, common_folder, repository_top};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Settings with these names start programs, or decide which ones are started.
const PROGRAM_SETTINGS: [&str; 12] = [
    "core.hookspath",
    "core.fsmonitor",
    "core.attributesfile",
    "core.editor",
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
/// What git runs where nothing is configured.
const DEFAULT_PROGRAMS: [(&str, &str); 5] = [
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
/// How many files of the hooks folder are looked at.
const MAX_HOOK_FILES: usize = 1000;

/// What git of a repository runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitPrograms {
    /// The values of each setting, by its name.
    settings: BTreeMap<String, Vec<String>>,
    /// The folder with the hooks.
    hooks_folder: PathBuf,
    /// The digest of each executable hook.
    hooks: BTreeMap<String, String>,
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
    /// Hooks that were changed or removed.
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

/// What the git of repositories ran at the start of the runs of this process, by the common git
/// folder.
static TRUSTED: LazyLock<Mutex<HashMap<PathBuf, GitPrograms>>> = LazyLock::new(Mutex::default);

/// Remembers what the git of a repository may run from now on.
pub fn trust(folder: &Path, programs: GitPrograms) {
    if let Some(common) = common(folder) {
        TRUSTED.lock().unwrap_or_else(PoisonError::into_inner).insert(common, programs);
    }
}

/// What changed in the repository around a folder since [`trust`] was called for it.
///
/// # Errors
///
/// Git cannot read its settings.
pub fn changes(folder: &Path) -> Result<ProgramChanges, GitError> {
    let trusted = common(folder).and_then(|common| {
        TRUSTED.lock().unwrap_or_else(PoisonError::into_inner).get(&common).cloned()
    });
    match trusted {
        Some(start) => Ok(start.changes(&GitPrograms::read(folder)?)),
        None => Ok(ProgramChanges::default()),
    }
}

/// The settings that a command of ours needs, so that git runs what it ran at the start.
pub(super) fn overrides(folder: &Path, command: &str) -> Result<Vec<String>, GitError> {
    if PLAIN_COMMANDS.contains(&command) {
        return Ok(Vec::new());
    }
    changes(folder).map(|changes| changes.overrides)
}

impl GitPrograms {
    /// Reads what the git of the repository around a folder runs.
    ///
    /// # Errors
    ///
    /// Git cannot read its settings.
    pub fn read(folder: &Path) -> Result<Self, GitError> {
        let listed = GitCommand::new(folder, ["config", "--list", "--includes", "-z"]).run()?;
        let mut settings: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in String::from_utf8_lossy(&listed.stdout).split('\0') {
            // A setting without a value is true.
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            // Our own commands set these themselves.
            let is_ours = super::SAFE_CONFIG.iter().any(|ours| {
                ours.split_once('=')
                    .is_some_and(|(name, ours)| name.eq_ignore_ascii_case(key) && ours == value)
            });
            if is_program(key) && !is_ours {
                settings.entry(key.to_owned()).or_default().push(value.to_owned());
            }
        }
        let hooks_folder = match settings.get("core.hookspath").and_then(|all| all.last()) {
            Some(path) => repository_top(folder).unwrap_or(folder).join(expand_home(path)),
            None => common(folder).unwrap_or_default().join("hooks"),
        };
        let hooks = read_hooks(&hooks_folder);
        Ok(Self { settings, hooks_folder, hooks })
    }

    /// What is different now.
    fn changes(&self, now: &Self) -> ProgramChanges {
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
        let names: BTreeSet<&String> = self.hooks.keys().chain(now.hooks.keys()).collect();
        for name in names {
            match (self.hooks.get(name), now.hooks.get(name)) {
                (Some(was), Some(is)) if was == is && self.hooks_folder == now.hooks_folder => {
                    changes.kept_hooks.insert(name.clone(), self.hooks_folder.join(name));
                }
                (Some(was), _) => {
                    // The folder may be another one now. The hook counts where it was.
                    let path = self.hooks_folder.join(name);
                    if digest(&path).as_ref() == Some(was) {
                        changes.kept_hooks.insert(name.clone(), path);
                    } else {
                        changes.lost_hooks.insert(name.clone());
                    }
                }
                (None, _) => {
                    changes.new_hooks.insert(name.clone());
                }
            }
        }
        changes
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
    let default = DEFAULT_PROGRAMS.iter().find(|(name, _)| *name == lower);
    match default {
        Some((_, program)) => program,
        None if matches!(lower.as_str(), "core.fsmonitor" | "commit.gpgsign") => "false",
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

fn read_hooks(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.take(MAX_HOOK_FILES).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        (!name.ends_with(".sample")).then_some(())?;
        Some((name, digest(&entry.path())?))
    });
    named.collect()
}

/// The digest of an executable file; none if it is not one.
fn digest(path: &Path) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 || meta.len() > 16 << 20 {
        return None;
    }
    Some(hex::encode(Sha256::digest(std::fs::read(path).ok()?)))
}
