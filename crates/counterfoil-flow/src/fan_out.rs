//! A fan-out in progress: the order of its items, their status, and the result of all items.

use crate::event::{Cause, PlannedItem, VERDICTS_STAND};
use crate::problem::Problem;
use crate::workflow::End;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A fan-out in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// Its items, in the order of the list.
    pub items: Vec<Item>,
    /// The index of each item, by key.
    index: BTreeMap<String, usize>,
    /// The number of running items.
    running: u32,
    /// The maximum number of running items.
    parallel: u32,
    /// Whether an item that is not done ends the state.
    strict: bool,
    /// Why no further item starts. The running items are awaited first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) broken: Option<String>,
    /// The running items, in the order in which they started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    working: Vec<Working>,
}

/// A running item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Working {
    /// The frame of the item.
    frame: String,
    /// Whether it is done and waits until the items before it are merged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    queued: bool,
}

/// An item of a fan-out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The key.
    pub key: String,
    /// The value of the item.
    pub value: Value,
    /// The keys of the items that must be done before it.
    pub after: Vec<String>,
    /// The rank; items with a smaller rank start earlier.
    pub rank: Option<i64>,
    /// The status of the item.
    #[serde(rename = "fate")]
    pub status: ItemStatus,
}

/// The status of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemStatus {
    /// The item has not started.
    Waiting,
    /// The item is running.
    Running,
    /// The item ended.
    Ended {
        /// The outcome.
        outcome: End,
        /// The cause of a failure.
        cause: Option<Cause>,
        /// The reason, as text.
        reason: String,
        /// The result.
        value: Option<Value>,
        /// Whether its work conflicts with the repository.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        conflict: bool,
    },
}

/// The next step of a fan-out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start the item at this index.
    Start(usize),
    /// Wait for the running items.
    Wait,
    /// No item is left to start or to wait for.
    Join,
}

impl FanOut {
    pub(crate) fn new(planned: &[PlannedItem], parallel: u32, strict: bool) -> Self {
        let items: Vec<Item> = planned
            .iter()
            .map(|planned| Item {
                key: planned.key.clone(),
                value: planned.value.clone(),
                after: planned.after.clone(),
                rank: planned.rank,
                status: ItemStatus::Waiting,
            })
            .collect();
        let index = items.iter().enumerate().map(|(at, item)| (item.key.clone(), at)).collect();
        Self { items, index, running: 0, parallel, strict, broken: None, working: Vec::new() }
    }

    pub(crate) fn opened(&mut self, key: &str, frame: &str) {
        if let Some(item) = self.index.get(key).and_then(|at| self.items.get_mut(*at)) {
            item.status = ItemStatus::Running;
            self.running += 1;
            self.working.push(Working { frame: frame.to_owned(), queued: false });
        }
    }

    /// Records the end of an item. Returns the frame of a queued item that can now be merged.
    pub(crate) fn ended(&mut self, key: &str, frame: &str, status: ItemStatus) -> Option<String> {
        if let Some(item) = self.index.get(key).and_then(|at| self.items.get_mut(*at)) {
            item.status = status;
            self.running = self.running.saturating_sub(1);
        }
        self.working.retain(|one| one.frame != frame);
        let first = self.working.first_mut().filter(|first| first.queued)?;
        first.queued = false;
        Some(first.frame.clone())
    }

    /// Whether an item may be merged: no item that started before it is running.
    pub(crate) fn may_merge(&self, frame: &str) -> bool {
        self.working.first().is_none_or(|first| first.frame == frame)
    }

    /// Queues an item unless it may be merged now. Returns whether it was queued.
    pub(crate) fn queue(&mut self, frame: &str) -> bool {
        let waits = !self.may_merge(frame);
        if let Some(one) = self.working.iter_mut().find(|one| one.frame == frame) {
            one.queued = waits;
        }
        waits
    }

    pub(crate) fn is_working(&self) -> bool {
        self.running > 0
    }

    /// The next step. An item may start when the items before it are done; items start by rank,
    /// then by position.
    pub(crate) fn next(&self) -> Next {
        let stop =
            self.broken.is_some() || (self.strict && self.items.iter().any(Item::is_unsuccessful));
        if !stop && self.running < self.parallel {
            let may = |item: &&Item| {
                item.status == ItemStatus::Waiting
                    && item.after.iter().all(|key| self.get(key).is_none_or(Item::is_done))
            };
            let first = self.items.iter().enumerate().filter(|(_, item)| may(item));
            if let Some((at, _)) = first.min_by_key(|(at, item)| (item.rank.unwrap_or(0), *at)) {
                return Next::Start(at);
            }
        }
        if self.running > 0 { Next::Wait } else { Next::Join }
    }

    /// Lets the items start again that are not done, since the run is reopened.
    pub(crate) fn start_again(&mut self) {
        (self.running, self.broken) = (0, None);
        self.working.clear();
        for item in self.items.iter_mut().filter(|item| !item.is_done()) {
            item.status = ItemStatus::Waiting;
        }
    }

    /// Lets a running item start from its beginning.
    pub(crate) fn restart(&mut self, frame: &str, key: &str) {
        if let Some(item) = self.index.get(key).and_then(|at| self.items.get_mut(*at)) {
            item.status = ItemStatus::Waiting;
            self.running = self.running.saturating_sub(1);
            self.working.retain(|one| one.frame != frame);
        }
    }

    /// Forgets which items wait for others to be merged. They are asked again.
    pub(crate) fn unqueue(&mut self) {
        for one in &mut self.working {
            one.queued = false;
        }
    }

    /// Whether no item is left to do.
    pub(crate) fn is_complete(&self) -> bool {
        self.items.iter().all(Item::is_done)
    }

    fn get(&self, key: &str) -> Option<&Item> {
        self.index.get(key).and_then(|at| self.items.get(*at))
    }

    /// The result of all items, or the problem of the first item that is not done if that ends the
    /// state.
    pub(crate) fn joined(&self, decide: u32) -> Result<Value, Problem> {
        if self.strict
            && let Some(problem) = self.first_unsuccessful(decide >= VERDICTS_STAND)
        {
            return Err(problem);
        }
        let mut items = Vec::new();
        let mut done = Vec::new();
        let mut failed = Vec::new();
        for item in &self.items {
            let (outcome, reason, value) = match &item.status {
                ItemStatus::Ended { outcome, reason, value, .. } => {
                    (outcome.name(), reason.clone(), value.as_ref())
                }
                ItemStatus::Waiting | ItemStatus::Running => {
                    ("skipped", self.why_skipped(item), None)
                }
            };
            let mut shown = json!({"key": item.key, "outcome": outcome, "reason": reason});
            if outcome == "done" {
                done.push(value.cloned().unwrap_or(Value::Null));
            } else {
                failed.push(shown.clone());
            }
            if let (Some(value), Some(shown)) = (value, shown.as_object_mut()) {
                shown.insert("value".into(), value.clone());
            }
            items.push(shown);
        }
        let total = self.items.len();
        Ok(json!({"items": items, "done": done, "failed": failed, "total": total}))
    }

    /// The problem of the first item that did not end as done. The reason is a part of the state, so
    /// runs that began before have it as it was: `says_how` is false for them.
    fn first_unsuccessful(&self, says_how: bool) -> Option<Problem> {
        let lost = self.items.iter().filter(|item| item.is_unsuccessful()).count();
        self.items.iter().find_map(|item| match &item.status {
            ItemStatus::Ended { outcome, cause, reason, conflict, .. } if *outcome != End::Done => {
                let others =
                    if lost > 1 { format!(" (and {} more)", lost - 1) } else { String::new() };
                // An end state need not give a reason.
                let what = match (reason.trim(), outcome) {
                    ("", End::Failed) if says_how => " failed".to_owned(),
                    ("", outcome) if says_how => format!(": {}", outcome.name()),
                    _ => format!(": {reason}"),
                };
                let reason = format!("item '{}'{what}{others}", item.key);
                Some(Problem::ended(*outcome, *cause, &reason, *conflict))
            }
            _ => None,
        })
    }

    fn why_skipped(&self, item: &Item) -> String {
        let before =
            item.after.iter().find(|key| self.get(key).is_some_and(|before| !before.is_done()));
        match before {
            Some(key) => format!("not started, since '{key}' is not done"),
            None => "not started, since another item failed".to_owned(),
        }
    }
}

impl Item {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.status, ItemStatus::Ended { outcome: End::Done, .. })
    }

    fn is_unsuccessful(&self) -> bool {
        matches!(self.status, ItemStatus::Ended { outcome, .. } if outcome != End::Done)
    }
}

/// The maximum number of items of a cycle that a message names.
const MAX_NAMED: usize = 12;

/// The indices of the items in order: dependencies first, then by rank, then by position. There is
/// no order if a key occurs twice, a dependency is not in the list, or dependencies form a cycle.
pub(crate) fn topological_order(items: &[PlannedItem]) -> Result<Vec<usize>, String> {
    let mut index = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        if index.insert(item.key.as_str(), at).is_some() {
            return Err(format!("two items have the key '{}'", item.key));
        }
    }
    let mut waiting = vec![0_usize; items.len()];
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for (at, item) in items.iter().enumerate() {
        for before in item.after.iter().collect::<BTreeSet<_>>() {
            let Some(&before_at) = index.get(before.as_str()) else {
                return Err(format!(
                    "'{}' comes after '{before}', which is not in the list",
                    item.key
                ));
            };
            waiting[at] += 1;
            followers[before_at].push(at);
        }
    }
    let ranked = |at: usize| (items[at].rank.unwrap_or(0), at);
    let mut open: BTreeSet<(i64, usize)> =
        (0..items.len()).filter(|at| waiting[*at] == 0).map(ranked).collect();
    let mut order = Vec::with_capacity(items.len());
    while let Some((_, at)) = open.pop_first() {
        order.push(at);
        for &next in &followers[at] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                open.insert(ranked(next));
            }
        }
    }
    match cycle(items, &index, &waiting) {
        Some(names) if names.len() > MAX_NAMED => {
            let first = names[..MAX_NAMED].join(" after ");
            Err(format!(
                "the items wait for each other: {first} after {} more",
                names.len() - MAX_NAMED
            ))
        }
        Some(names) => Err(format!("the items wait for each other: {}", names.join(" after "))),
        None => Ok(order),
    }
}

/// Finds a cycle by following dependencies from a waiting item until an item repeats.
fn cycle<'i>(
    items: &'i [PlannedItem],
    index: &BTreeMap<&str, usize>,
    waiting: &[usize],
) -> Option<Vec<&'i str>> {
    let mut at = waiting.iter().position(|count| *count > 0)?;
    let mut path: Vec<usize> = Vec::new();
    let mut scope = vec![false; items.len()];
    while !std::mem::replace(&mut scope[at], true) {
        path.push(at);
        let left =
            |key: &&String| index.get(key.as_str()).is_some_and(|before| waiting[*before] > 0);
        at = *index.get(items[at].after.iter().find(left)?.as_str())?;
    }
    let begin = path.iter().position(|one| *one == at)?;
    let mut names: Vec<&str> = path[begin..].iter().map(|at| items[*at].key.as_str()).collect();
    names.push(items[at].key.as_str());
    Some(names)
}
