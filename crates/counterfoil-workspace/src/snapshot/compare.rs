//! Compares the states of a path in two snapshots. Does no I/O: what only git can decide is
//! returned as a question.

use super::Change;
use super::entry::{Bytes, Entry, PathState};
use super::parse::Blob;
use super::repo_path::RepoPath;
use std::collections::{BTreeSet, HashMap};

/// The state of a path in a snapshot.
#[derive(Clone, Debug)]
pub(super) enum Side<'a> {
    Absent,
    /// It was equal to the commit.
    Clean(Blob),
    /// It was read.
    Observed(&'a Entry),
}

impl Side<'_> {
    pub(super) fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Clean(_) => false,
            Self::Observed(entry) => entry.state.is_gone(),
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    Differs(Change),
    /// Git must decide whether the file equals this blob, with the filters and line endings of the
    /// path.
    Ask(Blob),
}

/// Compares two states of a path.
pub(super) fn compare(before: &Side, after: &Side, file_mode: bool) -> Comparison {
    let differs =
        |same: bool| if same { Comparison::Same } else { Comparison::Differs(Change::Modified) };
    match (before.is_absent(), after.is_absent()) {
        (true, true) => return Comparison::Same,
        (true, false) => return Comparison::Differs(Change::Added),
        (false, true) => return Comparison::Differs(Change::Deleted),
        (false, false) => {}
    }
    match (before, after) {
        (Side::Clean(a), Side::Clean(b)) => {
            let kinds = a.is_link() == b.is_link();
            differs(a.oid == b.oid && kinds && (!file_mode || a.executable() == b.executable()))
        }
        (Side::Observed(a), Side::Observed(b)) => differs(a.state.same(&b.state, file_mode)),
        (Side::Clean(blob), Side::Observed(entry)) | (Side::Observed(entry), Side::Clean(blob)) => {
            let modes = !file_mode || entry.state.executable() == blob.executable();
            match &entry.state {
                PathState::File { .. } if blob.is_link() || !modes => differs(false),
                PathState::File { bytes, .. } => match &entry.status.staged {
                    Some(staged) => differs(*staged == blob.oid),
                    None if entry.status.edited && entry.status.head_has(blob) => differs(false),
                    // A file that is too large for us to read is too large for git as well.
                    None if *bytes == Bytes::Unread && entry.status.dirty => differs(false),
                    None => Comparison::Ask(blob.clone()),
                },
                PathState::Link { .. } if !blob.is_link() => differs(false),
                PathState::Link { .. } => Comparison::Ask(blob.clone()),
                PathState::Gone | PathState::Other(_) => differs(false),
            }
        }
        (Side::Absent, _) | (_, Side::Absent) => Comparison::Same,
    }
}

/// Keys that identify the content of a file under another path. Links have keys of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) hash: Option<(bool, Vec<u8>)>,
    pub(super) oid: Option<(bool, String)>,
}

impl Keys {
    /// The keys of a path that are known already.
    pub(super) fn from_side(side: &Side) -> Self {
        match side {
            Side::Absent => Self::default(),
            Side::Clean(blob) => Self { hash: None, oid: Some((blob.is_link(), blob.oid.clone())) },
            Side::Observed(entry) => match &entry.state {
                PathState::File { bytes: Bytes::Hash(hash), .. } => Self {
                    hash: Some((false, hash.to_vec())),
                    oid: entry.status.staged.clone().map(|oid| (false, oid)),
                },
                PathState::Link { target, .. } => Self {
                    hash: Some((true, target.to_vec())),
                    oid: entry.status.staged.clone().map(|oid| (true, oid)),
                },
                _ => Self::default(),
            },
        }
    }
}

/// Pairs deleted and added files by content, only where the pair is unambiguous.
pub(super) fn renames(
    gone: &[(RepoPath, Keys)],
    new: &[(RepoPath, Keys)],
) -> Vec<(RepoPath, RepoPath)> {
    let mut pairs: BTreeSet<(&RepoPath, &RepoPath)> = BTreeSet::new();
    for key in [hash_key as fn(&Keys) -> Option<Vec<u8>>, oid_key] {
        let new = by_key(new, key);
        for (key, gone) in by_key(gone, key) {
            if let ([from], Some([to])) = (&gone[..], new.get(&key).map(Vec::as_slice)) {
                pairs.insert((from, to));
            }
        }
    }
    // The two keys may pair one file with two others.
    let (mut from, mut to): (HashMap<&RepoPath, usize>, HashMap<&RepoPath, usize>) =
        Default::default();
    for pair in &pairs {
        *from.entry(pair.0).or_default() += 1;
        *to.entry(pair.1).or_default() += 1;
    }
    let alone =
        pairs.into_iter().filter(|pair| from.get(pair.0) == Some(&1) && to.get(pair.1) == Some(&1));
    alone.map(|(from, to)| (from.clone(), to.clone())).collect()
}

fn hash_key(keys: &Keys) -> Option<Vec<u8>> {
    keys.hash.as_ref().map(|(link, hash)| [&[u8::from(*link)], &hash[..]].concat())
}

fn oid_key(keys: &Keys) -> Option<Vec<u8>> {
    keys.oid.as_ref().map(|(link, oid)| [&[u8::from(*link)], oid.as_bytes()].concat())
}

fn by_key(
    files: &[(RepoPath, Keys)],
    key: impl Fn(&Keys) -> Option<Vec<u8>>,
) -> HashMap<Vec<u8>, Vec<&RepoPath>> {
    let mut by: HashMap<Vec<u8>, Vec<&RepoPath>> = HashMap::new();
    for (name, keys) in files {
        if let Some(key) = key(keys) {
            by.entry(key).or_default().push(name);
        }
    }
    by
}

#[cfg(test)]
mod tests {
    use super::super::entry::{GitPathStatus, Head};
    use super::*;

    fn name(text: &str) -> RepoPath {
        RepoPath::from(text.as_bytes())
    }

    fn blob(mode: u32, oid: &str) -> Blob {
        Blob { mode, oid: oid.to_owned() }
    }

    fn gone(head: Head) -> Entry {
        Entry { state: PathState::Gone, status: GitPathStatus::new(head) }
    }

    fn link(target: &str, staged: Option<&str>) -> Entry {
        let at = super::super::entry::Identity::from_metadata(&std::fs::metadata("/").unwrap());
        let status =
            GitPathStatus { staged: staged.map(Into::into), ..GitPathStatus::new(Head::Lacks) };
        Entry { state: PathState::Link { target: target.as_bytes().into(), at }, status }
    }

    #[test]
    fn what_is_not_looked_at_is_compared_by_its_blob() {
        let clean = |mode, oid: &str| Side::Clean(blob(mode, oid));
        let (plain, run, links) = (0o100_644, 0o100_755, 0o120_000);
        for (before, after, file_mode, expected) in [
            (clean(plain, "a"), clean(plain, "a"), true, None),
            (clean(plain, "a"), clean(plain, "b"), true, Some(Change::Modified)),
            (clean(plain, "a"), clean(run, "a"), true, Some(Change::Modified)),
            (clean(plain, "a"), clean(run, "a"), false, None),
            (clean(plain, "a"), clean(links, "a"), false, Some(Change::Modified)),
            (clean(plain, "a"), Side::Absent, true, Some(Change::Deleted)),
            (Side::Absent, clean(plain, "a"), true, Some(Change::Added)),
            (Side::Absent, Side::Absent, true, None),
        ] {
            let compared = compare(&before, &after, file_mode);
            assert_eq!(
                compared,
                expected.map_or(Comparison::Same, Comparison::Differs),
                "{before:?} {after:?}"
            );
        }
    }

    #[test]
    fn only_git_can_tell_whether_a_link_is_a_blob() {
        let (entry, nothing) = (link("a", None), gone(Head::Unknown));
        let clean = Side::Clean(blob(0o120_000, "x"));
        assert_eq!(
            compare(&clean, &Side::Observed(&entry), true),
            Comparison::Ask(blob(0o120_000, "x"))
        );
        assert_eq!(
            compare(&clean, &Side::Observed(&nothing), true),
            Comparison::Differs(Change::Deleted)
        );
        assert_eq!(compare(&Side::Absent, &Side::Observed(&nothing), true), Comparison::Same);
        let file = Side::Clean(blob(0o100_644, "x"));
        assert_eq!(
            compare(&file, &Side::Observed(&entry), true),
            Comparison::Differs(Change::Modified)
        );
    }

    #[test]
    fn renames_are_not_guessed() {
        let hash = |text: &str| Keys { hash: Some((false, text.into())), oid: None };
        let oid = |text: &str| Keys { hash: None, oid: Some((false, text.into())) };
        let both = |a: &str, b: &str| Keys { hash: hash(a).hash, oid: oid(b).oid };
        let pairs = |gone: &[(&str, Keys)], new: &[(&str, Keys)]| {
            let named = |files: &[(&str, Keys)]| -> Vec<(RepoPath, Keys)> {
                files.iter().map(|(at, keys)| (name(at), keys.clone())).collect()
            };
            let pairs = renames(&named(gone), &named(new));
            pairs.iter().map(|(from, to)| format!("{from} {to}")).collect::<Vec<_>>()
        };
        assert_eq!(pairs(&[("a", hash("x"))], &[("b", hash("x")), ("c", hash("y"))]), ["a b"]);
        assert_eq!(pairs(&[("a", oid("x"))], &[("b", both("h", "x"))]), ["a b"]);
        assert!(pairs(&[("a", hash("x"))], &[("b", hash("x")), ("c", hash("x"))]).is_empty());
        assert!(pairs(&[("a", hash("x")), ("b", hash("x"))], &[("c", hash("x"))]).is_empty());
        // Two deleted files match one new file, each by another key.
        assert!(pairs(&[("a", hash("h")), ("b", oid("x"))], &[("c", both("h", "x"))]).is_empty());
        assert!(pairs(&[("a", Keys::default())], &[("b", Keys::default())]).is_empty());
        let link = Keys { hash: Some((true, "x".into())), oid: None };
        assert!(pairs(&[("a", hash("x"))], &[("b", link)]).is_empty());
    }
}
