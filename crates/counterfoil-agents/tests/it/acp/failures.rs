//! What goes wrong with programs of the protocol: each failure has its outcome and a reason.

use super::scripted::{Scripted, agent_reply, end_turn, text};
use counterfoil_agents::agent::ReplyStatus;
use counterfoil_flow::Budget;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The outcome and the reason of the reply to one prompt.
async fn fails(agent: &Scripted) -> (String, String) {
    let began = Instant::now();
    let reply = agent.open().ask_task("Do it").await;
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
    let (outcome, reason) = agent_reply(&reply.status);
    assert!(!reason.contains('\u{1b}'), "{reason:?}");
    assert!(reason.chars().count() < 900, "{reason}");
    (outcome.to_owned(), reason.to_owned())
}

async fn fails_with(script: Value) -> (String, String) {
    fails(&Scripted::new(script)).await
}

fn turn(actions: Value) -> Value {
    json!({"turns": [actions]})
}

#[tokio::test]
async fn errors_of_the_protocol_have_the_outcomes_of_the_command_lines() {
    let error = |error: Value| turn(json!([{"answer": {"error": error}}]));
    for (script, outcome, reason) in [
        (
            error(
                json!({"code": 500, "message": "{\"error\":{\"code\":500,\"message\":\"boom\"}}"}),
            ),
            "transport",
            "boom",
        ),
        (error(json!({"code": 429, "message": "slow down"})), "limit", "slow down"),
        (
            error(
                json!({"code": -32603, "message": "Internal error", "data": {"details": "API Error: 401 no"}}),
            ),
            "permission",
            "Internal error: API Error: 401 no; log in with `python3` itself, or set the key that it needs",
        ),
        (error(json!({"code": -32602, "message": "bad \u{1b}[2J"})), "agent", "bad \\u{1b}[2J"),
        (error(json!({"strange": true})), "agent", "it failed without a message"),
        (
            json!({"initialize": {"error": {"code": -1, "message": "no"}}}),
            "agent",
            "it answered `initialize` with an error: no",
        ),
        (
            json!({"initialize": {"protocolVersion": 1, "authMethods": [
                {"id": "a", "name": "Acme login", "description": "Run `acme login`"},
            ]}, "new": {"error": {"code": -32000, "message": "Authentication required"}}}),
            "permission",
            "it answered `session/new` with an error: Authentication required; log in with `python3` \
             itself; it offers: Acme login (Run `acme login`)",
        ),
    ] {
        assert_eq!(fails_with(script).await, (outcome.to_owned(), reason.to_owned()));
    }
}

#[tokio::test]
async fn a_turn_that_did_not_end_well_is_no_reply() {
    let stop = |reason: &str| turn(json!([text("x"), {"answer": {"stopReason": reason}}]));
    for (script, outcome, reason) in [
        (stop("max_tokens"), "agent", "max_tokens"),
        (stop("refusal"), "agent", "refus"),
        (stop("max_turn_requests"), "agent", "max_turn_requests"),
        (stop("cancelled"), "agent", "nobody cancelled"),
        (stop("weather"), "agent", "unknown reason, `weather`"),
        (turn(json!([{"answer": {}}])), "agent", "no stop reason"),
        // Errors that are passed for a reply.
        (
            turn(json!([
                {"update": {"sessionUpdate": "session_info_update",
                    "_meta": {"codex": {"threadStatus": {"type": "systemError"}}}}},
                text("{\"error\": {\"message\": \"boom\", \"code\": \"server_error\"}}\n\n"),
                end_turn(),
            ])),
            "transport",
            "boom",
        ),
        (
            turn(json!([
                {"update": {"sessionUpdate": "session_info_update",
                    "_meta": {"codex": {"threadStatus": {"type": "systemError"}}}}},
                text("We are sorry."),
                end_turn(),
            ])),
            "agent",
            "We are sorry.",
        ),
        (
            turn(json!([text("Execution failed: CAPIError: 500 boom"), end_turn()])),
            "transport",
            "boom",
        ),
    ] {
        let (found, why) = fails_with(script.clone()).await;
        assert_eq!(found, outcome, "{script} {why}");
        assert!(why.contains(reason), "{why}");
    }
    // A program that recovered.
    let agent = Scripted::new(turn(json!([
        {"update": {"sessionUpdate": "session_info_update",
            "_meta": {"codex": {"threadStatus": {"type": "systemError"}}}}},
        {"update": {"sessionUpdate": "session_info_update",
            "_meta": {"codex": {"threadStatus": {"type": "active"}}}}},
        text("fine"), end_turn(),
    ])));
    assert_eq!(agent.open().ask_task("Do it").await.status, ReplyStatus::Complete);
}

#[tokio::test]
async fn a_program_that_ends_early_says_why() {
    let (outcome, reason) =
        fails_with(turn(json!([{"stderr": "no key\u{1b}[2J"}, {"exit": 3}]))).await;
    assert_eq!(outcome, "agent");
    assert_eq!(
        reason,
        "python3 ended with exit code 3 before it answered `session/prompt`: no key\\u{1b}[2J"
    );
    let (outcome, reason) = fails(&Scripted::program("sh -c 'echo why >&2; exit 7'")).await;
    assert_eq!(outcome, "agent");
    assert_eq!(reason, "sh ended with exit code 7 before it answered `initialize`: why");
    // It ends between two prompts.
    let agent = Scripted::new(json!({"turns": [[text("x"), end_turn(), {"exit": 4}]]}));
    let mut session = agent.open();
    assert_eq!(session.ask_task("Do it").await.status, ReplyStatus::Complete);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let reply = session.ask_task("Again").await;
    let (outcome, reason) = agent_reply(&reply.status);
    assert_eq!(
        (outcome, reason),
        ("agent", "python3 ended with exit code 4 before it answered `session/prompt`")
    );
}

#[tokio::test]
async fn who_does_not_speak_the_protocol_is_told_so() {
    for (agent, part) in [
        (Scripted::program("yes"), "does not speak the Agent Client Protocol"),
        (Scripted::program("cat"), "it answered `initialize` with an error"),
        (
            Scripted::new(json!({"initialize": {"protocolVersion": 2}})),
            "it speaks version 2 of the Agent Client Protocol, and we speak version 1",
        ),
        (Scripted::new(json!({"initialize": {}})), "has no version"),
        (Scripted::new(json!({"new": {"sessionId": ""}})), "no usable id"),
        (Scripted::new(json!({"new": {"sessionId": "x".repeat(1000)}})), "no usable id"),
    ] {
        let (outcome, reason) = fails(&agent).await;
        assert_eq!(outcome, "agent", "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn garbage_between_messages_is_noted_and_skipped() {
    let agent = Scripted::new(turn(json!([
        {"raw": "Welcome!\u{1b}[2J", "times": 3},
        {"raw": "{\"jsonrpc\":\"2.0\"}"},
        {"raw": "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}"},
        {"raw": "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":5}}"},
        {"raw": "[[[[[["},
        {"raw": "{\"a\":".repeat(500)},
        text("fine"), end_turn(),
    ])));
    let reply = agent.open().ask_task("Do it").await;
    assert_eq!((reply.status, reply.text.as_str()), (ReplyStatus::Complete, "fine"));
    let notes = reply.details.notes.join("\n");
    assert!(notes.contains("6 lines are not events, the first: Welcome!\\u{1b}[2J"), "{notes}");
    assert!(notes.contains("it answered a request that it was not sent"), "{notes}");
    assert!(notes.contains("`session/update` with an unexpected structure"), "{notes}");
}

#[tokio::test]
async fn silence_has_an_end() {
    // In the middle of a turn, as in retries that nobody hears of.
    let mut agent = Scripted::new(turn(json!([text("x\n"), {"child": true}, {"sleep": 60}])));
    agent.idle = Some(Duration::from_millis(800));
    let (outcome, reason) = fails(&agent).await;
    assert_eq!(outcome, "timeout");
    assert!(reason.contains("python3 fell silent for 800 ms"), "{reason}");
    assert!(agent.children_are_gone());
    // It never stops talking.
    let mut agent = Scripted::program("sh -c 'while :; do echo {}; sleep 0.05; done'");
    agent.total = Duration::from_millis(1500);
    let (outcome, reason) = fails(&agent).await;
    assert_eq!(outcome, "timeout", "{reason}");
    // Before a conversation is open.
    for script in [json!({"initialize": {"hang": true}}), json!({"new": {"hang": true}})] {
        let mut agent = Scripted::new(script);
        agent.startup = Some(Duration::from_secs(2));
        let (outcome, reason) = fails(&agent).await;
        assert_eq!(outcome, "timeout");
        let part = "in the first 2 s; if it needs longer, raise `startup`";
        assert!(reason.contains(part) || reason.contains("wrote nothing"), "{reason}");
    }
}

#[tokio::test]
async fn long_lines_and_endless_updates_are_bounded() {
    let agent = Scripted::program(
        "python3 -c 'import sys,json\n\
         i=json.loads(sys.stdin.readline());print(json.dumps({\"id\":i[\"id\"],\"result\":{\"protocolVersion\":1}}),flush=True)\n\
         i=json.loads(sys.stdin.readline());print(json.dumps({\"id\":i[\"id\"],\"result\":{\"sessionId\":\"s\"}}),flush=True)\n\
         i=json.loads(sys.stdin.readline())\n\
         for n in range(66): sys.stdout.write(\"x\"*(1<<20))\n\
         print()\n\
         u={\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"text\":\"y\"*1000}}}}\n\
         for n in range(5000): print(json.dumps(u))\n\
         print(json.dumps({\"id\":i[\"id\"],\"result\":{\"stopReason\":\"end_turn\"}}),flush=True)'",
    );
    let reply = agent.open().ask_task("Do it").await;
    assert_eq!(reply.status, ReplyStatus::Complete, "{:?}", reply.details.notes);
    assert_eq!(reply.text.len(), 5_000_000);
    let notes = reply.details.notes.join("\n");
    assert!(notes.contains("1 line of its output had more than 64 MiB"), "{notes}");
}

#[tokio::test]
async fn who_does_not_read_is_ended() {
    // It asks, and does not read the answers.
    let agent = Scripted::new(turn(json!([
        {"raw": "{\"id\":1,\"method\":\"fs/read_text_file\"}", "times": 20000}, {"sleep": 60},
    ])));
    let (outcome, reason) = fails(&agent).await;
    assert_eq!(outcome, "agent");
    assert!(reason.contains("does not read what it is sent"), "{reason}");
}

#[tokio::test]
async fn a_limit_of_money_stops_it() {
    let mut agent = Scripted::new(turn(json!([
        {"update": {"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": {"amount": 0.4, "currency": "USD"}}},
        {"update": {"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": {"amount": 0.6, "currency": "USD"}}},
        {"sleep": 60},
    ])));
    agent.budget = Budget { cost_usd: Some(0.5), ..Budget::default() };
    let mut session = agent.open();
    let reply = session.ask_task("Do it").await;
    assert_eq!(
        agent_reply(&reply.status),
        ("cancelled", "stopped at its limit: $0.60 of $0.50 were used")
    );
    assert!((reply.usage.cost_usd - 0.6).abs() < 1e-9);
}
