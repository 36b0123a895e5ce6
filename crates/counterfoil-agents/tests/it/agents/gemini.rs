//! Gemini CLI: its calls, its recorded streams, and streams that are not as they should be.

#![allow(clippy::unwrap_used)]

use crate::agents::recorded::{NOW, recorded, told, watched};
use counterfoil_agents::agent::Equipment;
use counterfoil_agents::agent::adapter::stand_in::edited;
use counterfoil_agents::agent::adapter::{
    Adapter, Conversation, Heard, Meter, Server, Turn, Verdict, adapter,
};
use counterfoil_agents::agent::installed::{self, Fit};
use counterfoil_agents::config::{Agents, Settings};
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

fn heard(stdout: &str) -> Heard {
    watched(1 << 16, gemini(), stdout.as_bytes(), "", Exit::Code(0)).0
}

/// A reply without events: an exit code and standard error.
fn silent(code: i32, errors: &str) -> Verdict {
    watched(1, gemini(), b"", errors, Exit::Code(code)).0.verdict
}

#[test]
fn recorded_streams_are_understood() {
    let mut all = String::new();
    for (name, run) in recorded("gemini") {
        write!(all, "{name} ({:?})\n{}", run.exit, told(&run.heard(gemini()))).unwrap();
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
        match runs[name].heard(gemini()).verdict {
            Verdict::Failed(failure) => {
                assert_eq!(failure.outcome, expected, "{name}");
                assert!(!failure.reason.contains("    at "), "{name}: {}", failure.reason);
                assert!(!failure.schema, "{name}");
            }
            verdict => panic!("{name}: {verdict:?}"),
        }
    }
    let Verdict::Failed(limit) = runs["err429-retry-in-stream"].heard(gemini()).verdict else {
        panic!()
    };
    assert_eq!(limit.reset_at, Some(NOW + 3_600_500));
}

#[test]
fn an_exit_of_0_without_a_last_event_is_no_success() {
    let runs = recorded("gemini");
    for name in ["sigterm-stream", "sigterm-mid-stream"] {
        assert_eq!(runs[name].exit, Exit::Code(0), "{name}");
        assert_eq!(runs[name].heard(gemini()).verdict, Verdict::Missing, "{name}");
    }
    assert_eq!(silent(0, "Error: quota"), Verdict::Missing);
    assert_eq!(silent(7, ""), Verdict::Missing);
    let killed = watched(1, gemini(), b"", "fetch failed", Exit::Signal(9)).0;
    assert_eq!(killed.verdict, Verdict::Missing);
}

#[test]
fn tools_that_may_not_be_used_are_told() {
    let runs = recorded("gemini");
    let denied = |name: &str| {
        let denied = runs[name].heard(gemini()).denied;
        denied.iter().map(|denied| denied.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(denied("mode-default-stream"), ["write_file", "run_shell_command"]);
    assert_eq!(denied("mode-auto_edit-stream"), ["run_shell_command"]);
    assert_eq!(denied("policy-read-only-stream"), ["write_file", "run_shell_command"]);
    assert_eq!(denied("policy-workspace-write-stream"), ["write_file"]);
    assert_eq!(denied("stream-json-stdin"), [""; 0]);
    // A tool that was never there is no permission.
    let missing = runs["server-missing-stream"].heard(gemini());
    assert_eq!(missing.denied, [""; 0]);
    assert!(
        missing.odd.iter().any(|odd| odd.contains("the server that takes results is not attached"))
    );
}

/// A turn of a conversation, and our variables.
struct Scene {
    access: Access,
    conversation: Conversation<'static>,
    server: Option<Server>,
    flags: Vec<String>,
    scratch: &'static str,
    variables: Vec<(&'static str, &'static str)>,
}

impl Scene {
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
            server: Some(Server { command: command.map(str::to_owned).into() }),
            ..Self::new(access)
        }
    }

    fn turn<T>(&self, look: impl FnOnce(&Turn<'_>) -> T) -> T {
        let ours = |name: &str| {
            let found = self.variables.iter().find(|(own, _)| *own == name)?;
            Some(OsString::from(found.1))
        };
        look(&Turn {
            model: None,
            flags: &self.flags,
            access: self.access,
            conversation: self.conversation,
            schema: None,
            server: self.server.as_ref(),
            scratch: Path::new(self.scratch),
            cwd: Path::new("/repo"),
            ours: &ours,
        })
    }

    fn arguments(&self) -> Vec<String> {
        let call = self.turn(|turn| gemini().call(turn));
        call.arguments.into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    /// Our settings over those of a user.
    fn settings(&self, theirs: &str) -> Value {
        let stand_in = self.turn(|turn| gemini().stand_in(turn)).unwrap();
        serde_json::from_slice(&edited(Some(theirs), &stand_in.edits).unwrap()).unwrap()
    }

    /// All that is done for a prompt, for reading.
    fn told(&self) -> String {
        let call = self.turn(|turn| gemini().call(turn));
        let stand_in = self.turn(|turn| gemini().stand_in(turn)).unwrap();
        let mut told = format!("gemini {}\n", self.arguments().join(" "));
        for (name, value) in call.variables.iter().chain(&stand_in.variables) {
            writeln!(told, "{}={}", name.display(), value.display()).unwrap();
        }
        for (path, bytes) in &call.files {
            writeln!(told, "\n# {}\n{}", path.display(), String::from_utf8_lossy(bytes).trim_end())
                .unwrap();
        }
        let of = stand_in.of.as_deref().unwrap_or(Path::new("nothing"));
        writeln!(
            told,
            "\n# {} for {}, without {:?}",
            stand_in.at.display(),
            of.display(),
            stand_in.without
        )
        .unwrap();
        write!(told, "{}: {:#}", stand_in.settings, self.settings("{}")).unwrap();
        told
    }
}

#[test]
fn a_first_prompt_that_only_reads() {
    insta::assert_snapshot!(Scene::new(Access::ReadOnly).told());
}

#[test]
fn a_first_prompt_that_writes_with_the_server_attached() {
    let mut scene = Scene::served(Access::WorkspaceWrite);
    scene.variables.push(("GEMINI_API_KEY", "key"));
    insta::assert_snapshot!(scene.told());
}

#[test]
fn a_conversation_that_goes_on() {
    let conversation = Conversation::On("0199a1b2-c3d4-7000-8000-000000000001");
    let scene = Scene { conversation, ..Scene::new(Access::ReadOnly) };
    let (first, on) = (Scene::new(Access::ReadOnly).arguments(), scene.arguments());
    let differs = first.iter().zip(&on).filter(|(first, on)| first != on).collect::<Vec<_>>();
    assert_eq!(differs, [(&"--session-id".to_owned(), &"--resume".to_owned())]);
    assert_eq!(first.len(), on.len());
}

#[test]
fn what_the_user_set_stays_in_force() {
    let mut scene = Scene::served(Access::ReadOnly);
    scene.variables.push(("GEMINI_API_KEY", "key"));
    let settings = scene.settings(
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
        let mut scene = Scene::new(Access::ReadOnly);
        scene.variables.extend(variables);
        scene.settings("{}")["security"]["auth"]["selectedType"].clone()
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
fn flags_of_the_users_own_take_the_place_of_ours() {
    let mut scene = Scene::new(Access::WorkspaceWrite);
    scene.variables.push(("GEMINI_MODEL", "pro"));
    assert_eq!(scene.arguments()[..2], ["-m", "pro"]);
    assert_eq!(scene.settings("{}")["security"]["disableYoloMode"], json!(true));

    scene.flags = ["--model=other", "--yolo"].map(str::to_owned).into();
    let arguments = scene.arguments();
    assert!(
        !arguments.iter().any(|argument| argument == "-m" || argument == "--approval-mode"),
        "{arguments:?}"
    );
    assert!(arguments.ends_with(&scene.flags));
    // What else they chose is theirs.
    assert_eq!(
        scene.settings(r#"{"security":{"disableYoloMode":true}}"#)["security"]["disableYoloMode"],
        json!(true)
    );
    assert_eq!(scene.settings("{}").pointer("/security/disableYoloMode"), None);
}

#[test]
fn a_policy_whose_path_no_flag_can_name_is_named_in_the_settings() {
    let comma = Scene { scratch: "/repo, old/scratch", ..Scene::new(Access::ReadOnly) };
    assert!(!comma.arguments().contains(&"--admin-policy".to_owned()));
    assert_eq!(comma.settings("{}")["adminPolicyPaths"], json!(["/repo, old/scratch/policy.toml"]));
    assert_eq!(Scene::new(Access::ReadOnly).settings("{}").get("adminPolicyPaths"), None);
}

#[test]
fn a_prompt_is_never_a_command() {
    assert_eq!(gemini().prompt("/memory show"), "\n/memory show");
    assert_eq!(gemini().prompt("Fix src/a.rs"), "Fix src/a.rs");
}

#[test]
fn to_say_its_version_it_neither_starts_itself_again_nor_leaves_files_behind() {
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
    let mut equipment = Equipment::of_this_process(Agents::default(), None);
    equipment.variables.insert("HOME".into(), folder.path().into());
    let found = installed::look(gemini(), &settings, &equipment).unwrap();
    assert_eq!((found.version.as_deref(), found.fit), (Some("0.61.0"), Fit::Good));
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
fn the_answer_is_what_is_said_behind_the_last_tool() {
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
    let (heard, said) = watched(7, gemini(), stream(lines).as_bytes(), "", Exit::Code(0));
    assert_eq!((heard.text.as_str(), &heard.verdict), ("{\"a\": 1}", &Verdict::Whole));
    assert_eq!((heard.conversation.as_deref(), heard.model.as_deref()), (Some("s"), Some("flash")));
    assert_eq!(said, ["First I look.", "read_file src/a.rs"]);
    assert_eq!(heard.odd, [""; 0]);
}

#[test]
fn thoughts_are_counted_as_what_was_said() {
    let last = r#"{"type":"result","status":"success","stats":{"total_tokens":100,"input_tokens":60,"output_tokens":5,"cached":50,
        "models":{"big":{"total_tokens":90},"small":{"total_tokens":10},"idle":{"total_tokens":0}}}}"#;
    let heard = heard(&last.replace('\n', ""));
    let expected = Meter { input_tokens: 60, output_tokens: 40, ..Meter::default() };
    assert_eq!((heard.meter, heard.model.as_deref()), (expected, Some("big")));
}

#[test]
fn banners_garbage_and_events_that_broke_off_are_passed_over() {
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
    let heard = heard(&stream(lines));
    assert_eq!((heard.text.as_str(), &heard.verdict), ("done", &Verdict::Whole));
    assert_eq!(heard.odd, ["4 lines are no events, the first: Loaded cached credentials."]);
}

#[test]
fn events_of_another_shape_are_passed_over_and_told() {
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
        let heard = heard(&stream([INIT, odd, &answer, DONE]));
        assert_eq!((heard.text.as_str(), &heard.verdict), ("done", &Verdict::Whole), "{odd}");
        assert_eq!(heard.conversation.as_deref(), Some("s"), "{odd}");
        let told = heard.odd.first().map(String::as_str);
        let begins =
            expected.map(|kind| format!("1 event `{kind}` in a shape that is not known: "));
        assert_eq!(told.is_some(), expected.is_some(), "{odd}: {told:?}");
        assert!(begins.is_none_or(|begins| told.unwrap().starts_with(&begins)), "{odd}: {told:?}");
    }
}

#[test]
fn the_status_of_the_last_event_counts_whatever_the_rest_is() {
    for (last, expected) in [
        (r#"{"type":"result","status":"success","stats":"none"}"#, Verdict::Whole),
        (r#"{"type":"result","status":"success","stats":{"input_tokens":-1}}"#, Verdict::Whole),
        (r#"{"type":"result","status":"success","stats":null,"error":null}"#, Verdict::Whole),
    ] {
        let heard = heard(last);
        assert_eq!((heard.verdict, heard.meter), (expected, Meter::default()), "{last}");
    }
    for last in [
        r#"{"type":"result","status":"error"}"#,
        r#"{"type":"result","status":"error","error":"boom"}"#,
        r#"{"type":"result","status":"error","error":{"message":7}}"#,
        r#"{"type":"result","status":"error","error":[[]]}"#,
        r#"{"type":"result","status":"cancelled"}"#,
    ] {
        let Verdict::Failed(failure) = heard(last).verdict else { panic!("{last}") };
        assert_eq!(failure.outcome, AttemptOutcome::Agent, "{last}");
        assert!(!failure.reason.is_empty(), "{last}");
    }
}

#[test]
fn what_is_said_on_the_way_is_why_it_failed_or_odd() {
    let warning = r#"{"type":"error","severity":"warning","message":"Loop detected"}"#;
    let error = r#"{"type":"error","severity":"error","message":"blocked due to safety settings"}"#;
    let failed = heard(&stream([INIT, warning, error, r#"{"type":"result","status":"error"}"#]));
    let Verdict::Failed(failure) = failed.verdict else { panic!() };
    assert_eq!(failure.reason, "blocked due to safety settings");
    assert_eq!(failed.odd, ["it says: Loop detected"]);
    let whole = heard(&stream([INIT, error, DONE]));
    assert_eq!(
        (whole.verdict, whole.odd),
        (Verdict::Whole, vec!["it says: blocked due to safety settings".to_owned()])
    );
}

#[test]
fn of_two_ends_the_last_counts() {
    let failed = r#"{"type":"result","status":"error","error":{"type":"x","message":"boom"}}"#;
    let (first, second) = (piece("first"), piece("second"));
    let heard = heard(&stream([INIT, &first, failed, &second, DONE]));
    assert_eq!((heard.verdict, heard.text.as_str()), (Verdict::Whole, "second"));
    assert_eq!(heard.odd, ["it ended 2 times; the last time counts"]);
}

#[test]
fn a_line_of_20_mb_is_read() {
    let big = "x".repeat(20 << 20);
    let answered =
        format!(r#"{{"type":"tool_result","tool_id":"1","status":"success","output":"{big}"}}"#);
    let heard = heard(&stream([INIT, &answered, &piece(&big), DONE]));
    assert_eq!((heard.text.len(), heard.verdict), (20 << 20, Verdict::Whole));
    assert_eq!(heard.odd, [""; 0]);
}

#[test]
fn a_stream_without_end_keeps_little_beside_the_text() {
    let call = |n: usize| {
        json!({"type": "tool_use", "tool_name": "write_file", "tool_id": n.to_string()}).to_string()
    };
    let deny = |n: usize| {
        let error = json!({"type": "policy_violation", "message": format!("no {n}")});
        json!({"type": "tool_result", "tool_id": n.to_string(), "error": error}).to_string()
    };
    let lines: Vec<String> =
        (0..4_000).flat_map(|n| [call(n), deny(n / 2), format!("noise {n}")]).collect();
    let heard = heard(&stream(lines.iter().map(String::as_str)));
    assert!(
        heard.denied.len() <= 20 && heard.odd.len() <= 25,
        "{} {}",
        heard.denied.len(),
        heard.odd.len()
    );
}

#[test]
fn failures_are_told_by_what_the_server_answered() {
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
        let heard = watched(4096, gemini(), last.as_bytes(), "", Exit::Code(code)).0;
        let Verdict::Failed(failure) = heard.verdict else { panic!("{message}") };
        assert_eq!(failure.outcome, expected, "{message}");
        assert!(failure.reason.starts_with(said), "{}", failure.reason);
        assert_eq!(failure.reset_at.map(|reset| (reset - NOW) / 1000), later, "{message}");
    }
}

#[test]
fn failures_before_the_first_event_are_told_by_standard_error() {
    use AttemptOutcome::{Agent, Permission, Transport};
    for (code, errors, expected, says) in [
        (1, "Unknown argument: session-id\nUsage: gemini [options]", Agent, "too old"),
        (
            42,
            "Error resuming session: Invalid session identifier \"x\".",
            Agent,
            "only a new conversation helps",
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
fn what_keeps_our_rules_from_holding_is_told() {
    let errors = "Security Warning: Ignoring --admin-policy because system policies are already defined in /etc/x\n\
                  [ADMIN] Policy file error in policy.toml:\nMCP issues detected. Run /mcp list for status.\n\
                  Warning: stdin input truncated to 8388608 bytes.";
    let heard = watched(1, gemini(), DONE.as_bytes(), errors, Exit::Code(0)).0;
    assert_eq!(heard.odd, errors.lines().map(str::to_owned).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Pieces of any size, and events that nobody knows, change nothing but what is odd.
    #[test]
    fn pieces_and_unknown_events_change_nothing(size in 1usize..300, at in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8)) {
        for (name, run) in recorded("gemini") {
            let mut lines: Vec<&[u8]> = run.stdout.split_inclusive(|byte| *byte == b'\n').collect();
            for index in &at {
                let unknown: &[u8] = b"{\"type\":\"weather\",\"status\":\"error\",\"content\":[7]}\n";
                lines.insert(index.index(lines.len() + 1), unknown);
            }
            // A line that has no end of its own swallows the next.
            let ended = run.stdout.is_empty() || run.stdout.ends_with(b"\n");
            prop_assert!(ended, "{}", name);
            let pieces = watched(size, gemini(), &lines.concat(), &run.stderr, run.exit).0;
            prop_assert_eq!(Heard { odd: Vec::new(), ..pieces }, Heard { odd: Vec::new(), ..run.heard(gemini()) }, "{}", name);
        }
    }

    /// Whatever a stream holds, it is read to its end.
    #[test]
    fn nothing_that_is_said_makes_it_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..400), code in 0..256, errors in ".*") {
        watched(13, gemini(), &bytes, &errors, Exit::Code(code));
    }
}
