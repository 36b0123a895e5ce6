//! The settings of git, listed again only if a file that can have some of them changed. A start of
//! git takes longer than everything else that is done for a short attempt.

use super::{GitCommand, GitError, common_folder, own_folder, repository_top};
use crate::file_identity::Identity;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

/// A setting and its value, in the order of git.
pub(super) type Setting = (String, String);

/// Lists the settings that apply in a folder.
pub(super) fn list(folder: &Path) -> Result<Vec<Setting>, GitError> {
    let listed = GitCommand::new(folder, ["config", "--list", "--includes", "-z"]).run()?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let entries = text.split('\0').map(|entry| {
        // A setting without a value is true.
        let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        (key.to_owned(), value.to_owned())
    });
    Ok(entries.collect())
}

/// The settings that were last listed.
#[derive(Debug, Default)]
pub struct SettingsCache {
    /// The files of the system and the user that can have settings; none if git does not tell. They
    /// are the same while this process runs.
    outside: OnceLock<Option<Vec<PathBuf>>>,
    listed: Mutex<Option<Listed>>,
}

#[derive(Debug)]
struct Listed {
    /// All files that can have settings, as they were before the settings were listed.
    files: Files,
    settings: Vec<Setting>,
}

type Files = Vec<(PathBuf, Option<Identity>)>;

impl SettingsCache {
    /// The settings that apply in a folder, as [`list`] gives them.
    pub(super) fn list(&self, folder: &Path) -> Result<Vec<Setting>, GitError> {
        let Some(outside) = self.outside.get_or_init(|| files_outside(folder)) else {
            return list(folder);
        };
        let began = SystemTime::now();
        let paths = outside.iter().cloned().chain(own_files(folder));
        let files: Files = paths
            .map(|path| {
                let at = identity(&path);
                (path, at)
            })
            .collect();
        let mut last = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = last.as_ref().filter(|listed| listed.files == files) {
            return Ok(listed.settings.clone());
        }
        let settings = list(folder)?;
        *last = can_be_kept(&files, &settings, began)
            .then(|| Listed { files, settings: settings.clone() });
        Ok(settings)
    }
}

/// Whether every change of the settings will show in these files.
fn can_be_kept(files: &Files, settings: &[Setting], began: SystemTime) -> bool {
    let includes = |key: &str| key.starts_with("include.") || key.starts_with("includeif.");
    let is_settled = |at: &Option<Identity>| at.is_none_or(|at| at.is_settled_at(began));
    files.iter().all(|(_, at)| is_settled(at)) && !settings.iter().any(|(key, _)| includes(key))
}

fn identity(path: &Path) -> Option<Identity> {
    // The file itself counts, wherever a link to it is.
    path.metadata().ok().map(|meta| Identity::from_metadata(&meta))
}

/// The files of the repository around a folder that can have settings.
fn own_files(folder: &Path) -> Vec<PathBuf> {
    let top = repository_top(folder).unwrap_or(folder);
    let git = own_folder(top).unwrap_or_else(|| top.join(".git"));
    let common = common_folder(top).unwrap_or_else(|| git.clone());
    vec![common.join("config"), common.join("config.worktree"), git.join("config.worktree")]
}

/// The files of the system and the user that can have settings; none if git does not tell.
fn files_outside(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    for variable in ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"] {
        let told = GitCommand::new(folder, ["var", variable]).run().ok()?;
        let lines = told.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        files.extend(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))));
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn git(folder: &Path, arguments: &[&str]) {
        GitCommand::new(folder, arguments.iter().copied()).run().unwrap();
    }

    fn is_kept(cache: &SettingsCache) -> bool {
        cache.listed.lock().unwrap().is_some()
    }

    /// After the times of files have settled.
    fn later() {
        std::thread::sleep(Duration::from_millis(120));
    }

    #[test]
    fn every_change_of_the_settings_shows() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        git(folder, &["init", "-q", "one"]);
        git(folder, &["init", "-q", "two"]);
        let (one, two) = (folder.join("one"), folder.join("two"));
        let config = one.join(".git/config");
        let cache = SettingsCache::default();
        later();
        cache.list(&one).unwrap();
        // An older git does not tell where its files are, and the user's settings may include others.
        let is_possible = is_kept(&cache);
        let check = |what: &str, keeps: bool| {
            later();
            for _ in 0..2 {
                assert_eq!(cache.list(&one).unwrap(), list(&one).unwrap(), "{what}");
            }
            assert_eq!(is_kept(&cache), keeps && is_possible, "{what}");
        };
        check("at first", true);
        git(&one, &["config", "core.sshCommand", "one"]);
        check("a setting is added", true);
        let (text, meta) = (std::fs::read_to_string(&config).unwrap(), config.metadata().unwrap());
        std::fs::write(&config, text.replace("sshCommand = one", "sshCommand = two")).unwrap();
        let file = std::fs::File::options().append(true).open(&config).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
        check("a value changes, with the same size and time", true);
        git(&one, &["config", "extensions.worktreeConfig", "true"]);
        check("settings of worktrees count", true);
        git(&one, &["config", "--worktree", "core.pager", "less"]);
        check("a worktree has settings", true);
        std::fs::rename(one.join(".git"), folder.join("moved")).unwrap();
        std::fs::write(one.join(".git"), format!("gitdir: {}\n", two.join(".git").display()))
            .unwrap();
        check("the git folder is another one", true);
        git(&two, &["config", "core.editor", "ed"]);
        check("the other one has a setting", true);
        git(&two, &["config", "include.path", "../more"]);
        check("another file is included, which does not exist", false);
        std::fs::write(two.join("more"), "[core]\n\tsshCommand = three\n").unwrap();
        check("it exists", false);
        std::fs::remove_file(one.join(".git")).unwrap();
        check("there is no repository", true);
    }
}
