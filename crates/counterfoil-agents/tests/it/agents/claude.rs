//! Claude Code: calls, recorded streams and malformed streams.

#![allow(clippy::unwrap_used)]

use crate::agents::recorded::{NOW, parse_in_chunks, recorded, render_call, render_reply};
use counterfoil_agents::adapters::{
    Adapter, Conversation, Failure, ParsedReply, PromptRequest, Server, Verdict, adapter,
};
use counterfoil_flow::{Access, AttemptOutcome};
use counterfoil_process::Exit;
use proptest::prelude::*;
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

fn claude() -> &'static dyn Adapter {
    adapter("claude").unwrap()
}

fn parse_recorded(name: &str) -> ParsedReply {
    recorded("claude")[name].parse(claude())
}

fn failure_of(name: &str) -> Failure {
    match parse_recorded(name).verdict {
        Verdict::Failed(failure) => failure,
        verdict => panic!("{name}: {verdict:?}"),
    }
}

/// Parses a stream of these lines.
fn parse(lines: &[&str]) -> ParsedReply {
    parse_in_chunks(1 << 16, claude(), lines.join("\n").as_bytes(), "", Exit::Code(0))
}

#[test]
fn every_recorded_reply_is_understood() {
    let mut all = String::new();
    for (name, run) in recorded("claude") {
        writeln!(all, "{name}\n{}", render_reply(&run.parse(claude()))).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn the_structured_output_is_returned() {
    assert_eq!(parse_recorded("schema-good-stream").structured, Some(json!({"answer": 42})));
    let both = parse_recorded("submit-and-schema-stream");
    assert_eq!((both.verdict, both.structured), (Verdict::Complete, Some(json!({"answer": 42}))));
    // It says success and hands back prose.
    let never = parse_recorded("schema-never-stream");
    assert_eq!(
        (never.verdict, never.structured, never.text.as_str()),
        (Verdict::Complete, None, "it is 42")
    );
}

#[test]
fn results_that_its_own_validation_rejected_are_validated_by_us() {
    let reply = parse_recorded("schema-always-bad-stream");
    assert_eq!((&reply.verdict, reply.exit), (&Verdict::Complete, 1));
    assert_eq!(reply.structured, Some(json!({"answer": "x"})));
    assert!(reply.anomalies[0].contains("gave up"), "{:?}", reply.anomalies);
}

#[test]
fn success_with_nothing_in_it_is_an_empty_text() {
    let reply = parse_recorded("stop-hook-forever-stream");
    assert_eq!(
        (reply.verdict, reply.text.as_str(), reply.structured),
        (Verdict::Complete, "", None)
    );
}

#[test]
fn a_failure_is_of_its_kind_and_says_what_to_do() {
    use AttemptOutcome::{Agent, Limit, Permission, Transport};
    for (name, outcome, advice) in [
        ("err401-json", Permission, "`/login`"),
        ("no-login-stream", Permission, "ANTHROPIC_API_KEY"),
        ("err429-json", Limit, "429"),
        ("err500-json", Transport, "500"),
        ("err529-stream", Transport, "at capacity"),
        ("refused-stream", Transport, "ECONNREFUSED"),
        ("err400-json", Agent, "mock 400"),
        ("err404-stream", Agent, "`model`"),
        ("badflag", Agent, "update it with `npm install -g @anthropic-ai/claude-code`"),
        ("resume-unknown", Agent, "CLAUDE_CONFIG_DIR"),
        ("resume-unknown-stream", Agent, "CLAUDE_CONFIG_DIR"),
        ("max-turns-stream", Agent, "`--max-turns`"),
        ("max-budget-stream", Agent, "`--max-budget-usd`"),
        ("perm-bypassPermissions-stream", Agent, "`access`"),
    ] {
        let failure = failure_of(name);
        assert_eq!(failure.outcome, outcome, "{name}");
        assert!(failure.reason.contains(advice), "{name}: {}", failure.reason);
        assert!(!failure.schema_rejected, "{name}");
    }
}

#[test]
fn a_rejected_schema_is_distinguished_from_other_errors() {
    for name in ["schema-invalid", "schema-err400-stream"] {
        let failure = failure_of(name);
        assert_eq!(
            (failure.outcome, failure.schema_rejected),
            (AttemptOutcome::Agent, true),
            "{name}"
        );
    }
}

#[test]
fn a_limit_has_a_reset_time_if_any_event_reports_one() {
    // The server's Retry-After header appears as the pause before the retry.
    assert_eq!(failure_of("err429-pause-stream").reset_at, Some(NOW + 2_000));
    assert_eq!(failure_of("err429-words-stream").reset_at, Some(NOW + 90_000));
    assert_eq!(failure_of("err429-json").reset_at, None);
    let rejected = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794762000}}"#;
    let allowed = rejected.replace("rejected", "allowed").replace("1794762000", "1794799999");
    let last = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit"}"#;
    let Verdict::Failed(failure) = parse(&[rejected, &allowed, last]).verdict else {
        panic!("it failed")
    };
    assert_eq!(
        (failure.outcome, failure.reset_at),
        (AttemptOutcome::Limit, Some(1_794_762_000_000))
    );
    // Without a status, the program's own name and parameters of the error count.
    let last = r#"{"type":"result","subtype":"success","is_error":true,"api_error":"usage_limit_reached","result":"no more today","api_error_params":{"rate_limit_info":{"status":"rejected","resetsAt":1794762001}}}"#;
    let Verdict::Failed(failure) = parse(&[last]).verdict else { panic!("it failed") };
    assert_eq!(
        (failure.outcome, failure.reset_at),
        (AttemptOutcome::Limit, Some(1_794_762_001_000))
    );
}

#[test]
fn money_and_tokens_are_counted_with_subagents_and_once() {
    let used = |reply: ParsedReply| {
        let meter = reply.meter;
        let add_up = (meter.tokens_are_cumulative, meter.cost_is_cumulative);
        ((meter.input_tokens, meter.output_tokens, (meter.cost_usd * 1e6).round()), add_up)
    };
    assert_eq!(used(parse_recorded("conversation-1-stream")), ((10, 5, 140.0), (false, false)));
    // Two requests of its own and one of a subagent's: its `usage` says 20 and 10, and its sums are
    // those of both prompts.
    assert_eq!(used(parse_recorded("conversation-2-stream")), ((30, 15, 420.0), (false, false)));
    // It ended twice, and each end tells what was used since the one before.
    assert_eq!(used(parse_recorded("background-stream")), ((30, 15, 420.0), (false, false)));
    // Older versions only report totals of the conversation.
    assert_eq!(used(parse_recorded("session-2-resume-json")), ((20, 10, 280.0), (true, true)));
    let last = r#"{"type":"result","subtype":"success","is_error":false,"usage":{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":7}}"#;
    assert_eq!(used(parse(&[last])), ((321, 7, 0.0), (false, true)));
    // The oldest count each prompt alone.
    let last = r#"{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.25,"modelUsage":{"a":{"inputTokens":10,"outputTokens":5}}}"#;
    let of = |version: &str| used(parse(&[&INIT.replace("2.1.325", version), last])).1;
    assert_eq!(
        ["2.1.100", "2.1.250", "2.1.290", "3.0.0", "next"].map(of),
        [(false, false), (false, false), (true, true), (true, true), (true, true)]
    );
    let last = r#"{"type":"result","subtype":"success","is_error":false,"total_cost_usd":-1,"modelUsage":{"a":{"inputTokens":18446744073709551615,"outputTokens":1},"b":{"inputTokens":1,"cacheReadInputTokens":2,"outputTokens":"x"}}}"#;
    assert_eq!(used(parse(&[last])), ((u64::MAX, 1, 0.0), (true, true)));
}

#[test]
fn denied_calls_are_reported_once_with_the_reason() {
    let denied = parse_recorded("read-only-stream").denied;
    assert_eq!(
        denied,
        [
            "Bash (echo x > /repo/b.txt): Permission to use Bash has been denied because Claude Code is running in don't ask mode",
            "Write (/repo/w.txt): the tool is not available",
        ]
    );
    assert!(
        parse_recorded("read-only-subagent-stream").denied[0]
            .starts_with("Bash (touch /repo/s.txt): ")
    );
    let written = parse_recorded("write-stream").denied;
    assert_eq!(written.len(), 2, "{written:?}");
    assert_eq!(written[0], "Bash (make test): This command requires approval");
    // Only the last event tells.
    let last = r#"{"type":"result","subtype":"success","is_error":false,"permission_denials":[{"tool_name":"Write","tool_use_id":"t","tool_input":{"file_path":"/a"}}]}"#;
    assert_eq!(parse(&[last]).denied, ["Write (/a): not permitted"]);
    let answer = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"It is a secret. Ask."}]}}"#;
    assert_eq!(parse(&[answer, last]).denied, ["Write (/a): It is a secret"]);
}

#[test]
fn a_server_that_did_not_start_is_noted() {
    assert_eq!(
        parse_recorded("server-failed-stream").anomalies,
        ["it could not start the server that receives results"]
    );
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m-1","claude_code_version":"2.1.325"}"#;
const WORK: &str = r#"{"type":"assistant","message":{"id":"1","model":"m-1","content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}"#;
const MESSAGE: &str = r#"{"type":"assistant","message":{"id":"2","model":"m-1","content":[{"type":"text","text":"{\"answer\":42}"}]}}"#;
const LAST: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"{\"answer\":42}","session_id":"s-1","total_cost_usd":0.5}"#;

/// A stream: name, lines, expected reply and expected anomalies.
type Case<'c> = (&'c str, &'c [&'c str], Result<&'c str, &'c str>, &'c [&'c str]);

/// Malformed streams, with the expected verdict, text and anomalies.
#[test]
fn a_bad_stream_loses_nothing_that_can_be_read() {
    let failed = "its final event does not say whether it succeeded; its version may be newer than the tested ones";
    let cases: &[Case<'_>] = &[
        ("as it should be", &[INIT, WORK, MESSAGE, LAST], Ok(r#"{"answer":42}"#), &[]),
        (
            "a banner and garbage",
            &["Welcome to Claude!", INIT, "", "[debug] x", MESSAGE, "{broken", "null", LAST, "Bye"],
            Ok(r#"{"answer":42}"#),
            &["5 lines are not events, the first: Welcome to Claude!"],
        ),
        (
            "unknown events",
            &[INIT, r#"{"type":"new"}"#, r#"{"type":"system","subtype":"new"}"#, LAST],
            Ok(r#"{"answer":42}"#),
            &[],
        ),
        (
            "no type",
            &[INIT, r#"{"level":"info"}"#, r#"{"type":7}"#, LAST],
            Ok(r#"{"answer":42}"#),
            &[r#"2 lines are not events, the first: {"level":"info"}"#],
        ),
        ("no last event", &[INIT, MESSAGE], Err("missing"), &[]),
        (
            "cut in the last event",
            &[INIT, MESSAGE, r#"{"type":"result","subtype":"succ"#],
            Err("missing"),
            &[r#"an event is cut off: {"type":"result","subtype":"succ"#],
        ),
        (
            "two last events",
            &[
                INIT,
                r#"{"type":"result","subtype":"success","is_error":false,"result":"first"}"#,
                LAST,
            ],
            Ok(r#"{"answer":42}"#),
            &["there were 2 final events; the last one counts"],
        ),
        (
            "a failure behind a success",
            &[
                LAST,
                r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 500 no"}"#,
            ],
            Err("API Error: 500 no"),
            &["there were 2 final events; the last one counts"],
        ),
        (
            "fields of other shapes in the last event",
            &[
                MESSAGE,
                r#"{"type":"result","subtype":"success","is_error":false,"result":{"text":"x"},"total_cost_usd":"much","usage":7}"#,
            ],
            Ok(r#"{"answer":42}"#),
            &[
                "`result` of the final event has an unexpected structure: invalid type: map, expected a string",
                "`total_cost_usd` of the final event has an unexpected structure: invalid type: string \"much\", expected f64",
                "`usage` of the final event has an unexpected structure: invalid type: number, expected struct Usage",
            ],
        ),
        (
            "an end of another shape",
            &[MESSAGE, r#"{"type":"result","subtype":["success"],"is_error":"no"}"#],
            Err(failed),
            &[
                "`subtype` of the final event has an unexpected structure: invalid type: sequence, expected a string",
                "`is_error` of the final event has an unexpected structure: invalid type: string \"no\", expected a boolean",
            ],
        ),
        ("an end that says nothing", &[MESSAGE, r#"{"type":"result"}"#], Err(failed), &[]),
        (
            "an end of a new kind",
            &[r#"{"type":"result","subtype":"paused","is_error":false,"result":"x"}"#],
            Ok("x"),
            &["the final event has an unknown subtype: paused"],
        ),
        (
            "a new kind of error",
            &[r#"{"type":"result","subtype":"error_new","errors":["it broke"]}"#],
            Err("it broke"),
            &[],
        ),
        (
            "a message of another shape",
            &[
                r#"{"type":"assistant","message":"hello"}"#,
                r#"{"type":"assistant","message":{"content":["x",{"type":"tool_use","id":5,"name":[],"input":null}]}}"#,
                LAST,
            ],
            Ok(r#"{"answer":42}"#),
            &[
                r#"1 event `assistant` with an unexpected structure: invalid type: string "hello", expected struct Message"#,
            ],
        ),
        (
            "a field twice",
            &[r#"{"type":"assistant","message":{},"message":{}}"#, LAST],
            Ok(r#"{"answer":42}"#),
            &[
                "1 event `assistant` with an unexpected structure: duplicate field `message` at line 1 column 42",
            ],
        ),
        ("nothing at all", &[], Err("missing"), &[]),
    ];
    for (name, lines, expected, anomalies) in cases {
        let reply = parse(lines);
        let verdict = match &reply.verdict {
            Verdict::Complete => Ok(reply.text.as_str()),
            Verdict::Missing => Err("missing"),
            Verdict::Failed(failure) => Err(failure.reason.as_str()),
        };
        assert_eq!(
            (verdict, reply.anomalies.as_slice()),
            (*expected, &anomalies.iter().map(|note| (*note).to_owned()).collect::<Vec<_>>()[..]),
            "{name}"
        );
    }
}

#[test]
fn invalid_utf8_and_deep_nesting_do_no_harm() {
    let mut stream =
        br#"{"type":"result","subtype":"success","is_error":false,"result":"a"#.to_vec();
    stream.extend(b"\xff\"}\n");
    let deep = format!(
        "{{\"type\":\"assistant\",\"message\":{}{}}}\n",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    stream.extend(deep.as_bytes());
    let reply = parse_in_chunks(100, claude(), &stream, "", Exit::Code(0));
    assert_eq!((reply.verdict, reply.text.as_str()), (Verdict::Complete, "a\u{fffd}"));
    assert_eq!(reply.anomalies.len(), 1, "{:?}", reply.anomalies);
}

#[test]
fn a_line_of_20_mb_is_read() {
    let long = "x".repeat(20 << 20);
    let message = MESSAGE.replace(r#"{\"answer\":42}"#, &long);
    let last = LAST.replace(r#"{\"answer\":42}"#, &long);
    let reply = parse(&[INIT, &message, &last]);
    assert_eq!(
        (reply.verdict, reply.text.len(), reply.anomalies.len()),
        (Verdict::Complete, 20 << 20, 0)
    );
}

#[test]
fn only_messages_of_the_main_agent_are_the_text() {
    let sub =
        MESSAGE.replace(r#""message""#, r#""parent_tool_use_id":"t","message""#).replace("42", "1");
    let synthetic = MESSAGE.replace("m-1", "<synthetic>").replace("42", "2");
    let reply = parse(&[INIT, MESSAGE, &sub, &synthetic]);
    assert_eq!((reply.verdict, reply.text.as_str()), (Verdict::Missing, r#"{"answer":42}"#));
}

#[test]
fn activity_lines_describe_its_work() {
    let mut parser = claude().parser();
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"error_status":500,"error":"server_error"}"#;
    let activity: Vec<_> = [INIT, WORK, retry, MESSAGE, LAST]
        .iter()
        .filter_map(|line| parser.on_line(line.as_bytes()))
        .collect();
    assert_eq!(
        activity,
        ["Bash (ls)", "its server answered with HTTP 500, retrying (1 of 2)", r#"{"answer":42}"#]
    );
    assert!(parser.finished());
}

#[test]
fn standard_error_is_not_classified_when_it_was_killed() {
    let killed = parse_in_chunks(1, claude(), b"", "error: unknown option '--x'", Exit::Signal(9));
    assert_eq!(killed.verdict, Verdict::Missing);
    let unknown = parse_in_chunks(1, claude(), b"", "Segmentation fault", Exit::Code(1));
    assert_eq!(unknown.verdict, Verdict::Missing);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Chunks of any size and unknown events between the lines do not change the parsed reply.
    #[test]
    fn chunks_and_unknown_events_change_nothing(which in 0..1000_usize, size in 1..5000_usize, places in prop::collection::vec(0..40_usize, 0..6)) {
        let runs = recorded("claude");
        let run = runs.values().nth(which % runs.len()).unwrap();
        let whole = run.parse(claude());
        prop_assert_eq!(&parse_in_chunks(size, claude(), &run.stdout, &run.stderr, run.exit), &whole);
        let text = String::from_utf8(run.stdout.clone()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        for place in places {
            lines.insert(place.min(lines.len()), [r#"{"type":"novel","result":"x"}"#, r#"{"type":"system","subtype":"novel"}"#, "noise"][place % 3]);
        }
        let more = parse_in_chunks(size, claude(), lines.join("\n").as_bytes(), &run.stderr, run.exit);
        prop_assert_eq!(ParsedReply { anomalies: Vec::new(), ..more }, ParsedReply { anomalies: Vec::new(), ..whole });
    }
}

fn request<'t>(
    access: Access,
    conversation: Conversation<'t>,
    env: &'t dyn Fn(&str) -> Option<OsString>,
) -> PromptRequest<'t> {
    PromptRequest {
        model: None,
        flags: &[],
        access,
        max_cost_usd: None,
        conversation,
        schema: None,
        server: None,
        scratch: Path::new("/state/scratch/1"),
        cwd: Path::new("/repo"),
        env,
    }
}

const ID: &str = "0199e5a0-0000-7000-8000-000000000001";

fn nothing(_: &str) -> Option<OsString> {
    None
}

#[test]
fn a_prompt_is_never_taken_for_a_command_of_its_own() {
    assert_eq!(claude().prompt("/login to it"), "\n/login to it");
    assert_eq!(claude().prompt("log in / out"), "log in / out");
}

#[test]
fn a_first_prompt_that_may_only_read() {
    insta::assert_snapshot!(render_call(&claude().call(&request(
        Access::ReadOnly,
        Conversation::New(ID),
        &nothing
    ))));
}

#[test]
fn a_first_prompt_that_may_write_with_schema_and_server() {
    let server = Server {
        command: ["/bin/counterfoil", "mcp", "--session", "/state/scratch/1/session.json"]
            .map(str::to_owned)
            .to_vec(),
        receives: true,
        call_timeout: None,
    };
    let schema = json!({"type": "object"});
    let flags = ["--effort".to_owned(), "high".to_owned()];
    let request = PromptRequest {
        model: Some("opus"),
        flags: &flags,
        schema: Some(&schema),
        server: Some(&server),
        ..request(Access::WorkspaceWrite, Conversation::New(ID), &nothing)
    };
    insta::assert_snapshot!(render_call(&claude().call(&request)));
}

#[test]
fn a_prompt_in_a_conversation_that_goes_on() {
    let env = |name: &str| (name == "CLAUDE_CODE_MAX_RETRIES").then(|| "7".into());
    insta::assert_snapshot!(render_call(&claude().call(&request(
        Access::WorkspaceWrite,
        Conversation::Resume(ID),
        &env
    ))));
}

#[test]
fn nothing_that_skips_permissions_or_ties_it_to_another_session_is_passed_on() {
    let patterns = claude().variables();
    let seen = |name: &str| {
        patterns.iter().any(|pattern| {
            pattern.strip_suffix('*').map_or(name == *pattern, |begin| name.starts_with(begin))
        })
    };
    for name in [
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
    ] {
        assert!(!seen(name), "{name}");
    }
    for name in
        ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"]
    {
        assert!(seen(name), "{name}");
    }
}

#[test]
fn keys_of_a_cloud_are_passed_on_only_if_it_is_used() {
    let with = |switch: &'static str, value: &'static str| {
        claude().configured_variables(&move |name| (name == switch).then(|| value.into()))
    };
    assert_eq!(with("CLAUDE_CODE_USE_BEDROCK", "1"), ["AWS_*"]);
    assert_eq!(with("CLAUDE_CODE_USE_BEDROCK", "0"), [""; 0]);
    assert!(with("CLAUDE_CODE_USE_VERTEX", "true").contains(&"GOOGLE_*".to_owned()));
    assert_eq!(claude().configured_variables(&nothing), [""; 0]);
}

#[test]
fn a_server_that_only_runs_checks_has_one_tool_and_more_time() {
    let server = Server {
        command: vec!["/bin/counterfoil".to_owned()],
        receives: false,
        call_timeout: Some(std::time::Duration::from_mins(12)),
    };
    for access in [Access::ReadOnly, Access::WorkspaceWrite] {
        let call = claude().call(&PromptRequest {
            server: Some(&server),
            ..request(access, Conversation::New(ID), &nothing)
        });
        let allowed = "mcp__counterfoil__run_check";
        assert!(call.arguments.iter().any(|argument| argument == allowed), "{call:?}");
        assert!(call.variables.contains(&("MCP_TOOL_TIMEOUT".into(), "720000".into())), "{call:?}");
    }
}
