//! Artifacts: files that show how a run stands, rendered anew after each transition.

use crate::event::Outcome;
use crate::fan::Fate;
use crate::fold::{Fold, Phase, split};
use crate::scope::{Seen, timestamp};
use crate::workflow::Workflow;
use countersign_contract::Type;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Where, in the repository.
    pub path: String,
    /// What.
    pub text: String,
    /// Whether it is added to what is there.
    pub append: bool,
}

/// The artifacts as they stand now; one that cannot be rendered, or fails its contract, is an error that names it.
pub fn artifacts(workflow: &Workflow, fold: &Fold) -> Result<Vec<Rendered>, (String, String)> {
    let Some(frame) = fold.frames.get("") else { return Ok(Vec::new()) };
    if workflow.artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let run = run(fold);
    let ty = Type::Any;
    let Some(seen) = Seen::new(workflow, fold, frame) else { return Ok(Vec::new()) };
    let seen = seen.with("run", &run, &ty);
    let none = BTreeMap::new();
    let mut rendered = Vec::new();
    for artifact in &workflow.artifacts {
        let path =
            seen.render(&artifact.path, &none).map_err(|why| (artifact.path.source().to_owned(), why))?;
        let text = seen.render(&artifact.template, &none).map_err(|why| (path.clone(), why))?;
        if let Some(contract) = &artifact.contract {
            let report = contract.check(&text);
            if let Some(violation) = report.violations.first() {
                let why = format!("does not satisfy {}: {}", contract.reference(), violation.message);
                return Err((path, why));
            }
        }
        rendered.push(Rendered { path, text, append: artifact.append });
    }
    Ok(rendered)
}

/// What `run` is in an artifact.
fn run(fold: &Fold) -> Value {
    let started = timestamp(fold.started_at);
    let root = fold.frames.get("");
    let outcome = match &fold.ended {
        Some(ended) => ended.outcome.name(),
        None if fold.is_resting() => "waiting",
        None => "running",
    };
    let reason = match &fold.ended {
        Some(ended) => ended.reason.clone(),
        None => root.map(|frame| frame.reason.clone()).unwrap_or_default(),
    };
    let questions: Vec<Value> = fold
        .open_questions()
        .map(|(id, question)| {
            let state = split(id).last().cloned().unwrap_or_default();
            json!({"id": id, "question": question.question, "state": state})
        })
        .collect();
    json!({
        "id": fold.run,
        "workflow": fold.workflow,
        "date": started.get(..10).unwrap_or_default(),
        "started": started,
        "now": timestamp(fold.last_at),
        "updated": timestamp(fold.last_at),
        "base": fold.base.as_deref().unwrap_or_default(),
        "changed": root.map(|frame| frame.changed.clone()).unwrap_or_default(),
        "iteration": fold.iterations,
        "state": root.map(|frame| frame.state.clone()).unwrap_or_default(),
        "from": root.map(|frame| frame.from.clone()).unwrap_or_default(),
        "outcome": outcome,
        "reason": reason,
        "items": items(fold),
        "questions": questions,
    })
}

/// The items of every fan-out that is at work.
fn items(fold: &Fold) -> Vec<Value> {
    let mut items = Vec::new();
    for (id, frame) in &fold.frames {
        let Phase::Fanned(fan) = &frame.phase else { continue };
        for item in &fan.items {
            let path = [split(id), vec![frame.state.clone(), item.key.clone()]].concat();
            let at = fold.frames.get(&crate::fold::join(&path)).map(|frame| frame.state.clone());
            let (outcome, reason) = match &item.fate {
                Fate::Waiting => ("waiting", String::new()),
                Fate::Running => ("running", String::new()),
                Fate::Ended { outcome, reason, .. } => (Outcome::from(*outcome).name(), reason.clone()),
            };
            items.push(json!({
                "state": frame.state,
                "key": item.key,
                "outcome": outcome,
                "at": at.unwrap_or_default(),
                "reason": reason,
            }));
        }
    }
    items
}
