//! Reopening a run that ended: the point from which it continues, found from its events.
//!
//! A run continues at the step that ended it. No finished step runs again:
//!
//! - A step that failed is entered again, with all its retries.
//! - A step whose result led to an end state is entered again. States that do no work, through which
//!   the way led, are passed again.
//! - A limit that was used up is applied again to the transition that it redirected, and so is a
//!   transition that ended a run for lack of progress.
//! - In a fan-out the items that are not done start again, each at the step that ended it, and so
//!   does a sub-workflow.
//! - A budget that ran out interrupted the run. It continues where it was.
//!
//! If an input or a limit changes, the last transition is decided again first: it may lead elsewhere
//! now. A run that would end at once again is not reopened.

mod history;

pub use history::History;

use crate::decide::{limit_key, used_up_part};
use crate::event::{AssignedAgent, Changes, DecidedBy, Event, Outcome, Reopened};
use crate::run_state::{Frame, OpenQuestion, RunState, Stopping};
use crate::turn::turn;
use crate::workflow::{BudgetPart, Workflow};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Who reopens a run, and what changes.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The person or program.
    pub by: DecidedBy,
    /// What changes. A limit is named as in the workflow, in all machines that have it, or as
    /// `sub-workflow.limit`.
    pub changes: Changes,
    /// The agents that are assigned to another program.
    pub agents: BTreeMap<String, AssignedAgent>,
}

/// Why a run cannot be reopened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReopenError {
    /// The run has not ended.
    #[error("the run has not ended")]
    Open,
    /// The run is done or cancelled, and stays so.
    #[error("the run ended as {outcome}, which is final")]
    Final {
        /// The outcome.
        outcome: &'static str,
    },
    /// What the run changed was undone.
    #[error("its changes were undone by {by}, so it would go on without the work of its steps")]
    Undone {
        /// The person or program that did it.
        by: String,
    },
    /// The workflow has no such limit.
    #[error(
        "the workflow has no limit '{name}'; {}",
        similar.clone().unwrap_or_else(|| known_limits(known))
    )]
    UnknownLimit {
        /// The name that was given.
        name: String,
        /// A suggestion for a similar name.
        similar: Option<String>,
        /// The limits of the workflow.
        known: Vec<String>,
    },
    /// The run would end again before any step starts.
    #[error("the run would end as {outcome} again at once: {reason}")]
    SameEnd {
        /// The outcome.
        outcome: &'static str,
        /// The reason, as text.
        reason: String,
        /// What has to change.
        needs: SameEnd,
    },
}

/// What has to change so that a run does not end again at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SameEnd {
    /// A part of the budget is used up.
    Budget(BudgetPart),
    /// A limit is used up.
    Limit(String),
    /// The values that the workflow reads.
    Values,
}

fn known_limits(known: &[String]) -> String {
    if known.is_empty() { "it has none".to_owned() } else { format!("known: {}", known.join(", ")) }
}

/// The frames with which a run continues.
#[derive(Clone, Debug, Default)]
struct Rebuilt {
    frames: BTreeMap<String, Frame>,
    parked: BTreeMap<String, Frame>,
    questions: BTreeMap<String, OpenQuestion>,
}

impl History {
    /// The event that reopens the run.
    ///
    /// # Errors
    ///
    /// The run has not ended, its end is final, or it would end again at once.
    pub fn reopen(
        &self,
        workflow: &Workflow,
        request: &Request,
        now: i64,
    ) -> Result<Event, ReopenError> {
        let Some(ended) = &self.run.ended else { return Err(ReopenError::Open) };
        if matches!(ended.outcome, Outcome::Done | Outcome::Cancelled) {
            return Err(ReopenError::Final { outcome: ended.outcome.name() });
        }
        if let Some(undone) = self.run.undone.last() {
            return Err(ReopenError::Undone { by: undone.by.clone() });
        }
        let mut request = request.clone();
        request.changes.limits = named_limits(workflow, &request.changes.limits)?;
        let mut refused = None;
        for (limit, rebuilt) in self.candidates(workflow, &request.changes) {
            let event = Self::event(&request, ended.outcome, &ended.reason, &rebuilt, workflow);
            let mut run = self.run.clone();
            let turned = turn(workflow, &mut run, vec![event.clone()], now);
            let redirected: Vec<(&str, &str)> = turned
                .events
                .iter()
                .filter_map(|(event, _)| match event {
                    Event::TransitionTaken(taken) => {
                        Some((taken.frame.as_str(), taken.exhausted.as_deref()?))
                    }
                    _ => None,
                })
                .collect();
            let again =
                limit.as_ref().is_some_and(|limit| redirected.contains(&("", limit.as_str())));
            if run.ended.is_none() && run.stopping.is_none() && !again {
                return Ok(event);
            }
            refused = Some(same_end(&run, &rebuilt, redirected.last().copied()));
        }
        Err(refused.unwrap_or(ReopenError::Open))
    }

    fn event(
        request: &Request,
        outcome: Outcome,
        reason: &str,
        rebuilt: &Rebuilt,
        workflow: &Workflow,
    ) -> Event {
        let main = rebuilt.frames.get("").map_or(&workflow.main.start, |frame| &frame.state);
        Event::RunReopened(Box::new(Reopened {
            by: request.by.by.clone(),
            from: request.by.from.clone(),
            outcome,
            reason: reason.to_owned(),
            state: main.clone(),
            changes: request.changes.clone(),
            agents: request.agents.clone(),
            frames: recorded(&rebuilt.frames),
            parked: recorded(&rebuilt.parked),
            questions: recorded(&rebuilt.questions),
        }))
    }
}

/// The form of values in an event. A value that cannot be written leaves the run ended.
fn recorded<T: Serialize>(values: &BTreeMap<String, T>) -> Map<String, Value> {
    let written = |value: &T| serde_json::to_value(value).unwrap_or_default();
    values.iter().map(|(name, value)| (name.clone(), written(value))).collect()
}

/// Why a run would end again at once. `redirected` is the frame that met a limit, and the limit.
fn same_end(run: &RunState, rebuilt: &Rebuilt, redirected: Option<(&str, &str)>) -> ReopenError {
    let ran_out = run.ended.as_ref().is_some_and(|ended| ended.outcome == Outcome::Budget);
    let (outcome, reason) = match (&run.ended, &run.stopping) {
        (Some(ended), _) => (ended.outcome, ended.reason.clone()),
        (None, Some(Stopping::Budget(what))) => (Outcome::Budget, what.clone()),
        (None, _) => (Outcome::Blocked, String::new()),
    };
    let needs = if ran_out || outcome == Outcome::Budget {
        SameEnd::Budget(used_up_part(run).map_or(BudgetPart::Time, |(part, _)| part))
    } else if let Some((frame, limit)) = redirected {
        let known = rebuilt.frames.get(frame).or_else(|| rebuilt.parked.get(frame));
        SameEnd::Limit(limit_key(known.map_or("", |frame| frame.machine.as_str()), limit))
    } else {
        SameEnd::Values
    };
    ReopenError::SameEnd { outcome: outcome.name(), reason, needs }
}

/// The limits that are meant, by their names among all machines.
///
/// # Errors
///
/// The workflow has no such limit.
pub fn named_limits(
    workflow: &Workflow,
    given: &BTreeMap<String, u64>,
) -> Result<BTreeMap<String, u64>, ReopenError> {
    let machines = std::iter::once(&workflow.main).chain(workflow.machines.values());
    let known: Vec<(String, &String)> = machines
        .flat_map(|machine| machine.limits.keys().map(|name| (machine.name.as_str(), name)))
        .map(|(machine, name)| (limit_key(machine, name), name))
        .collect();
    let mut named = BTreeMap::new();
    for (name, max) in given {
        let meant: Vec<&String> = known
            .iter()
            .filter(|(key, bare)| key == name || *bare == name)
            .map(|(key, _)| key)
            .collect();
        if meant.is_empty() {
            let known: Vec<String> = known.into_iter().map(|(key, _)| key).collect();
            let names = known.iter().map(String::as_str);
            let similar = counterfoil_contract::suggest::did_you_mean(name, names);
            return Err(ReopenError::UnknownLimit { name: name.clone(), similar, known });
        }
        named.extend(meant.into_iter().map(|key| (key.clone(), *max)));
    }
    Ok(named)
}
