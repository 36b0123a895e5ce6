//! Bugs that the simulation found, each with the smallest workflow that shows it.

use crate::simulation::contracts::registry;
use counterfoil_flow::{
    AttemptOutcome, Budget, DECIDE, Ended, Event, Outcome, Resumed, RunState, Started, Turn, Usage,
    Workflow, check, turn,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

struct Play {
    workflow: Workflow,
    run_state: RunState,
}

impl Play {
    /// Starts a run. The agents `check` and `plan` use contracts of the simulation.
    fn begin(text: &str, budget: Budget) -> (Self, Turn) {
        let files = BTreeMap::from([("play.yaml".to_owned(), text.to_owned())]);
        let workflow =
            check("play.yaml", &files, &registry()).unwrap_or_else(|why| panic!("{why}"));
        let mut play = Self { workflow, run_state: RunState::default() };
        let started = Event::RunStarted(Box::new(Started {
            run: "run".to_owned(),
            workflow: "play".to_owned(),
            version: 1,
            bundle: String::new(),
            decide: DECIDE,
            inputs: Map::new(),
            agents: BTreeMap::new(),
            budget,
            repo: ".".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }));
        let turn = play.tell([started]);
        (play, turn)
    }

    fn tell<const N: usize>(&mut self, facts: [Event; N]) -> Turn {
        turn(&self.workflow, &mut self.run_state, facts.into(), 1000)
    }

    fn accept(&mut self, attempt: &str, value: Value) -> Turn {
        self.tell([accepted(attempt, value)])
    }
}

fn accepted(attempt: &str, value: Value) -> Event {
    Event::AttemptEnded(Box::new(Ended {
        value: Some(value),
        usage: Usage { cost_usd: 0.1, ..Usage::default() },
        ..Ended::new(attempt, AttemptOutcome::Accepted)
    }))
}

fn started(turn: &Turn) -> Vec<&str> {
    turn.attempts.iter().map(|start| start.attempt.as_str()).collect()
}

fn task(id: &str, size: u32) -> Value {
    json!({"id": id, "after": [], "rank": 0, "size": size})
}

/// The items of the fan-outs.
const TASKS: &str =
    "tasks: { type: [{ id: string, after: [string], rank: integer, size: integer }], initial: [] }";

#[test]
fn a_limit_that_is_used_up_sets_no_other_limit_back() {
    let text = r#"
workflow: play
agents: { check: { contract: sim/check, prompt: "Check it." } }
limits: { once: { max: 1, then: work }, rounds: { max: 2, then: over } }
start: first
states:
  first: { next: [{ go: work, counts: once, resets: [rounds] }] }
  work: { agent: check, next: [{ when: result.passed, go: done }, { go: first, counts: rounds }] }
  done: { end: done }
  over: { end: exhausted }
"#;
    let (mut play, _) = Play::begin(text, Budget::default());
    for n in 1..=3 {
        play.accept(&format!("work#{n}"), json!({"passed": false, "topic": "red"}));
    }
    assert_eq!(play.run_state.ended.map(|ended| ended.outcome), Some(Outcome::Exhausted));
}

#[test]
fn an_item_whose_sub_workflow_fans_out_itself_does_so() {
    let text = format!(
        r#"
workflow: play
variables: {{ {TASKS} }}
agents: {{ plan: {{ contract: sim/plan, prompt: "Plan it." }}, check: {{ contract: sim/check, prompt: "Check it." }} }}
start: plan
states:
  plan: {{ agent: plan, next: [{{ set: {{ tasks: result.tasks }}, go: all }}] }}
  all: {{ each: {{ in: tasks, as: task, key: task.id, run: one }}, go: done }}
  done: {{ end: done }}
workflows:
  one:
    variables: {{ {TASKS} }}
    start: plan
    states:
      plan: {{ agent: plan, next: [{{ set: {{ tasks: result.tasks }}, go: parts }}] }}
      parts: {{ each: {{ in: tasks, as: part, key: part.id, agent: check }}, go: done }}
      done: {{ end: done }}
"#
    );
    let (mut play, _) = Play::begin(&text, Budget::default());
    play.accept("plan#1", json!({"tasks": [task("a", 1)]}));
    let turn = play.accept("all/a/plan#1", json!({"tasks": [task("b", 1)]}));
    assert_eq!(started(&turn), ["all/a/parts/b#1"]);
}

#[test]
fn a_look_for_files_that_comes_late_is_dropped() {
    let text = r#"
workflow: play
agents: { check: { contract: sim/check, prompt: "Check it." } }
start: work
states:
  work: { agent: check, needs: [README.md], go: done }
  done: { end: done }
"#;
    let (mut play, _) = Play::begin(text, Budget::default());
    let looked = |missing: &[&str]| Event::ContextChecked {
        frame: String::new(),
        missing: missing.iter().map(|&path| path.to_owned()).collect(),
        checks: None,
    };
    assert_eq!(started(&play.tell([looked(&[])])), ["work#1"]);
    let turn = play.tell([looked(&["README.md"])]);
    assert!(turn.events.is_empty() && play.run_state.attempts.contains_key("work#1"));
}

#[test]
fn items_at_work_are_waited_for_when_another_cannot_begin() {
    let text = format!(
        r#"
workflow: play
variables: {{ {TASKS} }}
agents: {{ plan: {{ contract: sim/plan, prompt: "Plan it." }}, check: {{ contract: sim/check, prompt: "Check it." }} }}
start: plan
states:
  plan: {{ agent: plan, next: [{{ set: {{ tasks: result.tasks }}, go: all }}] }}
  all: {{ each: {{ in: tasks, as: task, key: task.id, parallel: 2, workspace: repository, run: one, with: {{ share: 12 / task.size }} }}, go: done }}
  done: {{ end: done }}
workflows:
  one:
    inputs: {{ share: integer }}
    start: work
    states: {{ work: {{ agent: check, go: done }}, done: {{ end: done }} }}
"#
    );
    let (mut play, _) = Play::begin(&text, Budget::default());
    let turn = play.accept("plan#1", json!({"tasks": [task("a", 1), task("b", 0)]}));
    assert_eq!(started(&turn), ["all/a/work#1"]);
    assert!(play.run_state.ended.is_none(), "it ended over an attempt in flight");
    play.accept("all/a/work#1", json!({"passed": true, "topic": "red"}));
    let ended = play.run_state.ended.expect("the run ended");
    assert_eq!(ended.outcome, Outcome::Failed);
    assert!(ended.reason.contains("divides by zero"), "{}", ended.reason);
}

#[test]
fn a_question_never_has_the_id_of_one_before() {
    let text = format!(
        r#"
workflow: play
variables: {{ {TASKS} }}
agents: {{ plan: {{ contract: sim/plan, prompt: "Plan it." }} }}
start: plan
states:
  plan: {{ agent: plan, next: [{{ set: {{ tasks: result.tasks }}, go: all }}] }}
  all: {{ each: {{ in: tasks, as: task, key: task.id, run: one }}, go: done }}
  done: {{ end: done }}
workflows:
  one:
    limits: {{ rounds: {{ max: 5, then: done }} }}
    start: ask
    states:
      ask:
        ask: {{ question: "Again?", choices: ["yes", "no"] }}
        next: [{{ when: 'result.answer == "no"', go: done }}, {{ go: ask, counts: rounds }}]
      done: {{ end: done }}
"#
    );
    let (mut play, _) = Play::begin(&text, Budget::default());
    play.accept("plan#1", json!({"tasks": [task("x#1", 1)]}));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = play.run_state.open_questions().next().expect("a question is open").0.clone();
        play.tell([Event::Answered {
            question: id.clone(),
            answer: "yes".to_owned(),
            by: "me".to_owned(),
            from: None,
        }]);
        ids.push(id);
    }
    assert_eq!(ids, ["all/x#1/ask", "all/x#1/ask#2", "all/x#1/ask#3"]);
}

#[test]
fn attempts_that_start_together_all_count_against_the_budget() {
    let text = format!(
        r#"
workflow: play
variables: {{ {TASKS} }}
agents: {{ plan: {{ contract: sim/plan, prompt: "Plan it." }}, check: {{ contract: sim/check, prompt: "Check it." }} }}
start: plan
states:
  plan: {{ agent: plan, next: [{{ set: {{ tasks: result.tasks }}, go: all }}] }}
  all: {{ each: {{ in: tasks, as: task, key: task.id, parallel: 2, workspace: repository, agent: check }}, go: done }}
  done: {{ end: done }}
"#
    );
    let (mut play, _) = Play::begin(&text, Budget { attempts: Some(4), ..Budget::default() });
    let turn = play.accept("plan#1", json!({"tasks": [task("a", 1), task("b", 1)]}));
    assert_eq!(started(&turn), ["all/a#1", "all/b#1"]);
    let lost = |attempt: &str| Event::AttemptLost {
        attempt: attempt.to_owned(),
        usage: Usage::default(),
        changed: Vec::new(),
    };
    let turn = play.tell([
        Event::RunResumed(Box::new(Resumed { by: "me".to_owned(), ..Resumed::default() })),
        lost("all/a#1"),
        lost("all/b#1"),
    ]);
    assert_eq!(started(&turn), ["all/a#2"], "the fourth attempt was the last");
    assert!(turn.events.iter().any(|(event, _)| matches!(event, Event::BudgetReached { .. })));
}
