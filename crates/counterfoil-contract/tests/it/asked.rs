//! Fields that agents may leave out, although readers always find them.

use counterfoil_contract::render::vendor::{Target, raise, schema};
use counterfoil_contract::{Code, Contract, Definition, Framing};
use serde_json::{Value, json};

/// A report about a plan that need not exist.
fn definition() -> Definition {
    let file = json!({"type": "string", "default": "none", "x-asked": "optional"});
    let part = json!({"type": "object", "required": ["plan", "words"], "properties": {
        "plan": file, "words": {"type": "integer", "default": 0}}});
    let whole = json!({"type": "object", "required": ["part"], "$defs": {"part": part}, "properties": {
        "part": {"anyOf": [{"$ref": "#/$defs/part"}, {"type": "null"}]}}});
    Definition::new("acme/report", 1, Framing::AnyJson, whole)
        .example(json!({"part": {"plan": "plan.md", "words": 7}}))
}

fn contract() -> Contract {
    Contract::compile(definition()).unwrap()
}

#[test]
fn a_field_that_is_missing_or_null_has_its_default() {
    for (given, said) in
        [(json!({"words": 7}), "missing"), (json!({"plan": null, "words": 7}), "null")]
    {
        let text = json!({"part": given}).to_string();
        let report = contract().check(&text);
        assert!(report.is_accepted(), "{report:#?}");
        assert_eq!(report.value, Some(json!({"part": {"plan": "none", "words": 7}})));
        let warning = &report.warnings[0];
        assert_eq!((warning.code, warning.pointer.as_str()), (Code::DefaultUsed, "/part/plan"));
        assert!(warning.message.contains(&format!("is {said};")), "{}", warning.message);
        assert!(!contract().check_strictly(&text).is_accepted());
    }
    assert_eq!(
        contract().check(r#"{"part": {"plan": 7, "words": 7}}"#).codes(),
        [Code::WrongType],
        "only null is nothing"
    );
}

/// The schema of the part, and whether null is a plan in it.
fn asked(target: Target) -> (Value, bool) {
    let lowered = schema(&contract(), target);
    let text = lowered.schema.to_string();
    assert!(!text.contains("x-asked"), "{target:?}: {text}");
    let part = match target {
        Target::Gemini => lowered.schema["properties"]["part"].clone(),
        _ => lowered.schema["$defs"]["part"].clone(),
    };
    let plan = part["properties"]["plan"].to_string();
    (part, plan.contains("null"))
}

#[test]
fn every_schema_that_agents_are_given_says_that_it_may_be_left_out() {
    for target in [Target::Draft2020, Target::Claude, Target::Codex, Target::Gemini] {
        let (part, nullable) = asked(target);
        assert!(nullable, "{target:?}: {part:#}");
        let required = part["required"].as_array().unwrap();
        // Every field is required in the strict subset.
        assert_eq!(required.contains(&json!("plan")), target == Target::Codex, "{part:#}");
        assert!(required.contains(&json!("words")), "it is asked for: {part:#}");
        let value = raise(&contract(), target, json!({"part": {"plan": null, "words": 7}}));
        assert!(contract().check_value(&value).is_accepted(), "{target:?}: {value}");
    }
    let prompt = contract().prompt();
    assert!(prompt.contains("`plan` (string or null, optional)"), "{prompt}");
    assert!(prompt.contains("`words` (integer)"), "{prompt}");
}

#[test]
fn a_reader_relies_on_it() {
    let old = Contract::compile({
        let mut old = definition();
        let plan = old.schema.as_mut().unwrap().pointer_mut("/$defs/part/properties/plan").unwrap();
        *plan = json!({"type": "string"});
        old
    });
    let new = Contract::compile(definition().version(2)).unwrap();
    let comparison = counterfoil_contract::compat::compare(&old.unwrap(), &new);
    assert!(comparison.is_additive(), "{comparison:#?}");
}

#[test]
fn a_field_may_have_the_name_of_a_keyword() {
    for name in ["default", "enum", "const", "examples", "required", "properties"] {
        let field = json!({"type": "string", "default": "none", "x-asked": "optional"});
        let inner = json!({"type": "object", "required": ["a"], "properties": {"a": field}});
        let fields = json!({"type": "object", "required": [name], "properties": {name: inner}});
        let definition = Definition::new("acme/names", 1, Framing::AnyJson, fields);
        let contract = Contract::compile(definition).unwrap();
        let lowered = schema(&contract, Target::Claude).schema;
        let required = &lowered["properties"][name]["required"];
        assert!(required.as_array().is_none_or(Vec::is_empty), "{name}: {lowered:#}");
    }
}

#[test]
fn only_a_field_with_a_default_can_be_left_out() {
    for field in [
        json!({"type": "string", "x-asked": "optional"}),
        json!({"type": "string", "default": "none", "x-asked": "never"}),
    ] {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": field}});
        let definition = Definition::new("acme/bad", 1, Framing::AnyJson, schema);
        let error = Contract::compile(definition).unwrap_err();
        assert_eq!(error.problems[0].place, "schema.properties.a.x-asked", "{error:#?}");
    }
}
