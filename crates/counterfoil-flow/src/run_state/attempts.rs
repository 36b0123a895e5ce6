//! The end of an attempt: what it gave, what it changed, and whether it repeats itself.

use super::{ClaimVerdict, Phase, RunState, count_repeat};
use crate::event::{AttemptOutcome, ChangedFiles, Ended, VERDICTS_STAND};
use crate::problem::Problem;
use counterfoil_contract::claim::ClaimReport;
use serde_json::Value;

impl RunState {
    /// Keeps the verdicts on a result that is to be repaired. The attempt may be lost, or end without
    /// another result.
    pub(super) fn repair_asked(&mut self, attempt: &str, claims: &[ClaimReport]) {
        // A reply without a result makes no claim.
        if self.decide < VERDICTS_STAND || claims.is_empty() {
            return;
        }
        let frame = self.attempts.get(attempt).and_then(|frame| self.frames.get_mut(frame));
        if let Some(frame) = frame {
            frame.result_verified(claims);
        }
    }

    pub(super) fn attempt_ended(&mut self, ended: &Ended) {
        self.spend(ended.usage);
        self.used_in_conversation(&ended.attempt, ended.usage);
        let Some(id) = self.attempts.remove(&ended.attempt) else { return };
        if self.checks_ended(&id, ended) {
            return;
        }
        if let Some(changed) = &ended.changed {
            self.changed(&id, changed);
        }
        self.note_interruption(&id, ended);
        let Some(frame) = self.frames.get_mut(&id) else { return };
        if ended.tree.is_some() {
            frame.tree.clone_from(&ended.tree);
        }
        if self.decide < VERDICTS_STAND {
            frame.claims = ClaimVerdict::from_reports(&ended.claims);
        } else if ended.verifies_result() {
            frame.result_verified(&ended.claims);
        } else {
            frame.ended_without_result(&ended.claims, ended.changed.is_some());
        }
        frame.rejected.clone_from(&ended.rejected);
        let phase = match (ended.outcome, ended.outcome.failure()) {
            (AttemptOutcome::Accepted, _) => {
                Phase::Resulted(ended.value.clone().unwrap_or(Value::Null))
            }
            (_, Some(failure)) => Phase::Failed(Problem {
                failure,
                cause: None,
                reason: ended.reason.clone(),
                partial: ended.partial.clone(),
                reset_at: ended.reset_at,
            }),
            // Stopped from outside: the step is repeated when the run resumes.
            (_, None) => {
                frame.interrupted = frame.interrupted.saturating_add(1);
                Phase::Entered { not_before: None, context: false }
            }
        };
        let same = format!("{}!", frame.state);
        match ended.outcome {
            AttemptOutcome::Contract => {
                let what = ended.violations.iter().map(signature).collect::<Vec<_>>().join(" ");
                count_repeat(&mut frame.requests, same, what);
            }
            // A mismatch in another or unknown work tree is not a repetition.
            AttemptOutcome::Claim => match &ended.tree {
                Some(tree) => {
                    let blocking = ended.claims.iter().filter(|report| report.blocks());
                    // A field may have the name of a claim of the engine. Runs that began before
                    // count by the name alone: a snapshot of then may have counted so.
                    let tells_own = self.decide >= VERDICTS_STAND;
                    let name = |report: &ClaimReport| {
                        let (name, is_own) = report.id();
                        if is_own && tells_own { format!("{name}!") } else { name.to_owned() }
                    };
                    let names: Vec<String> = blocking.map(name).collect();
                    count_repeat(
                        &mut frame.requests,
                        same,
                        format!("{} in {tree}", names.join(" ")),
                    );
                }
                None => {
                    frame.requests.remove(&same);
                }
            },
            AttemptOutcome::Accepted => {
                frame.requests.remove(&same);
            }
            _ => {}
        }
        self.phase(&id, phase);
    }

    /// Adds the files that an attempt changed to its frame and all parent frames.
    fn changed(&mut self, frame: &str, changed: &ChangedFiles) {
        let renamed = changed.renamed.iter().flat_map(|(from, to)| [from, to]);
        let lists = changed.added.iter().chain(&changed.modified).chain(&changed.deleted);
        let paths: Vec<String> = lists.chain(renamed).cloned().collect();
        let cut = changed.total > paths.len() as u64;
        self.add_changed(frame, &paths);
        if let Some(frame) = self.frames.get_mut(frame) {
            frame.cut |= cut;
            // Every attempt of a visit is compared with the tree before the first one. If
            // something could not be observed, nothing seen is not the same as nothing changed,
            // and a list that was cut is not the list.
            let known = !cut && (!paths.is_empty() || changed.notes.is_empty());
            frame.step_changed = known.then(|| paths.into_iter().collect());
        }
    }

    pub(super) fn add_changed(&mut self, frame: &str, paths: &[String]) {
        let mut next = Some(frame.to_owned());
        while let Some(frame) = next.take().and_then(|id| self.frames.get_mut(&id)) {
            frame.changed.extend(paths.iter().cloned());
            // What was observed before is out of date.
            if !paths.is_empty() {
                frame.observed.clear();
            }
            next.clone_from(&frame.parent);
        }
    }
}

/// Identifies a violation by code and place, without its text.
fn signature(violation: &Value) -> String {
    let part = |name: &str| violation.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{}{}", part("code"), part("pointer"))
}
