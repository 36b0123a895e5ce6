//! The tools that the server offers: names, descriptions, schemas.

use crate::mcp::client::{Client, Session, words};
use counterfoil_contract::render::vendor::Target;
use serde_json::{Value, json};

fn tools(client: &mut Client) -> Value {
    client.request("tools/list", &json!({}))["result"]["tools"].clone()
}

/// The schema of a tool's arguments.
fn schema(client: &mut Client, name: &str) -> Value {
    let tools = tools(client);
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
    tool["inputSchema"].clone()
}

const EITHER: &str = "contract: acme/either
version: 1
schema:
  oneOf:
    - $ref: '#/$defs/done'
    - type: object
      required: [error]
      properties: { error: { type: string }, inner: { $ref: '#/oneOf/0' } }
  $defs: { done: { type: object, required: [files], properties: { files: { type: array, items: { type: string } } } } }";

#[test]
fn a_server_says_what_it_is_for() {
    let session = Session::of("execution-loop/qa", Target::Claude);
    let mut client = session.start();
    let hello = client.initialize();
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    assert_eq!(hello["serverInfo"]["name"], "counterfoil");
    assert!(hello["capabilities"]["tools"].is_object());
    insta::assert_snapshot!(hello["instructions"].as_str().unwrap());
}

#[test]
fn the_server_of_an_attempt_has_the_tools_that_it_needs() {
    let session = Session::of("execution-loop/qa", Target::Claude);
    let mut attempt = session.greet();
    let names = |tools: &Value| -> Vec<String> {
        let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    assert_eq!(names(&tools(&mut attempt)), ["submit_result"]);
    let refused = attempt.request("tools/call", &json!({"name": "get_contract", "arguments": {}}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("available: submit_result"));
    let people = tools(&mut session.consult());
    assert_eq!(names(&people), ["submit_result", "get_contract", "check_result"]);
}

#[test]
fn the_arguments_of_an_object_are_the_object() {
    let session = Session::of("execution-loop/qa", Target::Claude);
    let mut client = session.consult();
    insta::assert_json_snapshot!("tools_of_an_object", tools(&mut client));
}

#[test]
fn an_envelope_is_shown_in_the_dialect_of_its_reader() {
    let session = Session::of("spec-pipeline/specify", Target::Codex);
    let mut client = session.consult();
    insta::assert_json_snapshot!("tools_of_an_envelope_for_codex", tools(&mut client));
}

#[test]
fn alternatives_at_the_root_are_wrapped_and_their_references_follow() {
    let session = Session::written(EITHER, Target::Claude);
    let mut client = session.greet();
    let schema = schema(&mut client, "submit_result");
    for keyword in ["oneOf", "anyOf", "allOf"] {
        assert!(schema.get(keyword).is_none(), "{schema}");
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json!({"result": {"files": ["a"]}})));
    assert!(validator.is_valid(&json!({"result": {"error": "x", "inner": {"files": []}}})));
    assert!(!validator.is_valid(&json!({"result": {"error": "x", "inner": {"files": [1]}}})));
    assert!(!validator.is_valid(&json!({"files": ["a"]})));
    insta::assert_json_snapshot!("schema_of_alternatives", schema);
}

#[test]
fn all_contracts_of_a_pack_are_offered_with_one_schema() {
    let folder = tempfile::tempdir().unwrap();
    let pack = counterfoil_packs::pack("spec-pipeline").unwrap();
    let all: Vec<String> =
        pack.definitions().into_iter().map(|definition| definition.contract).collect();
    for target in Target::ALL {
        let mut arguments = vec!["--target", target.name()];
        arguments.extend(all.iter().flat_map(|id| ["--contract", id]));
        let mut client = Client::greet(&arguments, folder.path());
        for tool in tools(&mut client).as_array().unwrap() {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object");
            assert!(jsonschema::meta::is_valid(schema), "{}: {}", target.name(), tool["name"]);
            // References that lead nowhere are found here.
            jsonschema::validator_for(schema).unwrap();
        }
    }
}

#[test]
fn a_contract_can_be_read() {
    let session = Session::of("execution-loop/qa", Target::Codex);
    let mut client = session.consult();
    let answer = client.call("get_contract", &json!({}));
    let data = &answer["structuredContent"];
    assert_eq!(data["contract"], "execution-loop/qa@1");
    assert!(data["prompt"].as_str().unwrap().contains("`dod_achieved`"));
    assert!(words(&answer).contains("Submit the result with `submit_result`"));
    // The schema is the contract's own, not that of the dialect. The example is not a result, but
    // has the form of one.
    assert_eq!(data["schema"]["required"], json!(["dod_achieved", "checks"]));
    let mut example = data["example"].clone();
    assert!(words(&client.submit(&example)).contains("C0116"));
    example["fix_info"] = json!("the search must find nothing in an empty list");
    assert_eq!(example["dod_achieved"], false);
    let answer = client.submit(&example);
    assert_eq!(answer["isError"], false, "{}", words(&answer));
}

#[test]
fn the_example_of_what_is_wrapped_is_wrapped() {
    let yaml = format!("{EITHER}\nexamples: [{{ files: [a.rs] }}]");
    let session = Session::written(&yaml, Target::Gemini);
    let mut client = session.consult();
    let example = client.call("get_contract", &json!({}))["structuredContent"]["example"].clone();
    assert_eq!(example, json!({"result": {"files": ["a.rs"]}}));
    // It is not a result, wrapped or not. Another value in its place is one.
    assert!(words(&client.submit(&example)).contains("C0116"));
    assert_eq!(client.submit(&json!({"result": {"files": ["b.rs"]}}))["isError"], false);
}
