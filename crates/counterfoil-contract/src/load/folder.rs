//! A folder whose files are read without following symbolic links out of it.
//!
//! Hard links are files like any other: they cannot be told from the file that was there first.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// How deep folders are searched.
const MAX_DEPTH: usize = 8;

/// A folder, by which the files in it are named.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

/// Why a path in a folder is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
    /// It cannot be found or opened.
    #[error("{0}")]
    Unreadable(String),
    /// A symbolic link at the path or on the way to it leads out of the folder.
    #[error(
        "{} leads out of the folder {} by a symbolic link; copy what it links to into the folder",
        .path.display(), .folder.display()
    )]
    LeadsOut {
        /// The path, relative to the folder.
        path: PathBuf,
        /// The folder that links must not leave.
        folder: PathBuf,
    },
}

/// The contract files in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderFiles {
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// Links with the ending of a contract file that lead to nothing, in order.
    pub dangling: Vec<PathBuf>,
}

impl From<std::io::Error> for FolderError {
    fn from(error: std::io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl Folder {
    /// A folder. The empty path is the current folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { root: if root.as_os_str().is_empty() { PathBuf::from(".") } else { root } }
    }

    /// The real path of a file or folder, with all links resolved.
    ///
    /// A path may lead out of the folder by itself (`../shared`, `/etc/x`). Links must then stay in
    /// the folder that it leads to by `..`, or in the folder of an absolute path.
    ///
    /// # Errors
    ///
    /// Nothing is at the path, or links lead out.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, FolderError> {
        let folder = self.boundary(path);
        let real = self.root.join(path).canonicalize()?;
        if real.starts_with(folder.canonicalize()?) {
            Ok(real)
        } else {
            Err(FolderError::LeadsOut { path: path.to_owned(), folder })
        }
    }

    /// The folder that links of a path must not leave.
    fn boundary(&self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            return path.parent().unwrap_or(path).to_owned();
        }
        let (mut depth, mut highest) = (0_isize, 0_isize);
        for part in path.components() {
            match part {
                Component::ParentDir => depth -= 1,
                Component::Normal(_) => depth += 1,
                _ => {}
            }
            highest = highest.min(depth);
        }
        let mut folder = self.root.clone();
        folder.extend((highest..0).map(|_| Component::ParentDir));
        folder
    }

    /// The contract files at a path, relative to the folder and in order: the file itself, or those
    /// in a folder and the folders in it. A file that links lead to as well is listed once. Hidden
    /// files, such as the lock files of editors, and links that lead to nothing are left out.
    ///
    /// # Errors
    ///
    /// A folder cannot be read, or a link to a contract file or to a folder leads out.
    pub fn contract_files(&self, path: &Path) -> Result<Vec<PathBuf>, FolderError> {
        Ok(self.list(path)?.files)
    }

    /// The contract files at a path as in [`Self::contract_files`], and the links that are left out.
    ///
    /// # Errors
    ///
    /// As for [`Self::contract_files`].
    pub fn list(&self, path: &Path) -> Result<FolderFiles, FolderError> {
        if !self.resolve(path)?.is_dir() {
            return Ok(FolderFiles { files: vec![path.to_owned()], dangling: Vec::new() });
        }
        let mut dangling = Vec::new();
        let mut files = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![(path.to_owned(), 0)];
        // Files and folders come before links to them, so that they are listed by their own names.
        let mut links: Vec<(PathBuf, usize)> = Vec::new();
        loop {
            if let Some((folder, depth)) = open.pop() {
                if !seen.insert(self.resolve(&folder)?) {
                    continue;
                }
                for entry in std::fs::read_dir(self.root.join(&folder))?.flatten() {
                    let path = folder.join(entry.file_name());
                    match entry.file_type() {
                        Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                            open.push((path, depth + 1));
                        }
                        Ok(kind) if kind.is_symlink() => links.push((path, depth)),
                        Ok(kind) if !kind.is_dir() && is_contract(&path) => {
                            files.insert(self.resolve(&path)?, path);
                        }
                        _ => {}
                    }
                }
                continue;
            }
            // In the order of names, whatever the order of the entries.
            links.sort_by(|a, b| b.cmp(a));
            let Some((link, depth)) = links.pop() else { break };
            if is_contract(&link) && self.is_dangling(&link) {
                dangling.push(link);
                continue;
            }
            let leads_to_folder = self.root.join(&link).is_dir();
            if leads_to_folder && depth < MAX_DEPTH {
                self.resolve(&link)?;
                open.push((link, depth + 1));
            } else if !leads_to_folder && is_contract(&link) {
                files.entry(self.resolve(&link)?).or_insert(link);
            }
        }
        let mut files: Vec<PathBuf> = files.into_values().collect();
        files.sort();
        dangling.sort();
        Ok(FolderFiles { files, dangling })
    }

    /// Whether a link leads to nothing: its target is not there, or it leads to itself.
    fn is_dangling(&self, link: &Path) -> bool {
        let target = std::fs::metadata(self.root.join(link));
        target.is_err_and(|error| error.kind() != ErrorKind::PermissionDenied)
    }
}

/// Whether a path in a folder has the ending of a contract file and is not hidden.
fn is_contract(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && is_contract_file(path)
}

/// Whether a path has the extension of a contract file, in small or capital letters.
pub fn is_contract_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    /// A folder `flow` with files, beside a folder `outside`, and links in it.
    fn folder() -> (tempfile::TempDir, Folder) {
        let top = tempfile::tempdir().unwrap();
        let at = |path: &str| top.path().join(path);
        for folder in ["flow/prompts", "flow/contracts/deep", "flow/shared", "outside/in"] {
            create_dir_all(at(folder)).unwrap();
        }
        for file in [
            "flow/prompts/a.md",
            "flow/contracts/a.yaml",
            "flow/contracts/deep/b.json",
            "flow/contracts/deep/notes.txt",
            "flow/shared/c.yaml",
            "outside/secret.md",
            "outside/in/d.yaml",
        ] {
            write(at(file), file).unwrap();
        }
        for (target, link) in [
            ("a.md", "flow/prompts/inside.md"),
            ("../../outside/secret.md", "flow/prompts/out.md"),
            ("../flow/../outside", "flow/away"),
            ("prompts", "flow/near"),
            ("out.md", "flow/prompts/twice.md"),
            ("nothing.md", "flow/prompts/dangling.md"),
            ("loop.md", "flow/prompts/loop.md"),
            ("flow", "linked-flow"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        let folder = Folder::new(at("flow"));
        (top, folder)
    }

    #[test]
    fn links_are_followed_only_inside() {
        let (top, folder) = folder();
        let absolute = top.path().join("outside/secret.md");
        let missing = "No such file";
        for (path, expected) in [
            ("prompts/a.md", "prompts/a.md"),
            ("./prompts/../prompts/a.md", "prompts/a.md"),
            ("prompts/inside.md", "prompts/a.md"),
            ("near/a.md", "prompts/a.md"),
            ("near/inside.md", "prompts/a.md"),
            ("prompts/out.md", "leads out"),
            ("prompts/twice.md", "leads out"),
            ("near/out.md", "leads out"),
            ("away/secret.md", "leads out"),
            ("away", "leads out"),
            // What the path says itself is not a link.
            ("../outside/secret.md", "../outside/secret.md"),
            ("prompts/../../outside/secret.md", "../outside/secret.md"),
            (absolute.to_str().unwrap(), "../outside/secret.md"),
            ("prompts/dangling.md", missing),
            ("prompts/loop.md", "symbolic links"),
            ("prompts/none.md", missing),
        ] {
            for root in ["flow", "linked-flow"] {
                let found = Folder::new(top.path().join(root)).resolve(Path::new(path));
                match found {
                    Ok(real) => {
                        let expected = folder.root.join(expected).canonicalize().unwrap();
                        assert_eq!(real, expected, "{path}");
                    }
                    Err(error) => assert!(error.to_string().contains(expected), "{path}: {error}"),
                }
            }
        }
    }

    #[test]
    fn contract_files_are_listed_once_and_links_out_are_refused() {
        let (top, folder) = folder();
        let list = |path: &str| {
            let files =
                folder.contract_files(Path::new(path)).map_err(|error| error.to_string())?;
            Ok::<_, String>(files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>())
        };
        let both = vec!["contracts/a.yaml".to_owned(), "contracts/deep/b.json".to_owned()];
        assert_eq!(list("contracts"), Ok(both.clone()));
        assert_eq!(list("contracts/a.yaml"), Ok(vec!["contracts/a.yaml".to_owned()]));
        let link = |target: &str, link: &str| {
            symlink(target, top.path().join("flow/contracts").join(link)).unwrap();
        };
        link("a.yaml", "0-again.yaml");
        link("../..", "deep/up");
        link("../../outside/secret.md", "ignored.md");
        // Everything in the folder of the workflow can be reached by the link to it.
        assert!(list("contracts").unwrap_err().contains("deep/up/away leads out"));
        std::fs::remove_file(top.path().join("flow/away")).unwrap();
        let shared = "contracts/deep/up/shared/c.yaml".to_owned();
        assert_eq!(list("contracts"), Ok([both, vec![shared]].concat()));
        link("../../outside/in/d.yaml", "z.yaml");
        assert!(list("contracts").unwrap_err().contains("contracts/z.yaml leads out"));
        assert!(list("contracts/z.yaml").unwrap_err().contains("leads out"));
    }

    #[test]
    fn hidden_files_are_left_out_and_links_to_nothing_are_named() {
        let (top, folder) = folder();
        std::fs::remove_file(top.path().join("flow/away")).unwrap();
        let at = |name: &str| top.path().join("flow/contracts").join(name);
        write(at(".hidden.yaml"), "contract: a/b").unwrap();
        for (target, name) in [
            ("kim@host.1:2", ".#a.yaml"),
            ("../../outside/in/d.yaml", ".out.yaml"),
            ("nothing.yaml", "dangling.yaml"),
            ("loop.yaml", "loop.yaml"),
            ("nothing", "dangling.txt"),
        ] {
            symlink(target, at(name)).unwrap();
        }
        let listed = folder.list(Path::new("contracts")).unwrap();
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(listed.files, paths(&["contracts/a.yaml", "contracts/deep/b.json"]));
        let dangling = ["contracts/dangling.yaml", "contracts/loop.yaml"];
        assert_eq!(listed.dangling, paths(&dangling));
        // What is named is meant.
        assert!(folder.list(Path::new("contracts/dangling.yaml")).is_err());
        assert_eq!(
            folder.list(Path::new("contracts/.hidden.yaml")).unwrap().files,
            paths(&["contracts/.hidden.yaml"])
        );
    }
}
