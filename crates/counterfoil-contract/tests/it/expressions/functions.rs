//! Functions beyond CEL's standard library: their values and types, the messages for wrong
//! arguments, and their limits.

use super::ty;
use counterfoil_contract::expr::{Expression, Scope, Type};
use serde_json::{Value, json};

/// The variables of the tests: name, type and value.
fn variables() -> Vec<(&'static str, Type, Value)> {
    let texts = json!(["b", "a", "b"]);
    [
        ("text", json!("string"), json!("  Größe: Ünï x, Ünï y \r\n\nlast\n")),
        ("empty", json!("string"), json!("")),
        ("note", json!("string?"), json!(null)),
        ("word", json!("low | high"), json!("low")),
        ("names", json!(["string"]), texts),
        ("none", json!(["string"]), json!([])),
        ("spots", json!(["string?"]), json!(["a", null])),
        ("counts", json!(["integer"]), json!([1, 2, 3])),
        (
            "huge",
            json!(["integer"]),
            serde_json::from_str("[1, 123456789012345678901234567890]").unwrap(),
        ),
        ("amounts", json!(["number"]), json!([1, 2.5])),
        ("no_amounts", json!(["number"]), json!([])),
        ("mixed", json!([{"type": ["integer", "number"]}]), json!([1])),
        ("lists", json!([["string"]]), json!([["a"], [], ["b", "a"]])),
        (
            "findings",
            json!([{"id": "string", "file?": "string", "line": "integer", "tags": ["string"]}]),
            json!([
                {"id": "f1", "file": "a.rs", "line": 3, "tags": ["x"]},
                {"id": "f2", "line": 5, "tags": ["x", "y"]},
                {"id": "f1", "file": "a.rs", "line": 3, "tags": ["x"]},
            ]),
        ),
        (
            "scores",
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"b": 1, "a": 2}),
        ),
        (
            "free",
            json!("any"),
            json!([1, "1", 1.0, {"b": 1, "a": [null]}, {"a": [null], "b": 1.0}]),
        ),
        ("n", json!("integer"), json!(2)),
        ("minus", json!("integer"), json!(-5)),
        ("large", json!("integer"), json!(i64::MAX)),
        ("x", json!("number"), json!(1.5)),
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

fn evaluate(source: &str) -> Result<Value, String> {
    evaluate_with(source, &[])
}

/// Evaluates with other values of some variables.
fn evaluate_with(source: &str, other: &[(&str, Value)]) -> Result<Value, String> {
    let mut variables = variables();
    for (name, value) in other {
        let variable = variables.iter_mut().find(|(known, ..)| known == name).unwrap();
        variable.2 = value.clone();
    }
    let given: Vec<(&str, &Value, &Type)> =
        variables.iter().map(|(name, ty, value)| (*name, value, ty)).collect();
    compile(source).evaluate(&given).map_err(|error| error.reason)
}

#[test]
fn functions_have_types_and_values() {
    let cases = [
        ("'a,b,,c'.split(',')", "list of string", json!(["a", "b", "", "c"])),
        ("'a, b'.split(', ')", "list of string", json!(["a", "b"])),
        ("'aüb'.split('')", "list of string", json!(["a", "ü", "b"])),
        ("empty.split(',')", "list of string", json!([""])),
        ("empty.split('')", "list of string", json!([])),
        ("text.lines()", "list of string", json!(["  Größe: Ünï x, Ünï y ", "", "last"])),
        ("empty.lines()", "list of string", json!([])),
        ("text.trim()", "string", json!("Größe: Ünï x, Ünï y \r\n\nlast")),
        ("'ÄbC'.lowerAscii()", "string", json!("Äbc")),
        ("'äbC'.upperAscii()", "string", json!("äBC")),
        ("word.upperAscii()", "string", json!("LOW")),
        ("'a.b.c'.replace('.', '::')", "string", json!("a::b::c")),
        ("'aaa'.replace('aa', 'b')", "string", json!("ba")),
        ("'äb'.replace('', '-')", "string", json!("-ä-b-")),
        ("'abc'.replace('x', 'y')", "string", json!("abc")),
        ("text.indexOf('x')", "integer", json!(13)),
        ("text.indexOf('nowhere')", "integer", json!(-1)),
        ("text.indexOf('')", "integer", json!(0)),
        ("'Größe'.substring(2, 4)", "string", json!("öß")),
        ("'Größe'.substring(-3, 99)", "string", json!("Größe")),
        ("'Größe'.substring(4, 2)", "string", json!("")),
        ("'Größe'.substring(99, 100)", "string", json!("")),
        ("'Größe'.substring(0, large)", "string", json!("Größe")),
        ("text.findAll('Ü[^ ]+ .')", "list of string", json!(["Ünï x", "Ünï y"])),
        ("text.findAll('Ünï (.)')", "list of string", json!(["x", "y"])),
        ("text.findAll('[0-9]')", "list of string", json!([])),
        ("reportsSevere(findings)", "boolean", json!(false)),
        ("reportsSevere(['HIGH: ' + word])", "boolean", json!(true)),
        ("reportsSevere({'cvss': 9.8})", "boolean", json!(true)),
        ("reportsFailure({'failed': n})", "boolean", json!(true)),
        ("reportsFailure({'passed': true})", "boolean", json!(false)),
        ("reportsRejection({'approved': false})", "boolean", json!(true)),
        ("reportsNothing(note)", "boolean", json!(true)),
        ("reportsNothing(free)", "boolean", json!(false)),
        ("names.join(', ')", "string", json!("b, a, b")),
        ("none.join(', ')", "string", json!("")),
        ("[].join(', ')", "string", json!("")),
        ("['low', word].join('')", "string", json!("lowlow")),
        ("lists.flatten()", "list of string", json!(["a", "b", "a"])),
        ("[].flatten()", "list of nothing", json!([])),
        ("[[1], ['a']].flatten()", "list of integer or a", json!([1, "a"])),
        ("[[[1]], [[2]]].flatten()", "list of list of integer", json!([[1], [2]])),
        ("names.distinct()", "list of string", json!(["b", "a"])),
        ("names.map(x, {'n': x}).distinct().map(x, x.n)", "list of string", json!(["b", "a"])),
        ("size(findings.distinct())", "integer", json!(2)),
        ("[1, 1.0, 2].distinct()", "list of integer or number", json!([1, 2])),
        ("['1', 1, true, 'true', null].distinct().size()", "integer", json!(5)),
        ("size(free.distinct())", "integer", json!(3)),
        ("counts.slice(1, 2)", "list of integer", json!([2])),
        ("counts.slice(minus, large)", "list of integer", json!([1, 2, 3])),
        ("counts.slice(2, 1)", "list of integer", json!([])),
        ("findings.slice(0, 1).map(f, f.id)", "list of string", json!(["f1"])),
        ("counts.sum()", "integer", json!(6)),
        ("[].sum()", "integer", json!(0)),
        ("findings.map(f, f.line).sum() + 1", "integer", json!(12)),
        ("amounts.sum()", "number", json!(3.5)),
        ("no_amounts.sum() + 0.5", "number", json!(0.5)),
        ("scores.put('c', 3)", "object of integer", json!({"a": 2, "b": 1, "c": 3})),
        ("scores.put('a', 7).put(word, 8)", "object of integer", json!({"a": 7, "b": 1, "low": 8})),
        ("scores.put('c', 'x')", "object of x or integer", json!({"a": 2, "b": 1, "c": "x"})),
        ("range(3)", "list of integer", json!([0, 1, 2])),
        ("range(0)", "list of integer", json!([])),
        ("range(minus)", "list of integer", json!([])),
        (
            "range(size(names)).map(i, string(i) + names[i])",
            "list of string",
            json!(["0b", "1a", "2b"]),
        ),
        ("size(range(10000))", "integer", json!(10_000)),
        ("json(findings[1])", "string", json!(r#"{"id":"f2","line":5,"tags":["x","y"]}"#)),
        (
            "json({'b': [1, 2.5, true], 'a': note})",
            "string",
            json!(r#"{"a":null,"b":[1,2.5,true]}"#),
        ),
        ("json('say \"ü\"\\n')", "string", json!(r#""say \"ü\"\n""#)),
        ("json(note)", "string", json!("null")),
        ("json(scores)", "string", json!(r#"{"a":2,"b":1}"#)),
        ("json(x) + json(2.0) + json([])", "string", json!("1.52.0[]")),
    ];
    for (source, expected, value) in cases {
        assert_eq!(compile(source).ty().to_string(), expected, "{source}");
        let found = evaluate(source).unwrap_or_else(|why| panic!("{source}: {why}"));
        assert_eq!(found, value, "{source}");
    }
}

#[test]
fn a_slug_is_a_short_name_of_ascii_words() {
    let long = "word ".repeat(40);
    let fits = ["word"; 12].join("-");
    let cases = [
        ("Add a login page", "add-a-login-page"),
        ("  --Fix: the `x.y()` call!!  ", "fix-the-x-y-call"),
        ("Café Größe №3", "cafe-gro-e-no3"),
        ("../../etc/passwd", "etc-passwd"),
        ("日本語", "item"),
        ("", "item"),
        ("---", "item"),
        (&long, &fits),
        (&"x".repeat(100), &"x".repeat(60)),
        (&format!("a {} b", "x".repeat(59)), "a"),
        (&format!("a {}", "x".repeat(58)), &format!("a-{}", "x".repeat(58))),
    ];
    for (text, expected) in cases {
        let found = evaluate_with("text.slug()", &[("text", json!(text))]).unwrap();
        assert_eq!(found, json!(expected), "{text}");
    }
}

#[test]
fn wrong_uses_are_problems() {
    let cases = [
        ("split(text, ',')", "'split' cannot be called like this", "write text.split(separator)"),
        ("text.split()", "'split' cannot be called like this", "write text.split(separator)"),
        ("text.split(',', 2)", "'split' cannot be called like this", "write text.split(separator)"),
        ("text.range()", "'range' cannot be called like this", "write range(count)"),
        ("json()", "'json' cannot be called like this", "write json(value)"),
        (
            "names.substring(1, 2)",
            "'substring' works on strings, not on list of string",
            "convert with string()",
        ),
        (
            "text.substring(1)",
            "'substring' cannot be called like this",
            "write text.substring(from, to)",
        ),
        ("text.substring(1, x)", "'substring' takes integers, not a number", "convert with int()"),
        ("text.indexOf(1)", "'indexOf' works on strings, not on integer", "convert with string()"),
        ("n.trim()", "'trim' works on strings, not on integer", "convert with string()"),
        (
            "names.lines()",
            "'lines' works on strings, not on list of string",
            "convert with string()",
        ),
        ("note.trim()", "'note' may be null here", "guard it: note != null"),
        ("text.replace('a', note)", "'note' may be null here", "guard it: note != null"),
        ("text.join(',')", "'join' works on lists, not on string", "use it on a list"),
        (
            "counts.join(',')",
            "'join' works on lists of strings, not on list of integer",
            "list.map(x, string(x))",
        ),
        ("text.findAll(1)", "'findAll' works on strings, not on integer", "convert with string()"),
        ("names.join(1)", "'join' works on strings, not on integer", "convert with string()"),
        (
            "spots.join(',')",
            "'join' works on every item, and items may be null here",
            "list.filter(x, x != null)",
        ),
        (
            "names.flatten()",
            "'flatten' works on lists of lists, not on list of string",
            "leave it out",
        ),
        ("text.flatten()", "'flatten' works on lists, not on string", "use it on a list"),
        (
            "scores.distinct()",
            "'distinct' works on lists, not on object of integer",
            "use it on a list",
        ),
        ("names.slice(0, '1')", "'slice' takes integers, not a string", "convert with int()"),
        ("text.slice(0, 1)", "'slice' works on lists, not on string", "use it on a list"),
        ("put(scores, 'a', 1)", "'put' cannot be called like this", "write object.put(key, value)"),
        ("scores.put(1, 1)", "'put' works on strings, not on integer", "convert with string()"),
        ("scores.put('a', note)", "'note' may be null here", "guard it: note != null"),
        (
            "findings[0].put('a', 1)",
            "'put' works on objects whose keys are data, not on an object",
            "additionalProperties",
        ),
        ("names.sum()", "'sum' works on lists of numbers, not on list of string", "list.map("),
        ("mixed.sum()", "integer and number do not mix", "list.map(x, double(x))"),
        ("sum(counts)", "'sum' cannot be called like this", "write list.sum()"),
        ("range('3')", "'range' takes integers, not a string", "convert with int()"),
        ("range(10001)", "range() gives at most 10,000 items, not 10001", "loop over a list"),
        ("text.toLower()", "unknown function 'toLower'", "known: "),
        ("names.joins(',')", "unknown function 'joins'", "did you mean 'join'?"),
        // The argument of json() is checked like everything else.
        ("json(nowhere)", "unknown variable 'nowhere'", "known: "),
        (
            "json(findings[0].file)",
            "'findings[0].file' is optional and may be missing here",
            "guard it",
        ),
    ];
    for (source, message, hint) in cases {
        let problems = Expression::compile(source, &scope()).err().unwrap_or_default();
        assert_eq!(problems.len(), 1, "{source}: {problems:#?}");
        assert_eq!(problems[0].message, message, "{source}");
        assert!(problems[0].hint.contains(hint), "{source}: {problems:#?}");
    }
}

#[test]
fn unknown_functions_name_all_that_there_are() {
    let problems = Expression::compile("text.nothingLikeIt()", &scope()).unwrap_err();
    for name in [
        "split",
        "lines",
        "trim",
        "lowerAscii",
        "upperAscii",
        "replace",
        "slug",
        "join",
        "flatten",
        "distinct",
        "slice",
        "sum",
        "range",
        "indexOf",
        "substring",
        "json",
        "put",
    ] {
        assert!(
            problems[0].hint.split([' ', ',']).any(|known| known == name),
            "{name}: {problems:#?}"
        );
    }
}

#[test]
fn what_nobody_knows_the_type_of_fails_in_words() {
    let cases = [
        ("free.trim()", json!(3), "trim() works on strings, not on an integer"),
        ("free.lines()", json!(["a"]), "lines() works on strings, not on a list"),
        ("text.split(free)", json!(null), "split() works on strings, not on null"),
        ("text.substring(0, free)", json!(1.5), "substring() takes integers, not a number"),
        ("free.join(',')", json!(["a", 1]), "join() works on strings, not on an integer"),
        ("free.join(',')", json!({"a": 1}), "join() works on lists, not on an object"),
        ("free.put('a', 1)", json!([1]), "put() works on objects, not on a list"),
        ("free.flatten()", json!([[1], 2]), "flatten() works on lists, not on an integer"),
        ("free.sum()", json!([1, true]), "sum() works on numbers, not on a boolean"),
        ("free.sum()", json!([1.5, "a"]), "sum() works on numbers, not on a string"),
        ("range(free)", json!("3"), "range() takes integers, not a string"),
    ];
    for (source, value, expected) in cases {
        assert_eq!(evaluate_with(source, &[("free", value)]), Err(expected.to_owned()), "{source}");
    }
    assert_eq!(evaluate_with("free.sum()", &[("free", json!([]))]), Ok(json!(0)));
    assert_eq!(evaluate_with("free.sum()", &[("free", json!([1.5, 2.5]))]), Ok(json!(4.0)));
}

#[test]
fn results_have_bounds() {
    let long = json!("a".repeat(3_000_000));
    let cases = [
        ("text.replace('a', 'bb')", &long, "replace() gives more than 4 MiB of text"),
        ("text.replace('', 'b')", &long, "replace() gives more than 4 MiB of text"),
        ("text.replace('a', text)", &long, "replace() gives more than 4 MiB of text"),
        ("[text, text].join('')", &long, "join() gives more than 4 MiB of text"),
        ("range(10000).map(i, 'a').join(text)", &long, "join() gives more than 4 MiB of text"),
        ("json([text, text])", &long, "json() gives more than 4 MiB of text"),
        ("json({'a': {'b': [text + text]}})", &long, "json() gives more than 4 MiB of text"),
        ("(text + text).trim()", &long, "trim() gives more than 4 MiB of text"),
        ("(text + text).lines()", &long, "lines() gives more than 4 MiB of text"),
        ("text.split('')", &long, "split() gives more than 1,000,000 items"),
        ("text.replace('a', '\\n').lines()", &long, "lines() gives more than 1,000,000 items"),
        (
            "range(120).map(i, range(10000)).flatten()",
            &long,
            "flatten() gives more than 1,000,000 items",
        ),
        ("range(large)", &long, "range() gives at most 10,000 items, not 9223372036854775807"),
        ("[large, 1].sum()", &long, "a number is too large to calculate with"),
        ("huge.sum()", &long, "a number is too large to calculate with"),
        ("json(x / 0.0)", &long, "it gives inf, which JSON cannot represent"),
    ];
    for (source, text, expected) in cases {
        assert_eq!(
            evaluate_with(source, &[("text", text.clone())]),
            Err(expected.to_owned()),
            "{source}"
        );
    }
    // Up to the limits they work.
    assert_eq!(evaluate_with("size(text.trim())", &[("text", long.clone())]), Ok(json!(3_000_000)));
    let part = format!("size('{}'.replace('', 'x'))", "a".repeat(100));
    assert_eq!(evaluate(&part), Ok(json!(201)));
}

#[test]
fn searching_costs_no_more_than_reading() {
    // Work that grows with the product of both would take many minutes.
    let (text, part) = ("a".repeat(1_000_000), format!("{}b", "a".repeat(250_000)));
    let given = [("text", json!(text)), ("word", json!(part))];
    assert_eq!(evaluate_with("text.indexOf(word)", &given), Ok(json!(-1)));
    assert_eq!(evaluate_with("size(text.replace(word, 'x'))", &given), Ok(json!(1_000_000)));
    assert_eq!(evaluate_with("size(text.split(word))", &given), Ok(json!(1)));
    let many: Vec<String> = (0..50_000).map(|at| format!("name {at}")).collect();
    assert_eq!(
        evaluate_with("size(names.distinct())", &[("names", json!(many))]),
        Ok(json!(50_000))
    );
}

#[test]
fn loops_have_bounds() {
    const STEPS: &str =
        "it takes more than 10,000,000 steps: use smaller lists or fewer nested loops";
    const KEPT: &str = "it collects more than 64 MiB: collect less, or in fewer loops";
    let long = [("text", json!("a".repeat(3_000_000)))];
    let cases = [
        // Loops that stop at their first item count in full: they could have continued.
        ("[range(10000)].all(r, r.all(a, r.exists(b, true)))", STEPS),
        ("[range(10000)].all(r, r.all(a, 0 in r))", STEPS),
        ("range(10000).map(i, text.trim()).size()", KEPT),
        ("range(10000).map(i, text)", KEPT),
        ("range(10000).map(i, i >= 0, {'t': [text]})", KEPT),
        ("range(10000).all(i, text.indexOf('a') == 0)", STEPS),
    ];
    for (source, expected) in cases {
        assert_eq!(evaluate_with(source, &long), Err(expected.to_owned()), "{source}");
    }
    // Looking up the key of an object does not scan its keys.
    let many: Value =
        (0..2000).map(|at| (format!("k{at}"), json!(at))).collect::<serde_json::Map<_, _>>().into();
    let keyed = evaluate_with("range(10000).exists(i, 'k' in scores)", &[("scores", many)]);
    assert_eq!(keyed, Ok(json!(false)));
    // Each evaluation starts with fresh counters.
    let each = compile("[range(10000)].all(r, r.slice(0, 600).all(a, r.exists(b, true)))");
    for _ in 0..2 {
        assert_eq!(each.evaluate(&[]), Ok(json!(true)));
    }
}

/// The lowered expression is deeper than its source. The deepest expression that compiles must not
/// exhaust the stack.
#[test]
fn the_deepest_loops_are_evaluated() {
    let loops: [(&str, &str, &str, &str); 3] = [
        ("[1].map(x, ", "1", ")", "[[[[["),
        ("[1].exists(x, 1 in range(2) && ", "true", ")", "true"),
        ("[[1].map(x, {'a': ", "1", "}).distinct()].flatten()", "[{\"a\":[{"),
    ];
    for (before, inside, after, begins) in loops {
        let nested =
            |depth: usize| format!("{}{inside}{}", before.repeat(depth), after.repeat(depth));
        let compiled =
            |depth: &usize| Expression::compile(&nested(*depth), &Scope::default()).is_ok();
        let deepest = (1..200).rev().find(compiled).unwrap();
        assert!(deepest >= 10, "{before}: {deepest}");
        let value = compile(&nested(deepest)).evaluate(&[]).unwrap();
        assert!(value.to_string().starts_with(begins), "{before}: {value}");
    }
}

#[test]
fn branches_know_what_functions_give() {
    let cases: [(&[&str], Option<&str>); 4] = [
        (&["text.trim() == ''", "text.trim() != ''"], None),
        (&["text.indexOf('x') < 0", "text.indexOf('x') >= 0"], None),
        (&["text.indexOf('x') < 0", "text.indexOf('x') > 0"], Some("text.indexOf(\"x\") = 0")),
        (&["names.join(',') == 'a'"], Some("names.join(\",\") is not \"a\"")),
    ];
    for (guards, uncovered) in cases {
        let guards: Vec<Expression> = guards.iter().map(|guard| compile(guard)).collect();
        let guards: Vec<Option<&Expression>> = guards.iter().map(Some).collect();
        let found = counterfoil_contract::expr::branches(&guards, &scope());
        assert_eq!((found.uncovered.as_deref(), found.dead), (uncovered, vec![]));
    }
}
