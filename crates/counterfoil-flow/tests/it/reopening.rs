//! Runs that ended are reopened at the step that ended them, each in the smallest workflow that
//! shows it.

use counterfoil_contract::{Definition, Registry};
use counterfoil_flow::{
    AttemptOutcome, Budget, BudgetPart, Changes, DECIDE, Ended, Event, History, Outcome,
    ReopenError, Request, RunState, SameEnd, Started, Turn, Undone, Usage, Workflow,
    WorkspaceOpKind, check, turn,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const CONTRACT: &str = "
contract: t/step
version: 1
fields: { ok: boolean }
examples: [{ ok: true }]
";

struct Play {
    workflow: Workflow,
    run: RunState,
    turn: Turn,
    events: Vec<(Event, i64)>,
    now: i64,
}

impl Play {
    fn begin(text: &str, budget: Budget) -> Self {
        let mut registry = Registry::new();
        registry.add(Definition::from_yaml(CONTRACT, "contract.yaml").unwrap()).unwrap();
        let files = BTreeMap::from([("play.yaml".to_owned(), text.to_owned())]);
        let workflow = check("play.yaml", &files, &registry).unwrap_or_else(|why| panic!("{why}"));
        let inputs = workflow.main.inputs.iter();
        let inputs = inputs.map(|(name, input)| (name.clone(), input.default.clone().unwrap()));
        let started = Event::RunStarted(Box::new(Started {
            run: "run".to_owned(),
            workflow: "play".to_owned(),
            version: 1,
            bundle: String::new(),
            decide: DECIDE,
            inputs: inputs.collect(),
            agents: BTreeMap::new(),
            budget,
            repo: ".".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }));
        let mut play = Self {
            workflow,
            run: RunState::default(),
            turn: Turn::default(),
            events: Vec::new(),
            now: 1000,
        };
        play.tell([started]);
        play
    }

    fn tell<const N: usize>(&mut self, facts: [Event; N]) -> &mut Self {
        self.turn = turn(&self.workflow, &mut self.run, facts.into(), self.now);
        self.events.extend(self.turn.events.iter().cloned());
        let mut replayed = RunState::default();
        for (event, at) in &self.events {
            let text = serde_json::to_string(event).unwrap();
            replayed.apply(&serde_json::from_str(&text).unwrap(), *at);
        }
        assert_eq!(replayed, self.run, "a replay gives another state");
        self
    }

    fn ends(&mut self, attempt: &str, outcome: AttemptOutcome, value: Option<Value>) -> &mut Self {
        self.tell([Event::AttemptEnded(Box::new(Ended {
            value,
            reason: format!("the {} of {attempt}", outcome.name()),
            usage: Usage { cost_usd: 0.5, ..Usage::default() },
            tree: Some("tree".to_owned()),
            ..Ended::new(attempt, outcome)
        }))])
    }

    fn accept(&mut self, attempt: &str, ok: bool) -> &mut Self {
        self.ends(attempt, AttemptOutcome::Accepted, Some(json!({"ok": ok})))
    }

    fn fail(&mut self, attempt: &str) -> &mut Self {
        self.ends(attempt, AttemptOutcome::Agent, None)
    }

    /// Performs the workspace operations that are asked for. Work is kept as a patch.
    fn do_workspaces(&mut self) -> &mut Self {
        while let Some(op) = self.turn.workspace_ops.first().cloned() {
            let (frame, workspace) = (op.frame, op.workspace);
            let fact = match op.kind {
                WorkspaceOpKind::Open => {
                    Event::WorkspaceOpened { frame, workspace, notes: Vec::new() }
                }
                WorkspaceOpKind::Drop => {
                    let kept = Some(format!("{workspace}.patch"));
                    Event::WorkspaceDropped { frame, workspace, kept }
                }
                WorkspaceOpKind::Merge => Event::WorkspaceMerged {
                    frame,
                    workspace,
                    changed: 1,
                    conflicts: Vec::new(),
                    kept: None,
                    notes: Vec::new(),
                },
            };
            let before = std::mem::take(&mut self.turn.attempts);
            self.tell([fact]);
            self.turn.attempts.splice(0..0, before);
        }
        self
    }

    fn reopening(&self, changes: Changes) -> Result<Event, ReopenError> {
        let mut history = History::default();
        for (event, at) in &self.events {
            history.on_event(&self.workflow, event, *at);
        }
        assert_eq!(*history.run_state(), self.run);
        let request = Request { by: "kim".into(), changes, ..Request::default() };
        history.reopen(&self.workflow, &request, self.now)
    }

    fn reopen(&mut self, changes: Changes) -> &mut Self {
        let event = self.reopening(changes).unwrap_or_else(|why| panic!("{why}"));
        self.tell([event])
    }

    fn needs(&self) -> SameEnd {
        match self.reopening(Changes::default()) {
            Err(ReopenError::SameEnd { needs, .. }) => needs,
            other => panic!("{other:?}"),
        }
    }

    fn started(&self) -> Vec<&str> {
        self.turn.attempts.iter().map(|start| start.attempt.as_str()).collect()
    }

    fn ended(&self) -> Option<Outcome> {
        self.run.ended.as_ref().map(|ended| ended.outcome)
    }
}

fn limits(limits: &[(&str, u64)]) -> Changes {
    let limits = limits.iter().map(|(name, max)| ((*name).to_owned(), *max)).collect();
    Changes { limits, ..Changes::default() }
}

fn input(name: &str, value: Value) -> Changes {
    Changes { inputs: Map::from_iter([(name.to_owned(), value)]), ..Changes::default() }
}

const AGENT: &str =
    "agents: { a: { contract: t/step, prompt: \"Do it.\", retries: { agent: 1 } } }";

fn flow(rest: &str) -> String {
    format!("workflow: play\n{AGENT}\n{rest}")
}

#[test]
fn a_step_that_failed_is_entered_again_with_all_its_retries() {
    let text = flow(
        "start: first\nstates:\n  first: { agent: a, go: work }\n  work: { agent: a, go: done }\n  done: { end: done }\n",
    );
    let mut play = Play::begin(&text, Budget::default());
    play.accept("first#1", true).fail("work#1");
    play.now += 60_000;
    play.tell([]).fail("work#2");
    assert_eq!(play.ended(), Some(Outcome::Failed));
    let used = play.run.usage.wall_ms;
    play.now += 3_600_000;
    play.reopen(Changes::default());
    assert_eq!(play.run.usage.wall_ms, used, "the time in between does not count");
    assert_eq!(play.started(), ["work#3"], "the first step is finished");
    assert_eq!(play.fail("work#3").started(), ["work#4"], "it is retried");
    assert_eq!(play.accept("work#4", true).ended(), Some(Outcome::Done));
    assert!(matches!(play.reopening(Changes::default()), Err(ReopenError::Final { .. })));
}

#[test]
fn a_step_whose_result_led_to_an_end_is_entered_again_also_through_states_without_a_step() {
    let text = flow(
        "variables: { fine: { type: boolean, initial: true } }
start: first
states:
  first: { agent: a, go: work }
  work: { agent: a, next: [{ when: result.ok, go: done }, { set: { fine: \"false\" }, go: route }] }
  route: { next: [{ when: fine, go: done }, { go: stuck }] }
  done: { end: done }
  stuck: { end: blocked }
",
    );
    let mut play = Play::begin(&text, Budget::default());
    play.accept("first#1", true).accept("work#1", false);
    assert_eq!(play.ended(), Some(Outcome::Blocked));
    play.reopen(Changes::default());
    assert_eq!(play.started(), ["work#2"]);
    assert_eq!(play.run.frames[""].variables["fine"], json!(true), "as it was before the end");
    assert_eq!(play.accept("work#2", false).ended(), Some(Outcome::Blocked));
    assert_eq!(play.reopen(Changes::default()).accept("work#3", true).ended(), Some(Outcome::Done));
}

#[test]
fn a_limit_that_is_used_up_needs_a_higher_one_and_repeats_nothing() {
    let text = flow(
        "inputs: { most: { type: integer, default: 1 } }
limits: { rounds: { max: most, then: over } }
start: work
states:
  work: { agent: a, go: review }
  review: { agent: a, next: [{ when: result.ok, go: done }, { go: work, counts: rounds }] }
  done: { end: done }
  over: { end: exhausted }
",
    );
    let mut play = Play::begin(&text, Budget::default());
    play.accept("work#1", true).accept("review#1", false);
    play.accept("work#2", true).accept("review#2", false);
    assert_eq!(play.ended(), Some(Outcome::Exhausted));
    assert_eq!(play.needs(), SameEnd::Limit("rounds".to_owned()));
    let unknown = play.reopening(limits(&[("round", 2)]));
    assert!(matches!(unknown, Err(ReopenError::UnknownLimit { similar: Some(_), .. })));
    play.reopen(limits(&[("rounds", 2)]));
    assert_eq!(play.started(), ["work#3"], "the review stays as it is");
    play.accept("work#3", true).accept("review#3", false);
    assert_eq!(play.ended(), Some(Outcome::Exhausted));
    // The changed limit stays, whatever the input says.
    assert_eq!(play.reopen(limits(&[("rounds", 9)])).started(), ["work#4"]);
}

#[test]
fn an_input_that_a_limit_depends_on_grants_more_rounds() {
    let text = flow(
        "inputs: { most: { type: integer, default: 1 } }
limits: { rounds: { max: most, then: tell } }
start: work
states:
  work: { agent: a, next: [{ when: result.ok, go: done }, { go: work, counts: rounds }] }
  tell: { agent: a, go: over }
  done: { end: done }
  over: { end: exhausted }
",
    );
    let mut play = Play::begin(&text, Budget::default());
    play.accept("work#1", false).accept("work#2", false).accept("tell#1", true);
    assert_eq!(play.ended(), Some(Outcome::Exhausted));
    let again = play.reopening(Changes::default()).unwrap();
    assert!(matches!(&again, Event::RunReopened(one) if one.state == "tell"), "{again:?}");
    play.reopen(input("most", json!(2)));
    assert_eq!(play.started(), ["work#3"], "back to where the limit was met");
    assert_eq!(play.run.inputs["most"], json!(2));
}

#[test]
fn a_changed_input_decides_again_before_a_step_is_repeated() {
    let text = flow(
        "inputs: { lenient: { type: boolean, default: false } }
start: work
states:
  work: { agent: a, next: [{ when: result.ok || lenient, go: next }, { go: stuck }] }
  next: { agent: a, go: done }
  done: { end: done }
  stuck: { end: failed }
",
    );
    let mut play = Play::begin(&text, Budget::default());
    play.accept("work#1", false);
    assert_eq!(play.reopen(input("lenient", json!(true))).started(), ["next#1"]);
    let mut play = Play::begin(&text, Budget::default());
    play.accept("work#1", false);
    assert_eq!(play.reopen(input("lenient", json!(false))).started(), ["work#2"]);
}

#[test]
fn a_run_that_nothing_can_change_is_not_reopened() {
    let text = "workflow: play\ninputs: { go: { type: boolean, default: false } }\nstart: route\nstates:\n  route: { next: [{ when: go, go: ask }, { go: stuck }] }\n  ask: { ask: { question: \"Well?\" }, go: done }\n  done: { end: done }\n  stuck: { end: failed }\n";
    let mut play = Play::begin(text, Budget::default());
    assert_eq!(play.ended(), Some(Outcome::Failed));
    assert_eq!(play.needs(), SameEnd::Values);
    play.reopen(input("go", json!(true)));
    assert_eq!(play.run.open_questions().count(), 1);
}

#[test]
fn a_budget_that_ran_out_needs_a_larger_total() {
    let text = flow(
        "start: first\nstates:\n  first: { agent: a, go: work }\n  work: { agent: a, go: done }\n  done: { end: done }\n",
    );
    let budget = Budget { cost_usd: Some(0.5), ..Budget::default() };
    let mut play = Play::begin(&text, budget);
    play.accept("first#1", true);
    assert_eq!(play.ended(), Some(Outcome::Budget));
    assert_eq!(play.needs(), SameEnd::Budget(BudgetPart::Cost));
    let more = |cost| Changes {
        budget: Budget { cost_usd: Some(cost), ..Budget::default() },
        ..Changes::default()
    };
    assert!(play.reopening(more(0.4)).is_err(), "it is a total, not an addition");
    assert_eq!(play.reopen(more(1.5)).started(), ["work#1"]);
    assert_eq!(play.accept("work#1", true).ended(), Some(Outcome::Done));
    assert!((play.run.usage.cost_usd - 1.0).abs() < 1e-9, "what was spent before counts");
}

const ITEMS: &str = "inputs: { tasks: { type: [string], default: [a, b, c] } }
start: all
states:
  all:
    each: { in: tasks, as: task, key: task, run: one, MORE }
    next: [{ when: size(result.failed) == 0, go: done }, { go: failed }]
  done: { end: done }
  failed: { end: failed }
workflows:
  one:
    start: make
    states:
      make: { agent: a, go: look }
      look: { agent: a, next: [{ when: result.ok, go: done }, { go: bad }] }
      done: { end: done }
      bad: { end: failed }
";

#[test]
fn only_the_failed_items_start_again_each_at_the_step_that_ended_it() {
    for (more, first) in [
        ("parallel: 1, failures: collect, workspace: repository", vec!["all/b/look#2"]),
        ("parallel: 1, failures: stop, workspace: repository", vec!["all/b/look#2"]),
    ] {
        let mut play = Play::begin(&flow(&ITEMS.replace("MORE", more)), Budget::default());
        play.accept("all/a/make#1", true).accept("all/a/look#1", true);
        play.accept("all/b/make#1", true).accept("all/b/look#1", false);
        if more.contains("collect") {
            play.accept("all/c/make#1", true).accept("all/c/look#1", false);
        }
        assert_eq!(play.ended(), Some(Outcome::Failed), "{more}");
        play.reopen(Changes::default());
        assert_eq!(play.started(), first, "{more}: one at a time, and `make` is finished");
        play.accept("all/b/look#2", true);
        if more.contains("collect") {
            assert_eq!(play.started(), ["all/c/look#2"]);
            play.accept("all/c/look#2", true);
        } else {
            assert_eq!(play.started(), ["all/c/make#1"], "it had not started");
            play.accept("all/c/make#1", true).accept("all/c/look#1", true);
        }
        assert_eq!(play.ended(), Some(Outcome::Done), "{more}");
    }
}

#[test]
fn a_sub_workflow_continues_where_it_ended() {
    let text = flow(
        "start: part
states:
  part: { run: one, go: done }
  done: { end: done }
workflows:
  one:
    limits: { rounds: { max: 1, then: over } }
    start: make
    states:
      make: { agent: a, go: look }
      look: { agent: a, next: [{ when: result.ok, go: done }, { go: make, counts: rounds }] }
      done: { end: done }
      over: { end: exhausted }
",
    );
    let mut play = Play::begin(&text, Budget::default());
    for n in 1..=2 {
        play.accept(&format!("part/make#{n}"), true).accept(&format!("part/look#{n}"), false);
    }
    assert_eq!(play.ended(), Some(Outcome::Exhausted));
    assert_eq!(play.needs(), SameEnd::Limit("one.rounds".to_owned()));
    play.reopen(limits(&[("one.rounds", 2)]));
    assert_eq!(play.started(), ["part/make#3"]);
    play.accept("part/make#3", true).accept("part/look#3", true);
    assert_eq!(play.ended(), Some(Outcome::Done));
}

#[test]
fn the_work_of_an_item_is_applied_to_its_new_worktree() {
    let text = flow(&ITEMS.replace("MORE", "parallel: 2, failures: collect, workspace: worktree"));
    let mut play = Play::begin(&text, Budget::default());
    play.do_workspaces().accept("all/a/make#1", true).accept("all/a/look#1", false);
    play.do_workspaces().accept("all/b/make#1", true).accept("all/b/look#1", true);
    play.do_workspaces().accept("all/c/make#1", true).accept("all/c/look#1", true);
    play.do_workspaces();
    assert_eq!(play.ended(), Some(Outcome::Failed));
    play.reopen(Changes::default());
    let op = play.turn.workspace_ops[0].clone();
    assert_eq!((op.kind, op.workspace.as_str()), (WorkspaceOpKind::Open, "all/a#2"));
    assert_eq!(op.restore.as_deref(), Some("all/a#1.patch"));
    play.do_workspaces();
    assert_eq!(play.started(), ["all/a/look#2"], "`make` is finished, and its work is there");
    assert_eq!(play.turn.attempts[0].work.workspace(), Some("all/a#2"));
    play.accept("all/a/look#2", true);
    assert_eq!(play.turn.workspace_ops[0].kind, WorkspaceOpKind::Merge);
    assert_eq!(play.do_workspaces().ended(), Some(Outcome::Done));
}

#[test]
fn a_result_whose_worktree_was_not_merged_when_the_budget_ran_out_is_merged_then() {
    let text = flow(
        "start: work
states:
  work: { agent: a, workspace: worktree, go: next }
  next: { agent: a, go: done }
  done: { end: done }
",
    );
    let budget = Budget { cost_usd: Some(10.0), ..Budget::default() };
    let mut play = Play::begin(&text, budget);
    play.do_workspaces().accept("work#1", true);
    assert_eq!(play.turn.workspace_ops[0].kind, WorkspaceOpKind::Merge);
    play.tell([Event::BudgetReached { what: "something".to_owned() }]).do_workspaces();
    assert_eq!(play.ended(), Some(Outcome::Budget));
    play.reopen(Changes::default());
    assert_eq!(play.started(), Vec::<&str>::new(), "the step has its result");
    let op = play.turn.workspace_ops[0].clone();
    assert_eq!((op.kind, op.restore.as_deref()), (WorkspaceOpKind::Open, Some("work#1.patch")));
    play.do_workspaces();
    assert!(play.events.iter().any(|(event, _)| matches!(event,
        Event::WorkspaceMerged { workspace, .. } if workspace == "work#2")));
    assert_eq!(play.started(), ["next#1"]);
}

#[test]
fn a_cancelled_run_is_not_reopened_and_a_run_is_reopened_once() {
    let text =
        flow("start: work\nstates:\n  work: { agent: a, go: done }\n  done: { end: done }\n");
    let mut play = Play::begin(&text, Budget::default());
    assert_eq!(play.reopening(Changes::default()), Err(ReopenError::Open));
    play.tell([Event::CancelRequested { by: "kim".to_owned(), from: None }]);
    play.ends("work#1", AttemptOutcome::Cancelled, None);
    assert_eq!(
        play.reopening(Changes::default()),
        Err(ReopenError::Final { outcome: "cancelled" })
    );
    let mut play = Play::begin(&text, Budget::default());
    play.fail("work#1");
    play.now += 60_000;
    play.tell([]).fail("work#2");
    let event = play.reopening(Changes::default()).unwrap();
    play.tell([event.clone(), event]);
    assert_eq!(play.started(), ["work#3"]);
    let reopened = play.events.iter().filter(|(event, _)| event.kind() == "run-reopened");
    assert_eq!(reopened.count(), 1, "the second one came too late");
}

#[test]
fn a_run_that_was_undone_is_not_reopened() {
    let text =
        flow("start: work\nstates:\n  work: { agent: a, go: done }\n  done: { end: done }\n");
    let mut play = Play::begin(&text, Budget::default());
    play.fail("work#1");
    play.now += 60_000;
    play.tell([]).fail("work#2");
    let event = play.reopening(Changes::default()).unwrap();
    let undone = Undone {
        by: "kim".to_owned(),
        from: None,
        steps: vec!["work#1".to_owned()],
        files: vec!["a.txt".to_owned()],
        total: 1,
    };
    let (undone, used) = (Event::RunUndone(Box::new(undone)), play.run.usage);
    play.now += 60_000;
    play.run.apply(&undone, play.now);
    play.events.push((undone, play.now));
    assert_eq!(play.run.usage, used, "the time after the end is not that of the run");
    assert_eq!(
        play.reopening(Changes::default()),
        Err(ReopenError::Undone { by: "kim".to_owned() })
    );
    // Somebody decided to reopen it before.
    play.tell([event]);
    assert_eq!(play.ended(), Some(Outcome::Failed));
}

#[test]
fn frames_that_cannot_be_read_leave_the_run_ended() {
    let text = flow(
        "start: work\nstates:\n  work: { agent: a, next: [{ when: result.ok, go: done }, { go: bad }] }\n  done: { end: done }\n  bad: { end: failed }\n",
    );
    let mut play = Play::begin(&text, Budget::default());
    play.accept("work#1", false);
    let Event::RunReopened(mut reopened) = play.reopening(Changes::default()).unwrap() else {
        panic!("not reopened")
    };
    reopened.frames.insert(String::new(), json!({"phase": "unheard-of"}));
    play.run.apply(&Event::RunReopened(reopened), 2000);
    assert_eq!(play.ended(), Some(Outcome::Failed));
}
