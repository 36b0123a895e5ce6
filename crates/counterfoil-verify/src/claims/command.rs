//! Verifies that a command succeeds or fails as a result claims, by running it.

use super::allow::{self, Permission};
use super::assessment::ClaimAssessment;
use super::check::{CheckOutcome, CheckStatus, idle_text, run};
use super::claimed_counts::{ClaimedCounts, ClaimedNumber, contradiction};
use super::extract::{self, CommandClaim, ExtractError, FieldCommand, FieldValue};
use super::format::{self, join_limited};
use super::state::VerificationState;
use super::{Figures, VerifyContext};
use crate::config::{Check, VerifyConfig};
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{Claim, EffectiveClaim, Evidence, Figure, Verdict};
use counterfoil_contract::expr::{Expression, Scope};
use counterfoil_contract::suggest::{did_you_mean, how_to_add_check};
use counterfoil_contract::text::{duration, pluralize};
use serde_json::{Value, json};

/// The maximum number of commands of one field that are run.
const MAX_COMMANDS: usize = 100;

pub(super) async fn verify(
    effective: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
    state: &mut VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let claimed = match found.as_slice() {
        [] => return None,
        [one] => one.value.clone(),
        many => Value::Array(
            many.iter().take(format::MAX_ITEMS).map(|found| found.value.clone()).collect(),
        ),
    };
    let claim = match resolve_claim(effective, contract, value, &found) {
        Ok(CommandClaim::Unstated) => return None,
        Ok(CommandClaim::Unclear) => {
            let why = ExtractError::UnclearOutcome.to_string();
            return Some(ClaimAssessment::unverifiable(claimed, why));
        }
        Ok(claim) => claim,
        Err(why) => return Some(ClaimAssessment::unverifiable(claimed, why.to_string())),
    };
    let counts = stated_counts(&found);
    let contradiction = self_contradiction(&found, claim);
    let check = match (find_check(&effective.claim, context.config), &contradiction) {
        (Ok(check), _) => check,
        (Err(_), Some(why)) => {
            let refuted = ClaimAssessment::new(Verdict::Refuted, claimed, Value::Null);
            return Some(refuted.with_reason(why.clone()));
        }
        (Err(why), None) => return Some(ClaimAssessment::unverifiable(claimed, why)),
    };
    let outcome = run(&check, state, context).await;
    let assessment = assess(&claimed, claim, &counts, &outcome);
    Some(match contradiction {
        // No outcome agrees with such a claim.
        Some(why) => ClaimAssessment { verdict: Verdict::Refuted, reason: why, ..assessment },
        None => assessment,
    })
}

/// The counts that the values of a field state.
fn stated_counts(found: &[FieldValue<'_>]) -> ClaimedCounts {
    match found {
        [one] => ClaimedCounts::of(one.value),
        many if many.iter().any(|found| !ClaimedCounts::of(found.value).is_empty()) => {
            ClaimedCounts::of_several()
        }
        _ => ClaimedCounts::default(),
    }
}

/// How a value of a field contradicts itself.
fn self_contradiction(found: &[FieldValue<'_>], claim: CommandClaim) -> Option<String> {
    let why = found.iter().find_map(|found| {
        contradiction(found.value).or_else(|| {
            let counts = ClaimedCounts::of(found.value);
            let failed = counts.failed().filter(|_| claim == CommandClaim::Succeeds)?;
            Some(format!("claimed to succeed with {failed} failed"))
        })
    })?;
    Some(format!("the claim contradicts itself: {why}"))
}

/// The check that a claim names, or one made from its command line.
pub(super) fn find_check(claim: &Claim, config: &VerifyConfig) -> Result<Check, String> {
    match (&claim.run, &claim.check) {
        (Some(line), _) if line.trim().is_empty() => Err("the claim's command is empty".to_owned()),
        (Some(line), _) => Ok(Check { report: claim.report.clone(), ..Check::shell(line.clone()) }),
        (None, Some(name)) => config.checks.get(name).cloned().ok_or_else(|| {
            let place = config
                .source
                .as_ref()
                .map_or_else(|| crate::config::FILE.into(), |path| path.to_string_lossy());
            let near = did_you_mean(name, config.checks.keys().map(String::as_str));
            let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
            format!(
                "there is no check '{name}'{near}; the claim stays not verified until there is one: {}",
                how_to_add_check(name, None, &place)
            )
        }),
        (None, None) => Err("the claim names neither a command nor a check".to_owned()),
    }
}

/// What a result claims about the command: given by the claim's `when` expression, or by the field
/// itself.
pub(super) fn resolve_claim(
    effective: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
    found: &[FieldValue<'_>],
) -> Result<CommandClaim, ExtractError> {
    let stated =
        extract::combine_claims(found.iter().map(|found| extract::command_claim(found.value)));
    let Some(when) = &effective.claim.when else { return Ok(stated) };
    let expression = Expression::compile(
        when,
        &Scope::for_variable("result", contract.ty().clone()),
    )
    .map_err(|problems| {
        let first = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
        ExtractError::InvalidCondition(first)
    })?;
    let holds = expression
        .test(&[("result", value, contract.ty())])
        .map_err(|error| ExtractError::ConditionFailed(error.reason))?;
    Ok(match (holds, stated) {
        (true, _) => CommandClaim::Succeeds,
        (false, CommandClaim::Fails) => CommandClaim::Fails,
        (false, _) => CommandClaim::Unstated,
    })
}

/// Compares the claim with the outcome of the check.
fn assess(
    claimed: &Value,
    claim: CommandClaim,
    counts: &ClaimedCounts,
    outcome: &CheckOutcome,
) -> ClaimAssessment {
    let observed = observed(outcome);
    let assessment = |verdict, reason: String| {
        ClaimAssessment::new(verdict, claimed.clone(), observed.clone())
            .with_reason(reason)
            .with_evidence(outcome.evidence())
            .with_notes(outcome.notes.clone())
    };
    let code = match &outcome.status {
        CheckStatus::Exited(code) => *code,
        CheckStatus::TimedOut(after) => {
            let reason = format!(
                "`{}` took longer than {} and was stopped; give the check a longer timeout in {}",
                outcome.line,
                duration(*after),
                crate::config::FILE
            );
            return assessment(Verdict::Unverifiable, reason);
        }
        CheckStatus::CouldNotRun(why) => {
            return assessment(
                Verdict::Unverifiable,
                format!("`{}` could not be run: {why}", outcome.line),
            );
        }
        CheckStatus::Idle(why) => {
            return assessment(Verdict::Unverifiable, idle_text(&outcome.line, why));
        }
        CheckStatus::Unfinished(how) => {
            return assessment(Verdict::Unverifiable, how.text(&outcome.line));
        }
        CheckStatus::Stopped => {
            return assessment(
                Verdict::Unverifiable,
                format!("`{}` was stopped before it ended", outcome.line),
            );
        }
    };
    match (claim, code) {
        (CommandClaim::Succeeds | CommandClaim::Unstated | CommandClaim::Unclear, 0)
        | (CommandClaim::Counts, _) => {}
        (CommandClaim::Fails, 0) => {
            return assessment(
                Verdict::Refuted,
                format!("claimed to fail, but `{}` succeeds", outcome.line),
            );
        }
        (CommandClaim::Fails, _) => {
            if let Some(files) = &outcome.fails_only_with {
                let line = &outcome.line;
                let reason = format!("claimed to fail, but `{line}` succeeds with {files}");
                return assessment(Verdict::Refuted, outcome.with_way_out(reason));
            }
        }
        (CommandClaim::Succeeds | CommandClaim::Unstated | CommandClaim::Unclear, code) => {
            let reason =
                format!("claimed to succeed, but `{}` {}", outcome.line, outcome.failed(code));
            return assessment(Verdict::Refuted, reason);
        }
    }
    let differences = differences(counts, outcome.figures.as_ref());
    if !differences.is_empty() {
        return assessment(Verdict::Refuted, differences.join("; "));
    }
    let incomparable = incomparable(counts, code, outcome);
    if !incomparable.is_empty() {
        return assessment(Verdict::Unverifiable, incomparable.join("; "));
    }
    if code == 0
        && claim != CommandClaim::Counts
        && let Some(why) = &outcome.without_pass
    {
        return assessment(Verdict::Unverifiable, idle_text(&outcome.line, why));
    }
    if code == 0
        && let Some(changed) = &outcome.changed
    {
        return assessment(Verdict::Stale, changed_tree_reason(&outcome.line, changed));
    }
    assessment(Verdict::Verified, String::new())
}

fn changed_tree_reason(line: &str, changed: &[String]) -> String {
    format!("`{line}` succeeded, but changed the files that it checks ({})", changed_what(changed))
}

/// A remark on a check that changed the tree.
pub(super) fn changed_tree_note(changed: &[String]) -> String {
    format!("it changed the files that it checks ({})", changed_what(changed))
}

fn changed_what(changed: &[String]) -> String {
    match changed {
        [] => "which ones is not known".to_owned(),
        names => format!("{}: {}", pluralize(names.len(), "file"), join_limited(names)),
    }
}

/// The claimed counts that differ from the observed figures, and those that no figures can equal.
fn differences(claimed: &ClaimedCounts, figures: Option<&Figures>) -> Vec<String> {
    let each = [
        (Figure::Total, "tests in total"),
        (Figure::Passed, "passed"),
        (Figure::Failed, "failed"),
        (Figure::Skipped, "skipped"),
    ];
    let mut differences = Vec::new();
    for (figure, what) in each {
        let observed = figures.and_then(|figures| figures.get(figure));
        // Runners disagree whether the total includes skipped tests. Both are accepted.
        let ran = figures.and_then(Figures::ran).filter(|_| figure == Figure::Total);
        for (_, stated) in claimed.counts.iter().filter(|(of, _)| *of == figure) {
            match (observed, stated) {
                (Some(observed), _) => {
                    if !stated.is(observed) && !ran.is_some_and(|ran| stated.is(ran)) {
                        differences.push(format!("claimed {stated} {what}, observed {observed}"));
                    }
                }
                (None, ClaimedNumber::Other(_)) => {
                    let why = format!("claimed {stated} {what}, which is no possible number");
                    differences.push(why);
                }
                (None, ClaimedNumber::Count(_)) => {}
            }
        }
    }
    differences.dedup();
    differences
}

/// Why claimed counts cannot be compared with what was observed.
fn incomparable(claimed: &ClaimedCounts, code: i32, outcome: &CheckOutcome) -> Vec<String> {
    let mut reasons = claimed.incomparable.clone();
    let is_unknown = |(figure, stated): &(Figure, ClaimedNumber)| {
        // A check that passes says that nothing failed.
        let is_implied = *figure == Figure::Failed && stated.is(0) && code == 0;
        let observed = outcome.figures.and_then(|figures| figures.get(*figure));
        observed.is_none() && !is_implied
    };
    if claimed.counts.iter().any(is_unknown) {
        reasons.push(format!(
            "`{}` prints no figures in a known format to compare the counts with; configure a report for it",
            outcome.line
        ));
    }
    reasons
}

fn observed(outcome: &CheckOutcome) -> Value {
    let mut observed = match &outcome.status {
        CheckStatus::Exited(code) => json!({"exit_code": code}),
        CheckStatus::TimedOut(_) => json!({"timed_out": true}),
        CheckStatus::CouldNotRun(_)
        | CheckStatus::Idle(_)
        | CheckStatus::Unfinished(_)
        | CheckStatus::Stopped => return Value::Null,
    };
    if let (Some(figures), Some(members)) = (outcome.figures, observed.as_object_mut())
        && let Ok(Value::Object(figures)) = serde_json::to_value(figures)
    {
        members.extend(figures.into_iter().filter(|(_, figure)| !figure.is_null()));
    }
    observed
}

/// Verifies a field that itself contains commands.
pub(super) async fn verify_each(
    effective: &EffectiveClaim,
    value: &Value,
    state: &mut VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let commands = extract::commands(&found);
    if commands.is_empty() {
        return None;
    }
    let mut each = Vec::new();
    let mut ran = 0;
    for command in commands {
        let permission = match &command {
            FieldCommand::Shell(line) => allow::permission(line, &effective.claim, context.config),
            _ => Permission::Allowed,
        };
        let entry = match command {
            FieldCommand::Shell(line) if permission != Permission::Allowed => match permission {
                Permission::Evades(word) => FieldCommandRun::Evades(line, word),
                _ => FieldCommandRun::NotAllowed(line),
            },
            FieldCommand::Shell(line) if ran < MAX_COMMANDS => {
                ran += 1;
                let scrubbed = Some(context.config.environment.clone());
                let check = Check { scrubbed, ..Check::shell(line) };
                let outcome = run(&check, state, context).await;
                FieldCommandRun::Ran(Box::new(outcome))
            }
            FieldCommand::Shell(line) => FieldCommandRun::OverLimit(line),
            FieldCommand::Manual(ask) => {
                FieldCommandRun::NotRun(format!("manual: {ask}"), "a task for a person".to_owned())
            }
            FieldCommand::Unknown(text) => {
                FieldCommandRun::NotRun(text, "neither `cmd: …` nor `manual: …`".to_owned())
            }
        };
        each.push(entry);
    }
    Some(assess_each(&each))
}

/// One command of a field and its outcome.
enum FieldCommandRun {
    Ran(Box<CheckOutcome>),
    /// The command was not run, with the reason.
    NotRun(String, String),
    /// Nobody allowed the command, so it was not run.
    NotAllowed(String),
    /// The command was not run because one of its words changes what it does.
    Evades(String, String),
    /// The command was not run because [`MAX_COMMANDS`] others were.
    OverLimit(String),
}

fn assess_each(each: &[FieldCommandRun]) -> ClaimAssessment {
    let claimed = format::json_list(each.iter().map(|entry| match entry {
        FieldCommandRun::Ran(outcome) => format!("cmd: {}", outcome.line),
        FieldCommandRun::NotRun(text, _) => text.clone(),
        FieldCommandRun::NotAllowed(line)
        | FieldCommandRun::Evades(line, _)
        | FieldCommandRun::OverLimit(line) => format!("cmd: {line}"),
    }));
    let mut observed = Vec::new();
    let (mut failed, mut stale, mut unknown, mut not_run) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut not_allowed, mut over_limit) = (Vec::<String>::new(), Vec::<String>::new());
    let (mut evidence, mut refused) = (Vec::new(), Vec::new());
    let mut succeeded = 0;
    for entry in each {
        let outcome = match entry {
            FieldCommandRun::Ran(outcome) => outcome,
            FieldCommandRun::NotRun(text, why) => {
                not_run.push(format!("{} ({why})", format::display_text(text)));
                continue;
            }
            FieldCommandRun::NotAllowed(line) => {
                not_allowed.push(format!("`{}`", format::display_text(line)));
                continue;
            }
            FieldCommandRun::Evades(line, word) => {
                let (line, word) = (format::display_text(line), format::display_text(word));
                refused.push(format!("`{line}` was not run, because `{word}` may change what it does; leave it out, or name it in `allow`"));
                continue;
            }
            FieldCommandRun::OverLimit(line) => {
                over_limit.push(format!("`{}`", format::display_text(line)));
                continue;
            }
        };
        let none = ClaimedCounts::default();
        let assessment = assess(&Value::Null, CommandClaim::Succeeds, &none, outcome);
        observed.push(match &outcome.status {
            CheckStatus::Exited(code) => format!("{} exited with {code}", outcome.line),
            CheckStatus::TimedOut(_) => format!("{} took too long", outcome.line),
            CheckStatus::Idle(_) => format!("{} ran nothing", outcome.line),
            CheckStatus::Unfinished(_) => format!("{} did not end in good order", outcome.line),
            CheckStatus::CouldNotRun(_) | CheckStatus::Stopped => {
                format!("{} was not run", outcome.line)
            }
        });
        match assessment.verdict {
            Verdict::Verified => succeeded += 1,
            Verdict::Refuted => {
                failed.push(format!("`{}` (exit code {})", outcome.line, code(outcome)));
            }
            Verdict::Stale => stale.push(assessment.reason),
            Verdict::Unverifiable => unknown.push(assessment.reason),
        }
        // A successful command needs no output as evidence.
        let mut displayed = outcome.evidence();
        if assessment.verdict == Verdict::Verified {
            displayed.output.clear();
        }
        evidence.push(displayed);
        evidence.extend(outcome.notes.iter().map(|note| Evidence::new("note", note.clone())));
    }
    let ran = each.iter().filter(|entry| matches!(entry, FieldCommandRun::Ran(_))).count();
    if !not_allowed.is_empty() {
        refused.push(format!(
            "{} not allowed, so nothing of it was run: {}; name it in `allow` of the claim or of [claims] in {}",
            if not_allowed.len() == 1 {
                "1 command is".to_owned()
            } else {
                format!("{} commands are", not_allowed.len())
            },
            join_limited(&not_allowed),
            crate::config::FILE
        ));
    }
    if !over_limit.is_empty() {
        refused.push(format!(
            "at most {MAX_COMMANDS} commands of a field are run, so {} not run: {}",
            if over_limit.len() == 1 {
                "1 more was".to_owned()
            } else {
                format!("{} more were", over_limit.len())
            },
            join_limited(&over_limit)
        ));
    }
    if failed.is_empty() {
        unknown.splice(0..0, refused.iter().cloned());
    }
    let (verdict, reason) = if !failed.is_empty() {
        let failing = if failed.len() == 1 { "fails" } else { "fail" };
        (
            Verdict::Refuted,
            format!(
                "{} of {} {failing}: {}",
                failed.len(),
                pluralize(ran, "command"),
                join_limited(&failed)
            ),
        )
    } else if !unknown.is_empty() {
        (Verdict::Unverifiable, unknown.join("; "))
    } else if !stale.is_empty() {
        (Verdict::Stale, stale.join("; "))
    } else if succeeded == 0 {
        (Verdict::Unverifiable, format!("no command can be run: {}", join_limited(&not_run)))
    } else {
        (Verdict::Verified, String::new())
    };
    let mut assessment =
        ClaimAssessment::new(verdict, claimed, format::json_list(observed)).with_reason(reason);
    assessment.evidence = evidence;
    if !failed.is_empty() {
        assessment = assessment.with_notes(refused);
    }
    if !not_run.is_empty() && succeeded > 0 {
        assessment = assessment.with_notes([format!("not verified: {}", join_limited(&not_run))]);
    }
    assessment
}

fn code(outcome: &CheckOutcome) -> i32 {
    match outcome.status {
        CheckStatus::Exited(code) => code,
        _ => 0,
    }
}

#[cfg(test)]
#[path = "command/tests.rs"]
mod tests;
