//! Codex: calls, recorded streams and malformed streams.

#![allow(clippy::unwrap_used)]

use crate::agents::recorded::{NOW, parse_in_chunks, recorded, render_call, render_reply};
use counterfoil_agents::adapters::{
    Adapter, Conversation, ParsedReply, PromptRequest, Server, StreamEnd, Verdict, adapter,
};
use counterfoil_flow::{Access, AttemptOutcome};
use counterfoil_process::Exit;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn codex() -> &'static dyn Adapter {
    adapter("codex").unwrap()
}

fn parse(stdout: &str) -> ParsedReply {
    parse_in_chunks(1 << 16, codex(), stdout.as_bytes(), "", Exit::Code(0))
}

#[test]
fn recorded_streams_are_understood() {
    let mut all = String::new();
    for (name, run) in recorded("codex") {
        let mut reply = run.parse(codex());
        if let Verdict::Failed(failure) = &mut reply.verdict
            && !failure.reason.contains("again in")
        {
            // A time of day is in the zone of the machine: that is tried where the zone can be
            // given.
            failure.reset_at = None;
        }
        write!(all, "{name} ({:?})\n{}", run.exit, render_reply(&reply)).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn recorded_outcomes_are_what_they_are() {
    use AttemptOutcome::{Agent, Limit, Permission, Transport};
    let runs = recorded("codex");
    let expected = [
        ("err400-json", Agent),
        ("err401-json", Permission),
        ("err403", Permission),
        ("err429-json", Limit),
        ("err500-json", Transport),
        ("err529", Transport),
        ("capacity", Transport),
        ("stream-cut", Transport),
        ("no-network", Transport),
        ("rate-limit-stream", Limit),
        ("usage-limit", Limit),
        ("quota", Limit),
        ("no-key", Permission),
        ("not-logged-in", Permission),
        ("schema-refused", Agent),
        ("unknown-model", Agent),
        ("resume-unknown-json", Agent),
        ("badflag", Agent),
        ("no-home", Agent),
    ];
    for (name, outcome) in expected {
        let Verdict::Failed(failure) = runs[name].parse(codex()).verdict else {
            panic!("{name} did not fail")
        };
        assert_eq!(failure.outcome, outcome, "{name}: {}", failure.reason);
        assert_eq!(failure.schema_rejected, name == "schema-refused", "{name}");
    }
    // It was stopped before its final event, so its messages prove nothing.
    for name in ["sigterm-json", "sigint-json", "not-git-repo"] {
        assert_eq!(runs[name].parse(codex()).verdict, Verdict::Missing, "{name}");
    }
    let Verdict::Failed(limit) = runs["usage-limit"].parse(codex()).verdict else {
        panic!("it failed")
    };
    assert!(limit.reset_at.is_some(), "{limit:?}");
}

#[test]
fn actions_that_the_sandbox_blocked_are_reported_for_a_complete_turn() {
    let runs = recorded("codex");
    for name in ["sandbox-read-only-json", "denied-edit", "denied-outside", "mcp-default-json"] {
        let reply = runs[name].parse(codex());
        assert_eq!(reply.verdict, Verdict::Complete, "{name}");
        assert!(!reply.denied.is_empty(), "{name}");
    }
    for name in [
        "sandbox-workspace-write-json",
        "allowed-edit",
        "mcp-approved-json",
        "old-0.144.0-mcp",
        "json",
    ] {
        assert_eq!(runs[name].parse(codex()).denied, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn usage_adds_up_over_the_conversation() {
    let runs = recorded("codex");
    let tokens = ["json", "resume-json", "resume-schema-json"].map(|name| {
        let meter = runs[name].parse(codex()).meter;
        assert!(meter.tokens_are_cumulative && !meter.cost_is_cumulative);
        (meter.input_tokens, meter.output_tokens)
    });
    assert_eq!(tokens, [(10, 5), (20, 10), (30, 15)]);
    // A failed turn tells none, and none is not zero in all.
    assert!(!runs["err500-json"].parse(codex()).meter.tokens_are_cumulative);
}

const GOOD: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Looking."}}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"{\"answer\":42}"}}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5}}
"#;

#[test]
fn the_text_is_the_last_message_of_the_turn() {
    let reply = parse(GOOD);
    assert_eq!((reply.verdict, reply.text.as_str()), (Verdict::Complete, r#"{"answer":42}"#));
    assert_eq!(reply.conversation.as_deref(), Some("t-1"));
    assert_eq!((reply.meter.input_tokens, reply.meter.output_tokens), (10, 5));
    assert_eq!(reply.anomalies, Vec::<String>::new());
}

#[test]
fn banners_garbage_and_windows_line_ends_do_not_matter() {
    let noisy = GOOD.replace('\n', "\r\n").replace(
        "{\"type\":\"turn.started\"}",
        "{}\r\nwarning: old\r\n{\"type\":7}\r\n\u{0}\r\n[1,2]\r\n",
    );
    let noisy = format!("\u{feff}Welcome to Codex!\r\n\r\n{noisy}bye");
    let reply = parse(&noisy);
    assert_eq!((&reply.verdict, reply.text.as_str()), (&Verdict::Complete, r#"{"answer":42}"#));
    assert_eq!(reply.anomalies, ["7 lines are not events, the first: Welcome to Codex!"]);
}

#[test]
fn an_event_with_an_unexpected_structure_is_skipped_and_noted() {
    let cases = [
        (
            r#"{"type":"item.completed","item":{"type":"agent_message","text":["a"]}}"#,
            "agent_message",
        ),
        (r#"{"type":"item.completed","item":{"type":"agent_message"}}"#, "agent_message"),
        (r#"{"type":"item.completed","item":"agent_message"}"#, "item.completed"),
        (r#"{"type":"item.completed"}"#, "item.completed"),
        (
            r#"{"type":"item.completed","item":{"type":"command_execution","command":7}}"#,
            "command_execution",
        ),
        (
            r#"{"type":"item.completed","item":{"type":"file_change","changes":{"a":1}}}"#,
            "file_change",
        ),
        (r#"{"type":"thread.started","thread_id":{"id":1}}"#, "thread.started"),
        (r#"{"type":"error","message":null}"#, "error"),
    ];
    for (line, kind) in cases {
        let reply = parse(&GOOD.replace(
            "{\"type\":\"turn.started\"}",
            &format!("{{\"type\":\"turn.started\"}}\n{line}"),
        ));
        assert_eq!(
            (&reply.verdict, reply.text.as_str()),
            (&Verdict::Complete, r#"{"answer":42}"#),
            "{line}"
        );
        assert!(
            reply.anomalies[0]
                .starts_with(&format!("1 event `{kind}` with an unexpected structure")),
            "{reply:?}"
        );
    }
}

#[test]
fn a_malformed_final_event_ends_the_reply() {
    for usage in ["7", "{}", r#"{"input_tokens":-1,"output_tokens":"5"}"#, "null"] {
        let end = format!("{{\"type\":\"turn.completed\",\"usage\":{usage}}}\n");
        let reply =
            parse(&format!("{}{end}", &GOOD[..GOOD.find("{\"type\":\"turn.completed").unwrap()]));
        assert_eq!(reply.verdict, Verdict::Complete, "{usage}");
        assert!(!reply.meter.tokens_are_cumulative && reply.anomalies.len() == 1, "{reply:?}");
    }
    let failed = parse(r#"{"type":"turn.failed","error":"high demand"}"#);
    let Verdict::Failed(failure) = failed.verdict else { panic!("{failed:?}") };
    assert_eq!(failure.reason, "it failed without a message");
    let complained = "{\"type\":\"error\",\"message\":\"We're experiencing high demand\"}\n{\"type\":\"turn.failed\"}";
    let Verdict::Failed(failure) = parse(complained).verdict else { panic!("it failed") };
    assert_eq!(failure.outcome, AttemptOutcome::Transport);
}

#[test]
fn without_a_final_event_no_reply_is_complete() {
    let cut = &GOOD[..GOOD.len() - 20];
    let unfinished = parse(cut);
    assert_eq!(unfinished.verdict, Verdict::Missing);
    assert_eq!(unfinished.anomalies.len(), 1, "the line that was cut off is noted: {unfinished:?}");
    assert_eq!(parse("").verdict, Verdict::Missing);
    let complained = parse("{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 (no)\"}");
    assert_eq!(complained.verdict, Verdict::Missing, "an error event is no end");
    assert_eq!(complained.anomalies, ["its last message was: Reconnecting... 1/5 (no)"]);
}

#[test]
fn the_last_of_two_final_events_counts() {
    let failed = "{\"type\":\"turn.failed\",\"error\":{\"message\":\"request timed out\"}}\n";
    let twice = parse(&format!("{failed}{GOOD}"));
    assert_eq!((&twice.verdict, twice.text.as_str()), (&Verdict::Complete, r#"{"answer":42}"#));
    assert_eq!(twice.anomalies, ["there was more than one final event; the last one counts"]);
    let twice = parse(&format!("{GOOD}{failed}"));
    assert!(matches!(twice.verdict, Verdict::Failed(_)), "{twice:?}");
}

#[test]
fn a_line_of_20_megabytes_is_read() {
    let long = "x".repeat(20 << 20);
    let command = json!({"type": "item.completed", "item": {"type": "command_execution", "command": "a", "aggregated_output": long}});
    let message =
        json!({"type": "item.completed", "item": {"type": "agent_message", "text": long}});
    let end = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let reply = parse(&format!("{command}\n{long}\n{message}\n{end}\n"));
    assert_eq!((reply.verdict, reply.text.len()), (Verdict::Complete, long.len()));
    assert!(reply.anomalies.iter().all(|note| note.len() < 400), "{:?}", reply.anomalies);
}

#[test]
fn waiting_for_a_network_without_end_is_a_failure() {
    let wait =
        br#"{"type":"error","message":"Reconnecting... waiting for network (Connection failed)"}"#;
    let mut parser = codex().parser();
    for _ in 0..4 {
        parser.on_line(wait);
    }
    assert!(!parser.finished());
    // It was reached, so that counting begins anew.
    parser.on_line(br#"{"type":"item.completed","item":{"type":"reasoning","text":"on"}}"#);
    for _ in 0..4 {
        parser.on_line(wait);
    }
    assert!(!parser.finished());
    parser.on_line(wait);
    assert!(parser.finished());
    let end = StreamEnd { exit: Exit::Signal(15), errors: "", at: NOW };
    let Verdict::Failed(failure) = parser.finish(&end).verdict else { panic!("it failed") };
    assert_eq!(failure.outcome, AttemptOutcome::Transport);
}

#[test]
fn activity_lines_describe_its_work() {
    let cases = [
        (
            r#"{"type":"item.started","item":{"type":"command_execution","command":"/bin/bash -lc 'cargo test'"}}"#,
            Some("$ cargo test"),
        ),
        (
            r#"{"type":"item.started","item":{"type":"file_change","changes":[{"path":"a.rs"},{"path":"b.rs"}]}}"#,
            Some("edits a.rs and 1 more"),
        ),
        (
            r#"{"type":"item.started","item":{"type":"mcp_tool_call","server":"counterfoil","tool":"submit_result"}}"#,
            Some("counterfoil.submit_result"),
        ),
        (
            r#"{"type":"item.completed","item":{"type":"web_search","query":"rust"}}"#,
            Some("searches for rust"),
        ),
        (
            r#"{"type":"item.updated","item":{"type":"todo_list","items":[{"text":"a","completed":true},{"text":"b"}]}}"#,
            Some("b"),
        ),
        (
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"\n Done.\nMore"}}"#,
            Some("Done."),
        ),
        (r#"{"type":"error","message":"Reconnecting... 1/5"}"#, Some("Reconnecting... 1/5")),
        (r#"{"type":"turn.started"}"#, None),
        (r#"{"type":"item.started","item":{"type":"hologram"}}"#, None),
        ("no event", None),
    ];
    for (line, expected) in cases {
        assert_eq!(codex().parser().on_line(line.as_bytes()).as_deref(), expected, "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Chunks of any size and unknown events between the lines change nothing but the anomalies.
    #[test]
    fn chunks_and_unknown_events_change_nothing(
        run in any::<prop::sample::Index>(), size in 1_usize..3000,
        inserted in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..6), 0..6),
    ) {
        const UNKNOWN: [&str; 6] = [
            r#"{"type":"thread.imagined","thread_id":"other","text":"x"}"#,
            r#"{"type":"item.completed","item":{"id":"i","type":"hologram","text":"not this"}}"#,
            r#"{"type":"turn.paused","usage":{"input_tokens":7}}"#,
            r#"{"kind":"error","message":"waiting for network"}"#,
            "warning: something of a library",
            "",
        ];
        let runs = recorded("codex");
        let run = run.get(&runs.values().collect::<Vec<_>>()).to_owned();
        let text = String::from_utf8(run.stdout.clone()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        for (place, which) in inserted {
            lines.insert(place.index(lines.len() + 1), UNKNOWN[which]);
        }
        let changed = parse_in_chunks(size, codex(), lines.join("\n").as_bytes(), &run.stderr, run.exit);
        let plain = ParsedReply { anomalies: Vec::new(), ..run.parse(codex()) };
        prop_assert_eq!(ParsedReply { anomalies: Vec::new(), ..changed }, plain);
    }

    /// No line makes the parser panic.
    #[test]
    fn any_lines_are_read(lines in prop::collection::vec(line(), 0..12)) {
        let reply = parse(&lines.join("\n"));
        prop_assert!(reply.anomalies.len() <= 60 && reply.denied.len() <= 60);
    }
}

/// A line that is nearly an event.
fn line() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "thread.started",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "error",
        "item.started",
        "item.completed",
        "agent_message",
        "command_execution",
        "mcp_tool_call",
        "file_change",
        "todo_list",
        "web_search",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        kinds.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "type",
        "item",
        "text",
        "message",
        "error",
        "usage",
        "thread_id",
        "command",
        "changes",
        "status",
        "items",
    ]);
    let value = leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    });
    prop_oneof![4 => value.prop_map(|value| value.to_string()), 1 => ".{0,40}"]
}

fn request(access: Access, conversation: Conversation<'_>) -> PromptRequest<'_> {
    PromptRequest {
        model: None,
        flags: &[],
        access,
        max_cost_usd: None,
        conversation,
        schema: None,
        server: None,
        scratch: Path::new("/state/scratch/run 1/a'1"),
        cwd: Path::new("/repo"),
        env: &|_| None,
    }
}

#[test]
fn a_first_prompt_that_only_reads() {
    let call = codex().call(&request(Access::ReadOnly, Conversation::New("c-1")));
    insta::assert_snapshot!(render_call(&call));
}

#[test]
fn a_first_prompt_that_writes_with_a_schema_and_the_server() {
    let schema =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let server = Server {
        command: ["/opt/it's \"ours\"/counterfoil", "mcp", "--session", "/state/a b.json"]
            .map(str::to_owned)
            .to_vec(),
        receives: true,
        call_timeout: None,
    };
    let flags = ["-c", "model_provider=gateway"].map(str::to_owned);
    let call = codex().call(&PromptRequest {
        model: Some("gpt-5.5"),
        flags: &flags,
        schema: Some(&schema),
        server: Some(&server),
        ..request(Access::WorkspaceWrite, Conversation::New("c-1"))
    });
    assert_eq!(call.files[0].0, PathBuf::from("/state/scratch/run 1/a'1/schema.json"));
    insta::assert_snapshot!(render_call(&call));
}

#[test]
fn a_conversation_that_goes_on() {
    let flags = ["--ephemeral".to_owned()];
    let call = codex().call(&PromptRequest {
        model: Some("gpt-5.5"),
        flags: &flags,
        ..request(Access::ReadOnly, Conversation::Resume("01a1dc95-0d73-7c80-8d5a-a9ed833e60d4"))
    });
    insta::assert_snapshot!(render_call(&call));
}

#[test]
fn no_call_leaves_the_sandbox() {
    for access in [Access::ReadOnly, Access::WorkspaceWrite] {
        for conversation in [Conversation::New("c"), Conversation::Resume("c")] {
            let call = render_call(&codex().call(&request(access, conversation)));
            assert!(
                !call.contains("dangerously") && !call.contains("danger-full-access"),
                "{call}"
            );
            assert_eq!(call.matches("--sandbox=").count(), 1, "{call}");
            assert!(call.contains("approval_policy=\"never\""), "{call}");
        }
    }
}

#[test]
fn a_server_that_only_runs_checks_has_one_tool_and_more_time() {
    let server = Server {
        command: vec!["/bin/counterfoil".to_owned()],
        receives: false,
        call_timeout: Some(std::time::Duration::from_mins(12)),
    };
    let call = render_call(&codex().call(&PromptRequest {
        server: Some(&server),
        ..request(Access::ReadOnly, Conversation::New("c-1"))
    }));
    assert!(call.contains("tool_timeout_sec = 720"), "{call}");
    assert!(call.contains("enabled_tools = [\"run_check\"]"), "{call}");
}
