//! Checks fan-outs: how many items run at once, what each waits for, and that none is lost.

use counterfoil_flow::{End, Event, Frame, ItemStatus, Phase, PlannedItem, RunState};
use serde_json::{Value, json};
use std::collections::BTreeMap;

struct Fan {
    items: Vec<PlannedItem>,
    parallel: usize,
    strict: bool,
    /// Whether the inputs of an item could not be computed.
    broken: bool,
    /// The running frames, with their keys.
    working: BTreeMap<String, String>,
    ended: BTreeMap<String, (End, Option<Value>)>,
}

impl Fan {
    fn is_done(&self, key: &str) -> bool {
        self.ended.get(key).is_some_and(|(outcome, _)| *outcome == End::Done)
    }

    fn is_lost(&self) -> bool {
        self.strict && self.ended.values().any(|(outcome, _)| *outcome != End::Done)
    }
}

/// The running fan-outs, by frame.
#[derive(Default)]
pub(crate) struct FanOutAudit {
    fan_out: BTreeMap<String, Fan>,
    /// The last fan-out of each frame that has left it.
    left: BTreeMap<String, Fan>,
}

impl FanOutAudit {
    /// Checks an event before it is applied.
    pub(crate) fn before(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::FannedOut { frame, items, parallel, strict, problem: None } => {
                let fan = Fan {
                    items: items.clone(),
                    parallel: *parallel as usize,
                    strict: *strict,
                    broken: false,
                    working: BTreeMap::new(),
                    ended: BTreeMap::new(),
                };
                self.fan_out.insert(frame.clone(), fan);
            }
            Event::FrameOpened { frame, parent: Some(parent), item: Some(key), .. } => {
                let fan = self.fan_out.get_mut(parent).ok_or("an item of no fan-out")?;
                let item =
                    fan.items.iter().find(|item| item.key == *key).ok_or("an item of no list")?;
                if let Some(before) = item.after.iter().find(|before| !fan.is_done(before)) {
                    return Err(format!("item '{key}' began before '{before}' was done"));
                }
                if fan.is_lost() || fan.broken {
                    return Err(format!("item '{key}' began after another failed"));
                }
                if fan.ended.contains_key(key) {
                    return Err(format!("item '{key}' ran twice"));
                }
                fan.working.insert(frame.clone(), key.clone());
                if fan.working.len() > fan.parallel {
                    return Err(format!(
                        "{} items are at work, more than {}",
                        fan.working.len(),
                        fan.parallel
                    ));
                }
            }
            Event::StepFailed { frame, .. } => {
                if let Some(fan) = self.fan_out.get_mut(frame) {
                    fan.broken = true;
                }
            }
            Event::FrameEnded { frame, outcome, value, .. } => {
                let fan = self.fan_out.values_mut().find(|fan| fan.working.contains_key(frame));
                if let Some(fan) = fan
                    && let Some(key) = fan.working.remove(frame)
                {
                    fan.ended.insert(key, (*outcome, value.clone()));
                }
                self.leave(frame);
            }
            Event::TransitionTaken(moved) => self.leave(&moved.frame),
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self, frame: &str) {
        if let Some(fan) = self.fan_out.remove(frame) {
            self.left.insert(frame.to_owned(), fan);
        }
    }

    /// Whether an item that starts again was done.
    pub(crate) fn was_done(&self, frame: &Frame) -> bool {
        let (Some(parent), Some(key)) = (&frame.parent, &frame.item) else { return false };
        let fan = self.fan_out.get(parent).or_else(|| self.left.get(parent));
        fan.is_some_and(|fan| fan.is_done(key))
    }

    /// A run that ended continues with these frames. Items that are done stay so.
    pub(crate) fn reopened(&mut self, frames: &BTreeMap<String, Frame>) -> Result<(), String> {
        let mut known = std::mem::take(&mut self.left);
        known.append(&mut self.fan_out);
        for (id, frame) in frames {
            let Phase::Fanned(state) = &frame.phase else { continue };
            let mut fan = known.remove(id).ok_or("a fan-out that never began goes on")?;
            // After a budget ran out, items that failed before stay as they are.
            let is_over = |key: &str| {
                let item = state.items.iter().find(|item| item.key == key);
                item.is_some_and(|item| matches!(item.status, ItemStatus::Ended { .. }))
            };
            fan.ended.retain(|key, (outcome, _)| *outcome == End::Done || is_over(key));
            fan.working.retain(|item, _| frames.contains_key(item));
            // A fan-out that was interrupted stays broken; one that starts again does not.
            let written = serde_json::to_value(state).map_err(|why| why.to_string())?;
            fan.broken = written.get("broken").is_some();
            for item in &state.items {
                let is_done = matches!(item.status, ItemStatus::Ended { outcome: End::Done, .. });
                if is_done != fan.is_done(&item.key) {
                    return Err(format!("item '{}' was forgotten, or never done", item.key));
                }
            }
            self.fan_out.insert(id.clone(), fan);
        }
        self.left = known;
        Ok(())
    }

    /// Checks the state after an event was applied.
    pub(crate) fn after(&mut self, event: &Event, run_state: &RunState) -> Result<(), String> {
        let Event::FannedIn { frame } = event else { return Ok(()) };
        let fan = self.fan_out.get(frame).ok_or("a fan-out ended that never began")?;
        if !fan.working.is_empty() {
            return Err(format!("the fan-out of '{frame}' ended with {:?} at work", fan.working));
        }
        let left = |item: &&PlannedItem| {
            !fan.ended.contains_key(&item.key)
                && item.after.iter().all(|before| fan.is_done(before))
        };
        if let Some(item) = fan.items.iter().find(left).filter(|_| !fan.is_lost() && !fan.broken) {
            return Err(format!("item '{}' could have begun and never did", item.key));
        }
        match run_state.frames.get(frame).map(|frame| &frame.phase) {
            Some(Phase::Broken(_)) if fan.broken => Ok(()),
            Some(Phase::Failed(_)) if fan.is_lost() && !fan.broken => Ok(()),
            Some(Phase::Resulted(result)) if !fan.is_lost() && !fan.broken => {
                check_result(fan, result)
            }
            other => Err(format!("the fan-out of '{frame}' led to {other:?}")),
        }
    }
}

/// Compares the result of a fan-out with those of its items.
fn check_result(fan: &Fan, result: &Value) -> Result<(), String> {
    let done: Vec<Value> = fan
        .items
        .iter()
        .filter(|item| fan.is_done(&item.key))
        .map(|item| fan.ended[&item.key].1.clone().unwrap_or(Value::Null))
        .collect();
    if result["done"] != json!(done) {
        return Err(format!("the items gave {done:?}, and the result says {}", result["done"]));
    }
    let shown = result["items"].as_array().ok_or("a result without items")?;
    if shown.len() != fan.items.len() || result["total"] != json!(fan.items.len()) {
        return Err(format!("{} items became {}", fan.items.len(), shown.len()));
    }
    for (item, shown) in fan.items.iter().zip(shown) {
        let outcome = fan.ended.get(&item.key).map_or("skipped", |(outcome, _)| outcome.name());
        if shown["outcome"] != json!(outcome) || shown["key"] != json!(item.key) {
            return Err(format!("item '{}' is {outcome}, and the result says {shown}", item.key));
        }
    }
    let failed = fan.items.len() - done.len();
    match result["failed"].as_array() {
        Some(listed) if listed.len() == failed => Ok(()),
        _ => Err(format!("{failed} items failed, and the result says {}", result["failed"])),
    }
}
