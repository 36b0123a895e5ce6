//! The changes of a workspace since a point in time, with and without a run.

use crate::claims::{EarlierFile, RunStart, Since, TestCounts, UnobservableError, WorkspaceView};
use crate::inventory::{self, TestDelta};
use crate::read_file::read_file;
use crate::unfinished::{self, UnfinishedWork, Unread};
use counterfoil_workspace::snapshot::{Changes, Snapshot, Snapshotter};
use counterfoil_workspace::{Durability, save_json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The maximum number of bytes of changed files that may contain tests, before and after. The time for
/// parsing is limited as well.
const MAX_TEST_BYTES: usize = 256 << 20;
/// How many files are read at once.
const FILES_AT_ONCE: usize = 200;

/// A file before and after.
type ChangedFile<'a> = (&'a Path, Option<Vec<u8>>, Option<Vec<u8>>);

/// The changes of a workspace since a point in time. Calls block.
#[derive(Debug)]
pub struct WorkspaceDiff {
    snapshotter: Snapshotter,
    before: Snapshot,
    /// When the changes began, where that is known.
    started_at: Option<SystemTime>,
    /// The snapshot of the last refresh.
    now: Option<Snapshot>,
    changes: Changes,
    /// Whether the tree id was not asked for since the last refresh. Until then, nothing that the
    /// caller did can have changed the workspace.
    is_fresh: bool,
    /// The repository when the run began, and the file that keeps what is put back to it.
    run_start: Option<(Snapshot, PathBuf)>,
}

impl WorkspaceDiff {
    /// Compares a workspace with a snapshot.
    pub fn new(snapshotter: Snapshotter, before: Snapshot, started_at: Option<SystemTime>) -> Self {
        Self {
            snapshotter,
            before,
            started_at,
            now: None,
            changes: Changes::default(),
            is_fresh: false,
            run_start: None,
        }
    }

    /// Also compares with the repository when the run began. `put_back` is the file that keeps which
    /// files are put back to it while a check runs.
    #[must_use]
    pub fn with_run_start(mut self, start: Option<Snapshot>, put_back: PathBuf) -> Self {
        self.run_start = start.map(|start| (start, put_back));
        self
    }

    /// The canonical path of the folder.
    pub fn folder(&self) -> &Path {
        self.snapshotter.folder()
    }

    /// The top folder of its repository; the folder itself outside of a repository.
    pub fn top(&self) -> &Path {
        self.snapshotter.top()
    }

    /// The snapshot that the workspace is compared with.
    pub fn before(&self) -> &Snapshot {
        &self.before
    }

    /// The source of the snapshots.
    pub fn snapshotter(&self) -> &Snapshotter {
        &self.snapshotter
    }

    /// Returns the source of the snapshots for further use.
    pub fn into_snapshotter(self) -> Snapshotter {
        self.snapshotter
    }

    /// The changes at the last refresh.
    pub fn last_changes(&self) -> &Changes {
        &self.changes
    }

    /// The identifier of the work tree's content at the last refresh.
    pub fn last_tree_id(&self) -> Option<String> {
        self.now.as_ref().unwrap_or(&self.before).id.clone()
    }

    /// The snapshot of the last refresh.
    pub fn last_snapshot(&self) -> Option<Snapshot> {
        self.now.clone()
    }

    /// Why the changes cannot be determined, if they cannot: one of the two snapshots failed.
    pub fn unobservable_reason(&self) -> Option<String> {
        let is_failed = |snapshot: &&Snapshot| snapshot.id.is_none();
        let failed = std::iter::once(&self.before).chain(&self.now).find(is_failed);
        // The last note is the reason for the failure.
        let reason = failed.map(|snapshot| {
            snapshot.notes.last().map_or("the workspace cannot be read", String::as_str)
        });
        // What could be read before may have changed.
        let hidden = |now: &Snapshot| {
            let path = now.unreadable.difference(&self.before.unreadable).next()?;
            let name = path.strip_prefix(self.top()).unwrap_or(path).display().to_string();
            Some(format!("{name} cannot be read or compared, so whether it changed is not known"))
        };
        reason.map(str::to_owned).or_else(|| self.now.as_ref().and_then(hidden))
    }

    /// Whether nothing was run since the last refresh.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Takes a new snapshot and computes the changes.
    pub fn refresh(&mut self) {
        let now = self.snapshotter.snapshot();
        self.changes = self.snapshotter.changes(&self.before, &now);
        // The notes of the snapshot also apply to the changes.
        let own = std::mem::take(&mut self.changes.notes);
        let mut known = HashSet::new();
        let all = now.notes.iter().cloned().chain(own);
        self.changes.notes = all.filter(|note| known.insert(note.clone())).collect();
        self.now = Some(now);
        self.is_fresh = true;
    }

    /// Restores files to their state in the first snapshot. Returns those that could not be
    /// restored, with the reasons.
    pub fn restore(&mut self, paths: &[PathBuf]) -> Vec<(PathBuf, String)> {
        self.snapshotter.restore(&self.before, paths)
    }

    /// The changes of tests at the last refresh.
    pub fn test_delta(&self) -> TestDelta {
        let paths: Vec<&Path> = self
            .changes
            .files
            .keys()
            .map(PathBuf::as_path)
            .filter(|path| inventory::is_test_file(path))
            .collect();
        let mut unread = Vec::new();
        let mut left = MAX_TEST_BYTES;
        let files = paths.chunks(FILES_AT_ONCE).flat_map(|paths| {
            if left == 0 {
                return Vec::new();
            }
            // A new link replaces no test.
            let files = self.read_changed(paths, inventory::decides_about_others, &mut unread);
            let has_tests = |path: &Path, text: &&Vec<u8>| inventory::may_hold_tests(path, text);
            for (path, before, after) in &files {
                let texts = before.iter().chain(after).filter(|text| has_tests(path, text));
                left = left.saturating_sub(texts.map(Vec::len).sum());
            }
            files
        });
        let mut delta = inventory::compare(files);
        let mut unread: Vec<String> = unread.iter().map(ToString::to_string).collect();
        if left == 0 {
            let most = MAX_TEST_BYTES >> 20;
            unread.push(format!("the changed files that may contain tests exceed {most} MiB"));
        }
        delta.is_incomplete |= !unread.is_empty();
        unread.append(&mut delta.notes);
        delta.notes = unread;
        delta
    }

    /// What the changes left unfinished, at the last refresh.
    pub fn unfinished_work(&self) -> UnfinishedWork {
        let paths = self.changes.files.keys().map(PathBuf::as_path);
        let paths: Vec<&Path> = paths.filter(|path| unfinished::may_hold_code(path)).collect();
        let mut unread = Vec::new();
        let mut left = MAX_TEST_BYTES;
        let files = paths.chunks(FILES_AT_ONCE).flat_map(|paths| {
            if left == 0 {
                return Vec::new();
            }
            let files = self.read_changed(paths, unfinished::is_source_file, &mut unread);
            let texts = files.iter().flat_map(|(_, before, after)| before.iter().chain(after));
            left = left.saturating_sub(texts.map(Vec::len).sum());
            files
        });
        let mut work = unfinished::added(files);
        if left == 0 {
            let most = MAX_TEST_BYTES >> 20;
            let reason = format!("the changed source files exceed {most} MiB");
            unread.push(Unread { file: None, reason });
        }
        unread.append(&mut work.unread);
        work.unread = unread;
        work
    }

    /// Reads changed files before and now. Those that cannot be read are added to `unread`; links where
    /// nothing was before only if they count.
    fn read_changed<'p>(
        &self,
        paths: &[&'p Path],
        counts_if_new: fn(&Path) -> bool,
        unread: &mut Vec<Unread>,
    ) -> Vec<ChangedFile<'p>> {
        let not_read = |path: &Path, reason: String| Unread { file: Some(path.to_owned()), reason };
        let mut files = Vec::with_capacity(paths.len());
        for (path, before) in paths.iter().zip(self.snapshotter.contents(&self.before, paths)) {
            // What a link or a device leads to is not observed.
            let place = self.snapshotter.folder().join(path);
            let counts = !matches!(before, Ok(None)) || counts_if_new(path);
            let meta = place.symlink_metadata().ok();
            if let Some(meta) = meta.filter(|meta| !meta.is_file() && !meta.is_dir()) {
                if counts {
                    let reason =
                        if meta.is_symlink() { "it is a link" } else { "it is no regular file" };
                    unread.push(not_read(path, reason.to_owned()));
                }
                continue;
            }
            match (before, read_file(&place)) {
                (Ok(before), Ok(after)) => files.push((*path, before, after)),
                (Err(error), _) | (_, Err(error)) => {
                    unread.push(not_read(path, error.to_string()));
                }
            }
        }
        files
    }

    /// Whether the changed files may contain tests in a language that is not supported: none of
    /// them is in a supported language, and the name of one suggests tests.
    fn may_have_uncounted_tests(&self) -> bool {
        let has_test_name = |path: &PathBuf| {
            let name = path.to_string_lossy().to_lowercase();
            name.contains("test") || name.contains("spec")
        };
        let mut paths = self.changes.files.keys();
        !paths.clone().any(|path| inventory::is_source_file(path)) && paths.any(has_test_name)
    }
}

impl WorkspaceView for WorkspaceDiff {
    fn changes(&mut self) -> Result<&Changes, UnobservableError> {
        if self.now.is_none() {
            self.refresh();
        }
        match self.unobservable_reason() {
            Some(reason) => Err(UnobservableError { reason }),
            None => Ok(&self.changes),
        }
    }

    fn ignored_change(&mut self, path: &Path) -> Since {
        self.ignored_changes(&[path.to_owned()]).pop().unwrap_or(Since::Absent)
    }

    fn ignored_changes(&mut self, paths: &[PathBuf]) -> Vec<Since> {
        let ignored = self.snapshotter.ignored(paths);
        // Without a start time, every file counts as older.
        let started_at = self.started_at.unwrap_or_else(SystemTime::now);
        let one = |path: &PathBuf| match self.snapshotter.since(path, started_at) {
            Since::Absent => Since::Absent,
            _ if !ignored.contains(path) => Since::Untouched,
            since => since,
        };
        paths.iter().map(one).collect()
    }

    fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        self.snapshotter.ignored(paths)
    }

    fn tree_id(&mut self) -> Option<String> {
        // A caller that asks a second time may have changed the workspace in between.
        if !std::mem::take(&mut self.is_fresh) {
            self.refresh();
            self.is_fresh = false;
        }
        self.last_tree_id()
    }

    fn is_like(&mut self, path: &Path, was: &Path) -> Option<bool> {
        let now = self.now.as_ref()?;
        let before = self.snapshotter.content(&self.before, was).ok()??;
        Some(have_lines_in_common(&before, &self.snapshotter.content(now, path).ok()??))
    }

    fn test_counts(&mut self) -> Option<TestCounts> {
        let delta = self.test_delta();
        (!delta.is_incomplete && !self.may_have_uncounted_tests()).then(|| TestCounts {
            added: (delta.added.len() - delta.added_in_vain.len()) as u64,
            removed: delta.removed.len() as u64,
            in_vain: delta.added_in_vain,
        })
    }

    fn unfinished_work(&mut self) -> UnfinishedWork {
        WorkspaceDiff::unfinished_work(self)
    }

    fn started_at(&self) -> Option<SystemTime> {
        self.started_at
    }

    fn run_start(&mut self) -> Option<&mut dyn RunStart> {
        self.run_start.is_some().then_some(self as &mut dyn RunStart)
    }
}

impl RunStart for WorkspaceDiff {
    fn changed(&mut self) -> Result<Vec<PathBuf>, UnobservableError> {
        if self.now.is_none() {
            self.refresh();
        }
        if let Some(reason) = self.unobservable_reason() {
            return Err(UnobservableError { reason });
        }
        let (Some((start, _)), Some(now)) = (&self.run_start, &self.now) else {
            return Ok(Vec::new());
        };
        let changes = self.snapshotter.changes(start, now);
        let from_top = |path: &PathBuf| self.snapshotter.from_top(path);
        Ok(changes.files.keys().filter_map(from_top).collect())
    }

    fn content(&mut self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let Some((start, _)) = &self.run_start else { return Ok(None) };
        self.snapshotter.content(start, &self.snapshotter.top().join(path))
    }

    fn existed(&mut self, path: &Path) -> bool {
        let top = self.snapshotter.top();
        let Some((start, _)) = &self.run_start else { return false };
        !self.snapshotter.files_in(start, &top.join(path)).is_empty()
    }

    fn put_back(&mut self, files: &[EarlierFile]) -> Result<(), String> {
        self.refresh();
        let Some((start, kept)) = self.run_start.clone() else { return Ok(()) };
        let top = self.snapshotter.top().to_owned();
        let paths: Vec<PathBuf> = files.iter().map(|(path, _)| top.join(path)).collect();
        let now = self.now.as_ref().ok_or("the workspace cannot be read")?;
        // Nothing is overwritten that could not be written again.
        for path in &paths {
            let content = self.snapshotter.content(now, path);
            content.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        // A process that is killed while the files are put back leaves this for the next one.
        now.save_with_paths(&kept, &paths).map_err(|error| error.to_string())?;
        let kept_file = kept.clone();
        in_use().insert(kept);
        let mut failed = Vec::new();
        for ((_, merged), path) in files.iter().zip(&paths) {
            match merged {
                Some(bytes) => {
                    let written = self.snapshotter.write_file(path, bytes);
                    failed.extend(written.err().map(|error| (path.clone(), error.to_string())));
                }
                None => {
                    failed.extend(self.snapshotter.restore(&start, std::slice::from_ref(path)));
                }
            }
        }
        let Some((path, why)) = failed.into_iter().next() else {
            let written: Vec<Option<String>> = paths.iter().map(|path| digest(path)).collect();
            let saved = save_json(&written_file(&kept_file), Durability::Unsynced, &written);
            return saved.map_err(|error| error.to_string());
        };
        let mut problem = format!("{}: {why}", path.display());
        for (path, why) in self.put_forward() {
            problem.push_str(&format!(
                "; the change of {} cannot be written again: {why}",
                path.display()
            ));
        }
        Err(problem)
    }

    fn put_forward(&mut self) -> Vec<(PathBuf, String)> {
        self.is_fresh = false;
        let Some((_, kept)) = &self.run_start else { return Vec::new() };
        let failed = restore_kept(&mut self.snapshotter, kept);
        in_use().remove(kept);
        failed
    }
}

/// The files that keep what this process has put back, while its checks run.
fn in_use() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static IN_USE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shorter text is not compared with another one.
const FEW_LINES: usize = 4;

/// Whether at least a quarter of the lines of the shorter text are in the other one. Lines without
/// letters or digits do not count, and a text of a few lines may be rewritten.
fn have_lines_in_common(one: &[u8], other: &[u8]) -> bool {
    let lines = |text: &[u8]| -> HashMap<Vec<u8>, usize> {
        let all = || text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let has_words = |line: &&[u8]| line.iter().any(u8::is_ascii_alphanumeric);
        let mut lines = HashMap::new();
        for line in all().filter(has_words) {
            *lines.entry(line.to_vec()).or_default() += 1;
        }
        lines
    };
    let (one, other) = (lines(one), lines(other));
    let count = |lines: &HashMap<Vec<u8>, usize>| lines.values().sum::<usize>();
    let shared: usize =
        one.iter().map(|(line, count)| other.get(line).map_or(0, |more| *count.min(more))).sum();
    let shorter = count(&one).min(count(&other));
    shorter < FEW_LINES || 4 * shared >= shorter
}

/// Undoes what another process put back to the start of the run for a check, if it was killed
/// meanwhile. Returns the files that could not be written, with the reasons.
pub fn put_forward(snapshotter: &mut Snapshotter, kept: &Path) -> Vec<(PathBuf, String)> {
    if !kept.exists() || in_use().contains(kept) {
        return Vec::new();
    }
    // A file that was changed since is somebody's work.
    let written = std::fs::read(written_file(kept)).ok();
    let written: Option<Vec<Option<String>>> =
        written.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let paths = snapshotter.load_with_paths(kept).map(|(_, paths)| paths).unwrap_or_default();
    let pairs = paths.iter().zip(written.into_iter().flatten());
    let changed: Vec<(PathBuf, String)> = pairs
        .filter(|(path, written)| digest(path) != *written)
        .map(|(path, _)| {
            let kept = kept.parent().unwrap_or(kept).display();
            (path.clone(), format!("it was changed since; the earlier version is kept in {kept}"))
        })
        .collect();
    if changed.is_empty() { restore_kept(snapshotter, kept) } else { changed }
}

/// The file that says what was written to the files that were put back.
fn written_file(kept: &Path) -> PathBuf {
    let mut file = kept.as_os_str().to_owned();
    file.push(".written");
    file.into()
}

/// A digest of a file; none if it cannot be read.
fn digest(path: &Path) -> Option<String> {
    let bytes = read_file(path).ok().flatten()?;
    Some(hex::encode(Sha256::digest(&bytes)))
}

fn restore_kept(snapshotter: &mut Snapshotter, kept: &Path) -> Vec<(PathBuf, String)> {
    let Some((now, paths)) = snapshotter.load_with_paths(kept) else { return Vec::new() };
    let failed = snapshotter.restore(&now, &paths);
    if failed.is_empty() {
        let _ = std::fs::remove_file(kept);
        let _ = std::fs::remove_file(written_file(kept));
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_edited_has_lines_in_common_with_itself_and_another_one_has_not() {
        let one = "fn a() {\n    first();\n    second();\n    third();\n    fourth();\n}\n";
        let edited = one.replace("second", "other").replace("fn a", "pub fn b") + "more\nlines\n";
        assert!(have_lines_in_common(one.as_bytes(), edited.as_bytes()));
        let unrelated = "import x\nprint(1)\nprint(2)\nprint(3)\nprint(4)\n{\n}\n";
        assert!(!have_lines_in_common(one.as_bytes(), unrelated.as_bytes()));
        assert!(have_lines_in_common(b"some text", b"some other text"), "too short to tell");
    }
}
