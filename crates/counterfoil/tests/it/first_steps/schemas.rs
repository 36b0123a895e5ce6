//! `schema`: the schemas accept every file that is shipped, refuse what has a wrong form as far as a
//! schema can tell, and know the same keys as the parsers.

use crate::PROGRAM;
use counterfoil_engine::config::Config;
use counterfoil_testkit::TestProject;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn schema(kind: &str) -> Value {
    TestProject::new(PROGRAM).run(&["schema", kind]).json()
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn yaml(text: &str) -> Option<Value> {
    serde_saphyr::from_str(text).ok()
}

#[track_caller]
fn assert_valid(schema: &Value, value: &Value, what: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {}", errors.join("\n"));
}

#[test]
fn every_file_that_is_shipped_is_valid() {
    let (contract, workflow, config) = (schema("contract"), schema("workflow"), schema("config"));
    let mut counts = BTreeMap::from([("contract", 0), ("workflow", 0), ("config", 0)]);
    let packs = root().join("crates/counterfoil-packs");
    let folders = [root().join("examples"), packs.join("packs"), packs.join("published")];
    for path in folders.iter().flat_map(|folder| files(folder)) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let name = path.display().to_string();
        let (kind, schema, value) = if path.file_name().unwrap() == "counterfoil.toml" {
            let value: toml::Value = toml::from_str(&text).unwrap();
            ("config", &config, serde_json::to_value(value).unwrap())
        } else {
            let Some(value) = yaml(&text) else { continue };
            if value["workflow"].is_string() && value["states"].is_object() {
                ("workflow", &workflow, value)
            } else if value["contract"].is_string() && value["version"].is_number() {
                ("contract", &contract, value)
            } else {
                continue;
            }
        };
        assert_valid(schema, &value, &name);
        *counts.get_mut(kind).unwrap() += 1;
    }
    assert!(
        counts["contract"] > 30 && counts["workflow"] > 10 && counts["config"] > 2,
        "{counts:?}"
    );
}

/// Cases of the checker's refusals whose form is right as far as a schema can tell: the rest depends
/// on names, types and what other parts of the file say.
const BEYOND_A_SCHEMA: [&str; 13] = [
    "failure-conflict-in-the-repository",
    "failure-of-a-built-in-step",
    "failure-of-a-question",
    "failure-that-never-happens",
    "form-all-questions-optional",
    "form-pattern",
    "form-result-of-main",
    "form-result-undeclared",
    "missing-initial-value",
    "missing-input-of-sub-workflow",
    "missing-result-of-sub-workflow",
    "not-a-boolean-with-a-type",
    "wait-before-a-question",
];

#[test]
fn what_the_checker_refuses_for_its_form_is_not_valid() {
    let schema = schema("workflow");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let tests = root().join("crates/counterfoil-flow/tests");
    let mut passed = BTreeSet::new();
    let mut refused = 0;
    for path in files(&tests.join("refusals")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let snapshot = tests.join(format!("snapshots/refusals/{name}.snap"));
        let findings = std::fs::read_to_string(snapshot).unwrap();
        if !["F0102", "F0103", "F0104"].iter().any(|code| findings.contains(code)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let workflow = text.split("# file: ").next().unwrap();
        let Some(value) = yaml(workflow) else { continue };
        if validator.is_valid(&value) {
            passed.insert(name);
        } else {
            refused += 1;
        }
    }
    assert_eq!(passed, BEYOND_A_SCHEMA.map(str::to_owned).into());
    assert!(refused > 50, "{refused}");
}

/// The keys that a parser names when it refuses an unknown one.
fn named_keys(message: &str) -> BTreeSet<String> {
    let list = message.split("expected one of ").nth(1).unwrap_or_else(|| panic!("{message}"));
    let words = list.lines().next().unwrap().split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

fn properties(schema: &Value, pointer: &str) -> BTreeSet<String> {
    let fields = schema.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
    fields["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_schema_of_contracts_has_the_keys_that_the_parser_has() {
    let schema = schema("contract");
    let unknown = |at: &str, mut value: Value| {
        value.pointer_mut(at).unwrap()["zzz"] = json!(1);
        let text = serde_json::to_string(&value).unwrap();
        counterfoil_contract::Definition::from_json(&text, "x").unwrap_err().to_string()
    };
    let minimal = json!({"contract": "a/b", "version": 1, "schema": {},
        "rules": [{"id": "x"}], "claims": {"f": {"kind": "command"}}, "policy": {}});
    for (at, pointer) in [
        ("", ""),
        ("/rules/0", "/$defs/rule"),
        ("/claims/f", "/$defs/claim"),
        ("/policy", "/$defs/policy"),
    ] {
        let keys = named_keys(&unknown(at, minimal.clone()));
        assert_eq!(properties(&schema, pointer), keys, "{pointer}");
    }
}

#[test]
fn the_schema_of_the_configuration_has_the_keys_that_the_parser_has() {
    let schema = schema("config");
    let agent = "/properties/agents/additionalProperties";
    for (text, pointer) in [
        ("zzz = 1", String::new()),
        ("[claims]\nzzz = 1", "/properties/claims".to_owned()),
        ("[contain]\nkind = \"none\"\nzzz = 1", "/properties/contain/anyOf/1".to_owned()),
        (
            "[checks]\na = { run = \"x\", zzz = 1 }",
            "/properties/checks/additionalProperties/anyOf/2".to_owned(),
        ),
        ("[agents.a]\nzzz = 1", agent.to_owned()),
        ("[agents.a.retry]\nzzz = 1", format!("{agent}/properties/retry")),
        ("[agents.a.retry.limit]\nzzz = 1", format!("{agent}/properties/retry/properties/limit")),
        ("[agents.a.command]\nzzz = 1", format!("{agent}/properties/command")),
        (
            "[agents.a.command.text]\nat = \"/a\"\nzzz = 1",
            format!("{agent}/properties/command/properties/text"),
        ),
        (
            "[agents.a.command.usage]\nzzz = 1",
            format!("{agent}/properties/command/properties/usage"),
        ),
        (
            "[agents.a.command.error]\nat = \"/a\"\nzzz = 1",
            format!("{agent}/properties/command/properties/error"),
        ),
        ("[prices.m]\nzzz = 1", "/properties/prices/additionalProperties".to_owned()),
    ] {
        let message = Config::parse(text).unwrap_err().to_string();
        assert_eq!(properties(&schema, &pointer), named_keys(&message), "{text}");
    }
}

#[test]
fn the_schema_of_workflows_has_the_keys_that_the_checker_has() {
    let schema = schema("workflow");
    let project = TestProject::new(PROGRAM);
    // The hint lists all keys, because none is like this one.
    let known = |text: &str| -> BTreeSet<String> {
        project.write("flow.yaml", text);
        let report = project.run(&["workflow", "check", "flow.yaml", "--format", "json"]).json();
        let findings = report["workflows"][0]["findings"].as_array().unwrap().iter();
        let hint = findings
            .filter_map(|finding| finding["hint"].as_str())
            .find_map(|hint| hint.strip_prefix("known keys: "));
        let hint = hint.unwrap_or_else(|| panic!("{report:#}"));
        hint.split(", ").map(str::to_owned).collect()
    };
    let state = |keys: &str| format!("workflow: a\nstart: s\nstates:\n  s: {{ {keys} }}\n");
    let states = schema["$defs"]["state"]["anyOf"].as_array().unwrap();
    let of = |key: &str| {
        let at = states.iter().position(|state| state["required"][0] == key).unwrap();
        format!("/$defs/state/anyOf/{at}")
    };
    for (text, pointer) in [
        ("qqq: 1\n".to_owned(), String::new()),
        ("agents: { a: { qqq: 1 } }\n".to_owned(), "/$defs/agent".to_owned()),
        ("budget: { qqq: 1 }\n".to_owned(), "/$defs/budget".to_owned()),
        (
            "limits: { a: { qqq: 1 } }\n".to_owned(),
            "/properties/limits/additionalProperties".to_owned(),
        ),
        ("artifacts: [{ qqq: 1 }]\n".to_owned(), "/properties/artifacts/items".to_owned()),
        (
            "workflows: { a: { qqq: 1 } }\n".to_owned(),
            "/properties/workflows/additionalProperties".to_owned(),
        ),
        (state("agent: a, qqq: 1"), of("agent")),
        (state("command: [a], qqq: 1"), of("command")),
        (state("read: a, qqq: 1"), of("read")),
        (state("changes: {}, qqq: 1"), of("changes")),
        (state("commit: { message: a }, qqq: 1"), of("commit")),
        (state("ask: { question: a }, qqq: 1"), of("ask")),
        (state("ask: { qqq: a }, go: s"), of("ask") + "/properties/ask"),
        (state("each: { qqq: a }, go: s"), of("each") + "/properties/each"),
        (state("order: { qqq: a }, go: s"), of("order") + "/properties/order"),
        (state("run: a, qqq: 1"), of("run")),
        (state("end: done, qqq: 1"), of("end")),
        (state("next: [{ qqq: 1 }]"), "/$defs/transition/anyOf/1".to_owned()),
    ] {
        assert_eq!(properties(&schema, &pointer), known(&text), "{text}");
    }
}

#[test]
fn schemas_are_printed_or_written() {
    let project = TestProject::new(PROGRAM);
    for kind in ["contract", "workflow", "config"] {
        let schema = project.run(&["schema", kind]).json();
        assert!(jsonschema::meta::is_valid(&schema), "{kind}");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
    project
        .run(&["schema", "--write", "schemas"])
        .expect(0, &["wrote schemas/counterfoil-config.schema.json"]);
    let written: BTreeSet<String> = std::fs::read_dir(project.path("schemas"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        written,
        ["contract", "workflow", "config"]
            .map(|kind| format!("counterfoil-{kind}.schema.json"))
            .into()
    );
    project.run(&["schema", "contarct"]).expect(2, &["contract"]);
}
