//! Results, and what is taken for none although the vendor's program calls it a success.

use crate::stage::{MOST, Stage, Who, each, files};
use serde_json::{Value, json};

each!(a_good_result_is_taken_at_once);
each!(prose_is_asked_about_in_the_same_conversation);
each!(a_success_without_a_result_is_none);
each!(a_large_prompt_arrives_whole);

fn a_good_result_is_taken_at_once(who: Who) {
    let result = json!({"ok": true, "note": "ferns – too"});
    let script = json!([
        {"when": "Water the plants.", "result": result, "usage": {"input": 100, "output": 7}},
        {"text": "Done.", "repeat": true, "usage": {"input": 0, "output": 0}},
    ]);
    let Some(stage) = Stage::open(who, &script) else { return };
    let attempt = stage.accepted();
    assert_eq!(attempt["value"], result);
    assert_eq!(attempt["repairs_asked"], 0);
    // The text is the way that nothing is said of.
    let way = if who.takes_schema() { json!("native") } else { Value::Null };
    assert_eq!(attempt["replies"][0]["channel"], way);
    assert_eq!(attempt["usage"]["input_tokens"], 100);
    assert_eq!(attempt["usage"]["output_tokens"], 7);
    // Only one of them says what it costs.
    assert_eq!(
        attempt["usage"]["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0),
        who == Who::Claude
    );
    let recorded =
        stage.house.events().iter().any(|event| event.to_string().contains(&who.version()));
    assert!(recorded, "the version {} stands in no event", who.version());
}

fn prose_is_asked_about_in_the_same_conversation(who: Who) {
    let script = json!([
        {"text": "The ferns are watered.", "usage": {"input": 100, "output": 10}},
        {"when": ["Water the plants.", "The ferns are watered.", "Your answer held no result"],
         "text": "{\"ok\": true}", "usage": {"input": 200, "output": 20}},
    ]);
    let Some(stage) = Stage::open(who, &script) else { return };
    stage.settings("channels = []");
    let attempt = stage.accepted();
    let statuses: Vec<&Value> =
        attempt["replies"].as_array().unwrap().iter().map(|reply| &reply["status"]).collect();
    assert_eq!(statuses, ["absent", "accepted"]);
    let asked = stage.asked();
    assert_eq!(asked.len(), 2);
    assert!(!asked[0].holds("Your answer held no result"));
    // Some of them count the whole conversation each time. What an attempt used is counted once.
    assert_eq!(attempt["usage"]["input_tokens"], 300, "{}", attempt["usage"]);
    assert_eq!(attempt["usage"]["output_tokens"], 30, "{}", attempt["usage"]);
    if who == Who::Claude {
        let last = totals(&stage).into_iter().fold(0.0, f64::max);
        let ours = attempt["usage"]["cost_usd"].as_f64().unwrap();
        assert!(
            last > 0.0 && (ours - last).abs() < 1e-9,
            "{ours} is not the {last} of the whole conversation"
        );
    }
}

/// What Claude Code says that a conversation has cost, each time it says so.
fn totals(stage: &Stage) -> Vec<f64> {
    let mut found = Vec::new();
    for file in files(&stage.house.state()) {
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        found.extend(events.filter_map(|event| event["total_cost_usd"].as_f64()));
    }
    found
}

fn a_success_without_a_result_is_none(who: Who) {
    let Some(stage) =
        Stage::open(who, &json!([{"text": "All is well: ok is true.", "repeat": true}]))
    else {
        return;
    };
    stage.workflow("repairs: 1");
    let report = stage.failed("contract", 1);
    let attempt = &report["attempts"][0];
    assert_eq!((&attempt["outcome"], &attempt["value"]), (&json!("contract"), &Value::Null));
    assert_eq!(attempt["replies"].as_array().unwrap().len(), 2);
}

fn a_large_prompt_arrives_whole(who: Who) {
    let script = json!([{"when": "the last line", "result": {"ok": true}}, {"text": "Done.", "repeat": true}]);
    let Some(stage) = Stage::open(who, &script) else { return };
    let task = format!(
        "{}the last line",
        "All of this has to be read, and nothing of it is left out.\n".repeat(3500)
    );
    assert!(task.len() > 200_000);
    stage.house.file("task.md", &task);
    let said = stage.start(&["--task", "@repo/task.md"]).end_within(MOST);
    assert_eq!(said.code, Some(0), "{}", stage.story(&said));
    assert!(stage.asked()[0].holds(&task), "the prompt was changed on its way");
}
