//! Objects that expressions construct, and their assignability: as variables, in lists, in the
//! branches of a conditional, with fields that may be missing.

use super::ty;
use counterfoil_contract::expr::{Expression, NotAssignable, Scope, Type, assignable};
use serde_json::{Value, json};

fn variables() -> Vec<(&'static str, Type, Value)> {
    let finding = json!({"id": "string", "line": "integer", "file?": "string", "tags": ["string"], "by": "string?"});
    [
        (
            "findings",
            json!([finding.clone()]),
            json!([
                {"id": "f1", "line": 3, "file": "a.rs", "tags": ["x"], "by": "ann"},
                {"id": "f2", "line": 5, "tags": ["x", "y"], "by": null},
            ]),
        ),
        ("last", finding, json!({"id": "f9", "line": 9, "tags": [], "by": null})),
        ("ids", json!(["string"]), json!(["f2", "f1"])),
        ("ok", json!("boolean"), json!(true)),
        ("name", json!("string"), json!("ada")),
        (
            "scores",
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"a": 1}),
        ),
        ("free", json!("any"), json!({"a": 1})),
    ]
    .into_iter()
    .map(|(name, form, value)| (name, ty(&form), value))
    .collect()
}

fn scope() -> Scope {
    variables().into_iter().fold(Scope::default(), |scope, (name, ty, _)| scope.with(name, ty))
}

fn compile(source: &str) -> Expression {
    Expression::compile(source, &scope())
        .unwrap_or_else(|problems| panic!("{source}: {problems:#?}"))
}

fn evaluate(source: &str) -> Value {
    let variables = variables();
    let given: Vec<(&str, &Value, &Type)> =
        variables.iter().map(|(name, ty, value)| (*name, value, ty)).collect();
    compile(source).evaluate(&given).unwrap_or_else(|why| panic!("{source}: {why}"))
}

/// Each row: an expression, the type it is assigned to, its value.
#[test]
fn objects_fit_where_they_go() {
    let pair = json!({"a": "integer", "b": "string"});
    let pairs = json!([pair.clone()]);
    let noted = json!([{"id": "string", "file?": "string"}]);
    let cases = [
        ("{'a': 1, 'b': name}", &pair, json!({"a": 1, "b": "ada"})),
        (
            "findings.map(f, {'a': f.line, 'b': f.id})",
            &pairs,
            json!([{"a": 3, "b": "f1"}, {"a": 5, "b": "f2"}]),
        ),
        ("[]", &pairs, json!([])),
        ("ok ? {'a': 1, 'b': 'x'} : {'a': 2, 'b': name}", &pair, json!({"a": 1, "b": "x"})),
        ("ok ? [{'a': 1, 'b': 'x'}] : []", &pairs, json!([{"a": 1, "b": "x"}])),
        (
            "findings.map(f, {'a': f.line, 'b': f.id}) + [{'a': 0, 'b': 'new'}]",
            &pairs,
            json!([{"a": 3, "b": "f1"}, {"a": 5, "b": "f2"}, {"a": 0, "b": "new"}]),
        ),
        ("[] + [{'a': 0, 'b': 'new'}]", &pairs, json!([{"a": 0, "b": "new"}])),
        (
            "(findings + [last]).map(f, {'a': f.line, 'b': f.id}).slice(2, 3)",
            &pairs,
            json!([{"a": 9, "b": "f9"}]),
        ),
        (
            "findings.filter(f, f.line > 3)[0]",
            &json!({"id": "string", "line": "integer"}),
            json!({"id": "f2", "line": 5, "tags": ["x", "y"], "by": null}),
        ),
        // A field that may be missing yields null, which means absent again.
        (
            "findings.map(f, {'id': f.id, 'file': f.file})",
            &noted,
            json!([{"id": "f1", "file": "a.rs"}, {"id": "f2", "file": null}]),
        ),
        (
            "findings.map(f, {'id': f.id, 'file': f['file']})",
            &noted,
            json!([{"id": "f1", "file": "a.rs"}, {"id": "f2", "file": null}]),
        ),
        (
            "findings.map(f, {'id': f.id, 'file': has(f.file) ? f.file : null})",
            &noted,
            json!([{"id": "f1", "file": "a.rs"}, {"id": "f2", "file": null}]),
        ),
        (
            "findings.map(f, {'id': f.id, 'file': f.by})",
            &noted,
            json!([{"id": "f1", "file": "ann"}, {"id": "f2", "file": null}]),
        ),
        ("findings.map(f, {'id': f.id})", &noted, json!([{"id": "f1"}, {"id": "f2"}])),
        (
            "[{'id': 'x'}, {'id': 'y', 'file': 'z'}]",
            &noted,
            json!([{"id": "x"}, {"id": "y", "file": "z"}]),
        ),
        (
            "ok ? {'id': 'x', 'file': null} : {'id': 'y', 'file': name}",
            &json!({"id": "string", "file?": "string"}),
            json!({"id": "x", "file": null}),
        ),
        (
            "{'id': 'x', 'file': findings.filter(f, f.id == 'f2')[0].file}",
            &json!({"id": "string", "file?": "string"}),
            json!({"id": "x", "file": null}),
        ),
        (
            "{'a': scores.a, 'b': scores.b}",
            &json!({"a?": "integer", "b?": "integer"}),
            json!({"a": 1, "b": null}),
        ),
        (
            "{'a': free.a, 'b': free.b}",
            &json!({"a": "any", "b": "any"}),
            json!({"a": 1, "b": null}),
        ),
    ];
    for (source, form, value) in cases {
        assert_eq!(assignable(compile(source).ty(), &ty(form)), Ok(()), "{source}");
        assert_eq!(evaluate(source), value, "{source}");
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let cases = [
        (
            "findings.map(f, {'id': f.id, 'file': f.file})",
            json!([{"id": "string", "file": "string"}]),
            "in the items of the list: field 'file': may be null",
        ),
        (
            "findings.map(f, {'a': f.id})",
            json!([{"a": "integer"}]),
            "in the items of the list: field 'a': a string is not an integer",
        ),
        (
            "findings.map(f, {'b': f.id})",
            json!([{"a": "string"}]),
            "in the items of the list: field 'a' may be missing",
        ),
        ("ok ? {'a': 1} : {'b': 1}", json!({"a": "integer"}), "field 'a' may be missing"),
        (
            "[{'a': 1}] + [{'a': 'x'}]",
            json!([{"a": "integer"}]),
            "in the items of the list: field 'a': x is not an integer",
        ),
    ];
    for (source, form, expected) in cases {
        assert_eq!(
            assignable(compile(source).ty(), &ty(&form)),
            Err(NotAssignable { reason: expected.to_owned() }),
            "{source}"
        );
    }
}

/// A missing field yields null only as the value of a member. Any operation on it needs a guard.
#[test]
fn a_missing_field_is_null_only_as_a_member() {
    let cases = [
        ("{'a': last.file + '!'}", "'last.file' is optional and may be missing here"),
        ("{'a': ok ? last.file : 'x'}", "'last.file' is optional and may be missing here"),
        ("[last.file]", "'last.file' is optional and may be missing here"),
        ("size({'a': last.file}.a)", "this value may be null here"),
        ("{'a': last.fil}", "unknown field 'fil'"),
        ("{'a': scores.a.b}", "'scores.a' may be missing here"),
    ];
    for (source, message) in cases {
        let problems = Expression::compile(source, &scope()).err().unwrap_or_default();
        assert_eq!(
            problems.first().map(|problem| problem.message.as_str()),
            Some(message),
            "{source}: {problems:#?}"
        );
    }
    // A guarded value is not null.
    let guarded = compile("has(last.file) ? {'a': last.file} : {'a': ''}");
    assert_eq!(assignable(guarded.ty(), &ty(&json!({"a": "string"}))), Ok(()));
}

#[test]
fn loops_see_the_variables_of_loops_around_them() {
    let cases = [
        ("ids.map(i, findings.filter(f, f.id == i)[0].line)", "list of integer", json!([5, 3])),
        (
            "ids.map(i, findings.filter(f, f.id == i).map(f, {'id': i, 'line': f.line})).flatten()",
            "list of object",
            json!([{"id": "f2", "line": 5}, {"id": "f1", "line": 3}]),
        ),
        (
            "findings.filter(f, f.tags.exists(t, findings.exists(g, g.id != f.id && t in g.tags))).map(f, f.id)",
            "list of string",
            json!(["f1", "f2"]),
        ),
        (
            "findings.all(f, ids.exists(i, i == f.id && f.tags.all(t, t != i)))",
            "boolean",
            json!(true),
        ),
        (
            "range(2).map(i, range(2).map(j, [i, j, i + j].sum()))",
            "list of list of integer",
            json!([[0, 2], [2, 4]]),
        ),
        (
            "findings.map(f, f.tags.map(t, t + f.id).join(' '))",
            "list of string",
            json!(["xf1", "xf2 yf2"]),
        ),
        (
            "findings.filter(f, has(f.file)).map(f, {'f': f.file}).filter(f, f.f != null).size()",
            "integer",
            json!(1),
        ),
    ];
    for (source, expected, value) in cases {
        assert_eq!(compile(source).ty().to_string(), expected, "{source}");
        assert_eq!(evaluate(source), value, "{source}");
    }
}
