//! Texts made to cost time or memory, each with the contract that reads it at the highest cost.

use counterfoil_contract::Contract;

/// A text that is made to be slow or large.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The name of its contract in [`contract`].
    pub(crate) contract: &'static str,
    make: fn(usize) -> String,
}

impl Shape {
    /// The text, about `size` bytes long.
    pub(crate) fn text(&self, size: usize) -> String {
        (self.make)(size)
    }
}

/// A contract for the shapes, by name.
pub(crate) fn contract(name: &str) -> Contract {
    let review = "fields:
  success: boolean
  summary: string
  findings: [{ id: string, file: path, line: count, severity: critical | major | minor, message: string }]
rules:
  - { id: ids-differ, unique: /findings/*/id }
  - { id: summary-when-failed, when: '!result.success', require: [summary] }
";
    let (framing, policy, body) = match name {
        "any" => ("any-json", "{}", review),
        "repair" => ("any-json", "{ repair: syntax }", review),
        "cut" => ("any-json", "{ repair: syntax, truncated: accept }", review),
        "fenced" => ("fenced-json", "{ repair: syntax }", review),
        "alone" => ("json-only", "{ repair: syntax }", review),
        "lenient" => (
            "any-json",
            "{ repair: syntax, coerce: all, unwrap: { keys: [result], strings: true }, salvage: [/findings] }",
            review,
        ),
        "closed" => ("any-json", "{ closed: true, salvage: [/findings] }", review),
        "block" => (
            "output-block",
            "{ coerce: all }",
            "fields: { status: a | b, note: string, files: [string] }\n",
        ),
        "free" => ("any-json", "{}", "schema: {}\n"),
        "list" => ("any-json", "{}", "schema: { type: array, items: { type: string } }\n"),
        "map" => (
            "any-json",
            "{}",
            "schema: { type: object, required: [m], properties: { m: { type: object, additionalProperties: { type: object, properties: { a: { type: integer } } } } } }\n",
        ),
        "unique" => ("any-json", "{}", "schema: { type: array, uniqueItems: true }\n"),
        "ruled" => (
            "any-json",
            "{}",
            "fields: { items: [{ id: string, n: count }] }
rules:
  - { id: pairs, check: 'result.items.all(a, result.items.exists(b, b.n == a.n))' }
  - { id: each, each: '/items/*', check: 'result.items.exists(b, b.id == item.id)' }
",
        ),
        other => panic!("no contract {other}"),
    };
    let yaml = format!(
        "contract: hostile/{name}\nversion: 1\nframing: {framing}\npolicy: {policy}\n{body}"
    );
    Contract::from_yaml(&yaml).unwrap()
}

fn fill(size: usize, piece: &str) -> String {
    piece.repeat(size / piece.len())
}

/// `head`, pieces numbered from 0 until the size is reached, `tail`.
fn numbered(size: usize, head: &str, tail: &str, piece: impl Fn(usize) -> String) -> String {
    let mut text = head.to_owned();
    let mut index = 0;
    while text.len() < size {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&piece(index));
        index += 1;
    }
    text + tail
}

fn lines(size: usize, head: &str, tail: &str, piece: impl Fn(usize) -> String) -> String {
    let mut text = head.to_owned();
    let mut index = 0;
    while text.len() < size {
        text.push_str(&piece(index));
        text.push('\n');
        index += 1;
    }
    text + tail
}

const HEAD: &str = r#"{"success": true, "summary": "s", "findings": ["#;

fn finding(index: usize) -> String {
    format!(r#"{{"id":"{index}","file":"a.rs","line":1,"severity":"major","message":"m"}}"#)
}

/// Every shape.
#[rustfmt::skip]
pub(crate) fn shapes() -> Vec<Shape> {
    let shape = |name, contract, make| Shape { name, contract, make };
    vec![
        shape("unknown keys", "any", |n| numbered(n, r#"{"success":true,"summary":"s","findings":[],"#, "}", |i| format!("\"k{i}\":1"))),
        shape("unknown keys, closed", "closed", |n| numbered(n, r#"{"success":true,"summary":"s","findings":[],"#, "}", |i| format!("\"k{i}\":1"))),
        shape("unknown keys, lenient", "lenient", |n| numbered(n, r#"{"success":true,"summary":"s","findings":[],"#, "}", |i| format!("\"k{i}\":1"))),
        shape("unknown keys in items", "any", |n| numbered(n, HEAD, "]}", |i| format!(r#"{{"id":"{i}","file":"a","line":1,"severity":"major","message":"m","x{i}":1,"y":[]}}"#))),
        shape("unknown keys in items, closed", "closed", |n| numbered(n, HEAD, "]}", |i| format!(r#"{{"id":"{i}","file":"a","line":1,"severity":"major","message":"m","x{i}":1}}"#))),
        shape("unknown keys in one item", "any", |n| numbered(n, r#"{"success":true,"summary":"s","findings":[{"id":"1","file":"a","line":1,"severity":"major","message":"m","#, "}]}", |i| format!("\"k{i}\":1"))),
        shape("unknown keys below a long key", "map", |n| { let k = "k".repeat(n / 2); numbered(n, &format!("{{\"m\":{{\"{k}\":{{"), "}}}", |i| format!("\"k{i}\":1")) }),
        shape("wrong types below a long key", "map", |n| { let k = "k".repeat(n / 2); numbered(n, &format!("{{\"m\":{{\"{k}\":1,"), "}}", |i| format!("\"k{i}\":1")) }),
        shape("unknown keys in a block", "block", |n| lines(n, "---OUTPUT---\nstatus: a\nnote: n\nfiles: []\n", "---END---\n", |i| format!("k{i}: 1"))),
        shape("unknown words in a block", "block", |n| lines(n, "---OUTPUT---\nstatus: a\nnote: n\nfiles: []\n", "---END---\n", |i| format!("key_{i}: [x, y]"))),
        shape("known keys in a block", "block", |n| lines(n, "---OUTPUT---\n", "---END---\n", |_| "status: a".into())),
        shape("differing keys in a block", "block", |n| lines(n, "---OUTPUT---\n", "---END---\n", |i| format!("status: {i}"))),
        shape("lines below in a block", "block", |n| lines(n, "---OUTPUT---\nstatus: a\nfiles: x\n", "---END---\n", |i| format!("  - item {i}"))),
        shape("lines without colon in a block", "block", |n| lines(n, "---OUTPUT---\nstatus: a\nfiles: []\nnote: n\nstatus: b\n", "---END---\n", |_| "word".into())),
        shape("long list in a block", "block", |n| format!("---OUTPUT---\nstatus: a\nnote: n\nfiles: [{}]\n---END---\n", fill(n, "a, "))),
        shape("open lists in a block", "block", |n| lines(n, "---OUTPUT---\nstatus: a\nnote: n\nfiles: [\n", "---END---\n", |_| "[x".into())),
        shape("long value and lines in a block", "block", |n| lines(n, &format!("---OUTPUT---\nstatus: a\nnote: n\nfiles: [{}\n", "x".repeat(n / 2)), "---END---\n", |_| "x".into())),
        shape("long quoted value and lines in a block", "block", |n| lines(n, &format!("---OUTPUT---\nstatus: a\nnote: n\nfiles: \"{}\n", "x".repeat(n / 2)), "---END---\n", |_| "x".into())),
        shape("long list and lines in a block", "block", |n| lines(n, &format!("---OUTPUT---\nstatus: a\nnote: n\nfiles: [{}]\n", fill(n / 2, "x,")), "---END---\n", |_| "x y".into())),
        shape("many blocks", "block", |n| lines(n, "", "", |_| "---OUTPUT---\nstatus: a\nnote: n\nfiles: []\n---END---".into())),
        shape("one open block", "block", |n| lines(n, "---OUTPUT---\nstatus: a\n", "", |i| format!("k{i}: 1"))),
        shape("nested opened strings", "repair", |n| fill(n, r#"{"a":{"b":""#)),
        shape("nested opened strings, known", "repair", |n| fill(n, r#"{"success":{"summary":""#)),
        shape("nested opened strings, cut", "cut", |n| fill(n, r#"{"a":{"b":""#)),
        shape("nested opened strings, fenced", "fenced", |n| format!("```json\n{}\n```\n", fill(n, r#"{"a":{"b":""#))),
        shape("nested opened strings on lines", "repair", |n| fill(n, "{\"a\":{\"b\":\"\n")),
        shape("opened strings", "repair", |n| fill(n, "{\"a\": \"x ")),
        shape("opened strings, cut", "cut", |n| fill(n, "{\"a\": \"x ")),
        shape("opened lists of strings", "repair", |n| fill(n, r#"["a","#)),
        shape("opened lists of texts", "repair", |n| fill(n, r#"[""#)),
        shape("single quotes", "repair", |n| fill(n, "{'a': 'x ")),
        shape("single quoted members", "repair", |n| numbered(n, "{'success': true, 'summary': 's', 'findings': [], ", "}", |i| format!("'k{i}': 'v'"))),
        shape("bare members", "repair", |n| numbered(n, "{success: true, summary: s, findings: [], ", "}", |i| format!("k{i}: word"))),
        shape("comments", "repair", |n| numbered(n, r#"{"success":true,"summary":"s","findings":["#, "]}", |_| "/* c */ \"a\"".into())),
        shape("unescaped quotes", "repair", |n| format!(r#"{{"success":true,"summary":"{}","findings":[]}}"#, fill(n, "say \"x\" so "))),
        shape("raw line breaks", "repair", |n| format!("{{\"success\":true,\"summary\":\"{}\",\"findings\":[]}}", fill(n, "line\n"))),
        shape("bad escapes", "repair", |n| format!(r#"{{"success":true,"summary":"{}","findings":[]}}"#, fill(n, r"\d+ "))),
        shape("trailing commas", "repair", |n| numbered(n, r#"{"success":true,"summary":"s","findings":["#, "]}", |_| "{\"id\":\"1\",}".into())),
        shape("python literals", "repair", |n| numbered(n, r#"{"success":True,"summary":"s","findings":["#, "]}", |_| "None".into())),
        shape("smart quotes", "repair", |n| numbered(n, r"{“success”:true,“summary”:“s”,“findings”:[", "]}", |_| "“x”".into())),
        shape("open lists", "any", |n| fill(n, "[")),
        shape("open lists, repair", "repair", |n| fill(n, "[")),
        shape("open objects", "any", |n| fill(n, "{\"a\":")),
        shape("open objects, repair", "repair", |n| fill(n, "{\"a\":")),
        shape("open objects, cut", "cut", |n| fill(n, "{\"a\":")),
        shape("open known objects", "repair", |n| fill(n, "{\"summary\":")),
        shape("deep lists", "any", |n| "[".repeat(n / 2) + &"]".repeat(n / 2)),
        shape("deep lists, repair", "repair", |n| "[".repeat(n / 2) + &"]".repeat(n / 2)),
        shape("deep objects", "repair", |n| fill(n * 5 / 6, "{\"a\":") + "1" + &"}".repeat(n / 6)),
        shape("bad fences", "fenced", |n| fill(n, "```json\n{\"a\": \n```\n")),
        shape("fences", "fenced", |n| fill(n, "```json\n{\"success\":true}\n```\n")),
        shape("valid fences", "fenced", |n| fill(n, "```json\n{\"success\":true,\"summary\":\"s\",\"findings\":[]}\n```\n")),
        shape("open fences", "fenced", |n| fill(n, "```json\n")),
        shape("fences of growing length", "fenced", |n| { let mut t = String::new(); let mut k = 3; while t.len() < n { t.push_str(&"`".repeat(k)); t.push_str("json\n{\n"); k += 1; } t }),
        shape("fences with broken strings", "fenced", |n| fill(n, "```json\n{\"success\": \"x\n```\n")),
        shape("tags", "any", |n| fill(n, "<think>\n</think>\n")),
        shape("tags after a result", "any", |n| numbered(n / 2, HEAD, "]}", finding) + "\n" + &fill(n / 2, "<think>\n</think>\n")),
        shape("results in tags after a result", "any", |n| numbered(n / 2, HEAD, "]}", finding) + "\n" + &fill(n / 2, "<think>\n{\"success\":true}\n</think>\n")),
        shape("open tags", "any", |n| fill(n, "<think>\n")),
        shape("closing tags", "any", |n| fill(n, "</think>\n")),
        shape("results", "any", |n| fill(n, "{\"success\":true,\"summary\":\"s\",\"findings\":[]}\n")),
        shape("results, repair", "repair", |n| fill(n, "{'success':true,'summary':'s','findings':[]}\n")),
        shape("rejected results", "any", |n| fill(n, "{\"success\":true,\"summary\":\"s\"}\n")),
        shape("results, alone", "alone", |n| fill(n, "{\"success\":true}\n")),
        shape("empty objects", "any", |n| fill(n, "{}")),
        shape("empty objects, repair", "repair", |n| fill(n, "{}")),
        shape("empty lists", "any", |n| fill(n, "[]")),
        shape("empty lists, free", "free", |n| fill(n, "[]")),
        shape("empty objects in a broken list", "any", |n| format!("[{}", fill(n, "{},"))),
        shape("empty objects in a broken list, repair", "repair", |n| format!("[{}", fill(n, "{},"))),
        shape("objects in a broken list, repair", "repair", |n| format!("[{}", fill(n, "{'a':1},"))),
        shape("broken objects", "any", |n| fill(n, "{\"a\":1,x ")),
        shape("broken objects, repair", "repair", |n| fill(n, "{\"a\":1,x ")),
        shape("odd keys", "any", |n| fill(n, "{a: b ")),
        shape("list of ones", "free", |n| format!("[{}1]", fill(n, "1,"))),
        shape("list of ones in findings", "any", |n| format!("{HEAD}{}1]}}", fill(n, "1,"))),
        shape("list of ones for texts", "list", |n| format!("[{}1]", fill(n, "1,"))),
        shape("list of ones, lenient", "lenient", |n| format!("{HEAD}{}1]}}", fill(n, "1,"))),
        shape("list of lists", "free", |n| format!("[{}[]]", fill(n, "[],"))),
        shape("list of objects", "free", |n| format!("[{}{{}}]", fill(n, "{},"))),
        shape("list of small objects", "free", |n| format!("[{}{{}}]", fill(n, "{\"a\":1},"))),
        shape("empty findings", "any", |n| format!("{HEAD}{}{{}}]}}", fill(n, "{},"))),
        shape("empty findings, lenient", "lenient", |n| format!("{HEAD}{}{{}}]}}", fill(n, "{},"))),
        shape("findings", "any", |n| numbered(n, HEAD, "]}", finding)),
        shape("findings with the same id", "any", |n| numbered(n, HEAD, "]}", |_| finding(1))),
        shape("findings with wrong enums", "any", |n| numbered(n, HEAD, "]}", |i| finding(i).replace("major", "majr"))),
        shape("findings with wrong enums, lenient", "lenient", |n| numbered(n, HEAD, "]}", |i| finding(i).replace("major", "majr"))),
        shape("findings to coerce", "lenient", |n| numbered(n, HEAD, "]}", |i| finding(i).replace("major", "MAJOR").replace(":1,", ":\"1\","))),
        shape("findings with placeholders", "any", |n| numbered(n, HEAD, "]}", |i| finding(i).replace("\"m\"", "\"<what>\""))),
        shape("findings with ellipses", "any", |n| numbered(n, HEAD, "]}", |i| finding(i).replace("\"m\"", "\"...\",\"...\":1"))),
        shape("duplicate keys", "any", |n| numbered(n, "{", "}", |_| "\"success\":true".into())),
        shape("differing keys", "any", |n| numbered(n, "{", "}", |i| format!("\"summary\":\"{i}\""))),
        shape("duplicates in items", "any", |n| numbered(n, HEAD, "]}", |_| r#"{"id":"1","id":"2"}"#.into())),
        shape("large duplicates", "any", |n| { let big = fill(n / 4, "[],"); format!(r#"{{"success":[{big}1],"success":[{big}2],"success":[{big}3],"success":[{big}4]}}"#) }),
        shape("numbers", "free", |n| format!("[{}1]", "9".repeat(n))),
        shape("one number", "any", |n| format!(r#"{{"success":true,"summary":"s","findings":[{{"id":"1","file":"a","line":{},"severity":"major","message":"m"}}]}}"#, "9".repeat(n))),
        shape("one exponent", "any", |n| format!(r#"{{"success":true,"summary":"s","findings":[{{"id":"1","file":"a","line":1e{},"severity":"major","message":"m"}}]}}"#, "9".repeat(n))),
        shape("exponents", "any", |n| numbered(n, HEAD, "]}", |_| r#"{"id":"1","file":"a","line":1e999999,"severity":"major","message":"m"}"#.into())),
        shape("large numbers", "any", |n| numbered(n, HEAD, "]}", |_| format!(r#"{{"id":"1","file":"a","line":{},"severity":"major","message":"m"}}"#, "9".repeat(4000)))),
        shape("one number, lenient", "lenient", |n| format!(r#"{{"success":true,"summary":"s","findings":[{{"id":"1","file":"a","line":"{}","severity":"major","message":"m"}}]}}"#, "9".repeat(n))),
        shape("scalar", "any", |n| "9".repeat(n)),
        shape("scalar text", "free", |n| format!("\"{}\"", "x".repeat(n))),
        shape("escapes", "any", |n| format!(r#"{{"success":true,"summary":"{}","findings":[]}}"#, fill(n, "\\u00e9\\n"))),
        shape("escaped keys", "any", |n| numbered(n, "{", "}", |i| format!("\"\\u0073{i}\":1"))),
        shape("backslashes", "repair", |n| fill(n, "{\"\\")),
        shape("long line", "any", |n| fill(n, "word ")),
        shape("long line before a result", "any", |n| fill(n, "wörd ") + r#"{"success":true}"#),
        shape("long string", "any", |n| format!(r#"{{"success":true,"summary":"{}","findings":[]}}"#, "x".repeat(n))),
        shape("long string of the wrong type", "any", |n| format!(r#"{{"success":"{}","summary":"s","findings":[]}}"#, "x".repeat(n))),
        shape("long strings of the wrong enum", "any", |n| numbered(n, HEAD, "]}", |i| finding(i).replace("major", &"x".repeat(2000)))),
        shape("long key", "any", |n| format!(r#"{{"success":true,"{}":1}}"#, "k".repeat(n))),
        shape("long keys", "any", |n| numbered(n, r#"{"success":true,"summary":"s","findings":[],"#, "}", |i| format!("\"{}{i}\":1", "k".repeat(1000)))),
        shape("quote marks", "repair", |n| fill(n, "> {\n")),
        shape("lists opened in line comments", "repair", |n| fill(n, "\n#[\"")),
        shape("lists opened in block comments", "repair", |n| fill(n, "\n/*[\"#*/")),
        shape("lists opened in long block comments", "repair", |n| fill(n, "\n/*[\"#\n*/")),
        shape("lists opened in comments of a thought", "repair", |n| fill(n, "\n#[\"") + "\n</think>"),
        shape("lists opened in quoted comments", "repair", |n| fill(n, "\n> #[\"")),
        shape("quoted result", "any", |n| format!("> {{\"success\":true,\"summary\":\"s\",\"findings\":[\n{}> 1]}}", fill(n, "> 1,\n"))),
        shape("quotes", "repair", |n| fill(n, "\"")),
        shape("output markers", "any", |n| fill(n, "---OUTPUT---\n")),
        shape("blocks beside json", "any", |n| fill(n, "---OUTPUT---\nsuccess: true\nsummary: s\n---END---\n")),
        shape("strings with json", "lenient", |n| numbered(n, r#"{"result":["#, "]}", |_| r#""{\"success\":true}""#.into())),
        shape("json in a string", "lenient", |n| { let inner = fill(n, "1,"); format!("{{\"result\":\"{{\\\"success\\\":true,\\\"findings\\\":[{inner}1]}}\"}}") }),
        shape("json in strings in strings", "lenient", |n| { let mut t = "x".repeat(n / 200); for _ in 0..7 { t = serde_json::to_string(&format!("{{\"result\":{}}}", serde_json::to_string(&t).unwrap())).unwrap(); if t.len() > n { break; } } format!("{{\"result\":{t}}}") }),
        shape("wrapped objects", "lenient", |n| { let k = n / 12; fill(k * 10, "{\"result\":") + "1" + &"}".repeat(k) }),
        shape("unique numbers", "unique", |n| numbered(n, "[", "]", |i| i.to_string())),
        shape("unique lists", "unique", |n| numbered(n, "[", "]", |i| format!("[{i}]"))),
        shape("unique objects", "unique", |n| numbered(n, "[", "]", |i| format!("{{\"a\":{i}}}"))),
        shape("rules over pairs", "ruled", |n| numbered(n, r#"{"items":["#, "]}", |i| format!(r#"{{"id":"{i}","n":{i}}}"#))),
        shape("alternatives left in", "any", |n| format!(r#"{{"success": true|false, "summary": {}}}"#, fill(n, "a|"))),
        shape("keys in brackets", "any", |n| fill(n, "[{\"success\":")),
        shape("bom and blanks", "any", |n| "\u{feff}".to_owned() + &" ".repeat(n)),
        shape("line breaks", "any", |n| "\n".repeat(n)),
        shape("blanks between tokens", "repair", |n| {
            format!("{{'success': true,\n{}}}", fill(n, "b:                  1,\n"))
        }),
        shape("beginnings with blanks", "repair", |n| fill(n, "{a                   ")),
        shape("beginnings, then comments", "repair", |n| {
            format!("\"{}\"{}", fill(n / 2, "{a"), fill(n / 2, "/*c*/"))
        }),
        shape("ansi codes", "repair", |n| format!("{{{}\"success\":true}}", fill(n, "\u{1b}[1m"))),
    ]
}
