//! What people read: the progress of a run, its end, its report.

use crate::runs::project::{BAD, GOOD, WorkflowProject, replies};

const DELIVER: &str = "
workflow: deliver
inputs: { task: string }
variables: { fix_info: string? }
agents:
  worker: { contract: scene/step, prompt: \"{{ task }}{% if fix_info %} Fix: {{ fix_info }}{% endif %}\" }
  tester: { contract: scene/step, prompt: Test it. }
contracts: [contracts]
limits: { rounds: { max: 2, then: exhausted } }
start: implement
states:
  implement: { agent: worker, go: build }
  build:
    command: [sh, -c, \"test -e built || { echo no such file: built; exit 2; }\"]
    next: [{ when: result.ok, go: test }, { set: { fix_info: result.output }, go: implement, counts: rounds }]
  test:
    agent: tester
    next:
      - { when: result.ok, set: { fix_info: null }, go: approve }
      - { set: { fix_info: result.note }, go: implement, counts: rounds }
  approve:
    ask: { question: \"Shall it go out?\", choices: [proceed, reject] }
    next: [{ when: result.answer == \"proceed\", go: done }, { go: rejected, reason: \"'somebody said no'\" }]
  done: { end: done }
  rejected: { end: blocked }
  exhausted: { end: exhausted }
";

const RUN: [&str; 6] =
    ["run", "flow.yaml", "--task", "Add a login page", "--agent", "script:script.yaml"];

fn tester(reply: &str) -> String {
    format!("  - {{ agent: tester, {reply} }}\n")
}

#[test]
fn a_run_that_waits_for_somebody() {
    let costs =
        "text: '{\"ok\": true}', usage: { input_tokens: 1200, output_tokens: 300, cost_usd: 0.02 }";
    let writes = "text: '{\"ok\": true}', writes: { built: x }, usage: { input_tokens: 900, output_tokens: 100, cost_usd: 0.01 }";
    let script = replies(&["fail: transport", costs, writes])
        + &tester("text: 'fine'")
        + &tester(BAD)
        + &tester(GOOD);
    let project = WorkflowProject::new(DELIVER, &script);
    insta::assert_snapshot!("waits_run", project.snapshot(&RUN));
    insta::assert_snapshot!("waits_show", project.snapshot(&["show", "last", "--timeline"]));
    insta::assert_snapshot!(
        "waits_answer",
        project.snapshot(&["answer", "last", "approve", "proceed"])
    );
    insta::assert_snapshot!(
        "waits_answered_show",
        project.snapshot(&["show", "last", "--timeline"])
    );
    insta::assert_snapshot!("waits_resume", project.snapshot(&["resume", "last"]));
}

#[test]
fn a_run_that_fails() {
    let project = WorkflowProject::new(DELIVER, &replies(&[BAD, BAD, BAD]));
    insta::assert_snapshot!("fails_run", project.snapshot(&RUN));
    insta::assert_snapshot!("fails_show", project.snapshot(&["show", "last", "--timeline"]));
}

#[test]
fn a_run_that_is_exhausted() {
    let project = WorkflowProject::new(DELIVER, &replies(&[GOOD, GOOD, GOOD]));
    // Each attempt leaves another trace, or nothing would move.
    project.write(
        "script.yaml",
        replies(&[
            "writes: { a: x }, text: '{\"ok\": true}'",
            "writes: { b: x }, text: '{\"ok\": true}'",
            "writes: { c: x }, text: '{\"ok\": true}'",
        ]),
    );
    insta::assert_snapshot!("exhausted_run", project.snapshot(&RUN));
}

const FAN: &str = "
workflow: fan
agents: { worker: { contract: scene/step, prompt: \"Build task {{ task.id }}!\" } }
contracts: [contracts]
inputs: { tasks: { type: [{ id: string, after: [string] }], default: [{ id: a, after: [] }, { id: b, after: [a] }, { id: c, after: [] }] } }
start: build
states:
  build:
    each: { in: tasks, as: task, key: task.id, after: task.after, failures: collect, agent: worker }
    next:
      - { when: size(result.failed) == 0, go: done }
      - { go: partly, reason: \"string(size(result.failed)) + ' of ' + string(result.total) + ' tasks are not done'\" }
  done: { end: done }
  partly: { end: blocked }
";

#[test]
fn a_fan_out_in_which_something_fails() {
    let script = "replies:
  - { agent: worker, when: 'task a!', fail: permission, reason: may not write to src }
  - { agent: worker, when: 'task c!', text: '{\"ok\": true, \"note\": \"c is built\"}' }
";
    let project = WorkflowProject::new(FAN, script);
    insta::assert_snapshot!(
        "fan_run",
        project.snapshot(&["run", "flow.yaml", "--agent", "script:script.yaml"])
    );
    insta::assert_snapshot!("fan_show", project.snapshot(&["show", "last", "--timeline"]));
}

#[test]
fn questions_come_with_the_commands_that_answer_them() {
    let flow = "
workflow: several
start: clarify
states:
  clarify:
    asks:
      name: { question: \"What is it called?\", pattern: \"[a-z]+\" }
      size: { question: \"How large?\", choices: [as it is, \"kim's size\"] }
      day: { question: \"When?\", choices: [mon, tue, wed, \"thu, fri\", no day] }
      remark: { question: \"Anything\\nelse?\", optional: true }
    go: done
  done: { end: done }
";
    let project = WorkflowProject::new(flow, "");
    insta::assert_snapshot!("questions", project.snapshot(&["run", "flow.yaml"]));
}

#[test]
fn commands_that_are_shown_name_the_repository_that_was_named() {
    let script = replies(&[GOOD]) + &tester(GOOD);
    let project = WorkflowProject::new(DELIVER, &script);
    project.write("the repo/built", "");
    let run = [
        "run",
        "flow.yaml",
        "--task",
        "Add it",
        "--agent",
        "script:script.yaml",
        "--repo",
        "the repo",
    ];
    let shown = project.snapshot(&run);
    for line in [
        "counterfoil answer RUN approve proceed --resume --repo 'the repo'\n",
        "details: counterfoil show RUN --repo 'the repo'\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let story = project.snapshot(&["show", "last", "--repo", "the repo"]);
    assert!(story.contains("approve reject --resume --repo 'the repo'\n"), "{story}");
    let answered =
        project.snapshot(&["answer", "last", "approve", "proceed", "--repo", "the repo"]);
    assert!(answered.contains("`counterfoil resume RUN --repo 'the repo'`"), "{answered}");
}
