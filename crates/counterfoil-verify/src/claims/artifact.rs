//! A file that a result hands over: it is there, it holds something, and it is what its contract
//! says.

use super::World;
use super::judged::Judged;
use super::look::{self, Presence, sight};
use super::path::Index;
use super::read;
use super::scene::Scene;
use super::shown::{self, few, number};
use crate::yaml;
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_contract::{Contract, Report};
use counterfoil_workspace::tree::Changes;
use serde_json::Value;
use std::path::Path;

pub(super) fn hold(
    held: &EffectiveClaim,
    value: &Value,
    scene: &Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let named = match read::files(&found) {
        Ok(named) if named.is_empty() => return None,
        Ok(named) => named,
        Err(why) => {
            let claimed = found.first().map(|found| found.value.clone()).unwrap_or_default();
            return Some(Judged::unverifiable(claimed, why));
        }
    };
    let mut texts: Vec<String> = named.into_iter().map(|file| file.path).collect();
    let mut seen = std::collections::HashSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    let claimed = match texts.as_slice() {
        [one] => Value::String(shown::plain(one)),
        many => shown::list(many.iter().map(|text| shown::plain(text))),
    };
    let contract = match &held.claim.contract {
        None => None,
        Some(id) => match (world.contracts)(id) {
            Some(contract) => Some(contract),
            None => {
                let why = format!("there is no contract '{id}' to hold it to");
                return Some(Judged::unverifiable(claimed, why));
            }
        },
    };
    let nothing = Changes::default();
    let changes = scene.changes.as_ref().unwrap_or(&nothing);
    let index = Index::new(changes);
    let mut wrong = Vec::new();
    let mut observed = Vec::new();
    let mut evidence = Vec::new();
    for sighting in sight(&texts, &scene.frame, &index, world.observer) {
        let name = shown::plain(&sighting.text);
        let (presence, _) = match &sighting.presence {
            Presence::Away(why) => (Presence::Away(why.clone()), None),
            _ => look::presence(&scene.frame, &sighting.path),
        };
        let (state, hash) = match presence {
            Presence::File => examine(&sighting.path, contract.as_deref(), scene),
            Presence::Absent => (Err("does not exist".to_owned()), None),
            Presence::Folder => (Err("is no file but a folder".to_owned()), None),
            Presence::Other => (Err("is no plain file".to_owned()), None),
            Presence::Away(why) => (Err(format!("is not read, {why}")), None),
        };
        match state {
            Ok(state) => {
                observed.push(format!("{name}: {state}"));
                evidence.push(Evidence {
                    sha256: hash,
                    ..Evidence::new("file", format!("{name}: {state}"))
                });
            }
            Err(why) => {
                observed.push(format!("{name} {why}"));
                evidence.push(Evidence {
                    sha256: hash,
                    ..Evidence::new("file", format!("{name} {why}"))
                });
                wrong.push(format!("{name} {why}"));
            }
        }
        evidence.extend(
            sighting.notes.iter().map(|note| Evidence::new("note", format!("{name} {note}"))),
        );
    }
    let verdict = if wrong.is_empty() { Verdict::Verified } else { Verdict::Refuted };
    let reason = match (wrong.as_slice(), texts.len()) {
        ([], _) => String::new(),
        ([one], 1) => one.clone(),
        (many, total) => {
            format!("{} of {} not as claimed: {}", many.len(), number(total, "file"), few(many))
        }
    };
    evidence.truncate(shown::MOST);
    let mut judged = Judged::new(verdict, claimed, shown::list(observed)).because(reason);
    judged.evidence = evidence;
    Some(judged)
}

/// What a file is, or what is wrong with it; and its hash.
fn examine(
    path: &Path,
    contract: Option<&Contract>,
    scene: &Scene,
) -> (Result<String, String>, Option<String>) {
    let seen = match look::read(&scene.frame, path) {
        Ok(seen) => seen,
        Err(why) => return (Err(format!("cannot be read: {why}")), None),
    };
    let hash = Some(seen.sha256);
    if seen.bytes.trim_ascii().is_empty() {
        return (Err("is empty".to_owned()), hash);
    }
    let size = number(seen.bytes.len(), "byte");
    let Some(contract) = contract else { return (Ok(size), hash) };
    let reference = contract.reference();
    let report = if yaml::is_yaml(path) {
        match yaml::read(&seen.bytes) {
            Ok(value) => contract.check_value(&value),
            Err(why) => return (Err(format!("is no YAML: {why}")), hash),
        }
    } else {
        contract.check_bytes(&seen.bytes)
    };
    if report.is_accepted() {
        (Ok(format!("{size}, satisfies {reference}")), hash)
    } else {
        (Err(format!("does not satisfy {reference}: {}", first(&report))), hash)
    }
}

fn first(report: &Report) -> String {
    let more = match report.violations.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many - 1),
    };
    let Some(violation) = report.violations.first() else {
        return "no result was found in it".to_owned();
    };
    let place = match (violation.span, violation.pointer.as_str()) {
        (Some(span), _) => format!("line {}: ", span.line),
        (None, "") => String::new(),
        (None, pointer) => format!("{pointer}: "),
    };
    format!("{place}{}{more}", violation.message)
}
