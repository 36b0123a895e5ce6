//! Runs that are exported and replayed.

use crate::scene::{BAD, GOOD, Scene, one_step, replies};
use serde_json::{Value, json};

/// A run whose first reply is refused, exported to `rec`.
pub(crate) fn exported() -> Scene {
    let scene = Scene::new(&one_step(""), &replies(&[BAD, GOOD]));
    assert_eq!(scene.run().ended(), ("done", None, 0));
    scene.command(&["export", "last", "rec"]).assert().success();
    scene
}

pub(crate) fn recording(scene: &Scene) -> Value {
    serde_json::from_str(&scene.read("rec/recording.json")).unwrap()
}

#[test]
fn a_run_is_exported_and_nothing_has_changed() {
    let scene = Scene::new(&one_step(""), &replies(&[BAD, GOOD]));
    scene.run();
    let shown =
        [scene.shown(&["export", "last", "rec"]), scene.shown(&["replay", "rec"])].join("\n");
    insta::assert_snapshot!("exported_and_replayed", shown);
    let recording = recording(&scene);
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
    assert_eq!(scene.read("rec/attempts/001-work/1.stdout"), r#"{"ok": false}"#);
    assert!(scene.read("rec/attempts/001-work/1.prompt").starts_with("Do it."));
}

#[test]
fn the_same_run_gives_the_same_recording() {
    let scene = exported();
    scene.command(&["export", "last", "again"]).assert().success();
    for file in ["recording.json", "attempts/001-work/1.prompt", "attempts/001-work/2.stdout"] {
        assert_eq!(scene.read(&format!("rec/{file}")), scene.read(&format!("again/{file}")));
    }
}

#[test]
fn a_contract_that_changed_shows_what_it_changes_and_can_be_recorded() {
    let scene = exported();
    // What is not there any more is required now.
    scene.file(
        "contracts/step.yaml",
        "contract: scene/step\nversion: 2\nfields: { ok: boolean, proof: string }\nexamples: [{ ok: true, proof: x }]\n",
    );
    let arguments = ["replay", "rec", "--contracts", "contracts"];
    let shown = [
        scene.shown(&arguments),
        scene.shown(&[&arguments[..], &["--format", "junit"]].concat()),
        scene.shown(&[&arguments[..], &["--update"]].concat()),
        scene.shown(&arguments),
        // It carries what it was judged by.
        scene.shown(&["replay", "rec"]),
    ];
    insta::assert_snapshot!("changed_and_updated", shown.join("\n"));
    let attempt = &recording(&scene)["attempts"][0];
    assert_eq!(attempt["contract"], json!("scene/step@2"));
    assert_eq!(attempt["result"]["outcome"], json!("contract"));
}

#[test]
fn values_that_changed_are_told_by_their_places() {
    let scene = Scene::new(&one_step(""), &replies(&[r#"text: '{"ok": true, "note": "a"}'"#]));
    scene.run();
    scene.command(&["export", "last", "rec"]).assert().success();
    scene.file(
        "contracts/step.yaml",
        "contract: scene/step\nversion: 1\nfields: { ok: boolean, note?: string, level: { type: integer, default: 3 } }\nexamples: [{ ok: true, level: 1 }]\n",
    );
    let replayed = scene.json(&["replay", "rec", "--contracts", "contracts", "--format", "json"]);
    assert_eq!(replayed.code, 1);
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
    let scene = Scene::new(&workflow, &script);
    let ran = scene.run();
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], json!(1), "{}", ran.words);
    scene.command(&["export", "last", "rec"]).assert().success();
    assert_eq!(recording(&scene)["attempts"][0]["rules"][0]["known"], json!({"wanted": "blue"}));
    scene.command(&["replay", "rec"]).assert().success();
    // Without them, the first reply would have been good enough.
    let mut without = recording(&scene);
    without["attempts"][0].as_object_mut().unwrap().remove("rules");
    scene.file("rec/recording.json", &without.to_string());
    let replayed = scene.json(&["replay", "rec", "--format", "json"]);
    assert_eq!(replayed.code, 1);
    assert_eq!(replayed.report["replayed"][0]["differences"][0]["pointer"], json!("/note"));
}

#[test]
fn what_failed_otherwise_is_not_judged_again() {
    let scene =
        Scene::new(&one_step(", retries: { transport: 0 }"), &replies(&["fail: transport"]));
    scene.run();
    scene.command(&["export", "last", "rec"]).assert().success();
    let replayed = scene.json(&["replay", "rec", "--format", "json"]);
    assert_eq!(replayed.code, 0, "{}", replayed.report);
    assert_eq!(replayed.report["replayed"][0]["outcome"], json!("transport"));
}

#[test]
fn a_folder_that_is_not_empty_is_not_written_over() {
    let scene = exported();
    let before = scene.read("rec/recording.json");
    assert!(
        scene.refused(&["export", "last", "rec"]).contains("rec is not empty; choose a new folder")
    );
    assert!(scene.refused(&["export", "last", "flow.yaml"]).contains("is not a folder"));
    assert_eq!(scene.read("rec/recording.json"), before);
    assert!(scene.refused(&["export", "nothing"]).contains("nothing"));
}
