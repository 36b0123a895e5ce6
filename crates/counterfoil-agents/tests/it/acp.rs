//! Agents of the Agent Client Protocol, as real processes: a scripted one (`testing/acp_agent.py`).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

mod failures;
mod scripted;

use counterfoil_agents::agent::{Message, ReplyStatus};
use counterfoil_flow::Access;
use scripted::{Scripted, agent_reply, end_turn, text};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn a_reply_is_what_was_said_after_the_last_tool_call() {
    let agent = Scripted::new(json!({"turns": [[
        text("I will look.\n"),
        {"update": {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read a.rs", "kind": "read"}},
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}},
        {"update": {"sessionUpdate": "plan", "entries": [
            {"content": "look", "status": "completed"}, {"content": "fix it", "status": "in_progress"},
        ]}},
        {"update": {"sessionUpdate": "something_new", "x": 1}},
        {"raw": json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "of a subagent",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "no"}}}}).to_string()},
        {"update": {"sessionUpdate": "usage_update", "used": 15, "size": 100, "cost": {"amount": 0.25, "currency": "USD"}}},
        text("The answer\n"),
        text("is 7."),
        {"answer": {"stopReason": "end_turn", "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}}},
    ]]}));
    let mut session = agent.open();
    let reply = session.ask_task("What is it?").await;
    assert_eq!(reply.status, ReplyStatus::Complete);
    assert_eq!(reply.text, "The answer\nis 7.");
    assert_eq!(reply.details.conversation.as_deref(), Some("s1"));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (10, 5));
    assert!((reply.usage.cost_usd - 0.25).abs() < 1e-9);
    assert_eq!(reply.details.notes, Vec::<String>::new());
    assert!(reply.details.events);
    assert_eq!(reply.activity, ["I will look.", "Read a.rs", "plan: fix it", "The answer"]);
    // Both directions, one message in each line.
    let lines: Vec<Value> =
        reply.transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<&str> = lines.iter().filter_map(|line| line["method"].as_str()).collect();
    assert_eq!(methods[..4], ["initialize", "session/new", "session/prompt", "session/update"]);
    let new = agent.got("session/new");
    assert_eq!(new[0]["params"]["cwd"], json!(agent.cwd()));
    let asked = agent.got("session/prompt")[0]["params"]["prompt"][0]["text"].clone();
    assert!(asked.as_str().unwrap().starts_with("What is it?"), "{asked}");
}

#[tokio::test]
async fn repairs_are_prompts_of_the_same_conversation_and_costs_are_differences() {
    let cost = |amount: f64| {
        json!({"update": {"sessionUpdate": "usage_update", "used": 1, "size": 2,
        "cost": {"amount": amount, "currency": "USD"}}})
    };
    let answer = json!({"answer": {"stopReason": "end_turn", "_meta": {"quota": {"token_count":
        {"input_tokens": 10, "output_tokens": 5}}}}});
    let agent = Scripted::new(json!({"turns": [
        [text("one"), cost(0.25), answer],
        [text("two"), cost(0.75), answer],
        [text("three"), {"answer": {"stopReason": "end_turn"}}],
    ]}));
    let mut session = agent.open();
    let mut costs = Vec::new();
    for expected in ["one", "two", "three"] {
        let reply = session.ask_task("Go on").await;
        assert_eq!((reply.status, reply.text.as_str()), (ReplyStatus::Complete, expected));
        costs.push((reply.usage.input_tokens, reply.usage.cost_usd));
    }
    assert_eq!(costs, [(10, 0.25), (10, 0.5), (0, 0.0)]);
    assert_eq!(agent.got("initialize").len(), 1);
    assert_eq!(agent.got("session/new").len(), 1);
    assert_eq!(agent.got("session/prompt").len(), 3);
}

#[tokio::test]
async fn what_follows_the_end_of_a_turn_does_not_spoil_the_next() {
    // The answer, a late message and the beginning of an update, in one write.
    let answer = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;
    let update = |text: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update":
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
        .to_string()
    };
    let begun = r#"{"jsonrpc":"2.0","method":"session/update","params":"#;
    let rest = r#"{"update":{"sessionUpdate":"current_mode_update"}}}"#;
    let agent = Scripted::new(json!({"turns": [
        [text("one"), {"write": format!("{answer}\n{}\n{begun}", update("late"))}],
        [{"write": format!("{rest}\n")}, text("two"), end_turn()],
    ]}));
    let mut session = agent.open();
    for expected in ["one", "two"] {
        let reply = session.ask_task("Go on").await;
        assert_eq!((reply.status, reply.text.as_str()), (ReplyStatus::Complete, expected));
        assert_eq!(reply.details.notes, ["python3 did not tell how many tokens it used"]);
    }
}

#[tokio::test]
async fn who_submits_nothing_is_asked_for_a_text() {
    let agent = Scripted::new(json!({"serve": false, "turns": [
        [text("Done."), end_turn()], [text("{\"ok\": true}"), end_turn()], [text("x"), end_turn()],
    ]}))
    .with_executable("/bin/true");
    let mut session = agent.open();
    let first = session.ask_task("Do it").await;
    assert_eq!(first.details.notes, ["python3 did not tell how many tokens it used"]);
    session.ask(Message::Correct(Box::new(session.report(b"Done.")))).await;
    let prompts: Vec<String> = agent
        .got("session/prompt")
        .iter()
        .map(|got| got["params"]["prompt"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(prompts[0].contains("`submit_result`"), "{}", prompts[0]);
    assert!(!prompts[1].contains("submit_result"), "{}", prompts[1]);
    let server = agent.got("session/new")[0]["params"]["mcpServers"].clone();
    assert_eq!(server[0]["name"], "counterfoil");
    assert_eq!(server[0]["command"], "/bin/true");
    assert_eq!(
        (&server[0]["args"][0], &server[0]["args"][1]),
        (&json!("mcp"), &json!("--session"))
    );
}

#[tokio::test]
async fn without_our_executable_and_contained_it_is_asked_for_a_text_at_once() {
    let agent = Scripted::new(json!({"turns": [[text("x"), end_turn()]]}));
    let mut session = agent.open();
    session.ask_task("Do it").await;
    let got = agent.got("session/new");
    assert_eq!(got[0]["params"]["mcpServers"], json!([]));
}

fn call(id: &str, kind: &str, title: &str, path: Option<&str>) -> Value {
    let locations: Vec<Value> = path.into_iter().map(|path| json!({"path": path})).collect();
    json!({"permission": {"toolCallId": id, "kind": kind, "title": title, "locations": locations}})
}

#[tokio::test]
async fn permissions_follow_the_access_of_the_step() {
    let turn = json!([
        call("t1", "read", "Read a", Some("a")),
        call("t2", "edit", "Write a", Some("a")),
        call("t3", "execute", "rm -rf /\u{1b}[2J", None),
        call("t4", "other", "mcp__counterfoil__submit_result", None),
        call("t5", "edit", "Write /etc/passwd", Some("/etc/passwd")),
        call("t6", "other", "Send a mail", None),
        {"permission": {"toolCallId": "t7", "kind": "read"}, "options": [{"optionId": "no", "kind": "reject_once", "name": "No"}]},
        {"ask": ["fs/read_text_file", {"sessionId": "s1", "path": "/etc/passwd"}]},
        {"ask": ["session/request_permission", {"nothing": true}]},
        text("done"), end_turn(),
    ]);
    for (access, expected, denied) in [
        (
            Access::ReadOnly,
            ["once", "no", "no", "once", "no", "no"],
            vec![
                "Write a: its access is read-only",
                "rm -rf /\\u{1b}[2J: its access is read-only",
                "Write /etc/passwd: its access is read-only",
                "Send a mail: its access does not include this tool",
            ],
        ),
        (
            Access::WorkspaceWrite,
            ["once", "once", "once", "once", "no", "no"],
            vec![
                "Write /etc/passwd: the file is outside of its folder",
                "Send a mail: its access does not include this tool",
            ],
        ),
    ] {
        let agent = Scripted::new(json!({"turns": [turn]})).with_access(access);
        let reply = agent.open().ask_task("Do it").await;
        assert_eq!(
            reply.status,
            ReplyStatus::Complete,
            "a denied action is no failure of the reply"
        );
        let answers = agent.logged("answer");
        let chosen: Vec<&str> =
            answers.iter().filter_map(|answer| answer["outcome"]["optionId"].as_str()).collect();
        assert_eq!(chosen, expected);
        assert_eq!(answers[6]["outcome"]["outcome"], "cancelled", "no way to allow it");
        assert_eq!((&answers[7]["code"], &answers[8]["code"]), (&json!(-32601), &json!(-32602)));
        assert_eq!(reply.details.denied, denied);
        let notes = reply.details.notes.join("\n");
        assert!(
            notes.contains("it asked for `fs/read_text_file`, which was not offered"),
            "{notes}"
        );
    }
}

#[tokio::test]
async fn a_turn_that_ends_with_a_denied_action_is_continued() {
    let cancelled = json!({"answer": {"stopReason": "cancelled", "usage": {"inputTokens": 10, "outputTokens": 5}}});
    let agent = Scripted::new(json!({"turns": [
        [text("I will write."), call("t1", "edit", "Write a", Some("a")), cancelled],
        [text("I did without."), {"answer": {"stopReason": "end_turn", "usage": {"inputTokens": 10, "outputTokens": 5}}}],
    ]}));
    let reply = agent.open().ask_task("Do it").await;
    assert_eq!((reply.status, reply.text.as_str()), (ReplyStatus::Complete, "I did without."));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (20, 10));
    assert_eq!(reply.details.denied, ["Write a: its access is read-only"]);
    let again = agent.got("session/prompt")[1]["params"]["prompt"][0]["text"].clone();
    assert!(
        again.as_str().unwrap().starts_with("This was denied: Write a: its access is read-only.")
    );
    // It does not go on for ever.
    let turn = json!([call("t1", "edit", "Write a", None), cancelled]);
    let agent = Scripted::new(json!({"turns": vec![turn; 20]}));
    let reply = agent.open().ask_task("Do it").await;
    assert_eq!(
        agent_reply(&reply.status),
        ("permission", "it ended its turn each time that something was denied")
    );
}

#[tokio::test]
async fn a_program_is_put_into_the_mode_that_fits_the_access() {
    let new = json!({"sessionId": "s1", "modes": {"currentModeId": "yolo", "availableModes": [
        {"id": "yolo"}, {"id": "default"}, {"id": "read-only"},
    ]}});
    for (mode, notes) in [(json!({}), 1), (json!({"error": {"code": -32602, "message": "no"}}), 2)]
    {
        let turns = json!([[text("x"), end_turn()], [text("y"), end_turn()]]);
        let agent = Scripted::new(json!({"new": new, "mode": mode, "turns": turns}));
        let mut session = agent.open();
        let reply = session.ask_task("Do it").await;
        assert_eq!(reply.status, ReplyStatus::Complete);
        assert_eq!(reply.details.notes.len(), notes, "{:?}", reply.details.notes);
        session.ask_task("Again").await;
        let set = agent.got("session/set_mode");
        assert_eq!(set.len(), 1);
        assert_eq!(set[0]["params"]["modeId"], "read-only");
    }
}

#[tokio::test]
async fn a_stop_cancels_the_turn_and_then_ends_the_program() {
    let agent = Scripted::new(json!({"turns": [[
        {"child": true}, text("working\n"), {"wait": "cancel"},
    ]]}));
    let mut session = agent.open();
    let reply = session.ask_and_stop_after("working").await;
    assert_eq!(agent_reply(&reply.status), ("cancelled", "stopped"));
    assert_eq!(agent.got("session/cancel").len(), 1);
    drop(session);
    assert!(agent.children_are_gone());
    // A program that does not heed it is ended.
    let agent =
        Scripted::new(json!({"turns": [[{"child": true}, text("working\n"), {"sleep": 60}]]}));
    let mut session = agent.open();
    let began = std::time::Instant::now();
    let reply = session.ask_and_stop_after("working").await;
    assert_eq!(agent_reply(&reply.status), ("cancelled", "stopped"));
    assert!(began.elapsed() < Duration::from_secs(15));
    assert!(agent.children_are_gone(), "at the end of the reply");
}

#[tokio::test]
async fn the_program_and_its_children_end_with_the_session() {
    let agent = Scripted::new(json!({"turns": [[{"child": true}, text("x"), end_turn()]]}));
    let mut session = agent.open();
    assert_eq!(session.ask_task("Do it").await.status, ReplyStatus::Complete);
    assert!(!agent.children_are_gone(), "while the conversation may go on");
    let scratch = session.scratch();
    drop(session);
    assert!(agent.children_are_gone());
    assert!(!scratch.exists());
}

#[tokio::test]
async fn marks_of_another_agents_session_are_not_passed_on() {
    let agent = Scripted::new(json!({"turns": [[text("x"), end_turn()]]}))
        .with_variables(&[
            ("CLAUDECODE", "1"),
            ("GEMINI_CLI", "1"),
            ("MY_KEY", "k"),
            ("PASSED", "p"),
        ])
        .with_settings("[agents.dev]\npass = [\"GEMINI_CLI\"]\nenv = { PASSED = \"set\" }\n");
    let mut session = agent.open();
    session.ask_task("Do it").await;
    let seen = agent.environment_of_program();
    let value = |name: &str| seen.get(name).map(String::as_str);
    assert_eq!(
        ["CLAUDECODE", "GEMINI_CLI", "MY_KEY", "PASSED"].map(value),
        [None, Some("1"), Some("k"), Some("set")]
    );
}
