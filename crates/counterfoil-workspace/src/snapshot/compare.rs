//! Compares the states of a path in two snapshots. Does no I/O.

use super::Change;
use super::base::Side;
use super::entry::{BlobRules, Bytes, PathState};
use super::repo_path::RepoPath;
use std::collections::{BTreeSet, HashMap};

/// Compares two states of a path.
pub(super) fn compare(before: Side, after: Side, rules: BlobRules) -> Option<Change> {
    let same = match (before, after) {
        (Side::Absent, Side::Absent) => return None,
        (Side::Absent, _) => return Some(Change::Added),
        (_, Side::Absent) => return Some(Change::Deleted),
        (Side::Clean(a), Side::Clean(b)) => a.same(b, rules.file_mode),
        (Side::Observed(a), Side::Observed(b)) => a.same(b, rules.file_mode),
        (Side::Clean(blob), Side::Observed(state)) | (Side::Observed(state), Side::Clean(blob)) => {
            state.is_blob(blob, rules)
        }
    };
    (!same).then_some(Change::Modified)
}

/// Keys that identify the content of a file under another path. Links have keys of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) hash: Option<(bool, Vec<u8>)>,
    pub(super) oid: Option<(bool, String)>,
}

impl Keys {
    /// The keys of a path.
    pub(super) fn from_side(side: Side) -> Self {
        match side {
            Side::Clean(blob) => Self { hash: None, oid: Some((blob.is_link(), blob.oid.clone())) },
            Side::Observed(PathState::File { bytes: Bytes::Read { hash, blobs }, .. }) => Self {
                hash: Some((false, hash.to_vec())),
                oid: blobs.first().map(|oid| (false, oid.clone())),
            },
            Side::Observed(PathState::Link { target, blob, .. }) => {
                Self { hash: Some((true, target.to_vec())), oid: Some((true, blob.clone())) }
            }
            Side::Absent | Side::Observed(_) => Self::default(),
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
    use super::super::blob::{Blob, Conversion, ObjectFormat};
    use super::*;

    fn name(text: &str) -> RepoPath {
        RepoPath::from(text.as_bytes())
    }

    fn blob(mode: u32, oid: &str) -> Blob {
        Blob { mode, oid: oid.to_owned() }
    }

    fn rules(file_mode: bool) -> BlobRules {
        let (format, conversion) = (ObjectFormat::Sha1, Conversion::None);
        BlobRules { format, conversion, file_mode, symlinks: true }
    }

    #[test]
    fn what_is_not_looked_at_is_compared_by_its_blob() {
        let (plain, run, links) = (0o100_644, 0o100_755, 0o120_000);
        let modified = Some(Change::Modified);
        for (before, after, file_mode, expected) in [
            (blob(plain, "a"), blob(plain, "a"), true, None),
            (blob(plain, "a"), blob(plain, "b"), true, modified),
            (blob(plain, "a"), blob(run, "a"), true, modified),
            (blob(plain, "a"), blob(run, "a"), false, None),
            (blob(plain, "a"), blob(links, "a"), false, modified),
        ] {
            let compared = compare(Side::Clean(&before), Side::Clean(&after), rules(file_mode));
            assert_eq!(compared, expected, "{before:?} {after:?}");
        }
        let one = blob(plain, "a");
        let compared = |before, after| compare(before, after, rules(true));
        assert_eq!(compared(Side::Clean(&one), Side::Absent), Some(Change::Deleted));
        assert_eq!(compared(Side::Absent, Side::Clean(&one)), Some(Change::Added));
        assert_eq!(compared(Side::Absent, Side::Absent), None);
    }

    #[test]
    fn a_link_is_its_blob_and_no_file() {
        let at = crate::file_identity::Identity::from_metadata(&std::fs::metadata("/").unwrap());
        let state = PathState::Link { target: b"a"[..].into(), blob: "x".into(), at };
        for (mode, oid, expected) in [
            (0o120_000, "x", None),
            (0o120_000, "y", Some(Change::Modified)),
            (0o100_644, "x", Some(Change::Modified)),
        ] {
            let clean = blob(mode, oid);
            let compared = compare(Side::Clean(&clean), Side::Observed(&state), rules(true));
            assert_eq!(compared, expected, "{clean:?}");
        }
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
