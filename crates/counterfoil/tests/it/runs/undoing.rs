//! A run whose changes were undone stays ended, and everything that shows it says so.

use crate::runs::project::{WorkflowProject, replies};
use serde_json::json;

const GATED: &str = "
workflow: gated
agents: { worker: { contract: scene/step, prompt: \"Do it.\" } }
contracts: [contracts]
start: one
states:
  one: { agent: worker, go: gate }
  gate: { command: [test, -e, open], next: [{ when: result.ok, go: done }, { go: shut }] }
  done: { end: done }
  shut: { end: blocked }
";

/// A run whose agent wrote `a.txt`, and which ended as blocked.
fn blocked() -> WorkflowProject {
    let script = replies(&[r#"writes: { a.txt: "by the agent\n" }, text: '{"ok": true}'"#]);
    let project = WorkflowProject::new(GATED, &script);
    project.init_git();
    project.commit_all("base");
    assert_eq!(project.run_workflow().ended(), ("blocked", None, 7));
    assert_eq!(project.read("a.txt"), "by the agent\n");
    project
}

#[test]
fn a_run_that_was_undone_is_not_reopened() {
    let project = blocked();
    assert_eq!(project.show_last()["reopenable"], true);
    project.run(&["undo", "last"]).expect(0, &["undone: restored 1 file"]);
    assert!(!project.path("a.txt").exists());
    project.write("open", "");
    let refused = project.run_refused(&["resume", "last"]);
    assert!(refused.contains("was undone by kim"), "{refused}");
    assert!(refused.contains("start a new one"), "{refused}");
    let refused = project.run_refused(&["resume", "last", "--because", "the gate is open"]);
    assert!(refused.contains("was undone by kim"), "{refused}");
    let shown = project.show_last();
    assert_eq!((&shown["outcome"], &shown["reopenable"]), (&json!("blocked"), &json!(false)));
    let words = project.run(&["show", "last"]).stdout;
    assert!(!words.contains("reopen: "), "{words}");
    // It is over already, so nothing else of it can change.
    project.run_refused(&["cancel", "last"]);
    project.run(&["undo", "last"]).expect(0, &["already undone"]);
    assert_eq!(project.count_events("run-undone"), 1);
}

#[test]
fn what_could_not_be_undone_leaves_the_run_as_it_was() {
    let project = blocked();
    project.write("a.txt", "by somebody else\n");
    project.run(&["undo", "last"]).expect(1, &["nothing was restored"]);
    assert_eq!(project.count_events("run-undone"), 0);
    project.write("open", "");
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    // A run that is done can be undone, too.
    project.write("a.txt", "by the agent\n");
    project.run(&["undo", "last"]).expect(0, &["undone: restored 1 file"]);
    let refused = project.run_refused(&["resume", "last"]);
    assert!(refused.contains("was undone by kim"), "{refused}");
}
