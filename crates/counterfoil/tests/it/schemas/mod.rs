//! The schemas of the data that the program prints or reads: they are what they promise to be, the
//! documentation names them, and what is printed has their shape.

mod outputs;
mod published;
mod runs;

use crate::PROGRAM;
use counterfoil_testkit::TestProject;
use published::{FILES, outline, published};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The texts that a schema has for people.
fn descriptions(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => found.push(text.clone()),
                    member => descriptions(member, found),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                descriptions(item, found);
            }
        }
        _ => {}
    }
}

/// The fields that nothing describes: neither a text of their own, nor that of an object that has no
/// other field, nor their only value.
fn undescribed(schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        let is_described =
            |field: &Value| field.get("description").or(field.get("const")).is_some();
        let is_alone = fields.len() == 1 && is_described(schema);
        let bare = fields.iter().filter(|(_, field)| !is_alone && !is_described(field));
        found.extend(bare.map(|(name, _)| name.clone()));
    }
    match schema {
        Value::Object(members) => {
            for member in members.values() {
                undescribed(member, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                undescribed(item, found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_schema_is_valid_and_described() {
    for (kind, schema) in published() {
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{kind}");
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{kind}: {error}"));
        jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(schema["title"].as_str().unwrap().to_lowercase().contains("counterfoil"), "{kind}");
        let mut texts = Vec::new();
        descriptions(&schema, &mut texts);
        assert!(!texts.is_empty(), "{kind}");
        if FILES.contains(&kind.as_str()) {
            continue;
        }
        for text in texts {
            // Links and line breaks of comments mean nothing outside of the code.
            assert!(!text.contains("[`") && !text.replace("\n\n", "").contains('\n'), "{text:?}");
        }
        let mut fields = BTreeSet::new();
        undescribed(&schema, &mut fields);
        assert!(fields.is_empty(), "{kind}: {fields:?}");
        // New versions add fields. Only what is read refuses those that it does not know.
        let is_closed = schema.to_string().contains("\"additionalProperties\":false");
        assert_eq!(is_closed, kind == "batch-input", "{kind}");
    }
}

/// A change of this outline is a change of what other programs read. Fields are only added.
#[test]
fn the_published_shapes_are_stable() {
    let mut schemas = published();
    schemas.retain(|kind, _| !FILES.contains(&kind.as_str()));
    insta::assert_snapshot!(outline(&schemas));
}

#[test]
fn a_schema_is_printed_and_written_alike_and_editors_get_three() {
    let project = TestProject::new(PROGRAM);
    let listed = project.run(&["schema"]);
    listed.expect(0, &["Files that people write:", "Data that the program prints or reads:"]);
    let all = published();
    for (kind, schema) in &all {
        assert!(listed.stdout.contains(&format!("\n  {kind} ")), "{kind}: {}", listed.stdout);
        assert_eq!(&project.run(&["schema", kind]).json(), schema, "{kind}");
    }
    project.run(&["schema", "--write", "three"]).expect(0, &[]);
    let written = std::fs::read_dir(project.path("three")).unwrap();
    let names: BTreeSet<String> =
        written.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let expected = FILES.map(|kind| format!("counterfoil-{kind}.schema.json"));
    assert_eq!(names, BTreeSet::from(expected));
    project.run(&["schema", "run", "--write", "one"]).expect(0, &["counterfoil-run.schema.json"]);
    assert!(!project.path("one/counterfoil-runs.schema.json").exists());
    project.run_refused(&["schema", "--all"]);
    project.run_refused(&["schema", "run", "--write", "one", "--all"]);
}

#[test]
fn the_documentation_names_every_schema() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(docs.join("formats.md")).unwrap();
    for kind in published().keys().filter(|kind| !FILES.contains(&kind.as_str())) {
        let command = format!("counterfoil schema {kind}`");
        assert!(page.contains(&command), "docs/formats.md does not name `{command}");
    }
}

/// A closed schema finds a field that is not known, wherever it is.
#[test]
fn a_field_that_no_schema_knows_is_found() {
    let shapes = published::Shapes::of(&["event", "show-trouble", "replay"]);
    let asked = |question: Value| json!({"seq": 1, "at": 2, "kind": "asked", "frame": "", "questions": [question]});
    let question = |more: &str| {
        let mut question =
            json!({"id": "q", "name": "q", "question": "?", "form": {"choices": ["a"]}});
        question.as_object_mut().unwrap().insert(more.to_owned(), true.into());
        question
    };
    assert!(shapes.fits("event", &asked(question("optional"))));
    assert!(!shapes.fits("event", &asked(question("urgent"))));
    let mut event = asked(question("optional"));
    event["urgent"] = json!(1);
    assert!(!shapes.fits("event", &event));
    event = asked(question("optional"));
    event["kind"] = json!("answered");
    assert!(!shapes.fits("event", &event));
}
