//! Gemini CLI: calls, recorded streams and malformed streams.

#![allow(clippy::unwrap_used)]

use crate::agents::recorded::{NOW, parse_with_activity, recorded, render_reply};
use counterfoil_agents::adapters::home_overlay::edit_settings;
use counterfoil_agents::adapters::{
    Adapter, Conversation, ParsedReply, PromptRequest, Server, UsageMeter, Verdict, adapter,
};
use counterfoil_agents::config::{Agents, Settings};
use counterfoil_agents::environment::AgentEnvironment;
use counterfoil_agents::environment::installed::{self, VersionFit};
use counterfoil_flow::{Access, AttemptOutcome};
use counterfoil_process::Exit;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn gemini() -> &'static dyn Adapter {
    adapter("gemini").unwrap()
}

fn parse(stdout: &str) -> ParsedReply {
    parse_with_activity(1 << 16, gemini(), stdout.as_bytes(), "", Exit::Code(0)).0
}

/// A reply without events: an exit code and standard error.
fn silent(code: i32, errors: &str) -> Verdict {
    parse_with_activity(1, gemini(), b"", errors, Exit::Code(code)).0.verdict
}

#[test]
fn recorded_streams_are_understood() {
    let mut all = String::new();
    for (name, run) in recorded("gemini") {
        write!(all, "{name} ({:?})\n{}", run.exit, render_reply(&run.parse(gemini()))).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn recorded_outcomes_are_what_they_are() {
    use AttemptOutcome::{Agent, Limit, Permission, Transport};
    let runs = recorded("gemini");
    for (name, expected) in [
        ("bad-key-stream", Permission),
        ("err401-stream", Permission),
        ("err403-stream", Permission),
        ("auth-missing", Permission),
        ("login-missing", Permission),
        ("err429-stream", Limit),
        ("err429-retry-in-stream", Limit),
        ("err500-stream", Transport),
        ("err503-stream", Transport),
        ("err529-stream", Transport),
        ("refused-stream", Transport),
        ("cut-stream", Transport),
        ("empty-stream", Transport),
        ("err400-stream", Agent),
        ("err404-stream", Agent),
        ("badflag", Agent),
        ("resume-unknown", Agent),
    ] {
        match runs[name].parse(gemini()).verdict {
            Verdict::Failed(failure) => {
                assert_eq!(failure.outcome, expected, "{name}");
                assert!(!failure.reason.contains("    at "), "{name}: {}", failure.reason);
                assert!(!failure.schema_rejected, "{name}");
            }
            verdict => panic!("{name}: {verdict:?}"),
        }
    }
    let Verdict::Failed(limit) = runs["err429-retry-in-stream"].parse(gemini()).verdict else {
        panic!()
    };
    assert_eq!(limit.reset_at, Some(NOW + 3_600_500));
}

#[test]
fn exit_code_0_without_a_final_event_is_not_a_success() {
    let runs = recorded("gemini");
    for name in ["sigterm-stream", "sigterm-mid-stream"] {
        assert_eq!(runs[name].exit, Exit::Code(0), "{name}");
        assert_eq!(runs[name].parse(gemini()).verdict, Verdict::Missing, "{name}");
    }
    assert_eq!(silent(0, "Error: quota"), Verdict::Missing);
    assert_eq!(silent(7, ""), Verdict::Missing);
    let killed = parse_with_activity(1, gemini(), b"", "fetch failed", Exit::Signal(9)).0;
    assert_eq!(killed.verdict, Verdict::Missing);
}

#[test]
fn denied_tools_are_reported() {
    let runs = recorded("gemini");
    let denied = |name: &str| {
        let denied = runs[name].parse(gemini()).denied;
        denied.iter().map(|denied| denied.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(denied("mode-default-stream"), ["write_file", "run_shell_command"]);
    assert_eq!(denied("mode-auto_edit-stream"), ["run_shell_command"]);
    assert_eq!(denied("policy-read-only-stream"), ["write_file", "run_shell_command"]);
    assert_eq!(denied("policy-workspace-write-stream"), ["write_file"]);
    assert_eq!(denied("stream-json-stdin"), [""; 0]);
    // A tool that was never there is no permission.
    let missing = runs["server-missing-stream"].parse(gemini());
    assert_eq!(missing.denied, [""; 0]);
    assert!(
        missing
            .anomalies
            .iter()
            .any(|note| note.contains("the server that receives results is not attached"))
    );
}

/// A prompt request, and the environment variables.
struct RequestFixture {
    access: Access,
    conversation: Conversation<'static>,
    server: Option<Server>,
    flags: Vec<String>,
    scratch: &'static str,
    variables: Vec<(&'static str, &'static str)>,
}

impl RequestFixture {
    fn new(access: Access) -> Self {
        Self {
            access,
            conversation: Conversation::New("0199a1b2-c3d4-7000-8000-000000000001"),
            server: None,
            flags: Vec::new(),
            scratch: "/repo/.counterfoil/scratch/r/a",
            variables: vec![("HOME", "/home/dev")],
        }
    }

    fn served(access: Access) -> Self {
        let command =
            ["/bin/counterfoil", "mcp", "--session", "/repo/.counterfoil/scratch/r/a/session.json"];
        Self {
            server: Some(Server {
                command: command.map(str::to_owned).into(),
                receives: true,
                call_timeout: None,
            }),
            ..Self::new(access)
        }
    }

    fn request<T>(&self, look: impl FnOnce(&PromptRequest<'_>) -> T) -> T {
        let env = |name: &str| {
            let found = self.variables.iter().find(|(own, _)| *own == name)?;
            Some(OsString::from(found.1))
        };
        look(&PromptRequest {
            model: None,
            flags: &self.flags,
            access: self.access,
            max_cost_usd: None,
            conversation: self.conversation,
            schema: None,
            server: self.server.as_ref(),
            scratch: Path::new(self.scratch),
            cwd: Path::new("/repo"),
            env: &env,
        })
    }

    fn arguments(&self) -> Vec<String> {
        let call = self.request(|request| gemini().call(request));
        call.arguments.into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    /// The user's settings with our edits.
    fn settings(&self, theirs: &str) -> Value {
        let home_overlay = self.request(|request| gemini().home_overlay(request)).unwrap();
        serde_json::from_slice(&edit_settings(Some(theirs), &home_overlay.edits).unwrap()).unwrap()
    }

    /// Renders the call and the overlay for a prompt.
    fn render(&self) -> String {
        let call = self.request(|request| gemini().call(request));
        let home_overlay = self.request(|request| gemini().home_overlay(request)).unwrap();
        let mut text = format!("gemini {}\n", self.arguments().join(" "));
        for (name, value) in call.variables.iter().chain(&home_overlay.variables) {
            writeln!(text, "{}={}", name.display(), value.display()).unwrap();
        }
        for (path, bytes) in &call.files {
            writeln!(text, "\n# {}\n{}", path.display(), String::from_utf8_lossy(bytes).trim_end())
                .unwrap();
        }
        let of = home_overlay.source.as_deref().unwrap_or(Path::new("nothing"));
        writeln!(
            text,
            "\n# {} for {}, without {:?}",
            home_overlay.path.display(),
            of.display(),
            home_overlay.exclude
        )
        .unwrap();
        write!(text, "{}: {:#}", home_overlay.settings_file, self.settings("{}")).unwrap();
        text
    }
}

#[test]
fn a_first_prompt_that_only_reads() {
    insta::assert_snapshot!(RequestFixture::new(Access::ReadOnly).render());
}

#[test]
fn a_first_prompt_that_writes_with_the_server_attached() {
    let mut fixture = RequestFixture::served(Access::WorkspaceWrite);
    fixture.variables.push(("GEMINI_API_KEY", "key"));
    insta::assert_snapshot!(fixture.render());
}

#[test]
fn a_conversation_that_goes_on() {
    let conversation = Conversation::Resume("0199a1b2-c3d4-7000-8000-000000000001");
    let fixture = RequestFixture { conversation, ..RequestFixture::new(Access::ReadOnly) };
    let (first, on) = (RequestFixture::new(Access::ReadOnly).arguments(), fixture.arguments());
    let differs = first.iter().zip(&on).filter(|(first, on)| first != on).collect::<Vec<_>>();
    assert_eq!(differs, [(&"--session-id".to_owned(), &"--resume".to_owned())]);
    assert_eq!(first.len(), on.len());
}

#[test]
fn the_users_settings_are_kept() {
    let mut fixture = RequestFixture::served(Access::ReadOnly);
    fixture.variables.push(("GEMINI_API_KEY", "key"));
    let settings = fixture.settings(
        r#"{ // mine
            "security": {"auth": {"selectedType": "oauth-personal"}},
            "mcpServers": {"own": {"command": "x"}, "counterfoil": {"url": "http://old", "trust": false}},
            "mcp": {"allowed": ["own"], "excluded": ["counterfoil", "other"]}
        }"#,
    );
    assert_eq!(settings["security"]["auth"]["selectedType"], "oauth-personal");
    assert_eq!(settings["mcpServers"]["own"], json!({"command": "x"}));
    assert_eq!(settings["mcpServers"]["counterfoil"]["trust"], json!(true));
    assert_eq!(settings["mcpServers"]["counterfoil"].get("url"), None);
    assert_eq!(settings["mcp"], json!({"allowed": ["own", "counterfoil"], "excluded": ["other"]}));
}

#[test]
fn a_key_selects_itself_where_nothing_else_is_meant() {
    let selected = |variables: &[(&'static str, &'static str)]| {
        let mut fixture = RequestFixture::new(Access::ReadOnly);
        fixture.variables.extend(variables);
        fixture.settings("{}")["security"]["auth"]["selectedType"].clone()
    };
    assert_eq!(selected(&[]), Value::Null);
    assert_eq!(selected(&[("GEMINI_API_KEY", "")]), Value::Null);
    assert_eq!(selected(&[("GEMINI_API_KEY", "k")]), json!("gemini-api-key"));
    assert_eq!(
        selected(&[("GEMINI_API_KEY", "k"), ("GOOGLE_GENAI_USE_VERTEXAI", "true")]),
        Value::Null
    );
}

#[test]
fn the_users_flags_replace_ours() {
    let mut fixture = RequestFixture::new(Access::WorkspaceWrite);
    fixture.variables.push(("GEMINI_MODEL", "pro"));
    assert_eq!(fixture.arguments()[..2], ["-m", "pro"]);
    assert_eq!(fixture.settings("{}")["security"]["disableYoloMode"], json!(true));

    fixture.flags = ["--model=other", "--yolo"].map(str::to_owned).into();
    let arguments = fixture.arguments();
    assert!(
        !arguments.iter().any(|argument| argument == "-m" || argument == "--approval-mode"),
        "{arguments:?}"
    );
    assert!(arguments.ends_with(&fixture.flags));
    // What else they chose is theirs.
    assert_eq!(
        fixture.settings(r#"{"security":{"disableYoloMode":true}}"#)["security"]["disableYoloMode"],
        json!(true)
    );
    assert_eq!(fixture.settings("{}").pointer("/security/disableYoloMode"), None);
}

#[test]
fn a_policy_path_that_no_flag_can_contain_is_set_in_the_settings() {
    let comma =
        RequestFixture { scratch: "/repo, old/scratch", ..RequestFixture::new(Access::ReadOnly) };
    assert!(!comma.arguments().contains(&"--admin-policy".to_owned()));
    assert_eq!(comma.settings("{}")["adminPolicyPaths"], json!(["/repo, old/scratch/policy.toml"]));
    assert_eq!(RequestFixture::new(Access::ReadOnly).settings("{}").get("adminPolicyPaths"), None);
}

#[test]
fn a_prompt_is_never_a_command() {
    assert_eq!(gemini().prompt("/memory show"), "\n/memory show");
    assert_eq!(gemini().prompt("Fix src/a.rs"), "Fix src/a.rs");
}

#[test]
fn asking_for_the_version_neither_restarts_it_nor_leaves_files() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("gemini");
    let said = "echo 0.61.0; mkdir -p \"${GEMINI_CLI_HOME:-$HOME}/.gemini\"; exit 0";
    std::fs::write(
        &program,
        format!("#!/bin/sh\n[ \"$GEMINI_CLI_NO_RELAUNCH\" = true ] || exit 1\n{said}\n"),
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = Settings { program: Some(program), ..Settings::default() };
    let mut environment = AgentEnvironment::from_process(Agents::default(), None);
    environment.variables.insert("HOME".into(), folder.path().into());
    let found = installed::inspect(gemini(), &settings, &environment).unwrap();
    assert_eq!((found.version.as_deref(), found.fit), (Some("0.61.0"), VersionFit::Good));
    assert!(!folder.path().join(".gemini").exists());
}

const INIT: &str = r#"{"type":"init","session_id":"s","model":"flash"}"#;
const DONE: &str = r#"{"type":"result","status":"success","stats":{"total_tokens":15,"input_tokens":10,"output_tokens":5}}"#;

fn piece(text: &str) -> String {
    json!({"type": "message", "role": "assistant", "content": text, "delta": true}).to_string()
}

fn stream<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    lines.into_iter().fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn the_final_text_is_the_message_after_the_last_tool_call() {
    let call = r#"{"type":"tool_use","tool_name":"read_file","tool_id":"1","parameters":{"file_path":"src/a.rs"}}"#;
    let answered = r#"{"type":"tool_result","tool_id":"1","status":"success","output":"…"}"#;
    let lines = [
        INIT,
        &piece("First I "),
        &piece("look.\nThen"),
        call,
        answered,
        &piece("{\"a\""),
        &piece(": 1}"),
        DONE,
    ];
    let (reply, activity) =
        parse_with_activity(7, gemini(), stream(lines).as_bytes(), "", Exit::Code(0));
    assert_eq!((reply.text.as_str(), &reply.verdict), ("{\"a\": 1}", &Verdict::Complete));
    assert_eq!((reply.conversation.as_deref(), reply.model.as_deref()), (Some("s"), Some("flash")));
    assert_eq!(activity, ["First I look.", "read_file src/a.rs"]);
    assert_eq!(reply.anomalies, [""; 0]);
}

#[test]
fn reasoning_tokens_count_as_output() {
    let last = r#"{"type":"result","status":"success","stats":{"total_tokens":100,"input_tokens":60,"output_tokens":5,"cached":50,
        "models":{"big":{"total_tokens":90},"small":{"total_tokens":10},"idle":{"total_tokens":0}}}}"#;
    let reply = parse(&last.replace('\n', ""));
    let expected = UsageMeter { input_tokens: 60, output_tokens: 40, ..UsageMeter::default() };
    assert_eq!((reply.meter, reply.model.as_deref()), (expected, Some("big")));
}

#[test]
fn banners_garbage_and_truncated_events_are_skipped() {
    let answer = piece("done");
    let lines = [
        "Loaded cached credentials.",
        INIT,
        "\u{1b}[33mwarning\u{1b}[0m",
        &answer,
        "{\"type\":\"tool_u",
        "[1]",
        DONE,
    ];
    let reply = parse(&stream(lines));
    assert_eq!((reply.text.as_str(), &reply.verdict), ("done", &Verdict::Complete));
    assert_eq!(reply.anomalies, ["4 lines are not events, the first: Loaded cached credentials."]);
}

#[test]
fn events_with_an_unexpected_structure_are_skipped_and_noted() {
    let answer = piece("done");
    for (odd, expected) in [
        (r#"{"type":"init","session_id":7,"model":["x"]}"#, None),
        (r#"{"type":"message","role":"assistant","content":[{"text":"x"}]}"#, Some("message")),
        (r#"{"type":"message","role":7}"#, Some("message")),
        (r#"{"type":"tool_use","tool_name":null}"#, Some("tool_use")),
        (r#"{"type":"tool_result","tool_id":7,"error":"denied"}"#, Some("tool_result")),
        (r#"{"type":"tool_result","tool_id":{},"error":{"type":1}}"#, None),
        (r#"{"type":"error","message":{}}"#, Some("error")),
        (r#"{"type":"result","status":true}"#, Some("result")),
        (r#"{"type":"news","of":"tomorrow"}"#, None),
    ] {
        let reply = parse(&stream([INIT, odd, &answer, DONE]));
        assert_eq!((reply.text.as_str(), &reply.verdict), ("done", &Verdict::Complete), "{odd}");
        assert_eq!(reply.conversation.as_deref(), Some("s"), "{odd}");
        let note = reply.anomalies.first().map(String::as_str);
        let begins =
            expected.map(|kind| format!("1 event `{kind}` with an unexpected structure: "));
        assert_eq!(note.is_some(), expected.is_some(), "{odd}: {note:?}");
        assert!(begins.is_none_or(|begins| note.unwrap().starts_with(&begins)), "{odd}: {note:?}");
    }
}

#[test]
fn only_the_status_of_the_final_event_is_required() {
    for (last, expected) in [
        (r#"{"type":"result","status":"success","stats":"none"}"#, Verdict::Complete),
        (r#"{"type":"result","status":"success","stats":{"input_tokens":-1}}"#, Verdict::Complete),
        (r#"{"type":"result","status":"success","stats":null,"error":null}"#, Verdict::Complete),
    ] {
        let reply = parse(last);
        assert_eq!((reply.verdict, reply.meter), (expected, UsageMeter::default()), "{last}");
    }
    for last in [
        r#"{"type":"result","status":"error"}"#,
        r#"{"type":"result","status":"error","error":"boom"}"#,
        r#"{"type":"result","status":"error","error":{"message":7}}"#,
        r#"{"type":"result","status":"error","error":[[]]}"#,
        r#"{"type":"result","status":"cancelled"}"#,
    ] {
        let Verdict::Failed(failure) = parse(last).verdict else { panic!("{last}") };
        assert_eq!(failure.outcome, AttemptOutcome::Agent, "{last}");
        assert!(!failure.reason.is_empty(), "{last}");
    }
}

#[test]
fn an_earlier_error_explains_the_failure_or_is_noted() {
    let warning = r#"{"type":"error","severity":"warning","message":"Loop detected"}"#;
    let error = r#"{"type":"error","severity":"error","message":"blocked due to safety settings"}"#;
    let failed = parse(&stream([INIT, warning, error, r#"{"type":"result","status":"error"}"#]));
    let Verdict::Failed(failure) = failed.verdict else { panic!() };
    assert_eq!(failure.reason, "blocked due to safety settings");
    assert_eq!(failed.anomalies, ["it reports: Loop detected"]);
    let whole = parse(&stream([INIT, error, DONE]));
    assert_eq!(
        (whole.verdict, whole.anomalies),
        (Verdict::Complete, vec!["it reports: blocked due to safety settings".to_owned()])
    );
}

#[test]
fn the_last_of_two_final_events_counts() {
    let failed = r#"{"type":"result","status":"error","error":{"type":"x","message":"boom"}}"#;
    let (first, second) = (piece("first"), piece("second"));
    let reply = parse(&stream([INIT, &first, failed, &second, DONE]));
    assert_eq!((reply.verdict, reply.text.as_str()), (Verdict::Complete, "second"));
    assert_eq!(reply.anomalies, ["there were 2 final events; the last one counts"]);
}

#[test]
fn a_line_of_20_mb_is_read() {
    let big = "x".repeat(20 << 20);
    let answered =
        format!(r#"{{"type":"tool_result","tool_id":"1","status":"success","output":"{big}"}}"#);
    let reply = parse(&stream([INIT, &answered, &piece(&big), DONE]));
    assert_eq!((reply.text.len(), reply.verdict), (20 << 20, Verdict::Complete));
    assert_eq!(reply.anomalies, [""; 0]);
}

#[test]
fn an_endless_stream_needs_little_memory_besides_the_text() {
    let call = |n: usize| {
        json!({"type": "tool_use", "tool_name": "write_file", "tool_id": n.to_string()}).to_string()
    };
    let deny = |n: usize| {
        let error = json!({"type": "policy_violation", "message": format!("no {n}")});
        json!({"type": "tool_result", "tool_id": n.to_string(), "error": error}).to_string()
    };
    let lines: Vec<String> =
        (0..4_000).flat_map(|n| [call(n), deny(n / 2), format!("noise {n}")]).collect();
    let reply = parse(&stream(lines.iter().map(String::as_str)));
    assert!(
        reply.denied.len() <= 20 && reply.anomalies.len() <= 25,
        "{} {}",
        reply.denied.len(),
        reply.anomalies.len()
    );
}

#[test]
fn failures_are_classified_by_the_response_of_the_server() {
    use AttemptOutcome::{Agent, Limit, Permission, Transport};
    let answer = |code: u16, message: &str, details: Value| {
        json!({"error": {"code": code, "message": message, "status": "X", "details": details}})
            .to_string()
    };
    let info = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]);
    let nested = answer(503, &answer(429, "inner", json!([])), json!([]));
    for (message, code, expected, said, later) in [
        (answer(429, "Quota", info), 1, Limit, "Quota (X)", Some(34)),
        (nested, 1, Limit, "inner (X)", None),
        (
            "Your quota will reset after 1h2m".to_owned(),
            1,
            Limit,
            "Your quota will reset after 1h2m",
            Some(3720),
        ),
        ("exhausted your daily quota".to_owned(), 173, Limit, "exhausted your daily quota", None),
        (
            answer(400, "bad", json!([{"reason": "API_KEY_INVALID"}])),
            144,
            Permission,
            "bad (X); log in",
            None,
        ),
        (
            answer(400, "function_declarations[0]: schema", json!([])),
            144,
            Agent,
            "function_declarations",
            None,
        ),
        (
            answer(404, "models/x is not found", json!([])),
            1,
            Agent,
            "models/x is not found (X); name another",
            None,
        ),
        (answer(408, "slow", json!([])), 1, Transport, "slow (X)", None),
        ("Premature close".to_owned(), 1, Transport, "Premature close", None),
        (String::new(), 247, Transport, "its server answered with HTTP 503", None),
        (String::new(), 53, Agent, "it failed", None),
        ("{".repeat(100_000), 1, Agent, "{{{", None),
    ] {
        let error = json!({"type": "unknown", "message": format!("[API Error: {message}]")});
        let last = json!({"type": "result", "status": "error", "error": error}).to_string();
        let reply = parse_with_activity(4096, gemini(), last.as_bytes(), "", Exit::Code(code)).0;
        let Verdict::Failed(failure) = reply.verdict else { panic!("{message}") };
        assert_eq!(failure.outcome, expected, "{message}");
        assert!(failure.reason.starts_with(said), "{}", failure.reason);
        assert_eq!(failure.reset_at.map(|reset| (reset - NOW) / 1000), later, "{message}");
    }
}

#[test]
fn failures_before_the_first_event_are_classified_by_standard_error() {
    use AttemptOutcome::{Agent, Permission, Transport};
    for (code, errors, expected, says) in [
        (1, "Unknown argument: session-id\nUsage: gemini [options]", Agent, "too old"),
        (
            42,
            "Error resuming session: Invalid session identifier \"x\".",
            Agent,
            "only a new conversation can continue",
        ),
        (42, "Error starting session: Session ID \"x\" already exists.", Agent, "already exists"),
        (41, "Invalid auth method selected.", Permission, "set GEMINI_API_KEY"),
        (
            1,
            "Error: request to https://x failed, reason: connect ECONNREFUSED\n    at a (b)\n}",
            Transport,
            "ECONNREFUSED",
        ),
        (54, "Error executing tool x: disk full", Agent, "disk full"),
    ] {
        let Verdict::Failed(failure) = silent(code, errors) else { panic!("{errors}") };
        assert_eq!(failure.outcome, expected, "{errors}");
        assert!(failure.reason.contains(says), "{}", failure.reason);
        assert!(!failure.reason.contains('\n'), "{}", failure.reason);
    }
}

#[test]
fn warnings_that_our_policy_is_ignored_are_noted() {
    let errors = "Security Warning: Ignoring --admin-policy because system policies are already defined in /etc/x\n\
                  [ADMIN] Policy file error in policy.toml:\nMCP issues detected. Run /mcp list for status.\n\
                  Warning: stdin input truncated to 8388608 bytes.";
    let reply = parse_with_activity(1, gemini(), DONE.as_bytes(), errors, Exit::Code(0)).0;
    assert_eq!(reply.anomalies, errors.lines().map(str::to_owned).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Chunks of any size and unknown events change nothing but the anomalies.
    #[test]
    fn chunks_and_unknown_events_change_nothing(size in 1usize..300, at in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8)) {
        for (name, run) in recorded("gemini") {
            let mut lines: Vec<&[u8]> = run.stdout.split_inclusive(|byte| *byte == b'\n').collect();
            for index in &at {
                let unknown: &[u8] = b"{\"type\":\"weather\",\"status\":\"error\",\"content\":[7]}\n";
                lines.insert(index.index(lines.len() + 1), unknown);
            }
            // A line that has no end of its own swallows the next.
            let ended = run.stdout.is_empty() || run.stdout.ends_with(b"\n");
            prop_assert!(ended, "{}", name);
            let pieces = parse_with_activity(size, gemini(), &lines.concat(), &run.stderr, run.exit).0;
            prop_assert_eq!(ParsedReply { anomalies: Vec::new(), ..pieces }, ParsedReply { anomalies: Vec::new(), ..run.parse(gemini()) }, "{}", name);
        }
    }

    /// Any stream is read to its end.
    #[test]
    fn no_output_makes_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), code in 0..256, errors in ".*") {
        parse_with_activity(13, gemini(), &bytes, &errors, Exit::Code(code));
    }
}

#[test]
fn a_server_that_runs_checks_has_more_time() {
    let mut fixture = RequestFixture::served(Access::ReadOnly);
    let server =
        |fixture: &RequestFixture| fixture.settings("{}")["mcpServers"]["counterfoil"].clone();
    assert_eq!(server(&fixture).get("timeout"), None);
    if let Some(server) = &mut fixture.server {
        server.call_timeout = Some(std::time::Duration::from_mins(12));
    }
    assert_eq!(server(&fixture)["timeout"], 720_000);
}
