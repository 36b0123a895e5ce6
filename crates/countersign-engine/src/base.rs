//! A work tree against a revision: what claims are held against where there is no run that looked before the agent began.

use crate::claims::{Config, ConfigError, Observer, Since};
use crate::config::FILE;
use crate::inventory;
use crate::tree::{self, Changes, Settings, Snapshot, Tree};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files whose tests are counted; where more changed, their number cannot be told.
const MOST_FILES: usize = 1000;

/// A repository since a revision.
#[derive(Debug)]
pub struct Base {
    tree: Tree,
    before: Snapshot,
    /// When the revision was made: nothing an agent did for it is older.
    made: Option<SystemTime>,
    changes: Changes,
}

impl Base {
    /// Looks at a repository and at a revision of it. `ours` are files and folders, absolute, that are no part of the work: what
    /// the agent said, the state folder. The error names the revision, and has git's words.
    pub fn open(folder: &Path, revision: &str, ours: BTreeSet<PathBuf>) -> Result<Self, String> {
        let mut tree = Tree::open(folder, Settings { without: ours, ..Settings::default() });
        let before = tree.revision(revision)?;
        let made = tree.made(revision);
        Ok(Self { tree, before, made, changes: Changes::default() })
    }

    /// The folder, with the links in its path followed.
    pub fn folder(&self) -> &Path {
        self.tree.folder()
    }

    /// The top of the repository.
    pub fn top(&self) -> &Path {
        self.tree.top()
    }

    /// What could not be seen of the revision, and why.
    pub fn notes(&self) -> &[String] {
        &self.before.notes
    }

    /// The configuration as the revision has it, and a remark if the work tree has another: an agent that works on the tree
    /// does not say what it is checked by.
    pub fn config(&self) -> Result<(Config, Option<String>), ConfigError> {
        let places = [self.tree.folder().join(FILE), self.tree.top().join(FILE)];
        let wrong = |path: &Path, message: String| ConfigError { path: Some(path.to_owned()), message };
        for path in &places {
            let now = read(path).ok().flatten();
            let then = self.tree.content(&self.before, path);
            let then = then.map_err(|error| wrong(path, format!("cannot be read at the base: {error}")))?;
            let Some(bytes) = then else { continue };
            let remark = (now.as_ref() != Some(&bytes))
                .then(|| format!("{FILE} is not what it was at the base; the checks of the base count"));
            let text = String::from_utf8(bytes)
                .map_err(|error| wrong(path, format!("is not UTF-8 at the base: {}", error.utf8_error())))?;
            let config = Config::parse(&text)
                .map_err(|error| wrong(path, format!("at the base: {}", error.message)))?;
            return Ok((Config { source: Some(path.clone()), ..config }, remark));
        }
        let new = places.iter().any(|path| path.exists()).then(|| {
            format!("{FILE} was not there at the base, so its checks do not count; name them with --check NAME=CMD")
        });
        Ok((Config::default(), new))
    }
}

impl Observer for Base {
    fn changes(&mut self) -> Result<&Changes, String> {
        let now = self.tree.snapshot();
        self.changes = self.tree.changes(&self.before, &now);
        Ok(&self.changes)
    }

    fn since(&mut self, path: &Path) -> Since {
        self.since_all(&[path.to_owned()]).pop().unwrap_or(Since::Absent)
    }

    fn since_all(&mut self, paths: &[PathBuf]) -> Vec<Since> {
        let ignored = self.tree.ignored(paths);
        let one = |path: &PathBuf| {
            // Without a time everything is older.
            match self.tree.since(path, self.made.unwrap_or_else(SystemTime::now)) {
                tree::Since::Absent => Since::Absent,
                _ if !ignored.contains(path) => Since::Untouched,
                tree::Since::Untouched => Since::Untouched,
                tree::Since::Modified => Since::Modified,
                tree::Since::Added => Since::Added,
            }
        };
        paths.iter().map(one).collect()
    }

    fn tree_id(&mut self) -> Option<String> {
        self.tree.snapshot().id
    }

    fn tests(&mut self) -> Option<(u64, u64)> {
        let now = self.tree.snapshot();
        let changes = self.tree.changes(&self.before, &now);
        let paths: Vec<&PathBuf> =
            changes.files.keys().filter(|path| inventory::is_test_file(path)).take(MOST_FILES + 1).collect();
        if paths.len() > MOST_FILES {
            return None;
        }
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            // Where one side cannot be read, nothing can be said.
            let before = self.tree.content(&self.before, path).ok()?;
            let after = read(&self.tree.folder().join(path)).ok()?;
            files.push((path.as_path(), before, after));
        }
        let sides = files.iter().map(|(path, before, after)| (*path, before.as_deref(), after.as_deref()));
        let delta = inventory::delta(sides);
        (!delta.unread).then_some((delta.added.len() as u64, delta.removed.len() as u64))
    }

    fn began(&self) -> Option<SystemTime> {
        self.made
    }
}

/// The bytes of a plain file, or a little more than anybody looks at; none where there is no such file.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
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
