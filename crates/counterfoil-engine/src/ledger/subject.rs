//! What a claim is about: what a step did, the work tree, or some files.

use counterfoil_contract::claim::{ClaimKind, ClaimReport};
use serde_json::Value;
use std::collections::BTreeSet;

/// The maximum number of parent folders of a path that are considered.
const MAX_DEPTH: usize = 64;

/// What a claim is about.
pub(super) enum Subject<'a> {
    /// What a step did. Later steps do not affect it.
    Step,
    /// The whole work tree.
    Tree,
    /// The content of these files.
    Files(BTreeSet<&'a str>),
}

pub(super) fn subject(claim: &ClaimReport) -> Subject<'_> {
    match claim.kind {
        ClaimKind::Command | ClaimKind::Commands => Subject::Tree,
        // The count of a list does not depend on the tree; one from a report or a check does.
        ClaimKind::Count => {
            let rests_on_tree = claim
                .evidence
                .iter()
                .any(|evidence| matches!(evidence.kind.as_str(), "report" | "command"));
            if rests_on_tree { Subject::Tree } else { Subject::Step }
        }
        ClaimKind::Artifact => Subject::Files(paths(&claim.claimed)),
        ClaimKind::FilesModified
        | ClaimKind::FilesAdded
        | ClaimKind::FilesDeleted
        | ClaimKind::FilesRenamed
        | ClaimKind::FilesChanged
        | ClaimKind::Commit
        | ClaimKind::Location
        | ClaimKind::Fixed
        | ClaimKind::Complete
        | ClaimKind::Protected
        | ClaimKind::TestsKept => Subject::Step,
    }
}

/// The paths in a value, one level deep. For an absolute path all its suffixes are included, since
/// changes are listed relative to the workspace.
fn paths(value: &Value) -> BTreeSet<&str> {
    let texts: Vec<&str> = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Object(fields) => fields.values().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    let mut paths = BTreeSet::new();
    for text in texts {
        paths.insert(text.trim_start_matches("./"));
        if text.starts_with('/') {
            paths.extend(text.match_indices('/').take(MAX_DEPTH).map(|(at, _)| &text[at + 1..]));
        }
    }
    paths
}
