//! Runs that ended are reopened at the step that ended them.

use crate::runs::project::{BAD, GOOD, NOT_OK, WorkflowProject, looping, replies};
use serde_json::json;

const TWO: &str = "
workflow: two
agents: { worker: { contract: scene/step, prompt: \"Do {{ run.state }}.\", repairs: 0 } }
contracts: [contracts]
start: first
states:
  first: { agent: worker, go: second }
  second: { agent: worker, go: done }
  done: { end: done }
artifacts: [{ path: state.txt, template: state.txt }]
";

fn two(second: &[&str]) -> WorkflowProject {
    let project = WorkflowProject::new(TWO, &replies(&[&[GOOD], second].concat()));
    project.write("state.txt", "state {{ run.state }}\n");
    project
}

#[test]
fn a_failed_run_is_reopened_by_somebody_for_a_reason() {
    let project = two(&[BAD, GOOD]);
    let failed = project.run_workflow();
    assert_eq!(failed.ended(), ("failed", Some("contract"), 1));
    let before = project.run_json(&["runs", "--format", "json"]);
    assert_eq!(before.report[0]["reopened"], 0);
    let ran = project.run_json(&[
        "resume",
        "last",
        "--because",
        "the prompt was fixed",
        "--format",
        "json",
    ]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(ran.run_id(), failed.run_id());
    assert_eq!(ran.attempts(), ["first#1 accepted", "second#1 contract", "second#2 accepted"]);
    let reopened = &ran.report["reopened"][0];
    assert_eq!(reopened["by"], "kim");
    assert_eq!(reopened["because"], "the prompt was fixed");
    assert_eq!((&reopened["outcome"], &reopened["state"]), (&json!("failed"), &json!("second")));
    assert_eq!(project.read("state.txt"), "state done\n", "artifacts are published again");
    let runs = project.run_json(&["runs", "--format", "json"]);
    assert_eq!(runs.report[0]["reopened"], 1);
    assert_eq!(runs.report[0]["reopened_by"], "kim");
    let list = project.snapshot(&["runs"]);
    assert!(list.contains("done, reopened"), "{list}");
    let shown = project.snapshot(&["show", "last", "--timeline"]);
    assert!(shown.contains("reopened in 'second' by kim"), "{shown}");
    assert!(
        shown.contains("reopened by kim after it had ended as failed: the prompt was fixed"),
        "{shown}"
    );
    let words = project.run_refused(&["resume", "last"]);
    assert!(words.contains("ended as done") && words.contains("start a new one"), "{words}");
}

#[test]
fn the_summary_of_a_run_that_can_be_reopened_says_how() {
    let project = two(&[BAD]);
    let output = project.command(&["run", "flow.yaml", "--agent", "script:script.yaml"]).output();
    assert!(output.stderr.contains("reopen: counterfoil resume "), "{}", output.stderr);
}

#[test]
fn a_limit_that_is_still_used_up_is_said_with_the_flag_that_raises_it() {
    let project = WorkflowProject::new(&looping(1), &replies(&[NOT_OK, NOT_OK, GOOD]));
    assert_eq!(project.run_workflow().ended(), ("exhausted", None, 6));
    let words = project.run_refused(&["resume", "last"]);
    assert!(words.contains("would end as exhausted again at once"), "{words}");
    assert!(words.contains("`--limit rounds=N`"), "{words}");
    let words = project.run_refused(&["resume", "last", "--limit", "round=2"]);
    assert!(words.contains("no limit 'round'") && words.contains("rounds"), "{words}");
    let ran = project.run_json(&["resume", "last", "--limit", "rounds=2", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(ran.attempts(), ["work#1 accepted", "work#2 accepted", "work#3 accepted"]);
}

#[test]
fn a_budget_that_ran_out_is_said_with_the_flag_that_raises_it() {
    let workflow = TWO.replace("start: first", "budget: { attempts: 1 }\nstart: first");
    let project = WorkflowProject::new(&workflow, &replies(&[GOOD, GOOD]));
    project.write("state.txt", "state {{ run.state }}\n");
    assert_eq!(project.run_workflow().ended(), ("budget", None, 6));
    let words = project.run_refused(&["resume", "last"]);
    assert!(words.contains("`--max-attempts N`"), "{words}");
    let run = project.show_last()["run"].as_str().unwrap().to_owned();
    let way = format!("reopen: counterfoil resume {run} --max-attempts N\n");
    project.run(&["show"]).expect(0, &[&way]);
    let ran = project.run_json(&["resume", "last", "--max-attempts", "2", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(ran.attempts(), ["first#1 accepted", "second#1 accepted"]);
}

#[test]
fn an_input_can_change_when_a_run_is_reopened() {
    let workflow = looping(1)
        .replace("rounds: { max: 1,", "rounds: { max: most,")
        .replace("start: work", "inputs: { most: { type: integer, default: 1 } }\nstart: work");
    let project = WorkflowProject::new(&workflow, &replies(&[NOT_OK, NOT_OK, GOOD]));
    assert_eq!(project.run_workflow().ended(), ("exhausted", None, 6));
    let words = project.run_refused(&["resume", "last", "--input", "most=many"]);
    assert!(words.contains("input 'most'"), "{words}");
    let words = project.run_refused(&["resume", "last", "--input", "least=1"]);
    assert!(words.contains("no input 'least'"), "{words}");
    let ran = project.run_json(&["resume", "last", "--input", "most=2", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
}
