//! What stands in a workspace, and what changed between two looks at it.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What changed between two looks at a workspace. Paths are relative to its folder; those above it begin with `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What became of each file. A renamed one stands here twice, deleted and added.
    pub files: BTreeMap<PathBuf, Change>,
    /// The same bytes under another name: from, to.
    pub renamed: Vec<(PathBuf, PathBuf)>,
    /// What could not be seen, and why.
    pub notes: Vec<String>,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is there now and was not before.
    Added,
    /// Its bytes, its mode or its kind differ.
    Modified,
    /// It was there before and is not now.
    Deleted,
}
