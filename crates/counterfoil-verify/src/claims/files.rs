//! Verifies the files that a result claims to have changed.

use super::VerifyContext;
use super::assessment::ClaimAssessment;
use super::extract::{self, ClaimedChange, NamedFile};
use super::format::{self, join_limited};
use super::path::ChangeIndex;
use super::probe::{PathProbe, Presence, probe_paths};
use super::state::VerificationState;
use counterfoil_contract::claim::{ClaimKind, ClaimMatch, EffectiveClaim, Evidence, Verdict};
use counterfoil_contract::text::pluralize;
use counterfoil_workspace::snapshot::{Change, Changes};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub(super) fn verify(
    effective: &EffectiveClaim,
    value: &Value,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let named = match extract::files(&found) {
        Ok(named) => named,
        Err(why) => {
            return Some(ClaimAssessment::unverifiable(claimed_value(&found), why.to_string()));
        }
    };
    let expected = expected_change(effective.claim.kind);
    let claimed = unique(named, expected);
    // With `subset` and `best-effort` matching, an empty list claims nothing.
    if claimed.is_empty() && effective.claim.matching != ClaimMatch::Exact {
        return None;
    }
    let changes = match &state.changes {
        Ok(changes) => changes,
        Err(why) => {
            let displayed =
                format::json_list(claimed.iter().map(|file| describe_file(file, expected)));
            return Some(ClaimAssessment::unverifiable(
                displayed,
                format!("the changes cannot be determined: {why}"),
            ));
        }
    };
    let index = ChangeIndex::new(changes);
    let texts: Vec<String> = claimed.iter().map(|file| file.path.clone()).collect();
    let probes = probe_paths(&texts, &state.resolver, &index, context.view);
    let froms: Vec<String> = claimed.iter().filter_map(|file| file.from.clone()).collect();
    let mut from_probes = probe_paths(&froms, &state.resolver, &index, context.view).into_iter();
    let items: Vec<ClaimedFile> = claimed
        .into_iter()
        .zip(probes)
        .map(|(file, probe)| {
            let from =
                file.from.is_some().then(|| from_probes.next().map(|from| from.path)).flatten();
            let may_be_moved = probe.change == Some(Change::Added);
            let is_like = from
                .as_deref()
                .filter(|_| may_be_moved)
                .and_then(|from| context.view.is_like(&probe.path, from));
            ClaimedFile { is_unlike: is_like == Some(false), from, file, probe }
        })
        .collect();
    Some(assess(effective.claim.kind, effective.claim.matching, &items, changes, &index, state))
}

fn claimed_value(found: &[extract::FieldValue<'_>]) -> Value {
    match found {
        [one] => one.value.clone(),
        many => format::json_list(many.iter().map(|found| found.value.to_string())),
    }
}

fn expected_change(kind: ClaimKind) -> ClaimedChange {
    match kind {
        ClaimKind::FilesModified => ClaimedChange::Modified,
        ClaimKind::FilesAdded => ClaimedChange::Added,
        ClaimKind::FilesDeleted => ClaimedChange::Deleted,
        ClaimKind::FilesRenamed => ClaimedChange::Renamed,
        _ => ClaimedChange::Changed,
    }
}

/// Removes duplicate claims.
fn unique(named: Vec<NamedFile>, expected: ClaimedChange) -> Vec<NamedFile> {
    let mut seen = HashSet::with_capacity(named.len());
    let mut named = named;
    named.retain(|file| {
        seen.insert((file.path.clone(), file.change.unwrap_or(expected), file.from.clone()))
    });
    named
}

/// A claimed file and what was observed of it.
pub(super) struct ClaimedFile {
    file: NamedFile,
    probe: PathProbe,
    /// The claimed old path, resolved.
    from: Option<PathBuf>,
    /// The file at the old path was another one.
    is_unlike: bool,
}

fn describe_file(file: &NamedFile, expected: ClaimedChange) -> String {
    let path = format::display_text(&file.path);
    match (&file.from, file.change) {
        (Some(from), _) => format!("{} -> {path}", format::display_text(from)),
        (None, Some(own)) if expected == ClaimedChange::Changed => {
            format!("{path} ({})", own.name())
        }
        _ => path,
    }
}

/// How a claimed file differs from what was observed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mismatch {
    /// The file did not change.
    Unchanged,
    /// The file does not exist, and did not change.
    Missing,
    /// The file does not exist, and git ignores it, so a snapshot would not have contained it.
    Ignored,
    /// The file changed in a different way: the claimed change and the observed change.
    DifferentChange(&'static str, &'static str),
    /// The file was renamed from a different path.
    DifferentOrigin(String),
    /// The file at the claimed old path had a different content: its name.
    DifferentContent(String),
    /// The path is a folder, in which this many files changed.
    Folder(usize),
    /// The path is outside of the workspace and was not read.
    Outside(String),
}

/// Compares the claimed files with the changes. `state` only tells which changes need not be
/// claimed.
fn assess(
    kind: ClaimKind,
    matching: ClaimMatch,
    items: &[ClaimedFile],
    changes: &Changes,
    index: &ChangeIndex<'_>,
    state: &VerificationState,
) -> ClaimAssessment {
    let expected = expected_change(kind);
    let mut wrong: Vec<(Mismatch, String)> = Vec::new();
    let mut claimed_paths: HashSet<&Path> = HashSet::with_capacity(items.len());
    let mut notes: Vec<String> = Vec::new();
    for item in items {
        let name = format::display_text(&item.file.path);
        match check_item(item, item.file.change.unwrap_or(expected), index, &mut notes) {
            Ok(()) => {}
            Err(mismatch) => wrong.push((mismatch, name.clone())),
        }
        claimed_paths.insert(&item.probe.path);
        claimed_paths.extend(item.from.as_deref());
        notes.extend(item.probe.notes.iter().map(|note| format!("{name} {note}")));
    }
    let agreeing = items.len() - wrong.len();
    let unclaimed: Vec<String> = match matching {
        ClaimMatch::Exact => unclaimed(expected, &claimed_paths, changes, index, state),
        ClaimMatch::Subset | ClaimMatch::BestEffort => Vec::new(),
    };
    let ignored = wrong.iter().filter(|(mismatch, _)| *mismatch == Mismatch::Ignored).count();
    let refuted = match matching {
        // Unclaimed changes may be the work of another writer.
        ClaimMatch::Exact if state.concurrent_writer.is_none() => {
            wrong.len() > ignored || !unclaimed.is_empty()
        }
        ClaimMatch::Exact | ClaimMatch::Subset => wrong.len() > ignored,
        ClaimMatch::BestEffort => agreeing == 0 && ignored == 0,
    };
    let unknown = match matching {
        ClaimMatch::Exact | ClaimMatch::Subset => ignored > 0,
        ClaimMatch::BestEffort => ignored > 0 && agreeing == 0,
    };
    let difference = difference(items.len(), expected, wrong, &unclaimed);
    let claimed = format::json_list(items.iter().map(|item| describe_file(&item.file, expected)));
    let verdict = match (refuted, unknown) {
        (true, _) => Verdict::Refuted,
        (false, true) => Verdict::Unverifiable,
        (false, false) => Verdict::Verified,
    };
    let mut assessment =
        ClaimAssessment::new(verdict, claimed, observed_files(expected, changes, index, state))
            .with_evidence(Evidence::new("diff", state.summary(changes)));
    if verdict != Verdict::Verified {
        assessment.reason = difference;
    } else if !difference.is_empty() {
        assessment = assessment.with_notes([difference]);
    }
    if let Some(concurrent_writer) =
        state.concurrent_writer.as_ref().filter(|_| matching == ClaimMatch::Exact)
    {
        assessment =
            assessment.with_notes([format!("unclaimed changes are ignored: {concurrent_writer}")]);
    }
    let left = notes.len().saturating_sub(format::MAX_ITEMS);
    notes.truncate(format::MAX_ITEMS);
    notes.extend((left > 0).then(|| format!("… and {left} more of the same kind")));
    assessment.with_notes(notes).with_notes(changes.notes.clone())
}

fn check_item(
    item: &ClaimedFile,
    expected: ClaimedChange,
    index: &ChangeIndex<'_>,
    notes: &mut Vec<String>,
) -> Result<(), Mismatch> {
    let probe = &item.probe;
    let path = probe.path.as_path();
    let Some(change) = probe.change else {
        // The old path of a renamed file is among the changes, so this file did not change at all.
        return Err(match &probe.presence {
            Presence::Absent
                if probe.is_ignored
                    && matches!(expected, ClaimedChange::Deleted | ClaimedChange::Changed) =>
            {
                Mismatch::Ignored
            }
            Presence::Absent => Mismatch::Missing,
            Presence::Folder => Mismatch::Folder(index.count_below(path)),
            Presence::Outside(why) => Mismatch::Outside(why.clone()),
            Presence::File | Presence::Other => Mismatch::Unchanged,
        });
    };
    let different = |observed| Err(Mismatch::DifferentChange(expected.name(), observed));
    match (expected, change) {
        (ClaimedChange::Changed, _)
        | (ClaimedChange::Added, Change::Added)
        | (ClaimedChange::Modified, Change::Modified)
        | (ClaimedChange::Deleted, Change::Deleted) => Ok(()),
        // The file has the same content under a new name. Both "added" and "modified" are accepted.
        (ClaimedChange::Modified, Change::Added) if index.renamed_from(path).is_some() => Ok(()),
        (ClaimedChange::Renamed, _) => {
            let (was, is) = match (index.renamed_from(path), index.renamed_to(path)) {
                (Some(was), _) => (was, path),
                (None, Some(is)) => (path, is),
                (None, None) => return renamed_and_edited(item, change, index, notes),
            };
            match item.from.as_deref() {
                Some(from) if from != was && from != is => {
                    Err(Mismatch::DifferentOrigin(format::display_path(was)))
                }
                _ => Ok(()),
            }
        }
        (_, Change::Added) => different("added"),
        (_, Change::Modified) => different("modified"),
        (_, Change::Deleted) => different("deleted"),
    }
}

/// A file that was moved and edited appears as one deleted and one added file.
fn renamed_and_edited(
    item: &ClaimedFile,
    change: Change,
    index: &ChangeIndex<'_>,
    notes: &mut Vec<String>,
) -> Result<(), Mismatch> {
    let gone = item.from.as_deref().and_then(|from| index.get(from)).map(|(_, change)| change);
    match (change, gone, &item.from) {
        (Change::Added, Some(Change::Deleted), Some(from)) if item.is_unlike => {
            Err(Mismatch::DifferentContent(format::display_path(from)))
        }
        (Change::Added, Some(Change::Deleted), _) => {
            let name = format::display_text(&item.file.path);
            notes.push(format!(
                "{name} was also edited: it counts as added, and its old name as deleted"
            ));
            Ok(())
        }
        (Change::Added, ..) => Err(Mismatch::DifferentChange("renamed", "added")),
        (Change::Modified, ..) => Err(Mismatch::DifferentChange("renamed", "modified")),
        (Change::Deleted, ..) => Err(Mismatch::DifferentChange("renamed", "deleted")),
    }
}

/// The changes of the claimed kind that were not claimed.
fn unclaimed(
    expected: ClaimedChange,
    claimed_paths: &HashSet<&Path>,
    changes: &Changes,
    index: &ChangeIndex<'_>,
    state: &VerificationState,
) -> Vec<String> {
    if expected == ClaimedChange::Renamed {
        let pairs = changes.renamed.iter().filter(|(from, to)| {
            !claimed_paths.contains(from.as_path())
                && !claimed_paths.contains(to.as_path())
                && !state.is_noise(to)
        });
        return pairs
            .map(|(from, to)| {
                format!("{} -> {}", format::display_path(from), format::display_path(to))
            })
            .collect();
    }
    let wanted = |path: &Path, change: Change| match (expected, change) {
        (ClaimedChange::Modified, Change::Modified) => true,
        // A renamed file may be claimed by another field.
        (ClaimedChange::Added, Change::Added) => index.renamed_from(path).is_none(),
        (ClaimedChange::Deleted, Change::Deleted) => index.renamed_to(path).is_none(),
        // Claiming one of the two names is enough.
        (ClaimedChange::Changed, _) => {
            let other = index.renamed_from(path).or_else(|| index.renamed_to(path));
            other.is_none_or(|other| !claimed_paths.contains(other))
                // If neither name is claimed, only the new name is reported.
                && index.renamed_to(path).is_none()
        }
        _ => false,
    };
    state
        .claimable(changes)
        .filter(|(path, change)| !claimed_paths.contains(path) && wanted(path, *change))
        .map(|(path, _)| format::display_path(path))
        .collect()
}

fn difference(
    total: usize,
    expected: ClaimedChange,
    mut wrong: Vec<(Mismatch, String)>,
    unclaimed: &[String],
) -> String {
    // In the order of the kinds of mismatch.
    wrong.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut parts = Vec::new();
    let mut rest = wrong.as_slice();
    while let Some((mismatch, _)) = rest.first() {
        let same = rest.iter().take_while(|(other, _)| other == mismatch).count();
        let names: Vec<&str> = rest[..same].iter().map(|(_, name)| name.as_str()).collect();
        let names = join_limited(&names);
        let of = if parts.is_empty() && total > 1 { " of them" } else { "" };
        let was = if same == 1 { "was" } else { "were" };
        let is = if same == 1 { "is" } else { "are" };
        let is_folder = if same == 1 { "is a folder" } else { "are folders" };
        let file = if same == 1 { "a file" } else { "files" };
        parts.push(match mismatch {
            Mismatch::Unchanged => format!("{same}{of} did not change: {names}"),
            Mismatch::Missing if expected == ClaimedChange::Deleted => {
                format!("{same}{of} {was} not there before the step: {names}")
            }
            Mismatch::Missing if same == 1 => format!("{same}{of} does not exist: {names}"),
            Mismatch::Missing => format!("{same}{of} do not exist: {names}"),
            Mismatch::Ignored => {
                format!(
                    "{same}{of} {is} ignored by git, and it is unknown whether the file existed before: {names}"
                )
            }
            Mismatch::DifferentChange(claimed, observed) => {
                format!("{same}{of} {was} {observed}, not {claimed}: {names}")
            }
            Mismatch::DifferentOrigin(was) => format!("{same}{of} came from {was}: {names}"),
            Mismatch::DifferentContent(from) => {
                format!("{same}{of} {was} not renamed, {from} had a different content: {names}")
            }
            Mismatch::Folder(0) => format!("{same}{of} {is_folder}, not {file}: {names}"),
            Mismatch::Folder(changed) => {
                let changed = pluralize(*changed, "file");
                format!("{same}{of} {is_folder}, in which {changed} changed: {names}")
            }
            Mismatch::Outside(why) => format!("{same}{of} cannot have changed, {why}: {names}"),
        });
        rest = &rest[same..];
    }
    let mut text = String::new();
    if !parts.is_empty() {
        text = format!(
            "claimed {} {}, {}",
            pluralize(total, "file"),
            expected.name(),
            parts.join("; ")
        );
    }
    if !unclaimed.is_empty() {
        let names = join_limited(unclaimed);
        text = if text.is_empty() {
            let claimed = pluralize(total, "file");
            format!(
                "claimed {claimed} {}, {} more {} {}: {names}",
                expected.name(),
                unclaimed.len(),
                if unclaimed.len() == 1 { "was" } else { "were" },
                expected.name()
            )
        } else {
            format!(
                "{text}; {} not claimed: {names}",
                pluralize(unclaimed.len(), "changed file") + was(unclaimed.len())
            )
        };
    }
    text
}

fn was(count: usize) -> &'static str {
    if count == 1 { " was" } else { " were" }
}

fn observed_files(
    expected: ClaimedChange,
    changes: &Changes,
    index: &ChangeIndex<'_>,
    state: &VerificationState,
) -> Value {
    let word = |change: Change| match change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    };
    if expected == ClaimedChange::Renamed {
        let pairs = changes.renamed.iter().filter(|(_, to)| !state.is_noise(to));
        return format::json_list(pairs.map(|(from, to)| {
            format!("{} -> {}", format::display_path(from), format::display_path(to))
        }));
    }
    let wanted = match expected {
        ClaimedChange::Added => Some(Change::Added),
        ClaimedChange::Modified => Some(Change::Modified),
        ClaimedChange::Deleted => Some(Change::Deleted),
        ClaimedChange::Renamed | ClaimedChange::Changed => None,
    };
    format::json_list(state.claimable(changes).filter_map(|(path, change)| {
        let name = format::display_path(path);
        match wanted {
            Some(wanted) => (wanted == change).then_some(name),
            None if index.renamed_to(path).is_some() => None,
            None => Some(match index.renamed_from(path) {
                Some(from) => format!("{} -> {name}", format::display_path(from)),
                None => format!("{name} ({})", word(change)),
            }),
        }
    }))
}
