//! Artifacts: files that show the progress of a run, rendered after each transition.

use crate::event::{Event, Outcome};
use crate::fan_out::ItemStatus;
use crate::run_state::{Frame, Phase, RunState, split};
use crate::scope::{EvalScope, checks_value, timestamp};
use crate::variable_types::artifact_run_type;
use crate::workflow::{Artifact, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendered {
    /// The path, relative to the repository.
    pub path: String,
    /// The text of the file.
    pub text: String,
    /// Whether the text is appended to the file.
    pub append: bool,
}

/// The result of rendering an artifact; an error has the path and the reason.
pub type Rendering = Result<Rendered, (String, String)>;

/// Renders the artifacts of the main machine that are replaced on each transition. An artifact that
/// cannot be rendered, or violates its contract, is an error with its path.
pub fn artifacts(workflow: &Workflow, run: &RunState) -> Result<Vec<Rendered>, (String, String)> {
    render_frame(workflow, run, "", |artifact| !artifact.append).into_iter().collect()
}

/// The paths of the artifacts of all machines in progress.
pub fn artifact_paths(workflow: &Workflow, run: &RunState) -> Vec<String> {
    let all = run.frames.keys().flat_map(|frame| render_frame(workflow, run, frame, |_| true));
    all.filter_map(|rendering| rendering.ok().map(|rendered| rendered.path)).collect()
}

/// Renders the artifacts that belong to one event, right after it: appended lines, and the
/// artifacts of a sub-workflow, which may have ended by the end of the turn. The other artifacts of
/// the main machine are rendered once, after the turn.
pub fn rendered_by(workflow: &Workflow, run: &RunState, event: &Event) -> Vec<Rendering> {
    match event {
        Event::TransitionTaken(taken) if taken.frame.is_empty() => {
            render_frame(workflow, run, "", |one| one.append)
        }
        Event::TransitionTaken(taken) => render_frame(workflow, run, &taken.frame, |_| true),
        Event::FrameOpened { parent: None, .. } => {
            render_frame(workflow, run, "", |one| one.append)
        }
        _ => Vec::new(),
    }
}

/// Renders the selected artifacts of a frame.
fn render_frame(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    which: impl Fn(&Artifact) -> bool,
) -> Vec<Rendering> {
    let Some(frame) = run.frames.get(id) else { return Vec::new() };
    let machine = workflow.machine(&frame.machine).filter(|_| !is_item_of_an_agent(run, frame));
    let Some(machine) = machine.filter(|machine| machine.artifacts.iter().any(&which)) else {
        return Vec::new();
    };
    let value = run_value(workflow, run, frame);
    let ty = artifact_run_type(&workflow.checks);
    let Some(scope) = EvalScope::new(workflow, run, frame) else { return Vec::new() };
    let scope = scope.with("run", &value, &ty);
    let wanted = machine.artifacts.iter().filter(|artifact| which(artifact));
    wanted.filter_map(|artifact| rendered(&scope, artifact).transpose()).collect()
}

/// Whether the frame is an item that runs an agent: it has no machine of its own.
fn is_item_of_an_agent(run: &RunState, frame: &Frame) -> bool {
    let parent = frame.parent.as_ref().and_then(|parent| run.frames.get(parent));
    frame.item.is_some() && parent.is_some_and(|parent| parent.machine == frame.machine)
}

fn rendered(
    scope: &EvalScope<'_>,
    artifact: &Artifact,
) -> Result<Option<Rendered>, (String, String)> {
    let source = || artifact.path.source().to_owned();
    if let Some(when) = &artifact.when
        && !scope.test(when).map_err(|why| (source(), why))?
    {
        return Ok(None);
    }
    let none = BTreeMap::new();
    let path = scope.render(&artifact.path, &none).map_err(|why| (source(), why))?;
    let text = scope.render(&artifact.template, &none).map_err(|why| (path.clone(), why))?;
    if let Some(contract) = &artifact.contract {
        let report = contract.check(&text);
        if let Some(violation) = report.violations.first() {
            let why = format!("does not satisfy {}: {}", contract.reference(), violation.message);
            return Err((path, why));
        }
    }
    Ok(Some(Rendered { path, text, append: artifact.append }))
}

/// The value of `run` in an artifact.
fn run_value(workflow: &Workflow, run: &RunState, frame: &Frame) -> Value {
    let started = timestamp(run.started_at);
    let outcome = match &run.ended {
        Some(ended) => ended.outcome.name(),
        None if run.is_resting() => "waiting",
        None => "running",
    };
    let reason = match &run.ended {
        Some(ended) if frame.parent.is_none() => ended.reason.clone(),
        _ => frame.reason.clone(),
    };
    let questions: Vec<Value> = run
        .open_questions()
        .map(|(id, question)| {
            let state = split(id).last().cloned().unwrap_or_default();
            json!({"id": id, "question": question.question, "state": state})
        })
        .collect();
    json!({
        "id": run.run,
        "workflow": run.workflow,
        "date": started.get(..10).unwrap_or_default(),
        "started": started,
        "now": timestamp(run.last_at),
        "updated": timestamp(run.last_at),
        "base": run.base.as_deref().unwrap_or_default(),
        "changed": frame.changed,
        "rejected": frame.rejected,
        "base_checks": checks_value(&workflow.checks, run.base_checks.as_ref()),
        "iteration": run.iterations,
        "state": frame.state,
        "from": frame.from,
        "outcome": outcome,
        "reason": reason,
        "items": items(run),
        "questions": questions,
    })
}

/// The innermost sub-workflow that an item runs at the moment, if it runs one.
fn inner(run: &RunState, item: &[String]) -> Value {
    let mut path = item.to_vec();
    let mut found = None;
    while let Some(outer) = run.frames.get(&crate::run_state::join(&path)) {
        path.push(outer.state.clone());
        found = run.frames.get(&crate::run_state::join(&path)).or(found);
    }
    match found {
        Some(frame) => json!({"at": frame.state, "variables": frame.variables}),
        None => Value::Null,
    }
}

/// The items of all fan-outs in progress.
fn items(run: &RunState) -> Vec<Value> {
    let none = Map::new();
    let mut items = Vec::new();
    for (id, frame) in &run.frames {
        let Phase::Fanned(fan) = &frame.phase else { continue };
        for item in &fan.items {
            let path = [split(id), vec![frame.state.clone(), item.key.clone()]].concat();
            let at_work = run.frames.get(&crate::run_state::join(&path));
            let (outcome, reason, value) = match &item.status {
                ItemStatus::Waiting => ("waiting", "", None),
                ItemStatus::Running => ("running", "", None),
                ItemStatus::Ended { outcome, reason, value, .. } => {
                    (Outcome::from(*outcome).name(), reason.as_str(), value.as_ref())
                }
            };
            items.push(json!({
                "state": frame.state,
                "key": item.key,
                "outcome": outcome,
                "at": at_work.map(|frame| frame.state.as_str()).unwrap_or_default(),
                "reason": reason,
                "inputs": at_work.map_or(&none, |frame| &frame.inputs),
                "variables": at_work.map_or(&none, |frame| &frame.variables),
                "inner": inner(run, &path),
                "value": value,
            }));
        }
    }
    items
}
