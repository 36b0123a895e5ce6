//! Finds where the current branch left the branch that it will be merged into.

use counterfoil_workspace::git::{GitCommand, GitError};
use std::path::Path;

/// The revision that stands for the merge base. A branch of this name is `refs/heads/merge-base`.
pub(super) const MERGE_BASE: &str = "merge-base";
/// Names of default branches, if neither a remote nor the configuration names one.
const DEFAULT_BRANCHES: [&str; 2] = ["main", "master"];
const BRANCHES: &str = "refs/heads/";
const REMOTES: &str = "refs/remotes/";

/// Why there is no merge base.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoMergeBase {
    #[error(
        "it is unknown what {branch} is to be merged into: it has no upstream branch, and the repository has no \
         default branch (the HEAD of a remote, main or master); name the revision to compare with"
    )]
    Unknown { branch: String },
    #[error("HEAD and {with} have no common commit; name the revision to compare with")]
    Unrelated { with: String },
    #[error("{0}")]
    Git(#[from] GitError),
}

/// The last common commit of HEAD and the branch that it will be merged into: the upstream branch,
/// unless that is only the pushed copy of a topic branch; else the default branch.
pub(super) fn merge_base(folder: &Path) -> Result<String, NoMergeBase> {
    let branch = line(folder, &["symbolic-ref", "-q", "HEAD"])?;
    let short = branch.as_deref().and_then(|branch| branch.strip_prefix(BRANCHES));
    let upstream =
        line(folder, &["rev-parse", "-q", "--verify", "--symbolic-full-name", "@{upstream}"])?
            .filter(|name| !name.is_empty());
    let default = default_branches(folder)?;
    let is_default =
        short.is_some_and(|short| default.iter().any(|name| branch_name(name) == short));
    let is_copy = |upstream: &String| short == Some(branch_name(upstream));
    let base = match upstream {
        Some(upstream) if is_default || !is_copy(&upstream) => Some(upstream),
        // The copy of another branch than the current one comes first: it may be ahead of it.
        upstream => {
            let other = default.iter().find(|name| Some(name.as_str()) != branch.as_deref());
            other.or(default.first()).cloned().or(upstream)
        }
    };
    let Some(with) = base else {
        let branch = short.map_or_else(|| "HEAD".to_owned(), |short| format!("branch '{short}'"));
        return Err(NoMergeBase::Unknown { branch });
    };
    line(folder, &["merge-base", "HEAD", &with])?.ok_or(NoMergeBase::Unrelated { with })
}

/// The default branch, in the remotes and here, as far as it is there.
fn default_branches(folder: &Path) -> Result<Vec<String>, GitError> {
    let format = "--format=%(refname)%09%(symref)";
    let listed = GitCommand::new(folder, ["for-each-ref", format, REMOTES, BRANCHES]).run()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let refs: Vec<(&str, &str)> =
        listed.lines().map(|line| line.split_once('\t').unwrap_or((line, ""))).collect();
    let heads = refs.iter().filter(|(name, target)| name.ends_with("/HEAD") && !target.is_empty());
    let mut heads: Vec<&str> = heads.map(|(_, target)| *target).collect();
    // `origin` is what `git clone` calls the repository that was cloned.
    heads.sort_by_key(|name| !name.starts_with("refs/remotes/origin/"));
    let configured = line(folder, &["config", "--get", "init.defaultBranch"])?;
    let named = heads.first().map(|head| branch_name(head).to_owned());
    let names = named
        .into_iter()
        .chain(DEFAULT_BRANCHES.map(str::to_owned))
        .chain(configured.filter(|name| !name.is_empty()));
    for name in names {
        let is_it = |found: &&str| branch_name(found) == name && !found.ends_with("/HEAD");
        let mut found: Vec<String> =
            refs.iter().map(|(name, _)| *name).filter(is_it).map(str::to_owned).collect();
        if !found.is_empty() {
            found.sort_by_key(|name| {
                (!name.starts_with("refs/remotes/origin/"), name.starts_with(BRANCHES))
            });
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// The name of a branch without the place where it is.
fn branch_name(full: &str) -> &str {
    match (full.strip_prefix(BRANCHES), full.strip_prefix(REMOTES)) {
        (Some(local), _) => local,
        (None, Some(remote)) => remote.split_once('/').map_or(remote, |(_, name)| name),
        (None, None) => full,
    }
}

/// The first line that git prints; none if it fails.
fn line(folder: &Path, arguments: &[&str]) -> Result<Option<String>, GitError> {
    let output = GitCommand::new(folder, arguments).output()?;
    Ok(output.ok().then(|| output.line().to_string_lossy().into_owned()))
}
