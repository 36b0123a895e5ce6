//! Three looks at one path, and what folding does with them. Pure.

use super::metadata::{Content, Kind};

/// What folding does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeDecision {
    /// It already is as it should be.
    Nothing,
    /// What was worked takes the place of what stands.
    Take,
    /// A file of both: whose bytes, and whether it can be executed.
    Combine(ByteSource, Kind),
    /// Nobody can say what is meant.
    Conflict(ConflictReason),
}

/// Whose bytes a combined file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteSource {
    /// Those that stand in the repository.
    Repository,
    /// Those of the workspace.
    Workspace,
    /// Both changes, if they do not overlap.
    Merged,
}

/// Why two changes do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConflictReason {
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

impl ConflictReason {
    /// The reason, to be read after the path.
    pub(super) fn message(self) -> &'static str {
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
            Self::Meanwhile => "was changed in the repository during the merge",
        }
    }
}

/// What to do with a path that was changed in a workspace: what it was at the opening, what the
/// workspace made of it, and what stands in the repository now.
pub(super) fn decide(
    base: Option<&Content>,
    workspace: Option<&Content>,
    repository: Option<&Content>,
) -> MergeDecision {
    if same(workspace, repository) || same(workspace, base) {
        return MergeDecision::Nothing;
    }
    if same(base, repository) {
        return MergeDecision::Take;
    }
    match (base, workspace, repository) {
        (Some(base), Some(workspace), Some(repository)) => {
            if [base, workspace, repository].iter().any(|content| content.kind == Kind::Link) {
                return MergeDecision::Conflict(ConflictReason::Link);
            }
            let bytes = if workspace.hash == base.hash || workspace.hash == repository.hash {
                ByteSource::Repository
            } else if repository.hash == base.hash {
                ByteSource::Workspace
            } else {
                ByteSource::Merged
            };
            // There are two kinds of file: if both changed theirs, they changed it to the same.
            let kind = if workspace.kind == base.kind { repository.kind } else { workspace.kind };
            MergeDecision::Combine(bytes, kind)
        }
        (Some(_), Some(_), None) => MergeDecision::Conflict(ConflictReason::Gone),
        (Some(_), None, _) => MergeDecision::Conflict(ConflictReason::Deleted),
        (None, ..) => MergeDecision::Conflict(ConflictReason::Added),
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
        use MergeDecision::{Combine, Conflict, Nothing, Take};
        let cases = [
            // was, worked, stands
            ("f1", "f1", "f2", Nothing),
            ("f1", "f2", "f1", Take),
            ("f1", "f2", "f2", Nothing),
            ("f1", "f2", "f3", Combine(ByteSource::Merged, Kind::File)),
            ("f1", "x1", "f1", Take),
            ("f1", "x1", "f2", Combine(ByteSource::Repository, Kind::Program)),
            ("f1", "f2", "x1", Combine(ByteSource::Workspace, Kind::Program)),
            ("f1", "x2", "f2", Combine(ByteSource::Repository, Kind::Program)),
            ("x1", "f2", "x3", Combine(ByteSource::Merged, Kind::File)),
            ("x1", "f1", "f2", Combine(ByteSource::Repository, Kind::File)),
            ("f1", "-", "f1", Take),
            ("f1", "-", "-", Nothing),
            ("f1", "-", "f2", Conflict(ConflictReason::Deleted)),
            ("f1", "f2", "-", Conflict(ConflictReason::Gone)),
            ("-", "f1", "-", Take),
            ("-", "f1", "f1", Nothing),
            ("-", "f1", "f2", Conflict(ConflictReason::Added)),
            ("-", "f1", "x1", Conflict(ConflictReason::Added)),
            ("-", "l1", "f1", Conflict(ConflictReason::Added)),
            ("l1", "l2", "l1", Take),
            ("l1", "l2", "l3", Conflict(ConflictReason::Link)),
            ("f1", "l1", "f2", Conflict(ConflictReason::Link)),
            ("f1", "f2", "l1", Conflict(ConflictReason::Link)),
            ("l1", "f2", "l1", Take),
        ];
        for (base, workspace, repository, decision) in cases {
            let decided = decide(
                content(base).as_ref(),
                content(workspace).as_ref(),
                content(repository).as_ref(),
            );
            assert_eq!(decided, decision, "{base} {workspace} {repository}");
        }
    }
}
