//! Property: every template that passes the checker renders for every value of its types.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::Cell;

/// Schemas small enough that random paths often hit: fields `x` and `y`, required or not.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        json!({ "type": "string" }),
        json!({ "type": "integer" }),
        json!({ "type": "number" }),
        json!({ "type": "boolean" }),
        json!({ "enum": ["low", "high"] }),
        json!({ "type": ["string", "null"] }),
    ]);
    leaf.prop_recursive(3, 12, 2, |inner| {
        let object = (inner.clone(), inner.clone(), any::<(bool, bool)>()).prop_map(|(x, y, (one, two))| {
            let required: Vec<&str> = [("x", one), ("y", two)]
                .into_iter()
                .filter_map(|(name, required)| required.then_some(name))
                .collect();
            json!({ "type": "object", "properties": { "x": x, "y": y }, "required": required,
                    "additionalProperties": false })
        });
        prop_oneof![
            3 => object,
            2 => inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            1 => inner.clone().prop_map(|of| json!({ "type": "object", "additionalProperties": of })),
            1 => inner.prop_map(|one| json!({ "anyOf": [one, { "type": "null" }] })),
        ]
    })
}

/// A value of a schema; `choices` makes the decisions.
fn value(schema: &Value, choices: &mut impl Iterator<Item = u8>) -> Value {
    let mut choose = || choices.next().unwrap_or(0);
    if let Some(branches) = schema["anyOf"].as_array() {
        return value(&branches[usize::from(choose()) % branches.len()], choices);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[usize::from(choose()) % values.len()].clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[usize::from(choose()) % kinds.len()].clone(),
        kind => kind.clone(),
    };
    match kind.as_str().unwrap() {
        "string" => json!(["", "a", "Ünï", "<b>"][usize::from(choose()) % 4]),
        "integer" => json!(i64::from(choose()) - 2),
        "number" => json!(f64::from(choose()) / 4.0),
        "boolean" => json!(choose() % 2 == 0),
        "null" => Value::Null,
        "array" => {
            let count = choose() % 3;
            (0..count).map(|_| value(&schema["items"], choices)).collect()
        }
        _ => {
            // A map has all keys that the generated templates read: its type does not list them.
            let map =
                schema["additionalProperties"].as_object().map(|_| &schema["additionalProperties"]);
            let mut members = serde_json::Map::new();
            for name in ["x", "y"] {
                let required =
                    schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
                if map.is_some() || required || choices.next().unwrap_or(0).is_multiple_of(2) {
                    let of = map.unwrap_or(&schema["properties"][name]);
                    members.insert(name.to_owned(), value(of, choices));
                }
            }
            Value::Object(members)
        }
    }
}

fn path() -> impl Strategy<Value = String> {
    let step = select(vec![".x", ".y", "['x']", "[0]", ".x", ".y"]);
    (select(vec!["a", "b", "i", "k", "s"]), proptest::collection::vec(step, 0..=2))
        .prop_map(|(root, steps)| root.to_owned() + &steps.concat())
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => path(),
        1 => select(vec!["1", "'t'", "true", "none", "[]", "{}", "range(2)", "[1, 'x']"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let filter = select(vec![
            "default('d')", "default([])", "default('d', true)", "length", "upper", "join(',')", "first", "last",
            "items", "tojson", "tojson(indent=1)", "sort", "unique", "list", "reverse", "map(attribute='x')",
            "map('default', 'd')", "map('upper')", "selectattr('x')", "selectattr('x.y')", "rejectattr('y', 'defined')",
            "groupby('x')", "dictsort", "string", "trim", "sort(attribute='x')", "join('-', attribute='y')",
            "batch(2)", "bool", "min", "max", "lines", "indent(2)", "zip([1, 2])", "chain([1])",
        ]);
        let test = select(vec![
            "defined", "not defined", "none", "not none", "string", "mapping", "sequence", "number", "odd", "in [1]",
        ]);
        let operator =
            select(vec!["and", "or", "==", "!=", "<", "~", "+", "-", "in", "not in", "and", "or"]);
        prop_oneof![
            3 => (inner.clone(), filter).prop_map(|(of, filter)| format!("({of} | {filter})")),
            2 => (inner.clone(), test).prop_map(|(of, test)| format!("({of} is {test})")),
            2 => (inner.clone(), operator, inner.clone()).prop_map(|(l, op, r)| format!("({l} {op} {r})")),
            1 => inner.clone().prop_map(|of| format!("(not {of})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, c, b)| format!("({a} if {c} else {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            1 => inner.clone().prop_map(|of| format!("{of}[1:]")),
            1 => inner.clone().prop_map(|of| format!("{{'x': {of}}}.x")),
            1 => inner.clone().prop_map(|of| format!("{of}.values()")),
            1 => inner.prop_map(|of| format!("{of}.get('x')")),
        ]
    })
}

fn template() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => path().prop_map(|path| format!("{{{{ {path} }}}}")),
        3 => expression().prop_map(|expr| format!("{{{{ {expr} }}}}")),
        1 => expression().prop_map(|expr| format!("{{% set s = {expr} %}}")),
        4 => path().prop_map(|path| format!("{{% if {path} %}}{{{{ {path} }}}}{{% endif %}}")),
        3 => path().prop_map(|path| format!("{{{{ {path} | default('-') }}}}")),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        let body = proptest::collection::vec(inner, 1..3).prop_map(|parts| parts.concat());
        let condition = prop_oneof![2 => path(), 1 => expression()];
        prop_oneof![
            3 => (condition, body.clone(), body.clone())
                .prop_map(|(c, one, two)| format!("{{% if {c} %}}{one}{{% else %}}{two}{{% endif %}}")),
            1 => (path(), body.clone()).prop_map(|(c, one)| format!("{{% if {c} is defined %}}{one}{{% endif %}}")),
            3 => (expression(), body.clone())
                .prop_map(|(list, body)| format!("{{% for i in {list} %}}{{{{ loop.length }}}}{body}{{% endfor %}}")),
            1 => (path(), path(), body.clone())
                .prop_map(|(list, c, body)| format!("{{% for i in {list} if {c} %}}{body}{{% endfor %}}")),
            2 => (path(), body.clone())
                .prop_map(|(of, body)| format!("{{% for k, i in {of} | items %}}{body}{{% endfor %}}")),
            1 => (expression(), body.clone())
                .prop_map(|(of, body)| format!("{{% with s = {of} %}}{body}{{% endwith %}}")),
            1 => body.clone().prop_map(|body| format!("{{% set s %}}{body}{{% endset %}}")),
            2 => body,
        ]
    })
}

#[test]
fn for_every_value_of_the_types() {
    let (tried, passed) = (Cell::new(0_u32), Cell::new(0_u32));
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(4_000);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(a in schema(), b in schema(), source in template(),
                        choices in proptest::collection::vec(any::<u8>(), 64))| {
        tried.set(tried.get() + 1);
        let template = Template::compile(&source).map_err(|problems| {
            TestCaseError::fail(format!("{source} does not compile: {problems:?}"))
        })?;
        let types = [("a", &a), ("b", &b), ("i", &b), ("k", &a), ("s", &a)];
        let types = types.into_iter().map(|(name, schema)| (name.to_owned(), Type::from_schema(schema))).collect();
        let problems = template.check(&types);
        for problem in &problems {
            prop_assert!(source.get(problem.start..problem.end).is_some_and(|place| !place.is_empty()));
        }
        if problems.is_empty() {
            passed.set(passed.get() + 1);
            for rotated in 0..4 {
                let mut choices = choices.iter().copied().cycle().skip(rotated * 7);
                let (a, b) = (value(&a, &mut choices), value(&b, &mut choices));
                let given = values(json!({ "a": a, "b": b, "i": b, "k": a, "s": a }));
                let written = template.render(&given);
                prop_assert!(written.is_ok(), "{source}\nwith {given:?}\n{written:?}");
            }
        }
    });
    assert!(
        passed.get() * 20 > tried.get(),
        "only {} of {} passed the check",
        passed.get(),
        tried.get()
    );
}
