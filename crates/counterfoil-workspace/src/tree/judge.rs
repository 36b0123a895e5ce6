//! Comparing what stood at a path with what stands there now. No I/O: what only git can tell is
//! asked for.

use super::Change;
use super::entry::{Bytes, Entry, Thing};
use super::name::Name;
use super::parse::Blob;
use std::collections::{BTreeSet, HashMap};

/// What stood at a path at the time of a snapshot.
#[derive(Clone, Debug)]
pub(super) enum Side<'a> {
    Absent,
    /// It was as a commit has it.
    Clean(Blob),
    /// It was looked at.
    Seen(&'a Entry),
}

impl Side<'_> {
    pub(super) fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Clean(_) => false,
            Self::Seen(entry) => entry.thing.is_gone(),
        }
    }
}

/// What comparing came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Same,
    Differs(Change),
    /// Whether the file that was looked at is this blob, with the filters and line ends that git
    /// applies there.
    Ask(Blob),
}

/// Compares two sides of a path.
pub(super) fn judge(before: &Side, after: &Side, file_mode: bool) -> Judged {
    let differs = |same: bool| if same { Judged::Same } else { Judged::Differs(Change::Modified) };
    match (before.is_absent(), after.is_absent()) {
        (true, true) => return Judged::Same,
        (true, false) => return Judged::Differs(Change::Added),
        (false, true) => return Judged::Differs(Change::Deleted),
        (false, false) => {}
    }
    match (before, after) {
        (Side::Clean(a), Side::Clean(b)) => {
            let kinds = a.is_link() == b.is_link();
            differs(a.oid == b.oid && kinds && (!file_mode || a.executable() == b.executable()))
        }
        (Side::Seen(a), Side::Seen(b)) => differs(a.thing.same(&b.thing, file_mode)),
        (Side::Clean(blob), Side::Seen(entry)) | (Side::Seen(entry), Side::Clean(blob)) => {
            let modes = !file_mode || entry.thing.executable() == blob.executable();
            match &entry.thing {
                Thing::File { .. } if blob.is_link() || !modes => differs(false),
                Thing::File { bytes, .. } => match &entry.told.staged {
                    Some(staged) => differs(*staged == blob.oid),
                    None if entry.told.edited && entry.told.head_is(blob) => differs(false),
                    // Too large for us to read is too large to have git read it.
                    None if *bytes == Bytes::Unread && entry.told.dirty => differs(false),
                    None => Judged::Ask(blob.clone()),
                },
                Thing::Link { .. } if !blob.is_link() => differs(false),
                Thing::Link { .. } => Judged::Ask(blob.clone()),
                Thing::Gone | Thing::Other(_) => differs(false),
            }
        }
        (Side::Absent, _) | (_, Side::Absent) => Judged::Same,
    }
}

/// By what the content of a file can be recognised elsewhere. Links have keys of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) hash: Option<(bool, Vec<u8>)>,
    pub(super) oid: Option<(bool, String)>,
}

impl Keys {
    /// What is known of a side.
    pub(super) fn of(side: &Side) -> Self {
        match side {
            Side::Absent => Self::default(),
            Side::Clean(blob) => Self { hash: None, oid: Some((blob.is_link(), blob.oid.clone())) },
            Side::Seen(entry) => match &entry.thing {
                Thing::File { bytes: Bytes::Hash(hash), .. } => Self {
                    hash: Some((false, hash.to_vec())),
                    oid: entry.told.staged.clone().map(|oid| (false, oid)),
                },
                Thing::Link { target, .. } => Self {
                    hash: Some((true, target.to_vec())),
                    oid: entry.told.staged.clone().map(|oid| (true, oid)),
                },
                _ => Self::default(),
            },
        }
    }
}

/// Pairs what is gone with what is new by content: only where there is one of each, so that nothing
/// is guessed.
pub(super) fn renames(gone: &[(Name, Keys)], new: &[(Name, Keys)]) -> Vec<(Name, Name)> {
    let mut pairs: BTreeSet<(&Name, &Name)> = BTreeSet::new();
    for key in [hash_key as fn(&Keys) -> Option<Vec<u8>>, oid_key] {
        let new = by_key(new, key);
        for (key, gone) in by_key(gone, key) {
            if let ([from], Some([to])) = (&gone[..], new.get(&key).map(Vec::as_slice)) {
                pairs.insert((from, to));
            }
        }
    }
    // The two keys may pair one file with two others.
    let (mut from, mut to): (HashMap<&Name, usize>, HashMap<&Name, usize>) = Default::default();
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
    files: &[(Name, Keys)],
    key: impl Fn(&Keys) -> Option<Vec<u8>>,
) -> HashMap<Vec<u8>, Vec<&Name>> {
    let mut by: HashMap<Vec<u8>, Vec<&Name>> = HashMap::new();
    for (name, keys) in files {
        if let Some(key) = key(keys) {
            by.entry(key).or_default().push(name);
        }
    }
    by
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Head, Told};
    use super::*;

    fn name(text: &str) -> Name {
        Name::from(text.as_bytes())
    }

    fn blob(mode: u32, oid: &str) -> Blob {
        Blob { mode, oid: oid.to_owned() }
    }

    fn gone(head: Head) -> Entry {
        Entry { thing: Thing::Gone, told: Told::new(head) }
    }

    fn link(target: &str, staged: Option<&str>) -> Entry {
        let at = super::super::entry::Identity::of(&std::fs::metadata("/").unwrap());
        let told = Told { staged: staged.map(Into::into), ..Told::new(Head::Lacks) };
        Entry { thing: Thing::Link { target: target.as_bytes().into(), at }, told }
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
            let judged = judge(&before, &after, file_mode);
            assert_eq!(
                judged,
                expected.map_or(Judged::Same, Judged::Differs),
                "{before:?} {after:?}"
            );
        }
    }

    #[test]
    fn only_git_can_tell_whether_a_link_is_a_blob() {
        let (entry, nothing) = (link("a", None), gone(Head::Unknown));
        let clean = Side::Clean(blob(0o120_000, "x"));
        assert_eq!(judge(&clean, &Side::Seen(&entry), true), Judged::Ask(blob(0o120_000, "x")));
        assert_eq!(judge(&clean, &Side::Seen(&nothing), true), Judged::Differs(Change::Deleted));
        assert_eq!(judge(&Side::Absent, &Side::Seen(&nothing), true), Judged::Same);
        let file = Side::Clean(blob(0o100_644, "x"));
        assert_eq!(judge(&file, &Side::Seen(&entry), true), Judged::Differs(Change::Modified));
    }

    #[test]
    fn renames_are_not_guessed() {
        let hash = |text: &str| Keys { hash: Some((false, text.into())), oid: None };
        let oid = |text: &str| Keys { hash: None, oid: Some((false, text.into())) };
        let both = |a: &str, b: &str| Keys { hash: hash(a).hash, oid: oid(b).oid };
        let pairs = |gone: &[(&str, Keys)], new: &[(&str, Keys)]| {
            let named = |files: &[(&str, Keys)]| -> Vec<(Name, Keys)> {
                files.iter().map(|(at, keys)| (name(at), keys.clone())).collect()
            };
            let pairs = renames(&named(gone), &named(new));
            pairs.iter().map(|(from, to)| format!("{from} {to}")).collect::<Vec<_>>()
        };
        assert_eq!(pairs(&[("a", hash("x"))], &[("b", hash("x")), ("c", hash("y"))]), ["a b"]);
        assert_eq!(pairs(&[("a", oid("x"))], &[("b", both("h", "x"))]), ["a b"]);
        assert!(pairs(&[("a", hash("x"))], &[("b", hash("x")), ("c", hash("x"))]).is_empty());
        assert!(pairs(&[("a", hash("x")), ("b", hash("x"))], &[("c", hash("x"))]).is_empty());
        // Two that are gone claim one that is new, each by another key.
        assert!(pairs(&[("a", hash("h")), ("b", oid("x"))], &[("c", both("h", "x"))]).is_empty());
        assert!(pairs(&[("a", Keys::default())], &[("b", Keys::default())]).is_empty());
        let link = Keys { hash: Some((true, "x".into())), oid: None };
        assert!(pairs(&[("a", hash("x"))], &[("b", link)]).is_empty());
    }
}
