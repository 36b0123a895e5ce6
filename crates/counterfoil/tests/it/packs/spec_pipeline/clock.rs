//! Timeouts and backoff with a simulated clock: the pack's own workflow, decided step by step.

use super::{error, succeeded};
use counterfoil_flow::{
    AssignedAgent, AttemptOutcome, AttemptWork, Budget, DECIDE, Ended, Event, RunState, Started,
    Turn, Usage, Workflow, check, turn,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A run whose clock the test moves.
struct Clocked {
    workflow: Workflow,
    fold: RunState,
    turn: Turn,
    now: i64,
}

impl Clocked {
    /// A simple run that begins at the time 0, with agents that are given time to recover.
    fn begin() -> Self {
        let pack = counterfoil_packs::pack("spec-pipeline").unwrap();
        let files = pack
            .files()
            .into_iter()
            .filter_map(|(path, _)| Some((path.to_owned(), pack.text(path)?.to_owned())));
        let files: BTreeMap<String, String> = files.collect();
        let registry = counterfoil_packs::registry_for("spec-pipeline");
        let workflow =
            check("workflow.yaml", &files, &registry).unwrap_or_else(|why| panic!("{why}"));
        let given = json!({"task": "Add a search", "size": "simple", "feature_id": "search", "min_coverage": 80});
        let player = AssignedAgent {
            spec: "somebody".to_owned(),
            backs_off: true,
            retry: BTreeMap::new(),
            model: None,
            version: None,
        };
        let agents = workflow.agents.keys().map(|name| (name.clone(), player.clone())).collect();
        let started = Event::RunStarted(Box::new(Started {
            run: "run".to_owned(),
            workflow: "spec-pipeline".to_owned(),
            version: 1,
            bundle: String::new(),
            decide: DECIDE,
            inputs: serde_json::from_value(given).unwrap(),
            agents,
            budget: Budget::default(),
            repo: ".".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }));
        let mut run = Self { workflow, fold: RunState::default(), turn: Turn::default(), now: 0 };
        run.tell(vec![started]);
        run.reaches_an_agent();
        run
    }

    /// Ends what is not an agent's work: there are no checks, and `survey` finds nothing.
    fn reaches_an_agent(&mut self) {
        while let Some(start) = self.turn.attempts.first() {
            let value = match &start.work {
                AttemptWork::Agent(_) => return,
                AttemptWork::Command(_) => Some(json!({"ok": true, "exit_code": 0, "output": ""})),
                AttemptWork::Read(_) => Some(json!({"text": "# Search\n"})),
                _ => None,
            };
            self.ends_once(AttemptOutcome::Accepted, value);
        }
    }

    fn tell(&mut self, facts: Vec<Event>) {
        self.turn = turn(&self.workflow, &mut self.fold, facts, self.now);
    }

    /// The attempt at work ends, with an envelope or without.
    fn ends(&mut self, outcome: AttemptOutcome, value: Option<Value>) {
        self.ends_once(outcome, value);
        self.reaches_an_agent();
    }

    fn ends_once(&mut self, outcome: AttemptOutcome, value: Option<Value>) {
        let attempt = self.turn.attempts[0].attempt.clone();
        self.tell(vec![Event::AttemptEnded(Box::new(Ended {
            attempt,
            outcome,
            value,
            partial: None,
            rejected: Vec::new(),
            reason: outcome.name().to_owned(),
            violations: Vec::new(),
            claims: Vec::new(),
            changed: None,
            reply: None,
            usage: Usage::default(),
            reset_at: None,
            tree: Some("tree".to_owned()),
            checks: std::collections::BTreeMap::new(),
        }))]);
    }

    fn says(&mut self, envelope: Value) {
        self.ends(AttemptOutcome::Accepted, Some(envelope));
    }

    /// Nothing happens until the clock is where something is due.
    fn waits(&mut self) {
        assert!(self.turn.attempts.is_empty(), "{:?} is at work", self.working());
        let wake = self.turn.wake_at.expect("something is due");
        self.now = wake - 1;
        self.tell(Vec::new());
        assert!(self.turn.attempts.is_empty(), "it began too early");
        self.now = wake;
        self.tell(Vec::new());
    }

    /// The attempts that just began.
    fn working(&self) -> Vec<&str> {
        self.turn.attempts.iter().map(|start| start.attempt.as_str()).collect()
    }
}

#[test]
fn external_service_error_waits_1_2_and_4_seconds_and_then_asks() {
    let mut run = Clocked::begin();
    let mut waited = Vec::new();
    for _ in 0..3 {
        let before = run.now;
        run.says(error("specify", "ExternalServiceError"));
        run.waits();
        waited.push(run.now - before);
        assert_eq!(run.working().len(), 1);
    }
    assert_eq!(waited, [1000, 2000, 4000]);
    run.says(error("specify", "ExternalServiceError"));
    assert!(run.turn.attempts.is_empty());
    let open: Vec<&String> = run.fold.open_questions().map(|(id, _)| id).collect();
    assert_eq!(open, ["resolve"]);
}

#[test]
fn timeout_error_is_tried_again_at_once() {
    let mut run = Clocked::begin();
    run.says(error("specify", "TimeoutError"));
    assert_eq!(run.working().len(), 1, "nothing is waited for");
    run.says(error("specify", "TimeoutError"));
    assert!(run.turn.attempts.is_empty());
    assert_eq!(run.fold.open_questions().count(), 1, "once is all");
}

#[test]
fn a_session_that_takes_too_long_is_started_again_once_and_then_the_run_fails() {
    let mut run = Clocked::begin();
    run.ends(AttemptOutcome::Timeout, None);
    assert_eq!(run.working().len(), 1);
    run.ends(AttemptOutcome::Timeout, None);
    let ended = run.fold.ended.as_ref().expect("it ended");
    assert_eq!(
        (ended.outcome.name(), ended.cause.map(counterfoil_flow::Cause::name)),
        ("failed", Some("timeout"))
    );
}

#[test]
fn a_connection_that_fails_is_tried_again_after_1_2_and_4_seconds() {
    let mut run = Clocked::begin();
    let mut waited = Vec::new();
    for _ in 0..3 {
        let before = run.now;
        run.ends(AttemptOutcome::Transport, None);
        run.waits();
        waited.push(run.now - before);
    }
    assert_eq!(waited, [1000, 2000, 4000]);
    run.says(succeeded("specify"));
    assert_eq!(
        run.fold.open_questions().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        ["approve"]
    );
}
