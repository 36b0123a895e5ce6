//! Asking git what differs from HEAD: in the repository and in its submodules.

use super::entry::{Head, Identity, Repo, Told};
use super::git::{Git, Place};
use super::look::Folders;
use super::name::Name;
use super::parse::{self, Blob, Line, Listing};
use super::walk::walk;
use crate::git::Failure;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Submodules are followed so deep, and so many of them.
const DEEPEST: usize = 16;
const MOST_REPOSITORIES: usize = 2000;
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
pub(super) struct Found {
    pub(super) repos: BTreeMap<Name, Repo>,
    pub(super) told: BTreeMap<Name, Told>,
    pub(super) notes: Vec<String>,
    /// There was too much to look at.
    pub(super) blind: bool,
}

/// Asks about a repository and everything in it.
pub(super) fn gather(git: &Git, top: &Place, listings: &mut Listings) -> Result<Found, Failure> {
    let mut gathering = Gathering { git, top, listings, found: Found::default() };
    gathering.repository(top, &Name::from(&b""[..]), None, 0)?;
    Ok(gathering.found)
}

/// Files of a repository that git was told not to look at, as the index has them.
pub(super) fn unwatched(
    git: &Git,
    place: &Place,
    listings: &mut Listings,
) -> Result<Vec<(Name, Blob)>, Failure> {
    let mut gathering = Gathering { git, top: place, listings, found: Found::default() };
    Ok(gathering.listing(place)?.unwatched.clone())
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
    Some(super::name::real(&dir))
}

struct Gathering<'a> {
    git: &'a Git,
    top: &'a Place,
    listings: &'a mut Listings,
    found: Found,
}

impl Gathering<'_> {
    /// Asks about one repository. One that is known to be clean is only searched for what `status`
    /// does not see.
    fn repository(
        &mut self,
        place: &Place,
        folder: &Name,
        clean: Option<&str>,
        depth: usize,
    ) -> Result<(), Failure> {
        let mut all_submodules = false;
        let (status, listing) = match clean {
            Some(commit) => {
                let status =
                    parse::Status { head: Some(commit.to_owned()), ..parse::Status::default() };
                (status, self.listing(place))
            }
            None => {
                let (said, listing) = self.status_and_listing(place);
                let said = match said {
                    Ok(said) => said,
                    // A broken submodule must not blind us to the rest.
                    Err(Failure::Refused { words, .. }) if words.contains("submodule") => {
                        let said = self.status(place, "--ignore-submodules=all")?;
                        self.found
                            .notes
                            .push(format!("a submodule cannot be looked at by git: {words}"));
                        all_submodules = true;
                        said
                    }
                    Err(trouble) => return Err(trouble),
                };
                if !said.words.is_empty() {
                    self.found.notes.push(format!("git says: {}", said.words));
                }
                (parse::status(&said.stdout, folder), listing)
            }
        };
        if status.strange > 0 {
            let note = format!("{} lines of `git status` were not understood", status.strange);
            self.found.notes.push(note);
        }
        let repo = Repo { head: status.head, git_dir: place.git_dir.clone() };
        self.found.repos.insert(folder.clone(), repo);
        let listing = listing.unwrap_or_else(|trouble| {
            self.found.notes.push(format!("what the index hides is not seen: {trouble}"));
            Arc::default()
        });
        let mut dirty = BTreeSet::new();
        for line in status.lines {
            self.line(line, &mut dirty);
        }
        for (name, blob) in &listing.unwatched {
            let told = self.found.told.entry(folder.join(name.bytes()));
            let told = told.or_insert_with(|| Told::new(Head::Has(blob.clone())));
            // Git takes the file for what the index has without looking.
            (told.staged, told.edited) = (None, false);
        }
        for (name, commit, watched) in &listing.submodules {
            let name = folder.join(name.bytes());
            let look_inside = all_submodules || !watched || dirty.contains(&name);
            self.submodule(&name, (!look_inside).then_some(commit), depth);
        }
        Ok(())
    }

    fn line(&mut self, line: Line, dirty: &mut BTreeSet<Name>) {
        let told = &mut self.found.told;
        match line {
            Line::Tracked { name, head, staged, edited } => {
                told.insert(name, Told { head: head.into(), staged, edited, dirty: true });
            }
            // Taken out of the index and still there, it stands in two lines.
            Line::Untracked(name) => {
                told.entry(name).or_insert_with(|| Told::new(Head::Lacks));
            }
            Line::Unmerged(name) => {
                told.insert(name, Told::new(Head::Unknown));
            }
            Line::Submodule(name) => {
                // Something else may stand in its place; if it does not, nothing is seen there.
                told.insert(name.clone(), Told::new(Head::Lacks));
                dirty.insert(name);
            }
            Line::Nested(name) => self.by_walking(&name),
        }
    }

    fn submodule(&mut self, name: &Name, clean: Option<&String>, depth: usize) {
        let top = self.top.top.join(name.path());
        // Not checked out: nothing of it is in the work tree. What a link leads to is not in it
        // either.
        if !Folders::new(&self.top.top).is_real(name) {
            return;
        }
        let Some(git_dir) = git_dir_of(&top) else { return };
        if depth >= DEEPEST || self.found.repos.len() >= MOST_REPOSITORIES {
            self.found.notes.push(format!("{name}: one submodule too many, not looked at"));
            return;
        }
        let place = Place { git_dir, top, abilities: self.top.abilities };
        if let Err(trouble) = self.repository(&place, name, clean.map(String::as_str), depth + 1) {
            self.found.notes.push(format!("{name}: looked at without git, since {trouble}"));
            self.by_walking(name);
        }
    }

    /// A repository that is not ours to ask about is what is in it: all its files count.
    fn by_walking(&mut self, folder: &Name) {
        let walked = walk(&self.top.top, folder);
        self.found.notes.extend(walked.notes);
        if walked.too_much {
            self.found.blind = true;
            self.found.notes.push(format!("{folder}: too many files to look at"));
        }
        for name in walked.files {
            self.found.told.entry(name).or_insert_with(|| Told::new(Head::Lacks));
        }
    }

    fn status(&self, place: &Place, submodules: &str) -> Result<crate::git::Answer, Failure> {
        let arguments: Vec<&str> = STATUS.into_iter().chain([submodules]).collect();
        self.git.ask(place, &arguments)
    }

    /// Both calls at once, since each has to read the index.
    fn status_and_listing(
        &mut self,
        place: &Place,
    ) -> (Result<crate::git::Answer, Failure>, Result<Arc<Listing>, Failure>) {
        let submodules = "--ignore-submodules=none";
        if let Ok(known) = self.known_listing(place) {
            return (self.status(place, submodules), Ok(known));
        }
        let git = self.git;
        let (said, listed) = std::thread::scope(|scope| {
            let listed = scope.spawn(|| list(git, place));
            let said = self.status(place, submodules);
            (said, listed.join())
        });
        let Ok(listed) = listed else { return (said, self.listing(place)) };
        (said, listed.map(|(at, listing)| self.remember(place, at, listing)))
    }

    fn listing(&mut self, place: &Place) -> Result<Arc<Listing>, Failure> {
        if let Ok(known) = self.known_listing(place) {
            return Ok(known);
        }
        let (at, listing) = list(self.git, place)?;
        Ok(self.remember(place, at, listing))
    }

    fn remember(&mut self, place: &Place, at: Option<Identity>, listing: Listing) -> Arc<Listing> {
        let listing = Arc::new(listing);
        match at {
            Some(at) => self.listings.known.insert(place.git_dir.clone(), (at, listing.clone())),
            None => self.listings.known.remove(&place.git_dir),
        };
        listing
    }

    fn known_listing(&self, place: &Place) -> Result<Arc<Listing>, ()> {
        let Ok(meta) = index(place).symlink_metadata() else { return Ok(Arc::default()) };
        let known = self.listings.known.get(&place.git_dir);
        known
            .filter(|(at, _)| *at == Identity::of(&meta))
            .map(|(_, listing)| listing.clone())
            .ok_or(())
    }
}

fn index(place: &Place) -> PathBuf {
    place.git_dir.join("index")
}

/// Reads an index. What stood there is told too if a later write would show.
fn list(git: &Git, place: &Place) -> Result<(Option<Identity>, Listing), Failure> {
    let look = || index(place).symlink_metadata().ok().map(|meta| Identity::of(&meta));
    let (before, when) = (look(), SystemTime::now());
    let said = git.ask(place, &["ls-files", "-s", "-v", "-z"])?;
    let at = before.filter(|at| at.is_settled_at(when) && look() == before);
    Ok((at, parse::listing(&said.stdout)))
}
