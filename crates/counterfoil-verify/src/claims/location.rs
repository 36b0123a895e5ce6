//! Places in files that a result names: the file is there, and so is the line.

use super::judged::Judged;
use super::look::{self, Presence};
use super::path::{Index, Meant};
use super::places::{Lines, NamedPlace, places};
use super::read;
use super::scene::Scene;
use super::shown::{self, few, number};
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_workspace::tree::{Change, Changes};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

pub(super) fn hold(held: &EffectiveClaim, value: &Value, scene: &Scene) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let places = match places(&found) {
        Ok(places) if places.is_empty() => return None,
        Ok(places) => places,
        Err(why) => {
            let claimed = found.first().map(|found| found.value.clone()).unwrap_or_default();
            return Some(Judged::unverifiable(claimed, why));
        }
    };
    let nothing = Changes::default();
    let index = Index::new(scene.changes.as_ref().unwrap_or(&nothing));
    let mut files: HashMap<String, Seen> = HashMap::new();
    let seen: Vec<(NamedPlace, Seen)> = places
        .into_iter()
        .map(|place| {
            let seen = files
                .entry(place.file.clone())
                .or_insert_with(|| look_at(&place.file, scene, &index))
                .clone();
            // The text may be a name as a whole: a file may be called `notes:12`.
            let whole = (place.text != place.file && matches!(seen, Seen::Not(_))).then(|| {
                files
                    .entry(place.text.clone())
                    .or_insert_with(|| look_at(&place.text, scene, &index))
                    .clone()
            });
            match whole {
                Some(whole @ Seen::Lines(..)) => (NamedPlace { lines: None, ..place }, whole),
                _ => (place, seen),
            }
        })
        .collect();
    Some(judge(&seen))
}

/// What was found of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// It has so many lines; and how its path was understood.
    Lines(u64, Option<String>),
    /// It is there, and its lines cannot be counted, because of this.
    Uncounted(String),
    /// It is not there, or no file.
    Not(String),
}

fn look_at(file: &str, scene: &Scene, index: &Index<'_>) -> Seen {
    let (path, note) = match scene.frame.meant(file) {
        Meant::Inside(path, note) => (path, note),
        Meant::Outside(why) => return Seen::Not(why),
    };
    let mut tries: Vec<(PathBuf, Option<String>)> = vec![(path, note)];
    tries.extend(
        scene
            .frame
            .meant_from_top(file)
            .map(|path| (path, Some("counts from the repository's top".to_owned()))),
    );
    if file.contains('\\')
        && let Meant::Inside(path, _) = scene.frame.meant(&file.replace('\\', "/"))
    {
        tries.push((path, Some("is written with backslashes".to_owned())));
    }
    for (path, note) in &tries {
        match look::presence(&scene.frame, path).0 {
            Presence::Absent => {}
            Presence::File => {
                return match look::lines(&scene.frame, path) {
                    Ok(lines) => Seen::Lines(lines, note.clone()),
                    Err(why) => Seen::Uncounted(why),
                };
            }
            Presence::Folder => return Seen::Not("it is no file but a folder".to_owned()),
            Presence::Other => return Seen::Not("it is no plain file".to_owned()),
            Presence::Away(why) => return Seen::Not(why),
        }
    }
    match tries.iter().find_map(|(path, _)| index.get(path)) {
        Some((_, Change::Deleted)) => Seen::Not("the step deleted the file".to_owned()),
        _ => Seen::Not("there is no such file".to_owned()),
    }
}

fn judge(seen: &[(NamedPlace, Seen)]) -> Judged {
    let mut wrong = Vec::new();
    let mut notes = Vec::new();
    for (place, seen) in seen {
        let name = shown::plain(&place.text);
        let why = match (seen, &place.lines) {
            (Seen::Not(why), _) => Some(why.clone()),
            (Seen::Uncounted(why), _) => {
                notes.push(format!("the lines of {name} were not counted: {why}"));
                None
            }
            (Seen::Lines(..), Some(Lines::Bad(text))) => {
                Some(format!("{} is no line", shown::plain(text)))
            }
            (Seen::Lines(lines, _), Some(Lines::Range(first, last))) => {
                outside(*first, *last, *lines)
            }
            (Seen::Lines(..), None) => None,
        };
        wrong.extend(why.map(|why| format!("{name} ({why})")));
        if let Seen::Lines(_, Some(note)) = seen {
            notes.push(format!("{name} {note}"));
        }
    }
    let claimed = shown::list(seen.iter().map(|(place, _)| shown::plain(&place.text)));
    let there = seen.len() - wrong.len();
    let observed = Value::String(format!("{there} of {} there", number(seen.len(), "place")));
    let verdict = if wrong.is_empty() { Verdict::Verified } else { Verdict::Refuted };
    let are = if wrong.len() == 1 { "is" } else { "are" };
    let reason = match wrong.len() {
        0 => String::new(),
        count => {
            format!("{count} of {} {are} not there: {}", number(seen.len(), "place"), few(&wrong))
        }
    };
    notes.dedup();
    notes.truncate(shown::MOST);
    Judged::new(verdict, claimed, observed)
        .because(reason)
        .with(Evidence::new(
            "file",
            format!("{there} of {} found in the workspace", number(seen.len(), "place")),
        ))
        .with_notes(notes)
}

/// Why lines are not lines of a file of so many.
fn outside(first: u64, last: u64, lines: u64) -> Option<String> {
    if first == 0 {
        Some("lines count from 1".to_owned())
    } else if last < first {
        Some(format!("{first}-{last} is no range"))
    } else if last > lines {
        let count = usize::try_from(lines).unwrap_or(usize::MAX);
        Some(format!("the file has {}", number(count, "line")))
    } else {
        None
    }
}
