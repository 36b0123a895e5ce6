//! Which way of returning a result each program gets, by its settings and by the contract.

use super::*;
use crate::adapters::adapter;
use crate::agent::Task;
use crate::config::Settings;
use crate::environment::AgentEnvironment;
use crate::environment::installed::{Installed, VersionFit};
use counterfoil_contract::{Context, Definition, Framing};
use counterfoil_flow::Access;
use serde_json::json;
use std::sync::Arc;

const SUBMIT: Delivery = Delivery::Tool { name: "submit_result", server: Some("counterfoil") };
const STRUCTURED: Delivery = Delivery::Tool { name: "StructuredOutput", server: None };

fn contract(schema: Value) -> Arc<Contract> {
    let definition = Definition::new("acme/ok", 1, Framing::OutputBlock, schema);
    Arc::new(Contract::compile(definition).unwrap())
}

fn small() -> Arc<Contract> {
    contract(json!({
        "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
        "additionalProperties": false,
    }))
}

fn session(
    program: &str,
    channels: Option<&[Channel]>,
    contract: Arc<Contract>,
    checks: bool,
) -> CliSession {
    let mut environment = AgentEnvironment::default();
    environment.executable = Some("/bin/counterfoil".into());
    let agent = CliAgent {
        adapter: adapter(program).unwrap(),
        installed: Installed { program: program.into(), version: None, fit: VersionFit::Good },
        settings: Settings { channels: channels.map(<[_]>::to_vec), ..Settings::default() },
        environment,
    };
    let checks = checks.then(|| CheckService {
        socket: "/scratch/s".into(),
        names: vec!["test".to_owned()],
        timeout_ms: 1000,
    });
    let task = Task {
        agent: "worker".to_owned(),
        marker: "m".to_owned(),
        cwd: "/repo".into(),
        scratch: "/nowhere/scratch".into(),
        access: Access::ReadOnly,
        contract,
        context: Context::default(),
        startup: None,
        checks,
        idle: None,
        earlier: None,
    };
    CliSession::new(agent, task)
}

fn task(session: &CliSession) -> Prompt {
    let message = Message::Task { task: "Water the plants.".to_owned(), earlier: None };
    Prompt { contract: session.task.contract.clone(), message }
}

#[test]
fn each_program_has_one_way_and_the_tools_that_it_needs() {
    use Channel::{Native, Submit};
    type Row<'r> = (&'r str, Option<&'r [Channel]>, bool, Delivery, &'r [&'r str]);
    let rows: [Row<'_>; 13] = [
        ("claude", None, false, STRUCTURED, &[]),
        ("claude", None, true, STRUCTURED, &["run_check"]),
        ("claude", Some(&[Submit]), true, SUBMIT, &["submit_result", "run_check"]),
        ("claude", Some(&[Submit, Native]), false, SUBMIT, &["submit_result"]),
        ("claude", Some(&[Native]), true, STRUCTURED, &[]),
        ("claude", Some(&[]), true, Delivery::Text, &[]),
        ("codex", None, false, Delivery::Message, &[]),
        ("codex", None, true, Delivery::Message, &["run_check"]),
        ("codex", Some(&[Submit]), false, SUBMIT, &["submit_result"]),
        ("gemini", None, false, SUBMIT, &["submit_result"]),
        ("gemini", None, true, SUBMIT, &["submit_result", "run_check"]),
        ("gemini", Some(&[Native]), true, Delivery::Text, &[]),
        ("gemini", Some(&[]), false, Delivery::Text, &[]),
    ];
    for (program, channels, checks, delivery, tools) in rows {
        let session = session(program, channels, small(), checks);
        assert_eq!(session.delivery(), delivery, "{program} {channels:?}");
        let offered = session.server().map(|server| server.tools()).unwrap_or_default();
        assert_eq!(offered, tools, "{program} {channels:?}");
        let prompt = session.prompt_text(&task(&session));
        assert_eq!(prompt.contains("run_check"), tools.contains(&"run_check"), "{prompt}");
        let ways = ["StructuredOutput", "submit_result", "---OUTPUT---", "one JSON object"];
        let named: Vec<&str> = ways.into_iter().filter(|way| prompt.contains(way)).collect();
        let expected = match delivery {
            Delivery::Text => "---OUTPUT---",
            Delivery::Message => "one JSON object",
            Delivery::Tool { name, .. } => name,
        };
        assert_eq!(named, [expected], "{prompt}");
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_replaced_by_the_tool() {
    let long = |bytes: usize| {
        let mut schema = small().raw_schema().clone();
        schema["properties"]["ok"]["description"] = json!("x".repeat(bytes));
        contract(schema)
    };
    let claude = session("claude", None, long(131_072), false);
    assert_eq!(claude.delivery(), SUBMIT);
    let note = claude.schema_note.as_deref().unwrap();
    assert!(note.starts_with("claude was not given the schema, because it has 131"), "{note}");
    assert!(note.ends_with("bytes and the limit is 131071"), "{note}");
    assert_eq!(session("codex", None, long(131_072), false).delivery(), Delivery::Message);
    let map = json!({
        "type": "object", "required": ["ok"],
        "properties": {"ok": {"type": "object", "additionalProperties": {"type": "string"}}},
    });
    let codex = session("codex", None, contract(map), false);
    assert_eq!((codex.delivery(), codex.schema_note.clone()), (SUBMIT, None));
}

#[test]
fn a_rejected_schema_and_a_tool_that_is_not_called_change_the_way() {
    let mut codex = session("codex", None, small(), false);
    codex.schema = None;
    assert_eq!(codex.delivery(), SUBMIT);
    codex.nothing_submitted = true;
    assert_eq!(codex.delivery(), Delivery::Text);
    // A late submission is still received.
    assert_eq!(codex.server().unwrap().tools(), ["submit_result"]);
}
