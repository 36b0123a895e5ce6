//! The refs of a repository at some time, so that it can be told later which commits are new and
//! which refs moved.

use crate::git::{GitCommand, GitError, repository_top};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The refs of a repository at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refs {
    /// The object of each ref, by its full name. `HEAD` is that of the work tree.
    pub objects: BTreeMap<String, String>,
    /// The digest of the list of commits whose parents are left out; none in a complete repository.
    pub shallow: Option<String>,
}

impl Refs {
    /// Reads the refs of the repository around a folder. None outside of a repository.
    ///
    /// # Errors
    ///
    /// Git cannot read them.
    pub fn read(folder: &Path) -> Result<Option<Self>, GitError> {
        if repository_top(folder).is_none() {
            return Ok(None);
        }
        let list = ["for-each-ref", "--format=%(objectname) %(refname)"];
        let listed = GitCommand::new(folder, list).run()?;
        let text = String::from_utf8_lossy(&listed.stdout);
        let mut objects: BTreeMap<String, String> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(object, name)| (name.to_owned(), object.to_owned()))
            .collect();
        if let Some(head) = crate::git::head(folder) {
            objects.insert("HEAD".to_owned(), head);
        }
        let path = ["rev-parse", "--path-format=absolute", "--git-path", "shallow"];
        let path = GitCommand::new(folder, path).run()?.line();
        let shallow = std::fs::read(path).ok().map(|bytes| hex::encode(Sha256::digest(&bytes)));
        Ok(Some(Self { objects, shallow }))
    }

    /// The objects that refs point to.
    pub fn tips(&self) -> BTreeSet<&str> {
        self.objects.values().map(String::as_str).collect()
    }

    /// The names of the refs that differ, in order. `HEAD` is left out: it follows a branch.
    pub fn moved<'a>(&'a self, now: &'a Self) -> BTreeSet<&'a str> {
        let names = self.objects.keys().chain(now.objects.keys());
        let moved = names.filter(|name| self.objects.get(*name) != now.objects.get(*name));
        moved.map(String::as_str).filter(|name| *name != "HEAD").collect()
    }
}
