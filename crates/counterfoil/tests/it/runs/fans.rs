//! Fan-outs over lists: order, parallel work, failures, results.

use crate::runs::project::WorkflowProject;
use serde_json::{Value, json};

/// Plans tasks, works through them, and reports what failed.
const BUILD: &str = "
workflow: build
agents:
  planner: { contract: scene/tasks, prompt: Plan it. }
  worker: { contract: scene/step, prompt: \"Build task {{ task.id }}!\" }
contracts: [contracts]
variables: { failed: { type: [string], initial: [] } }
start: plan
states:
  plan: { agent: planner, go: build }
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
      - { set: { failed: \"result.failed.map(item, item.key + ' ' + item.outcome)\" }, go: report }
  done: { end: done }
  report: { end: blocked }
";

/// The planner's list becomes a variable that the fan-out reads.
fn build() -> String {
    BUILD
        .replace(
            "variables: {",
            "variables: { tasks: { type: [{ id: string, after: [string], rank: integer }], initial: [] },",
        )
        .replace(
            "plan: { agent: planner, go: build }",
            "plan: { agent: planner, next: [{ set: { tasks: result.tasks }, go: build }] }",
        )
}

fn tasks(of: &[(&str, &[&str], i64)]) -> String {
    let list: Vec<Value> = of
        .iter()
        .map(|(id, after, rank)| json!({"id": id, "after": after, "rank": rank}))
        .collect();
    format!("  - {{ agent: planner, text: '{}' }}\n", json!({"tasks": list}))
}

fn task(id: &str, more: &str) -> String {
    format!("  - {{ agent: worker, when: \"task {id}!\", {more} }}\n")
}

const OK: &str = "text: '{\"ok\": true}'";

#[test]
fn items_run_beside_each_other_and_take_their_own_replies() {
    let script = format!(
        "replies:\n{}{}{}{}",
        tasks(&[("a", &[], 1), ("b", &[], 1), ("c", &["a", "b"], 1)]),
        task("c", "text: '{\"ok\": true, \"note\": \"c\"}'"),
        task("b", "text: '{\"ok\": true, \"note\": \"b\"}', delay_ms: 500"),
        task("a", "text: '{\"ok\": true, \"note\": \"a\"}', delay_ms: 500"),
    );
    let ran = WorkflowProject::new(&build(), &script).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(
        ran.attempts(),
        ["plan#1 accepted", "build/a#1 accepted", "build/b#1 accepted", "build/c#1 accepted"]
    );
    let attempts = ran.report["attempts"].as_array().unwrap();
    for (at, key) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(attempts[at]["item"], key);
        assert_eq!(attempts[at]["path"], json!(["build", key]));
        assert_eq!(attempts[at]["value"]["note"], key);
    }
    let time = |at: usize, name: &str| attempts[at][name].as_i64().unwrap();
    assert!(time(2, "started_at") < time(1, "ended_at"), "b did not wait for a");
    assert!(
        time(3, "started_at") >= time(1, "ended_at").max(time(2, "ended_at")),
        "c waited for both"
    );
}

#[test]
fn rank_decides_who_comes_first() {
    let script = format!(
        "replies:\n{}{}{}{}",
        tasks(&[("a", &[], 3), ("b", &[], 1), ("c", &[], 2)]),
        task("a", OK),
        task("b", OK),
        task("c", OK)
    );
    let ran = WorkflowProject::new(&build().replace("parallel: 2", "parallel: 1"), &script)
        .run_workflow();
    assert_eq!(
        ran.attempts()[1..],
        ["build/b#1 accepted", "build/c#1 accepted", "build/a#1 accepted"]
    );
}

#[test]
fn collected_failures_let_the_others_go_on_and_skip_who_waits_for_them() {
    let script = format!(
        "replies:\n{}{}{}{}",
        tasks(&[("a", &[], 1), ("b", &[], 1), ("c", &["a"], 1), ("d", &["c"], 1)]),
        task("a", "fail: permission"),
        task("b", OK),
        task("c", OK),
    );
    let ran = WorkflowProject::new(&build(), &script).run_workflow();
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert_eq!(ran.report["variables"]["failed"], json!(["a failed", "c skipped", "d skipped"]));
    assert_eq!(ran.attempts().len(), 3, "{:?}", ran.attempts());
}

#[test]
fn a_failure_that_stops_ends_the_state_with_its_cause() {
    let flow = build()
        .replace("failures: collect", "failures: stop")
        .replace("parallel: 2", "parallel: 1");
    let script = format!(
        "replies:\n{}{}{}",
        tasks(&[("a", &[], 1), ("b", &[], 2)]),
        task("a", "fail: permission"),
        task("b", OK)
    );
    let ran = WorkflowProject::new(&flow, &script).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("permission"), 5));
    assert_eq!(ran.attempts(), ["plan#1 accepted", "build/a#1 permission"]);
    assert!(ran.reason().starts_with("item 'a': "), "{}", ran.reason());
}

#[test]
fn items_are_retried_each_for_itself() {
    let script = format!(
        "replies:\n{}{}{}{}{}",
        tasks(&[("a", &[], 1), ("b", &[], 1)]),
        task("a", "fail: transport"),
        task("a", OK),
        task("b", "fail: timeout"),
        task("b", OK)
    );
    let ran = WorkflowProject::new(&build(), &script).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    let mut attempts = ran.attempts();
    attempts.sort();
    assert_eq!(
        attempts,
        [
            "build/a#1 transport",
            "build/a#2 accepted",
            "build/b#1 timeout",
            "build/b#2 accepted",
            "plan#1 accepted"
        ]
    );
}

#[test]
fn items_that_wait_for_each_other_are_found_before_any_work() {
    let script =
        format!("replies:\n{}", tasks(&[("a", &["c"], 1), ("b", &["a"], 1), ("c", &["b"], 1)]));
    let ran = WorkflowProject::new(&build(), &script).run_workflow();
    assert_eq!(ran.report["outcome"], "failed");
    assert_eq!(ran.attempts(), ["plan#1 accepted"]);
    assert!(ran.reason().contains("a after c after b after a"), "{}", ran.reason());

    let flow = build().replace(
        "    next:\n      - { when: size",
        "    on: { order: { go: report, reason: problem.reason } }\n    next:\n      - { when: size",
    );
    let answered = WorkflowProject::new(&flow, &script).run_workflow();
    assert_eq!(answered.ended(), ("blocked", None, 7));
    assert_eq!(answered.report["path"][1]["trouble"], "order");
}

#[test]
fn an_item_after_one_that_is_not_there_is_named() {
    let script = format!("replies:\n{}", tasks(&[("a", &["z"], 1)]));
    let ran = WorkflowProject::new(&build(), &script).run_workflow();
    assert!(
        ran.reason().contains("'a' comes after 'z', which is not in the list"),
        "{}",
        ran.reason()
    );
    let script = format!("replies:\n{}", tasks(&[("a", &[], 1), ("a", &[], 1)]));
    let ran = WorkflowProject::new(&build(), &script).run_workflow();
    assert!(ran.reason().contains("two items have the key 'a'"), "{}", ran.reason());
}

#[test]
fn an_empty_list_is_done() {
    let ran = WorkflowProject::new(&build(), &format!("replies:\n{}", tasks(&[]))).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempts().len(), 1);
}

#[test]
fn an_item_can_be_a_sub_workflow_and_ask() {
    let flow = build()
        .replace("      agent: worker\n", "      run: one-task\n      with: { task: task }\n")
        + "workflows:
  one-task:
    inputs: { task: { id: string, after: [string], rank: integer } }
    limits: { tries: { max: 1, then: gave-up } }
    start: work
    states:
      work:
        agent: worker
        next: [{ when: result.ok, go: end }, { go: ask }]
      ask:
        ask: { question: \"Again {{ task.id }}?\", choices: [\"yes\", \"no\"] }
        next: [{ when: result.answer == \"yes\", go: work, counts: tries }, { go: gave-up }]
      end: { end: done }
      gave-up: { end: exhausted }
";
    let script = format!(
        "replies:\n{}{}{}{}",
        tasks(&[("a", &[], 1), ("b", &[], 1)]),
        task("a", "text: '{\"ok\": false, \"note\": \"no\"}'"),
        task("a", OK),
        task("b", OK)
    );
    let project = WorkflowProject::new(&flow, &script);
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("waiting", None, 4), "{}", ran.reason());
    assert_eq!(ran.report["questions"][0]["id"], "build/a/ask");
    assert_eq!(ran.report["questions"][0]["question"], "Again a?");
    let ran =
        project.run_json(&["answer", "last", "build/a/ask", "yes", "--resume", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0));
    let mine: Vec<&Value> = ran.report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["item"] == "a")
        .collect();
    assert_eq!(mine[1]["path"], json!(["build", "a", "work"]));
    assert_eq!(mine[1]["n"], 2);
}
