//! Checks limits: every transition is looked up in the workflow, and its counters are computed
//! independently.

use counterfoil_flow::{
    Changes, Event, FailureKind, Frame, Limit, Machine, RunState, Term, Transition,
    TransitionTaken, Workflow,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The counters of each frame, by `limit` or `limit[key]`.
#[derive(Default)]
pub(crate) struct Limits {
    frames: BTreeMap<String, BTreeMap<String, u64>>,
    /// The maxima that somebody changed.
    raised: BTreeMap<String, u64>,
    /// The frames that continue when they are opened.
    parked: BTreeSet<String>,
}

impl Limits {
    /// A run that ended continues with these frames.
    pub(crate) fn reopened(
        &mut self,
        changes: &Changes,
        frames: &BTreeMap<String, Frame>,
        parked: &BTreeMap<String, Frame>,
    ) {
        self.raised.extend(changes.limits.clone());
        let counters = |(id, at): (&String, &Frame)| (id.clone(), at.counters.clone());
        self.frames = frames.iter().chain(parked).map(counters).collect();
        self.parked = parked.keys().cloned().collect();
    }

    /// The maximum of a limit, and that over all its keys.
    fn most(&self, machine: &Machine, name: &str, frame: &Frame) -> Result<(u64, u64), String> {
        let limit = machine.limits.get(name).ok_or("a limit that is not declared")?;
        let key = if machine.name.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", machine.name)
        };
        match self.raised.get(&key) {
            Some(max) => Ok((*max, limit.total.max(*max))),
            None => Ok((most(limit, frame)?, limit.total)),
        }
    }

    /// Checks an event before it is applied.
    pub(crate) fn before(
        &mut self,
        event: &Event,
        run_state: &RunState,
        workflow: &Workflow,
    ) -> Result<(), String> {
        match event {
            Event::FrameOpened { frame, counts, machine, state, variables, .. } => {
                let machine = workflow.machine(machine).ok_or("a frame of no machine")?;
                let entry = machine.states.get(state).and_then(|state| state.counts.as_ref());
                // An item that runs an agent has no machine: no variables and no states.
                if !variables.is_empty()
                    && !self.parked.contains(frame)
                    && let Some(limit) = entry.filter(|limit| machine.limits[*limit].per.is_none())
                    && counts.get(limit) != Some(&1)
                {
                    return Err(format!("the first entry of '{state}' did not count '{limit}'"));
                }
                self.frames.insert(frame.clone(), counts.clone());
            }
            Event::FrameEnded { frame, .. } => {
                self.frames.remove(frame);
            }
            Event::TransitionTaken(moved) => {
                let frame = run_state.frames.get(&moved.frame).ok_or("a move of no frame")?;
                let machine = workflow.machine(&frame.machine).ok_or("a move in no machine")?;
                self.moved(moved, frame, machine)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn moved(
        &mut self,
        moved: &TransitionTaken,
        frame: &Frame,
        machine: &Machine,
    ) -> Result<(), String> {
        let transition = taken(moved, machine).ok_or_else(|| {
            format!("no transition leads from '{}' to '{}'", moved.from, moved.to)
        })?;
        let mut counters = self.frames.remove(&moved.frame).unwrap_or_default();
        let entries = transition
            .go
            .states()
            .iter()
            .filter(|to| moved.exhausted.is_some() || **to == moved.to);
        let entry = entries.filter_map(|to| machine.states.get(to)?.counts.as_ref());
        let limits: BTreeSet<&String> = transition.counts.iter().chain(entry).collect();
        if let Some(name) = &moved.exhausted {
            let limit = machine.limits.get(name).filter(|_| limits.contains(name));
            let limit =
                limit.ok_or_else(|| format!("'{name}' is not what this transition counts"))?;
            let full = next(kept(&counters, transition, name), name, limit, frame)?;
            let (max, total) = self.most(machine, name, frame)?;
            if full.times <= max && full.total <= total {
                return Err(format!("the limit '{name}' was called used up at {}", full.times));
            }
            if moved.to != limit.then || !moved.counts.is_empty() || !moved.resets.is_empty() {
                return Err(format!(
                    "the limit '{name}' is used up and the run did not simply go to its end"
                ));
            }
            self.frames.insert(moved.frame.clone(), counters);
            return Ok(());
        }
        if moved.resets != transition.resets || moved.counts.len() != limits.len() {
            return Err(format!("{limits:?} must be counted, not {:?}", moved.counts));
        }
        let mut counted = BTreeMap::new();
        for name in limits {
            let limit = machine.limits.get(name).ok_or("a limit that is not declared")?;
            let now = next(kept(&counters, transition, name), name, limit, frame)?;
            if moved.counts.get(&now.counter) != Some(&now.times) {
                return Err(format!(
                    "{} must be {}, not {:?}",
                    now.counter, now.times, moved.counts
                ));
            }
            let (max, total) = self.most(machine, name, frame)?;
            if now.times > max || now.total > total {
                return Err(format!("the limit '{name}' is exceeded: {} times", now.times));
            }
            counted.insert(now.counter, now.times);
        }
        for reset in &transition.resets {
            counters.retain(|counter, _| !belongs(counter, reset));
        }
        counters.extend(counted);
        self.frames.insert(moved.frame.clone(), counters);
        Ok(())
    }
}

/// A counter after the next increment.
struct Count {
    counter: String,
    times: u64,
    /// The sum over all keys; 0 if there are none.
    total: u64,
}

/// The counters that a transition does not change.
fn kept<'c>(
    counters: &'c BTreeMap<String, u64>,
    transition: &Transition,
    limit: &String,
) -> &'c BTreeMap<String, u64> {
    static NONE: BTreeMap<String, u64> = BTreeMap::new();
    if transition.resets.contains(limit) { &NONE } else { counters }
}

fn next(
    counters: &BTreeMap<String, u64>,
    name: &str,
    limit: &Limit,
    frame: &Frame,
) -> Result<Count, String> {
    let counter = match &limit.per {
        None => name.to_owned(),
        Some(per) => {
            let key = frame.variables.get(per.source()).and_then(Value::as_str);
            format!("{name}[{}]", key.ok_or("the simulator only keeps counters by variables")?)
        }
    };
    let all = counters.iter().filter(|(counter, _)| belongs(counter, name)).map(|(_, count)| count);
    let total = all.sum::<u64>() + 1;
    let times = counters.get(&counter).copied().unwrap_or(0) + 1;
    Ok(Count { counter, times, total: if limit.per.is_some() { total } else { 0 } })
}

fn belongs(counter: &str, limit: &str) -> bool {
    counter.strip_prefix(limit).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

fn most(limit: &Limit, frame: &Frame) -> Result<u64, String> {
    let max = match &limit.max {
        Term::Literal(value) => value.as_u64(),
        Term::Computed(expression) => frame.inputs.get(expression.source()).and_then(Value::as_u64),
    };
    max.ok_or_else(|| "the simulator only knows limits that are numbers or inputs".to_owned())
}

/// The transition that an event refers to.
fn taken<'w>(moved: &TransitionTaken, machine: &'w Machine) -> Option<&'w Transition> {
    let state = machine.states.get(&moved.from)?;
    let transition = match moved.failure {
        Some(failure) => state.on.get(&failure).or_else(|| state.on.get(&FailureKind::Any)),
        None => {
            let guard = moved.guard.as_deref();
            state.next.iter().find(|one| {
                one.when.as_ref().map(counterfoil_contract::expr::Expression::source) == guard
            })
        }
    }?;
    (moved.exhausted.is_some() || transition.go.states().contains(&moved.to)).then_some(transition)
}
