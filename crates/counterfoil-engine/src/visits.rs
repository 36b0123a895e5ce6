//! Visits of states. A state is visited whenever a transition leads to it, and a visit has one attempt
//! or more: an attempt that failed may be followed by another one of the same visit. Events count the
//! attempts at a path over all visits; this module tells them apart.

use counterfoil_flow::Event;
use std::collections::BTreeMap;

/// The place of an attempt among the visits of its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// The number of the visit at this path, from 1.
    pub number: u32,
    /// The number of the attempt in the visit, from 1.
    pub attempt: u32,
    /// The number of the visit among those of all states of the run.
    pub(crate) id: usize,
}

impl Visit {
    pub(crate) fn new(number: u32, attempt: u32) -> Self {
        Self { number, attempt, id: 0 }
    }
}

impl std::fmt::Display for Visit {
    /// `, visit 2, attempt 3`: what is not the first, each preceded by a comma.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.number > 1 {
            write!(f, ", visit {}", self.number)?;
        }
        if self.attempt > 1 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        Ok(())
    }
}

/// Counts visits and their attempts from the events of a run, in order.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    count: usize,
    /// The visit that each frame is in.
    frames: BTreeMap<String, usize>,
    /// The last attempt at each path.
    last: BTreeMap<Vec<String>, Visit>,
}

impl Visits {
    /// Adds the next event. Returns the visit of an attempt that starts.
    pub fn on_event(&mut self, event: &Event) -> Option<Visit> {
        match event {
            Event::FrameOpened { frame, .. } => self.begin(frame),
            Event::TransitionTaken(taken) => self.begin(&taken.frame),
            Event::AttemptStarted { frame, path, .. } => return Some(self.attempt(frame, path)),
            _ => {}
        }
        None
    }

    fn begin(&mut self, frame: &str) {
        self.count += 1;
        self.frames.insert(frame.to_owned(), self.count);
    }

    fn attempt(&mut self, frame: &str, path: &[String]) -> Visit {
        let id = self.frames.get(frame).copied().unwrap_or(0);
        let visit = match self.last.get(path) {
            Some(last) if last.id == id => Visit { attempt: last.attempt + 1, ..*last },
            last => Visit { number: last.map_or(0, |last| last.number) + 1, attempt: 1, id },
        };
        self.last.insert(path.to_vec(), visit);
        visit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(json: serde_json::Value) -> Event {
        serde_json::from_value(json).unwrap()
    }

    fn moved(frame: &str) -> Event {
        event(json!({"moved": {"frame": frame, "from": "a", "to": "b"}}))
    }

    fn started(frame: &str, path: &[&str]) -> Event {
        event(json!({"attempt-started":
            {"attempt": "x", "frame": frame, "path": path, "agent": "a", "n": 9}}))
    }

    #[test]
    fn a_retry_belongs_to_its_visit_and_a_transition_begins_another() {
        let mut visits = Visits::default();
        let mut numbers = Vec::new();
        for event in [
            started("", &["work"]),
            started("", &["work"]),
            moved(""),
            started("", &["check"]),
            moved(""),
            started("", &["work"]),
            moved("fan/x"),
            started("", &["work"]),
            started("fan/x", &["fan", "x", "work"]),
        ] {
            numbers.extend(visits.on_event(&event).map(|visit| (visit.number, visit.attempt)));
        }
        assert_eq!(numbers, [(1, 1), (1, 2), (1, 1), (2, 1), (2, 2), (1, 1)]);
    }
}
