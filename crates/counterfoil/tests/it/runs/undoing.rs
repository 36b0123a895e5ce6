//! A run whose changes were undone stays ended, and everything that shows it says so.

use crate::runs::project::{WorkflowProject, looping, replies};
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
pub(crate) fn blocked() -> WorkflowProject {
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

/// A run whose step was visited twice, and wrote `a.txt` both times.
fn visited_twice() -> WorkflowProject {
    let first =
        r#"writes: { a.txt: "1\n", b.txt: "1\n" }, text: '{"ok": false, "note": "not yet"}'"#;
    let second = r#"writes: { a.txt: "2\n", c.txt: "2\n" }, text: '{"ok": true}'"#;
    let project = WorkflowProject::new(&looping(3), &replies(&[first, second]));
    project.init_git();
    project.commit_all("base");
    project.run_workflow();
    assert_eq!(project.read("a.txt"), "2\n");
    project
}

#[test]
fn a_step_is_undone_in_all_its_visits() {
    let project = visited_twice();
    project.run(&["undo", "last", "work"]).expect(0, &["undone: restored 3 files"]);
    for name in ["a.txt", "b.txt", "c.txt"] {
        assert!(!project.path(name).exists(), "{name}");
    }
    assert_eq!(project.events().last().unwrap()["steps"], json!(["work#1", "work#2"]));
    project.run(&["undo", "last", "work"]).expect(0, &["already undone"]);
}

#[test]
fn one_visit_of_a_step_is_undone_alone() {
    let project = visited_twice();
    // The second one changed the same file since.
    project.run(&["undo", "last", "work#1"]).expect(1, &["nothing was restored", "  a.txt"]);
    project.run(&["undo", "last", "work#2"]).expect(0, &["undone: restored 2 files"]);
    for name in ["a.txt", "b.txt"] {
        assert_eq!(project.read(name), "1\n", "{name}");
    }
    assert!(!project.path("c.txt").exists());
    // What is left of them.
    project.run(&["undo", "last", "work"]).expect(0, &["undone: restored 2 files"]);
    assert!(!project.path("a.txt").exists());
    let refused = project.run_refused(&["undo", "last", "work#3"]);
    assert!(refused.contains("has no recorded changes of 'work#3'"), "{refused}");
}

#[test]
fn the_number_of_a_step_is_that_of_its_visit_as_it_is_shown() {
    // The second attempt belongs to the first visit.
    let late = r#"writes: { a.txt: "1\n" }, fail: transport"#;
    let first = r#"writes: { b.txt: "1\n" }, text: '{"ok": false, "note": "not yet"}'"#;
    let second = r#"writes: { c.txt: "1\n" }, text: '{"ok": true}'"#;
    let project = WorkflowProject::new(&looping(3), &replies(&[late, first, second]));
    project.init_git();
    project.commit_all("base");
    project.run_workflow();
    project.run(&["show", "last", "work#2"]).expect(0, &["work: worker, visit 2: accepted"]);
    let refused = project.run_refused(&["undo", "last", "work#3"]);
    assert!(refused.contains("has no recorded changes of 'work#3'"), "{refused}");
    project.run(&["undo", "last", "work#2"]).expect(0, &["undone: restored 1 file"]);
    let exists = || ["a.txt", "b.txt", "c.txt"].map(|name| project.path(name).exists());
    assert_eq!(exists(), [true, true, false]);
    project.run(&["undo", "last", "work#1"]).expect(0, &["undone: restored 2 files"]);
    assert_eq!(exists(), [false, false, false]);
}

#[test]
fn what_happened_to_a_run_fits_the_terminal() {
    let project = blocked();
    project.run(&["undo", "last"]).expect(0, &[]);
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let line = format!("stty rows 40 cols 40; '{program}' show");
    let screen = project.command_of("script", &["-qefc", &line, "/dev/null"]).output().stdout;
    let undone: Vec<&str> =
        screen.lines().skip_while(|line| !line.starts_with("undone by kim at")).take(2).collect();
    assert_eq!(undone.len(), 2, "{screen}");
    assert!(undone.iter().all(|line| line.trim_end().chars().count() <= 40), "{screen}");
}

#[test]
fn an_undone_run_is_shown_as_undone() {
    let project = blocked();
    project.run(&["undo", "last"]).expect(0, &[]);
    let events = project.events();
    let event = events.last().unwrap();
    assert_eq!((&event["kind"], &event["by"]), (&json!("run-undone"), &json!("kim")));
    assert_eq!(
        (&event["steps"], &event["files"], &event["total"]),
        (&json!(["one#1"]), &json!(["a.txt"]), &json!(1))
    );
    let shown = project.show_last();
    let undone = json!([{ "at": event["at"], "by": "kim", "steps": ["one#1"], "files": 1 }]);
    assert_eq!(shown["undone"], undone);
    let words = project.run(&["show", "last"]).stdout;
    assert!(words.contains("undone by kim at "), "{words}");
    assert!(words.contains(": 1 file of one#1\n"), "{words}");
    let timeline = project.run(&["show", "last", "--timeline"]).stdout;
    assert!(timeline.contains("of gated undone by kim"), "{timeline}");
    let list = project.run(&["runs"]).stdout;
    assert!(list.contains("blocked, undone"), "{list}");
    let runs = project.run_json(&["runs", "--format", "json"]);
    assert_eq!(runs.report[0]["undone_by"], "kim");
    let receipt = project.run_json(&["receipt", "last", "--format", "json"]);
    assert_eq!(receipt.report["undone"], undone);
    let comment = project.run(&["receipt", "last", "--format", "markdown"]).stdout;
    assert!(comment.contains("**Undone** by ` kim ` at "), "{comment}");
    let folder = project.scratch_path("receipts");
    let output = folder.display().to_string();
    project.run(&["receipt", "last", "--output", &output]).expect(0, &[]);
    let id = shown["run"].as_str().unwrap();
    let page = std::fs::read_to_string(folder.join(format!("receipt-{id}.html"))).unwrap();
    assert!(page.contains(">Undone</strong> by kim at "), "{page}");
}

#[test]
fn an_older_receipt_is_said_to_be_of_a_run_that_was_undone() {
    let project = blocked();
    let receipt = project.run(&["receipt", "last", "--format", "json"]).stdout;
    let file = project.scratch_path("receipt.json");
    std::fs::write(&file, receipt).unwrap();
    project.run(&["undo", "last"]).expect(0, &[]);
    let file = file.display().to_string();
    let words = project.run(&["receipt", "verify", &file]).stdout;
    assert!(words.contains("; the run went on by 1 event, and was undone"), "{words}");
}
