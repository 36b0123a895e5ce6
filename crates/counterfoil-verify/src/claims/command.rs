//! A command that a result says succeeds, or fails, held against the command.

use super::check::{How, Outcome, run};
use super::judged::Judged;
use super::read::{self, Found, HeldCommand, Says};
use super::scene::Scene;
use super::shown::{self, few, number};
use super::{Figures, World};
use crate::config::{Check, Config};
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{Claim, EffectiveClaim, Evidence, Figure, Verdict};
use counterfoil_contract::expr::{Expression, Scope};
use serde_json::{Value, json};

/// Commands of one field that are run; a result can hold any number.
const MOST_RUN: usize = 100;

pub(super) async fn hold(
    held: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
    scene: &mut Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let claimed = match found.as_slice() {
        [] => return None,
        [one] => one.value.clone(),
        many => {
            Value::Array(many.iter().take(shown::MOST).map(|found| found.value.clone()).collect())
        }
    };
    let says = match said(held, contract, value, &found) {
        Ok(Says::Nothing) => return None,
        Ok(says) => says,
        Err(why) => return Some(Judged::unverifiable(claimed, why)),
    };
    let figures = match found.as_slice() {
        [one] => read::told_figures(one.value),
        _ => Figures::default(),
    };
    let check = match find(&held.claim, world.config) {
        Ok(check) => check,
        Err(why) => return Some(Judged::unverifiable(claimed, why)),
    };
    let outcome = run(&check, scene, world).await;
    Some(judge(&claimed, says, &figures, &outcome))
}

/// The check that a claim names, or what its command line makes.
pub(super) fn find(claim: &Claim, config: &Config) -> Result<Check, String> {
    match (&claim.run, &claim.check) {
        (Some(line), _) if line.trim().is_empty() => Err("the claim's command is empty".to_owned()),
        (Some(line), _) => Ok(Check { report: claim.report.clone(), ..Check::line(line.clone()) }),
        (None, Some(name)) => config.checks.get(name).cloned().ok_or_else(|| {
            let place = config
                .source
                .as_ref()
                .map_or_else(|| crate::config::FILE.into(), |path| path.to_string_lossy());
            let near = counterfoil_contract::suggest::did_you_mean(
                name,
                config.checks.keys().map(String::as_str),
            );
            let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
            format!(
                "there is no check '{name}'{near}; add it to {place}, as in\n[checks]\n{} = \"…\"",
                toml_key(name)
            )
        }),
        (None, None) => Err("the claim names neither a command nor a check".to_owned()),
    }
}

fn toml_key(name: &str) -> String {
    let bare = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if bare { name.to_owned() } else { format!("{name:?}") }
}

/// What a result says of the command: by the claim's expression, or by the field itself.
pub(super) fn said(
    held: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
    found: &[Found<'_>],
) -> Result<Says, String> {
    let mut own = found.iter().map(|found| read::says(found.value));
    let plain = match own.next() {
        // Several say it together: one that fails is enough.
        Some(first) => own.fold(first, |all, one| match (all, one) {
            (Says::Fails, _) | (_, Says::Fails) => Says::Fails,
            (Says::Succeeds, Says::Succeeds) => Says::Succeeds,
            _ => Says::Nothing,
        }),
        None => Says::Nothing,
    };
    let Some(when) = &held.claim.when else { return Ok(plain) };
    let expression = Expression::compile(
        when,
        &Scope::for_variable("result", contract.ty().clone()),
    )
    .map_err(|problems| {
        let first = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
        format!("the claim's `when` does not hold together: {first}")
    })?;
    let holds = expression
        .test(&[("result", value, contract.ty())])
        .map_err(|why| format!("the claim's `when` has no value for this result: {why}"))?;
    Ok(match (holds, plain) {
        (true, _) => Says::Succeeds,
        (false, Says::Fails) => Says::Fails,
        (false, _) => Says::Nothing,
    })
}

/// The judgement.
fn judge(claimed: &Value, says: Says, figures: &Figures, outcome: &Outcome) -> Judged {
    let observed = observed(outcome);
    let judged = |verdict, reason: String| {
        Judged::new(verdict, claimed.clone(), observed.clone())
            .because(reason)
            .with(outcome.evidence())
            .with_notes(outcome.notes.clone())
    };
    let code = match &outcome.how {
        How::Exited(code) => *code,
        How::TimedOut(after) => {
            let reason = format!(
                "`{}` took longer than {} and was ended; give the check a longer timeout in {}",
                outcome.line,
                shown::seconds(*after),
                crate::config::FILE
            );
            return judged(Verdict::Unverifiable, reason);
        }
        How::Unrunnable(why) => {
            return judged(
                Verdict::Unverifiable,
                format!("`{}` could not be run: {why}", outcome.line),
            );
        }
        How::Stopped => {
            return judged(
                Verdict::Unverifiable,
                format!("`{}` was stopped before it ended", outcome.line),
            );
        }
    };
    match (says, code) {
        (Says::Succeeds | Says::Nothing, 0) => {}
        (Says::Fails, 0) => {
            return judged(
                Verdict::Refuted,
                format!("claimed that it fails, and `{}` succeeds", outcome.line),
            );
        }
        (Says::Fails, _) => {}
        (Says::Succeeds | Says::Nothing, code) => {
            let reason =
                format!("claimed that it succeeds, and `{}` exited with {code}", outcome.line);
            return judged(Verdict::Refuted, reason);
        }
    }
    let differences = differences(figures, outcome.figures.as_ref());
    if !differences.is_empty() {
        return judged(Verdict::Refuted, differences.join("; "));
    }
    if code == 0
        && let Some(changed) = &outcome.changed
    {
        return judged(Verdict::Stale, changed_in_words(&outcome.line, changed));
    }
    let mut judged = judged(Verdict::Verified, String::new());
    if *figures != Figures::default() && outcome.figures.is_none() {
        judged =
            judged.with_notes(["the output has no figures to hold the counts against".to_owned()]);
    }
    judged
}

fn changed_in_words(line: &str, changed: &[String]) -> String {
    let what = match changed {
        [] => "files that had changed before".to_owned(),
        names => format!("{}: {}", number(names.len(), "file"), few(names)),
    };
    format!("`{line}` succeeded, but changed the tree it speaks of ({what})")
}

/// Claimed figures that differ from those that were read.
fn differences(claimed: &Figures, read: Option<&Figures>) -> Vec<String> {
    let Some(read) = read else { return Vec::new() };
    let each = [
        (Figure::Total, "tests in all"),
        (Figure::Passed, "passed"),
        (Figure::Failed, "failed"),
        (Figure::Skipped, "skipped"),
    ];
    let differ = |(figure, what): (Figure, &str)| {
        let (said, seen) = (claimed.get(figure)?, read.get(figure)?);
        // Whether tests that did not run count among all of them is a matter of words.
        let agrees = said == seen || (figure == Figure::Total && read.ran() == Some(said));
        (!agrees).then(|| format!("claimed {said} {what}, observed {seen}"))
    };
    each.into_iter().filter_map(differ).collect()
}

fn observed(outcome: &Outcome) -> Value {
    let mut observed = match &outcome.how {
        How::Exited(code) => json!({"exit_code": code}),
        How::TimedOut(_) => json!({"timed_out": true}),
        How::Unrunnable(_) | How::Stopped => return Value::Null,
    };
    if let (Some(figures), Some(members)) = (outcome.figures, observed.as_object_mut())
        && let Ok(Value::Object(figures)) = serde_json::to_value(figures)
    {
        members.extend(figures.into_iter().filter(|(_, figure)| !figure.is_null()));
    }
    observed
}

/// The commands that a field itself holds.
pub(super) async fn hold_each(
    held: &EffectiveClaim,
    value: &Value,
    scene: &mut Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let commands = read::commands(&found);
    if commands.is_empty() {
        return None;
    }
    let mut each = Vec::new();
    for command in commands {
        let came = match command {
            HeldCommand::Line(line) if each.len() < MOST_RUN => {
                let outcome = run(&Check::line(line), scene, world).await;
                Came::Ran(Box::new(outcome))
            }
            HeldCommand::Line(line) => {
                Came::Left(format!("cmd: {line}"), "more commands than are run".to_owned())
            }
            HeldCommand::Manual(ask) => {
                Came::Left(format!("manual: {ask}"), "asked of a person".to_owned())
            }
            HeldCommand::Unknown(text) => {
                Came::Left(text, "neither `cmd: …` nor `manual: …`".to_owned())
            }
        };
        each.push(came);
    }
    Some(judge_each(&each))
}

/// What came of one command of a field.
enum Came {
    Ran(Box<Outcome>),
    /// It was not run, and why.
    Left(String, String),
}

fn judge_each(each: &[Came]) -> Judged {
    let claimed = shown::list(each.iter().map(|came| match came {
        Came::Ran(outcome) => format!("cmd: {}", outcome.line),
        Came::Left(text, _) => text.clone(),
    }));
    let mut observed = Vec::new();
    let (mut failed, mut stale, mut unknown, mut left) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut evidence = Vec::new();
    let mut succeeded = 0;
    for came in each {
        let outcome = match came {
            Came::Ran(outcome) => outcome,
            Came::Left(text, why) => {
                left.push(format!("{} ({why})", shown::plain(text)));
                continue;
            }
        };
        let judged = judge(&Value::Null, Says::Succeeds, &Figures::default(), outcome);
        observed.push(match &outcome.how {
            How::Exited(code) => format!("{} exited with {code}", outcome.line),
            How::TimedOut(_) => format!("{} took too long", outcome.line),
            How::Unrunnable(_) | How::Stopped => format!("{} was not run", outcome.line),
        });
        match judged.verdict {
            Verdict::Verified => succeeded += 1,
            Verdict::Refuted => {
                failed.push(format!("`{}` (exit code {})", outcome.line, code(outcome)))
            }
            Verdict::Stale => stale.push(judged.reason),
            Verdict::Unverifiable => unknown.push(judged.reason),
        }
        // What went well needs no output to be believed.
        let mut shown = outcome.evidence();
        if judged.verdict == Verdict::Verified {
            shown.output.clear();
        }
        evidence.push(shown);
        evidence.extend(outcome.notes.iter().map(|note| Evidence::new("note", note.clone())));
    }
    let ran = each.len() - left.len();
    let (verdict, reason) = if !failed.is_empty() {
        let failing = if failed.len() == 1 { "fails" } else { "fail" };
        (
            Verdict::Refuted,
            format!("{} of {} {failing}: {}", failed.len(), number(ran, "command"), few(&failed)),
        )
    } else if !unknown.is_empty() {
        (Verdict::Unverifiable, unknown.join("; "))
    } else if !stale.is_empty() {
        (Verdict::Stale, stale.join("; "))
    } else if succeeded == 0 {
        (Verdict::Unverifiable, format!("nothing here can be run: {}", few(&left)))
    } else {
        (Verdict::Verified, String::new())
    };
    let mut judged = Judged::new(verdict, claimed, shown::list(observed)).because(reason);
    judged.evidence = evidence;
    if !left.is_empty() && succeeded > 0 {
        judged = judged.with_notes([format!("not held against anything: {}", few(&left))]);
    }
    judged
}

fn code(outcome: &Outcome) -> i32 {
    match outcome.how {
        How::Exited(code) => code,
        _ => 0,
    }
}

#[cfg(test)]
#[path = "command/tests.rs"]
mod tests;
