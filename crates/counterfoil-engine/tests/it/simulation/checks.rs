//! The project's checks in the simulation: how they are configured, what comes of them, and what
//! must hold of them.

use crate::dice::Dice;
use counterfoil_flow::{
    BuiltinStep, CheckDefinition, CheckProgram, CheckReport, CheckStatus, Event, PlannedChecks,
    RunState, Workflow,
};
use std::collections::{BTreeMap, BTreeSet};

/// How checks are configured: some of them, none, or in a file that cannot be read.
pub(crate) fn planned(dice: &mut Dice, names: &[String]) -> PlannedChecks {
    let definition = CheckDefinition {
        run: CheckProgram::Argv(vec!["make".to_owned(), "check".to_owned()]),
        timeout_ms: 60_000,
        report: None,
    };
    let known = names.iter().filter(|_| dice.percent(70));
    PlannedChecks {
        checks: known.map(|name| (name.clone(), definition.clone())).collect(),
        noise: Vec::new(),
        problem: dice.percent(5).then(|| "line 1: not a table".to_owned()),
    }
}

/// What came of checks.
pub(crate) fn reports(dice: &mut Dice, names: &[String]) -> BTreeMap<String, CheckReport> {
    let mut report = |name: &String| {
        let status = *dice.pick(&CheckStatus::ALL);
        let known = status != CheckStatus::NotConfigured;
        let report = CheckReport {
            status,
            exit_code: known.then_some(i32::from(status == CheckStatus::Failed)),
            total: (known && dice.percent(50)).then(|| dice.below(9)),
            output: "the end of it".to_owned(),
            ..CheckReport::default()
        };
        (name.clone(), report)
    };
    names.iter().map(&mut report).collect()
}

/// Whether an attempt runs checks, and whether they are those before the first step.
pub(crate) fn kind(builtin: Option<&BuiltinStep>) -> Option<bool> {
    match builtin {
        Some(BuiltinStep::Checks(_)) => Some(false),
        Some(BuiltinStep::BaseChecks(_)) => Some(true),
        _ => None,
    }
}

/// Checks that no step is left before its checks were run, and that nothing runs before those at
/// the base.
#[derive(Default)]
pub(crate) struct CheckAudit {
    /// The attempts in flight that run checks, with whether they are those at the base.
    open: BTreeMap<String, bool>,
    /// All attempts that ran checks.
    known: BTreeSet<String>,
    base: bool,
    /// The frames whose checks were run in the current visit of their state.
    done: BTreeSet<String>,
    /// Whether the run was reopened.
    reopened: bool,
}

impl CheckAudit {
    /// Whether an attempt runs checks.
    pub(crate) fn runs_checks(&self, attempt: &str) -> bool {
        self.known.contains(attempt)
    }

    /// Examines an event before it is applied.
    pub(crate) fn before(
        &mut self,
        event: &Event,
        run: &RunState,
        workflow: &Workflow,
    ) -> Result<(), String> {
        match event {
            Event::AttemptStarted { attempt, frame, builtin, .. } => match kind(builtin.as_ref()) {
                Some(true) if self.base => {
                    return Err(format!("{attempt} runs the checks at the base again"));
                }
                Some(base) => {
                    if self.done.contains(frame) {
                        return Err(format!("{attempt} runs checks again"));
                    }
                    self.known.insert(attempt.clone());
                    self.open.insert(attempt.clone(), base);
                }
                None if !workflow.checks.is_empty() && !self.base => {
                    return Err(format!("{attempt} started before the checks at the base"));
                }
                // The checks of an earlier attempt say nothing of this one.
                None => {
                    self.done.remove(frame);
                }
            },
            Event::RunReopened(_) => {
                self.done.clear();
                self.reopened = true;
            }
            Event::AttemptEnded(ended) => {
                let frame = run.attempts.get(&ended.attempt).cloned().unwrap_or_default();
                let base = self.open.remove(&ended.attempt);
                match (base, ended.checks.is_empty()) {
                    (Some(true), false) => self.base = true,
                    (Some(false), false) => {
                        self.done.insert(frame);
                    }
                    _ => {}
                }
            }
            Event::AttemptLost { attempt, .. } => {
                self.open.remove(attempt);
            }
            Event::TransitionTaken(taken) => {
                let done = self.done.remove(&taken.frame);
                let Some(frame) = run.frames.get(&taken.frame) else { return Ok(()) };
                let state = workflow
                    .machine(&frame.machine)
                    .and_then(|machine| machine.states.get(&frame.state));
                let names = state.map(|state| state.checks.as_slice()).unwrap_or_default();
                let configured = frame.planned_checks.as_ref().is_some_and(|planned| {
                    planned.problem.is_some()
                        || names.iter().any(|name| planned.checks.contains_key(name))
                });
                // A result that is only decided again after a reopening keeps its own evidence.
                let done = done || (self.reopened && frame.checks.is_some());
                if taken.failure.is_none() && !names.is_empty() && configured && !done {
                    return Err(format!("'{}' was left before its checks", taken.from));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
