//! Verifies a file that a result delivers: it exists, it is not empty, and it satisfies its
//! contract.

use super::VerifyContext;
use super::assessment::ClaimAssessment;
use super::extract;
use super::format::{self, join_limited};
use super::path::ChangeIndex;
use super::probe::{self, Presence, probe_paths};
use super::state::VerificationState;
use crate::yaml;
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_contract::text::pluralize;
use counterfoil_contract::{Contract, Report};
use counterfoil_workspace::snapshot::Changes;
use serde_json::Value;
use std::path::Path;

pub(super) fn verify(
    effective: &EffectiveClaim,
    value: &Value,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let named = match extract::files(&found) {
        Ok(named) if named.is_empty() => return None,
        Ok(named) => named,
        Err(why) => {
            let claimed = found.first().map(|found| found.value.clone()).unwrap_or_default();
            return Some(ClaimAssessment::unverifiable(claimed, why.to_string()));
        }
    };
    let mut texts: Vec<String> = named.into_iter().map(|file| file.path).collect();
    let mut seen = std::collections::HashSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    let claimed = match texts.as_slice() {
        [one] => Value::String(format::display_text(one)),
        many => format::json_list(many.iter().map(|text| format::display_text(text))),
    };
    let contract = match &effective.claim.contract {
        None => None,
        Some(id) => match (context.contracts)(id) {
            Some(contract) => Some(contract),
            None => {
                let why = format!("there is no contract '{id}' to check it against");
                return Some(ClaimAssessment::unverifiable(claimed, why));
            }
        },
    };
    let nothing = Changes::default();
    let changes = state.changes.as_ref().unwrap_or(&nothing);
    let index = ChangeIndex::new(changes);
    let mut wrong = Vec::new();
    let mut observed = Vec::new();
    let mut evidence = Vec::new();
    for probe in probe_paths(&texts, &state.resolver, &index, context.view) {
        let name = format::display_text(&probe.text);
        let (presence, _) = match &probe.presence {
            Presence::Outside(why) => (Presence::Outside(why.clone()), None),
            _ => probe::presence(&state.resolver, &probe.path),
        };
        let (condition, hash) = match presence {
            Presence::File => describe_file(&probe.path, contract.as_deref(), state),
            Presence::Absent => (Err("does not exist".to_owned()), None),
            Presence::Folder => (Err("is a folder, not a file".to_owned()), None),
            Presence::Other => (Err("is not a regular file".to_owned()), None),
            Presence::Outside(why) => (Err(format!("was not read: {why}")), None),
        };
        match condition {
            Ok(condition) => {
                observed.push(format!("{name}: {condition}"));
                evidence.push(Evidence {
                    sha256: hash,
                    ..Evidence::new("file", format!("{name}: {condition}"))
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
        evidence
            .extend(probe.notes.iter().map(|note| Evidence::new("note", format!("{name} {note}"))));
    }
    let verdict = if wrong.is_empty() { Verdict::Verified } else { Verdict::Refuted };
    let reason = match (wrong.as_slice(), texts.len()) {
        ([], _) => String::new(),
        ([one], 1) => one.clone(),
        (many, total) => {
            format!(
                "{} of {} not as claimed: {}",
                many.len(),
                pluralize(total, "file"),
                join_limited(many)
            )
        }
    };
    evidence.truncate(format::MAX_ITEMS);
    let mut assessment =
        ClaimAssessment::new(verdict, claimed, format::json_list(observed)).with_reason(reason);
    assessment.evidence = evidence;
    Some(assessment)
}

/// A description of a file or what is wrong with it, and its hash.
fn describe_file(
    path: &Path,
    contract: Option<&Contract>,
    state: &VerificationState,
) -> (Result<String, String>, Option<String>) {
    let seen = match probe::read(&state.resolver, path) {
        Ok(seen) => seen,
        Err(why) => return (Err(format!("cannot be read: {why}")), None),
    };
    let hash = Some(seen.sha256);
    if seen.bytes.trim_ascii().is_empty() {
        return (Err("is empty".to_owned()), hash);
    }
    let size = pluralize(seen.bytes.len(), "byte");
    let Some(contract) = contract else { return (Ok(size), hash) };
    let reference = contract.reference();
    let report = if yaml::is_yaml(path) {
        match yaml::read(&seen.bytes) {
            Ok(value) => contract.check_value(&value),
            Err(why) => return (Err(format!("is not valid YAML: {why}")), hash),
        }
    } else {
        contract.check_bytes(&seen.bytes)
    };
    if report.is_accepted() {
        (Ok(format!("{size}, satisfies {reference}")), hash)
    } else {
        (Err(format!("does not satisfy {reference}: {}", first_violation(&report))), hash)
    }
}

fn first_violation(report: &Report) -> String {
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
