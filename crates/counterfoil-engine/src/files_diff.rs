//! What attempts changed in the files, as differences between texts. The contents come from the
//! records of the state folder. Neither git nor anything that the repository configures is run.

use crate::engine::Engine;
use counterfoil_contract::text::escape_control;
use counterfoil_workspace::workspaces::{Error, RecordedChanges};
use similar::{ChangeTag, TextDiff};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How much is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLimits {
    /// The most files.
    pub files: usize,
    /// The most bytes of a file, before and afterwards together.
    pub file_bytes: u64,
    /// The most bytes of all files.
    pub bytes: u64,
    /// After this time, what is left of a file is shown as replaced.
    pub patience: Duration,
}

impl DiffLimits {
    /// Everything is compared.
    pub const NONE: Self = Self {
        files: usize::MAX,
        file_bytes: u64::MAX,
        bytes: u64::MAX,
        patience: Duration::from_secs(2),
    };
}

/// The files that attempts changed, with their differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesDiff {
    /// The files by path.
    pub files: Vec<FileDiff>,
    /// The number of files beyond the limit, which are not listed.
    pub left_out: usize,
}

/// The difference of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// The path, relative to the repository folder.
    pub path: String,
    /// Whether it existed before.
    pub existed: bool,
    /// Whether it exists afterwards.
    pub exists: bool,
    /// What differs.
    pub body: DiffBody,
}

/// What differs in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffBody {
    /// Lines.
    Text {
        /// The number of new lines.
        added: usize,
        /// The number of lines that are gone.
        removed: usize,
        /// The unified difference without its header.
        hunks: String,
    },
    /// Bytes that are no text.
    Binary,
    /// More than is compared.
    TooLarge {
        /// The bytes before and afterwards.
        bytes: u64,
    },
}

/// A state of a file: in which record, and in which place of it.
pub(crate) type Place = (usize, usize);

/// Successive changes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) path: String,
    /// It begins before this one.
    pub(crate) first: Place,
    /// It ends after this one.
    pub(crate) last: Place,
    /// The bytes before it; `None` if the file did not exist.
    pub(crate) before: Option<u64>,
    /// The bytes after it; `None` if the file does not exist any more.
    pub(crate) after: Option<u64>,
}

impl Span {
    /// Several spans of a file as one: from before the first to after the last.
    fn whole(spans: Vec<Self>) -> Option<Self> {
        spans.into_iter().reduce(|first, last| Self { last: last.last, after: last.after, ..first })
    }
}

impl Engine {
    /// What attempts of a run changed in the files, in the repository itself or in a worktree that was
    /// merged. Each attempt begins where the one before ended. `None` if it is not recorded.
    ///
    /// # Errors
    ///
    /// A record cannot be read.
    pub fn files_diff(
        &self,
        run: &str,
        attempts: &[String],
        limits: &DiffLimits,
    ) -> Result<Option<FilesDiff>, Error> {
        let workspaces = self.workspaces(Path::new("."));
        let mut records = Vec::new();
        for attempt in attempts {
            records.extend(workspaces.recorded_changes(run, attempt));
        }
        if records.is_empty() {
            return Ok(None);
        }
        let whole = spans(&records).into_values().filter_map(Span::whole);
        compare(&records, whole, limits).map(Some)
    }

    /// When what is recorded of a run's changes was added to or removed from last.
    pub fn changes_recorded_at(&self, run: &str) -> Option<SystemTime> {
        self.workspaces(Path::new(".")).recorded_at(run)
    }
}

/// What was changed, by path. A new span begins where a file is not what the change before left.
pub(crate) fn spans(records: &[RecordedChanges]) -> BTreeMap<String, Vec<Span>> {
    let mut all: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for (record, changes) in records.iter().enumerate() {
        for (place, file) in changes.files().enumerate() {
            let here = (record, place);
            let known = all.entry(file.path.clone()).or_default();
            let continued = known.last_mut().filter(|span| {
                let (earlier, earlier_place) = span.last;
                changes.continues(place, &records[earlier], earlier_place)
            });
            if let Some(span) = continued {
                span.last = here;
                span.after = file.after;
            } else {
                let (before, after) = (file.before, file.after);
                known.push(Span { path: file.path, first: here, last: here, before, after });
            }
        }
    }
    all
}

pub(crate) fn compare(
    records: &[RecordedChanges],
    spans: impl Iterator<Item = Span>,
    limits: &DiffLimits,
) -> Result<FilesDiff, Error> {
    let mut diff = FilesDiff::default();
    let mut left = limits.bytes;
    for Span { path, first, last, before, after } in spans {
        // Also a mode or a kind that changed is a difference.
        if records[first.0].continues(first.1, &records[last.0], last.1) {
            continue;
        }
        if diff.files.len() >= limits.files {
            diff.left_out += 1;
            continue;
        }
        let bytes = before.unwrap_or(0).saturating_add(after.unwrap_or(0));
        if bytes > limits.file_bytes || bytes > left {
            let body = DiffBody::TooLarge { bytes };
            let (existed, exists) = (before.is_some(), after.is_some());
            diff.files.push(FileDiff { path, existed, exists, body });
            continue;
        }
        left -= bytes;
        let before = records[first.0].read_before(first.1)?;
        let after = records[last.0].read_after(last.1)?;
        diff.files.push(file_diff(path, before.as_deref(), after.as_deref(), limits.patience));
    }
    Ok(diff)
}

fn file_diff(
    path: String,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    patience: Duration,
) -> FileDiff {
    let body = match (text(before.unwrap_or_default()), text(after.unwrap_or_default())) {
        // Only the mode or the kind of the file is another.
        _ if before.is_some() && before == after => {
            DiffBody::Text { added: 0, removed: 0, hunks: String::new() }
        }
        (Some(before), Some(after)) => {
            let diff = TextDiff::configure().timeout(patience).diff_lines(before, after);
            let count = |tag: ChangeTag| {
                diff.iter_all_changes().filter(|change| change.tag() == tag).count()
            };
            DiffBody::Text {
                added: count(ChangeTag::Insert),
                removed: count(ChangeTag::Delete),
                hunks: diff.unified_diff().to_string(),
            }
        }
        _ => DiffBody::Binary,
    };
    FileDiff { path, existed: before.is_some(), exists: after.is_some(), body }
}

/// The bytes as text, unless they are not.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

impl FilesDiff {
    /// All differences, as `patch` reads them.
    pub fn unified(&self) -> String {
        self.files.iter().map(FileDiff::unified).collect()
    }
}

impl FileDiff {
    /// The difference, as `patch` reads it.
    pub fn unified(&self) -> String {
        // A line break in a name would begin a line of its own.
        let path = escape_control(&self.path);
        let name = |side: &str, exists: bool| {
            if exists { format!("{side}/{path}") } else { "/dev/null".to_owned() }
        };
        let (old, new) = (name("a", self.existed), name("b", self.exists));
        match &self.body {
            // Without hunks, only the mode or the kind of the file is another.
            DiffBody::Text { hunks, .. } => format!("--- {old}\n+++ {new}\n{hunks}"),
            DiffBody::Binary => format!("Binary files {old} and {new} differ\n"),
            DiffBody::TooLarge { bytes } => {
                format!("Files {old} and {new} differ ({bytes} bytes)\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_workspace::snapshot::FileAt;
    use counterfoil_workspace::workspaces::{StepChanges, Workspaces};
    use std::collections::BTreeSet;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn diff(before: Option<&[u8]>, after: Option<&[u8]>) -> FileDiff {
        file_diff("src/a.rs".to_owned(), before, after, Duration::from_secs(2))
    }

    #[test]
    fn created_changed_deleted_and_binary_files() {
        let unified = |before, after| diff(before, after).unified();
        assert_eq!(
            unified(Some(b"one\ntwo\n"), Some(b"one\nthree\n")),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
        );
        assert_eq!(
            unified(None, Some(b"one\n")),
            "--- /dev/null\n+++ b/src/a.rs\n@@ -0,0 +1 @@\n+one\n"
        );
        assert_eq!(
            unified(Some(b"one\n"), None),
            "--- a/src/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
        );
        assert_eq!(
            unified(Some(b"\xff\0"), Some(b"one\n")),
            "Binary files a/src/a.rs and b/src/a.rs differ\n"
        );
        for same in [b"one".as_slice(), b"\xff\0", b""] {
            assert_eq!(unified(Some(same), Some(same)), "--- a/src/a.rs\n+++ b/src/a.rs\n");
        }
    }

    #[test]
    fn lines_that_look_like_a_header_are_counted_as_lines() {
        let changed = diff(Some(b"-- a\n++ b\nx\n"), Some(b"++ c\nx\n"));
        let DiffBody::Text { added, removed, .. } = changed.body else { panic!("{changed:?}") };
        assert_eq!((added, removed), (1, 2));
    }

    /// A repository whose changes are recorded.
    struct Recorded {
        home: tempfile::TempDir,
        workspaces: Workspaces,
    }

    impl Recorded {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let repo = home.path().join("repo");
            std::fs::create_dir(&repo).unwrap();
            let workspaces = Workspaces::new(&home.path().join("state"), &repo);
            Self { home, workspaces }
        }

        /// Records that an attempt changed these files, which have these contents now, or are programs
        /// or links.
        fn step(&self, id: &str, files: &[(&str, Option<&str>)], change: impl FnOnce(&Path)) {
            let repo = self.home.path().join("repo");
            change(&repo);
            let before = |paths: &[&Path]| -> Vec<std::io::Result<Option<FileAt>>> {
                let file = |path: &&Path| {
                    let known = files.iter().find(|(name, _)| Path::new(name) == *path).unwrap();
                    let file = |text: &str| FileAt {
                        bytes: text.as_bytes().to_vec(),
                        is_link: false,
                        mode: 0o644,
                        is_own_mode: true,
                    };
                    Ok(known.1.map(file))
                };
                paths.iter().map(file).collect()
            };
            let changes = StepChanges {
                top: &repo,
                files: files.iter().map(|(name, _)| (*name).into()).collect(),
                before: &before,
                existed: BTreeSet::new(),
            };
            self.workspaces.record_step("run-1", id, &changes).unwrap();
        }

        fn diff(&self, file_bytes: u64) -> String {
            let records = self.workspaces.all_recorded_changes("run-1");
            let limits = DiffLimits { file_bytes, ..DiffLimits::NONE };
            compare(&records, spans(&records).into_values().flatten(), &limits).unwrap().unified()
        }
    }

    #[test]
    fn a_large_file_is_new_changed_or_deleted_and_has_the_size_of_its_ends() {
        let large = "x".repeat(100);
        let recorded = Recorded::new();
        let before =
            [("changed", Some(large.as_str())), ("deleted", Some(large.as_str())), ("new", None)];
        recorded.step("a#1", &before, |repo| {
            std::fs::write(repo.join("changed"), "y".repeat(1000)).unwrap();
            std::fs::write(repo.join("new"), "y".repeat(1000)).unwrap();
        });
        let (long, small) = ("y".repeat(1000), "z".repeat(90));
        recorded.step(
            "a#2",
            &[("changed", Some(long.as_str())), ("new", Some(long.as_str()))],
            |repo| {
                std::fs::write(repo.join("changed"), &small).unwrap();
                std::fs::write(repo.join("new"), &small).unwrap();
            },
        );
        assert_eq!(
            recorded.diff(50),
            "Files a/changed and b/changed differ (190 bytes)\n\
             Files a/deleted and /dev/null differ (100 bytes)\n\
             Files /dev/null and b/new differ (90 bytes)\n"
        );
        // What was long in between only is compared.
        assert!(recorded.diff(500).contains("+++ b/changed\n@@"));
    }

    #[test]
    fn a_file_of_another_mode_or_kind_is_listed_and_one_that_is_as_before_is_not() {
        let recorded = Recorded::new();
        let before = [("link", Some("to")), ("program", Some("a\n")), ("same", Some("a\n"))];
        recorded.step("a#1", &before, |repo| {
            symlink("to", repo.join("link")).unwrap();
            std::fs::write(repo.join("program"), "a\n").unwrap();
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(repo.join("program"), executable).unwrap();
            std::fs::write(repo.join("same"), "b\n").unwrap();
        });
        recorded.step("a#2", &[("same", Some("b\n"))], |repo| {
            std::fs::write(repo.join("same"), "a\n").unwrap();
        });
        assert_eq!(recorded.diff(50), "--- a/link\n+++ b/link\n--- a/program\n+++ b/program\n");
    }
}
