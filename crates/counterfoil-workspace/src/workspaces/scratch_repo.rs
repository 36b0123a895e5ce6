//! A private git repository for each workspace: it stores the base, determines ignored files and
//! writes patches.
//!
//! It uses the objects of the user's repository as alternates and stores new ones in its own
//! folder. Its settings are ours, so files that an agent writes into a workspace cannot run a
//! program or change what we see.

use super::disk::is_draft;
use super::file_list::split;
use super::metadata::{BaseFile, Content, EncodedPath, Kind};
use super::{Error, at};
use crate::git::{GitCommand, quote_path};
use crate::make_private_folder;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Attributes that disable all conversions, whatever `.gitattributes` says.
const ATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding !diff !merge !eol\n";
/// Settings that treat file names as plain bytes.
const SETTINGS: &str = "[core]\n\tbare = false\n\tfileMode = true\n\tsymlinks = true\n\tignoreCase = false\n\
    \tprecomposeUnicode = false\n\tprotectNTFS = false\n\tprotectHFS = false\n\tautocrlf = false\n\tsafecrlf = false\n";
/// Nested repositories deeper than this are skipped.
const MAX_NESTING: usize = 8;

/// The private repository of a workspace.
#[derive(Debug)]
pub(super) struct ScratchRepo {
    folder: PathBuf,
    excludes: Option<PathBuf>,
}

/// A path that changed, with its content in the base and in the workspace.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) path: PathBuf,
    pub(super) base: Option<BaseFile>,
    pub(super) workspace: Option<Content>,
}

impl ScratchRepo {
    /// The repository in this folder.
    pub(super) fn new(folder: &Path, excludes: Option<&EncodedPath>) -> Self {
        Self { folder: folder.to_owned(), excludes: excludes.map(|path| path.0.clone()) }
    }

    /// Creates it, with the objects of another repository as alternates.
    pub(super) fn create(&self, from: Option<(&Path, &str)>) -> Result<(), Error> {
        let format = from.map_or("sha1", |(_, format)| format);
        let parent = self.folder.parent().unwrap_or(Path::new("/"));
        make_private_folder(parent).map_err(at("create", parent))?;
        let init = ["init", "-q", "--bare", "--template="].map(OsStr::new);
        GitCommand::new(parent, init)
            .arg(format!("--object-format={format}"))
            .arg(&self.folder)
            .run()?;
        let info = self.folder.join("info");
        std::fs::create_dir_all(&info).map_err(at("create", &info))?;
        let write =
            |path: PathBuf, bytes: &[u8]| std::fs::write(&path, bytes).map_err(at("write", &path));
        write(info.join("attributes"), ATTRIBUTES.as_bytes())?;
        let config = self.folder.join("config");
        let mut settings = std::fs::read(&config).map_err(at("read", &config))?;
        settings.extend_from_slice(SETTINGS.as_bytes());
        write(config, &settings)?;
        if let Some((common, _)) = from {
            let mut line = quote_path(common.join("objects").as_os_str().as_bytes());
            line.push(b'\n');
            write(self.folder.join("objects/info/alternates"), &line)?;
            if let Ok(exclude) = std::fs::read(common.join("info/exclude")) {
                write(info.join("exclude"), &exclude)?;
            }
        }
        Ok(())
    }

    fn command<A: AsRef<OsStr>>(
        &self,
        tree: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> GitCommand {
        let mut message: Vec<_> = Vec::new();
        if let Some(excludes) = &self.excludes {
            let mut setting = OsStr::new("core.excludesFile=").to_owned();
            setting.push(excludes);
            message = vec![OsStr::new("-c").to_owned(), setting];
        }
        message.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        GitCommand::new(tree, message)
            .env("GIT_DIR", &self.folder)
            .env("GIT_WORK_TREE", tree)
            .env("GIT_INDEX_FILE", self.folder.join("empty"))
    }

    /// The files in a folder that are not ignored, including those of nested repositories, and the
    /// folders of these.
    pub(super) fn files(&self, tree: &Path) -> Result<(BTreeSet<PathBuf>, Vec<PathBuf>), Error> {
        let (mut files, mut nested) = (BTreeSet::new(), Vec::new());
        let mut open = vec![(PathBuf::new(), 0)];
        while let Some((inside, depth)) = open.pop() {
            let others = ["ls-files", "-z", "--others", "--exclude-standard"];
            let answer = self.command(&tree.join(&inside), others).run()?;
            for entry in split(&answer.stdout) {
                match entry.strip_suffix(b"/") {
                    Some(folder) if depth < MAX_NESTING => {
                        let path = inside.join(OsStr::from_bytes(folder));
                        nested.push(path.clone());
                        open.push((path, depth + 1));
                    }
                    Some(_) => {}
                    None => {
                        files.insert(inside.join(OsStr::from_bytes(entry)));
                    }
                }
            }
        }
        files.retain(|path| !path.file_name().is_some_and(is_draft));
        Ok((files, nested))
    }

    /// Stores files and links as git objects. Returns the object names in the same order.
    pub(super) fn store<'a>(
        &self,
        tree: &Path,
        files: impl Iterator<Item = (&'a Path, Kind)>,
    ) -> Result<Vec<String>, Error> {
        let links = self.folder.join("links");
        let mut names = Vec::new();
        let mut count = 0;
        for (path, kind) in files {
            let full = tree.join(path);
            if kind == Kind::Link {
                // Git would follow the link.
                std::fs::create_dir_all(&links).map_err(at("create", &links))?;
                let target = std::fs::read_link(&full).map_err(at("read", &full))?;
                let copy = links.join(count.to_string());
                std::fs::write(&copy, target.as_os_str().as_bytes()).map_err(at("write", &copy))?;
                names.extend(quote_path(copy.as_os_str().as_bytes()));
            } else {
                names.extend(quote_path(full.as_os_str().as_bytes()));
            }
            names.push(b'\n');
            count += 1;
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let answer = self
            .command(tree, ["hash-object", "-w", "--no-filters", "--stdin-paths"])
            .stdin(names)
            .run()?;
        super::disk::clear(&links).map_err(at("remove", &links))?;
        let blobs: Vec<_> =
            String::from_utf8_lossy(&answer.stdout).lines().map(str::to_owned).collect();
        if blobs.len() == count {
            Ok(blobs)
        } else {
            let why = format!("git returned {} object names, not {count}", blobs.len());
            Err(Error::Damaged { path: self.folder.clone(), why })
        }
    }

    /// The bytes of a git object.
    pub(super) fn bytes(&self, blob: &str) -> Result<Vec<u8>, Error> {
        Ok(self.command(&self.folder, ["cat-file", "blob", blob]).run()?.stdout)
    }

    /// Merges three texts. `None` if the changes overlap.
    pub(super) fn merge(
        &self,
        base: &[u8],
        workspace: &[u8],
        repository: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let sides = [("repository", repository), ("base", base), ("workspace", workspace)];
        let folder = self.folder.join("merge");
        std::fs::create_dir_all(&folder).map_err(at("create", &folder))?;
        for (name, bytes) in sides {
            let path = folder.join(name);
            std::fs::write(&path, bytes).map_err(at("write", &path))?;
        }
        let arguments = ["merge-file", "-p", "--diff3", "repository", "base", "workspace"];
        let answer = GitCommand::new(&folder, arguments)
            .env("GIT_DIR", &self.folder)
            .env("GIT_WORK_TREE", &folder)
            .output()?;
        match answer.code() {
            Some(0) => Ok(Some(answer.stdout)),
            // The exit code is the number of conflicts, or an error such as "not text".
            _ => Ok(None),
        }
    }

    /// Writes the differences as a patch for `git apply`.
    pub(super) fn patch(
        &self,
        tree: &Path,
        differences: &[Difference],
        to: File,
    ) -> Result<(), Error> {
        let workspace: Vec<_> = differences
            .iter()
            .filter_map(|difference| {
                Some((difference.path.as_path(), difference.workspace.as_ref()?.kind))
            })
            .collect();
        let blobs = self.store(tree, workspace.iter().copied())?;
        let base = differences.iter().filter_map(|difference| {
            let base = difference.base.as_ref()?;
            Some((difference.path.as_path(), base.content.kind, base.blob.as_deref()?))
        });
        let base = self.write_tree("base", base)?;
        let now =
            workspace.iter().zip(&blobs).map(|((path, kind), blob)| (*path, *kind, blob.as_str()));
        let now = self.write_tree("workspace", now)?;
        let arguments = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        self.command(tree, arguments).arg(base).arg(now).stdout_to(to).run()?;
        Ok(())
    }

    /// Applies a patch to a folder, completely or not at all.
    pub(super) fn apply(&self, tree: &Path, patch: &Path) -> Result<(), Error> {
        let apply = ["apply", "--whitespace=nowarn", "--binary", "--"];
        self.command(tree, apply).arg(patch).run()?;
        Ok(())
    }

    fn write_tree<'a>(
        &self,
        name: &str,
        entries: impl Iterator<Item = (&'a Path, Kind, &'a str)>,
    ) -> Result<String, Error> {
        let index = self.folder.join(format!("{name}.index"));
        let _ = std::fs::remove_file(&index);
        let mut list = Vec::new();
        for (path, kind, blob) in entries {
            list.extend_from_slice(format!("{} {blob}\t", kind.mode()).as_bytes());
            list.extend_from_slice(path.as_os_str().as_bytes());
            list.push(0);
        }
        let call = |arguments: &[&str]| {
            GitCommand::new(&self.folder, arguments)
                .env("GIT_DIR", &self.folder)
                .env("GIT_WORK_TREE", &self.folder)
                .env("GIT_INDEX_FILE", &index)
        };
        call(&["update-index", "-z", "--index-info"]).stdin(list).run()?;
        Ok(call(&["write-tree"]).run()?.line().to_string_lossy().into_owned())
    }
}
