//! Three looks at one path, and what folding does with them. Pure.

use super::record::{Content, Kind};

/// What folding does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It already is as it should be.
    Nothing,
    /// What was worked takes the place of what stands.
    Take,
    /// A file of both: whose bytes, and whether it can be executed.
    Combine(Bytes, Kind),
    /// Nobody can say what is meant.
    Conflict(Why),
}

/// Whose bytes a combined file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// Those that stand in the repository.
    Standing,
    /// Those of the workspace.
    Worked,
    /// Both changes, if they do not overlap.
    Merged,
}

/// Why two changes do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Both made a file there.
    Added,
    /// The workspace deleted what was changed in the repository.
    Deleted,
    /// The workspace changed what was deleted in the repository.
    Gone,
    /// One of them is a symbolic link.
    Link,
    /// The changes overlap.
    Overlap,
    /// It is not text, or too large to be merged as text.
    Binary,
    /// The base could not be read, so there is nothing to merge by.
    Base,
    /// There is no git to merge with.
    NoGit,
    /// A file stands where a folder is needed, or the other way round.
    Folder,
    /// The way to it leads through a symbolic link.
    Through,
    /// What stands there is no file: a device, a socket.
    Special,
    /// It was changed while the fold was at work.
    Meanwhile,
}

impl Why {
    /// The reason, to be read after the path.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Added => "was added in both places, differently",
            Self::Deleted => "was deleted in the workspace and changed in the repository",
            Self::Gone => "was changed in the workspace and deleted in the repository",
            Self::Link => "was changed in both places, and one of them is a symbolic link",
            Self::Overlap => "was changed in both places, and the changes overlap",
            Self::Binary => "was changed in both places, and cannot be merged as text",
            Self::Base => {
                "was changed in both places, and what it looked like before could not be read"
            }
            Self::NoGit => "was changed in both places, and there is no git to merge with",
            Self::Folder => {
                "would stand where the repository has a folder, or below one of its files"
            }
            Self::Through => "lies behind a symbolic link",
            Self::Special => "is neither a file nor a symbolic link in the repository",
            Self::Meanwhile => "was changed in the repository while it was folded",
        }
    }
}

/// What to do with a path that was changed in a workspace: what it was at the opening, what the
/// workspace made of it, and what stands in the repository now.
pub(super) fn judge(
    was: Option<&Content>,
    worked: Option<&Content>,
    stands: Option<&Content>,
) -> Ruling {
    if same(worked, stands) || same(worked, was) {
        return Ruling::Nothing;
    }
    if same(was, stands) {
        return Ruling::Take;
    }
    match (was, worked, stands) {
        (Some(was), Some(worked), Some(stands)) => {
            if [was, worked, stands].iter().any(|content| content.kind == Kind::Link) {
                return Ruling::Conflict(Why::Link);
            }
            let bytes = if worked.hash == was.hash || worked.hash == stands.hash {
                Bytes::Standing
            } else if stands.hash == was.hash {
                Bytes::Worked
            } else {
                Bytes::Merged
            };
            // There are two kinds of file: if both changed theirs, they changed it to the same.
            let kind = if worked.kind == was.kind { stands.kind } else { worked.kind };
            Ruling::Combine(bytes, kind)
        }
        (Some(_), Some(_), None) => Ruling::Conflict(Why::Gone),
        (Some(_), None, _) => Ruling::Conflict(Why::Deleted),
        (None, ..) => Ruling::Conflict(Why::Added),
    }
}

fn same(one: Option<&Content>, other: Option<&Content>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is(other),
        (None, None) => true,
        _ => false,
    }
}

/// Whether git would call it binary.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Option<Content> {
        let (kind, hash) = match text.split_at(1) {
            ("-", _) => return None,
            ("f", hash) => (Kind::File, hash),
            ("x", hash) => (Kind::Program, hash),
            ("l", hash) => (Kind::Link, hash),
            _ => panic!("{text}"),
        };
        Some(Content { kind, hash: hash.to_owned(), size: 1, mode: 0o644 })
    }

    #[test]
    fn each_way_two_changes_can_meet() {
        use Ruling::{Combine, Conflict, Nothing, Take};
        let cases = [
            // was, worked, stands
            ("f1", "f1", "f2", Nothing),
            ("f1", "f2", "f1", Take),
            ("f1", "f2", "f2", Nothing),
            ("f1", "f2", "f3", Combine(Bytes::Merged, Kind::File)),
            ("f1", "x1", "f1", Take),
            ("f1", "x1", "f2", Combine(Bytes::Standing, Kind::Program)),
            ("f1", "f2", "x1", Combine(Bytes::Worked, Kind::Program)),
            ("f1", "x2", "f2", Combine(Bytes::Standing, Kind::Program)),
            ("x1", "f2", "x3", Combine(Bytes::Merged, Kind::File)),
            ("x1", "f1", "f2", Combine(Bytes::Standing, Kind::File)),
            ("f1", "-", "f1", Take),
            ("f1", "-", "-", Nothing),
            ("f1", "-", "f2", Conflict(Why::Deleted)),
            ("f1", "f2", "-", Conflict(Why::Gone)),
            ("-", "f1", "-", Take),
            ("-", "f1", "f1", Nothing),
            ("-", "f1", "f2", Conflict(Why::Added)),
            ("-", "f1", "x1", Conflict(Why::Added)),
            ("-", "l1", "f1", Conflict(Why::Added)),
            ("l1", "l2", "l1", Take),
            ("l1", "l2", "l3", Conflict(Why::Link)),
            ("f1", "l1", "f2", Conflict(Why::Link)),
            ("f1", "f2", "l1", Conflict(Why::Link)),
            ("l1", "f2", "l1", Take),
        ];
        for (was, worked, stands, ruling) in cases {
            let given =
                judge(content(was).as_ref(), content(worked).as_ref(), content(stands).as_ref());
            assert_eq!(given, ruling, "{was} {worked} {stands}");
        }
    }
}
