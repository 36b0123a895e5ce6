//! Transitions: guards, assignments, limits, failures, computed targets, sub-workflows.

use crate::runs::project::{BAD, GOOD, WorkflowProject, replies};
use serde_json::json;

/// `work`, and where each trouble leads.
const TROUBLES: &str = "
workflow: troubles
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: work
states:
  work:
    agent: worker
    needs: [plan.md]
    on:
      contract: { go: by-contract, reason: problem.reason }
      agent: { go: by-agent, reason: \"has(problem.cause) ? problem.outcome + '/' + problem.cause : '?'\" }
      transport: by-transport
      limit: by-limit
      permission: by-permission
      timeout: by-timeout
      blocked: by-blocked
    retries: { transport: 0, limit: 0, timeout: 0 }
    go: done
  done: { end: done }
  by-contract: { end: blocked }
  by-agent: { end: blocked }
  by-transport: { end: blocked }
  by-limit: { end: exhausted }
  by-permission: { end: blocked }
  by-timeout: { end: failed }
  by-blocked: { end: blocked }
";

#[test]
fn each_trouble_has_its_own_way() {
    for (reply, state, outcome, code) in [
        ("fail: agent", "by-agent", "blocked", 7),
        ("fail: transport", "by-transport", "blocked", 7),
        ("fail: limit", "by-limit", "exhausted", 6),
        ("fail: permission", "by-permission", "blocked", 7),
        ("fail: timeout", "by-timeout", "failed", 1),
    ] {
        let project = WorkflowProject::new(TROUBLES, &replies(&[reply]));
        project.write("plan.md", "");
        let ran = project.run_workflow();
        assert_eq!(ran.report["state"], state);
        assert_eq!(
            (ran.report["outcome"].as_str().unwrap(), ran.code),
            (outcome, Some(code)),
            "{state}"
        );
        assert_eq!(ran.attempts().len(), 1, "{state}");
    }
}

#[test]
fn what_was_salvaged_is_seen_where_it_is_of_the_type_that_expressions_count_on() {
    let workflow = "
workflow: salvage
agents: { worker: { contract: scene/list, prompt: Do it., repairs: 0 } }
contracts: [contracts]
variables: { kept: { type: [string], initial: [] } }
start: work
states:
  work:
    agent: worker
    on:
      contract:
        set: { kept: \"has(problem.partial) ? problem.partial.items.map(i, i.id) : ['nothing']\" }
        go: done
    go: done
  done: { end: done }
";
    let contract = "
contract: scene/list
version: 1
fields: { items: [{ id: string }], note: string }
policy: { salvage: [/items] }
examples: [{ items: [], note: good }]
";
    for (text, kept) in [
        (r#"{"items": [{"id": "a"}, {"id": 2}], "note": "x"}"#, "a"),
        // The list itself is missing, or not a list, or something beside it is wrong.
        (r#"{"itmes": [], "note": "x"}"#, "nothing"),
        (r#"{"items": "none", "note": "x"}"#, "nothing"),
        (r#"{"items": [{"id": "a"}]}"#, "nothing"),
    ] {
        let project = WorkflowProject::new(workflow, &replies(&[&format!("text: '{text}'")]));
        project.write("contracts/list.yaml", contract);
        let ran = project.run_workflow();
        assert_eq!(ran.ended(), ("done", None, 0), "{text}: {}", ran.stderr);
        assert_eq!(ran.report["variables"]["kept"], json!([kept]), "{text}");
    }
}

#[test]
fn a_way_out_of_trouble_sees_the_problem() {
    let project = WorkflowProject::new(TROUBLES, &replies(&[BAD, BAD, BAD]));
    project.write("plan.md", "");
    let ran = project.run_workflow();
    assert_eq!(ran.report["state"], "by-contract");
    assert!(ran.reason().contains("the result does not satisfy the contract"), "{}", ran.reason());
    assert_eq!(ran.report["path"][0]["trouble"], "contract");

    let project = WorkflowProject::new(TROUBLES, &replies(&["fail: agent"]));
    project.write("plan.md", "");
    assert_eq!(project.run_workflow().reason(), "agent/agent");
}

#[test]
fn a_file_that_is_needed_and_missing_blocks_before_the_agent_is_asked() {
    let with_a_way = WorkflowProject::new(TROUBLES, &replies(&[GOOD])).run_workflow();
    assert_eq!(with_a_way.report["state"], "by-blocked");
    let without = TROUBLES
        .replace("      blocked: by-blocked\n", "")
        .replace("  by-blocked: { end: blocked }\n", "");
    let ran = WorkflowProject::new(&without, &replies(&[GOOD])).run_workflow();
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert!(ran.reason().contains("plan.md"), "{}", ran.reason());
    assert!(ran.attempts().is_empty(), "nobody was asked");
}

#[test]
fn any_answers_what_is_not_named() {
    let flow = "
workflow: any
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: work
states:
  work:
    agent: worker
    on: { timeout: slow, any: lost }
    go: done
  done: { end: done }
  slow: { end: failed }
  lost: { end: blocked }
";
    assert_eq!(
        WorkflowProject::new(flow, &replies(&["fail: permission"])).run_workflow().report["state"],
        "lost"
    );
    let slow =
        WorkflowProject::new(flow, &replies(&["fail: timeout", "fail: timeout"])).run_workflow();
    assert_eq!(slow.report["state"], "slow");
    assert_eq!(slow.attempts().len(), 2, "what is worth retrying is retried before");
}

const LOOP: &str = "
workflow: loop
inputs: { rounds: { type: count, default: 2 } }
variables: { note: string?, tried: { type: [string], initial: [] } }
agents: { worker: { contract: scene/step, prompt: \"Do it.{% if note %} Mind this: {{ note }}{% endif %}\" } }
contracts: [contracts]
limits: { rounds: { max: rounds, then: exhausted } }
start: work
states:
  work:
    agent: worker
    next:
      - { when: result.ok, set: { note: null }, go: done }
      - { set: { note: result.note, tried: 'tried + [run.state]' }, go: work, counts: rounds, reason: result.note }
  done: { end: done }
  exhausted: { end: exhausted }
";

fn not_ok(note: &str) -> String {
    format!(r#"text: '{{"ok": false, "note": "{note}"}}'"#)
}

#[test]
fn a_guard_decides_by_the_result_and_the_report_says_what_it_saw() {
    let ran = WorkflowProject::new(LOOP, &replies(&[&not_ok("first"), GOOD])).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.transitions(), ["work>work", "work>done"]);
    assert_eq!(ran.report["iterations"], 2);
    assert_eq!(ran.report["variables"], json!({"note": null, "tried": ["work"]}));
    let path = &ran.report["path"];
    assert_eq!(path[0]["saw"], json!({"result.ok": false}));
    assert_eq!(path[0]["set"]["note"], "first");
    assert_eq!(path[0]["counts"], json!({"rounds": 1}));
    assert_eq!(path[1]["guard"], "result.ok");
    assert_eq!(path[1]["saw"], json!({"result.ok": true}));
}

#[test]
fn a_limit_that_is_used_up_leads_where_it_says() {
    let bad = [not_ok("a"), not_ok("b"), not_ok("c")];
    let script = replies(&[&bad[0], &bad[1], &bad[2], GOOD]);
    let ran = WorkflowProject::new(LOOP, &script).run_workflow();
    assert_eq!(ran.ended(), ("exhausted", None, 6));
    assert_eq!(ran.reason(), "the limit 'rounds' of 2 is used up: c");
    assert_eq!(ran.attempts().len(), 3);
    let more = WorkflowProject::new(LOOP, &script).run_workflow_with(&["--input", "rounds=3"]);
    assert_eq!(more.ended(), ("done", None, 0));
    assert_eq!(more.report["iterations"], 4);
}

#[test]
fn iterations_are_what_the_workflow_counts_as_its_main_loop() {
    let flow = LOOP
        .replace("start: work\n", "iterations: rounds\nstart: plan\n")
        .replace("states:\n", "states:\n  plan: { agent: worker, go: work }\n");
    let ran = WorkflowProject::new(&flow, &replies(&[GOOD, &not_ok("a"), &not_ok("b"), GOOD]))
        .run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.report["iterations"], 3);
}

#[test]
fn a_limit_by_key_counts_each_value_apart() {
    let flow = "
workflow: keyed
variables: { which: { type: string, initial: a } }
agents: { worker: { contract: scene/step, prompt: \"Do {{ which }}.\" } }
contracts: [contracts]
limits: { tries: { max: 2, then: exhausted, per: which, total: 10 } }
start: work
states:
  work:
    agent: worker
    next:
      - { when: 'result.ok && which == \"a\"', set: { which: \"'b'\" }, go: work, counts: tries }
      - { when: result.ok, go: done }
      - { go: work, counts: tries }
  done: { end: done }
  exhausted: { end: exhausted }
";
    let [first, second, third, fourth] = ["a", "b", "c", "d"].map(not_ok);
    let done =
        WorkflowProject::new(flow, &replies(&[&first, GOOD, &second, &third, GOOD])).run_workflow();
    assert_eq!(done.ended(), ("done", None, 0), "{}", done.reason());
    let counts: Vec<String> = done.report["path"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["counts"].to_string())
        .collect();
    assert_eq!(counts[..3], [r#"{"tries[a]":1}"#, r#"{"tries[a]":2}"#, r#"{"tries[b]":1}"#]);
    let ended =
        WorkflowProject::new(flow, &replies(&[&first, GOOD, &second, &third, &fourth, GOOD]))
            .run_workflow();
    assert_eq!(ended.ended(), ("exhausted", None, 6));
}

#[test]
fn goto_goes_where_the_result_says() {
    let project = WorkflowProject::new(
        "
workflow: route
agents: { worker: { contract: scene/route, prompt: Where to? } }
contracts: [contracts]
start: ask
states:
  ask: { agent: worker, next: [{ goto: result.next }] }
  draft: { end: blocked }
  publish: { end: done }
",
        &replies(&[r#"text: '{"next": "publish"}'"#]),
    );
    project.write(
        "contracts/route.yaml",
        "contract: scene/route\nversion: 1\nfields: { next: draft | publish }\nexamples: [{ next: draft }]\n",
    );
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.transitions(), ["ask>publish"]);
}

const NESTED: &str = "
workflow: outer
agents: { worker: { contract: scene/step, prompt: \"Do {{ thing }}.\" } }
contracts: [contracts]
variables: { heard: string? }
start: call
states:
  call:
    run: middle
    with: { what: \"'the thing'\" }
    next: [{ set: { heard: result.heard }, go: done }]
  done: { end: done }
workflows:
  middle:
    inputs: { what: string }
    result: { heard: string }
    start: deeper
    states:
      deeper: { run: inner, with: { what: \"what + ' inside'\" }, next: [{ go: end }] }
      end: { end: done, result: \"{'heard': what}\" }
  inner:
    inputs: { what: string }
    start: work
    states:
      work:
        agent: worker
        with: { thing: what }
        next: [{ when: result.ok, go: end }, { go: no, reason: \"'not ok'\" }]
      end: { end: done }
      no: { end: blocked }
";

#[test]
fn a_sub_workflow_has_its_own_names_and_hands_back_a_result() {
    let project = WorkflowProject::new(NESTED, &replies(&[GOOD]));
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(ran.attempts(), ["call/deeper/work#1 accepted"]);
    assert_eq!(ran.report["variables"]["heard"], "the thing");
    assert!(project.prompt(&ran, "call_deeper_work_1.1").starts_with("Do the thing inside."));
    // The end of a sub-workflow that is not done goes up to whoever answers it.
    let ran = WorkflowProject::new(NESTED, &replies(&[&not_ok("x")])).run_workflow();
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert_eq!((ran.reason(), ran.report["state"].as_str().unwrap()), ("not ok", "call"));
}

#[test]
fn a_failed_sub_workflow_keeps_its_cause() {
    let ran = WorkflowProject::new(NESTED, &replies(&["fail: permission"])).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("permission"), 5));
}
