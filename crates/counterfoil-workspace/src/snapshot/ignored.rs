//! Ignored files, which are not part of snapshots unless they are watched: whether a file is
//! ignored, and whether it changed.

use super::git::RepositoryLocation;
use super::git_status::git_dir_of;
use super::repo_path::{RepoPath, canonicalize_existing, normalize};
use super::{Since, Snapshotter};
use ignore::gitignore::GitignoreBuilder;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// File times lag behind the clock by up to one tick of the kernel.
const CTIME_LAG: Duration = Duration::from_millis(10);

impl Snapshotter {
    /// Makes files that git ignores a part of all further snapshots: this file, or all in this
    /// folder. The path is relative to the folder of the snapshotter.
    pub fn watch(&mut self, path: &Path) {
        let path = canonicalize_existing(&normalize(&self.folder.join(path)));
        self.watched.extend(path.strip_prefix(&self.top).ok().and_then(RepoPath::from_path));
    }

    /// The watched files that git ignores.
    pub(super) fn watched_files(&self, notes: &mut Vec<String>) -> Vec<RepoPath> {
        let Some(location) = self.location.as_ref().filter(|_| !self.watched.is_empty()) else {
            return Vec::new();
        };
        let fixed = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"];
        let mut arguments: Vec<OsString> = fixed.map(OsString::from).into();
        for path in &self.watched {
            // A path is not a pattern.
            let mut literal = OsString::from(":(literal)");
            literal.push(path.path());
            arguments.push(literal);
        }
        let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        match self.git.run_with_input(location, &arguments, None) {
            Ok(output) => {
                // The name of a nested repository ends with a slash.
                let names = output.stdout.split(|byte| *byte == 0);
                names
                    .filter(|name| !name.is_empty() && !name.ends_with(b"/"))
                    .map(RepoPath::from)
                    .collect()
            }
            Err(error) => {
                notes.push(format!("watched files that git ignores are not included: {error}"));
                Vec::new()
            }
        }
    }

    /// The change of a file since some time, judged by its timestamps: for ignored files, which are
    /// not part of snapshots. A file that was replaced counts as added, since there is no trace of
    /// the old one.
    pub fn since(&self, path: &Path, when: SystemTime) -> Since {
        let Ok(meta) = self.folder.join(path).symlink_metadata() else { return Since::Absent };
        let after = |time: SystemTime| time + CTIME_LAG >= when;
        let seconds = u64::try_from(meta.ctime()).unwrap_or(0);
        let changed =
            UNIX_EPOCH + Duration::new(seconds, u32::try_from(meta.ctime_nsec()).unwrap_or(0));
        if meta.created().is_ok_and(after) {
            Since::Added
        } else if after(changed) {
            Since::Modified
        } else {
            Since::Untouched
        }
    }

    /// Whether a file is ignored, and so not part of snapshots.
    pub fn is_ignored(&self, path: &Path) -> bool {
        !self.ignored(std::slice::from_ref(&path.to_owned())).is_empty()
    }

    /// Returns which of the files are ignored, with one git command for all.
    pub fn ignored(&self, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        let named = |path: &PathBuf| {
            // Links in its parents are resolved. The file itself may be a link.
            let full = normalize(&self.folder.join(path));
            let parent = full.parent().map(canonicalize_existing)?;
            let full = parent.join(full.file_name()?);
            Some((RepoPath::from_path(full.strip_prefix(&self.top).ok()?)?, path.clone()))
        };
        let names: Vec<(RepoPath, PathBuf)> = paths.iter().filter_map(named).collect();
        let Some(location) = &self.location else {
            return names
                .into_iter()
                .filter(|(name, _)| self.is_ignored_by_rules(name))
                .map(|(_, path)| path)
                .collect();
        };
        // Each repository has its own rules and rejects paths in another one.
        let mut owners: HashMap<PathBuf, RepoPath> = HashMap::new();
        let mut by_owner: BTreeMap<RepoPath, Vec<(RepoPath, PathBuf)>> = BTreeMap::new();
        for (name, path) in names {
            let parent = name.path().parent().unwrap_or(Path::new("")).to_owned();
            let owner = || {
                let owner = name
                    .folders()
                    .find(|folder| git_dir_of(&self.top.join(folder.path())).is_some());
                owner.unwrap_or_else(|| RepoPath::from(&b""[..]))
            };
            let owner = owners.entry(parent).or_insert_with(owner).clone();
            by_owner.entry(owner).or_default().push((name, path));
        }
        let mut ignored = BTreeSet::new();
        for (owner, members) in by_owner {
            let top = self.top.join(owner.path());
            let inside = git_dir_of(&top).filter(|_| !owner.bytes().is_empty());
            let location = inside.map_or_else(
                || location.clone(),
                |git_dir| RepositoryLocation { git_dir, top, capabilities: location.capabilities },
            );
            ignored.extend(self.check_ignored(&owner, &location, members));
        }
        ignored
    }

    fn check_ignored(
        &self,
        owner: &RepoPath,
        location: &RepositoryLocation,
        members: Vec<(RepoPath, PathBuf)>,
    ) -> Vec<PathBuf> {
        // A path that begins with `:` would be read as a pattern.
        let relative = |name: &RepoPath| {
            [b"./", name.inside(owner).unwrap_or_else(|| name.clone()).bytes()].concat()
        };
        let mut input = Vec::new();
        for (name, _) in &members {
            input.extend(relative(name));
            input.push(0);
        }
        let arguments = ["check-ignore", "-z", "--stdin"].map(OsStr::new);
        // The exit code is 1 if none is ignored.
        let output = self
            .git
            .run_with_input(location, &arguments, Some(input))
            .map(|output| output.stdout)
            .unwrap_or_default();
        let ignored: HashSet<&[u8]> = output.split(|byte| *byte == 0).collect();
        let is_ignored = |(name, _): &(RepoPath, PathBuf)| ignored.contains(&relative(name)[..]);
        members.into_iter().filter(is_ignored).map(|(_, path)| path).collect()
    }

    /// Without git: whether a `.gitignore` in one of its parents matches the file or a folder that
    /// contains it.
    fn is_ignored_by_rules(&self, name: &RepoPath) -> bool {
        let mut ways: Vec<RepoPath> = name.folders().collect();
        ways.reverse();
        ways.push(name.clone());
        ways.iter().any(|way| {
            let is_folder = way != name || self.top.join(way.path()).is_dir();
            // The innermost file with a matching rule decides.
            let folders = way.folders().chain(std::iter::once(RepoPath::from(&b""[..])));
            for folder in folders {
                let root = self.top.join(folder.path());
                let mut rules = GitignoreBuilder::new(&root);
                let _ = rules.add(root.join(".gitignore"));
                let Ok(rules) = rules.build() else { continue };
                match rules.matched(self.top.join(OsStr::from_bytes(way.bytes())), is_folder) {
                    ignore::Match::None => {}
                    output => return output.is_ignore(),
                }
            }
            false
        })
    }
}
