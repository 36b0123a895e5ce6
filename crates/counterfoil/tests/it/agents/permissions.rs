//! What an agent may do in the workspace, and what happens when it is denied.

use crate::agents::project::{CliProject, VendorCli, for_each_cli};
use serde_json::{Value, json};

for_each_cli!(an_implementer_edits_and_a_reviewer_does_not);
for_each_cli!(work_that_was_denied_and_gave_no_result_is_no_success);

/// A model that writes a file, and says that all is well.
fn writing(then: &Value) -> Value {
    json!([
        {"calls": [{"write": "hello.txt", "content": "hi\n"}]},
        {"calls": [{"shell": "echo hi > shell.txt"}]},
        then,
        {"text": "Done.", "repeat": true},
    ])
}

fn an_implementer_edits_and_a_reviewer_does_not(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &writing(&json!({"result": {"ok": true}}))) else {
        return;
    };
    project.write_workflow("access: workspace-write");
    project.accepted();
    assert_eq!(project.read_or_empty("hello.txt"), "hi\n");

    let Some(project) = CliProject::open(cli, &writing(&json!({"result": {"ok": true}}))) else {
        return;
    };
    project.write_workflow("access: read-only");
    let attempt = project.accepted();
    assert_eq!(
        (project.read_or_empty("hello.txt"), project.read_or_empty("shell.txt")),
        (String::new(), String::new())
    );
    assert!(!attempt["replies"][0]["denied"].as_array().unwrap().is_empty(), "{attempt:#}");
}

fn work_that_was_denied_and_gave_no_result_is_no_success(cli: VendorCli) {
    let Some(project) =
        CliProject::open(cli, &writing(&json!({"text": "I could not write it.", "repeat": true})))
    else {
        return;
    };
    project.write_workflow("access: read-only, repairs: 0");
    let report = project.failed("permission", 5);
    assert_eq!(report["attempts"][0]["outcome"], "permission");
}
