//! Asking git what differs from HEAD: in the repository and in its submodules.

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

/// Submodules are followed so deep, and so many of them.
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

/// What indexes hide from `status`, by the folder with the index. Read again only when the index
/// was written.
#[derive(Debug, Default)]
pub(super) struct Listings {
    known: HashMap<PathBuf, (Identity, Arc<Listing>)>,
}

/// What git told.
#[derive(Debug, Default)]
pub(super) struct StatusReport {
    pub(super) repos: BTreeMap<RepoPath, Repo>,
    pub(super) status: BTreeMap<RepoPath, GitPathStatus>,
    pub(super) notes: Vec<String>,
    /// There was too much to look at.
    pub(super) too_large: bool,
}

/// Asks about a repository and everything in it.
pub(super) fn collect(
    git: &Git,
    top: &RepositoryLocation,
    listings: &mut Listings,
) -> Result<StatusReport, GitError> {
    let mut collector = StatusCollector { git, top, listings, found: StatusReport::default() };
    collector.repository(top, &RepoPath::from(&b""[..]), None, 0)?;
    Ok(collector.found)
}

/// Files of a repository that git was told not to look at, as the index has them.
pub(super) fn unwatched(
    git: &Git,
    place: &RepositoryLocation,
    listings: &mut Listings,
) -> Result<Vec<(RepoPath, Blob)>, GitError> {
    let mut collector =
        StatusCollector { git, top: place, listings, found: StatusReport::default() };
    Ok(collector.listing(place)?.unwatched.clone())
}

/// Where the objects of a repository in a folder are; none if the folder has no repository of its
/// own.
pub(super) fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let meta = git.symlink_metadata().ok()?;
    if meta.is_dir() {
        return Some(git);
    }
    // A link to the folder, or a file that names it.
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
    found: StatusReport,
}

impl StatusCollector<'_> {
    /// Asks about one repository. One that is known to be clean is only searched for what `status`
    /// does not see.
    fn repository(
        &mut self,
        place: &RepositoryLocation,
        folder: &RepoPath,
        clean: Option<&str>,
        depth: usize,
    ) -> Result<(), GitError> {
        let mut all_submodules = false;
        let (status, listing) = match clean {
            Some(commit) => {
                let status =
                    parse::Status { head: Some(commit.to_owned()), ..parse::Status::default() };
                (status, self.listing(place))
            }
            None => {
                let (output, listing) = self.status_and_listing(place);
                let output = match output {
                    Ok(output) => output,
                    // A broken submodule must not blind us to the rest.
                    Err(GitError::Failed { message, .. }) if message.contains("submodule") => {
                        let output = self.status(place, "--ignore-submodules=all")?;
                        self.found
                            .notes
                            .push(format!("a submodule cannot be looked at by git: {message}"));
                        all_submodules = true;
                        output
                    }
                    Err(error) => return Err(error),
                };
                if !output.stderr.is_empty() {
                    self.found.notes.push(format!("git says: {}", output.stderr));
                }
                (parse::status(&output.stdout, folder), listing)
            }
        };
        if status.unparsed > 0 {
            let note = format!("{} lines of `git status` were not understood", status.unparsed);
            self.found.notes.push(note);
        }
        let repo = Repo { head: status.head, git_dir: place.git_dir.clone() };
        self.found.repos.insert(folder.clone(), repo);
        let listing = listing.unwrap_or_else(|error| {
            self.found.notes.push(format!("what the index hides is not seen: {error}"));
            Arc::default()
        });
        let mut dirty = BTreeSet::new();
        for line in status.lines {
            self.line(line, &mut dirty);
        }
        for (name, blob) in &listing.unwatched {
            let status = self.found.status.entry(folder.join(name.bytes()));
            let status = status.or_insert_with(|| GitPathStatus::new(Head::Has(blob.clone())));
            // Git takes the file for what the index has without looking.
            (status.staged, status.edited) = (None, false);
        }
        for (name, commit, watched) in &listing.submodules {
            let name = folder.join(name.bytes());
            let inspect = all_submodules || !watched || dirty.contains(&name);
            self.submodule(&name, (!inspect).then_some(commit), depth);
        }
        Ok(())
    }

    fn line(&mut self, line: Line, dirty: &mut BTreeSet<RepoPath>) {
        let status = &mut self.found.status;
        match line {
            Line::Tracked { name, head, staged, edited } => {
                status
                    .insert(name, GitPathStatus { head: head.into(), staged, edited, dirty: true });
            }
            // Taken out of the index and still there, it stands in two lines.
            Line::Untracked(name) => {
                status.entry(name).or_insert_with(|| GitPathStatus::new(Head::Lacks));
            }
            Line::Unmerged(name) => {
                status.insert(name, GitPathStatus::new(Head::Unknown));
            }
            Line::Submodule(name) => {
                // Something else may stand in its place; if it does not, nothing is seen there.
                status.insert(name.clone(), GitPathStatus::new(Head::Lacks));
                dirty.insert(name);
            }
            Line::Nested(name) => self.by_walking(&name),
        }
    }

    fn submodule(&mut self, name: &RepoPath, clean: Option<&String>, depth: usize) {
        let top = self.top.top.join(name.path());
        // Not checked out: nothing of it is in the work tree. What a link leads to is not in it
        // either.
        if !Folders::new(&self.top.top).is_real(name) {
            return;
        }
        let Some(git_dir) = git_dir_of(&top) else { return };
        if depth >= MAX_SUBMODULE_DEPTH || self.found.repos.len() >= MAX_REPOSITORIES {
            self.found.notes.push(format!("{name}: one submodule too many, not looked at"));
            return;
        }
        let place = RepositoryLocation { git_dir, top, capabilities: self.top.capabilities };
        if let Err(error) = self.repository(&place, name, clean.map(String::as_str), depth + 1) {
            self.found.notes.push(format!("{name}: looked at without git, since {error}"));
            self.by_walking(name);
        }
    }

    /// A repository that is not ours to ask about is what is in it: all its files count.
    fn by_walking(&mut self, folder: &RepoPath) {
        let walked = walk(&self.top.top, folder);
        self.found.notes.extend(walked.notes);
        if walked.too_much {
            self.found.too_large = true;
            self.found.notes.push(format!("{folder}: too many files to look at"));
        }
        for name in walked.files {
            self.found.status.entry(name).or_insert_with(|| GitPathStatus::new(Head::Lacks));
        }
    }

    fn status(
        &self,
        place: &RepositoryLocation,
        submodules: &str,
    ) -> Result<crate::git::GitOutput, GitError> {
        let arguments: Vec<&str> = STATUS.into_iter().chain([submodules]).collect();
        self.git.run(place, &arguments)
    }

    /// Both calls at once, since each has to read the index.
    fn status_and_listing(
        &mut self,
        place: &RepositoryLocation,
    ) -> (Result<crate::git::GitOutput, GitError>, Result<Arc<Listing>, GitError>) {
        let submodules = "--ignore-submodules=none";
        if let Ok(known) = self.known_listing(place) {
            return (self.status(place, submodules), Ok(known));
        }
        let git = self.git;
        let (output, listed) = std::thread::scope(|scope| {
            let listed = scope.spawn(|| list(git, place));
            let output = self.status(place, submodules);
            (output, listed.join())
        });
        let Ok(listed) = listed else { return (output, self.listing(place)) };
        (output, listed.map(|(at, listing)| self.remember(place, at, listing)))
    }

    fn listing(&mut self, place: &RepositoryLocation) -> Result<Arc<Listing>, GitError> {
        if let Ok(known) = self.known_listing(place) {
            return Ok(known);
        }
        let (at, listing) = list(self.git, place)?;
        Ok(self.remember(place, at, listing))
    }

    fn remember(
        &mut self,
        place: &RepositoryLocation,
        at: Option<Identity>,
        listing: Listing,
    ) -> Arc<Listing> {
        let listing = Arc::new(listing);
        match at {
            Some(at) => self.listings.known.insert(place.git_dir.clone(), (at, listing.clone())),
            None => self.listings.known.remove(&place.git_dir),
        };
        listing
    }

    fn known_listing(&self, place: &RepositoryLocation) -> Result<Arc<Listing>, ()> {
        let Ok(meta) = index(place).symlink_metadata() else { return Ok(Arc::default()) };
        let known = self.listings.known.get(&place.git_dir);
        known
            .filter(|(at, _)| *at == Identity::from_metadata(&meta))
            .map(|(_, listing)| listing.clone())
            .ok_or(())
    }
}

fn index(place: &RepositoryLocation) -> PathBuf {
    place.git_dir.join("index")
}

/// Reads an index. What stood there is told too if a later write would show.
fn list(git: &Git, place: &RepositoryLocation) -> Result<(Option<Identity>, Listing), GitError> {
    let identity =
        || index(place).symlink_metadata().ok().map(|meta| Identity::from_metadata(&meta));
    let (before, when) = (identity(), SystemTime::now());
    let output = git.run(place, &["ls-files", "-s", "-v", "-z"])?;
    let at = before.filter(|at| at.is_settled_at(when) && identity() == before);
    Ok((at, parse::listing(&output.stdout)))
}
