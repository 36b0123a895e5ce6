//! Verifies findings that a result reports as fixed: the file of each finding changed.

use super::VerifyContext;
use super::assessment::ClaimAssessment;
use super::extract::{self, ClaimedFix};
use super::format::{self, join_limited, pluralize};
use super::path::ChangeIndex;
use super::probe::probe_paths;
use super::state::VerificationState;
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use serde_json::Value;
use std::collections::HashMap;

pub(super) fn verify(
    effective: &EffectiveClaim,
    value: &Value,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let fixes = extract::fixes(&found);
    if fixes.is_empty() {
        return None;
    }
    let files = effective.findings.as_ref().map(files_by_finding);
    let claimed = format::json_list(fixes.iter().map(fix_name));
    let changes = match &state.changes {
        Ok(changes) => changes,
        Err(why) => {
            return Some(ClaimAssessment::unverifiable(
                claimed,
                format!("the changes cannot be determined: {why}"),
            ));
        }
    };
    let index = ChangeIndex::new(changes);
    let traced: Vec<TracedFix> = fixes.into_iter().map(|fix| trace(fix, files.as_ref())).collect();
    let texts: Vec<String> = traced.iter().filter_map(|traced| traced.file.clone()).collect();
    let mut probes = probe_paths(&texts, &state.resolver, &index, context.view).into_iter();
    let assessment: Vec<(TracedFix, Option<bool>)> = traced
        .into_iter()
        .map(|traced| {
            let probe = traced.file.is_some().then(|| probes.next()).flatten();
            let touched = probe.map(|probe| probe.change.is_some());
            (traced, touched)
        })
        .collect();
    let mut assessment = assess(&assessment);
    assessment.claimed = claimed;
    Some(
        assessment
            .with_evidence(Evidence::new("diff", state.summary(changes)))
            .with_notes(changes.notes.clone()),
    )
}

/// A claimed fix and the file that it must have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TracedFix {
    name: String,
    file: Option<String>,
    /// Whether the requested findings are known, and this is none of them.
    is_unknown: bool,
}

fn fix_name(fix: &ClaimedFix) -> String {
    format::display_text(
        fix.id.as_deref().or(fix.file.as_deref()).unwrap_or("a finding without an id"),
    )
}

/// The files of the requested findings, by id.
fn files_by_finding(findings: &Value) -> HashMap<String, Option<String>> {
    let items = findings.as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = |finding: &Value| {
        let object = finding.as_object()?;
        Some((
            extract::id_text(object.get("id")?)?,
            extract::file_in_object(object).map(str::to_owned),
        ))
    };
    items.iter().filter_map(pair).collect()
}

fn trace(fix: ClaimedFix, files: Option<&HashMap<String, Option<String>>>) -> TracedFix {
    let name = fix_name(&fix);
    let known = fix.id.as_ref().and_then(|id| files?.get(id));
    let file = known.cloned().flatten().or(fix.file);
    TracedFix { name, is_unknown: files.is_some() && known.is_none(), file }
}

fn assess(fixes: &[(TracedFix, Option<bool>)]) -> ClaimAssessment {
    let (mut untouched, mut unknown, mut unknown_file) = (Vec::new(), Vec::new(), Vec::new());
    let mut touched = Vec::new();
    for (fix, was_touched) in fixes {
        let file = fix.file.as_deref().map(format::display_text).unwrap_or_default();
        match was_touched {
            _ if fix.is_unknown => unknown.push(fix.name.clone()),
            Some(true) => touched.push(format!("{} in {file}", fix.name)),
            Some(false) => untouched.push(format!("{} in {file}", fix.name)),
            None => unknown_file.push(fix.name.clone()),
        }
    }
    let total = pluralize(fixes.len(), "finding");
    let mut reasons = Vec::new();
    if !untouched.is_empty() {
        let their = if untouched.len() == 1 { "its file" } else { "their files" };
        reasons.push(format!(
            "for {} {their} did not change: {}",
            untouched.len(),
            join_limited(&untouched)
        ));
    }
    if !unknown.is_empty() {
        let were = if unknown.len() == 1 { "was" } else { "were" };
        reasons.push(format!(
            "{} {were} not among the requested findings: {}",
            unknown.len(),
            join_limited(&unknown)
        ));
    }
    let observed = format::json_list(touched.iter().map(|fix| format!("{fix}: changed")));
    if !reasons.is_empty() {
        let reason = format!("claimed {total} fixed, {}", reasons.join("; "));
        return ClaimAssessment::new(Verdict::Refuted, Value::Null, observed).with_reason(reason);
    }
    if !unknown_file.is_empty() {
        let reason = format!(
            "the file of {} is unknown; give the step's claim the requested findings (`findings:`)",
            join_limited(&unknown_file)
        );
        return ClaimAssessment::new(Verdict::Unverifiable, Value::Null, observed)
            .with_reason(reason);
    }
    ClaimAssessment::new(Verdict::Verified, Value::Null, observed)
}
