//! What commands print about runs: of a step that is repaired and checked, of fan-outs, questions and
//! reopened runs, and of a demo.

use super::published::Shapes;
use crate::PROGRAM;
use crate::runs::project::{BAD, GOOD, WorkflowProject, replies};
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// What `show`, `runs` and other commands print about a run.
const KINDS: [&str; 13] = [
    "run",
    "show-step",
    "show-diff",
    "show-claims",
    "show-trouble",
    "event",
    "runs",
    "answer",
    "claims-stats",
    "receipt",
    "receipt-verify",
    "replay",
    "log",
];

/// Asserts the shape of everything that is printed about the last run; returns its report and its
/// events.
#[track_caller]
fn assert_all(project: &TestProject, shapes: &Shapes) -> (Value, Vec<Value>) {
    let json = |arguments: &[&str]| project.run(&[arguments, &["--format", "json"]].concat());
    let fits = |kind: &str, arguments: &[&str]| {
        let output = json(arguments);
        let printed = output.json();
        shapes.assert_fits(kind, &printed);
        printed
    };
    let report = fits("run", &["show", "last"]);
    let events = project.run(&["show", "last", "--events"]).json_lines();
    shapes.assert_each_fits("event", &events);
    fits("show-claims", &["show", "last", "--claims"]);
    fits("show-trouble", &["show", "last", "--trouble"]);
    let steps = ["attempts", "commands"].map(|list| report[list].as_array().unwrap().clone());
    let paths: BTreeSet<String> = steps
        .concat()
        .iter()
        .map(|attempt| {
            let path = attempt["path"].as_array().unwrap().iter();
            path.map(|part| part.as_str().unwrap()).collect::<Vec<_>>().join("/")
        })
        .collect();
    for path in paths.iter().take(2) {
        fits("show-step", &["show", "last", path]);
        let diff = json(&["show", "last", path, "--diff"]);
        if diff.is_success() {
            shapes.assert_fits("show-diff", &diff.json());
        }
    }
    fits("runs", &["runs"]);
    fits("answer", &["answer"]);
    fits("claims-stats", &["claims", "stats"]);
    fits("claims-stats", &["claims", "stats", "--by", "contract,field,agent,player,model,version"]);
    let receipt = fits("receipt", &["receipt", "last"]);
    project.write("receipt.json", receipt.to_string());
    fits("receipt-verify", &["receipt", "verify", "receipt.json"]);
    std::fs::remove_file(project.path("receipt.json")).unwrap();
    (report, events)
}

#[track_caller]
fn assert_kinds(events: &[Value], expected: &[&str]) {
    let kinds: BTreeSet<&str> =
        events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    for kind in expected {
        assert!(kinds.contains(kind), "no {kind} in {kinds:?}");
    }
}

const FIX: &str = "\
contract: scene/fix
version: 1
fields: { files_changed: [string], tests_passing: boolean, note?: string }
claims:
  files_changed: { kind: files-changed, policy: require }
  tests_passing: { kind: command, check: test }
examples: [{ files_changed: [other.rs], tests_passing: true }]
";

const FLOW: &str = "\
workflow: fix
version: 1
inputs: { task: { type: string } }
variables: { note: { type: string, initial: '' } }
budget: { attempts: 50 }
agents: { fixer: { contract: scene/fix, prompt: 'Do it: {{ task }}', access: workspace-write } }
contracts: [contracts]
limits: { rounds: { max: 3, then: over } }
start: fix
states:
  fix:
    agent: fixer
    checks: [lint, absent]
    next:
      - { when: result.tests_passing, set: { note: \"'fine'\" }, go: save }
      - { go: fix, counts: rounds, reason: \"'again'\" }
  save: { commit: { message: 'fix: it', paths: run.changed }, go: list }
  list: { changes: { since: run.base }, go: shell }
  shell: { command: [sh, -c, 'echo 3 tests passed; exit 0'], go: done }
  done: { end: done }
  over: { end: exhausted }
";

/// A run whose agent returns no result, then a refuted one, then a good one. Its lines of the log.
fn ran() -> (TestProject, Vec<Value>) {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("contracts/fix.yaml", FIX);
    project.write("flow.yaml", FLOW);
    project
        .write("counterfoil.toml", "[checks]\ntest = \"grep -q good a.rs\"\nlint = \"cat a.rs\"\n");
    project.write("a.rs", "bad\n");
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25});
    let reply = |files: &[&str], text: Option<&str>| {
        let result = json!({"files_changed": files, "tests_passing": true});
        json!({
            "agent": "fixer", "text": text.map_or(result.to_string(), str::to_owned),
            "writes": {"a.rs": "good\n"}, "usage": usage,
        })
    };
    let script = json!({"replies": [
        reply(&[], Some("I could not decide.")), reply(&["a.rs", "b.rs"], None), reply(&["a.rs"], None),
    ]});
    project.write("script.json", script.to_string());
    project.commit_all("base");
    let mut command = project.command(&[
        "run",
        "flow.yaml",
        "--agent",
        "script:script.json",
        "--task",
        "it",
        "--format",
        "json",
    ]);
    let output = command.env("COUNTERFOIL_LOG", "info").output();
    Shapes::of(&["run"]).assert_fits("run", &output.json());
    assert_eq!(output.json()["outcome"], "done", "{output:?}");
    let lines = output.stderr.lines().map(|line| serde_json::from_str(line).unwrap());
    (project, lines.collect())
}

#[test]
fn a_run_with_repairs_claims_checks_and_a_commit_has_its_shapes() {
    let shapes = Shapes::of(&KINDS);
    let (project, log) = ran();
    let targets: BTreeSet<&str> = log.iter().map(|line| line["target"].as_str().unwrap()).collect();
    assert_eq!(
        targets,
        BTreeSet::from(["counterfoil::message", "counterfoil::rejected", "counterfoil::run"])
    );
    assert!(log.iter().any(|line| line["span"].is_object()), "{log:#?}");
    shapes.assert_each_fits("log", &log);
    let (report, events) = assert_all(&project, &shapes);
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["repairs_asked"], 2, "{attempt:#}");
    assert!(attempt["earlier_claims"].is_object(), "{attempt:#}");
    let builtin: Vec<&str> = report["commands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|command| command["deed"].as_object()?.keys().next().map(String::as_str))
        .collect();
    for kind in ["checks", "commit", "changes"] {
        assert!(builtin.contains(&kind), "no {kind} in {builtin:?}");
    }
    assert!(events.iter().any(|event| event["kind"] == "moved" && event["set"].is_object()));
    let receipt = project.run(&["receipt", "last", "--format", "json"]).json();
    for list in ["steps", "claims", "checks", "commits"] {
        assert!(!receipt[list].as_array().unwrap().is_empty(), "{list}: {receipt:#}");
    }
    // The checks are run again.
    project.write("receipt.json", receipt.to_string());
    let again = ["receipt", "verify", "receipt.json", "--rerun", "--format", "json"];
    let verified = project.run(&again).json();
    shapes.assert_fits("receipt-verify", &verified);
    assert!(!verified["checks"].as_array().unwrap().is_empty(), "{verified:#}");
    // With another contract, what was recorded has changed; a damaged recording is broken.
    project.run(&["export", "last", "rec"]).expect(0, &[]);
    project.write(
        "other.yaml",
        FIX.replace("note?: string", "proof: string")
            .replace("passing: true }", "passing: true, proof: x }"),
    );
    project.write("alone.txt", r#"{"files_changed": [], "tests_passing": true}"#);
    for arguments in [
        &["replay", "rec"][..],
        &["replay", "rec", "--contract", "other.yaml"],
        &["replay", "alone.txt", "--contract", "contracts/fix.yaml"],
    ] {
        let replayed = project.run(&[arguments, &["--format", "json"]].concat()).json();
        shapes.assert_fits("replay", &replayed);
    }
    std::fs::remove_dir_all(project.path("rec/attempts")).unwrap();
    let broken = project.run(&["replay", "rec", "--format", "json"]);
    if broken.code != Some(2) {
        shapes.assert_fits("replay", &broken.json());
    }
}

const QUESTIONS: &str = "
workflow: approve
agents: { worker: { contract: scene/step, prompt: Do it., repairs: 0 } }
contracts: [contracts]
start: approve
states:
  approve:
    ask: { question: \"Shall it go out?\", choices: [proceed, reject] }
    next:
      - { when: result.answer == \"proceed\", go: work }
      - { go: rejected, reason: \"'somebody said no'\" }
  work: { agent: worker, on: { contract: { go: over } }, go: done }
  done: { end: done }
  over: { end: failed }
  rejected: { end: blocked }
";

#[test]
fn a_run_that_asks_fails_and_is_reopened_has_its_shapes() {
    let shapes = Shapes::of(&[&KINDS[..], &["notification"]].concat());
    let project = WorkflowProject::new(QUESTIONS, &replies(&[BAD, GOOD]));
    let none = project.run(&["runs", "--format", "json"]);
    shapes.assert_fits("runs", &none.json());
    shapes.assert_fits("answer", &project.run(&["answer", "--format", "json"]).json());
    let waiting = project.run_workflow_with(&["--notify", "cat >> told"]);
    shapes.assert_fits("run", &waiting.report);
    assert_eq!(waiting.report["outcome"], "waiting");
    let (report, _) = assert_all(&project, &shapes);
    assert_eq!(report["questions"].as_array().unwrap().len(), 1);
    let answer = ["answer", "last", "approve", "proceed", "--resume", "--format", "json"];
    let failed = project.run(&answer).json();
    shapes.assert_fits("run", &failed);
    assert_eq!(failed["outcome"], "failed", "{failed:#}");
    let resume =
        ["resume", "last", "--because", "again", "--notify", "cat >> told", "--format", "json"];
    let done = project.run(&resume).json();
    shapes.assert_fits("run", &done);
    assert_eq!(
        (&done["outcome"], &done["reopened"][0]["because"]),
        (&json!("done"), &json!("again"))
    );
    let (_, events) = assert_all(&project, &shapes);
    assert_kinds(&events, &["asked", "answered", "run-reopened", "run-ended"]);
    let told = project.read("told");
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = told.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["question", "end"]);
    shapes.assert_each_fits("notification", &told);
    let stall = json!({"event": "stall", "run": "r", "text": "t", "silent_seconds": 600});
    shapes.assert_fits("notification", &stall);
}

const BUILD: &str = "
workflow: build
agents:
  planner: { contract: scene/tasks, prompt: Plan it., access: read-only }
  worker: { contract: scene/step, prompt: \"Build task {{ task.id }}!\", access: workspace-write }
contracts: [contracts]
variables: { tasks: { type: [{ id: string, after: [string], rank: integer }], initial: [] } }
start: plan
states:
  plan: { agent: planner, next: [{ set: { tasks: result.tasks }, go: build }] }
  build:
    each:
      in: tasks
      as: task
      key: task.id
      after: task.after
      rank: task.rank
      parallel: 2
      failures: collect
      agent: worker
    next:
      - { when: size(result.failed) == 0, go: done }
      - { go: report }
  done: { end: done }
  report: { end: blocked }
";

/// Two items write the same file in worktrees of their own: one is merged, one has a conflict, and a
/// third one fails.
#[test]
fn a_fan_out_in_worktrees_has_its_shapes() {
    let shapes = Shapes::of(&KINDS);
    let tasks: Vec<Value> =
        ["a", "b", "c"].map(|id| json!({"id": id, "after": [], "rank": 1})).to_vec();
    let work = |id: &str, text: Value| json!({"agent": "worker", "when": format!("task {id}!"), "text": text.to_string(), "writes": {"out.txt": format!("{id}\n")}, "delay_ms": 200});
    let script = json!({"replies": [
        {"agent": "planner", "text": json!({"tasks": tasks}).to_string()},
        work("a", json!({"ok": true})),
        work("b", json!({"ok": true})),
        {"agent": "worker", "when": "task c!", "fail": "agent"},
    ]});
    let project = WorkflowProject::new(BUILD, &script.to_string());
    project.init_git();
    project.write("out.txt", "0\n");
    project.commit_all("base");
    shapes.assert_fits("run", &project.run_workflow().report);
    let (_, events) = assert_all(&project, &shapes);
    assert_kinds(
        &events,
        &[
            "fanned-out",
            "fanned-in",
            "workspace-planned",
            "workspace-opened",
            "workspace-folded",
            "frame-ended",
        ],
    );
    let conflicts = |event: &Value| event["conflicts"].is_array() && event["kept"].is_string();
    assert!(events.iter().any(conflicts), "{events:#?}");
}

/// A demo has sub-workflows, limits, retries and artifacts.
#[test]
fn a_demo_of_a_pack_has_its_shapes() {
    let shapes = Shapes::of(&KINDS);
    let project = TestProject::nested(PROGRAM);
    std::fs::remove_dir_all(project.repo()).unwrap();
    let keep = project.repo().display().to_string();
    let mut demo = project.command(&["demo", "review-fix", "--keep", &keep]);
    let output = demo.current_dir(project.root()).output();
    assert!(output.is_success(), "{output:?}");
    let (_, events) = assert_all(&project, &shapes);
    assert_kinds(&events, &["frame-opened", "attempt-ended", "moved", "run-ended"]);
}

/// What the first version did not write is not required of an event.
#[test]
fn the_events_of_the_first_version_have_the_shape() {
    let shapes = Shapes::of(&["event", "run"]);
    let project = TestProject::new(PROGRAM);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-1/journal.db");
    std::fs::copy(kept, project.state().join("journal.db")).unwrap();
    let events = project.run(&["show", "last", "--events"]).json_lines();
    assert!(events.len() > 5);
    shapes.assert_each_fits("event", &events);
    shapes.assert_fits("run", &project.run(&["show", "last", "--format", "json"]).json());
}
