//! Computes the changes between two snapshots.
//!
//! Paths that both snapshots read are compared by their bytes. A path that one of them knows only
//! as "equal to HEAD" is compared the way git does: with `hash-object` and the filters and line
//! endings of that path, if the file is still the same as when it was read, and otherwise with the
//! blob as it would be checked out. So committing an existing change is not a change, nor is a
//! difference in line endings that git ignores.

use super::compare::{Comparison, Keys, Side, compare, renames};
use super::entry::{Bytes, Entry, Head, PathState, Repo, SnapshotData};
use super::git::RepositoryLocation;
use super::parse::{self, Blob};
use super::read_files::note_about;
use super::repo_path::{RepoPath, relative_to};
use super::{Change, Changes, Snapshot, Snapshotter};
use crate::git::{GitError, quote_path};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many blobs are checked out for comparison. Each takes a git command.
const MAX_CHECKED_OUT: usize = 2000;
/// How many new files are searched for renames.
const MAX_RENAME_TARGETS: usize = 5000;
/// The empty tree, which git knows without storing it, in SHA-1 and SHA-256.
const EMPTY_TREES: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// The content of a path in the commits of two snapshots.
#[derive(Debug, Default)]
struct Row {
    before: Head,
    after: Head,
}

/// A file that was read, to be compared with a blob.
struct Question<'a> {
    name: &'a RepoPath,
    blob: Blob,
    entry: &'a Entry,
    location: (RepoPath, RepositoryLocation),
}

impl Snapshotter {
    /// The changes from one snapshot to another.
    pub fn changes(&mut self, before: &Snapshot, after: &Snapshot) -> Changes {
        let (a, b) = (&*before.data, &*after.data);
        let mut changes = Changes::default();
        if std::ptr::eq(a, b) {
            return changes;
        }
        if a.too_large || b.too_large {
            let notes = before.notes.iter().chain(&after.notes).cloned();
            changes.notes = notes.chain(["so changes cannot be determined".to_owned()]).collect();
            return changes;
        }
        let mut rows: BTreeMap<RepoPath, Row> = BTreeMap::new();
        let mut skipped = BTreeSet::new();
        self.between_commits(a, b, &mut rows, &mut skipped, &mut changes.notes);
        for name in a.entries.keys().chain(b.entries.keys()) {
            rows.entry(name.clone()).or_default();
        }
        rows.retain(|name, _| {
            let hidden = name.folders().any(|folder| skipped.contains(&folder))
                || skipped.contains(&RepoPath::from(&b""[..]));
            !hidden && !self.is_excluded(name) && !self.is_unreported(name)
        });
        self.fill_committed(a, b, &mut rows, &mut changes.notes);

        let sides: BTreeMap<&RepoPath, (Side, Side)> = rows
            .iter()
            .map(|(name, row)| (name, (side(a, name, &row.before), side(b, name, &row.after))))
            .collect();
        let mut found: BTreeMap<RepoPath, Change> = BTreeMap::new();
        let mut questions = Vec::new();
        for (name, (was, is)) in &sides {
            match compare(was, is, self.file_mode()) {
                Comparison::Same => {}
                Comparison::Differs(change) => {
                    found.insert((*name).clone(), change);
                }
                Comparison::Ask(blob) => {
                    let (data, entry) = match (was, is) {
                        (Side::Observed(entry), _) => (a, *entry),
                        (_, Side::Observed(entry)) => (b, *entry),
                        _ => continue,
                    };
                    // The snapshot with the commit knows where its objects are.
                    let has_commit = if std::ptr::eq(data, a) { b } else { a };
                    let repo = has_commit.repo_of(name).or_else(|| data.repo_of(name));
                    if let Some((folder, repo)) = repo {
                        let location = (folder.clone(), self.location_of(&folder, repo));
                        questions.push(Question { name, blob, entry, location });
                    }
                }
            }
        }
        let same = self.answers(&questions, &mut changes.notes);
        for (question, same) in std::iter::zip(&questions, same) {
            if !same {
                found.insert(question.name.clone(), Change::Modified);
            }
        }
        drop_unignored(before, b, &mut found, &mut changes.notes);
        changes.renamed = self.renamed(b, &found, &sides, &mut changes.notes);
        changes.files =
            found.into_iter().map(|(name, change)| (self.relative_path(&name), change)).collect();
        changes
    }

    /// Adds the differences of the commits, if HEAD moved. Folders where that fails are noted and
    /// skipped.
    fn between_commits(
        &self,
        a: &SnapshotData,
        b: &SnapshotData,
        rows: &mut BTreeMap<RepoPath, Row>,
        skipped: &mut BTreeSet<RepoPath>,
        notes: &mut Vec<String>,
    ) {
        let folders: BTreeSet<&RepoPath> = a.repos.keys().chain(b.repos.keys()).collect();
        for folder in folders {
            let (was, is) = (a.repos.get(folder), b.repos.get(folder));
            let head = |repo: Option<&Repo>| repo.and_then(|repo| repo.head.clone());
            let (from, to) = (head(was), head(is));
            let Some(repo) = is.or(was) else { continue };
            if from == to {
                continue;
            }
            let length = from.as_ref().or(to.as_ref()).map_or(40, String::len);
            let empty = EMPTY_TREES[usize::from(length > 40)];
            let (from, to) = (from.as_deref().unwrap_or(empty), to.as_deref().unwrap_or(empty));
            let location = self.location_of(folder, repo);
            let arguments = ["diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", from, to];
            match self.git.run_without_index(&location, &arguments.map(OsStr::new)) {
                Ok(output) => {
                    for difference in parse::differences(&output.stdout, folder) {
                        let row = rows.entry(difference.name).or_default();
                        // A former submodule may be a folder now: one of the two repositories has
                        // the file.
                        let keep = |had: &mut Head, has: Option<Blob>| {
                            if !matches!(had, Head::Has(_)) {
                                *had = has.into();
                            }
                        };
                        keep(&mut row.before, difference.before);
                        keep(&mut row.after, difference.after);
                    }
                }
                Err(error) => {
                    let what = if folder.bytes().is_empty() {
                        "here".to_owned()
                    } else {
                        format!("in {folder}")
                    };
                    notes.push(format!("changes {what} cannot be determined: {error}"));
                    skipped.insert(folder.clone());
                }
            }
        }
    }

    /// Looks up the committed content of paths that only one of the snapshots read.
    fn fill_committed(
        &self,
        a: &SnapshotData,
        b: &SnapshotData,
        rows: &mut BTreeMap<RepoPath, Row>,
        notes: &mut Vec<String>,
    ) {
        let mut asked: BTreeMap<(RepoPath, bool), Vec<RepoPath>> = BTreeMap::new();
        for (name, row) in rows.iter_mut() {
            for (here, there, slot, is_after) in
                [(a, b, &mut row.before, false), (b, a, &mut row.after, true)]
            {
                if *slot != Head::Unknown || here.entries.contains_key(name) {
                    continue;
                }
                let Some((folder, _)) = here.repo_of(name) else {
                    *slot = Head::Lacks;
                    continue;
                };
                // The commits do not differ in this path, so the content in HEAD is the same in
                // both.
                let same_repo = there.repo_of(name).is_some_and(|(other, _)| other == folder);
                match there.entries.get(name).map(|entry| &entry.status.head) {
                    Some(head) if same_repo && *head != Head::Unknown => *slot = head.clone(),
                    _ => asked.entry((folder, is_after)).or_default().push(name.clone()),
                }
            }
        }
        for ((folder, is_after), names) in asked {
            let Some(repo) = (if is_after { b } else { a }).repos.get(&folder) else { continue };
            match self.committed(&folder, repo, &names) {
                Ok(mut found) => {
                    for name in names {
                        let Some(row) = rows.get_mut(&name) else { continue };
                        let slot = if is_after { &mut row.after } else { &mut row.before };
                        *slot = found.remove(&name).into();
                    }
                }
                Err(error) => {
                    notes.push(note_about(names.iter(), &format!("cannot be compared: {error}")));
                    for name in names {
                        rows.remove(&name);
                    }
                }
            }
        }
    }

    /// The content of some paths in the commit of a repository.
    pub(super) fn committed(
        &self,
        folder: &RepoPath,
        repo: &Repo,
        names: &[RepoPath],
    ) -> Result<HashMap<RepoPath, Blob>, GitError> {
        let Some(head) = &repo.head else { return Ok(HashMap::new()) };
        let inner: Vec<RepoPath> = names.iter().filter_map(|name| name.inside(folder)).collect();
        let mut arguments: Vec<&OsStr> = ["ls-tree", "-z", "--full-tree"].map(OsStr::new).to_vec();
        let few = inner.iter().map(|name| name.bytes().len() + 8).sum::<usize>() < 100_000;
        if !few {
            arguments.push(OsStr::new("-r"));
        }
        arguments.push(OsStr::new(head));
        if few {
            arguments.push(OsStr::new("--"));
            arguments.extend(inner.iter().map(|name| name.path().as_os_str()));
        }
        let output = self.git.run_without_index(&self.location_of(folder, repo), &arguments)?;
        let files = parse::committed(&output.stdout).files;
        Ok(files.into_iter().map(|(name, blob)| (folder.join(name.bytes()), blob)).collect())
    }

    /// Whether each file equals its blob.
    fn answers(&self, questions: &[Question], notes: &mut Vec<String>) -> Vec<bool> {
        let mut answers: Vec<Option<bool>> = vec![None; questions.len()];
        let mut by_repository: BTreeMap<&RepoPath, (&RepositoryLocation, Vec<usize>)> =
            BTreeMap::new();
        for (at, question) in questions.iter().enumerate() {
            if matches!(question.entry.state, PathState::File { .. })
                && self.is_unchanged(question.name, question.entry)
            {
                let (folder, location) = &question.location;
                by_repository.entry(folder).or_insert((location, Vec::new())).1.push(at);
            }
        }
        for (folder, (location, members)) in by_repository {
            let names: Vec<&RepoPath> = members.iter().map(|at| questions[*at].name).collect();
            for (at, oid) in std::iter::zip(members, self.blobs(folder, location, &names)) {
                answers[at] = oid.map(|oid| oid == questions[at].blob.oid);
            }
        }
        let open: Vec<usize> = (0..questions.len()).filter(|at| answers[*at].is_none()).collect();
        let (open, rest) = open.split_at(open.len().min(MAX_CHECKED_OUT));
        if !rest.is_empty() {
            let names: Vec<&RepoPath> = rest.iter().map(|at| questions[*at].name).collect();
            let what =
                "changed since they were read and are too many to compare; reported as modified";
            notes.push(note_about(names.into_iter(), what));
        }
        for (at, same) in
            std::iter::zip(open, in_threads(open, |at| self.is_checked_out(&questions[*at])))
        {
            answers[*at] = Some(same);
        }
        answers.into_iter().map(|answer| answer.unwrap_or(false)).collect()
    }

    /// Whether the file equals the blob as git would check it out.
    fn is_checked_out(&self, question: &Question) -> bool {
        let (folder, location) = &question.location;
        let bytes = match question.name.inside(folder) {
            Some(inner) => self.checked_out(location, &inner, &question.blob),
            None => return false,
        };
        match (&question.entry.state, bytes) {
            (PathState::File { bytes: Bytes::Hash(hash), .. }, Ok(bytes)) => {
                Sha256::digest(&bytes)[..] == hash[..]
            }
            (PathState::Link { target, .. }, Ok(bytes)) => bytes[..] == target[..],
            _ => false,
        }
    }

    /// The blobs that git computes for files in the work tree. `None` where it does not.
    fn blobs(
        &self,
        folder: &RepoPath,
        location: &RepositoryLocation,
        names: &[&RepoPath],
    ) -> Vec<Option<String>> {
        let mut input = Vec::new();
        for name in names {
            input.extend(
                name.inside(folder).map(|inner| quote_path(inner.bytes())).unwrap_or_default(),
            );
            input.push(b'\n');
        }
        let arguments = ["hash-object", "--stdin-paths"].map(OsStr::new);
        let output = self.git.run_with_filters(location, &arguments, Some(input));
        let output = output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        let mut lines = output.lines().map(str::to_owned);
        names.iter().map(|_| lines.next()).collect()
    }

    fn renamed(
        &self,
        b: &SnapshotData,
        found: &BTreeMap<RepoPath, Change>,
        sides: &BTreeMap<&RepoPath, (Side, Side)>,
        notes: &mut Vec<String>,
    ) -> Vec<(std::path::PathBuf, std::path::PathBuf)> {
        let of = |kind: Change| {
            found.iter().filter(move |(_, change)| **change == kind).map(|(name, _)| name)
        };
        let keys = |name: &RepoPath, is_after: bool| {
            sides.get(name).map_or_else(Keys::default, |(was, is)| {
                Keys::from_side(if is_after { is } else { was })
            })
        };
        let gone: Vec<(RepoPath, Keys)> =
            of(Change::Deleted).map(|name| (name.clone(), keys(name, false))).collect();
        let mut new: Vec<(RepoPath, Keys)> =
            of(Change::Added).map(|name| (name.clone(), keys(name, true))).collect();
        if gone.is_empty() || new.is_empty() {
            return Vec::new();
        }
        if new.len() > MAX_RENAME_TARGETS {
            notes.push(format!("renames are not detected among {} new files", new.len()));
            return Vec::new();
        }
        // A file that equalled HEAD is known by its blob, a new one by its hash: each needs the key
        // of the other.
        if gone.iter().any(|(_, keys)| keys.hash.is_none()) {
            self.compute_blob_ids(b, &mut new);
        }
        if gone.iter().any(|(_, keys)| keys.oid.is_none()) {
            self.compute_hashes(sides, b, &mut new);
        }
        let pairs = renames(&gone, &new);
        pairs.iter().map(|(from, to)| (self.relative_path(from), self.relative_path(to))).collect()
    }

    /// Finds the blobs that new files are.
    fn compute_blob_ids(&self, b: &SnapshotData, new: &mut [(RepoPath, Keys)]) {
        let mut by_repository: BTreeMap<RepoPath, (RepositoryLocation, Vec<usize>)> =
            BTreeMap::new();
        for (at, (name, keys)) in new.iter().enumerate() {
            let Some(entry) = b.entries.get(name).filter(|_| keys.oid.is_none()) else { continue };
            let Some((folder, repo)) = b.repo_of(name) else { continue };
            if matches!(entry.state, PathState::File { bytes: Bytes::Hash(_), .. })
                && self.is_unchanged(name, entry)
            {
                let location = || (self.location_of(&folder, repo), Vec::new());
                by_repository.entry(folder.clone()).or_insert_with(location).1.push(at);
            }
        }
        for (folder, (location, members)) in by_repository {
            let names: Vec<&RepoPath> = members.iter().map(|at| &new[*at].0).collect();
            let oids = self.blobs(&folder, &location, &names);
            for (at, oid) in std::iter::zip(members, oids) {
                new[at].1.oid = oid.map(|oid| (false, oid));
            }
        }
    }

    /// Computes the hashes of new files that are committed already.
    fn compute_hashes(
        &self,
        sides: &BTreeMap<&RepoPath, (Side, Side)>,
        b: &SnapshotData,
        new: &mut [(RepoPath, Keys)],
    ) {
        let open: Vec<usize> =
            (0..new.len()).filter(|at| new[*at].1.hash.is_none()).take(MAX_CHECKED_OUT).collect();
        let hash = |at: &usize| {
            let name = &new[*at].0;
            let Some((_, Side::Clean(blob))) = sides.get(name) else { return None };
            let (folder, repo) = b.repo_of(name)?;
            let bytes = self
                .checked_out(&self.location_of(&folder, repo), &name.inside(&folder)?, blob)
                .ok()?;
            Some(if blob.is_link() {
                (true, bytes)
            } else {
                (false, Sha256::digest(&bytes).to_vec())
            })
        };
        for (at, hash) in std::iter::zip(&open, in_threads(&open, hash)) {
            new[*at].1.hash = hash;
        }
    }

    /// The bytes of a blob as they would be checked out.
    pub(super) fn checked_out(
        &self,
        location: &RepositoryLocation,
        inner: &RepoPath,
        blob: &Blob,
    ) -> Result<Vec<u8>, GitError> {
        let path = [b"--path=", inner.bytes()].concat();
        let path = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&path);
        let arguments = if blob.is_link() {
            vec![OsStr::new("cat-file"), OsStr::new("blob"), OsStr::new(&blob.oid)]
        } else {
            vec![OsStr::new("cat-file"), OsStr::new("--filters"), path, OsStr::new(&blob.oid)]
        };
        Ok(self.git.run_with_filters(location, &arguments, None)?.stdout)
    }

    /// Whether a file is still the same as when it was read.
    fn is_unchanged(&self, name: &RepoPath, entry: &Entry) -> bool {
        let meta = self.top.join(name.path()).symlink_metadata();
        meta.is_ok_and(|meta| {
            entry.state.at() == Some(&super::entry::Identity::from_metadata(&meta))
        })
    }

    fn relative_path(&self, name: &RepoPath) -> std::path::PathBuf {
        relative_to(&self.here, name)
    }
}

/// Drops files that were ignored before and are not any more: their times show that they existed
/// all along.
fn drop_unignored(
    before: &Snapshot,
    b: &SnapshotData,
    found: &mut BTreeMap<RepoPath, Change>,
    notes: &mut Vec<String>,
) {
    if !found.keys().any(|name| name.path().file_name() == Some(OsStr::new(".gitignore"))) {
        return;
    }
    // A file that the earlier snapshot has under another path was moved with its folder, which its
    // own times do not show.
    let inode_of = |entry: &Entry| entry.state.at().map(|at| (at.device, at.inode));
    let known: BTreeSet<(u64, u64)> = before.data.entries.values().filter_map(inode_of).collect();
    let mut old = Vec::new();
    for (name, _) in found.iter().filter(|(_, change)| **change == Change::Added) {
        let Some(entry) = b.entries.get(name) else { continue };
        let at = entry.state.at();
        let untouched = at.is_some_and(|at| at.is_settled_at(before.taken));
        if untouched
            && entry.status.head == Head::Lacks
            && inode_of(entry).is_some_and(|at| !known.contains(&at))
        {
            old.push(name.clone());
        }
    }
    if !old.is_empty() {
        notes.push(note_about(
            old.iter(),
            "ignored before and unchanged since, not reported as added",
        ));
    }
    for name in old {
        found.remove(&name);
    }
}

/// The state of a path in a snapshot.
fn side<'a>(data: &'a SnapshotData, name: &RepoPath, committed: &Head) -> Side<'a> {
    match (data.entries.get(name), committed) {
        (Some(entry), _) => Side::Observed(entry),
        (None, Head::Has(blob)) => Side::Clean(blob.clone()),
        (None, Head::Lacks | Head::Unknown) => Side::Absent,
    }
}

/// Runs a slow function for each item in a few threads. The results are in order.
fn in_threads<T: Sync, R: Send + Default + Clone>(
    many: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads =
        std::thread::available_parallelism().map_or(1, usize::from).min(8).min(many.len());
    let done = Mutex::new(vec![R::default(); many.len()]);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((at, one)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|at| many.get(at).map(|one| (at, one)))
                {
                    let result = work(one);
                    if let Ok(mut done) = done.lock() {
                        done[at] = result;
                    }
                }
            });
        }
    });
    done.into_inner().unwrap_or_default()
}
