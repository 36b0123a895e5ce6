//! The parts of the public API that an embedder meets first.

use counterfoil_contract::fields::short_type;
use counterfoil_contract::policy::Unwrap;
use counterfoil_contract::render::prompt;
use counterfoil_contract::source::Source;
use counterfoil_contract::{
    AgentOutput, Code, Contract, Definition, Framing, ParseError, Policy, Stream, parse, parse_as,
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
    assert_eq!(contract.prompt(), prompt::suffix(&contract));
    assert!(contract.prompt().contains("ok"), "{}", contract.prompt());

    let report = contract.check(r#"{"ok": "yes"}"#);
    let repair = contract.repair(&report);
    assert_eq!(repair, prompt::repair(&contract, &report));
    assert!(repair.contains("/ok"), "{repair}");
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
