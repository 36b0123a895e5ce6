//! Decides how to merge one path from its three versions. Does no I/O.

use super::metadata::{Content, Kind};

/// How a path is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeDecision {
    /// Nothing has to be written.
    Nothing,
    /// The workspace version replaces the repository version.
    Take,
    /// A combined file: the source of its bytes, and its kind.
    Combine(ByteSource, Kind),
    /// The changes conflict.
    Conflict(ConflictReason),
}

/// The source of the bytes of a combined file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteSource {
    /// The repository version.
    Repository,
    /// The workspace version.
    Workspace,
    /// A text merge of both, if the changes do not overlap.
    Merged,
}

/// Why two changes conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConflictReason {
    /// Both added a file there.
    Added,
    /// The workspace deleted a file that was changed in the repository.
    DeletedInWorkspace,
    /// The workspace changed a file that was deleted in the repository.
    DeletedInRepository,
    /// One of the versions is a symbolic link.
    Link,
    /// The changes overlap.
    Overlap,
    /// The file is not text, or is too large to be merged as text.
    Binary,
    /// The base could not be read, so a merge is impossible.
    BaseUnreadable,
    /// Git is not available for the merge.
    NoGit,
    /// There is a file where a folder is needed, or the other way round.
    FolderInTheWay,
    /// A parent of the path is a symbolic link.
    BehindLink,
    /// The path is a device or socket in the repository.
    Special,
    /// The file changed in the repository during the merge.
    ChangedDuringMerge,
}

impl ConflictReason {
    /// Whether both sides changed the file, and nothing else is in the way.
    pub(super) fn is_of_both_sides(self) -> bool {
        match self {
            Self::Added
            | Self::DeletedInWorkspace
            | Self::DeletedInRepository
            | Self::Link
            | Self::Overlap
            | Self::Binary
            | Self::BaseUnreadable
            | Self::NoGit => true,
            Self::FolderInTheWay | Self::BehindLink | Self::Special | Self::ChangedDuringMerge => {
                false
            }
        }
    }

    /// The reason as a phrase that follows the path.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Added => "was added in both places with different content",
            Self::DeletedInWorkspace => {
                "was deleted in the workspace and changed in the repository"
            }
            Self::DeletedInRepository => {
                "was changed in the workspace and deleted in the repository"
            }
            Self::Link => "was changed in both places, and one of them is a symbolic link",
            Self::Overlap => "was changed in both places, and the changes overlap",
            Self::Binary => "was changed in both places, and cannot be merged as text",
            Self::BaseUnreadable => {
                "was changed in both places, and its original content could not be read"
            }
            Self::NoGit => "was changed in both places, and git is not available to merge it",
            Self::FolderInTheWay => {
                "would replace a folder of the repository, or lie below one of its files"
            }
            Self::BehindLink => "has a symbolic link as a parent folder",
            Self::Special => "is neither a file nor a symbolic link in the repository",
            Self::ChangedDuringMerge => "was changed in the repository during the merge",
        }
    }
}

/// Decides how to merge a path from its content in the base, in the workspace and in the
/// repository.
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
            // There are only two kinds of file: if both sides changed it, they changed it to the
            // same.
            let kind = if workspace.kind == base.kind { repository.kind } else { workspace.kind };
            MergeDecision::Combine(bytes, kind)
        }
        (Some(_), Some(_), None) => MergeDecision::Conflict(ConflictReason::DeletedInRepository),
        (Some(_), None, _) => MergeDecision::Conflict(ConflictReason::DeletedInWorkspace),
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

/// Whether git would treat the bytes as binary.
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
            // base, workspace, repository
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
            ("f1", "-", "f2", Conflict(ConflictReason::DeletedInWorkspace)),
            ("f1", "f2", "-", Conflict(ConflictReason::DeletedInRepository)),
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
