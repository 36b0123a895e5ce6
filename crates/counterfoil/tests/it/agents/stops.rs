//! Runs that are stopped by a timeout or a user.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::wait_until;
use serde_json::json;

for_each_cli!(a_silent_one_is_ended_by_the_clock_and_leaves_nothing);
for_each_cli!(a_stopped_run_is_taken_up_again);

fn a_silent_one_is_ended_by_the_clock_and_leaves_nothing(cli: VendorCli) {
    let Some(project) =
        CliProject::open(cli, &json!([{"text": "Let me see …", "hang": "middle", "repeat": true}]))
    else {
        return;
    };
    project.write_workflow("idle: 3s, retries: { timeout: 0 }");
    let report = project.failed("timeout", 124);
    assert_eq!(report["attempts"][0]["outcome"], "timeout");
    assert_eq!(project.requests().len(), 1);
}

fn a_stopped_run_is_taken_up_again(cli: VendorCli) {
    let script = json!([
        {"hang": "start"},
        {"when": "Water the plants.", "result": {"ok": true}},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    let live = project.start_workflow(&[]);
    wait_until(RUN_TIMEOUT, "the model is asked", || {
        (!project.requests().is_empty()).then_some(())
    });
    live.signal("TERM");
    let output = live.wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(
        (output.code, report["outcome"].as_str()),
        (Some(130), Some("cancelled")),
        "{}",
        project.describe(&output)
    );
    project.assert_nothing_runs(&report);

    let output = project
        .start_command(&mut project.command(&["resume", "last", "--format", "json"]))
        .wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(
        (output.code, report["outcome"].as_str()),
        (Some(0), Some("done")),
        "{}",
        project.describe(&output)
    );
    let outcomes: Vec<_> =
        report["attempts"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["cancelled", "accepted"]);
    project.assert_nothing_runs(&report);
}
