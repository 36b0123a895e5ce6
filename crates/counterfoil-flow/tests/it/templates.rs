//! Templates: the text they render, and the problems that the checker reports.
#![allow(clippy::unwrap_used)] // Clippy does not recognise test helpers as tests.

use counterfoil_contract::expr::Type;
use counterfoil_flow::template::{Template, TemplateProblem};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn values(object: Value) -> BTreeMap<String, Value> {
    serde_json::from_value(object).unwrap()
}

/// The variables of the examples, as schemas.
fn types() -> BTreeMap<String, Type> {
    let schemas = json!({
        "title": { "type": "string" },
        "count": { "type": "integer" },
        "done": { "type": "boolean" },
        "fix_info": { "type": ["string", "null"] },
        "tags": { "type": "array", "items": { "type": "string" } },
        "env": { "type": "object", "additionalProperties": { "type": "string" } },
        "anything": {},
        "extra": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
                   "additionalProperties": true },
        "answer": { "anyOf": [ { "type": "string" },
                               { "type": "object", "properties": { "text": { "type": "string" } },
                                 "required": ["text"], "additionalProperties": false } ] },
        "result": {
            "type": "object", "additionalProperties": false, "required": ["ok", "files"],
            "properties": {
                "ok": { "type": "boolean" },
                "note": { "type": "string" },
                "level": { "enum": ["low", "high"], "default": "low" },
                "error": { "type": "object", "additionalProperties": false, "required": ["code"],
                           "properties": { "code": { "type": "integer" }, "detail": { "type": "string" } } },
                "files": { "type": "array", "items": {
                    "type": "object", "additionalProperties": false, "required": ["path", "lines"],
                    "properties": { "path": { "type": "string" }, "lines": { "type": "integer" },
                                    "why": { "type": "string" } } } }
            }
        }
    });
    let schemas = schemas.as_object().unwrap();
    schemas.iter().map(|(name, schema)| (name.clone(), Type::from_schema(schema))).collect()
}

/// A problem as text: the line, the carets, the message and the hint.
fn render_problem(source: &str, problem: &TemplateProblem) -> String {
    let from = source[..problem.start].rfind('\n').map_or(0, |at| at + 1);
    let line = source[from..].lines().next().unwrap_or("");
    let before = source[from..problem.start].chars().count();
    let carets =
        source[problem.start..problem.end].chars().take_while(|c| *c != '\n').count().max(1);
    let hint =
        if problem.hint.is_empty() { String::new() } else { format!("\n  {}", problem.hint) };
    format!("{line}\n{}{}\n{}{hint}", " ".repeat(before), "^".repeat(carets), problem.message)
}

fn refusals(source: &str) -> Vec<String> {
    let problems = match Template::compile(source) {
        Ok(template) => template.check(&types()),
        Err(problems) => problems,
    };
    problems.iter().map(|problem| render_problem(source, problem)).collect()
}

/// Invalid templates with the expected problem: the line, the carets, the message and the hint.
const REFUSED: &[&str] = &[
    r"Fix {{ fix_inf }}
       ^^^^^^^
unknown variable 'fix_inf'
  did you mean 'fix_info'?",
    r"{{ nothing_like_it }}
   ^^^^^^^^^^^^^^^
unknown variable 'nothing_like_it'
  known variables: answer, anything, count, done, env, extra, fix_info, result, tags, title",
    r"Ü {{ result.fils }}
            ^^^^
unknown field 'fils' of 'result'
  did you mean 'files'?",
    r"{{ result.error.code }}
   ^^^^^^^^^^^^
'result.error' may be missing here
  guard it: {% if result.error %}…{% endif %}",
    r"{{ result.note }}
   ^^^^^^^^^^^
'result.note' may be missing here
  guard it: {% if result.note %}…{% endif %}, or {{ result.note | default('none', true) }}",
    r"{{ fix_info }}
   ^^^^^^^^
'fix_info' may be null here
  guard it: {% if fix_info %}…{% endif %}, or {{ fix_info | default('none', true) }}",
    r"{{ title.length }}
         ^^^^^^
'title' is a string, which has no field 'length'
  use the filter: … | length",
    r"{{ tags.first }}
        ^^^^^
'tags' is a list, which has no field 'first'
  loop over it, or take an item: … | first",
    r"{{ count.x }}
         ^
'count' is an integer, which has no field 'x'
  use the value itself",
    r"{{ title | uper }}
           ^^^^
unknown filter 'uper'
  did you mean 'upper'?",
    r"{% if title is strin %}x{% endif %}
               ^^^^^
unknown test 'strin'
  did you mean 'string'?",
    r"{{ rnge(3) }}
   ^^^^
unknown function 'rnge'
  did you mean 'range'?",
    r"{% for x in count %}{{ x }}{% endfor %}
            ^^^^^
'count' is an integer, which cannot be looped over
  loop over a list, or over the pairs of an object: object | items",
    r"{% for k, v in env | items %}{{ k }}{{ v.x }}{% endfor %}
                                         ^
'v' is a string, which has no field 'x'
  use the value itself",
    r"{% for k, v in tags %}{{ k }}{% endfor %}
       ^^^^
a string cannot be destructured into 2 names
  use a single name, or loop over pairs: {% for key, value in object | items %}",
    r"{{ loop.index }}
   ^^^^
unknown variable 'loop'
  it is defined only inside {% for … %}",
    r"{% set x = result.note %}{{ x }}
                            ^
'x' may be missing here
  guard it: {% if x %}…{% endif %}, or {{ x | default('none', true) }}",
    r"{% if done %}{% set late = 1 %}{% endif %}{{ late }}
                                             ^^^^
'late' may be missing here
  guard it: {% if late %}…{% endif %}, or {{ late | default('none', true) }}",
    r"{{ result.files | map(attribute='pth') | join }}
                                ^^^^^
unknown field 'pth' of an item of 'result.files'
  did you mean 'path'?",
    r"{{ result.files | selectattr('ok') | list }}
                             ^^^^
unknown field 'ok' of an item of 'result.files'
  known fields: path, lines, why",
    r"{{ answer.text }}
          ^^^^
'answer' is a string or an object, which has no field 'text'
  test it first: {% if answer is mapping %}",
    r"{{ count + title }}
   ^^^^^^^^^^^^^
'+' cannot add an integer and a string
  add numbers or lists; concatenate strings with ~",
    r"{{ title * 3 }}
   ^^^^^
'*' needs numbers, but 'title' is a string
  to concatenate strings, use ~",
    r"{{ done ~ 'x' }}
   ^^^^
'~' concatenates strings, but 'done' is a boolean
  convert it to JSON: … | tojson",
    r"{{ tags[0] }}
   ^^^^^^^
'tags[0]' may be missing here
  guard it: {% if tags[0] %}…{% endif %}, or {{ tags[0] | default('none', true) }}",
    r"{{ tags | first }}
   ^^^^^^^^^^^^
this value may be missing here
  give it a default: … | default('none', true)",
    r"{{ title.upper() }}
   ^^^^^^^^^^^
'title' is a string, which has no method 'upper' with 0 arguments
  use the filter: … | upper",
    r"{{ result.note == 'x' }}
   ^^^^^^^^^^^
'result.note' may be missing here
  guard it: {% if result.note %}…{% endif %}, or {{ result.note | default('none', true) }}",
    r"{{ title | replace('a') }}
           ^^^^^^^
the filter 'replace' takes 2 arguments, not 1",
    r"{{ tags | selectattr() }}
          ^^^^^^^^^^
the filter 'selectattr' takes at least 1 argument, not 0",
    r"{{ title | tojson(indnt=2) }}
           ^^^^^^
the filter 'tojson' has no argument 'indnt'
  did you mean 'indent'?",
    r"{% include 'x' %}
   ^^^^^^^
'include' is not supported: a template cannot refer to other templates
  write the text here, or pass it as a variable",
    r"{% macro f() %}{% endmacro %}
   ^^^^^
'macro' is not supported: a template cannot refer to other templates
  write the text here, or pass it as a variable",
    r"{% autoescape true %}{% endautoescape %}
   ^^^^^^^^^^
'autoescape' is not supported: templates produce plain text
  remove it: nothing is escaped",
    r"{% if done %}x
   ^^
the 'if' that opens here is never closed
  add {% endif %}",
    r"{{ title
^^
the tag that opens here is never closed
  close it with }} or %}",
    r"{% for x in tags %}{% endif %}{% endfor %}
                      ^^^^^
'endif' does not match an open block
  remove it, or open the block first",
    r"{% iff done %}
   ^^^
unknown statement 'iff'
  did you mean 'if'?",
    r"{{ 'abc }}
   ^^^^^^^
unexpected end of string
  check the quotes and the braces here",
    r"{{ title title }}
         ^^^^^
unexpected identifier, expected end of variable block",
    r"{{ title. }}
          ^^
unexpected end of variable block, expected identifier or integer",
    r"{{ tags[::-1] }}
   ^^^^^^^^^^
the step of a slice must be a positive number
  write the step as a number of at least 1; to reverse a list, use | reverse",
    r"{% set a.b = 1 %}
       ^^^
a field of a value cannot be assigned
  use another name: {% set name = … %}",
    r"{% if not result.error %}{{ result.error.code }}{% endif %}
                            ^^^^^^^^^^^^
'result.error' may be missing here
  guard it: {% if result.error %}…{% endif %}",
    r"{% if fix_info or done %}{{ fix_info }}{% endif %}
                            ^^^^^^^^
'fix_info' may be null here
  guard it: {% if fix_info %}…{% endif %}, or {{ fix_info | default('none', true) }}",
    r"{{ result['note'] }}
   ^^^^^^^^^^^^^^
'result.note' may be missing here
  guard it: {% if result.note %}…{% endif %}, or {{ result.note | default('none', true) }}",
    r"{% if answer is mapping %}{{ answer.text }}{% else %}{{ answer.text }}{% endif %}
                                                               ^^^^
'answer' is a string, which has no field 'text'
  use the value itself",
    r"{{ title | map('upper') }}
   ^^^^^
'map' needs a list, but 'title' is a string",
    r"{{ count | length }}
   ^^^^^
'length' needs a list, an object or a string, but 'count' is an integer",
    r"{# abc
^^^^^^
unexpected end of comment
  check the quotes and the braces here",
    r"{{ title(1) }}
   ^^^^^
'title' is not a function
  remove the (…)",
    r"{{ loop }}
   ^^^^
unknown variable 'loop'
  it is defined only inside {% for … %}",
    r"{% for f in result.files %}{{ f.why }}{% endfor %}
                              ^^^^^
'f.why' may be missing here
  guard it: {% if f.why %}…{% endif %}, or {{ f.why | default('none', true) }}",
    r"{{ range }}
   ^^^^^
'range' is a function
  call it: range(…)",
    r"{% filter nope %}x{% endfilter %}
          ^^^^
unknown filter 'nope'
  common filters: default, join, length, indent, tojson, items",
];

#[test]
fn each_problem_has_a_position_a_message_and_a_hint() {
    for expected in REFUSED {
        let source = expected.lines().next().unwrap();
        assert_eq!(refusals(source), [*expected], "{source}");
    }
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_text() {
    let source = "Grüße an {{ titel }}:\n{% for file in result.files %}\n- {{ file.pfad }}, {{ file.why }}\n{% endfor %}\n";
    let found = refusals(source);
    let messages: Vec<&str> = found.iter().filter_map(|text| text.lines().nth(2)).collect();
    assert_eq!(
        messages,
        [
            "unknown variable 'titel'",
            "unknown field 'pfad' of 'file'",
            "'file.why' may be missing here"
        ]
    );
    assert!(found[0].starts_with("Grüße an {{ titel }}:\n            ^^^^^\n"), "{}", found[0]);
}

#[test]
fn at_most_a_hundred_problems_are_reported() {
    assert_eq!(refusals(&"{{ nope }}".repeat(1_000)).len(), 100);
}

/// Valid templates, and the text they render for [`example`].
const WRITTEN: &[(&str, &str)] = &[
    ("{{ title }} {{ count }} {{ done }} {{ tags }}", r#"Fix <it> 3 true ["a","b"]"#),
    ("{{ result.files[:1] }}", r#"[{"path":"src/z.rs","lines":7}]"#),
    ("{{ result.level }}", "low"),
    ("{% if fix_info %}{{ fix_info }}{% else %}nothing{% endif %}", "nothing"),
    ("{{ fix_info | default('none', true) }}, {{ fix_info | default('none') }}", "none, none"),
    ("{{ fix_info or 'none' }}", "none"),
    (
        "{% if fix_info is not none %}{{ fix_info }}{% endif %}{% if fix_info is none %}null{% endif %}",
        "null",
    ),
    ("{% if fix_info != none %}{{ fix_info }}{% endif %}.", "."),
    ("{% if result.note is defined %}{{ result.note }}{% endif %}.", "."),
    ("{{ result.note if result.note else 'no note' }}", "no note"),
    ("{{ result.note if result.note }}.", "."),
    ("{{ result.error.code | default('no code') }}", "no code"),
    (
        "{% if result.error.detail is defined %}{{ result.error.detail }}{{ result.error.code }}{% endif %}.",
        ".",
    ),
    ("{% if result.error and result.error.code > 3 %}{{ result.error.code }}{% endif %}.", "."),
    ("{% if not result.error %}fine{% else %}{{ result.error.code }}{% endif %}", "fine"),
    ("{% if result.error is none or result.error.code == 1 %}fine{% endif %}", "fine"),
    (
        "{% for f in result.files %}{{ loop.index }}/{{ loop.length }} {{ f.path }};{% endfor %}",
        "1/2 src/z.rs;2/2 a.rs;",
    ),
    ("{% for f in result.files if f.why %}{{ f.why }}{% else %}none{% endfor %}", "old"),
    (
        "{% for f in result.files %}{% set long = f.lines > 5 %}{{ long }} {% endfor %}",
        "true false ",
    ),
    ("{% for key, value in env | items %}{{ key }}={{ value }} {% endfor %}", "B=2 A=1 "),
    ("{% for key, value in env | dictsort %}{{ key }}={{ value }} {% endfor %}", "A=1 B=2 "),
    ("{% for key, value in env.items() %}{{ key }}={{ value }} {% endfor %}", "B=2 A=1 "),
    ("{% for key in env %}{{ env[key] }}{% endfor %}", "21"),
    (
        "{{ env.get('C', 'none') }} {{ env.keys() | join(' ') }} {{ env.values() | join(' ') }}",
        "none B A 2 1",
    ),
    (
        "{% for lines, files in result.files | groupby('lines') %}{{ lines }}:{{ files | length }} {% endfor %}",
        "2:1 7:1 ",
    ),
    ("{% for a, b in tags | zip(tags | reverse) %}{{ a }}{{ b }} {% endfor %}", "ab ba "),
    ("{{ result.files | map(attribute='path') | sort | join(', ') }}", "a.rs, src/z.rs"),
    ("{{ result.files | sum(attribute='lines') }} {{ tags | map('upper') | join }}", "9 AB"),
    (
        "{{ result.files | selectattr('why') | map(attribute='path') | first | default('-') }}",
        "a.rs",
    ),
    ("{{ result.files | map(attribute='why') | join('/') }}", "/old"),
    ("{% set name = 'x' ~ count %}{% with y = name %}{{ y }}{% endwith %}", "x3"),
    ("{% set text %}a {{ count }}{% endset %}{{ text | upper }}", "A 3"),
    ("{% filter upper | trim %} {{ title }} {% endfilter %}", "FIX <IT>"),
    ("{% if done %}{% set late = 1 %}{% else %}{% set late = 2 %}{% endif %}{{ late }}", "1"),
    ("{% if answer is mapping %}{{ answer.text }}{% else %}{{ answer | upper }}{% endif %}", "YES"),
    ("{{ anything.deep.list[1] }} {{ extra.b }}", "2 yes"),
    ("{{ anything.not.there | default('-') }}", "-"),
    ("{{ {'a': title, 'b': [1, none]} | tojson }}", r#"{"a":"Fix <it>","b":[1,null]}"#),
    ("{{ tags | tojson(indent=2) }}", "[\n  \"a\",\n  \"b\"\n]"),
    ("{{ 'one\ntwo\n\nthree' | indent(2) }}", "one\n  two\n\n  three"),
    ("{{ (tags | first) or '-' }}{{ tags[5] | default('-') }}", "a-"),
    ("{% for i in range(3) %}{{ loop.cycle('a', 'b') }}{% endfor %}", "aba"),
    ("{% raw %}{{ not this }}{% endraw %}{# nor this #}", "{{ not this }}"),
];

fn example() -> BTreeMap<String, Value> {
    values(json!({
        "title": "Fix <it>", "count": 3, "done": true, "fix_info": null, "tags": ["a", "b"],
        "env": { "B": "2", "A": "1" }, "anything": { "deep": { "list": [1, 2] } },
        "extra": { "a": "x", "b": "yes" }, "answer": "yes",
        "result": { "ok": true, "level": "low", "files": [
            { "path": "src/z.rs", "lines": 7 }, { "path": "a.rs", "lines": 2, "why": "old" } ] }
    }))
}

#[test]
fn a_variable_of_which_only_a_part_is_taken_is_read() {
    for (source, reads) in [
        ("{{ title[:3] }}", vec!["title"]),
        ("{{ (title ~ fix_info)[1:] }}{{ title }}", vec!["fix_info", "title"]),
        ("{% for tag in tags[:2] %}{{ tag[:1] }}{% endfor %}", vec!["tags"]),
    ] {
        assert_eq!(Template::compile(source).unwrap().reads(), reads, "{source}");
    }
}

#[test]
fn valid_templates_render_the_expected_text() {
    for (source, expected) in WRITTEN {
        assert_eq!(refusals(source), [""; 0], "{source}");
        let written = Template::compile(source).unwrap().render(&example());
        assert_eq!(written.as_deref(), Ok(*expected), "{source}");
    }
}

#[test]
fn lines_with_only_a_block_tag_are_removed_and_the_last_newline_is_kept() {
    let source = "Files:\n  {% for f in result.files %}\n  - {{ f.path }}\n  {% endfor %}\nEnd.\n";
    let text = Template::compile(source).unwrap().render(&example()).unwrap();
    assert_eq!(text, "Files:\n  - src/z.rs\n  - a.rs\nEnd.\n");
}

#[test]
fn numbers_and_the_order_of_members_are_preserved() {
    let template = Template::compile("{{ v }}").unwrap();
    for text in [
        "0",
        "-7",
        "1.5",
        "1.0",
        "18446744073709551615",
        "123456789012345678901234567890",
        r#"{"z":1,"a":{"y":null,"b":[true,1.5]}}"#,
        r#"["é","\"q\"",{}]"#,
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(template.render(&values(json!({ "v": value }))).as_deref(), Ok(text));
    }
}

#[test]
fn a_template_lists_the_variables_it_reads_and_can_be_sent_to_other_threads() {
    let source =
        "{% set x = a.b %}{{ x }}{% for i in range(c) %}{{ i }}{{ loop.index }}{{ d }}{% endfor %}";
    let template = Template::compile(source).unwrap();
    let copy = template.clone();
    let reads = std::thread::spawn(move || copy.reads()).join().unwrap();
    assert_eq!(reads, ["a", "c", "d"]);
    assert_eq!(template.source(), source);
}

#[test]
fn an_absent_value_at_run_time_is_an_error() {
    let template = Template::compile("one\n{{ env.MISSING }}").unwrap();
    assert_eq!(template.check(&types()), []);
    assert_eq!(
        template.render(&example()).unwrap_err().to_string(),
        "the template reads a value that is absent (line 2): guard it with {% if … %} or default(…)"
    );
}

#[test]
fn unbounded_work_and_unbounded_text_are_errors() {
    let bombs = [
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% for a in range(100000) %}{{ big }}{% endfor %}",
        "{% set x %}{% for a in range(100000) %}{{ big }}{% endfor %}{% endset %}{{ x }}",
        &format!(
            "{{% set x %}}{{% for a in range(100000) %}}{}{{% endfor %}}{{% endset %}}{{{{ x }}}}",
            "raw ".repeat(30_000)
        ),
        "{{ big | replace('x', big) }}",
        "{{ range(100000) | join(big) }}",
        "{{ lines | indent(100000) }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ tags | batch(1000000000, 'x') }}",
        "{{ range(100001) }}",
        // Many texts at once, each within the limit.
        "{{ range(100000) | map('replace', '1', big) | list | length }}",
        "{{ range(10000) | map('indent', 1000000, true) | list | length }}",
        "{{ none_at_all | map('default', big) | map('upper') | list | length }}",
        "{{ none_at_all | map('default', big) | map('trim', 'y') | list | length }}",
        "{{ none_at_all | map('default', big) | map('tojson') | list | length }}",
        &"{% set x = huge | replace('y', 'z') %}".repeat(16),
        &format!("{{{{ ({}) | length }}}}", vec!["huge"; 64].join(" ~ ")),
    ];
    let given = values(json!({
        "big": "x".repeat(10_000),
        "lines": "x\n".repeat(10_000),
        "tags": ["a"],
        "none_at_all": vec![(); 100_000],
        "huge": "x".repeat(9 << 20),
    }));
    for bomb in bombs {
        let error = Template::compile(bomb).unwrap().render(&given).unwrap_err().to_string();
        let words = ["steps", "longer than ", "more than 16 MiB", "at most", "parts", "too many"];
        assert!(
            words.iter().any(|word| error.contains(word)),
            "{}: {error}",
            &bomb[..40.min(bomb.len())]
        );
    }
}

#[test]
fn repeated_doubling_of_a_value_is_rejected_by_the_checker() {
    for step in [
        "x ~ x",
        "x + x",
        "[x, x]",
        "{'a': x, 'b': x}",
        "[x] | chain([x]) | list",
        "{'a': [x, x]}.a",
    ] {
        let steps = format!("{{% set x = {step} %}}").repeat(40);
        let found = refusals(&format!("{{% set x = title %}}{steps}{{{{ x | tojson }}}}"));
        assert!(
            found[0].contains("more than 64 values are concatenated here"),
            "{step}: {found:?}"
        );
    }
}

#[test]
fn nesting_does_not_exhaust_the_stack() {
    let many = 10_000;
    let nested = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{{{{ {}{inner}{} }}}}", open.repeat(n), close.repeat(n))
    };
    for count in [90, 140, 300, many] {
        let bombs = [
            nested("(", "1", ")", count),
            nested("[", "1", "]", count),
            nested("{'a': ", "1", "}", count),
            nested("not ", "1", "", count),
            nested("-", "1", "", count),
            nested("", "title", ".a", count),
            nested("", "title", "[0]", count),
            nested("", "title", "|upper", count),
            nested("", "1", " + 1", count),
            nested("", "1", " ~ 1", count),
            nested("1 if 1 else ", "1", "", count),
            format!("{{% set {}x{} = 1 %}}", "(".repeat(count), ")".repeat(count)),
            format!("{}x{}", "{% if 1 %}".repeat(count), "{% endif %}".repeat(count)),
            format!("{}x{}", "{% for a in [1] %}".repeat(count), "{% endfor %}".repeat(count)),
            format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(count)),
        ];
        for bomb in bombs {
            // Returning at all is enough: a stack overflow would abort the process.
            match Template::compile(&bomb) {
                Err(problems) => assert!(!problems.is_empty()),
                Ok(template) => {
                    let _problems = template.check(&types());
                    let _text = template.render(&example());
                    assert!(count < many, "{}", &bomb[..60]);
                }
            }
        }
    }
}

#[test]
fn nothing_makes_the_engine_panic() {
    let sources = [
        "{{ 1 is divisibleby 0 }}{{ count is divisibleby zero }}",
        "{% for x in tags %}{{ loop.cycle() }}{% endfor %}",
        "{% for x in tags %}{{ loop.cycle(*[]) }}{% endfor %}",
        "{{ tags[1:5:-1] }}{{ tags[9223372036854775807:] | list }}",
        "{{ range(9223372036854775807, -9223372036854775807, -1) }}",
        "{{ range(2147483647, -2147483647, -1) }}",
        "{{ 'x' | round }}{{ 1.5 | round(-400) }}{{ 1.5 | round(2000000000) }}",
        "{{ 'z' | int(base=99) }}{{ 'x' * -1 }}{{ 1 // 0 }}{{ 10 ** 1000 }}",
        "{{ tags | slice(0) }}{{ '%' | format }}{{ '%s %s' | format(1) }}",
        "\u{0}{{ '\\ud800' }}{%",
        "{{",
        "{%",
        "{#",
        "{{}}",
        "{%%}",
        "{% raw %}",
        "%}",
        "{% set %}",
        "{% for %}",
    ];
    let mut given = example();
    given.insert("zero".to_owned(), json!(0));
    for source in sources {
        if let Ok(template) = Template::compile(source) {
            let _problems = template.check(&types());
            let _text = template.render(&given);
        }
    }
}

mod whatever_passes_the_check_renders;
