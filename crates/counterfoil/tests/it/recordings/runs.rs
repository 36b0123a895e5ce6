//! Exporting and replaying runs.

use crate::runs::project::{BAD, GOOD, WorkflowProject, one_step, replies};
use serde_json::{Value, json};

/// A run whose first reply is refused, exported to `rec`.
pub(crate) fn exported() -> WorkflowProject {
    let project = WorkflowProject::new(&one_step(""), &replies(&[BAD, GOOD]));
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    project.command(&["export", "last", "rec"]).output().expect(0, &[]);
    project
}

pub(crate) fn recording(project: &WorkflowProject) -> Value {
    serde_json::from_str(&project.read("rec/recording.json")).unwrap()
}

#[test]
fn a_run_is_exported_and_nothing_has_changed() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[BAD, GOOD]));
    project.run_workflow();
    let shown =
        [project.snapshot(&["export", "last", "rec"]), project.snapshot(&["replay", "rec"])]
            .join("\n");
    insta::assert_snapshot!("exported_and_replayed", shown);
    let recording = recording(&project);
    let attempt = &recording["attempts"][0];
    assert_eq!(recording["version"], json!(1));
    assert_eq!(recording["contracts"]["scene/step@1"]["contract"], json!("scene/step"));
    let spec = attempt["player"]["spec"].as_str().unwrap();
    assert!(spec.starts_with("script:") && spec.ends_with("script.yaml"), "{spec}");
    assert_eq!(attempt["result"]["outcome"], json!("accepted"));
    assert_eq!(attempt["result"]["value"], json!({"ok": true}));
    let statuses: Vec<&Value> =
        attempt["replies"].as_array().unwrap().iter().map(|reply| &reply["status"]).collect();
    assert_eq!(statuses, [&json!("rejected"), &json!("accepted")]);
    assert_eq!(project.read("rec/attempts/001-work/1.stdout"), r#"{"ok": false}"#);
    assert!(project.read("rec/attempts/001-work/1.prompt").starts_with("Do it."));
}

#[test]
fn the_same_run_gives_the_same_recording() {
    let project = exported();
    project.command(&["export", "last", "again"]).output().expect(0, &[]);
    for file in ["recording.json", "attempts/001-work/1.prompt", "attempts/001-work/2.stdout"] {
        assert_eq!(project.read(format!("rec/{file}")), project.read(format!("again/{file}")));
    }
}

#[test]
fn a_contract_that_changed_shows_what_it_changes_and_can_be_recorded() {
    let project = exported();
    // What is not there any more is required now.
    project.write(
        "contracts/step.yaml",
        "contract: scene/step\nversion: 2\nfields: { ok: boolean, proof: string }\nexamples: [{ ok: true, proof: x }]\n",
    );
    let arguments = ["replay", "rec", "--contracts", "contracts"];
    let shown = [
        project.snapshot(&arguments),
        project.snapshot(&[&arguments[..], &["--format", "junit"]].concat()),
        project.snapshot(&[&arguments[..], &["--update"]].concat()),
        project.snapshot(&arguments),
        // It carries what it was judged by.
        project.snapshot(&["replay", "rec"]),
    ];
    insta::assert_snapshot!("changed_and_updated", shown.join("\n"));
    let attempt = &recording(&project)["attempts"][0];
    assert_eq!(attempt["contract"], json!("scene/step@2"));
    assert_eq!(attempt["result"]["outcome"], json!("contract"));
}

#[test]
fn values_that_changed_are_told_by_their_places() {
    let project =
        WorkflowProject::new(&one_step(""), &replies(&[r#"text: '{"ok": true, "note": "a"}'"#]));
    project.run_workflow();
    project.command(&["export", "last", "rec"]).output().expect(0, &[]);
    project.write(
        "contracts/step.yaml",
        "contract: scene/step\nversion: 1\nfields: { ok: boolean, note?: string, level: { type: integer, default: 3 } }\nexamples: [{ ok: true, level: 1 }]\n",
    );
    let replayed =
        project.run_json(&["replay", "rec", "--contracts", "contracts", "--format", "json"]);
    assert_eq!(replayed.code, Some(1));
    assert_eq!(replayed.report["summary"], json!({"same": 0, "changed": 1, "new": 0, "broken": 0}));
    let one = &replayed.report["replayed"][0];
    assert_eq!(one["judged_by"], json!("current"));
    assert_eq!(
        one["differences"],
        json!([{"what": "value", "pointer": "/level", "before": null, "after": 3}])
    );
}

#[test]
fn the_rules_of_a_step_are_held_again() {
    let workflow = one_step(
        ", with: { wanted: \"'blue'\" }, rules: [{ id: colour, check: \"has(result.note) && result.note == wanted\", message: \"say blue\", at: /note }]",
    );
    let script = replies(&[
        r#"text: '{"ok": true, "note": "red"}'"#,
        r#"text: '{"ok": true, "note": "blue"}'"#,
    ]);
    let project = WorkflowProject::new(&workflow, &script);
    let ran = project.run_workflow();
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], json!(1), "{}", ran.stderr);
    project.command(&["export", "last", "rec"]).output().expect(0, &[]);
    assert_eq!(recording(&project)["attempts"][0]["rules"][0]["known"], json!({"wanted": "blue"}));
    project.command(&["replay", "rec"]).output().expect(0, &[]);
    // Without them, the first reply would have been good enough.
    let mut without = recording(&project);
    without["attempts"][0].as_object_mut().unwrap().remove("rules");
    project.write("rec/recording.json", without.to_string());
    let replayed = project.run_json(&["replay", "rec", "--format", "json"]);
    assert_eq!(replayed.code, Some(1));
    assert_eq!(replayed.report["replayed"][0]["differences"][0]["pointer"], json!("/note"));
}

#[test]
fn what_failed_otherwise_is_not_judged_again() {
    let project = WorkflowProject::new(
        &one_step(", retries: { transport: 0 }"),
        &replies(&["fail: transport"]),
    );
    project.run_workflow();
    project.command(&["export", "last", "rec"]).output().expect(0, &[]);
    let replayed = project.run_json(&["replay", "rec", "--format", "json"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.report);
    assert_eq!(replayed.report["replayed"][0]["outcome"], json!("transport"));
}

#[test]
fn a_folder_that_is_not_empty_is_not_written_over() {
    let project = exported();
    let before = project.read("rec/recording.json");
    assert!(
        project
            .run_refused(&["export", "last", "rec"])
            .contains("rec is not empty; choose a new folder")
    );
    assert!(project.run_refused(&["export", "last", "flow.yaml"]).contains("is not a folder"));
    assert_eq!(project.read("rec/recording.json"), before);
    assert!(project.run_refused(&["export", "nothing"]).contains("nothing"));
}
