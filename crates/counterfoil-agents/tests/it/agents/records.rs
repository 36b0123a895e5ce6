//! The records that the programs keep of their conversations, as the real programs wrote them until they
//! were killed while they waited for the third answer of their model.

#![allow(clippy::unwrap_used)]

use counterfoil_agents::adapters::adapter;
use counterfoil_agents::adapters::record::RecordedTokens;
use std::path::Path;

fn record(program: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agents/records");
    std::fs::read_to_string(folder.join(format!("{program}.jsonl"))).unwrap()
}

#[test]
fn each_answer_is_counted_once() {
    for program in ["claude", "codex", "gemini"] {
        let mut parser = adapter(program).unwrap().record_parser();
        let mut readings = vec![0];
        for line in record(program).lines() {
            parser.on_line(line.as_bytes());
            readings.push(parser.used().all());
        }
        readings.dedup();
        assert_eq!(readings, [0, 1_200, 2_510], "{program}");
        assert_eq!(
            parser.used(),
            RecordedTokens { input: 2_100, output: 410, ..RecordedTokens::default() },
            "{program}"
        );
        assert!(parser.calls_tools(), "{program}");
    }
}

#[test]
fn a_result_is_no_reason_to_ask_again() {
    let lines = [
        (
            "claude",
            r#"{"message": {"id": "m9", "usage": {"output_tokens": 1}, "content": [{"type": "tool_use", "name": "StructuredOutput"}]}}"#,
        ),
        (
            "claude",
            r#"{"message": {"id": "m9", "usage": {}, "content": [{"type": "tool_use", "name": "mcp__counterfoil__submit_result"}]}}"#,
        ),
        ("claude", r#"{"message": {"id": "m9", "usage": {}, "content": [{"type": "text"}]}}"#),
        ("codex", r#"{"payload": {"type": "function_call", "name": "submit_result"}}"#),
        ("codex", r#"{"payload": {"type": "message", "role": "assistant"}}"#),
        (
            "gemini",
            r#"{"id": "m9", "tokens": {}, "toolCalls": [{"name": "mcp_counterfoil_submit_result"}]}"#,
        ),
        ("gemini", r#"{"id": "m9", "tokens": {"output": 1}}"#),
    ];
    for (program, line) in lines {
        let mut parser = adapter(program).unwrap().record_parser();
        for line in record(program).lines().chain([line]) {
            parser.on_line(line.as_bytes());
        }
        assert!(!parser.calls_tools(), "{program}: {line}");
    }
}

#[test]
fn whatever_is_in_a_record_is_read_without_harm() {
    let lines: [&[u8]; 9] = [
        b"",
        b"null",
        b"\xff\xfe",
        b"{\"message\": 1, \"payload\": [], \"tokens\": \"x\", \"id\": {}}",
        b"{\"message\": {\"id\": \"a\", \"usage\": {\"input_tokens\": -1}}}",
        b"{\"payload\": {\"type\": \"token_count\", \"info\": {\"total_token_usage\": {\"input_tokens\": 1e99}}}}",
        b"{\"payload\": {\"type\": \"token_count\", \"info\": null}}",
        b"{\"id\": \"a\", \"tokens\": {\"input\": 18446744073709551615, \"total\": 1}}",
        b"{\"id\": \"b\", \"tokens\": {\"input\": 18446744073709551615, \"output\": 18446744073709551615}}",
    ];
    for program in ["claude", "codex", "gemini"] {
        let mut parser = adapter(program).unwrap().record_parser();
        for line in lines {
            parser.on_line(line);
        }
        let _ = parser.used().all();
    }
}
