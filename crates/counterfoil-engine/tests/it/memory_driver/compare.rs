//! Runs the same workflow with the in-memory driver and with the engine: both must come to the same
//! end by the same events.

use super::core::MemoryRun;
use super::driver::MemoryDriver;
use crate::builtin::project::Project;
use counterfoil_agents::assignment::AgentAssignments;
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_engine::{Engine, NoopObserver, RunReport, StartOptions};
use counterfoil_flow::{AttemptOutcome, Budget, Event, Workflow, check};
use counterfoil_process::StopRequest;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

const CONTRACT: &str = "contract: t/work\nversion: 1\nfields: { note: string }\n\
                        examples: [{ note: done }]\n";

/// An agent that needs a repair, a command, a question, and a built-in step.
const SEQUENCE: &str = r#"
workflow: sequence
agents: { worker: { contract: t/work, prompt: "Work.", repairs: 2 } }
contracts: [work.yaml]
variables: { note: string?, code: integer?, choice: string?, text: string? }
start: work
states:
  work: { agent: worker, next: [{ set: { note: result.note }, go: test }] }
  test:
    command: [sh, -c, "cat out.txt && exit 3"]
    next: [{ set: { code: result.exit_code }, go: approve }]
  approve:
    ask: { question: "Shall it go out?", choices: [proceed, reject] }
    next: [{ set: { choice: result.answer }, go: look }]
  look: { read: out.txt, next: [{ set: { text: result.text }, go: done }] }
  done: { end: done }
"#;
const SEQUENCE_SCRIPT: &str = r#"
replies:
  - { agent: worker, text: 'no result here' }
  - { agent: worker, text: '{"note": "written"}', writes: { out.txt: "hello\n" } }
answers: [{ question: approve, answer: proceed }]
"#;

/// Items in worktrees of their own, one after the other, merged into the repository.
const FAN_OUT: &str = r#"
workflow: fan
agents: { worker: { contract: t/work, prompt: "Work on {{ part }}." } }
contracts: [work.yaml]
variables: { parts: { type: [string], initial: [a, b] } }
start: fan
states:
  fan:
    each: { in: parts, as: part, key: part, agent: worker, parallel: 1, workspace: worktree }
    go: done
  done: { end: done }
"#;
const FAN_OUT_SCRIPT: &str = r#"
replies:
  - { agent: worker, when: "Work on a", text: '{"note": "a"}', writes: { a.txt: "a\n" } }
  - { agent: worker, when: "Work on b", text: '{"note": "b"}', writes: { b.txt: "b\n" } }
"#;

/// An agent whose work is checked by the project's own check.
const CHECKED: &str = r#"
workflow: checked
agents: { worker: { contract: t/work, prompt: "Work." } }
contracts: [work.yaml]
variables: { base: string?, now: string? }
start: work
states:
  work:
    agent: worker
    checks: [test, lint]
    next:
      - when: checks.test.status == "passed"
        set: { base: run.base_checks.test.status, now: checks.lint.status }
        go: done
      - { go: red }
  red: { end: failed }
  done: { end: done }
"#;
const CHECKED_SCRIPT: &str = r#"
replies:
  - { agent: worker, text: '{"note": "written"}', writes: { out.txt: "hello\n" } }
"#;

/// An agent whose result is never valid.
const FAILURE: &str = r#"
workflow: failure
agents: { worker: { contract: t/work, prompt: "Work.", repairs: 1, retries: { contract: 1 } } }
contracts: [work.yaml]
start: work
states:
  work: { agent: worker, go: done }
  done: { end: done }
"#;
const FAILURE_SCRIPT: &str = r"
replies:
  - { agent: worker, text: 'one' }
  - { agent: worker, text: 'two' }
  - { agent: worker, text: 'three' }
  - { agent: worker, text: 'four' }
";

/// The result of one workflow with one driver.
#[derive(Debug, PartialEq)]
struct Outcome {
    outcome: String,
    variables: Map<String, Value>,
    kinds: Vec<&'static str>,
    attempts: Vec<(String, AttemptOutcome)>,
}

struct Both {
    memory: MemoryRun,
    transcripts: BTreeMap<String, Vec<u8>>,
    outcome: Outcome,
    /// The repository of the in-memory driver.
    project: Project,
}

fn workflow(text: &str) -> Workflow {
    let files = BTreeMap::from([
        ("workflow.yaml".to_owned(), text.to_owned()),
        ("work.yaml".to_owned(), CONTRACT.to_owned()),
    ]);
    check("workflow.yaml", &files, &counterfoil_contract::Registry::new())
        .unwrap_or_else(|why| panic!("{why}"))
}

/// A repository, and agents that follow the script.
fn prepare(workflow: &Workflow, script: &str) -> (Project, AgentAssignments, tempfile::TempDir) {
    let checks = "[checks]\ntest = \"grep hello out.txt\"\n";
    let project = Project::new(&[("README.md", "hello\n"), ("counterfoil.toml", checks)]);
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("script.yaml");
    std::fs::write(&file, script).unwrap();
    let spec = format!("script:{}", file.display());
    let environment = AgentEnvironment::default();
    let agents = AgentAssignments::from_specs(
        workflow,
        &BTreeMap::new(),
        Some(&spec),
        &environment,
        &BTreeMap::new(),
    );
    (project, agents.unwrap(), state)
}

fn attempts<'e>(events: impl Iterator<Item = &'e Event>) -> Vec<(String, AttemptOutcome)> {
    let ended = events.filter_map(|event| match event {
        Event::AttemptEnded(ended) => Some((ended.attempt.clone(), ended.outcome)),
        _ => None,
    });
    ended.collect()
}

/// Runs the workflow with both drivers and compares them.
fn run_both(text: &str, script: &str) -> Both {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();

    let (project, agents, state) = prepare(&workflow(text), script);
    let scratch = state.path().join("state");
    let driver = MemoryDriver::new(workflow(text), agents, &project.repo, &scratch);
    let (memory, transcripts) = runtime.block_on(driver.drive(&project.repo));
    let outcome = Outcome {
        outcome: memory.run_state.ended.as_ref().unwrap().outcome.name().to_owned(),
        variables: memory.run_state.frames[""].variables.clone(),
        kinds: memory.events.iter().map(|(event, _)| event.kind()).collect(),
        attempts: attempts(memory.events.iter().map(|(event, _)| event)),
    };

    let (other, agents, state) = prepare(&workflow(text), script);
    let engine = Engine::open(&state.path().join("state"), None).unwrap();
    let options = StartOptions {
        workflow: workflow(text),
        inputs: Map::new(),
        budget: Budget::default(),
        agents,
        repo: other.repo.clone(),
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    };
    let (_stop, stopped) = watch::channel(StopRequest::None);
    let report: RunReport =
        runtime.block_on(engine.start(options, Arc::new(NoopObserver), stopped)).unwrap();
    let mut events = Vec::new();
    engine.each_event(&report.run, 1, |event, _| events.push(event)).unwrap();
    let expected = Outcome {
        outcome: report.outcome,
        variables: report.variables,
        kinds: events.iter().map(Event::kind).collect(),
        attempts: attempts(events.iter()),
    };
    assert_eq!(outcome, expected);
    Both { memory, transcripts, outcome, project }
}

#[test]
fn a_sequence_with_a_repair_a_command_and_a_question_runs_in_memory() {
    let both = run_both(SEQUENCE, SEQUENCE_SCRIPT);
    assert_eq!(both.outcome.outcome, "done");
    let expected = json!({"note": "written", "code": 3, "choice": "proceed", "text": "hello\n"});
    assert_eq!(Value::from(both.outcome.variables), expected);
    assert!(both.outcome.kinds.contains(&"repair-asked"));
    let texts: Vec<String> = both
        .transcripts
        .values()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect();
    for part in ["Work.", "no result here", "{\"note\": \"written\"}", "hello\n"] {
        assert!(texts.iter().any(|text| text.contains(part)), "{part} is in no transcript");
    }
}

#[test]
fn items_in_worktrees_run_in_memory() {
    let both = run_both(FAN_OUT, FAN_OUT_SCRIPT);
    assert_eq!(both.outcome.outcome, "done");
    for kind in ["workspace-opened", "workspace-folded"] {
        assert_eq!(both.outcome.kinds.iter().filter(|found| **found == kind).count(), 2, "{kind}");
    }
    for name in ["a", "b"] {
        let text = std::fs::read_to_string(both.project.path(format!("{name}.txt"))).unwrap();
        assert_eq!(text, format!("{name}\n"));
    }
}

#[test]
fn checks_of_a_step_run_in_memory() {
    let both = run_both(CHECKED, CHECKED_SCRIPT);
    assert_eq!(both.outcome.outcome, "done");
    let expected = json!({"base": "failed", "now": "not-configured"});
    assert_eq!(Value::from(both.outcome.variables), expected);
    let attempts: Vec<&str> =
        both.outcome.attempts.iter().map(|(attempt, _)| attempt.as_str()).collect();
    assert_eq!(attempts, ["base/checks#1", "work#1", "work/checks#1"]);
}

#[test]
fn a_run_that_fails_in_memory_fails_for_the_same_reason() {
    let both = run_both(FAILURE, FAILURE_SCRIPT);
    assert_eq!(both.outcome.outcome, "failed");
    let outcomes: Vec<AttemptOutcome> =
        both.outcome.attempts.iter().map(|(_, outcome)| *outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::Contract, AttemptOutcome::Contract]);
}

#[test]
fn the_events_in_memory_give_the_state_again() {
    let both = run_both(SEQUENCE, SEQUENCE_SCRIPT);
    let replayed = MemoryRun::from_events(both.memory.events.clone());
    let json = |run: &MemoryRun| serde_json::to_value(&run.run_state).unwrap();
    assert_eq!(json(&replayed), json(&both.memory));
}
