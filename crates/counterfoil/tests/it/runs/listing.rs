//! Inspecting runs: the list, one run, its journal, a test report.

use crate::runs::project::{GOOD, WorkflowProject, one_step, replies};
use serde_json::Value;

const ASK: &str = "
workflow: gate
start: approve
states:
  approve: { ask: { question: \"Shall it go out?\", choices: [proceed, reject] }, go: done }
  done: { end: done }
";

/// One run that is done, one that failed, one that waits.
fn three() -> WorkflowProject {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    project.write("ask.yaml", ASK);
    project.write("broken.yaml", replies(&["fail: permission, reason: may not write"]));
    project.run_workflow();
    project.run_json(&["run", "flow.yaml", "--format", "json", "--agent", "script:broken.yaml"]);
    project.run_json(&["run", "ask.yaml", "--format", "json"]);
    project
}

#[test]
fn the_list_says_how_each_run_stands_newest_first() {
    let project = three();
    let listed = project.run_json(&["runs", "--format", "json"]);
    let runs = listed.report.as_array().unwrap();
    let told: Vec<(&str, &str)> = runs
        .iter()
        .map(|run| (run["workflow"].as_str().unwrap(), run["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("gate", "waiting"), ("one", "failed"), ("one", "done")]);
    assert_eq!(runs[1]["cause"], "permission");
    assert_eq!(runs[0]["questions"], 1);
    for key in
        ["run", "version", "state", "reason", "iterations", "started_at", "updated_at", "usage"]
    {
        assert!(runs[0].get(key).is_some(), "{key}");
    }
    let one = project.run_json(&["runs", "--format", "json", "--limit", "1"]);
    assert_eq!(one.report.as_array().unwrap().len(), 1);
    // How long they took is not the same twice; the columns are as wide as what stands in them.
    let shown = project.snapshot(&["runs"]);
    let squeezed: Vec<String> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    insta::assert_snapshot!("list", squeezed.join("\n"));
}

#[test]
fn lists_fit_a_narrow_terminal() {
    let project = three();
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let on_terminal = |arguments: &str| {
        let line = format!("stty rows 24 cols 80; '{program}' {arguments}");
        let output = project.command_of("script", &["-qefc", &line, "/dev/null"]).output();
        let shown = output.stdout.replace('\r', "");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        shown
    };
    let runs = on_terminal("runs");
    for words in ["RUN ", " OUTCOME ", "may not write\n", "Shall it go out?\n"] {
        assert!(runs.contains(words), "{words}\n{runs}");
    }
    let contracts = on_terminal("contract list");
    assert!(contracts.contains("\n    One thing that a review found\n"), "{contracts}");
}

#[test]
fn a_run_is_named_by_its_id_the_start_of_it_or_last() {
    let project = three();
    let listed = project.run_json(&["runs", "--format", "json"]).report;
    let id = listed[2]["run"].as_str().unwrap();
    assert_eq!(project.run_json(&["show", id, "--format", "json"]).run_id(), id);
    // Ids begin with the time, so the start that tells runs of one minute apart is long.
    assert_eq!(project.run_json(&["show", &id[..30], "--format", "json"]).run_id(), id);
    assert_eq!(project.run_json(&["show", "last", "--format", "json"]).report["workflow"], "gate");
    let words = project.run_refused(&["show", "0", "--format", "json"]);
    assert!(words.contains("is ambiguous") && words.contains("use a longer prefix"), "{words}");
    let words = project.run_refused(&["show", "ffff"]);
    assert!(words.contains("ffff"), "{words}");
}

#[test]
fn the_journal_is_one_event_a_line() {
    let project = three();
    let output = project.command(&["show", "last", "--events"]).output();
    assert_eq!(output.code, Some(0));
    let text = output.stdout;
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], at + 1);
        assert!(event["at"].is_i64() && event["kind"].is_string(), "{event}");
    }
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run-started", "frame-opened", "asked"]);
    assert_eq!(events[2]["questions"][0]["question"], "Shall it go out?");
}

#[test]
fn a_report_that_was_asked_for_later_is_the_same() {
    let project = WorkflowProject::new(&one_step(""), &replies(&["fail: transport", GOOD]));
    let ran = project.run_workflow();
    let shown = project.run_json(&["show", "last", "--format", "json"]);
    assert_eq!(shown.report, ran.report);
    assert_eq!(shown.code, Some(0), "looking is no failure");
    let project = three();
    assert_eq!(project.run_json(&["show", "last", "--format", "json"]).code, Some(0));
}

#[test]
fn a_test_report_has_a_case_for_each_attempt_and_the_run() {
    let project = WorkflowProject::new(
        &one_step(""),
        &replies(&["fail: transport, reason: 'a <b> & c'", "fail: permission"]),
    );
    let arguments = ["run", "flow.yaml", "--agent", "script:script.yaml", "--format", "junit"];
    insta::assert_snapshot!("junit", project.snapshot(&arguments));
    let arguments = ["run", "flow.yaml", "--agent", "script:script.yaml", "--format", "github"];
    insta::assert_snapshot!("github", project.snapshot(&arguments));
}

#[test]
fn no_runs_is_no_crash() {
    let project = WorkflowProject::new(ASK, "");
    for command in ["runs", "answer"] {
        let output = project.run(&[command]);
        output.expect(0, &["no runs yet", "counterfoil run", "counterfoil demo"]);
        assert_eq!(output.stdout, "");
    }
    assert_eq!(project.run(&["runs", "--format", "json"]).stdout, "[]\n");
    for arguments in [["show", "last"], ["resume", "last"], ["cancel", "last"]] {
        let words = project.run_refused(&arguments);
        assert!(words.contains("no run"), "{arguments:?}: {words}");
        assert!(!project.path(".counterfoil/journal.db").exists(), "{arguments:?} made a journal");
    }
}
