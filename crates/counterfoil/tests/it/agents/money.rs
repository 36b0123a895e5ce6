//! Limits on tokens and money hold within an attempt, and what a program used is counted however it
//! ends.

use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli, for_each_cli};
use counterfoil_testkit::wait_until;
use serde_json::{Value, json};

for_each_cli!(tokens_hold_within_an_attempt);
for_each_cli!(what_a_silent_one_used_is_counted);
for_each_cli!(what_a_failed_one_used_is_counted);
for_each_cli!(what_a_killed_one_used_is_counted_when_the_run_is_cancelled);
for_each_cli!(tokens_have_a_price: Codex codex, Gemini gemini);
for_each_cli!(a_price_holds_within_an_attempt: Codex codex, Gemini gemini);
for_each_cli!(an_unknown_price_is_said_at_the_start: Codex codex, Gemini gemini);

/// What the model uses for each answer.
const TOKENS: u64 = 1_100;

/// A model that works on and on, and uses this for each answer.
fn never_done() -> Value {
    json!({
        "calls": [{"write": "notes.txt", "content": "And one more line.\n"}],
        "usage": {"input": 1_000, "output": 100},
        "delay": 1,
        "repeat": true,
    })
}

fn tokens(usage: &Value) -> u64 {
    usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap()
}

fn tokens_hold_within_an_attempt(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &json!([never_done()])) else { return };
    let output = project.start_workflow(&["--max-tokens", "3000"]).wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(report["outcome"], "budget", "{}", project.describe(&output));
    let requests = project.requests().len();
    assert!((3..=4).contains(&requests), "{requests} requests: {}", project.describe(&output));
    assert_eq!(tokens(&report["usage"]), 3 * TOKENS, "{}", project.describe(&output));
    project.assert_nothing_runs(&report);
}

fn what_a_silent_one_used_is_counted(cli: VendorCli) {
    let mut twice = never_done();
    twice["repeat"] = false.into();
    let script = json!([twice, twice, {"text": "Let me see …", "hang": "start", "repeat": true}]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_workflow("idle: 5s, retries: { timeout: 0 }");
    let report = project.failed("timeout", 124);
    assert_eq!(tokens(&report["usage"]), 2 * TOKENS, "{report:#}");
}

fn what_a_failed_one_used_is_counted(cli: VendorCli) {
    let mut once = never_done();
    once["repeat"] = false.into();
    let script = json!([once, {"status": 401, "error": "this key is no key", "repeat": true}]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    let report = project.failed("permission", 5);
    assert_eq!(tokens(&report["usage"]), TOKENS, "{report:#}");
}

fn what_a_killed_one_used_is_counted_when_the_run_is_cancelled(cli: VendorCli) {
    let mut once = never_done();
    once["repeat"] = false.into();
    let script = json!([once, {"hang": "start", "repeat": true}]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    let live = project.start_workflow(&[]);
    wait_until(RUN_TIMEOUT, "the model is silent", || {
        (project.requests().len() >= 2).then_some(())
    });
    live.signal("KILL");
    live.wait_for(RUN_TIMEOUT);
    let output =
        project.start_command(&mut project.command(&["cancel", "last"])).wait_for(RUN_TIMEOUT);
    assert_eq!(output.code, Some(0), "{}", project.describe(&output));
    let show = &mut project.command(&["show", "last", "--format", "json"]);
    let report = project.start_command(show).wait_for(RUN_TIMEOUT).json();
    assert_eq!(report["outcome"], "cancelled", "{report:#}");
    assert_eq!(tokens(&report["usage"]), TOKENS, "{report:#}");
    project.assert_nothing_runs(&report);
}

/// It stops itself, and says what it spent.
#[test]
fn money_holds_within_an_attempt_of_claude() {
    let Some(project) = CliProject::open(VendorCli::Claude, &json!([never_done()])) else { return };
    let output = project.start_workflow(&["--max-cost", "0.01"]).wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(report["outcome"], "budget", "{}", project.describe(&output));
    let spent = report["usage"]["cost_usd"].as_f64().unwrap();
    let each = spent / f64::from(u32::try_from(project.requests().len()).unwrap());
    assert!(spent >= 0.01 && spent < 0.01 + each, "{spent} USD: {}", project.describe(&output));
    project.assert_nothing_runs(&report);
}

/// What the tokens of one answer cost by these prices, in US dollars.
const PRICES: &str = "model = \"acme-1\"\n[prices.acme-1]\ninput = 10.0\noutput = 100.0";
const COST: f64 = 0.02;

#[track_caller]
fn assert_cost(report: &Value, expected: f64) {
    let cost = report["usage"]["cost_usd"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-9, "{cost} and not {expected}: {report:#}");
}

fn tokens_have_a_price(cli: VendorCli) {
    let mut once = never_done();
    once["repeat"] = false.into();
    let mut last = cli.hand_in("Water", &json!({"ok": true}));
    last["usage"] = json!({"input": 1_000, "output": 100});
    let done = json!({"text": "Done.", "usage": {"input": 0, "output": 0}, "repeat": true});
    let Some(project) = CliProject::open(cli, &json!([once, last, done])) else { return };
    project.write_settings(PRICES);
    let output = project.start_workflow(&["--max-cost", "1", "--strict"]).wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(report["outcome"], "done", "{}", project.describe(&output));
    assert_cost(&report, 2.0 * COST);
    assert!(!output.stderr.contains("cannot be known"), "{}", output.stderr);
}

fn a_price_holds_within_an_attempt(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &json!([never_done()])) else { return };
    project.write_settings(PRICES);
    let output = project.start_workflow(&["--max-cost", "0.05"]).wait_for(RUN_TIMEOUT);
    let report = output.json();
    assert_eq!(report["outcome"], "budget", "{}", project.describe(&output));
    // Three answers reach the limit.
    assert_cost(&report, 3.0 * COST);
    project.assert_nothing_runs(&report);
}

fn an_unknown_price_is_said_at_the_start(cli: VendorCli) {
    let script =
        json!([cli.hand_in("Water", &json!({"ok": true})), {"text": "Done.", "repeat": true}]);
    let Some(project) = CliProject::open(cli, &script) else { return };
    project.write_settings("model = \"acme-2\"");
    let limited = ["--max-cost", "1"];
    let output =
        project.start_workflow(&[&limited[..], &["--strict"]].concat()).wait_for(RUN_TIMEOUT);
    assert_eq!(output.code, Some(2), "{}", project.describe(&output));
    assert!(output.stderr.contains("there is no price for acme-2"), "{}", output.stderr);
    assert!(project.requests().is_empty());
    let output = project.start_workflow(&limited).wait_for(RUN_TIMEOUT);
    assert_eq!(output.code, Some(0), "{}", project.describe(&output));
    let said = "the cost of agent 'worker' cannot be known";
    assert!(output.stderr.contains(said), "{}", output.stderr);
    let notes = output.json()["attempts"][0]["replies"][0]["notes"].to_string();
    assert!(notes.contains("there is no price for"), "{notes}");
}
