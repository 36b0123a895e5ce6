//! A work tree against a revision: what claims are held against where there is no run that looked
//! before the agent began.

use crate::claims::{Config, ConfigError};
use crate::config::FILE;
use crate::observed::{self, Observed};
use counterfoil_workspace::tree::{Settings, Tree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A repository since a revision.
#[derive(Debug)]
pub struct Base {
    observed: Observed,
}

impl Base {
    /// Looks at a repository and at a revision of it. `ours` are files and folders, absolute, that
    /// are no part of the work: what the agent said, the state folder. The error names the
    /// revision, and has git's words.
    pub fn open(folder: &Path, revision: &str, ours: BTreeSet<PathBuf>) -> Result<Self, String> {
        let mut tree = Tree::open(folder, Settings { without: ours, ..Settings::default() });
        let before = tree.revision(revision)?;
        // Nothing an agent did for it is older.
        let made = tree.made(revision);
        Ok(Self { observed: Observed::new(tree, before, made) })
    }

    /// What claims are held against.
    pub fn observed(&mut self) -> &mut Observed {
        &mut self.observed
    }

    /// What could not be seen of the revision, and why.
    pub fn notes(&self) -> &[String] {
        &self.observed.before().notes
    }

    /// The configuration as the revision has it, and a remark if the work tree has another: an
    /// agent that works on the tree does not say what it is checked by.
    pub fn config(&self) -> Result<(Config, Option<String>), ConfigError> {
        let places = [self.observed.folder().join(FILE), self.observed.top().join(FILE)];
        let wrong =
            |path: &Path, message: String| ConfigError { path: Some(path.to_owned()), message };
        for path in &places {
            let now = observed::read(path).ok().flatten();
            let then = self.observed.tree().content(self.observed.before(), path);
            let then =
                then.map_err(|error| wrong(path, format!("cannot be read at the base: {error}")))?;
            let Some(bytes) = then else { continue };
            let remark = (now.as_ref() != Some(&bytes)).then(|| {
                format!("{FILE} is not what it was at the base; the checks of the base count")
            });
            let text = String::from_utf8(bytes).map_err(|error| {
                wrong(path, format!("is not UTF-8 at the base: {}", error.utf8_error()))
            })?;
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
