//! Schemas that refer to themselves: a deep value that does not satisfy one is refused in bounded
//! time, and the error is at the place that is wrong where that can be told.

use counterfoil_contract::{Contract, Framing, Policy, Report};
use serde_json::{Value, json};

/// A contract whose result has the schema `t`, which can refer to itself as `#/$defs/t`.
fn contract(t: &Value) -> Contract {
    let policy = Policy { max_depth: 512, ..Policy::default() };
    let schema = json!({"type": "object", "required": ["root"], "properties": {"root": {"$ref": "#/$defs/t"}}, "$defs": {"t": t}});
    Contract::from_schema(&schema, Framing::AnyJson, policy).unwrap()
}

/// An object schema with the member `n`, and something else.
fn node(more: &Value) -> Value {
    let mut node = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/t"}}});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn objects(depth: usize, leaf: &str) -> String {
    format!(r#"{{"root":{}{leaf}{}}}"#, r#"{"a":1,"b":1,"n":"#.repeat(depth), "}".repeat(depth))
}

fn lists(depth: usize, leaf: &str) -> String {
    format!(r#"{{"root":{}{leaf}{}}}"#, "[".repeat(depth), "]".repeat(depth))
}

type Make = fn(usize, &str) -> String;

/// Schemas by which the validator's errors double with each level, or could.
fn schemas() -> Vec<(&'static str, Value, Make)> {
    let again = json!({"$ref": "#/$defs/t"});
    let two = || json!([node(&json!({"required": ["a"]})), node(&json!({"required": ["b"]}))]);
    vec![
        ("anyOf", json!({"anyOf": two()}), objects),
        (
            "oneOf",
            json!({"oneOf": [node(&json!({"required": ["a"]})), node(&json!({"required": ["c"]}))]}),
            objects,
        ),
        ("allOf", json!({"allOf": two()}), objects),
        ("allOf in anyOf", json!({"anyOf": [{"allOf": two()}, {"allOf": two()}]}), objects),
        ("anyOf in anyOf", json!({"anyOf": [{"anyOf": two()}, {"oneOf": two()}]}), objects),
        (
            "items",
            json!({"anyOf": [{"type": "array", "items": again}, {"type": "array", "items": again, "minItems": 1}]}),
            lists,
        ),
        (
            "prefixItems",
            json!({"oneOf": [{"type": "array", "prefixItems": [again]}, {"type": "array", "prefixItems": [again], "maxItems": 0}]}),
            lists,
        ),
        (
            "contains",
            json!({"anyOf": [{"type": "array", "contains": again}, {"type": "array", "contains": again, "minItems": 1}]}),
            lists,
        ),
        (
            "if",
            json!({"type": "object", "if": node(&json!({})), "then": node(&json!({})), "else": {"allOf": two()}}),
            objects,
        ),
        (
            "not",
            json!({"type": "object", "allOf": [{"not": {"not": node(&json!({}))}}, node(&json!({}))]}),
            objects,
        ),
        (
            "dependentSchemas",
            json!({"type": "object", "dependentSchemas": {"a": {"properties": {"n": again}}, "b": {"properties": {"n": again}}}}),
            objects,
        ),
        (
            "unevaluatedProperties",
            json!({"type": "object", "anyOf": [{"properties": {"n": again, "a": {}}}, {"properties": {"n": again, "b": {}}}], "unevaluatedProperties": false}),
            objects,
        ),
        (
            "unevaluatedItems",
            json!({"type": "array", "anyOf": [{"prefixItems": [again]}, {"prefixItems": [again]}], "unevaluatedItems": again}),
            lists,
        ),
        (
            "patternProperties",
            json!({"type": "object", "properties": {"n": again}, "patternProperties": {"^n": again, "n$": again}}),
            objects,
        ),
        (
            "additionalProperties",
            json!({"anyOf": [{"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": again}, {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": again, "required": ["a"]}]}),
            objects,
        ),
        (
            "dynamicRef",
            json!({"$dynamicAnchor": "t", "anyOf": [{"type": "object", "properties": {"n": {"$dynamicRef": "#t"}}}, {"type": "object", "required": ["a"], "properties": {"n": {"$dynamicRef": "#t"}}}]}),
            objects,
        ),
        (
            "anchor",
            json!({"$anchor": "t", "anyOf": [{"type": "object", "properties": {"n": {"$ref": "#t"}}}, {"type": "object", "required": ["a"], "properties": {"n": {"$ref": "#t"}}}]}),
            objects,
        ),
        (
            "id",
            json!({"anyOf": [{"$id": "urn:a", "type": "object"}, {"type": "string"}], "allOf": two()}),
            objects,
        ),
        (
            "reference to a reference",
            json!({"$ref": "#/$defs/t/$defs/u", "$defs": {"u": {"anyOf": two()}}}),
            objects,
        ),
        (
            "reference to a place inside",
            json!({"anyOf": [node(&json!({})), {"type": "object", "properties": {"n": {"$ref": "#/$defs/t/anyOf/0/properties/n"}}, "required": ["a"]}]}),
            objects,
        ),
    ]
}

fn codes(report: &Report) -> Vec<&'static str> {
    report.codes().iter().map(|code| code.as_str()).collect()
}

#[test]
fn a_deep_value_is_refused_in_bounded_time_by_every_recursive_schema() {
    for (name, schema, make) in schemas() {
        let contract = contract(&schema);
        // The work grows with the square of the depth, so the deepest are left to two of them.
        let deepest = if ["anyOf", "allOf"].contains(&name) { 500 } else { 150 };
        for depth in [1, 2, 20, deepest] {
            let text = make(depth, "\"wrong\"");
            let (report, steps) = contract.check_counted(&text);
            assert!(!report.is_accepted(), "{name} at depth {depth}");
            assert!(!report.violations.is_empty(), "{name} at depth {depth}");
            let code = codes(&report)[0];
            assert!(code.starts_with("C02"), "{name} at depth {depth}: {report:?}");
            assert!(steps < 60 * text.len() as u64 + 10_000, "{name} at depth {depth}: {steps}");
            let pointer = &report.violations[0].pointer;
            assert!(report.violations[0].span.is_some(), "{name}: {pointer}");
        }
    }
}

#[test]
fn a_deep_value_is_accepted_by_recursive_schemas() {
    for (name, schema, make) in schemas() {
        let leaf =
            if make(0, "[") == lists(0, "[") && make(1, "") == lists(1, "") { "[]" } else { "{}" };
        // The others refuse every value, or every end.
        let refuses = [
            "allOf",
            "allOf in anyOf",
            "anyOf in anyOf",
            "anyOf",
            "oneOf",
            "contains",
            "if",
            "id",
            "reference to a reference",
            "prefixItems",
            "unevaluatedProperties",
        ];
        if refuses.contains(&name) {
            continue;
        }
        let contract = contract(&schema);
        for depth in [1, 20, 500] {
            let report = contract.check(&make(depth, leaf));
            assert!(report.is_accepted(), "{name} at depth {depth}: {report:?}");
        }
    }
}

/// The pointers and codes of the violations.
fn violations(schema: &Value, text: &str) -> Vec<(String, String)> {
    let report = contract(schema).check(text);
    report.violations.iter().map(|one| (one.pointer.clone(), one.code.to_string())).collect()
}

#[test]
fn the_place_inside_of_a_recursive_value_is_named() {
    // A tree of comments.
    let tree = json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "replies": {"type": "array", "items": {"$ref": "#/$defs/t"}}}});
    let text = r#"{"root": {"text": "a", "replies": [{"text": "b"}, {"text": 1, "replies": [{"replies": []}]}]}}"#;
    let found = violations(&tree, text);
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/root/replies/1/text", "/root/replies/1/replies/0/text"], "{found:?}");
    // An expression with a tag that says which alternative is meant.
    let of = |op: &str| json!({"type": "object", "required": ["op", "l", "r"], "properties": {"op": {"const": op}, "l": {"$ref": "#/$defs/t"}, "r": {"$ref": "#/$defs/t"}}});
    let expression = json!({"anyOf": [of("add"), of("mul"), {"type": "number"}]});
    let text = r#"{"root": {"op": "add", "l": 1, "r": {"op": "mul", "l": {"op": "add", "l": "x", "r": 1}, "r": 2}}}"#;
    let found = violations(&expression, text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "/root/r/l/l", "{found:?}");
    // The same by references to the alternatives.
    let alternatives = json!({"anyOf": [{"$ref": "#/$defs/t/$defs/add"}, {"$ref": "#/$defs/t/$defs/mul"}, {"type": "number"}], "$defs": {"add": of("add"), "mul": of("mul")}});
    assert_eq!(violations(&alternatives, text), found);
    // Or null.
    let list = json!({"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}});
    let text = r#"{"root": {"v": 1, "next": {"v": 2, "next": {"v": "3", "next": null}}}}"#;
    assert_eq!(violations(&list, text)[0].0, "/root/next/next/v");
}
