//! Results, and replies without a result although the vendor's program reports success.

use crate::agents::project::{
    CliProject, RUN_TIMEOUT, VendorCli, for_each_cli, tests_oldest_versions,
};
use counterfoil_testkit::read_tree;
use serde_json::{Value, json};

for_each_cli!(a_good_result_is_taken_at_once);
for_each_cli!(prose_is_asked_about_in_the_same_conversation);
for_each_cli!(a_success_without_a_result_is_none);
for_each_cli!(a_large_prompt_arrives_whole);

fn a_good_result_is_taken_at_once(cli: VendorCli) {
    let result = json!({"ok": true, "note": "ferns – too"});
    let script = json!([
        {"when": "Water the plants.", "result": result, "usage": {"input": 100, "output": 7}},
        {"text": "Done.", "repeat": true, "usage": {"input": 0, "output": 0}},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    let attempt = project.accepted();
    assert_eq!(attempt["value"], result);
    assert_eq!(attempt["repairs_asked"], 0);
    // Nothing is reported for text, which is the default channel.
    let way = if cli.accepts_schema() { json!("native") } else { Value::Null };
    assert_eq!(attempt["replies"][0]["channel"], way);
    assert_eq!(attempt["usage"]["input_tokens"], 100);
    assert_eq!(attempt["usage"]["output_tokens"], 7);
    // One of them says what it costs, and one uses a model whose price is known. Gemini CLI chooses
    // the model by its version.
    let has_cost = attempt["usage"]["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0);
    assert!(has_cost || cli == VendorCli::Gemini);
    let recorded = project.events().iter().any(|event| event.to_string().contains(&cli.version()));
    assert!(recorded, "the version {} stands in no event", cli.version());
}

fn prose_is_asked_about_in_the_same_conversation(cli: VendorCli) {
    let script = json!([
        {"text": "The ferns are watered.", "usage": {"input": 100, "output": 10}},
        {"when": ["Water the plants.", "The ferns are watered.", "Your answer contained no result"],
         "text": "{\"ok\": true}", "usage": {"input": 200, "output": 20}},
    ]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("channels = []");
    let attempt = project.accepted();
    let statuses: Vec<&Value> =
        attempt["replies"].as_array().unwrap().iter().map(|reply| &reply["status"]).collect();
    assert_eq!(statuses, ["absent", "accepted"]);
    let asked = project.requests();
    assert_eq!(asked.len(), 2);
    assert!(!asked[0].contains("Your answer contained no result"));
    // Some of them count the whole conversation each time. What an attempt used is counted once.
    assert_eq!(attempt["usage"]["input_tokens"], 300, "{}", attempt["usage"]);
    assert_eq!(attempt["usage"]["output_tokens"], 30, "{}", attempt["usage"]);
    if cli == VendorCli::Claude {
        // Older versions tell what a prompt cost, newer ones what the conversation cost.
        let costs = totals(&project).into_iter();
        let whole: f64 =
            if tests_oldest_versions() { costs.sum() } else { costs.fold(0.0, f64::max) };
        let ours = attempt["usage"]["cost_usd"].as_f64().unwrap();
        assert!(
            whole > 0.0 && (ours - whole).abs() < 1e-9,
            "{ours} is not the {whole} of the whole conversation"
        );
    }
}

/// What Claude Code says that a conversation has cost, each time it says so.
fn totals(project: &CliProject) -> Vec<f64> {
    let mut found = Vec::new();
    for (_, bytes) in read_tree(project.state()).into_values() {
        let text = String::from_utf8_lossy(&bytes);
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        found.extend(events.filter_map(|event| event["total_cost_usd"].as_f64()));
    }
    found
}

fn a_success_without_a_result_is_none(cli: VendorCli) {
    let Some(project) =
        CliProject::open(cli, &json!([{"text": "All is well: ok is true.", "repeat": true}]))
    else {
        return;
    };
    project.write_workflow("repairs: 1");
    let report = project.failed("contract", 1);
    let attempt = &report["attempts"][0];
    assert_eq!((&attempt["outcome"], &attempt["value"]), (&json!("contract"), &Value::Null));
    assert_eq!(attempt["replies"].as_array().unwrap().len(), 2);
}

fn a_large_prompt_arrives_whole(cli: VendorCli) {
    let script = json!([{"when": "the last line", "result": {"ok": true}}, {"text": "Done.", "repeat": true}]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    let task = format!(
        "{}the last line",
        "All of this has to be read, and nothing of it is left out.\n".repeat(3500)
    );
    assert!(task.len() > 200_000);
    project.write("task.md", &task);
    let output = project.start_workflow(&["--task", "@repo/task.md"]).wait_for(RUN_TIMEOUT);
    assert_eq!(output.code, Some(0), "{}", project.describe(&output));
    assert!(project.requests()[0].contains(&task), "the prompt was changed on its way");
}
