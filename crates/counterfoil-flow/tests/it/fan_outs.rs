//! How many items run at once, what is known of the sub-workflow of an item, and what a
//! sub-workflow gives at an end that is not done.

use crate::workspaces::play::{Play, items};
use counterfoil_flow::{Outcome, artifacts};

/// Items of which as many run at once as an input says.
fn many(input: &str) -> String {
    items("parallel: \"many + 1\", workspace: repository").replace(
        "inputs: { tasks",
        &format!("inputs: {{ many: {{ type: integer, default: {input} }}, tasks"),
    )
}

#[test]
fn an_expression_says_how_many_items_run_at_once() {
    for (input, expected) in [("1", 2), ("2", 3), ("0", 1), ("-7", 1), ("9000", 3)] {
        let play = Play::begin(&many(input));
        assert_eq!(play.started().len(), expected, "{input}");
    }
}

#[test]
fn items_of_which_an_expression_may_run_several_have_worktrees() {
    let text = many("1").replace(", workspace: repository", "");
    assert_eq!(Play::begin(&text).workspace_ops().len(), 2);
}

/// An item that runs a sub-workflow in a worktree.
const NESTED: &str = r#"
workflow: play
variables: { told: { type: string, initial: "" } }
agents: { make: { contract: t/make, prompt: "Make it." } }
artifacts:
  - { path: at.md, template: "{% for item in run.items %}{{ item.at }}>{{ item.inner.at if item.inner else '-' }}:{{ item.inner.variables.n if item.inner else '-' }} {% endfor %}" }
start: all
states:
  all:
    each: { in: "['a']", as: task, key: task, failures: collect, run: one }
    next: { set: { told: "has(result.items[0].value) ? result.items[0].value : 'none'" }, go: end }
  end: { end: done, reason: told }
workflows:
  one:
    result: string
    variables: { told: { type: string, initial: "" } }
    start: work
    states:
      work:
        run: inner
        workspace: worktree
        on: { any: { set: { told: "(has(problem.partial) ? problem.partial : 'none') + ', ' + problem.reason" }, go: over } }
        go: over
      over: { end: blocked, result: told }
  inner:
    result: string
    variables: { n: { type: integer, initial: 7 } }
    start: make
    states:
      make: { agent: make, go: stuck }
      stuck: { end: blocked, reason: "'stuck'", result: "'half of it'" }
"#;

#[test]
fn the_result_of_a_sub_workflow_that_is_not_done_is_known_where_it_was_run() {
    let mut play = Play::begin(NESTED);
    play.opened(&["all/a/work#1"]).accept("all/a/work/make#1").see_to("all/a/work#1", &[]);
    let (outcome, reason) = play.ending();
    assert_eq!(outcome, Outcome::Done);
    assert!(reason.starts_with("half of it, stuck; the work is kept in "), "{reason}");
}

#[test]
fn artifacts_see_the_sub_workflow_that_an_item_runs() {
    let mut play = Play::begin(NESTED);
    play.opened(&["all/a/work#1"]);
    let written = artifacts(&play.workflow, &play.run).unwrap();
    assert_eq!(written[0].text.trim(), "work>make:7");
}

#[test]
fn an_item_that_failed_without_a_reason_is_named_as_failed() {
    const TEXT: &str = r#"
workflow: play
agents: { make: { contract: t/make, prompt: "Make it." } }
start: all
states:
  all: { each: { in: "['a']", as: task, key: task, run: one }, go: end }
  end: { end: done }
workflows:
  one:
    start: make
    states:
      make: { agent: make, go: over }
      over: { end: OUTCOME }
"#;
    for (decide, outcome, ended, expected) in [
        (4, "failed", Outcome::Failed, "item 'a' failed"),
        (4, "blocked", Outcome::Blocked, "item 'a': blocked"),
        // A run that began before replays to the same state.
        (3, "failed", Outcome::Failed, "item 'a': "),
    ] {
        let mut play = Play::under(&TEXT.replace("OUTCOME", outcome), decide);
        play.accept("all/a/make#1");
        assert_eq!(play.ending(), (ended, expected));
    }
}
