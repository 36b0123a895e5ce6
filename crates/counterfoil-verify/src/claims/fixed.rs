//! Verifies findings that a result reports as fixed: the file of each finding changed, or, where the
//! finding names further files (`also`), one of these or a new one. A requested finding without a
//! file is left out: the workflow says that no file shows whether it is fixed.

use super::VerifyContext;
use super::assessment::ClaimAssessment;
use super::extract::{self, ClaimedFix};
use super::format::{self, join_limited};
use super::path::ChangeIndex;
use super::probe::probe_paths;
use super::state::VerificationState;
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_contract::text::pluralize;
use counterfoil_workspace::snapshot::{Change, Changes};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

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
    let files = effective.findings.as_ref().map(requested_findings);
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
    let (left_out, traced): (Vec<TracedFix>, Vec<TracedFix>) =
        fixes.into_iter().map(|fix| trace(fix, files.as_ref())).partition(TracedFix::is_left_out);
    if traced.is_empty() {
        return None;
    }
    let texts: Vec<String> = traced.iter().filter_map(|traced| traced.file.clone()).collect();
    let mut probes = probe_paths(&texts, &state.resolver, &index, context.view).into_iter();
    let assessment: Vec<(TracedFix, Option<Touched>)> = traced
        .into_iter()
        .map(|traced| {
            let probe = traced.file.is_some().then(|| probes.next()).flatten();
            let touched = probe.map(|probe| match probe.change {
                Some(_) => Touched::Itself,
                None => elsewhere(&traced.also, changes, state),
            });
            (traced, touched)
        })
        .collect();
    let mut assessment = assess(&assessment);
    assessment.claimed = claimed;
    Some(
        assessment
            .with_evidence(Evidence::new("diff", state.summary(changes)))
            .with_notes(
                left_out
                    .iter()
                    .map(|fix| format!("{}: no file shows whether it is fixed", fix.name)),
            )
            .with_notes(changes.notes.clone()),
    )
}

/// What the step changed for a finding.
enum Touched {
    /// The file of the finding.
    Itself,
    /// Another file that counts for it.
    Elsewhere(String),
    Nothing,
}

/// The first changed file that counts for a finding in another one: one of `also`, or a new one.
fn elsewhere(also: &[String], changes: &Changes, state: &VerificationState) -> Touched {
    let counts = |path: &Path, change: Change| {
        !also.is_empty()
            && !state.is_noise(path)
            && (change == Change::Added || also.iter().any(|one| Path::new(one) == path))
    };
    let found = changes.files.iter().find(|(path, change)| counts(path, **change));
    found.map_or(Touched::Nothing, |(path, _)| Touched::Elsewhere(path.display().to_string()))
}

/// A requested finding: its file, and further files whose change counts for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Requested {
    file: Option<String>,
    also: Vec<String>,
}

/// A claimed fix and the file that it must have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TracedFix {
    name: String,
    file: Option<String>,
    also: Vec<String>,
    /// Whether the requested findings are known, and this is one of them.
    is_requested: bool,
    /// Whether the requested findings are known, and this is none of them.
    is_unknown: bool,
}

impl TracedFix {
    /// Whether it was requested without a file, and the result names none.
    fn is_left_out(&self) -> bool {
        self.is_requested && self.file.is_none()
    }
}

fn fix_name(fix: &ClaimedFix) -> String {
    format::display_text(
        fix.id.as_deref().or(fix.file.as_deref()).unwrap_or("a finding without an id"),
    )
}

/// The requested findings, by id.
fn requested_findings(findings: &Value) -> HashMap<String, Requested> {
    let items = findings.as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = |finding: &Value| {
        let object = finding.as_object()?;
        let also = object.get("also").and_then(Value::as_array).into_iter().flatten();
        let requested = Requested {
            file: extract::file_in_object(object).map(str::to_owned),
            also: also.filter_map(Value::as_str).map(str::to_owned).collect(),
        };
        Some((extract::id_text(object.get("id")?)?, requested))
    };
    items.iter().filter_map(pair).collect()
}

fn trace(fix: ClaimedFix, requested: Option<&HashMap<String, Requested>>) -> TracedFix {
    let name = fix_name(&fix);
    let known = fix.id.as_ref().and_then(|id| requested?.get(id));
    let is_unknown = requested.is_some() && known.is_none();
    let is_requested = known.is_some();
    let Requested { file, also } = known.cloned().unwrap_or_default();
    TracedFix { name, is_requested, is_unknown, file: file.or(fix.file), also }
}

fn assess(fixes: &[(TracedFix, Option<Touched>)]) -> ClaimAssessment {
    let (mut untouched, mut unknown, mut unknown_file) = (Vec::new(), Vec::new(), Vec::new());
    let mut touched = Vec::new();
    for (fix, was_touched) in fixes {
        let file = fix.file.as_deref().map(format::display_text).unwrap_or_default();
        match was_touched {
            _ if fix.is_unknown => unknown.push(fix.name.clone()),
            Some(Touched::Itself) => touched.push(format!("{} in {file}: changed", fix.name)),
            Some(Touched::Elsewhere(other)) => {
                let other = format::display_text(other);
                touched.push(format!("{} in {file}: {other} changed", fix.name));
            }
            Some(Touched::Nothing) => untouched.push(format!("{} in {file}", fix.name)),
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
    let observed = format::json_list(touched);
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
