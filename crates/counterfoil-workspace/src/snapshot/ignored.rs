//! Ignored files, which are not part of snapshots unless they are watched: whether a file is
//! ignored, and whether it changed.

use super::repo_path::{RepoPath, canonicalize_existing, normalize};
use super::{Since, Snapshotter};
use std::collections::BTreeSet;
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
    pub fn is_ignored(&mut self, path: &Path) -> bool {
        !self.ignored(std::slice::from_ref(&path.to_owned())).is_empty()
    }

    /// Returns which of the files are ignored by the rules of the first look.
    pub fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        let (folder, top) = (self.folder.clone(), self.top.clone());
        let start = self.start();
        let is_ignored = |path: &&PathBuf| {
            // Links in its parents are resolved. The file itself may be a link.
            let full = normalize(&folder.join(path));
            let name = || {
                let full = full.parent().map(canonicalize_existing)?.join(full.file_name()?);
                RepoPath::from_path(full.strip_prefix(&top).ok()?)
            };
            name().is_some_and(|name| {
                start.base.get(&name).is_none() && start.rules.is_ignored(&name, full.is_dir())
            })
        };
        paths.iter().filter(is_ignored).cloned().collect()
    }
}
