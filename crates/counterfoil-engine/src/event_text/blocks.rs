//! Every event of a part of a run in words, without the events before that part.
//!
//! An event has the same words wherever the part begins: its words depend on the events of its block
//! and on a fixed number of events before the block.

use super::{EventText, beginning, claims::refuted_text, quiet::quiet_text};
use crate::journal::StoredEvent;
use counterfoil_contract::text::{escape_control, truncate};
use counterfoil_flow::{AttemptOutcome, Event, Outcome, RunState};
use std::collections::VecDeque;

/// The events of a block. Blocks begin at the events 1, 101, 201 and so on.
const BLOCK: u64 = 100;
/// The events before a block that are read for its words.
const LOOK_BACK: u64 = 100;
/// The longest text, in characters.
const MAX_TEXT: usize = 600;

/// An event of a run in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventInWords {
    /// The number of the event in the run.
    pub seq: u64,
    /// The time of the event, in milliseconds since 1970.
    pub at: i64,
    /// The attempt that it is about, if it is about one.
    pub attempt: Option<String>,
    /// The path of the state that it is about; empty if it is about the run.
    pub path: String,
    /// The mark of the text: `✗` for a failure, `↺` for something that is repeated, `–` for what was
    /// cancelled.
    pub sign: String,
    /// What happened, on one line.
    pub text: String,
}

impl EventInWords {
    /// Whether something went wrong, or is done again because of that. Of an attempt, an event is so
    /// if and only if `Attempt::is_trouble` says it of the attempt.
    pub fn is_trouble(&self) -> bool {
        matches!(self.sign.as_str(), "✗" | "↺")
    }

    /// Whether it is about a state with this name, or about something inside of it.
    pub fn is_about(&self, state: &str) -> bool {
        self.path == state || self.path.split('/').any(|part| part == state)
    }
}

/// Says what the events of a part of a run are, in order.
#[derive(Debug)]
pub struct EventsInWords {
    run: String,
    workflow: String,
    text: EventText,
    /// The last events, the oldest in front.
    recent: VecDeque<(i64, Event)>,
    /// The state of the run is not known here.
    unknown: RunState,
}

impl EventsInWords {
    /// For a run of a workflow.
    pub fn new(run: &str, workflow: &str) -> Self {
        Self {
            run: run.to_owned(),
            workflow: workflow.to_owned(),
            text: EventText::from_middle(),
            recent: VecDeque::new(),
            unknown: RunState::default(),
        }
    }

    /// The number of the event with which one has to begin, so that the words of an event are those
    /// that it has everywhere.
    pub fn begin_for(seq: u64) -> u64 {
        let block = seq.saturating_sub(1) / BLOCK * BLOCK + 1;
        block.saturating_sub(LOOK_BACK).max(1)
    }

    /// The next event in words.
    pub fn on_event(&mut self, stored: &StoredEvent) -> EventInWords {
        if stored.seq % BLOCK == 1 {
            self.begin_block();
        }
        let event: Option<Event> = serde_json::from_slice(&stored.body).ok();
        let text = match &event {
            Some(event) => {
                with_refuted(without_failure(self.text_of(event, stored.at), event), event)
            }
            None => "✗ the event cannot be read".to_owned(),
        };
        let line = escape_control(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        let (sign, text) = line.split_once(' ').unwrap_or(("·", line.as_str()));
        let in_words = EventInWords {
            seq: stored.seq,
            at: stored.at,
            attempt: event.as_ref().and_then(attempt_of).map(str::to_owned),
            path: event.as_ref().map(|event| self.text.places.of(event)).unwrap_or_default(),
            sign: sign.to_owned(),
            text: truncate(text, MAX_TEXT).into_owned(),
        };
        if let Some(event) = event {
            self.recent.push_back((stored.at, event));
            if self.recent.len() as u64 > LOOK_BACK {
                self.recent.pop_front();
            }
        }
        in_words
    }

    fn begin_block(&mut self) {
        self.text = EventText::from_middle();
        for (at, event) in &self.recent {
            let _ = self.text.message(event, *at, &self.unknown);
        }
    }

    fn text_of(&mut self, event: &Event, at: i64) -> String {
        // It learns from all events, also from those that have other words here.
        let text = self.text.message(event, at, &self.unknown);
        if let Some((what, because)) = beginning(event, &self.run, &self.workflow) {
            return format!("· {what}{because}");
        }
        text.unwrap_or_else(|| quiet_text(event))
    }
}

/// The text of an event. What was cancelled did not fail.
fn without_failure(text: String, event: &Event) -> String {
    let is_cancelled = match event {
        Event::AttemptEnded(ended) => ended.outcome == AttemptOutcome::Cancelled,
        Event::RunEnded { outcome, .. } => *outcome == Outcome::Cancelled,
        Event::CancelRequested { .. } => true,
        _ => false,
    };
    match text.strip_prefix('✗').filter(|_| is_cancelled) {
        Some(rest) => format!("–{rest}"),
        None => text,
    }
}

/// The text of an event with the claims that it refutes. An end with such claims is no success.
fn with_refuted(text: String, event: &Event) -> String {
    let claims = match event {
        Event::RepairAsked { claims, .. } => claims,
        Event::AttemptEnded(ended) => &ended.claims,
        _ => return text,
    };
    let Some(refuted) = refuted_text(claims) else { return text };
    match text.strip_prefix(['✓', '·', '–']) {
        Some(rest) => format!("✗{rest}; refuted: {refuted}"),
        None => format!("{text}; refuted: {refuted}"),
    }
}

/// The attempt that an event is about.
fn attempt_of(event: &Event) -> Option<&str> {
    match event {
        Event::AttemptStarted { attempt, .. }
        | Event::RepairAsked { attempt, .. }
        | Event::ConversationOpened { attempt, .. }
        | Event::AttemptLost { attempt, .. } => Some(attempt),
        Event::AttemptEnded(ended) => Some(&ended.attempt),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_flow::Ended;
    use serde_json::json;

    fn stored(seq: u64, event: &Event) -> StoredEvent {
        let body = serde_json::to_vec(event).unwrap();
        StoredEvent { seq, at: 0, kind: event.kind().to_owned(), body }
    }

    /// A run in which each third event begins an attempt, and the one after it ends it.
    fn event(seq: u64) -> Event {
        let (n, id) = (u32::try_from(seq / 3).unwrap(), format!("work#{}", seq / 3));
        match seq % 3 {
            0 => Event::AttemptStarted {
                attempt: id,
                frame: String::new(),
                path: vec!["work".to_owned()],
                agent: Some("coder".to_owned()),
                n,
                contract: None,
                builtin: None,
            },
            1 => {
                let outcome =
                    if n % 2 == 0 { AttemptOutcome::Accepted } else { AttemptOutcome::Timeout };
                Event::AttemptEnded(Box::new(Ended::new(id, outcome)))
            }
            _ => Event::StepFailed { frame: String::new(), reason: "no\nvalue".to_owned() },
        }
    }

    fn words(from: u64, to: u64) -> Vec<EventInWords> {
        let mut words = EventsInWords::new("a", "demo");
        let begin = EventsInWords::begin_for(from);
        let all = (begin..=to).map(|seq| words.on_event(&stored(seq, &event(seq))));
        all.filter(|event| event.seq >= from).collect()
    }

    #[test]
    fn an_event_has_the_same_words_wherever_one_begins() {
        let whole = words(1, 450);
        assert_eq!(whole.len(), 450);
        for from in [2, 99, 100, 101, 102, 250, 401, 450] {
            let at = usize::try_from(from).unwrap() - 1;
            assert_eq!(words(from, 450), whole[at..], "{from}");
        }
        for seq in [1, 100, 101, 200, 201, 202] {
            assert!(seq - EventsInWords::begin_for(seq) < BLOCK + LOOK_BACK, "{seq}");
        }
    }

    #[test]
    fn words_have_a_sign_a_place_and_the_attempt() {
        let words = words(3, 5);
        let shown: Vec<(&str, &str, Option<&str>, &str)> = words
            .iter()
            .map(|event| {
                let attempt = event.attempt.as_deref();
                (event.sign.as_str(), event.path.as_str(), attempt, event.text.as_str())
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("·", "work", Some("work#1"), "work: coder"),
                ("✗", "work", Some("work#1"), "work: timeout"),
                ("✗", "work", None, "work: no value"),
            ]
        );
        assert!(!words[0].is_trouble() && words[1].is_trouble());
        assert!(words[0].is_about("work") && !words[0].is_about("wor"));
    }

    #[test]
    fn a_question_and_its_answer_belong_to_the_state_that_asks() {
        let answered = |question: &str| Event::Answered {
            question: question.to_owned(),
            answer: "yes".to_owned(),
            by: "ada".to_owned(),
            from: None,
        };
        let asked = Event::Asked { frame: "gate".to_owned(), questions: Vec::new() };
        let mut words = EventsInWords::new("a", "demo");
        let mut path = |event: &Event| words.on_event(&stored(2, event)).path;
        assert_eq!(path(&asked), "");
        for (question, state) in [
            ("approve", "approve"),
            ("approve#2", "approve"),
            ("gate/v1.2#x/approve", "gate/v1.2#x/approve"),
            ("gate/approve.when#3", "gate/approve"),
        ] {
            assert_eq!(path(&answered(question)), state, "{question}");
        }
    }

    #[test]
    fn a_fan_out_is_about_its_own_state() {
        let read = |json: serde_json::Value| -> Event { serde_json::from_value(json).unwrap() };
        let opened = |frame: &str, parent: Option<&str>, machine: &str, state: &str| {
            read(json!({"frame-opened": {"frame": frame, "parent": parent, "machine": machine,
                "item": parent.map(|_| "a"), "state": state, "inputs": {}, "variables": {}}}))
        };
        let started = |attempt: &str, frame: &str, path: &[&str]| {
            read(json!({"attempt-started": {"attempt": attempt, "frame": frame, "path": path,
                "agent": "coder", "n": 1}}))
        };
        let items = json!([{"key": "a", "value": 1}]);
        let fanned_out = read(json!({"fanned-out":
            {"frame": "", "items": items, "parallel": 1, "strict": true}}));
        let fanned_in = read(json!({"fanned-in": {"frame": ""}}));
        let ended =
            read(json!({"frame-ended": {"frame": "all/a", "outcome": "done", "reason": ""}}));
        let base = read(json!({"attempt-started": {"attempt": "base/checks#1", "frame": "",
            "path": ["base", "checks"], "n": 1, "deed": {"base-checks": ["test"]}}}));
        let moved = read(json!({"moved": {"frame": "", "from": "all", "to": "report"}}));
        let mut words = EventsInWords::new("a", "demo");
        let mut path = |event: &Event| words.on_event(&stored(2, event)).path;
        for (event, expected) in [
            (opened("", None, "", "all"), "all"),
            (base, "base/checks"),
            (fanned_out.clone(), "all"),
            (opened("all/a", Some(""), "one", "make"), "all/a/make"),
            (started("all/a/make#1", "all/a", &["all", "a", "make"]), "all/a/make"),
            (ended, "all/a/make"),
            (fanned_in.clone(), "all"),
            (moved, "all"),
            (fanned_out, "report"),
            (opened("report/a", Some(""), "", "report"), "report/a"),
            (fanned_in.clone(), "report"),
        ] {
            assert_eq!(path(&event), expected, "{event:?}");
        }
        // Nothing is known of what was before.
        let mut words = EventsInWords::new("a", "demo");
        let mut path = |event: &Event| words.on_event(&stored(2, event)).path;
        assert_eq!(path(&opened("all/a", Some(""), "one", "make")), "all/a/make");
        assert_eq!(path(&fanned_in), "all");
    }

    #[test]
    fn what_was_cancelled_did_not_fail() {
        let ended = |outcome| Event::RunEnded {
            outcome,
            cause: None,
            reason: "cancelled by ada".to_owned(),
            state: "work".to_owned(),
            exit: None,
        };
        let asked = Event::CancelRequested { by: "ada".to_owned(), from: None };
        let mut words = EventsInWords::new("a", "demo");
        for (event, expected, is_trouble) in [
            (asked, "– cancelled by ada", false),
            (ended(Outcome::Cancelled), "– the run ended: cancelled: cancelled by ada", false),
            (ended(Outcome::Failed), "✗ the run ended: failed: cancelled by ada", true),
        ] {
            let event = words.on_event(&stored(2, &event));
            assert_eq!(format!("{} {}", event.sign, event.text), expected);
            assert_eq!(event.is_trouble(), is_trouble);
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_event_too() {
        let mut words = EventsInWords::new("a", "demo");
        let broken = StoredEvent { seq: 1, at: 0, kind: "moved".to_owned(), body: b"{".to_vec() };
        let event = words.on_event(&broken);
        assert_eq!((event.sign.as_str(), event.text.as_str()), ("✗", "the event cannot be read"));
    }
}
