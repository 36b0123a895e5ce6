//! The base of the first look, as git knows it then: the files of the index, which of them are
//! unchanged, and how they are converted. After that, nothing in the repository is asked.

use super::base::{Base, BaseFile, BaseRepo};
use super::blob::{Conversion, ObjectFormat};
use super::conversions::{LineEnds, check_attributes, conversions};
use super::discover::git_dir_of;
use super::git::{Git, RepositoryLocation};
use super::ignore_rules::{IgnoreRules, read_text};
use super::parse::{self, Index};
use super::read_files::Folders;
use super::repo_path::{RepoPath, canonicalize_existing};
use crate::git::GitError;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How deep, and in how many repositories, submodules are followed.
const MAX_SUBMODULE_DEPTH: usize = 16;
const MAX_REPOSITORIES: usize = 2000;

/// What git knows of a work tree.
pub(super) struct Seed {
    pub(super) base: Base,
    /// The files that git found to be equal to the index.
    pub(super) unchanged: BTreeSet<usize>,
    /// The files that git does not check.
    pub(super) unchecked: BTreeSet<RepoPath>,
    pub(super) line_ends: LineEnds,
    pub(super) rules: IgnoreRules,
    pub(super) notes: Vec<String>,
}

/// Reads the indexes of a repository and its submodules.
pub(super) fn seed(git: &Git, location: &RepositoryLocation) -> Result<Seed, GitError> {
    let mut reader = IndexReader {
        git,
        top: location,
        repos: BTreeMap::new(),
        files: Vec::new(),
        changed: HashSet::new(),
        unchecked: BTreeSet::new(),
        notes: Vec::new(),
    };
    let settings = reader.repository(location, &RepoPath::top(), 0)?;
    let IndexReader { repos, files, changed, unchecked, notes, .. } = reader;
    let base = Base::new(repos, files);
    let files = base.files().iter().enumerate();
    let unchanged = files.filter(|(_, file)| !changed.contains(&file.name)).map(|(at, _)| at);
    let unchanged = unchanged.collect();
    let global = settings.global_text();
    let ignore_case = location.capabilities.ignore_case;
    let exclude = read_text(&settings.exclude);
    let rules = IgnoreRules::learn(&location.top, ignore_case, global, exclude);
    Ok(Seed { base, unchanged, unchecked, line_ends: settings.line_ends, rules, notes })
}

struct IndexReader<'a> {
    git: &'a Git,
    top: &'a RepositoryLocation,
    repos: BTreeMap<RepoPath, BaseRepo>,
    files: Vec<BaseFile>,
    /// The files that differ from the index, and those that git does not check.
    changed: HashSet<RepoPath>,
    /// The files that git does not check.
    unchecked: BTreeSet<RepoPath>,
    notes: Vec<String>,
}

impl IndexReader<'_> {
    /// Reads one repository.
    fn repository(
        &mut self,
        location: &RepositoryLocation,
        folder: &RepoPath,
        depth: usize,
    ) -> Result<RepositorySettings, GitError> {
        let git = self.git;
        let settings = RepositorySettings::read(git, location)?;
        // Both have to read the index.
        let (index, changed) = std::thread::scope(|scope| {
            let index = scope.spawn(|| git.run(location, &["ls-files", "-s", "-v", "-z"]));
            let arguments =
                ["diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=all"];
            let changed = git.run_with_config(location, &settings.without_filters, &arguments);
            let failed = |_| {
                let reason = "the thread that ran it failed".to_owned();
                Err(GitError::NotRun { command: "ls-files".to_owned(), reason })
            };
            (index.join().unwrap_or_else(failed), changed)
        });
        let (index, changed) = (parse::index(&index?.stdout), changed?);
        if index.unparsed > 0 {
            let lines = if index.unparsed == 1 { "line" } else { "lines" };
            let note = format!("{} {lines} of `git ls-files` could not be parsed", index.unparsed);
            self.notes.push(note);
        }
        let changed = changed.stdout;
        let changed = changed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        self.changed.extend(changed.map(|name| folder.join(name)));
        self.unchecked.extend(index.unchecked.iter().map(|name| folder.join(name.bytes())));
        self.changed.extend(self.unchecked.iter().cloned());
        let conversions = self.conversions(location, &settings, &index);
        let files = index.files.into_iter().map(|(name, blob)| {
            let conversion = conversions.get(&name).copied().unwrap_or_default();
            BaseFile { name: folder.join(name.bytes()), blob, conversion }
        });
        self.files.extend(files);
        let repo = BaseRepo { objects: settings.objects.clone(), format: settings.format };
        self.repos.insert(folder.clone(), repo);
        for name in index.submodules {
            self.submodule(&folder.join(name.bytes()), depth);
        }
        Ok(settings)
    }

    fn submodule(&mut self, name: &RepoPath, depth: usize) {
        let top = self.top.top.join(name.path());
        // A submodule that is not checked out has no files in the work tree, nor has one behind a
        // link.
        if !Folders::new(&self.top.top).is_real(name) {
            return;
        }
        let Some(git_dir) = git_dir_of(&top) else { return };
        if depth >= MAX_SUBMODULE_DEPTH || self.repos.len() >= MAX_REPOSITORIES {
            self.notes.push(format!(
                "{name}: too many or too deeply nested submodules, compared by content"
            ));
            return;
        }
        let location = RepositoryLocation { git_dir, top, capabilities: self.top.capabilities };
        if let Err(error) = self.repository(&location, name, depth + 1) {
            let what = "git could not be used, so files are compared by content";
            self.notes.push(format!("{name}: {what}: {error}"));
        }
    }

    /// The files of an index that git converts.
    fn conversions(
        &self,
        location: &RepositoryLocation,
        settings: &RepositorySettings,
        index: &Index,
    ) -> BTreeMap<RepoPath, Conversion> {
        let LineEnds { crlf, auto } = settings.line_ends;
        let has_attributes = location.top.join(".gitattributes").exists()
            || settings.attributes.iter().any(|path| path.exists())
            || index.files.iter().any(|(name, _)| name.is_named(".gitattributes"));
        if !has_attributes {
            // Without attributes, all files are converted alike.
            let text = |(name, _): &(RepoPath, _)| (name.clone(), Conversion::Text { crlf });
            return if auto { index.files.iter().map(text).collect() } else { BTreeMap::new() };
        }
        let arguments: Vec<&OsStr> = check_attributes(&[]).into_iter().map(OsStr::new).collect();
        let input =
            index.files.iter().flat_map(|(name, _)| [name.bytes(), b"\0"].concat()).collect();
        match self.git.run_with_input(location, &arguments, Some(input)) {
            Ok(output) => conversions(&output.stdout, settings.line_ends),
            // Then every file is read.
            Err(_) => {
                index.files.iter().map(|(name, _)| (name.clone(), Conversion::Filter)).collect()
            }
        }
    }
}

/// The settings of a repository that its files depend on.
pub(super) struct RepositorySettings {
    pub(super) objects: PathBuf,
    pub(super) format: ObjectFormat,
    /// The rules for files that only this repository ignores.
    pub(super) exclude: PathBuf,
    /// The rules for files that the user ignores in all repositories.
    global_rules: Option<PathBuf>,
    /// Whether the configuration of the repository names that file, which an agent can write.
    pub(super) global_rules_are_of_repository: bool,
    /// Files with attributes outside of the work tree.
    attributes: Vec<PathBuf>,
    pub(super) line_ends: LineEnds,
    /// Settings that keep git from running filters: a file that only a filter could compare is
    /// read.
    without_filters: Vec<String>,
}

impl RepositorySettings {
    /// The rules for files that the user ignores in all repositories.
    pub(super) fn global_text(&self) -> String {
        // The user may have made a link of it.
        let path = self.global_rules.as_ref().and_then(|path| path.canonicalize().ok());
        path.map(|path| read_text(&path)).unwrap_or_default()
    }

    pub(super) fn read(git: &Git, location: &RepositoryLocation) -> Result<Self, GitError> {
        let paths = ["objects", "info/exclude", "info/attributes"];
        let mut arguments = vec!["rev-parse", "--show-object-format"];
        arguments.extend(paths.iter().flat_map(|path| ["--git-path", path]));
        let output = git.run(location, &arguments)?.stdout;
        let lines: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
        let failed = |message: String| GitError::Failed { command: "rev-parse".into(), message };
        let [format, objects, exclude, attributes, b""] = lines[..] else {
            return Err(failed("the path of the repository has a line break".to_owned()));
        };
        let format = String::from_utf8_lossy(format);
        let format = ObjectFormat::from_name(&format)
            .ok_or_else(|| failed(format!("the object format {format} is not known")))?;
        let path = |bytes: &[u8]| location.top.join(OsStr::from_bytes(bytes));
        let home = config_home();
        let mut settings = Self {
            objects: canonicalize_existing(&path(objects)),
            format,
            exclude: path(exclude),
            global_rules: home.as_ref().map(|home| home.join("git/ignore")),
            global_rules_are_of_repository: false,
            attributes: vec![path(attributes)],
            line_ends: LineEnds::default(),
            without_filters: Vec::new(),
        };
        settings.attributes.extend(home.map(|home| home.join("git/attributes")));
        let keys = r"^(core\.(autocrlf|eol|attributesfile|excludesfile)|filter\..*)$";
        // The exit code is 1 if none is set.
        let arguments = ["config", "-z", "--show-scope", "--type=path", "--get-regexp", keys];
        let output = git.run(location, &arguments).map(|output| output.stdout).unwrap_or_default();
        let (mut autocrlf, mut eol, mut drivers) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut fields = output.split(|byte| *byte == 0);
        while let (Some(scope), Some(line)) = (fields.next(), fields.next()) {
            let mut parts = line.splitn(2, |byte| *byte == b'\n');
            let (key, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            match key {
                b"core.autocrlf" => autocrlf = value.to_ascii_lowercase(),
                b"core.eol" => eol = value.to_ascii_lowercase(),
                b"core.attributesfile" => settings.attributes.push(path(value)),
                b"core.excludesfile" => {
                    settings.global_rules = Some(path(value));
                    settings.global_rules_are_of_repository =
                        matches!(scope, b"local" | b"worktree");
                }
                key => {
                    let key = String::from_utf8_lossy(key);
                    drivers.extend(key.rsplit_once('.').map(|(driver, _)| driver.to_owned()));
                }
            }
        }
        let is_on = matches!(&autocrlf[..], b"true" | b"yes" | b"on" | b"1");
        settings.line_ends = LineEnds {
            crlf: is_on || (autocrlf != b"input" && eol == b"crlf"),
            auto: is_on || autocrlf == b"input",
        };
        let off = ["clean=", "smudge=", "process=", "required=false"];
        let off = |driver: String| off.map(|setting| format!("{driver}.{setting}"));
        settings.without_filters = drivers.into_iter().flat_map(off).collect();
        Ok(settings)
    }
}

/// The folder with the user's configuration.
fn config_home() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || Some(Path::new(&set("HOME")?).join(".config"));
    set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)
}
