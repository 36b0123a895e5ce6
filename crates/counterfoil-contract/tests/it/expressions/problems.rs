//! What the checker of expressions refuses, and how it says so.

use super::scope;
use counterfoil_contract::expr::Expression;

#[test]
fn what_could_go_wrong_is_a_problem() {
    let cases = [
        ("resul.ok", "unknown variable 'resul'", "did you mean 'result'?"),
        ("result.stat", "unknown field 'stat'", "did you mean 'status'?"),
        (
            "result.status == 'blockd'",
            "\"blockd\" is not one of the values this field can have",
            "did you mean 'blocked'?",
        ),
        (
            "result.status in ['done', 'blockd']",
            "\"blockd\" is not one of the values this field can have",
            "did you mean 'blocked'?",
        ),
        ("size(fix_info) > 0", "'fix_info' may be null here", "guard it: fix_info != null && …"),
        ("fix_info > 'a'", "'fix_info' may be null here", "guard it"),
        ("fix_info + 'a'", "'fix_info' may be null here", "guard it"),
        ("fix_info.contains('a')", "'fix_info' may be null here", "guard it"),
        ("string(fix_info)", "'fix_info' may be null here", "guard it"),
        ("flag", "", ""),
        ("!flag", "'flag' may be null here", "guard it: flag != null && …"),
        ("flag && true", "'flag' may be null here", "guard it"),
        ("flag || true", "'flag' may be null here", "guard it"),
        ("flag ? 1 : 2", "'flag' may be null here", "guard it"),
        ("1 in maybe", "'maybe' may be null here", "guard it"),
        ("maybe[0]", "'maybe' may be null here", "guard it"),
        ("maybe.all(m, m == 1)", "'maybe' may be null here", "guard it"),
        (
            "maybe != null && maybe.all(m, m > 1)",
            "'m' may be null here",
            "guard it: m != null && …",
        ),
        (
            "maybe != null && maybe[0] > 1",
            "'maybe[0]' may be null here",
            "guard it: maybe[0] != null && …",
        ),
        ("part.id == 'x'", "'part' may be null here", "guard it: part != null && …"),
        ("has(part.id)", "'part' may be null here", "guard it: part != null && …"),
        (
            "has(result.owner) && size(result.owner) > 1",
            "'result.owner' may be null here",
            "guard it: result.owner != null",
        ),
        ("fix_info != null || size(fix_info) > 0", "'fix_info' may be null here", "guard it"),
        (
            "(fix_info == null ? null : fix_info) + 'a'",
            "this value may be null here",
            "give it a value in every case",
        ),
        (
            "result.note == 'x'",
            "'result.note' is optional and may be missing here",
            "guard it: has(result.note) && …",
        ),
        (
            "result['note'] == 'x'",
            "'result.note' is optional and may be missing here",
            "guard it: has(result.note) && …",
        ),
        (
            "result.scores.a > 1",
            "'result.scores.a' may be missing here",
            "guard it: has(result.scores.a) && …",
        ),
        ("result.scores['a b'] > 1", "'result.scores[\"a b\"]' may be missing here", "guard it"),
        (
            "has(result.limits.a) && result.limits.a > 1",
            "'result.limits.a' may be null here",
            "guard it",
        ),
        (
            "result.scores[result.name]",
            "the key of an object must be a string literal here",
            "use a list and exists()",
        ),
        (
            "result[result.name]",
            "the key of an object must be a string literal here",
            "use a list and exists()",
        ),
        ("result.files['a']", "a list of string has no field 'a'", "only objects have fields"),
        ("result.files[result.x]", "a list has no item at a number", "index it by an integer"),
        ("result.name[0]", "a string has no items", "index a list"),
        ("1 in result.name", "a string has no items", "use in on a list or an object"),
        (
            "[{'a': 1}, 'a'].exists(x, 'a' in x)",
            "a string has no items",
            "use in on a list or an object",
        ),
        (
            "[{'a': 1}, [1]].exists(x, 'a' in x)",
            "a string is never in",
            "compare values of one type",
        ),
        ("1 in result.scores", "an integer is never a key of an object", "look for a string"),
        (
            "1 in result.files",
            "an integer is never in a list of string",
            "compare values of one type",
        ),
        (
            "result.n + result.x",
            "integer and number do not mix",
            "convert one with int() or double()",
        ),
        ("result.n + 1.0", "integer and number do not mix", "convert one"),
        ("result.x % 2.0", "% works only on integers", "convert both with int()"),
        ("-result.name", "cannot negate string", "calculate with numbers"),
        ("result.n - 'a'", "cannot calculate with integer and string", "calculate with numbers"),
        (
            "result.mixed + 1",
            "cannot calculate with integer or string and integer",
            "calculate with numbers",
        ),
        (
            "result.mixed > 1",
            "cannot order integer or string and integer",
            "order numbers with numbers",
        ),
        ("result.ok > false", "cannot order boolean and boolean", "order numbers with numbers"),
        ("result.n == 'a'", "an integer is never equal to a string", "compare values of one type"),
        ("size(result.n)", "an integer has no size", "size() takes a string, list or object"),
        ("size(result.mixed)", "an integer or string has no size", "size() takes"),
        (
            "result.n.contains('a')",
            "'contains' works on strings, not on integer",
            "convert with string()",
        ),
        (
            "contains(result.name, 'a')",
            "'contains' cannot be called like this",
            "write text.contains(part)",
        ),
        ("size(result.name, 1)", "'size' cannot be called like this", "write size(value)"),
        ("result.name.int()", "'int' cannot be called like this", "write int(value)"),
        ("int(result.ok)", "int() cannot convert boolean", "convert strings and numbers"),
        ("bool(result.n)", "bool() cannot convert integer", "convert strings and numbers"),
        (
            "string(result.files)",
            "string() cannot convert list of string",
            "convert strings and numbers",
        ),
        (
            "result.name.matches('(')",
            "the pattern is not a regular expression",
            "write a regular expression",
        ),
        (
            "result.n && true",
            "an integer is not a condition",
            "write a comparison, such as `x == 1`",
        ),
        ("'a' && true", "a string is not a condition", "write a comparison, such as `x == 1`"),
        (
            "result.files.all(f, f)",
            "a string is not a condition",
            "write a comparison, such as `x == 1`",
        ),
        ("result.name.all(f, true)", "a string has no items", "use it on a list"),
        (
            "result.scores.map(k, k)",
            "the keys of an object have no order",
            "use exists() or all() on it",
        ),
        ("result.n > 3u", "unsigned integers do not mix with integers", "write 3"),
        ("result.name == b'a'", "byte literals are not supported", "write a string"),
        (
            "{result.name: 1}",
            "the keys of an object must be string literals",
            "write {\"key\": value}",
        ),
        ("{'a': 1, 'a': 2}", "the key 'a' appears twice", "leave one out"),
        ("result.?note", "unknown function '_?._'", "known: "),
        (
            "[{'a': fix_info}, {'b': 'x'}].exists(x, has(x.a) && size(x.a) > 0)",
            "'x.a' may be null here",
            "guard it: x.a != null && …",
        ),
        ("type(result.n) == 1", "unknown function 'type'", "known: "),
        (
            "has(result.note) && result.checks.exists(result, result.note == 'a')",
            "unknown field 'note'",
            "known fields: name, ok, why",
        ),
        (
            "has(result.note) && result.checks.exists(c, c.why == 'a')",
            "'c.why' is optional and may be missing here",
            "guard it: has(c.why)",
        ),
        (
            "result.x == 1.0 / 0.0 && fix_info == string(result.n) && size(fix_info) > 0",
            "'fix_info' may be null here",
            "guard it",
        ),
    ];
    for (source, message, hint) in cases {
        match Expression::compile(source, &scope()) {
            Ok(_) => assert_eq!(message, "", "{source} compiles"),
            Err(problems) => {
                let problem = &problems[0];
                assert!(
                    problem.message.starts_with(message) && !message.is_empty(),
                    "{source}: {problems:#?}"
                );
                assert!(problem.hint.contains(hint), "{source}: {problems:#?}");
                assert_eq!(problems.len(), 1, "{source}: {problems:#?}");
            }
        }
    }
}
