//! Collects from git what differs from HEAD, in the repository and its submodules.

use super::entry::{GitPathStatus, Head, Identity, Repo};
use super::git::{Git, RepositoryLocation};
use super::parse::{self, Blob, Line, Listing};
use super::read_files::Folders;
use super::repo_path::RepoPath;
use super::walk_files::walk;
use crate::git::GitError;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// How deep, and in how many repositories, submodules are followed.
const MAX_SUBMODULE_DEPTH: usize = 16;
const MAX_REPOSITORIES: usize = 2000;
const STATUS: [&str; 7] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "--untracked-files=all",
    "--no-renames",
];

/// Files that indexes hide from `status`, by the git folder. Read again only when the index
/// changed.
#[derive(Debug, Default)]
pub(super) struct Listings {
    known: HashMap<PathBuf, (Identity, Arc<Listing>)>,
}

/// The collected status.
#[derive(Debug, Default)]
pub(super) struct StatusReport {
    pub(super) repos: BTreeMap<RepoPath, Repo>,
    pub(super) status: BTreeMap<RepoPath, GitPathStatus>,
    pub(super) notes: Vec<String>,
    /// There was too much to read.
    pub(super) too_large: bool,
}

/// Collects the status of a repository and its submodules.
pub(super) fn collect(
    git: &Git,
    top: &RepositoryLocation,
    listings: &mut Listings,
) -> Result<StatusReport, GitError> {
    let mut collector = StatusCollector { git, top, listings, report: StatusReport::default() };
    collector.repository(top, &RepoPath::from(&b""[..]), None, 0)?;
    Ok(collector.report)
}

/// The files of a repository that git is configured not to check, as they are in the index.
pub(super) fn unchecked(
    git: &Git,
    location: &RepositoryLocation,
    listings: &mut Listings,
) -> Result<Vec<(RepoPath, Blob)>, GitError> {
    let mut collector =
        StatusCollector { git, top: location, listings, report: StatusReport::default() };
    Ok(collector.listing(location)?.unchecked.clone())
}

/// The git folder of the repository in a folder. `None` if the folder has no repository of its own.
pub(super) fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let meta = git.symlink_metadata().ok()?;
    if meta.is_dir() {
        return Some(git);
    }
    // A link to the git folder, or a file with its path.
    if meta.is_symlink() && git.is_dir() {
        return git.canonicalize().ok();
    }
    let named = (meta.is_file() && meta.len() < 1 << 16).then(|| fs::read(&git).ok()).flatten()?;
    let named = named.strip_prefix(b"gitdir: ")?;
    let named = named.strip_suffix(b"\n").unwrap_or(named);
    let dir = folder.join(std::ffi::OsStr::from_bytes(named.strip_suffix(b"\r").unwrap_or(named)));
    Some(super::repo_path::canonicalize_existing(&dir))
}

struct StatusCollector<'a> {
    git: &'a Git,
    top: &'a RepositoryLocation,
    listings: &'a mut Listings,
    report: StatusReport,
}

impl StatusCollector<'_> {
    /// Collects the status of one repository. In one that is known to be clean, only files that
    /// `status` does not report are searched.
    fn repository(
        &mut self,
        location: &RepositoryLocation,
        folder: &RepoPath,
        clean: Option<&str>,
        depth: usize,
    ) -> Result<(), GitError> {
        let mut all_submodules = false;
        let (status, listing) = match clean {
            Some(commit) => {
                let status =
                    parse::Status { head: Some(commit.to_owned()), ..parse::Status::default() };
                (status, self.listing(location))
            }
            None => {
                let (output, listing) = self.status_and_listing(location);
                let output = match output {
                    Ok(output) => output,
                    // A broken submodule must not hide the rest.
                    Err(GitError::Failed { message, .. }) if message.contains("submodule") => {
                        let output = self.status(location, "--ignore-submodules=all")?;
                        self.report.notes.push(format!("git cannot read a submodule: {message}"));
                        all_submodules = true;
                        output
                    }
                    Err(error) => return Err(error),
                };
                if !output.stderr.is_empty() {
                    self.report.notes.push(format!("git reported: {}", output.stderr));
                }
                (parse::status(&output.stdout, folder), listing)
            }
        };
        if status.unparsed > 0 {
            let note = format!("{} lines of `git status` could not be parsed", status.unparsed);
            self.report.notes.push(note);
        }
        let repo = Repo { head: status.head, git_dir: location.git_dir.clone() };
        self.report.repos.insert(folder.clone(), repo);
        let listing = listing.unwrap_or_else(|error| {
            self.report.notes.push(format!("files hidden by the index are not included: {error}"));
            Arc::default()
        });
        let mut dirty = BTreeSet::new();
        for line in status.lines {
            self.line(line, &mut dirty);
        }
        for (name, blob) in &listing.unchecked {
            let status = self.report.status.entry(folder.join(name.bytes()));
            let status = status.or_insert_with(|| GitPathStatus::new(Head::Has(blob.clone())));
            // Git assumes that the file equals the index without checking.
            (status.staged, status.edited) = (None, false);
        }
        for (name, commit, checked) in &listing.submodules {
            let name = folder.join(name.bytes());
            let inspect = all_submodules || !checked || dirty.contains(&name);
            self.submodule(&name, (!inspect).then_some(commit), depth);
        }
        Ok(())
    }

    fn line(&mut self, line: Line, dirty: &mut BTreeSet<RepoPath>) {
        let status = &mut self.report.status;
        match line {
            Line::Tracked { name, head, staged, edited } => {
                status
                    .insert(name, GitPathStatus { head: head.into(), staged, edited, dirty: true });
            }
            // A file that was removed from the index but still exists has two lines.
            Line::Untracked(name) => {
                status.entry(name).or_insert_with(|| GitPathStatus::new(Head::Lacks));
            }
            Line::Unmerged(name) => {
                status.insert(name, GitPathStatus::new(Head::Unknown));
            }
            Line::Submodule(name) => {
                // There may be a file in its place. If not, nothing is found there.
                status.insert(name.clone(), GitPathStatus::new(Head::Lacks));
                dirty.insert(name);
            }
            Line::Nested(name) => self.walk_folder(&name),
        }
    }

    fn submodule(&mut self, name: &RepoPath, clean: Option<&String>, depth: usize) {
        let top = self.top.top.join(name.path());
        // A submodule that is not checked out has no files in the work tree, nor has one behind a
        // link.
        if !Folders::new(&self.top.top).is_real(name) {
            return;
        }
        let Some(git_dir) = git_dir_of(&top) else { return };
        if depth >= MAX_SUBMODULE_DEPTH || self.report.repos.len() >= MAX_REPOSITORIES {
            self.report
                .notes
                .push(format!("{name}: too many or too deeply nested submodules, not included"));
            return;
        }
        let location = RepositoryLocation { git_dir, top, capabilities: self.top.capabilities };
        if let Err(error) = self.repository(&location, name, clean.map(String::as_str), depth + 1) {
            self.report.notes.push(format!(
                "{name}: git could not be used, so files are compared by content: {error}"
            ));
            self.walk_folder(name);
        }
    }

    /// All files of a repository that git does not report on are included.
    fn walk_folder(&mut self, folder: &RepoPath) {
        let walked = walk(&self.top.top, folder);
        self.report.notes.extend(walked.notes);
        if walked.too_much {
            self.report.too_large = true;
            self.report.notes.push(format!("{folder}: too many files to read"));
        }
        for name in walked.files {
            self.report.status.entry(name).or_insert_with(|| GitPathStatus::new(Head::Lacks));
        }
    }

    fn status(
        &self,
        location: &RepositoryLocation,
        submodules: &str,
    ) -> Result<crate::git::GitOutput, GitError> {
        let arguments: Vec<&str> = STATUS.into_iter().chain([submodules]).collect();
        self.git.run(location, &arguments)
    }

    /// Runs both commands at the same time, since each has to read the index.
    fn status_and_listing(
        &mut self,
        location: &RepositoryLocation,
    ) -> (Result<crate::git::GitOutput, GitError>, Result<Arc<Listing>, GitError>) {
        let submodules = "--ignore-submodules=none";
        if let Ok(known) = self.known_listing(location) {
            return (self.status(location, submodules), Ok(known));
        }
        let git = self.git;
        let (output, listed) = std::thread::scope(|scope| {
            let listed = scope.spawn(|| list(git, location));
            let output = self.status(location, submodules);
            (output, listed.join())
        });
        let Ok(listed) = listed else { return (output, self.listing(location)) };
        (output, listed.map(|(at, listing)| self.remember(location, at, listing)))
    }

    fn listing(&mut self, location: &RepositoryLocation) -> Result<Arc<Listing>, GitError> {
        if let Ok(known) = self.known_listing(location) {
            return Ok(known);
        }
        let (at, listing) = list(self.git, location)?;
        Ok(self.remember(location, at, listing))
    }

    fn remember(
        &mut self,
        location: &RepositoryLocation,
        at: Option<Identity>,
        listing: Listing,
    ) -> Arc<Listing> {
        let listing = Arc::new(listing);
        match at {
            Some(at) => self.listings.known.insert(location.git_dir.clone(), (at, listing.clone())),
            None => self.listings.known.remove(&location.git_dir),
        };
        listing
    }

    fn known_listing(&self, location: &RepositoryLocation) -> Result<Arc<Listing>, ()> {
        let Ok(meta) = index(location).symlink_metadata() else { return Ok(Arc::default()) };
        let known = self.listings.known.get(&location.git_dir);
        known
            .filter(|(at, _)| *at == Identity::from_metadata(&meta))
            .map(|(_, listing)| listing.clone())
            .ok_or(())
    }
}

fn index(location: &RepositoryLocation) -> PathBuf {
    location.git_dir.join("index")
}

/// Reads an index. Returns its identity too if a later write would change it.
fn list(git: &Git, location: &RepositoryLocation) -> Result<(Option<Identity>, Listing), GitError> {
    let identity =
        || index(location).symlink_metadata().ok().map(|meta| Identity::from_metadata(&meta));
    let (before, when) = (identity(), SystemTime::now());
    let output = git.run(location, &["ls-files", "-s", "-v", "-z"])?;
    let at = before.filter(|at| at.is_settled_at(when) && identity() == before);
    Ok((at, parse::listing(&output.stdout)))
}
