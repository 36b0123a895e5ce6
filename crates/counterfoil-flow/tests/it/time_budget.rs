//! The time budget of a run: `turn` returns the deadline in `wake_at` and ends the run itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use counterfoil_contract::{Definition, Registry};
use counterfoil_flow::{
    AttemptOutcome, Budget, DECIDE, Ended, Event, Outcome, Resumed, RunState, Started, Turn,
    Workflow, check, resume_facts, turn,
};
use serde_json::Map;
use std::collections::BTreeMap;

const CONTRACT: &str = "contract: t/make\nversion: 1\nfields: { ok: boolean }\n";
const WORKFLOW: &str = r#"
workflow: timed
agents: { make: { contract: t/make, prompt: "Make it." } }
start: work
states:
  work: { agent: make, next: [{ go: confirm }] }
  confirm: { ask: { question: "Go on?" }, next: [{ go: done }] }
  done: { end: done }
"#;

struct Timed {
    workflow: Workflow,
    run: RunState,
}

impl Timed {
    /// A run that started at 1000 and may take 500 ms.
    fn start() -> (Self, Turn) {
        let mut registry = Registry::new();
        registry.add(Definition::from_yaml(CONTRACT, "contract.yaml").unwrap()).unwrap();
        let files = BTreeMap::from([("timed.yaml".to_owned(), WORKFLOW.to_owned())]);
        let workflow = check("timed.yaml", &files, &registry).unwrap_or_else(|why| panic!("{why}"));
        let started = Event::RunStarted(Box::new(Started {
            run: "run".to_owned(),
            workflow: "timed".to_owned(),
            version: 1,
            bundle: String::new(),
            decide: DECIDE,
            inputs: Map::new(),
            agents: BTreeMap::new(),
            budget: Budget { time_ms: Some(500), ..Budget::default() },
            repo: ".".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }));
        let mut timed = Self { workflow, run: RunState::default() };
        let turned = timed.turn(vec![started], 1000);
        (timed, turned)
    }

    fn turn(&mut self, facts: Vec<Event>, now: i64) -> Turn {
        turn(&self.workflow, &mut self.run, facts, now)
    }
}

fn ended(attempt: &str, outcome: AttemptOutcome) -> Event {
    let value = (outcome == AttemptOutcome::Accepted).then(|| serde_json::json!({"ok": true}));
    Event::AttemptEnded(Box::new(Ended { value, ..Ended::new(attempt, outcome) }))
}

#[test]
fn a_run_wakes_at_its_deadline_and_ends_when_it_is_reached() {
    let (mut timed, first) = Timed::start();
    assert_eq!(first.wake_at, Some(1500));
    let early = timed.turn(Vec::new(), 1499);
    assert_eq!((early.events.len(), early.wake_at), (0, Some(1500)));
    let due = timed.turn(Vec::new(), 1500);
    assert!(matches!(due.events[..], [(Event::BudgetReached { .. }, 1500)]), "{:?}", due.events);
    assert_eq!((due.stops, due.wake_at), (vec!["work#1".to_owned()], None));
    timed.turn(vec![ended("work#1", AttemptOutcome::Cancelled)], 1510);
    assert_eq!(timed.run.ended.map(|ending| ending.outcome), Some(Outcome::Budget));
}

#[test]
fn time_spent_waiting_for_a_person_does_not_count() {
    let (mut timed, _) = Timed::start();
    let asked = timed.turn(vec![ended("work#1", AttemptOutcome::Accepted)], 1400);
    assert_eq!((timed.run.is_resting(), asked.wake_at), (true, None));
    let late = timed.turn(Vec::new(), 90_000);
    assert!(late.events.is_empty(), "{:?}", late.events);
    let answered = Event::Answered {
        question: "confirm".to_owned(),
        answer: "yes".to_owned(),
        by: "somebody".to_owned(),
        from: None,
    };
    timed.turn(vec![answered], 90_000);
    assert_eq!(timed.run.ended.map(|ending| ending.outcome), Some(Outcome::Done));
}

#[test]
fn a_resumed_run_has_the_rest_of_its_time() {
    let (mut timed, _) = Timed::start();
    timed.turn(vec![Event::RunStopped { reason: "stopped".to_owned() }], 1200);
    let facts = resume_facts(
        &timed.run,
        Resumed { by: "process 2".to_owned(), ..Resumed::default() },
        |_, _| counterfoil_flow::LostWork::default(),
    );
    assert!(
        matches!(&facts[..], [Event::RunResumed(_), Event::AttemptLost { attempt, .. }] if attempt == "work#1"),
        "{facts:?}"
    );
    let resumed = timed.turn(facts, 50_000);
    assert_eq!(resumed.attempts.len(), 1);
    assert_eq!(resumed.wake_at, Some(50_300));
}
