//! Leaving a state: the choice of the transition, its assignments and counters, and the detection
//! of lack of progress.

use super::{Command, end, eval_scope};
use crate::event::{CONTINUES_WITHOUT_RESULT, Cause, Event, TransitionTaken};
use crate::problem::Problem;
use crate::run_state::{Frame, MAX_REPEATS, RunState};
use crate::scope::{EvalScope, checks_value};
use crate::value::{fits, to_text};
use crate::variable_types::{NO_CLAIM, problem_type};
use crate::workflow::{End, Machine, State, Target, Transition, Wait, Workflow};
use counterfoil_contract::expr::{Expression, Type};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Leaves a state whose step returned a result, by the first transition whose guard is true.
pub(super) fn next(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
    state: &State,
    result: &Value,
) -> Result<Command, String> {
    let claims = claims_value(frame, state);
    let mut scope = eval_scope(workflow, run, frame, state)?.with("result", result, &state.result);
    if let Some((claims, ty)) = &claims {
        scope = scope.with("claims", claims, ty);
    }
    let checks = checks_value(&state.checks, frame.checks.as_ref());
    if let Some(ty) = &state.checks_type {
        scope = scope.with("checks", &checks, ty);
    }
    let mut saw = Map::new();
    for transition in &state.next {
        if let Some(guard) = &transition.when {
            scope.saw(guard, &mut saw);
            if !scope.test(guard).map_err(|why| format!("the guard {why}"))? {
                continue;
            }
        }
        let context =
            TransitionContext { run, id, frame, transition, scope: &scope, subject: result };
        let taken = TransitionTaken {
            guard: transition.when.as_ref().map(|guard| guard.source().to_owned()),
            saw,
            ..TransitionTaken::default()
        };
        return context.take(taken);
    }
    Err(format!("no transition of '{}' fits the result", frame.state))
}

/// Leaves a state whose step failed.
pub(super) fn on_failure(
    workflow: &Workflow,
    run: &RunState,
    id: &str,
    frame: &Frame,
    state: &State,
    transition: &Transition,
    problem: &Problem,
) -> Result<Command, String> {
    let mut shown = json!({"outcome": problem.failure.name(), "reason": problem.reason});
    if let Some(map) = shown.as_object_mut() {
        // Expressions were checked against the full type, so a partial result of another type is
        // hidden from them.
        if let Some(partial) =
            problem.partial.as_ref().filter(|partial| fits(partial, &state.result).is_ok())
        {
            map.insert("partial".into(), partial.clone());
        }
        if let Some(cause) = problem.cause.or(Cause::from_failure(problem.failure)) {
            map.insert("cause".into(), cause.name().into());
        }
    }
    let ty = problem_type(&state.result);
    let claims = claims_value(frame, state);
    let mut scope = eval_scope(workflow, run, frame, state)?.with("problem", &shown, &ty);
    if let Some((claims, ty)) = &claims {
        scope = scope.with("claims", claims, ty);
    }
    let context = TransitionContext { run, id, frame, transition, scope: &scope, subject: &shown };
    // The reason is that of the failure, unless the transition has its own.
    context.take(TransitionTaken {
        failure: Some(problem.failure),
        reason: problem.reason.clone(),
        ..TransitionTaken::default()
    })
}

/// The value of `claims` in a state with an agent: the verdict on each claim, also on those that
/// the result does not make.
fn claims_value<'s>(frame: &Frame, state: &'s State) -> Option<(Value, &'s Type)> {
    let ty = state.claims.as_ref()?;
    let names = ty.object().into_iter().flat_map(|object| object.fields.keys());
    let verdicts = frame.verdicts();
    let claims = names.map(|name| {
        let (verdict, reason) = match verdicts.get(name.as_str()) {
            Some(claim) => (claim.verdict.name(), claim.reason.as_str()),
            None => (NO_CLAIM, ""),
        };
        (name.clone(), json!({"verdict": verdict, "reason": reason}))
    });
    Some((Value::Object(claims.collect()), ty))
}

struct TransitionContext<'a> {
    run: &'a RunState,
    id: &'a str,
    frame: &'a Frame,
    transition: &'a Transition,
    scope: &'a EvalScope<'a>,
    /// The result or the problem that the transition follows.
    subject: &'a Value,
}

impl TransitionContext<'_> {
    fn take(&self, mut taken: TransitionTaken) -> Result<Command, String> {
        let machine = self.scope.machine;
        for (name, term) in &self.transition.set {
            taken.set.insert(name.clone(), self.scope.term(term)?);
        }
        if let Some(reason) = &self.transition.reason {
            taken.reason = to_text(&self.scope.term(reason)?);
        }
        taken.to = match &self.transition.go {
            Target::State(name) => name.clone(),
            Target::Computed(expression, names) => self.target(expression, names)?,
        };
        taken.resets.clone_from(&self.transition.resets);
        self.id.clone_into(&mut taken.frame);
        taken.from.clone_from(&self.frame.state);
        let entry = machine.states.get(&taken.to).and_then(|state| state.counts.as_ref());
        let limits: Vec<&String> = self.transition.counts.iter().chain(entry).collect();
        if !limits.is_empty() {
            let before = self.run.decide < CONTINUES_WITHOUT_RESULT;
            if before && let Some(stuck) = self.request(&mut taken) {
                return Ok(stuck);
            }
            self.count(machine, &limits, &mut taken)?;
            // An exhausted limit leads to the state that the workflow names.
            if !before
                && taken.exhausted.is_none()
                && let Some(stuck) = self.request(&mut taken)
            {
                return Ok(stuck);
            }
        }
        if let Some(wait) = self.transition.wait.as_ref().filter(|_| taken.exhausted.is_none()) {
            taken.not_before = Some(self.run.last_at.saturating_add(self.delay_ms(wait)?));
        }
        taken.iteration = self.iteration(machine, &taken);
        Ok(Command::Record(Event::TransitionTaken(Box::new(taken))))
    }

    /// The delay in milliseconds, at most a week.
    fn delay_ms(&self, wait: &Wait) -> Result<i64, String> {
        const MAX_MS: i64 = 7 * 24 * 60 * 60 * 1000;
        let ms = match wait {
            Wait::For(ms) => i64::try_from(*ms).unwrap_or(MAX_MS),
            Wait::Seconds(seconds) => {
                self.scope.evaluate(seconds)?.as_i64().unwrap_or(0).saturating_mul(1000)
            }
        };
        Ok(ms.clamp(0, MAX_MS))
    }

    fn target(&self, expression: &Expression, names: &[String]) -> Result<String, String> {
        match self.scope.evaluate(expression)? {
            Value::String(name) if names.contains(&name) => Ok(name),
            other => Err(format!("`{}` gave {other}, which is no state", expression.source())),
        }
    }

    /// Records what a loop asks for. The same request in a row with the same work tree is lack of
    /// progress and ends the frame.
    fn request(&self, taken: &mut TransitionTaken) -> Option<Command> {
        let tree = self.frame.tree.as_ref()?;
        let asked = if taken.set.is_empty() {
            self.subject.clone()
        } else {
            Value::Object(taken.set.clone())
        };
        let digest = Sha256::digest(format!("{asked}\n{tree}"));
        let what: String = hex::encode(&digest[..8]);
        let edge = format!("{}>{}", taken.from, taken.to);
        let before = self.frame.requests.get(&edge).filter(|streak| streak.what == what);
        let times = before.map_or(0, |streak| streak.times) + 1;
        taken.request = Some(what);
        (times >= MAX_REPEATS).then(|| {
            let reason = format!(
                "'{}' sent the same request to '{}' {times} times in a row, and nothing in the work tree changed",
                taken.from, taken.to
            );
            end(self.id, self.frame, End::Exhausted, Some(Cause::NoProgress), reason, None)
        })
    }

    fn count(
        &self,
        machine: &Machine,
        limits: &[&String],
        taken: &mut TransitionTaken,
    ) -> Result<(), String> {
        let mut counts = BTreeMap::new();
        for name in limits {
            let Some(limit) = machine.limits.get(*name) else { continue };
            let (max, total) = super::maxima(self.run, machine, name, limit, self.scope)?;
            let current = |counter: &String| {
                if taken.resets.contains(name) {
                    0
                } else {
                    self.frame.counters.get(counter).copied().unwrap_or(0)
                }
            };
            let counter = match &limit.per {
                Some(per) => format!("{name}[{}]", to_text(&self.scope.evaluate(per)?)),
                None => (*name).clone(),
            };
            let next = current(&counter) + 1;
            let all: u64 = if limit.per.is_some() && !taken.resets.contains(name) {
                let keyed = format!("{name}[");
                self.frame
                    .counters
                    .iter()
                    .filter(|(name, _)| name.starts_with(&keyed))
                    .map(|(_, n)| n)
                    .sum()
            } else {
                0
            };
            if next > max || (limit.per.is_some() && all >= total) {
                let most = if next > max { max } else { total };
                taken.reason = match taken.reason.as_str() {
                    "" => format!("the limit '{name}' of {most} is used up"),
                    why => format!("the limit '{name}' of {most} is used up: {why}"),
                };
                taken.to.clone_from(&limit.then);
                taken.exhausted = Some((*name).clone());
                taken.request = None;
                // The checker relies on this: a redirect that resets limits could make a cycle
                // unbounded.
                taken.resets.clear();
                return Ok(());
            }
            counts.insert(counter, next);
        }
        taken.counts = counts;
        Ok(())
    }

    /// The iteration that starts with this transition, if any.
    fn iteration(&self, machine: &Machine, taken: &TransitionTaken) -> Option<u64> {
        if !machine.name.is_empty() {
            return None;
        }
        match &machine.iterations {
            Some(limit) => {
                let keyed = format!("{limit}[");
                let counted = taken
                    .counts
                    .iter()
                    .find(|(name, _)| *name == limit || name.starts_with(&keyed));
                let (name, count) = counted?;
                if name != limit {
                    return Some(self.run.iterations + 1);
                }
                // A limit that is counted on entry includes the first entry; a limit that is
                // counted on a transition back does not.
                let on_entry =
                    machine.states.values().any(|state| state.counts.as_ref() == Some(limit));
                Some(if on_entry { *count } else { count + 1 })
            }
            None => (taken.to == machine.start).then_some(self.run.iterations + 1),
        }
    }
}
