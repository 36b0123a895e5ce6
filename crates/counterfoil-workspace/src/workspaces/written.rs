//! Which paths of a plan a merge has written so far. A merge that is killed and then stopped keeps
//! only these: the content of a file alone does not say who wrote it.

use super::metadata::is_missing;
use super::plan::Direction;
use super::{Error, at};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The list, in the folder of the plan. Every line is the position of a change in the plan, or a
/// minus and the position.
const NAME: &str = "written";

/// The list of a plan while it is applied.
pub(super) struct WrittenList {
    path: PathBuf,
    file: Option<File>,
}

impl WrittenList {
    /// Begins the list of a new plan.
    pub(super) fn create(folder: &Path) -> Result<(), Error> {
        let path = folder.join(NAME);
        File::create(&path).map(drop).map_err(at("create", &path))
    }

    /// Goes on with the list of a plan. An earlier version of the program made none, and an undo has
    /// none.
    pub(super) fn open(folder: &Path, direction: Direction) -> Result<Self, Error> {
        let path = folder.join(NAME);
        if direction == Direction::Undo {
            return Ok(Self { path, file: None });
        }
        match OpenOptions::new().append(true).open(&path) {
            Ok(file) => Ok(Self { path, file: Some(file) }),
            Err(error) if is_missing(&error) => Ok(Self { path, file: None }),
            Err(error) => Err(at("open", &path)(error)),
        }
    }

    /// Writes the path of a change, and returns whether it was written. The list is on disk first, so
    /// that nothing is written which is not in it.
    pub(super) fn note(
        &mut self,
        position: usize,
        write: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.add(&format!("{position}\n"))?;
        let is_written = write()?;
        if !is_written {
            self.add(&format!("-{position}\n"))?;
        }
        Ok(is_written)
    }

    fn add(&mut self, line: &str) -> Result<(), Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(line.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(at("write", &self.path))
    }
}

/// The positions in the list of a plan. `None` if there is no list.
pub(super) fn read(folder: &Path) -> Result<Option<BTreeSet<usize>>, Error> {
    let path = folder.join(NAME);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(at("read", &path)(error)),
    };
    let mut written = BTreeSet::new();
    for line in String::from_utf8_lossy(&bytes).lines() {
        match line.strip_prefix('-') {
            Some(position) => {
                if let Ok(position) = position.parse() {
                    written.remove(&position);
                }
            }
            None => written.extend(line.parse::<usize>().ok()),
        }
    }
    Ok(Some(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_was_not_written_is_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let open = || WrittenList::open(folder.path(), Direction::Merge).unwrap();
        assert!(open().note(1, || Ok(true)).unwrap());
        assert_eq!(read(folder.path()).unwrap(), None, "there is none to go on with");
        WrittenList::create(folder.path()).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(BTreeSet::new()));
        let mut list = open();
        for position in [3, 0, 12] {
            assert_eq!(list.note(position, || Ok(position > 0)).unwrap(), position > 0);
        }
        drop(list);
        open().note(1, || Ok(true)).unwrap();
        WrittenList::open(folder.path(), Direction::Undo).unwrap().note(7, || Ok(true)).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(BTreeSet::from([1, 3, 12])));
    }
}
