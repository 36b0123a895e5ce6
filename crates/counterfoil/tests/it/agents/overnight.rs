//! A night in minutes: everything that goes wrong in one, with short waits. The run ends done, and
//! every token and dollar is counted.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::wait_until;
use serde_json::{Value, json};

for_each_cli!(a_bad_night_ends_done);

/// What the model uses for each answer.
const TOKENS: u64 = 1_100;
/// What that costs by the prices below, in US dollars.
const COST: f64 = 0.02;
/// The answers that are paid for: five results, and two files before an interruption.
const ANSWERS: u32 = 7;

/// Short waits, and prices for a model of nobody. Claude Code reports its cost itself.
fn settings(cli: VendorCli) -> String {
    let retry = "retry.transport = { times = 12, first = \"200ms\", most = \"1s\" }\n\
                 retry.limit = { first = \"500ms\", most = \"2s\" }";
    match cli {
        VendorCli::Claude => retry.to_owned(),
        _ => format!("model = \"acme-1\"\n{retry}\n[prices.acme-1]\ninput = 10.0\noutput = 100.0"),
    }
}

/// A workflow of five steps.
fn write_workflow(project: &CliProject) {
    let parts = ["one", "two", "three", "four", "five", "end"];
    let states: String = parts
        .windows(2)
        .map(|pair| format!("  {}: {{ agent: {}, go: {} }}\n", pair[0], pair[0], pair[1]))
        .collect();
    let agents: String = parts[..5]
        .iter()
        .map(|part| {
            format!("  {part}: {{ contract: acme/ok, prompt: prompts/{part}.md, idle: 2m }}\n")
        })
        .collect();
    project.write(
        "flow.yaml",
        format!(
            "workflow: night\nagents:\n{agents}contracts: [contracts]\nstart: one\nstates:\n{states}  end: {{ end: done }}\n"
        ),
    );
    for part in &parts[..5] {
        project.write(format!("prompts/{part}.md"), format!("Do part {part}.\n"));
    }
}

/// What happens in the night, step by step.
fn script(cli: VendorCli) -> Value {
    let usage = json!({"input": 1_000, "output": 100});
    let free = json!({"input": 0, "output": 0});
    let result = |when: Value| {
        let mut reply = cli.hand_in("", &json!({"ok": true}));
        reply["when"] = when;
        reply["usage"] = usage.clone();
        reply
    };
    let write = |part: &str| {
        let call = json!({"write": format!("{part}.txt"), "content": "Half of it.\n"});
        json!({"when": format!("part {part}"), "calls": [call], "usage": usage})
    };
    let mut replies = Vec::new();
    // A storm: the service is overloaded again and again.
    let overloaded = json!({"when": "part one", "status": 529, "error": "Overloaded"});
    // Gemini CLI takes long to start, and its older versions ask once.
    replies.extend(vec![overloaded; if cli == VendorCli::Gemini { 6 } else { 12 }]);
    replies.push(result(json!("part one")));
    // A limit of the account that is lifted soon.
    let limited = json!({
        "when": "part two", "status": 429, "error": "Too many requests, try again in 2s.", "reset": 2,
    });
    replies.extend(vec![limited; if cli == VendorCli::Codex { 0 } else { 2 }]);
    replies.push(result(json!("part two")));
    // The network is cut in the middle of an answer.
    let cut = json!({"when": "part three", "text": "Let me", "cut": "middle", "usage": free});
    replies.extend(vec![cut; 3]);
    replies.push(result(json!("part three")));
    // The engine is killed, and later the terminal is closed, while the model is silent.
    for part in ["four", "five"] {
        let name = format!("part {part}");
        replies.push(write(part));
        replies.push(result(json!([name.clone(), "interrupted ("])));
        replies.push(
            json!({"when": name, "unless": "interrupted (", "hang": "start", "repeat": true}),
        );
    }
    // What some say after they have submitted their result.
    replies.push(json!({"text": "Done.", "usage": free, "repeat": true}));
    Value::Array(replies)
}

fn a_bad_night_ends_done(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &script(cli)) else { return };
    write_workflow(&project);
    project.write_settings(&settings(cli));
    let silent = |part: &str| {
        let name = format!("part {part}");
        wait_until(RUN_TIMEOUT, "the model is silent", || {
            let asked = project.requests();
            (asked.iter().filter(|one| one.contains(&name)).count() >= 2).then_some(())
        });
    };
    let live = project.start_workflow(&["--max-cost", "10"]);
    silent("four");
    live.signal("KILL");
    live.wait_for(RUN_TIMEOUT);
    let resume =
        || project.start_command(&mut project.command(&["resume", "last", "--format", "json"]));
    let live = resume();
    silent("five");
    live.signal("HUP");
    live.wait_for(RUN_TIMEOUT);
    let output = resume().wait_for(RUN_TIMEOUT);
    let report = output.json();
    let story = || project.describe(&output);
    assert_eq!((output.code, report["outcome"].as_str()), (Some(0), Some("done")), "{}", story());
    let attempts = report["attempts"].as_array().unwrap();
    let outcomes = |part: &str| -> Vec<&str> {
        let of_part = attempts.iter().filter(|one| one["path"][0] == part);
        of_part.map(|one| one["outcome"].as_str().unwrap()).collect()
    };
    let trouble = |part: &str| {
        let mut all = outcomes(part);
        assert_eq!(all.pop(), Some("accepted"), "{part}: {}", story());
        all
    };
    assert!(trouble("one").len() > 1 && trouble("one").iter().all(|one| *one == "transport"));
    if cli != VendorCli::Codex {
        assert!(trouble("two").iter().all(|one| *one == "limit"), "{:?}", trouble("two"));
    }
    assert!(trouble("three").iter().all(|one| *one == "transport"), "{:?}", trouble("three"));
    assert_eq!([trouble("four"), trouble("five")], [["cancelled"], ["cancelled"]], "{}", story());
    // Nothing was paid for that is not counted, and nothing is counted twice.
    let usage = &report["usage"];
    let tokens = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    let expected = u64::from(ANSWERS) * TOKENS;
    // Claude Code counts a token of each answer that was cut off.
    assert!((expected..=expected + 3).contains(&tokens), "{tokens}: {}", story());
    let each = match cli {
        VendorCli::Claude => {
            let two = attempts.iter().rfind(|one| one["path"][0] == "two").unwrap();
            two["usage"]["cost_usd"].as_f64().unwrap()
        }
        _ => COST,
    };
    let cost = usage["cost_usd"].as_f64().unwrap();
    assert!(
        each > 0.0 && (cost - f64::from(ANSWERS) * each).abs() < 1e-4,
        "{cost}, {each}: {}",
        story()
    );
    project.assert_nothing_runs(&report);
}
