//! The project's checks in the state of a run. An attempt that runs checks leaves the result of the
//! step as it is, also if it is lost or stopped.

use super::{Phase, RunState};
use crate::event::{AttemptOutcome, BuiltinStep, Ended};

impl RunState {
    /// The phase of a frame whose attempt starts.
    pub(super) fn started_phase(
        &self,
        frame: &str,
        attempt: &str,
        builtin: Option<&BuiltinStep>,
    ) -> Phase {
        let attempt = attempt.to_owned();
        let base = match builtin {
            Some(BuiltinStep::Checks(_)) => false,
            Some(BuiltinStep::BaseChecks(_)) => true,
            _ => return Phase::Running { attempt },
        };
        let result = match self.frames.get(frame).map(|frame| &frame.phase) {
            Some(Phase::Resulted(value)) => Some(value.clone()),
            _ => None,
        };
        Phase::Checking { attempt, base, result }
    }

    /// The phase before the checks that are running in a frame, and whether they are those before
    /// the first step; none if no checks are running.
    fn before_checks(&self, frame: &str) -> Option<(Phase, bool)> {
        match &self.frames.get(frame)?.phase {
            Phase::Checking { base, result, .. } => {
                let before = match result {
                    Some(value) => Phase::Resulted(value.clone()),
                    None => Phase::Entered { not_before: None, context: false },
                };
                Some((before, *base))
            }
            _ => None,
        }
    }

    /// Takes the outcome of checks. Returns false if the attempt did not run checks.
    pub(super) fn checks_ended(&mut self, id: &str, ended: &Ended) -> bool {
        let Some((before, base)) = self.before_checks(id) else { return false };
        let phase = match ended.outcome {
            AttemptOutcome::Accepted => {
                let checks = Some(ended.checks.clone());
                if base {
                    self.base_checks = checks;
                } else if let Some(frame) = self.frames.get_mut(id) {
                    frame.checks = checks;
                }
                before
            }
            AttemptOutcome::Cancelled => before,
            // Without an outcome, nothing may pass.
            _ => Phase::Broken(format!("the checks could not be run: {}", ended.reason)),
        };
        self.phase(id, phase);
        true
    }

    /// Takes the loss of an attempt that ran checks: they are run again. Returns false if the
    /// attempt did not run checks.
    pub(super) fn checks_lost(&mut self, id: &str) -> bool {
        let Some((before, _)) = self.before_checks(id) else { return false };
        self.phase(id, before);
        true
    }
}
