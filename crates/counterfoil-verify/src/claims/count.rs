//! A number that a result states, held against what it counts.

use super::check::{How, run};
use super::judged::Judged;
use super::path::Meant;
use super::read;
use super::scene::{Scene, index};
use super::shown;
use super::{Figures, World, command, look};
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Figure, Verdict};
use counterfoil_workspace::tree::Change;
use serde_json::{Value, json};
use std::path::Path;

pub(super) async fn hold(
    held: &EffectiveClaim,
    value: &Value,
    scene: &mut Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let [first, rest @ ..] = found.as_slice() else { return None };
    let numbers = std::iter::once(first).chain(rest).map(|found| read::number(found.value));
    let Some(claimed) = numbers.sum::<Option<u64>>() else {
        return Some(Judged::unverifiable(first.value.clone(), "it is no number"));
    };
    let claim = &held.claim;
    Some(match (&claim.of, claim.figure) {
        (Some(of), _) => against_list(claimed, of, value),
        (None, Some(figure)) => match figure {
            Figure::Total | Figure::Passed | Figure::Failed | Figure::Skipped => {
                if claim.run.is_some() || claim.check.is_some() {
                    against_check(claimed, figure, held, scene, world).await
                } else {
                    against_report(claimed, figure, claim.report.as_deref(), scene)
                }
            }
            Figure::TestsAdded | Figure::TestsRemoved => {
                against_tests(claimed, figure, world.observer.tests())
            }
            Figure::FilesAdded
            | Figure::FilesModified
            | Figure::FilesDeleted
            | Figure::FilesChanged => against_changes(claimed, figure, scene),
        },
        (None, None) => Judged::unverifiable(
            json!(claimed),
            "the claim does not say what is counted: add `of` or `figure` to it",
        ),
    })
}

/// The claimed number and the observed ones that it may be.
fn compare(claimed: u64, observed: u64, also: &[u64], what: &str) -> Judged {
    if claimed == observed || also.contains(&claimed) {
        return Judged::new(Verdict::Verified, json!(claimed), json!(claimed));
    }
    Judged::new(Verdict::Refuted, json!(claimed), json!(observed))
        .because(format!("claimed {claimed}, {what} {observed}"))
}

fn against_list(claimed: u64, of: &str, value: &Value) -> Judged {
    // A list that is left out, or null, has no items.
    let found = read::field(of, value).unwrap_or_default();
    let many = of.split('/').any(|token| token == "*");
    let counted = found.iter().map(|found| match found.value {
        Value::Array(items) => items.len() as u64,
        Value::Object(members) if !many => members.len() as u64,
        _ => 1,
    });
    let observed: u64 = counted.sum();
    let list = of.trim_start_matches('/');
    compare(claimed, observed, &[], &format!("`{list}` has"))
        .with(Evidence::new("list", format!("`{list}` has {}", items(observed))))
}

fn items(count: u64) -> String {
    shown::number(usize::try_from(count).unwrap_or(usize::MAX), "item")
}

fn figure_name(figure: Figure) -> &'static str {
    match figure {
        Figure::Total => "tests in all",
        Figure::Passed => "tests passed",
        Figure::Failed => "tests failed",
        Figure::Skipped => "tests skipped",
        Figure::TestsAdded => "tests added",
        Figure::TestsRemoved => "tests removed",
        Figure::FilesAdded => "files added",
        Figure::FilesModified => "files modified",
        Figure::FilesDeleted => "files deleted",
        Figure::FilesChanged => "files changed",
    }
}

fn against_figures(claimed: u64, figure: Figure, figures: &Figures, whose: &str) -> Judged {
    let name = figure_name(figure);
    let Some(observed) = figures.get(figure) else {
        return Judged::unverifiable(
            json!(claimed),
            format!("{whose} does not say how many {name}"),
        );
    };
    let also =
        if figure == Figure::Total { figures.ran().into_iter().collect() } else { Vec::new() };
    compare(claimed, observed, &also, &format!("{whose} says {name}:"))
}

fn against_report(claimed: u64, figure: Figure, report: Option<&str>, scene: &Scene) -> Judged {
    let unknown = |why: String| Judged::unverifiable(json!(claimed), why);
    let Some(report) = report else {
        return unknown(
            "the claim names no report to read the figure from: add `report`, `check` or `run`"
                .to_owned(),
        );
    };
    let name = shown::plain(report);
    let path = match scene.frame.meant(report) {
        Meant::Inside(path, _) => path,
        Meant::Outside(why) => return unknown(format!("the report {name} is not read: {why}")),
    };
    if look::presence(&scene.frame, &path).0 == look::Presence::Absent {
        return unknown(format!("the report {name} is not there; let the test runner write it"));
    }
    let seen = match look::read(&scene.frame, &path) {
        Ok(seen) => seen,
        Err(why) => return unknown(format!("the report {name} cannot be read: {why}")),
    };
    let figures = match Figures::of_report(&seen.bytes) {
        Ok(figures) => figures,
        Err(why) => return unknown(format!("the report {name} cannot be used: {why}")),
    };
    let mut judged = against_figures(claimed, figure, &figures, "the report");
    judged.evidence.push(Evidence {
        sha256: Some(seen.sha256),
        ..Evidence::new("report", format!("{name}: {}", figures.in_words()))
    });
    match newer(&path, scene) {
        Some(newer) if judged.verdict != Verdict::Unverifiable => {
            let difference = if judged.reason.is_empty() {
                String::new()
            } else {
                format!("{}; ", judged.reason)
            };
            judged.verdict = Verdict::Stale;
            judged.because(format!(
                "{difference}the report {name} is older than the last change ({newer})"
            ))
        }
        _ => judged,
    }
}

/// A file that changed after a report was written.
fn newer(report: &Path, scene: &Scene) -> Option<String> {
    let written = look::written(&scene.frame, report)?;
    let changes = scene.changes.as_ref().ok()?;
    scene
        .claimable(changes)
        .filter(|(path, change)| *path != report && *change != Change::Deleted)
        .find(|(path, _)| {
            look::touched(&scene.frame, path).is_some_and(|touched| touched > written)
        })
        .map(|(path, _)| shown::path(path))
}

async fn against_check(
    claimed: u64,
    figure: Figure,
    held: &EffectiveClaim,
    scene: &mut Scene,
    world: &mut World<'_>,
) -> Judged {
    let mut check = match command::find(&held.claim, world.config) {
        Ok(check) => check,
        Err(why) => return Judged::unverifiable(json!(claimed), why),
    };
    if held.claim.report.is_some() {
        check.report.clone_from(&held.claim.report);
    }
    let outcome = run(&check, scene, world).await;
    let judged = match (&outcome.how, outcome.figures) {
        (How::Exited(_), Some(figures)) => {
            let judged = against_figures(claimed, figure, &figures, &format!("`{}`", outcome.line));
            match &outcome.changed {
                Some(changed) if judged.verdict == Verdict::Verified => Judged {
                    verdict: Verdict::Stale,
                    reason: format!(
                        "`{}` changed the tree it speaks of: {}",
                        outcome.line,
                        if changed.is_empty() {
                            "files that had changed before".to_owned()
                        } else {
                            shown::few(changed)
                        }
                    ),
                    ..judged
                },
                _ => judged,
            }
        }
        (How::Exited(_), None) => {
            let why = format!(
                "`{}` prints no figures that can be read; let it write a report",
                outcome.line
            );
            Judged::unverifiable(json!(claimed), why)
        }
        (How::Unrunnable(why), _) => Judged::unverifiable(
            json!(claimed),
            format!("`{}` could not be run: {why}", outcome.line),
        ),
        (How::TimedOut(after), _) => {
            let why = format!(
                "`{}` took longer than {} and was ended",
                outcome.line,
                shown::seconds(*after)
            );
            Judged::unverifiable(json!(claimed), why)
        }
        (How::Stopped, _) => {
            Judged::unverifiable(json!(claimed), format!("`{}` was stopped", outcome.line))
        }
    };
    judged.with(outcome.evidence()).with_notes(outcome.notes)
}

fn against_tests(claimed: u64, figure: Figure, tests: Option<(u64, u64)>) -> Judged {
    let Some((added, removed)) = tests else {
        let why = "the tests in the tree cannot be counted: none of its languages is known";
        return Judged::unverifiable(json!(claimed), why);
    };
    let observed = if figure == Figure::TestsAdded { added } else { removed };
    compare(claimed, observed, &[], &format!("{} observed:", figure_name(figure)))
        .with(Evidence::new("list", format!("tests in the tree: {added} added, {removed} removed")))
}

fn against_changes(claimed: u64, figure: Figure, scene: &Scene) -> Judged {
    let changes = match &scene.changes {
        Ok(changes) => changes,
        Err(why) => {
            return Judged::unverifiable(
                json!(claimed),
                format!("what changed cannot be told: {why}"),
            );
        }
    };
    let index = index(changes);
    let wanted = |change: Change| match figure {
        Figure::FilesAdded => change == Change::Added,
        Figure::FilesModified => change == Change::Modified,
        Figure::FilesDeleted => change == Change::Deleted,
        _ => true,
    };
    let (mut observed, mut renames) = (0, 0);
    for (path, _) in scene.claimable(changes).filter(|(_, change)| wanted(*change)) {
        observed += 1;
        let is_half = match figure {
            // Of the two names of a renamed file one may stand for both.
            Figure::FilesChanged => index.went_to(path).is_some(),
            _ => index.came_from(path).or_else(|| index.went_to(path)).is_some(),
        };
        renames += u64::from(is_half);
    }
    let mut also = vec![observed - renames];
    if figure == Figure::FilesModified {
        // A renamed file may be called a modified one.
        also.push(observed + changes.renamed.len() as u64);
    }
    compare(claimed, observed, &also, &format!("{} observed:", figure_name(figure)))
        .with(Evidence::new("diff", scene.summary(changes)))
        .with_notes(changes.notes.clone())
}
