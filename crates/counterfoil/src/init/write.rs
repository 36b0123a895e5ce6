//! Reading and writing the files of a project: nothing outside of it, nothing half. It decides
//! nothing.

use anyhow::{Context, Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A longer file holds no settings.
const LONGEST: u64 = 4 << 20;

/// A file as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is none.
    Missing,
    /// Its text.
    Text(String),
    /// It is there and cannot be used; why, and the way out.
    Unusable(String),
}

/// Looks at a file of a project, by its path in it.
pub(crate) fn standing(root: &Path, file: &str) -> Standing {
    match look(root, file) {
        Ok(Some(text)) => Standing::Text(text),
        Ok(None) => Standing::Missing,
        Err(error) => Standing::Unusable(format!("{error:#}")),
    }
}

fn look(root: &Path, file: &str) -> Result<Option<String>> {
    let Some(path) = place(root, file)? else { return Ok(None) };
    let meta = match std::fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if meta.is_dir() {
        bail!("it is a folder; it is left as it is");
    }
    if !meta.is_file() {
        bail!("it is not a file; it is left as it is");
    }
    if meta.permissions().mode() & 0o222 == 0 {
        bail!("it is read-only; `chmod u+w {file}` lets it be changed");
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        bail!("it is longer than {LONGEST} bytes; it is left as it is");
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        anyhow::anyhow!(
            "byte {} is not UTF-8; it is left as it is",
            error.utf8_error().valid_up_to()
        )
    })?;
    Ok(Some(text))
}

/// Where a file of a project really is; none if its folder is not there. A link inside of the
/// project is followed, and stays.
fn place(root: &Path, file: &str) -> Result<Option<PathBuf>> {
    let root = root.canonicalize()?;
    let path = root.join(file);
    let outside = "it is a link that leads out of the project; change what it leads to by hand";
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if path.symlink_metadata().is_ok() {
                bail!("it is a link that leads nowhere; remove it");
            }
            let parent = path.parent().unwrap_or(&root);
            match parent.canonicalize() {
                Ok(parent) => parent.join(path.file_name().unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("its folder is a file; it is left as it is")
        }
        Err(error) => return Err(error.into()),
    };
    if !real.starts_with(&root) {
        bail!("{outside}");
    }
    Ok(Some(real))
}

/// Writes a file whole or not at all; it keeps its mode, and a link to it stays. `before` is what
/// it must still hold.
pub(crate) fn put(root: &Path, file: &str, before: Option<&str>, text: &str) -> Result<()> {
    let put = || -> Result<()> {
        let path = still(root, file, before)?;
        let folder = path.parent().context("it has no folder")?;
        std::fs::create_dir_all(folder)?;
        let mode = std::fs::metadata(&path).map(|meta| meta.permissions());
        let fresh = std::fs::Permissions::from_mode(0o666);
        let mut new = tempfile::Builder::new()
            .prefix(".counterfoil-")
            .permissions(fresh)
            .tempfile_in(folder)?;
        if let Ok(mode) = mode {
            new.as_file().set_permissions(mode)?;
        }
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(&path)?;
        Ok(())
    };
    put().with_context(|| format!("cannot write {file}"))
}

/// Removes a file that still holds what it should.
pub(crate) fn discard(root: &Path, file: &str, before: &str) -> Result<()> {
    let discard = || -> Result<()> { Ok(std::fs::remove_file(still(root, file, Some(before))?)?) };
    discard().with_context(|| format!("cannot remove {file}"))
}

/// The place of a file that nobody changed since it was looked at.
fn still(root: &Path, file: &str, before: Option<&str>) -> Result<PathBuf> {
    if look(root, file)?.as_deref() != before {
        bail!("somebody changed it in the meantime; run it again");
    }
    Ok(place(root, file)?.unwrap_or_else(|| root.join(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_cannot_be_used_is_said_and_left() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("latin"), b"a\xe9").unwrap();
        std::fs::write(at("fixed"), "{}").unwrap();
        std::fs::set_permissions(at("fixed"), std::fs::Permissions::from_mode(0o444)).unwrap();
        std::fs::write(outside.path().join("theirs"), "{}").unwrap();
        symlink(outside.path().join("theirs"), at("out")).unwrap();
        symlink(outside.path(), at("away")).unwrap();
        symlink(at("none"), at("nowhere")).unwrap();
        std::fs::File::create(at("long")).unwrap().set_len(LONGEST + 1).unwrap();
        for (file, said) in [
            ("folder", "it is a folder"),
            ("latin", "byte 1 is not UTF-8"),
            ("fixed", "`chmod u+w fixed`"),
            ("out", "leads out of the project"),
            ("away/new.json", "leads out of the project"),
            ("nowhere", "leads nowhere"),
            ("latin/x.json", "its folder is a file"),
            ("long", "longer than"),
        ] {
            match standing(root.path(), file) {
                Standing::Unusable(why) => assert!(why.contains(said), "{file}: {why}"),
                other => panic!("{file}: {other:?}"),
            }
            assert!(put(root.path(), file, None, "ours").is_err(), "{file}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(outside.path().join("theirs")).unwrap(), "{}");
    }

    #[test]
    fn a_link_inside_of_the_project_stays_one_and_modes_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("real.json");
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real.json", root.path().join("link.json")).unwrap();
        put(root.path(), "link.json", Some("old"), "new").unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(root.path().join("link.json").symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn what_somebody_changed_in_the_meantime_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "deep/new.json", None, "ours").unwrap();
        let error = format!("{:#}", put(root.path(), "deep/new.json", None, "again").unwrap_err());
        assert!(error.contains("in the meantime"), "{error}");
        assert!(discard(root.path(), "deep/new.json", "theirs").is_err());
        discard(root.path(), "deep/new.json", "ours").unwrap();
        assert_eq!(standing(root.path(), "deep/new.json"), Standing::Missing);
    }
}
