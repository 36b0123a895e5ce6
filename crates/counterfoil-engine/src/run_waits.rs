//! When a run waited, and for what: for the answer of a person, or until a step is tried again.

use counterfoil_flow::Event;
use std::collections::BTreeMap;

/// A time in which a step of a run waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunWait {
    /// What it waited for.
    pub cause: WaitCause,
    /// When it began, in milliseconds since 1970.
    pub from: i64,
    /// When it was over; none if it is not.
    pub to: Option<i64>,
}

/// What a step of a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// The answer to a question, with its text.
    Answer(String),
    /// The time at which a step is tried again that failed in some way.
    Retry(String),
}

/// Collects the waits of a run from its events.
#[derive(Debug, Default)]
pub(crate) struct RunWaits {
    waits: Vec<RunWait>,
    /// The questions that are open, by id, and the frames that wait for a time, with their waits.
    open: BTreeMap<String, usize>,
    retries: BTreeMap<String, usize>,
}

impl RunWaits {
    /// Adds an event.
    pub(crate) fn on_event(&mut self, event: &Event, at: i64) {
        match event {
            Event::Asked { questions, .. } => {
                for asked in questions.iter().filter(|asked| !asked.optional) {
                    self.open.insert(asked.id.clone(), self.waits.len());
                    let cause = WaitCause::Answer(asked.question.clone());
                    self.waits.push(RunWait { cause, from: at, to: None });
                }
            }
            Event::Answered { question, .. } => {
                let wait = self.open.remove(question);
                self.end(wait, at);
            }
            Event::QuestionsCancelled { questions, .. } => {
                for question in questions {
                    let wait = self.open.remove(question);
                    self.end(wait, at);
                }
            }
            Event::RetryPlanned { frame, failure, not_before, .. } => {
                self.retries.insert(frame.clone(), self.waits.len());
                let cause = WaitCause::Retry(failure.name().to_owned());
                let to = Some((*not_before).max(at));
                self.waits.push(RunWait { cause, from: at, to });
            }
            // A person may have had it tried again earlier.
            Event::AttemptStarted { frame, .. } => {
                let wait = self.retries.remove(frame);
                self.end(wait, at);
            }
            Event::RunEnded { .. } => {
                let open = std::mem::take(&mut self.open);
                let retries = std::mem::take(&mut self.retries);
                for wait in open.into_values().chain(retries.into_values()) {
                    self.end(Some(wait), at);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, wait: Option<usize>, at: i64) {
        if let Some(wait) = wait.and_then(|wait| self.waits.get_mut(wait)) {
            wait.to = Some(wait.to.unwrap_or(at).min(at));
        }
    }

    /// The waits, in the order in which they began.
    pub(crate) fn all(&self) -> &[RunWait] {
        &self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn waits_end_with_what_they_wait_for() {
        let question = |id: &str, is_optional: bool| {
            json!({"id": id, "name": id, "question": "Ship it?", "form": "text",
                "optional": is_optional})
        };
        let retry = |not_before: i64| {
            json!({"retry-planned": {"frame": "", "trouble": "transport", "retry": 1,
                "after_ms": 10, "not_before": not_before}})
        };
        let started = json!({"attempt-started": {"attempt": "a#2", "frame": "", "path": ["a"],
            "n": 2}});
        let mut waits = RunWaits::default();
        for (at, event) in [
            (10, json!({"asked": {"frame": "", "questions": [question("a", false)]}})),
            (20, json!({"asked": {"frame": "", "questions": [question("b", true)]}})),
            (30, json!({"answered": {"question": "a", "answer": "yes", "by": "ann"}})),
            (40, retry(90)),
            (60, started.clone()),
            (70, retry(75)),
            (80, started),
            (100, json!({"asked": {"frame": "", "questions": [question("c", false)]}})),
        ] {
            waits.on_event(&serde_json::from_value(event).unwrap(), at);
        }
        let times: Vec<_> = waits.all().iter().map(|wait| (wait.from, wait.to)).collect();
        assert_eq!(times, [(10, Some(30)), (40, Some(60)), (70, Some(75)), (100, None)]);
        assert_eq!(waits.all()[0].cause, WaitCause::Answer("Ship it?".to_owned()));
        assert_eq!(waits.all()[1].cause, WaitCause::Retry("transport".to_owned()));
    }
}
