//! Expressions over typed variables: type checking, types, values, assignability and branch
//! analysis.
mod functions;
mod laws;
mod objects;
mod problems;

use counterfoil_contract::expr::{Expression, NotAssignable, Scope, Type, assignable, branches};
use counterfoil_contract::fields::short_type;
use serde_json::{Value, json};
use std::time::Instant;

fn ty(form: &Value) -> Type {
    Type::from_schema(&short_type(form).unwrap())
}

/// The types of the variables that the tables use.
fn variables() -> Vec<(&'static str, Type)> {
    let result = json!({
        "ok": "boolean", "status": "done | partial | blocked", "n": "integer", "x": "number",
        "name": "string", "files": ["string"], "note?": "string", "level?": "low | high",
        "owner": "string?", "at?": "integer?",
        "tests": {"passed": "integer", "failed": "integer", "log?": "string"},
        "checks": [{"name": "string", "ok": "boolean", "why?": "string"}],
        "scores": {"type": "object", "additionalProperties": {"type": "integer"}},
        "limits": {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
        "mixed": {"type": ["integer", "string"]},
        "retries": {"type": "integer"},
        "free": "any",
        "a-b": "integer",
    });
    let mut schema = short_type(&result).unwrap();
    schema["properties"]["tries"] = json!({"type": ["integer", "null"], "default": 3});
    vec![
        ("result", Type::from_schema(&schema)),
        ("fix_info", ty(&json!("string?"))),
        ("flag", ty(&json!("boolean?"))),
        ("n", ty(&json!("integer"))),
        ("names", ty(&json!(["string"]))),
        ("maybe", ty(&json!({"type": ["array", "null"], "items": {"type": ["integer", "null"]}}))),
        (
            "part",
            ty(
                &json!({"anyOf": [{"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}, {"type": "null"}]}),
            ),
        ),
    ]
}

fn scope() -> Scope {
    variables().into_iter().fold(Scope::default(), |scope, (name, ty)| scope.with(name, ty))
}

fn compile(source: &str) -> Expression {
    Expression::compile(source, &scope())
        .unwrap_or_else(|problems| panic!("{source}: {problems:#?}"))
}

/// Values of the variables above, with changes to `result`.
fn evaluate(source: &str, changes: &Value) -> Result<Value, String> {
    let mut result = json!({
        "ok": true, "status": "done", "n": 3, "x": 1.5, "name": "ada", "files": ["a", "b"], "owner": null,
        "tests": {"passed": 2, "failed": 0}, "checks": [{"name": "lint", "ok": true}, {"name": "unit", "ok": false, "why": "red"}],
        "scores": {"a": 1}, "limits": {"a": null}, "mixed": 1, "retries": 0, "free": {"deep": [1]}, "a-b": 7
    });
    for (name, value) in changes.as_object().unwrap() {
        result[name] = value.clone();
    }
    let (null, n, names, maybe, part) =
        (json!(null), json!(4), json!(["x"]), json!([1, null]), json!({"id": "p"}));
    let values = [
        ("result", &result),
        ("fix_info", &null),
        ("flag", &null),
        ("n", &n),
        ("names", &names),
        ("maybe", &maybe),
        ("part", &part),
    ];
    let variables = variables();
    let given: Vec<(&str, &Value, &Type)> =
        values.iter().zip(&variables).map(|((name, value), (_, ty))| (*name, *value, ty)).collect();
    compile(source).evaluate(&given).map_err(|error| error.reason)
}

#[test]
fn expressions_have_types() {
    let cases = [
        ("result.status == 'blocked' && result.n > 3", "boolean"),
        ("result.n + 1", "integer"),
        ("result.x * 2.0", "number"),
        ("-result.n", "integer"),
        ("result.name + '!'", "string"),
        ("result.status + '!'", "string"),
        ("result.status", "done | partial | blocked"),
        ("result.ok ? 'low' : 'high'", "low | high"),
        ("result.ok ? 'low' : result.name", "string"),
        ("result.ok ? result.name : 'low'", "string"),
        ("result.ok ? 1 : 'a'", "integer or a"),
        ("fix_info", "string or null"),
        ("fix_info == null ? '' : fix_info", "string"),
        ("fix_info != null && size(fix_info) > 0", "boolean"),
        ("fix_info == null || size(fix_info) > 0", "boolean"),
        ("!(fix_info == null) && size(fix_info) > 0", "boolean"),
        ("fix_info == 'a' && fix_info.startsWith('a')", "boolean"),
        ("fix_info in ['a', 'b'] && fix_info < 'c'", "boolean"),
        ("flag != null && flag", "boolean"),
        ("flag == true", "boolean"),
        ("has(result.note) && result.note.contains('x')", "boolean"),
        ("has(result.note) ? result.note : 'none'", "string"),
        ("!has(result.note) || size(result.note) > 3", "boolean"),
        ("result['n'] + 1", "integer"),
        ("result['a-b'] + 1", "integer"),
        ("result.owner != null && size(result.owner) > 1", "boolean"),
        ("has(result.at) && result.at > 3", "boolean"),
        ("result.tries + 1", "integer"),
        ("part != null && part.id == 'x'", "boolean"),
        ("part != null && has(part.id)", "boolean"),
        ("has(result.scores.a) && result.scores.a > 1", "boolean"),
        ("'a' in result.scores && result.scores['a'] > 1", "boolean"),
        ("has(result.limits.a) && result.limits.a != null && result.limits.a > 1", "boolean"),
        ("result.name in result.scores", "boolean"),
        ("result.files[0]", "string"),
        ("result.checks[n].ok", "boolean"),
        ("has(result.checks[0].why) && size(result.checks[0].why) > 1", "boolean"),
        ("result.files.filter(f, f.endsWith('.rs'))", "list of string"),
        ("result.checks.map(c, c.ok)", "list of boolean"),
        ("result.checks.map(c, has(c.why), c.why)", "list of string"),
        ("result.checks.filter(c, !c.ok).map(c, c.name)", "list of string"),
        ("result.checks.exists(c, !c.ok)", "boolean"),
        ("result.checks.all(c, has(c.why) && size(c.why) > 0)", "boolean"),
        ("result.checks.exists_one(c, c.ok)", "boolean"),
        ("maybe != null && maybe.filter(m, m != null).all(m, m > 0)", "boolean"),
        ("result.scores.exists(k, k == 'a')", "boolean"),
        ("result.files + ['x']", "list of string"),
        ("[1] + ['x']", "list of integer or x"),
        ("[]", "list of nothing"),
        ("[1, 2]", "list of integer"),
        ("{'a': 1, 'b': result.files}", "object"),
        ("{'a': 1}.a", "integer"),
        ("int(result.x) + result.n", "integer"),
        ("string(result.n)", "string"),
        ("result.free.deep[0] > 1", "boolean"),
        ("result.mixed == 1", "boolean"),
        ("string(result.mixed)", "string"),
    ];
    for (source, expected) in cases {
        assert_eq!(compile(source).ty().to_string(), expected, "{source}");
    }
}

#[test]
fn earlier_branches_prove_what_later_ones_read() {
    let first = compile("fix_info == null || !has(result.note)");
    let later = scope().assuming_not(&first);
    assert!(Expression::compile("size(fix_info) > size(result.note)", &later).is_ok());
    let inside = scope().assuming(&compile("fix_info != null && has(result.note)"));
    assert!(Expression::compile("size(fix_info) > size(result.note)", &inside).is_ok());
    assert!(Expression::compile("size(fix_info) > 0", &scope().assuming(&first)).is_err());
    // A new variable of the same name has none of the facts of the old one.
    let replaced = inside.with("fix_info", ty(&json!("string?")));
    assert!(Expression::compile("size(fix_info) > 0", &replaced).is_err());
}

#[test]
fn what_is_read_is_named() {
    let cases: [(&str, &[&str]); 7] = [
        ("fix_info != null && result.tests.failed > 0", &["fix_info", "result.tests.failed"]),
        (
            "result.checks.exists(c, c.ok && c.name == result.name)",
            &["result.checks", "result.name"],
        ),
        ("result.checks[0].ok || result['a-b'] > 1", &["result.checks", "result[\"a-b\"]"]),
        ("has(result.note) && result.note == 'a'", &["result.note"]),
        ("'note' in result", &["result.note"]),
        ("size(result) > 1 && result.n > 1", &["result", "result.n"]),
        ("true", &[]),
    ];
    for (source, expected) in cases {
        assert_eq!(compile(source).reads(), expected, "{source}");
    }
}

#[test]
fn values_come_back_as_json() {
    let cases = [
        ("result.n + 1", json!(4)),
        ("result.x + 1.5", json!(3.0)),
        ("{'b': result.files, 'a': {'n': null}}", json!({"a": {"n": null}, "b": ["a", "b"]})),
        ("result.checks.filter(c, has(c.why)).map(c, c.name)", json!(["unit"])),
        ("fix_info", json!(null)),
        ("fix_info != null && size(fix_info) > 0", json!(false)),
        ("result.tries + 1", json!(4)),
        ("has(result.note)", json!(false)),
        ("size(result.name) == 3 ? 'low' : 'high'", json!("low")),
        ("result['a-b'] + result.retries", json!(7)),
        ("result.owner == null", json!(true)),
        ("has(result.limits.a) && result.limits.a != null && result.limits.a > 1", json!(false)),
        ("maybe != null && maybe[0] != null && maybe[0] > 0", json!(true)),
        ("result.free.deep[0]", json!(1)),
        ("part == null ? '' : part.id", json!("p")),
    ];
    for (source, expected) in cases {
        assert_eq!(evaluate(source, &json!({})).unwrap(), expected, "{source}");
    }
    assert_eq!(evaluate("result.tries + 1", &json!({"tries": null})).unwrap(), json!(4));
    assert_eq!(evaluate("result.x", &json!({"x": 2})).unwrap().to_string(), "2.0");
}

#[test]
fn what_the_data_does_is_said_in_words() {
    let cases = [
        ("10 / result.retries", "it divides by zero"),
        ("10 % result.retries", "it divides by zero"),
        ("result.files[9]", "it reads past the end of a list"),
        ("result.files[-1]", "it reads past the end of a list"),
        ("result.n + 9223372036854775807", "a number is too large to calculate with"),
        ("int(result.name)", "int() cannot convert the value"),
        ("result.x / 0.0", "it gives inf, which JSON cannot represent"),
        ("(result.x - result.x) / 0.0 > 1.0", "it compares something that is not a number"),
        ("'a'.matches(result.name + '(')", "the pattern is not a regular expression"),
    ];
    for (source, expected) in cases {
        let why = evaluate(source, &json!({})).unwrap_err();
        assert!(why.starts_with(expected), "{source}: {why}");
    }
    let huge: Value = serde_json::from_str(r#"{"n": 123456789012345678901234567890}"#).unwrap();
    assert_eq!(evaluate("result.n > 1", &huge).unwrap(), json!(true));
    assert_eq!(
        evaluate("result.n + 1", &huge).unwrap_err(),
        "a number is too large to calculate with"
    );
    let n = compile("n > 1");
    assert_eq!(n.test(&[]).unwrap_err().reason, "`n` has no value");
    let (value, integer) = (json!(2), ty(&json!("integer")));
    assert_eq!(n.test(&[("n", &value, &integer)]), Ok(true));
    assert_eq!(
        compile("n").test(&[("n", &value, &integer)]).unwrap_err().reason,
        "gave a number where a boolean is needed"
    );
}

#[test]
fn types_fit_or_say_why() {
    let object = json!({"id": "string", "n?": "integer"});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let cases = [
        (json!("low"), json!("string"), None),
        (json!("low | high"), json!("low | mid | high"), None),
        (json!("low | x"), json!("low | high"), Some("\"x\" is not one of low | high")),
        (json!("string"), json!("low | high"), Some("a string is not low | high")),
        (json!("integer"), json!("number"), None),
        (json!("number"), json!("integer"), Some("a number is not an integer")),
        (json!("string?"), json!("string"), Some("may be null")),
        (json!("string"), json!("string?"), None),
        (json!(["string"]), json!(["integer"]), Some("a list of string is not a list of integer")),
        (json!(["integer"]), json!(["number"]), None),
        (
            json!("any"),
            json!("string"),
            Some("the type of this value is not known: a contract should say that it is a string"),
        ),
        (json!("string"), json!("any"), None),
        (json!({"id": "string", "n": "integer", "z": "boolean"}), object.clone(), None),
        (json!({"n": "integer"}), object.clone(), Some("field 'id' may be missing")),
        (json!({"id?": "string"}), object.clone(), Some("field 'id' may be missing")),
        (
            json!({"id": "string", "n": "string"}),
            object.clone(),
            Some("field 'n': a string is not an integer"),
        ),
        (json!({"id": "string?"}), object.clone(), Some("field 'id': may be null")),
        (
            json!([{"n": "integer"}]),
            json!([object]),
            Some("in the items of the list: field 'id' may be missing"),
        ),
        (json!({"a": "string", "b?": "string"}), map.clone(), None),
        (json!({"a": "integer"}), map.clone(), Some("field 'a': an integer is not a string")),
        (map.clone(), json!({"a": "string"}), Some("field 'a' may be missing")),
        (map, json!("string"), Some("an object of string is not a string")),
        (
            json!({"type": ["string", "integer"]}),
            json!("string"),
            Some("an integer is not a string"),
        ),
        (
            json!("boolean"),
            json!({"type": ["string", "integer"]}),
            Some("a boolean is not a string or integer"),
        ),
    ];
    for (from, to, expected) in cases {
        let from = if from == json!("low") { json!({"enum": ["low"]}) } else { from };
        let reason = assignable(&ty(&from), &ty(&to)).err();
        assert_eq!(reason.as_ref().map(|error| error.reason.as_str()), expected, "{from} to {to}");
    }
    let level = ty(&json!("low | high"));
    assert_eq!(assignable(compile("result.name == 'a' ? 'low' : 'high'").ty(), &level), Ok(()));
    assert_eq!(
        assignable(compile("result.name == 'a' ? 'low' : 'max'").ty(), &level),
        Err(NotAssignable { reason: "\"max\" is not one of low | high".into() })
    );
    assert_eq!(assignable(compile("[]").ty(), &ty(&json!(["string"]))), Ok(()));
    assert_eq!(
        assignable(compile("{'id': 'x'}").ty(), &ty(&json!({"id": "string", "n?": "integer"}))),
        Ok(())
    );
}

/// Each row: guards separated by `;`, where `else` is a branch without a guard; the uncovered case;
/// the dead branches.
#[test]
fn branches_leave_nothing_out() {
    type Dead<'a> = &'a [(usize, &'a str)];
    let cases: [(&str, &str, Dead<'_>); 46] = [
        ("result.ok; !result.ok", "", &[]),
        ("result.ok", "result.ok = false", &[]),
        ("result.status == 'done'; result.status == 'blocked'", "result.status = \"partial\"", &[]),
        ("result.status == 'done'; result.status in ['blocked', 'partial']", "", &[]),
        ("result.status == 'done'; result.status != 'done'", "", &[]),
        ("'done' == result.status; !('done' == result.status)", "", &[]),
        ("result.status == 'done' ? true : false; result.status != 'done'", "", &[]),
        (
            "result.ok || result.status == 'done'; result.status == 'blocked'",
            "result.ok = false and result.status = \"partial\"",
            &[],
        ),
        ("result.ok; else", "", &[]),
        ("else; result.ok", "", &[(1, "branch 1 always fires first")]),
        ("true; result.ok", "", &[(1, "branch 1 always fires first")]),
        ("false; else", "", &[(0, "the guard is never true")]),
        ("false", "every case", &[(0, "the guard is never true")]),
        ("", "every case", &[]),
        ("result.ok; !result.ok; else", "", &[(2, "covered by the branches before it")]),
        ("result.ok; result.ok && n > 1; else", "", &[(1, "branch 1 always fires first")]),
        (
            "result.status == 'done' && result.status == 'blocked'; else",
            "",
            &[(0, "the guard is never true")],
        ),
        ("n > 0; n == 0; n < 0", "", &[]),
        ("n > 0; n < 0", "n = 0", &[]),
        ("n > 0; n <= -1", "n = 0", &[]),
        ("n > 3; 1 > n", "n = 1", &[]),
        ("n > 2; n < 2; n == 2; n == 5", "", &[(3, "branch 1 always fires first")]),
        ("n >= 1; n <= 0", "", &[]),
        ("result.x >= 1.0; result.x <= 0.0", "0 < result.x < 1", &[]),
        ("result.x >= 1.0; result.x < 1", "", &[]),
        ("n > 10; n < 5", "n = 5", &[]),
        ("n > 10; n < 5; n == 5", "5 < n < 10", &[]),
        ("n > 10; n < 5; n == 5; n == 10", "5 < n < 10", &[]),
        ("size(names) > 0; size(names) == 0", "", &[]),
        ("size(names) > 2; names.size() == 0", "size(names) = 1", &[]),
        ("result.n > n; n > result.n", "n = result.n", &[]),
        ("result.n > n; n >= result.n", "", &[]),
        ("result.n > n; !(result.n > n)", "", &[]),
        ("result.name == 'a'; result.name != 'a'", "", &[]),
        ("result.name == 'a'; result.name == 'b'", "result.name is none of \"a\", \"b\"", &[]),
        ("fix_info != null; fix_info == null", "", &[]),
        ("fix_info == null; fix_info == 'a'", "fix_info is not \"a\"", &[]),
        ("flag == true; flag == false", "flag = null", &[]),
        ("flag != null && flag; flag != null && !flag; flag == null", "", &[]),
        (
            "has(result.level) && result.level == 'low'; has(result.level) && result.level == 'high'",
            "result.level is missing",
            &[],
        ),
        ("has(result.level); !has(result.level)", "", &[]),
        ("'level' in result; !has(result.level)", "", &[]),
        ("has(result.ok); else", "", &[(1, "branch 1 always fires first")]),
        (
            "result.checks.exists(c, c.ok); result.checks.all(c, !c.ok)",
            "result.checks.all(c, !c.ok) = false and result.checks.exists(c, c.ok) = false",
            &[],
        ),
        ("result.checks.exists(c, c.ok); !result.checks.exists(c, c.ok)", "", &[]),
        ("result.name.contains('a') == true; !result.name.contains('a')", "", &[]),
    ];
    for (source, uncovered, dead) in cases {
        let compiled: Vec<Option<Expression>> = source
            .split(';')
            .map(str::trim)
            .filter(|guard| !guard.is_empty())
            .map(|guard| (guard != "else").then(|| compile(guard)))
            .collect();
        let guards: Vec<Option<&Expression>> = compiled.iter().map(Option::as_ref).collect();
        let found = branches(&guards, &scope());
        assert_eq!(found.uncovered.unwrap_or_default(), uncovered, "{source}");
        let found: Vec<(usize, &str)> =
            found.dead.iter().map(|(index, why)| (*index, why.as_str())).collect();
        assert_eq!(found, dead, "{source}");
    }
}

#[test]
fn too_many_cases_ask_for_a_default() {
    let opaque: Vec<String> = (0..16).map(|i| format!("result.name.contains('{i}')")).collect();
    let (many, other) = (compile(&opaque.join(" && ")), compile("result.ok"));
    let found = branches(&[Some(&many), Some(&other), Some(&many)], &scope());
    assert_eq!(
        found.uncovered.as_deref(),
        Some(
            "the guards are too complex to prove that one is always true: add a branch without a guard"
        )
    );
    assert_eq!(found.dead, [(2, "branch 1 always fires first".to_owned())]);
    let found = branches(&[Some(&many), None, Some(&other)], &scope());
    assert_eq!(
        (found.uncovered, found.dead),
        (None, vec![(2, "branch 2 always fires first".to_owned())])
    );
}

#[test]
fn any_text_compiles_or_says_why() {
    let deep = [
        "!",
        "-",
        "(",
        "[",
        "{'a':",
        "result.ok ? (",
        "1 + ",
        "result.ok && ",
        "result.files.all(f, ",
    ];
    for part in deep {
        for times in [10, 200, 1000] {
            let _ = Expression::compile(&format!("{}true", part.repeat(times)), &scope());
        }
    }
    let _ = Expression::compile(&format!("n{} > 1", " + 1".repeat(2000)), &scope());
    let _ = Expression::compile(&format!("n{}", ".a".repeat(3000)), &scope());
    let _ = Expression::compile(&format!("names{}", "[0]".repeat(3000)), &scope());
}

#[test]
fn expressions_go_between_threads() {
    fn is_shared<T: Send + Sync + std::fmt::Debug>(_: &T) {}
    is_shared(&compile("n > 1"));
}

#[test]
fn compiling_is_quick() {
    let scope = scope();
    let source = "result.status == \"blocked\" && result.n > 3";
    Expression::compile(source, &scope).unwrap();
    let start = Instant::now();
    for _ in 0..200 {
        Expression::compile(source, &scope).unwrap();
    }
    let each = start.elapsed() / 200;
    println!("compile: {each:?}");
    assert!(each.as_millis() < 20, "{each:?}");
}
