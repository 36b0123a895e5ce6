//! Verifies that the locations that a result names exist: the file and the line.

use super::assessment::ClaimAssessment;
use super::extract;
use super::format::{self, join_limited};
use super::parse_location::{Lines, NamedLocation, locations};
use super::path::{ChangeIndex, ResolvedPath};
use super::probe::{self, Presence};
use super::state::VerificationState;
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_contract::text::pluralize;
use counterfoil_workspace::snapshot::{Change, Changes};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

pub(super) fn verify(
    effective: &EffectiveClaim,
    value: &Value,
    state: &VerificationState,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let locations = match locations(&found) {
        Ok(locations) if locations.is_empty() => return None,
        Ok(locations) => locations,
        Err(why) => {
            let claimed = found.first().map(|found| found.value.clone()).unwrap_or_default();
            return Some(ClaimAssessment::unverifiable(claimed, why.to_string()));
        }
    };
    let nothing = Changes::default();
    let index = ChangeIndex::new(state.changes.as_ref().unwrap_or(&nothing));
    let mut files: HashMap<String, FileLines> = HashMap::new();
    let seen: Vec<(NamedLocation, FileLines)> = locations
        .into_iter()
        .map(|location| {
            let seen = files
                .entry(location.file.clone())
                .or_insert_with(|| count_lines(&location.file, state, &index))
                .clone();
            // The whole text may be a file name: a file may be called `notes:12`.
            let whole = (location.text != location.file && matches!(seen, FileLines::Missing(_)))
                .then(|| {
                    files
                        .entry(location.text.clone())
                        .or_insert_with(|| count_lines(&location.text, state, &index))
                        .clone()
                });
            match whole {
                Some(whole @ FileLines::Counted(..)) => {
                    (NamedLocation { lines: None, ..location }, whole)
                }
                _ => (location, seen),
            }
        })
        .collect();
    Some(assess(&seen))
}

/// The lines of a file, as far as they could be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FileLines {
    /// The file has this many lines. The note says how its path was interpreted.
    Counted(u64, Option<String>),
    /// The file exists, and its lines could not be counted for this reason.
    Uncounted(String),
    /// The file does not exist or is not a regular file, for this reason.
    Missing(String),
}

fn count_lines(file: &str, state: &VerificationState, index: &ChangeIndex<'_>) -> FileLines {
    let (path, note) = match state.resolver.resolve(file) {
        ResolvedPath::Inside(path, note) => (path, note),
        ResolvedPath::Outside(why) => return FileLines::Missing(why),
    };
    let mut candidates: Vec<(PathBuf, Option<String>)> = vec![(path, note)];
    candidates.extend(
        state
            .resolver
            .resolve_from_top(file)
            .map(|path| (path, Some("is relative to the top of the repository".to_owned()))),
    );
    if file.contains('\\')
        && let ResolvedPath::Inside(path, _) = state.resolver.resolve(&file.replace('\\', "/"))
    {
        candidates.push((path, Some("is written with backslashes".to_owned())));
    }
    for (path, note) in &candidates {
        match probe::presence(&state.resolver, path).0 {
            Presence::Absent => {}
            Presence::File => {
                return match probe::count_lines(&state.resolver, path) {
                    Ok(lines) => FileLines::Counted(lines, note.clone()),
                    Err(why) => FileLines::Uncounted(why),
                };
            }
            Presence::Folder => return FileLines::Missing("it is a folder, not a file".to_owned()),
            Presence::Other => return FileLines::Missing("it is not a regular file".to_owned()),
            Presence::Outside(why) => return FileLines::Missing(why),
        }
    }
    match candidates.iter().find_map(|(path, _)| index.get(path)) {
        Some((_, Change::Deleted)) => FileLines::Missing("the step deleted the file".to_owned()),
        _ => FileLines::Missing("there is no such file".to_owned()),
    }
}

fn assess(seen: &[(NamedLocation, FileLines)]) -> ClaimAssessment {
    let mut wrong = Vec::new();
    let mut notes = Vec::new();
    for (location, seen) in seen {
        let name = format::display_text(&location.text);
        let why = match (seen, &location.lines) {
            (FileLines::Missing(why), _) => Some(why.clone()),
            (FileLines::Uncounted(why), _) => {
                notes.push(format!("the lines of {name} were not counted: {why}"));
                None
            }
            (FileLines::Counted(..), Some(Lines::Bad(text))) => {
                Some(format!("{} is not a line number", format::display_text(text)))
            }
            (FileLines::Counted(lines, _), Some(Lines::Range(first, last))) => {
                range_error(*first, *last, *lines)
            }
            (FileLines::Counted(..), None) => None,
        };
        wrong.extend(why.map(|why| format!("{name} ({why})")));
        if let FileLines::Counted(_, Some(note)) = seen {
            notes.push(format!("{name} {note}"));
        }
    }
    let claimed =
        format::json_list(seen.iter().map(|(location, _)| format::display_text(&location.text)));
    let existing = seen.len() - wrong.len();
    let observed =
        Value::String(format!("{existing} of {} found", pluralize(seen.len(), "location")));
    let verdict = if wrong.is_empty() { Verdict::Verified } else { Verdict::Refuted };
    let do_not = if wrong.len() == 1 { "does not" } else { "do not" };
    let reason = match wrong.len() {
        0 => String::new(),
        count => {
            format!(
                "{count} of {} {do_not} exist: {}",
                pluralize(seen.len(), "location"),
                join_limited(&wrong)
            )
        }
    };
    notes.dedup();
    notes.truncate(format::MAX_ITEMS);
    ClaimAssessment::new(verdict, claimed, observed)
        .with_reason(reason)
        .with_evidence(Evidence::new(
            "file",
            format!("{existing} of {} found in the workspace", pluralize(seen.len(), "location")),
        ))
        .with_notes(notes)
}

/// Why a range of lines is not valid in a file with this many lines.
fn range_error(first: u64, last: u64, lines: u64) -> Option<String> {
    if first == 0 {
        Some("lines count from 1".to_owned())
    } else if last < first {
        Some(format!("{first}-{last} is not a range"))
    } else if last > lines {
        let count = usize::try_from(lines).unwrap_or(usize::MAX);
        Some(format!("the file has {}", pluralize(count, "line")))
    } else {
        None
    }
}
