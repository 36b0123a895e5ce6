//! The parts of the public API that an embedder meets first.

use counterfoil_contract::fields::short_type;
use counterfoil_contract::policy::{UnknownFields, Unwrap};
use counterfoil_contract::render::prompt::{self, Delivery};
use counterfoil_contract::source::Source;
use counterfoil_contract::{
    AgentOutput, Code, Context, Contract, Definition, Framing, ParseError, Policy, Stream, parse,
    parse_as,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn contract() -> Contract {
    let schema = json!({
        "type": "object",
        "properties": { "ok": { "type": "boolean" }, "note": { "type": "string" } },
        "required": ["ok"],
    });
    Contract::from_schema(&schema, Framing::AnyJson, Policy::default()).unwrap()
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Broken {
    ok: bool,
}

impl AgentOutput for Broken {
    fn definition() -> Definition {
        Definition::for_type::<Self>("no namespace", 1, Framing::AnyJson)
    }
}

#[test]
fn parse_returns_an_error_for_a_contract_that_does_not_compile() {
    let error = parse::<Broken>(r#"{"ok": true}"#).unwrap_err();
    assert!(error.report().is_none());
    let ParseError::Contract(error) = error else { panic!("{error}") };
    assert_eq!(error.problems[0].code, Code::BadId);
}

static SCHEMAS_MADE: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, Deserialize)]
struct Counted {
    ok: bool,
}

impl JsonSchema for Counted {
    fn schema_name() -> Cow<'static, str> {
        "Counted".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        SCHEMAS_MADE.fetch_add(1, Ordering::SeqCst);
        schemars::json_schema!({
            "type": "object",
            "properties": { "ok": { "type": "boolean" } },
            "required": ["ok"],
        })
    }
}

#[test]
fn parse_as_compiles_once_for_each_type_and_policy() {
    let lenient = Policy::default();
    for _ in 0..3 {
        assert!(parse_as::<Counted>(r#"Done: {"ok": true}"#, &lenient).unwrap().ok);
    }
    assert_eq!(SCHEMAS_MADE.load(Ordering::SeqCst), 1);

    let unwrap = Unwrap { keys: vec!["result".into()], ..Unwrap::default() };
    let unwrapping = Policy { unwrap, ..Policy::default() };
    let wrapped = r#"{"result": {"ok": true}}"#;
    for _ in 0..3 {
        assert!(parse_as::<Counted>(wrapped, &unwrapping).unwrap().ok);
        assert!(parse_as::<Counted>(wrapped, &lenient).is_err(), "the other policy still applies");
    }
    assert_eq!(SCHEMAS_MADE.load(Ordering::SeqCst), 2);

    // The cache is bounded: many policies push the first one out, and it is compiled again.
    for max_bytes in 1000..1200 {
        let policy = Policy { max_bytes, ..Policy::default() };
        parse_as::<Counted>(r#"{"ok": true}"#, &policy).unwrap();
    }
    assert_eq!(SCHEMAS_MADE.load(Ordering::SeqCst), 202);
    parse_as::<Counted>(r#"{"ok": true}"#, &lenient).unwrap();
    assert_eq!(SCHEMAS_MADE.load(Ordering::SeqCst), 203);
}

#[test]
fn a_policy_that_does_not_fit_the_type_is_an_error() {
    let policy = Policy { salvage: vec!["/nowhere".into()], ..Policy::default() };
    let error = parse_as::<Counted>(r#"{"ok": true}"#, &policy).unwrap_err();
    let ParseError::Contract(error) = error else { panic!("{error}") };
    assert_eq!(error.problems[0].code, Code::BadPolicy);
}

#[test]
fn a_shared_stream_outlives_the_variable_that_holds_its_contract() {
    fn start() -> Stream<'static> {
        Arc::new(contract()).shared_stream()
    }
    let text = "Some prose, then {\"ok\": 1, \"note\": \"é\"}, and more.";
    let streamed = std::thread::spawn(move || {
        let mut stream = start();
        for character in text.chars() {
            stream.push(character.encode_utf8(&mut [0; 4]));
        }
        stream.finish()
    });
    assert_eq!(streamed.join().unwrap(), contract().check(text));
}

#[test]
fn spans_have_character_offsets_beside_byte_offsets() {
    let text = "Grüße → {\"ok\": \"naïve\", \"note\": \"x\"}";
    let report = contract().check(text);
    let span = report.violations[0].span.unwrap();
    assert_eq!(&text[span.start..span.end], "\"naïve\"");
    let characters: Vec<char> = text.chars().collect();
    let range = span.char_range(text);
    assert_eq!(characters[range].iter().collect::<String>(), "\"naïve\"");

    // A span that ends inside a character, or behind the text, is cut down.
    assert_eq!(Source::whole(text).span(0, 3).char_range(text), 0..2);
    assert_eq!(Source::whole(text).span(0, 1000).char_range(text), 0..characters.len());
}

#[test]
fn the_serialized_form_of_a_span_has_its_four_fields() {
    let span = Source::whole("ab\ncd").span(3, 5);
    let fields = json!({ "start": 3, "end": 5, "line": 2, "column": 1 });
    assert_eq!(serde_json::to_value(span).unwrap(), fields);
}

#[test]
fn a_contract_gives_its_prompts() {
    let contract = contract();
    assert_eq!(contract.prompt(), prompt::suffix(&contract, Delivery::Text));
    assert!(contract.prompt().contains("ok"), "{}", contract.prompt());

    let report = contract.check(r#"{"ok": "yes"}"#);
    let repair = contract.repair(&report);
    assert_eq!(repair, prompt::repair(&contract, &report, Delivery::Text));
    assert!(repair.contains("/ok"), "{repair}");
}

/// A prompt, the repair of a missing, of an unfenced and of a wrong result: each names one way to
/// return it.
#[test]
fn a_prompt_names_one_way_to_return_the_result() {
    let submit = Delivery::Tool { name: "submit_result", server: Some("counterfoil") };
    let tool = Delivery::Tool { name: "StructuredOutput", server: None };
    let ways = [
        "fence",
        "---OUTPUT---",
        "one JSON object and nothing else",
        "submit_result",
        "StructuredOutput",
    ];
    for framing in ["fenced-json", "output-block"] {
        let contract = Contract::from_yaml(&format!(
            "contract: acme/ok\nversion: 1\nframing: {framing}\nfields: {{ ok: boolean, note?: string }}\nexamples: [{{ ok: false }}]\n"
        ));
        let contract = contract.unwrap();
        let text = if framing == "fenced-json" { ways[0] } else { ways[1] };
        for (delivery, way) in [
            (Delivery::Text, text),
            (Delivery::Message, ways[2]),
            (submit, ways[3]),
            (tool, ways[4]),
        ] {
            let replies = [
                "I am done.",
                "",
                "{\"ok\": true}",
                "```json\n{\"ok\": 7}\n```",
                "```json\n{\"ok\": true} {\"ok\": true}\n```",
                "---OUTPUT---\nok: 7\n---END---",
            ];
            let mut prompts = vec![prompt::suffix(&contract, delivery)];
            prompts.extend(
                replies.map(|reply| prompt::repair(&contract, &contract.check(reply), delivery)),
            );
            for prompt in prompts {
                let named: Vec<&str> =
                    ways.into_iter().filter(|way| prompt.contains(way)).collect();
                assert_eq!(named, [way], "{framing} {delivery:?}: {prompt}");
            }
        }
    }
}

#[test]
fn json_definitions_are_strict() {
    let not_json = Definition::from_json("{\n\"contract\": ,}", "a.json").unwrap_err();
    assert_eq!(not_json.problems[0].code, Code::ContractSyntax);
    assert_eq!(not_json.problems[0].line, Some(2));

    let twice = r#"{"contract": "a/b", "version": 1, "version": 2, "fields": {}}"#;
    let error = Definition::from_json(twice, "a.json").unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");

    let unknown = r#"{"contract": "a/b", "version": 1, "feilds": {}}"#;
    let error = Definition::from_json(unknown, "a.json").unwrap_err();
    assert!(error.to_string().contains("feilds"), "{error}");
}

#[test]
fn errors_are_types_with_a_message() {
    let error = "any".parse::<Framing>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown framing 'any'; known: json-only, fenced-json, any-json, output-block"
    );
    let error = short_type(&json!({ "a": "strng", "b": ["int", "int"] })).unwrap_err();
    assert_eq!(error.0.len(), 2);
    assert_eq!(
        error.to_string(),
        "a: unknown type 'strng'; did you mean 'string'?; \
         b: a list has one type for all its items, as in [string]"
    );
}

#[test]
fn the_root_of_the_crate_stays_small() {
    let source = include_str!("../../src/lib.rs");
    let names: usize = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub use "))
        .map(|path| path.split("::").last().unwrap_or_default().split(',').count())
        .sum();
    assert!((20..=26).contains(&names), "{names} names at the root of the crate");
}

#[test]
fn absolute_paths_inside_the_workspace_become_relative() {
    let contract = Contract::from_yaml(
        "contract: acme/paths\nversion: 1\nfields: { files: [path], main: path }",
    )
    .unwrap();
    let workspace = vec!["/home/dev/repo".to_owned(), "/real/repo/".to_owned()];
    let context = Arc::new(Context { workspace, ..Context::default() });
    let policy = contract.policy().with_context(&context);
    let text = r#"{"files": ["/home/dev/repo/src/a.rs", "b.rs", "/real/repo//c.rs"], "main": "/home/dev/repo/d.rs"}"#;
    let report = contract.check_with(text, &policy);
    assert_eq!(
        report.value,
        Some(json!({"files": ["src/a.rs", "b.rs", "c.rs"], "main": "d.rs"})),
        "{report:#?}"
    );
    let pointers: Vec<&str> =
        report.provenance.coercions.iter().map(|coercion| coercion.pointer.as_str()).collect();
    assert_eq!(pointers, ["/files/0", "/files/2", "/main"]);
    assert!(!contract.check(text).is_accepted(), "the workspace is not known");
    assert!(!contract.check_with(text, &policy.strictly()).is_accepted());
    for path in [
        "/etc/passwd",
        "/home/dev/repository/a.rs",
        "/home/dev/repo",
        "/home/dev/repo/",
        "/home/dev/repo/../x",
        "/home/dev",
    ] {
        let text = json!({"files": [path], "main": "d.rs"}).to_string();
        let report = contract.check_with(&text, &policy);
        assert_eq!(report.codes(), [Code::NotRelativePath], "{path}");
    }
}

#[test]
fn a_failure_is_part_of_the_prompt() {
    let contract = Contract::from_yaml(
        "contract: acme/done\nversion: 1\nfields: { success: boolean, errors?: [string] }",
    )
    .unwrap();
    assert!(
        contract.prompt().contains("`errors` must say what went wrong when `success` is false")
    );
}

#[test]
fn a_prompt_says_once_that_other_fields_are_refused() {
    let sentence = |fields: &str, policy: &str| {
        let text = format!("contract: a/b\nversion: 1\nfields: {fields}\npolicy: {policy}");
        let contract = Contract::compile(Definition::from_yaml(&text, "a.yaml").unwrap()).unwrap();
        let prompt = contract.prompt();
        let found: Vec<&str> =
            prompt.lines().filter(|line| line.contains("other fields")).collect();
        found.join("|")
    };
    assert_eq!(sentence("{ ok: boolean }", "{}"), "");
    for policy in ["{ unknown_fields: refuse }", "{ closed: true }"] {
        assert_eq!(sentence("{ ok: boolean }", policy), "A result with other fields is refused.");
    }
    assert_eq!(
        sentence("{ ok: boolean, inner: { more: any }, n: [any] }", "{ unknown_fields: refuse }"),
        "A result with other fields is refused, except inside of `more`, `n`."
    );
}

#[test]
fn unknown_fields_are_seen_in_lists_and_maps() {
    let schema = json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/one"}},
            "map": {"type": "object", "additionalProperties": {"$ref": "#/$defs/one"}}
        },
        "$defs": {"one": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}
    });
    let definition = Definition::new("acme/deep", 1, Framing::AnyJson, schema);
    let contract = Contract::compile(definition).unwrap();
    let contract = contract.with_unknown_fields(UnknownFields::Refuse).unwrap();
    let one = json!({"ok": true, "finding": "critical"});
    for (value, pointer) in [
        (json!({"list": [one]}), "/list/0/finding"),
        (json!({"map": {"a": one}}), "/map/a/finding"),
    ] {
        let report = contract.check_value(&value);
        assert_eq!(report.codes(), [Code::UnknownField], "{pointer}");
        assert_eq!(report.violations[0].pointer, pointer);
    }
    assert!(contract.check_value(&json!({"map": {"a": {"ok": true}}})).is_accepted());
}

#[test]
fn the_block_of_a_label_is_named() {
    let contract = Contract::from_yaml(
        "contract: acme/fenced\nversion: 1\nframing: fenced-json\nfields: { ok: boolean }",
    )
    .unwrap();
    for (text, received) in [
        ("```python\n{\"ok\": true}\n```", "JSON in a block labelled `python`"),
        ("```json5 x\n{\"ok\": true}", "JSON in a block labelled `json5`"),
        ("```py\nx\n```\n{\"ok\": true}", "JSON outside any fence"),
        ("{\"ok\": true}\n```py\nx\n```", "JSON outside any fence"),
    ] {
        let mut stream = contract.stream();
        for piece in text.split_inclusive(' ') {
            stream.push(piece);
        }
        for report in [contract.check(text), stream.finish()] {
            assert_eq!(report.codes(), [Code::NotFenced], "{text}");
            assert_eq!(report.violations[0].received, received, "{text}");
        }
    }
}

/// Collects the fields of events.
#[derive(Clone, Default)]
struct Events(Arc<std::sync::Mutex<Vec<(String, String)>>>);

impl tracing::Subscriber for Events {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields<'f>(&'f mut Vec<(String, String)>);
        impl tracing::field::Visit for Fields<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push((field.name().to_owned(), format!("{value:?}")));
            }
        }
        event.record(&mut Fields(&mut self.0.lock().unwrap()));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_type_that_json_schema_does_not_have_is_named() {
    let problem = |schema: serde_json::Value| {
        let policy = Policy::default();
        let error = Contract::from_schema(&schema, Framing::AnyJson, policy).unwrap_err();
        let problem = error.problems[0].clone();
        (problem.place, problem.message, problem.hint)
    };
    let types = "the types are string, number, integer, boolean, object, array, null";
    for (ty, message, hint) in [
        (json!("strng"), "'strng' is no type", "did you mean 'string'?"),
        (json!("bool"), "'bool' is no type", "did you mean 'boolean'?"),
        (json!(["string", "nul"]), "'nul' is no type", "did you mean 'null'?"),
        (json!("zzz"), "'zzz' is no type", types),
        (json!(5), "a type is a name or a list of names", types),
        (json!([]), "the list of types is empty or has one twice", types),
    ] {
        let (place, found, advice) = problem(json!({"properties": {"type": {"type": ty}}}));
        assert_eq!((place.as_str(), found.as_str()), ("schema/properties/type/type", message));
        assert_eq!(advice, hint, "{message}");
    }
    let (_, _, hint) = problem(json!({"pattern": "(?=a)"}));
    assert!(hint.contains("patterns may not look around or back"), "{hint}");
    let (_, _, hint) = problem(json!({"minLength": "3"}));
    assert_eq!(hint, "see JSON Schema 2020-12");
}

#[test]
fn a_rejection_is_logged_with_its_place() {
    let events = Events::default();
    tracing::subscriber::with_default(events.clone(), || contract().check(r#"{"ok": 7}"#));
    let found = events.0.lock().unwrap();
    let field =
        |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
    assert_eq!(field("pointer"), Some("\"/ok\""));
    assert_eq!(field("expected"), Some("\"boolean\""));
    assert_eq!(field("received"), Some("\"integer 7\""));
}

#[test]
fn the_repair_of_a_placeholder_asks_for_the_real_value() {
    let text = "contract: acme/block\nversion: 1\nframing: output-block\nfields: { ok: boolean, note: string }";
    let contract = Contract::from_yaml(text).unwrap();
    assert!(contract.prompt().contains("\nnote: [string]\n"), "{}", contract.prompt());
    let echoed = "---OUTPUT---\nok: true\nnote: [string]\n---END---\n";
    let repair = contract.repair(&contract.check(echoed));
    let line = "- /note (line 3): `note` still holds the placeholder \"[string]\" of the template; \
        replace the placeholder with the real value\n";
    assert!(repair.contains(line), "{repair}");
    // Sent in another way, it is none either.
    let report = contract.check_value(&json!({"ok": true, "note": "[string]"}));
    assert_eq!(report.codes(), [Code::Placeholder]);
    assert!(contract.check_value(&json!({"ok": true, "note": "a [string]"})).is_accepted());
}
