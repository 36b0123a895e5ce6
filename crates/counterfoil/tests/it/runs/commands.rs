//! Commands that a workflow runs itself.

use crate::runs::project::WorkflowProject;
use counterfoil_testkit::RunOutput;
use serde_json::json;

fn flow(state: &str) -> String {
    format!(
        "
workflow: shell
contracts: [contracts]
variables: {{ code: {{ type: integer, initial: -1 }}, said: string? }}
start: test
states:
  test:
    {state}
    next:
      - {{ when: result.ok, set: {{ code: result.exit_code, said: result.output }}, go: done }}
      - {{ set: {{ code: result.exit_code, said: result.output }}, go: red }}
  done: {{ end: done }}
  red: {{ end: blocked }}
"
    )
}

fn run(project: &WorkflowProject) -> RunOutput {
    project.run_json(&["run", "flow.yaml", "--format", "json"])
}

#[test]
fn a_guard_sees_how_a_command_ended_and_what_it_said() {
    let good = run(&WorkflowProject::new(&flow("command: [sh, -c, 'echo fine']"), ""));
    assert_eq!(good.ended(), ("done", None, 0));
    assert_eq!(good.report["variables"], json!({"code": 0, "said": "fine\n"}));
    assert_eq!(good.commands(), ["test#1 accepted"]);
    assert!(good.attempts().is_empty(), "a command is no agent session");
    let bad = run(&WorkflowProject::new(
        &flow("command: [sh, -c, 'echo one; echo two >&2; exit 3']"),
        "",
    ));
    assert_eq!(bad.ended(), ("blocked", None, 7));
    assert_eq!(bad.report["variables"]["code"], 3);
    assert!(bad.report["variables"]["said"].as_str().unwrap().contains("two"));
}

#[test]
fn of_a_long_output_the_end_is_seen_and_all_of_it_kept() {
    let project = WorkflowProject::new(&flow("command: [sh, -c, 'seq 1 5000']"), "");
    let ran = run(&project);
    let said = ran.report["variables"]["said"].as_str().unwrap();
    assert!(said.ends_with("4999\n5000\n") && said.len() <= 4000, "{}", said.len());
    let kept = ran.report["commands"][0]["replies"][0]["transcript"].as_str().unwrap();
    assert!(project.read(format!(".counterfoil/{kept}")).starts_with("1\n2\n3\n"));
}

#[test]
fn a_program_that_is_not_there_is_exit_code_127() {
    let ran = run(&WorkflowProject::new(&flow("command: [no-such-program-at-all]"), ""));
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert_eq!(ran.report["variables"]["code"], 127);
    let said = ran.report["variables"]["said"].as_str().unwrap();
    assert!(said.contains("no-such-program-at-all"), "{said}");
}

#[test]
fn a_command_that_takes_too_long_is_a_timeout() {
    let ran = run(&WorkflowProject::new(&flow("command: [sleep, '30']\n    timeout: 200ms"), ""));
    assert_eq!(ran.ended(), ("failed", Some("timeout"), 124));
    assert_eq!(ran.commands(), ["test#1 timeout"], "a command is not tried again by itself");
    assert!(ran.reason().contains("sleep 30"), "{}", ran.reason());
    let answered = flow("command: [sleep, '30']\n    timeout: 200ms\n    on: { timeout: red }");
    assert_eq!(run(&WorkflowProject::new(&answered, "")).report["state"], "red");
}

#[test]
fn what_a_command_writes_can_be_held_to_a_contract() {
    let state = "command: [sh, -c, 'echo noise >&2; echo \"{\\\"ok\\\": true, \\\"note\\\": \\\"42\\\"}\"']\n    output: scene/step";
    let with = flow(state).replacen("said: result.output }", "said: result.value.note }", 1);
    let project = WorkflowProject::new(
        &with.replacen("when: result.ok,", "when: 'result.ok && has(result.value.note)',", 1),
        "",
    );
    let ran = run(&project);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(ran.report["variables"]["said"], "42");
    assert_eq!(ran.report["commands"][0]["contract"], "scene/step@1");

    let wrong =
        run(&WorkflowProject::new(&flow("command: [echo, nothing]\n    output: scene/step"), ""));
    assert_eq!(wrong.ended(), ("failed", Some("contract"), 1));
    assert!(
        wrong.reason().contains("`echo nothing`") && wrong.reason().contains("scene/step@1"),
        "{}",
        wrong.reason()
    );
}

#[test]
fn arguments_input_and_folder_are_templates() {
    let state = "command: [sh, -c, 'cat; pwd', '{{ run.workflow }}']\n    input: 'from {{ run.state }} '\n    cwd: 'sub/{{ run.workflow }}'";
    let project = WorkflowProject::new(&flow(state), "");
    project.write("sub/shell/file", "");
    let said = run(&project).report["variables"]["said"].as_str().unwrap().to_owned();
    assert!(said.starts_with("from test /") && said.ends_with("sub/shell\n"), "{said}");
}
