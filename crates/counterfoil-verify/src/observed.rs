//! A workspace since a time: what claims are held against, in a run and without one.

use crate::claims::{Observer, Since};
use crate::inventory::{self, Delta};
use counterfoil_workspace::tree::{Change, Changes, Snapshot, Tree};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files whose tests are looked at; where more changed, what became of their tests cannot be told.
const MOST_FILES: usize = 1000;

/// A workspace since a time. Its calls block.
#[derive(Debug)]
pub struct Observed {
    tree: Tree,
    before: Snapshot,
    /// When it began, where that is known.
    began: Option<SystemTime>,
    /// The last look.
    now: Option<Snapshot>,
    changes: Changes,
    /// Nobody asked since the last look, so nothing happened in between.
    current: bool,
}

impl Observed {
    /// A workspace as it was, which is looked at from now on.
    pub fn new(tree: Tree, before: Snapshot, began: Option<SystemTime>) -> Self {
        Self { tree, before, began, now: None, changes: Changes::default(), current: false }
    }

    /// The folder, with the links in its path followed.
    pub fn folder(&self) -> &Path {
        self.tree.folder()
    }

    /// The top of its repository; the folder itself outside of one.
    pub fn top(&self) -> &Path {
        self.tree.top()
    }

    /// As it was.
    pub fn before(&self) -> &Snapshot {
        &self.before
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The tree, given back.
    pub fn into_tree(self) -> Tree {
        self.tree
    }

    /// What changed by the last look.
    pub fn seen(&self) -> &Changes {
        &self.changes
    }

    /// The name of the tree at the last look.
    pub fn name(&self) -> Option<String> {
        self.now.as_ref().unwrap_or(&self.before).id.clone()
    }

    /// Why nothing could be seen, at the beginning or at the last look.
    pub fn blind(&self) -> Option<&str> {
        let blind = |snapshot: &&Snapshot| snapshot.id.is_none();
        let snapshot = std::iter::once(&self.before).chain(&self.now).find(blind)?;
        // What was too much is said last.
        Some(snapshot.notes.last().map_or("the workspace cannot be seen", String::as_str))
    }

    /// Looks anew.
    pub fn look(&mut self) {
        let now = self.tree.snapshot();
        self.changes = self.tree.changes(&self.before, &now);
        // How it was looked at belongs to what was seen.
        let seen = std::mem::take(&mut self.changes.notes);
        let mut known = HashSet::new();
        let all = now.notes.iter().cloned().chain(seen);
        self.changes.notes = all.filter(|note| known.insert(note.clone())).collect();
        self.now = Some(now);
        self.current = true;
    }

    /// Puts files back as they were; those that could not be, with why.
    pub fn restore(&mut self, paths: &[PathBuf]) -> Vec<(PathBuf, String)> {
        self.tree.restore(&self.before, paths)
    }

    /// The tests that came and went, by the last look.
    pub fn delta(&self) -> Delta {
        let paths: Vec<(&PathBuf, &Change)> = self
            .changes
            .files
            .iter()
            .filter(|(path, _)| inventory::is_test_file(path))
            .take(MOST_FILES + 1)
            .collect();
        let unread = |why: String| Delta { unread: true, notes: vec![why], ..Delta::default() };
        if paths.len() > MOST_FILES {
            return unread(format!("more than {MOST_FILES} files that may hold tests changed"));
        }
        let mut files = Vec::with_capacity(paths.len());
        for (path, _) in paths {
            let before = self.tree.content(&self.before, path);
            let after = read(&self.tree.folder().join(path));
            match (before, after) {
                (Ok(before), Ok(after)) => files.push((path.as_path(), before, after)),
                (Err(error), _) | (_, Err(error)) => {
                    return unread(format!("{}: {error}", path.display()));
                }
            }
        }
        inventory::delta(
            files.iter().map(|(path, before, after)| (*path, before.as_deref(), after.as_deref())),
        )
    }

    /// Whether tests may stand in what changed that no grammar here can count: there is nothing
    /// that it can, and something is called a test.
    fn hides_tests(&self) -> bool {
        let called_so = |path: &PathBuf| {
            let name = path.to_string_lossy().to_lowercase();
            name.contains("test") || name.contains("spec")
        };
        let mut paths = self.changes.files.keys();
        !paths.clone().any(|path| inventory::is_test_file(path)) && paths.any(called_so)
    }
}

impl Observer for Observed {
    fn changes(&mut self) -> Result<&Changes, String> {
        if self.now.is_none() {
            self.look();
        }
        match self.blind() {
            Some(why) => Err(why.to_owned()),
            None => Ok(&self.changes),
        }
    }

    fn since(&mut self, path: &Path) -> Since {
        self.since_all(&[path.to_owned()]).pop().unwrap_or(Since::Absent)
    }

    fn since_all(&mut self, paths: &[PathBuf]) -> Vec<Since> {
        let ignored = self.tree.ignored(paths);
        // Without a time everything is older.
        let began = self.began.unwrap_or_else(SystemTime::now);
        let one = |path: &PathBuf| match self.tree.since(path, began) {
            Since::Absent => Since::Absent,
            _ if !ignored.contains(path) => Since::Untouched,
            since => since,
        };
        paths.iter().map(one).collect()
    }

    fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        self.tree.ignored(paths)
    }

    fn tree_id(&mut self) -> Option<String> {
        // Whoever asks a second time has done something in between.
        if !std::mem::take(&mut self.current) {
            self.look();
            self.current = false;
        }
        self.name()
    }

    fn tests(&mut self) -> Option<(u64, u64)> {
        let delta = self.delta();
        (!delta.unread && !self.hides_tests())
            .then_some((delta.added.len() as u64, delta.removed.len() as u64))
    }

    fn began(&self) -> Option<SystemTime> {
        self.began
    }
}

/// The bytes of a plain file, or a little more than anybody looks at; none where there is no such
/// file.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    let most = inventory::MAX_BYTES as u64 + 1;
    std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
