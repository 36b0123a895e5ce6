//! Compares a work tree with a commit. Nothing but the commit itself is believed, since an agent may
//! have worked already: not the index, not the attributes, not the ignore rules of the work tree, not
//! what the configuration says of the file system.

use super::base::{Base, BaseFile, BaseRepo, SnapshotData};
use super::blob::Conversion;
use super::capabilities;
use super::conversions::{LineEnds, check_attributes, conversions};
use super::discover::git_dir_of;
use super::ignore_rules::{FolderTexts, IgnoreRules, IgnoreTexts, read_text};
use super::repo_path::RepoPath;
use super::seed::RepositorySettings;
use super::start::Start;
use super::{Git, Settings, Snapshot, Snapshotter};
use crate::git::is_shallow;
use crate::refs::{CommitNameError, find_commit};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A revision that a work tree cannot be compared with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision '{revision}' cannot be found: {reason}")]
pub struct RevisionError {
    /// The revision as it was given.
    pub revision: String,
    /// The message of git, or why git cannot be used.
    pub reason: String,
    /// Whether the repository is a shallow clone that does not have the commit.
    pub is_shallow: bool,
}

/// A commit as if it were checked out.
#[derive(Debug)]
pub struct Revision {
    /// Takes snapshots to compare with the commit.
    pub snapshotter: Snapshotter,
    /// The files of the commit.
    pub snapshot: Snapshot,
    /// The id of the commit.
    pub commit: String,
    /// The time of the commit.
    pub committed_at: Option<SystemTime>,
}

/// What is in a commit.
#[derive(Debug, Default)]
pub(super) struct CommitBase {
    /// Its files, and those of the submodules that are checked out.
    pub(super) base: Base,
    /// The commit of each submodule.
    pub(super) submodules: BTreeMap<RepoPath, String>,
}

impl Revision {
    /// Opens a folder to compare it with a revision of its repository. The first snapshot reads all
    /// files.
    ///
    /// # Errors
    ///
    /// There is no git repository, git does not know the revision, or its objects cannot be read.
    pub fn open(folder: &Path, settings: Settings, revision: &str) -> Result<Self, RevisionError> {
        Self::open_with(folder, settings, revision, Git::default())
    }

    /// Opens a folder with a specific git program.
    ///
    /// # Errors
    ///
    /// As for [`Revision::open`].
    pub fn open_with(
        folder: &Path,
        settings: Settings,
        revision: &str,
        git: Git,
    ) -> Result<Self, RevisionError> {
        let taken = SystemTime::now();
        let error = |reason: &dyn Display| RevisionError {
            revision: revision.to_owned(),
            reason: reason.to_string(),
            is_shallow: false,
        };
        let mut snapshotter = Snapshotter::open_with(folder, settings, git);
        let Some(location) = &mut snapshotter.location else {
            let reason = snapshotter.notes.first().map_or("this is not a git repository", |n| n);
            return Err(error(&reason));
        };
        location.capabilities = capabilities::observed(location);
        let location = location.clone();
        let run = |arguments: &[&str]| snapshotter.git.output(&location, arguments);
        let commit = find_commit(revision, run).map_err(|why| match why {
            CommitNameError::Unknown(_) if is_shallow(&location.top) => RevisionError {
                is_shallow: true,
                ..error(&"the clone is shallow, and git knows no such commit in it")
            },
            CommitNameError::Unknown(_) => error(&"git knows no such commit"),
            CommitNameError::Ambiguous { refs, .. } => {
                error(&format!("it names {}; write one of them in full", refs.join(" and ")))
            }
            CommitNameError::Git(why) => error(&why),
        })?;
        let settings =
            RepositorySettings::read(&snapshotter.git, &location).map_err(|why| error(&why))?;
        let repo = BaseRepo { objects: settings.objects.clone(), format: settings.format };
        let text = snapshotter.objects.read(&snapshotter.git, &repo, "commit", &commit);
        let committed_at = committed_at(&text.map_err(|why| error(&why))?);
        let mut notes = Vec::new();
        let base = snapshotter
            .base_of(repo, &commit, settings.line_ends, &mut notes)
            .map_err(|why| error(&why))?
            .base;
        let exclude = older_text(&settings.exclude, committed_at, &mut notes);
        let global = if settings.global_rules_are_of_repository {
            let note = "core.excludesFile is set in the configuration of the repository, where an agent \
                        can set it, so its rules are not used";
            notes.push(note.to_owned());
            String::new()
        } else {
            settings.global_text()
        };
        let rules = snapshotter.rules_of(&base, global, exclude);
        let mut start = Start::new(base, rules);
        start.is_revision = true;
        start.notes.clone_from(&notes);
        let base = start.base.clone();
        snapshotter.start = Some(start);
        let top = snapshotter.top.clone();
        let data = SnapshotData { top, base, ..SnapshotData::default() };
        let id = Some(snapshotter.fingerprint(&data));
        notes.splice(0..0, snapshotter.notes.iter().cloned());
        let unreadable = std::collections::BTreeSet::new();
        let snapshot = Snapshot { id, taken, notes, unreadable, data: Arc::new(data) };
        Ok(Self { snapshotter, snapshot, commit, committed_at })
    }
}

impl Snapshotter {
    /// The files of a commit and of the submodules in it.
    pub(super) fn base_of(
        &self,
        repo: BaseRepo,
        commit: &str,
        lines: LineEnds,
        notes: &mut Vec<String>,
    ) -> std::io::Result<CommitBase> {
        let (mut repos, mut files) = (BTreeMap::new(), Vec::new());
        let mut submodules = BTreeMap::new();
        let mut open = vec![(RepoPath::top(), repo, commit.to_owned())];
        while let Some((folder, repo, commit)) = open.pop() {
            let found = match self.objects.files_of(&self.git, &repo, &commit) {
                Ok(found) => found,
                Err(error) if folder == RepoPath::top() => return Err(error),
                Err(error) => {
                    notes.push(format!("{folder}: not included: {error}"));
                    continue;
                }
            };
            for (name, commit) in found.submodules {
                let name = folder.join(name.bytes());
                submodules.insert(name.clone(), commit.clone());
                if let Some(git_dir) = git_dir_of(&self.top.join(name.path())) {
                    let repo = BaseRepo { objects: git_dir.join("objects"), format: repo.format };
                    open.push((name, repo, commit));
                }
            }
            let conversions = self.conversions_at(&repo, &commit, &found.files, lines);
            files.extend(found.files.into_iter().map(|(name, blob)| {
                let conversion = conversions.get(&name).copied().unwrap_or_default();
                BaseFile { name: folder.join(name.bytes()), blob, conversion }
            }));
            repos.insert(folder, repo);
        }
        Ok(CommitBase { base: Base::new(repos, files), submodules })
    }

    /// How the attributes in a commit convert its files.
    fn conversions_at(
        &self,
        repo: &BaseRepo,
        commit: &str,
        files: &[(RepoPath, super::blob::Blob)],
        lines: LineEnds,
    ) -> BTreeMap<RepoPath, Conversion> {
        let is_attributes = |(name, _): &(RepoPath, _)| name.is_named(".gitattributes");
        if !lines.auto && !files.iter().any(is_attributes) {
            return BTreeMap::new();
        }
        let source = format!("--source={commit}");
        let arguments = check_attributes(&[&source]);
        let input = files.iter().flat_map(|(name, _)| [name.bytes(), b"\0"].concat()).collect();
        // An older git does not know the option. Then no file is converted.
        let output = self.objects.run(&self.git, repo, &arguments, Some(input));
        output.map(|output| conversions(&output, lines)).unwrap_or_default()
    }

    /// The ignore rules of a commit, and those outside of it.
    fn rules_of(&self, base: &Base, global: String, exclude: String) -> IgnoreRules {
        let mut folders: BTreeMap<RepoPath, FolderTexts> = BTreeMap::new();
        for folder in base.repos.keys() {
            folders.entry(folder.clone()).or_default().is_repository = true;
        }
        folders.entry(RepoPath::top()).or_default().exclude = exclude;
        for file in base.files().iter().filter(|file| file.name.is_named(".gitignore")) {
            let Some(repo) = base.repo_of(&file.name).filter(|_| !file.blob.is_link()) else {
                continue;
            };
            let text = self.objects.read(&self.git, repo, "blob", &file.blob.oid);
            let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
            let folder = file.name.folders().next().unwrap_or_else(RepoPath::top);
            folders.entry(folder).or_default().rules = text;
        }
        let texts = IgnoreTexts { global, folders: folders.into_iter().collect() };
        IgnoreRules::frozen(texts, self.capabilities().ignore_case)
    }
}

/// The text of a file of the user, unless it was written since the commit: then an agent may have
/// written it.
fn older_text(path: &Path, committed_at: Option<SystemTime>, notes: &mut Vec<String>) -> String {
    let text = read_text(path);
    let has_rules = text.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let changed = path
        .symlink_metadata()
        .ok()
        .and_then(|meta| Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(meta.ctime()).ok()?)));
    if !has_rules || changed.zip(committed_at).is_some_and(|(changed, base)| changed < base) {
        return text;
    }
    notes.push("info/exclude was written since the base, so its rules are not used".to_owned());
    String::new()
}

/// The time of a commit, by its text.
fn committed_at(text: &[u8]) -> Option<SystemTime> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().take_while(|line| !line.is_empty());
    let mut line = line.filter_map(|line| line.strip_prefix("committer "));
    let seconds = line.next()?.rsplit(' ').nth(1)?.parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}
