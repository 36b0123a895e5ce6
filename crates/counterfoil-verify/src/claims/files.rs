//! Files that a result says were changed, held against those that were.

use super::World;
use super::judged::Judged;
use super::look::{Presence, Sighting, sight};
use super::path::Index;
use super::read::{self, NamedFile, Told};
use super::scene::{Scene, index};
use super::shown::{self, few, number};
use counterfoil_contract::claim::{ClaimKind, ClaimMatch, EffectiveClaim, Evidence, Verdict};
use counterfoil_workspace::tree::{Change, Changes};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub(super) fn hold(
    held: &EffectiveClaim,
    value: &Value,
    scene: &Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let named = match read::files(&found) {
        Ok(named) => named,
        Err(why) => return Some(Judged::unverifiable(found_value(&found), why)),
    };
    let told = told(held.claim.kind);
    let claimed = unique(named, told);
    // At least these, or some of these: of none, that says nothing.
    if claimed.is_empty() && held.claim.matching != ClaimMatch::Exact {
        return None;
    }
    let changes = match &scene.changes {
        Ok(changes) => changes,
        Err(why) => {
            let shown = shown::list(claimed.iter().map(|file| in_words(file, told)));
            return Some(Judged::unverifiable(
                shown,
                format!("what changed cannot be told: {why}"),
            ));
        }
    };
    let index = index(changes);
    let texts: Vec<String> = claimed.iter().map(|file| file.path.clone()).collect();
    let sightings = sight(&texts, &scene.frame, &index, world.observer);
    let froms: Vec<String> = claimed.iter().filter_map(|file| file.from.clone()).collect();
    let mut from_sightings = sight(&froms, &scene.frame, &index, world.observer).into_iter();
    let items: Vec<Item> = claimed
        .into_iter()
        .zip(sightings)
        .map(|(file, sighting)| Item {
            from: file
                .from
                .is_some()
                .then(|| from_sightings.next().map(|from| from.path))
                .flatten(),
            file,
            sighting,
        })
        .collect();
    Some(judge(held.claim.kind, held.claim.matching, &items, changes, &index, scene))
}

fn found_value(found: &[read::Found<'_>]) -> Value {
    match found {
        [one] => one.value.clone(),
        many => shown::list(many.iter().map(|found| found.value.to_string())),
    }
}

fn told(kind: ClaimKind) -> Told {
    match kind {
        ClaimKind::FilesModified => Told::Modified,
        ClaimKind::FilesAdded => Told::Added,
        ClaimKind::FilesDeleted => Told::Deleted,
        ClaimKind::FilesRenamed => Told::Renamed,
        _ => Told::Changed,
    }
}

/// Each claim once; said twice is said once.
fn unique(named: Vec<NamedFile>, told: Told) -> Vec<NamedFile> {
    let mut seen = HashSet::with_capacity(named.len());
    let mut named = named;
    named.retain(|file| {
        seen.insert((file.path.clone(), file.told.unwrap_or(told), file.from.clone()))
    });
    named
}

/// A claimed file with what was found of it.
pub(super) struct Item {
    file: NamedFile,
    sighting: Sighting,
    /// Where it was, as the result says, found like any path.
    from: Option<PathBuf>,
}

fn in_words(file: &NamedFile, told: Told) -> String {
    let path = shown::plain(&file.path);
    match (&file.from, file.told) {
        (Some(from), _) => format!("{} -> {path}", shown::plain(from)),
        (None, Some(own)) if told == Told::Changed => format!("{path} ({})", own.name()),
        _ => path,
    }
}

/// How a claimed file differs from what was observed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Differs {
    /// It did not change.
    Unchanged,
    /// It is not there, and did not change.
    Missing,
    /// It is not there, and git would not have told of it before.
    Hidden,
    /// Another thing became of it.
    Otherwise(&'static str, &'static str),
    /// It was somewhere else before than the result says.
    FromElsewhere(String),
    /// It is a folder, in which so many files changed.
    Folder(usize),
    /// It was not looked at.
    Away(String),
}

/// The judgement. `scene` is only asked what nobody claims.
fn judge(
    kind: ClaimKind,
    matching: ClaimMatch,
    items: &[Item],
    changes: &Changes,
    index: &Index<'_>,
    scene: &Scene,
) -> Judged {
    let told = told(kind);
    let mut wrong: Vec<(Differs, String)> = Vec::new();
    let mut covered: HashSet<&Path> = HashSet::with_capacity(items.len());
    let mut notes: Vec<String> = Vec::new();
    for item in items {
        let name = shown::plain(&item.file.path);
        match agrees(item, item.file.told.unwrap_or(told), index, &mut notes) {
            Ok(()) => {}
            Err(differs) => wrong.push((differs, name.clone())),
        }
        covered.insert(&item.sighting.path);
        covered.extend(item.from.as_deref());
        notes.extend(item.sighting.notes.iter().map(|note| format!("{name} {note}")));
    }
    let agreeing = items.len() - wrong.len();
    let unclaimed: Vec<String> = match matching {
        ClaimMatch::Exact => unclaimed(told, &covered, changes, index, scene),
        ClaimMatch::Subset | ClaimMatch::BestEffort => Vec::new(),
    };
    let hidden = wrong.iter().filter(|(differs, _)| *differs == Differs::Hidden).count();
    let refuted = match matching {
        // What nobody claims may be the work of somebody else.
        ClaimMatch::Exact if scene.company.is_none() => {
            wrong.len() > hidden || !unclaimed.is_empty()
        }
        ClaimMatch::Exact | ClaimMatch::Subset => wrong.len() > hidden,
        ClaimMatch::BestEffort => agreeing == 0 && hidden == 0,
    };
    let untold = match matching {
        ClaimMatch::Exact | ClaimMatch::Subset => hidden > 0,
        ClaimMatch::BestEffort => hidden > 0 && agreeing == 0,
    };
    let difference = difference(items.len(), told, wrong, &unclaimed);
    let claimed = shown::list(items.iter().map(|item| in_words(&item.file, told)));
    let verdict = match (refuted, untold) {
        (true, _) => Verdict::Refuted,
        (false, true) => Verdict::Unverifiable,
        (false, false) => Verdict::Verified,
    };
    let mut judged = Judged::new(verdict, claimed, observed(told, changes, index, scene))
        .with(Evidence::new("diff", scene.summary(changes)));
    if verdict != Verdict::Verified {
        judged.reason = difference;
    } else if !difference.is_empty() {
        judged = judged.with_notes([difference]);
    }
    if let Some(company) = scene.company.as_ref().filter(|_| matching == ClaimMatch::Exact) {
        judged =
            judged.with_notes([format!("what was not claimed is not held against it: {company}")]);
    }
    let left = notes.len().saturating_sub(shown::MOST);
    notes.truncate(shown::MOST);
    notes.extend((left > 0).then(|| format!("… and {left} more of the same kind")));
    judged.with_notes(notes).with_notes(changes.notes.clone())
}

fn agrees(
    item: &Item,
    told: Told,
    index: &Index<'_>,
    notes: &mut Vec<String>,
) -> Result<(), Differs> {
    let sighting = &item.sighting;
    let path = sighting.path.as_path();
    let Some(change) = sighting.change else {
        // The old name of a file that was renamed stands among the changes, so this is one that
        // nothing became of.
        return Err(match &sighting.presence {
            Presence::Absent
                if sighting.is_hidden && matches!(told, Told::Deleted | Told::Changed) =>
            {
                Differs::Hidden
            }
            Presence::Absent => Differs::Missing,
            Presence::Folder => Differs::Folder(index.below(path)),
            Presence::Away(why) => Differs::Away(why.clone()),
            Presence::File | Presence::Other => Differs::Unchanged,
        });
    };
    let otherwise = |observed| Err(Differs::Otherwise(told.name(), observed));
    match (told, change) {
        (Told::Changed, _)
        | (Told::Added, Change::Added)
        | (Told::Modified, Change::Modified)
        | (Told::Deleted, Change::Deleted) => Ok(()),
        // The same bytes under a new name: whether that is a new file or an old one is a matter of
        // words.
        (Told::Modified, Change::Added) if index.came_from(path).is_some() => Ok(()),
        (Told::Renamed, _) => {
            let (was, is) = match (index.came_from(path), index.went_to(path)) {
                (Some(was), _) => (was, path),
                (None, Some(is)) => (path, is),
                (None, None) => return renamed_and_edited(item, change, index, notes),
            };
            match item.from.as_deref() {
                Some(from) if from != was && from != is => {
                    Err(Differs::FromElsewhere(shown::path(was)))
                }
                _ => Ok(()),
            }
        }
        (_, Change::Added) => otherwise("added"),
        (_, Change::Modified) => otherwise("modified"),
        (_, Change::Deleted) => otherwise("deleted"),
    }
}

/// A file that was moved and written to is seen as one deleted and one added.
fn renamed_and_edited(
    item: &Item,
    change: Change,
    index: &Index<'_>,
    notes: &mut Vec<String>,
) -> Result<(), Differs> {
    let gone = item.from.as_deref().and_then(|from| index.get(from)).map(|(_, change)| change);
    match (change, gone, &item.from) {
        (Change::Added, Some(Change::Deleted), _) => {
            let name = shown::plain(&item.file.path);
            notes.push(format!(
                "{name} was written to as well: it is seen as added, and its old name as deleted"
            ));
            Ok(())
        }
        (Change::Added, ..) => Err(Differs::Otherwise("renamed", "added")),
        (Change::Modified, ..) => Err(Differs::Otherwise("renamed", "modified")),
        (Change::Deleted, ..) => Err(Differs::Otherwise("renamed", "deleted")),
    }
}

/// What changed in the claimed way and was not claimed.
fn unclaimed(
    told: Told,
    covered: &HashSet<&Path>,
    changes: &Changes,
    index: &Index<'_>,
    scene: &Scene,
) -> Vec<String> {
    if told == Told::Renamed {
        let pairs = changes.renamed.iter().filter(|(from, to)| {
            !covered.contains(from.as_path())
                && !covered.contains(to.as_path())
                && !scene.is_noise(to)
        });
        return pairs
            .map(|(from, to)| format!("{} -> {}", shown::path(from), shown::path(to)))
            .collect();
    }
    let wanted = |path: &Path, change: Change| match (told, change) {
        (Told::Modified, Change::Modified) => true,
        // A renamed file may be claimed as such elsewhere.
        (Told::Added, Change::Added) => index.came_from(path).is_none(),
        (Told::Deleted, Change::Deleted) => index.went_to(path).is_none(),
        // One of its two names is enough.
        (Told::Changed, _) => {
            let other = index.came_from(path).or_else(|| index.went_to(path));
            other.is_none_or(|other| !covered.contains(other))
                // Of a pair that nobody names, the new name is missed.
                && index.went_to(path).is_none()
        }
        _ => false,
    };
    scene
        .claimable(changes)
        .filter(|(path, change)| !covered.contains(path) && wanted(path, *change))
        .map(|(path, _)| shown::path(path))
        .collect()
}

fn difference(
    total: usize,
    told: Told,
    mut wrong: Vec<(Differs, String)>,
    unclaimed: &[String],
) -> String {
    // In the order they are claimed.
    wrong.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut parts = Vec::new();
    let mut rest = wrong.as_slice();
    while let Some((differs, _)) = rest.first() {
        let same = rest.iter().take_while(|(other, _)| other == differs).count();
        let names: Vec<&str> = rest[..same].iter().map(|(_, name)| name.as_str()).collect();
        let names = few(&names);
        let of = if parts.is_empty() && total > 1 { " of them" } else { "" };
        let was = if same == 1 { "was" } else { "were" };
        let is = if same == 1 { "is" } else { "are" };
        parts.push(match differs {
            Differs::Unchanged => format!("{same}{of} did not change: {names}"),
            Differs::Missing if told == Told::Deleted => {
                format!("{same}{of} {was} not there before: {names}")
            }
            Differs::Missing if same == 1 => format!("{same}{of} does not exist: {names}"),
            Differs::Missing => format!("{same}{of} do not exist: {names}"),
            Differs::Hidden => {
                format!(
                    "{same}{of} {is} ignored by git, and nothing tells whether there was such a file: {names}"
                )
            }
            Differs::Otherwise(claimed, observed) => {
                format!("{same}{of} {was} {observed}, not {claimed}: {names}")
            }
            Differs::FromElsewhere(was) => format!("{same}{of} came from {was}: {names}"),
            Differs::Folder(0) => format!("{same}{of} {is} no file but a folder: {names}"),
            Differs::Folder(changed) => {
                let changed = number(*changed, "file");
                format!("{same}{of} {is} no file but a folder, in which {changed} changed: {names}")
            }
            Differs::Away(why) => format!("{same}{of} cannot have changed, {why}: {names}"),
        });
        rest = &rest[same..];
    }
    let mut text = String::new();
    if !parts.is_empty() {
        text = format!("claimed {} {}, {}", number(total, "file"), told.name(), parts.join("; "));
    }
    if !unclaimed.is_empty() {
        let names = few(unclaimed);
        text = if text.is_empty() {
            let claimed = number(total, "file");
            format!(
                "claimed {claimed} {}, {} more {} {}: {names}",
                told.name(),
                unclaimed.len(),
                if unclaimed.len() == 1 { "was" } else { "were" },
                told.name()
            )
        } else {
            format!(
                "{text}; {} not claimed: {names}",
                number(unclaimed.len(), "changed file") + was(unclaimed.len())
            )
        };
    }
    text
}

fn was(count: usize) -> &'static str {
    if count == 1 { " was" } else { " were" }
}

fn observed(told: Told, changes: &Changes, index: &Index<'_>, scene: &Scene) -> Value {
    let word = |change: Change| match change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    };
    if told == Told::Renamed {
        let pairs = changes.renamed.iter().filter(|(_, to)| !scene.is_noise(to));
        return shown::list(
            pairs.map(|(from, to)| format!("{} -> {}", shown::path(from), shown::path(to))),
        );
    }
    let wanted = match told {
        Told::Added => Some(Change::Added),
        Told::Modified => Some(Change::Modified),
        Told::Deleted => Some(Change::Deleted),
        Told::Renamed | Told::Changed => None,
    };
    shown::list(scene.claimable(changes).filter_map(|(path, change)| {
        let name = shown::path(path);
        match wanted {
            Some(wanted) => (wanted == change).then_some(name),
            None if index.went_to(path).is_some() => None,
            None => Some(match index.came_from(path) {
                Some(from) => format!("{} -> {name}", shown::path(from)),
                None => format!("{name} ({})", word(change)),
            }),
        }
    }))
}
