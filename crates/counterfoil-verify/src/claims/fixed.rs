//! Findings that a result says are fixed: the file of each was touched.

use super::World;
use super::judged::Judged;
use super::look::sight;
use super::read::{self, NamedFix};
use super::scene::{Scene, index};
use super::shown::{self, few, number};
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use serde_json::Value;
use std::collections::HashMap;

pub(super) fn hold(
    held: &EffectiveClaim,
    value: &Value,
    scene: &Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let fixes = read::fixes(&found);
    if fixes.is_empty() {
        return None;
    }
    let files = held.findings.as_ref().map(files_of);
    let claimed = shown::list(fixes.iter().map(name));
    let changes = match &scene.changes {
        Ok(changes) => changes,
        Err(why) => {
            return Some(Judged::unverifiable(
                claimed,
                format!("what changed cannot be told: {why}"),
            ));
        }
    };
    let index = index(changes);
    let traced: Vec<Traced> = fixes.into_iter().map(|fix| trace(fix, files.as_ref())).collect();
    let texts: Vec<String> = traced.iter().filter_map(|traced| traced.file.clone()).collect();
    let mut sightings = sight(&texts, &scene.frame, &index, world.observer).into_iter();
    let judged: Vec<(Traced, Option<bool>)> = traced
        .into_iter()
        .map(|traced| {
            let sighting = traced.file.is_some().then(|| sightings.next()).flatten();
            let touched = sighting.map(|sighting| sighting.change.is_some());
            (traced, touched)
        })
        .collect();
    let mut judged = judge(&judged);
    judged.claimed = claimed;
    Some(
        judged
            .with(Evidence::new("diff", scene.summary(changes)))
            .with_notes(changes.notes.clone()),
    )
}

/// A fix with the file it must have touched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Traced {
    name: String,
    file: Option<String>,
    /// Whether what was to be fixed is known, and this is none of it.
    is_unknown: bool,
}

fn name(fix: &NamedFix) -> String {
    shown::plain(fix.id.as_deref().or(fix.file.as_deref()).unwrap_or("a finding without an id"))
}

/// The files of findings, by id.
fn files_of(findings: &Value) -> HashMap<String, Option<String>> {
    let items = findings.as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = |finding: &Value| {
        let object = finding.as_object()?;
        Some((read::id_text(object.get("id")?)?, read::file_of(object).map(str::to_owned)))
    };
    items.iter().filter_map(pair).collect()
}

fn trace(fix: NamedFix, files: Option<&HashMap<String, Option<String>>>) -> Traced {
    let name = name(&fix);
    let known = fix.id.as_ref().and_then(|id| files?.get(id));
    let file = known.cloned().flatten().or(fix.file);
    Traced { name, is_unknown: files.is_some() && known.is_none(), file }
}

fn judge(fixes: &[(Traced, Option<bool>)]) -> Judged {
    let (mut untouched, mut unknown, mut untold) = (Vec::new(), Vec::new(), Vec::new());
    let mut touched = Vec::new();
    for (fix, was_touched) in fixes {
        let file = fix.file.as_deref().map(shown::plain).unwrap_or_default();
        match was_touched {
            _ if fix.is_unknown => unknown.push(fix.name.clone()),
            Some(true) => touched.push(format!("{} in {file}", fix.name)),
            Some(false) => untouched.push(format!("{} in {file}", fix.name)),
            None => untold.push(fix.name.clone()),
        }
    }
    let total = number(fixes.len(), "finding");
    let mut reasons = Vec::new();
    if !untouched.is_empty() {
        let their = if untouched.len() == 1 { "its file" } else { "their files" };
        reasons.push(format!(
            "for {} {their} did not change: {}",
            untouched.len(),
            few(&untouched)
        ));
    }
    if !unknown.is_empty() {
        let were = if unknown.len() == 1 { "was" } else { "were" };
        reasons.push(format!("{} {were} not among those to fix: {}", unknown.len(), few(&unknown)));
    }
    let observed = shown::list(touched.iter().map(|fix| format!("{fix}: changed")));
    if !reasons.is_empty() {
        let reason = format!("claimed {total} fixed, {}", reasons.join("; "));
        return Judged::new(Verdict::Refuted, Value::Null, observed).because(reason);
    }
    if !untold.is_empty() {
        let reason = format!(
            "nothing says which file {} in; give the step's claim the findings it was asked to fix (`findings:`)",
            if untold.len() == 1 {
                format!("{} is", untold[0])
            } else {
                format!("{} are", few(&untold))
            }
        );
        return Judged::new(Verdict::Unverifiable, Value::Null, observed).because(reason);
    }
    Judged::new(Verdict::Verified, Value::Null, observed)
}
