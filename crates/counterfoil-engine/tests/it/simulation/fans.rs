//! The books on fan-outs: how many items are at work, what each waited for, and that none is lost.

use counterfoil_flow::{End, Event, Phase, PlannedItem, RunState};
use serde_json::{Value, json};
use std::collections::BTreeMap;

struct Fan {
    items: Vec<PlannedItem>,
    parallel: usize,
    strict: bool,
    /// Whether the inputs of an item could not be computed.
    broken: bool,
    /// The frames at work, with their keys.
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

/// The fan-outs at work, by frame.
#[derive(Default)]
pub(crate) struct Fans {
    fans: BTreeMap<String, Fan>,
}

impl Fans {
    /// Looks at an event before it is added to the fold.
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
                self.fans.insert(frame.clone(), fan);
            }
            Event::FrameOpened { frame, parent: Some(parent), item: Some(key), .. } => {
                let fan = self.fans.get_mut(parent).ok_or("an item of no fan-out")?;
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
                if let Some(fan) = self.fans.get_mut(frame) {
                    fan.broken = true;
                }
            }
            Event::FrameEnded { frame, outcome, value, .. } => {
                let fan = self.fans.values_mut().find(|fan| fan.working.contains_key(frame));
                if let Some(fan) = fan
                    && let Some(key) = fan.working.remove(frame)
                {
                    fan.ended.insert(key, (*outcome, value.clone()));
                }
                self.fans.remove(frame);
            }
            Event::TransitionTaken(moved) => {
                self.fans.remove(&moved.frame);
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks at what the fold made of an event.
    pub(crate) fn after(&mut self, event: &Event, fold: &RunState) -> Result<(), String> {
        let Event::FannedIn { frame } = event else { return Ok(()) };
        let fan = self.fans.get(frame).ok_or("a fan-out ended that never began")?;
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
        match fold.frames.get(frame).map(|frame| &frame.phase) {
            Some(Phase::Broken(_)) if fan.broken => Ok(()),
            Some(Phase::Failed(_)) if fan.is_lost() && !fan.broken => Ok(()),
            Some(Phase::Resulted(result)) if !fan.is_lost() && !fan.broken => held(fan, result),
            other => Err(format!("the fan-out of '{frame}' led to {other:?}")),
        }
    }
}

/// Holds the result of a fan-out to what its items did.
fn held(fan: &Fan, result: &Value) -> Result<(), String> {
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
