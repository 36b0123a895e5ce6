//! Texts and contracts made to cost time or memory: the work grows with the length and not with its
//! square, results and lists have limits, and what is left out is counted.

#[path = "../../benches/support/shapes.rs"]
mod shapes;

use counterfoil_contract::{Code, Contract, Report};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;

fn codes(report: &Report) -> Vec<&'static str> {
    report.codes().iter().map(|code| code.as_str()).collect()
}

fn contract(body: &str) -> Contract {
    Contract::from_yaml(&format!("contract: hostile/x\nversion: 1\nframing: any-json\n{body}"))
        .unwrap()
}

#[test]
fn the_work_grows_with_the_length_of_every_shape() {
    const SMALL: usize = 4 << 10;
    let mut contracts = HashMap::new();
    for shape in shapes::shapes() {
        let contract =
            contracts.entry(shape.contract).or_insert_with(|| shapes::contract(shape.contract));
        let steps = |size: usize| {
            let text = shape.text(size);
            let steps = contract.check_counted(&text).1;
            assert!(
                steps <= 60 * text.len() as u64,
                "{}: {steps} steps for {} bytes",
                shape.name,
                text.len()
            );
            steps
        };
        let (small, large) = (steps(SMALL), steps(8 * SMALL));
        // Rules may compare every item with every other one, up to a limit of their own.
        let has_rules = shape.contract == "ruled";
        assert!(
            has_rules || large <= 10 * small,
            "{}: {small} steps, and {large} for 8 times as much",
            shape.name
        );
    }
}

/// One shape for each thing that there can be a lot of: values, keys, edits, lines with quote
/// markers, blocks, long texts. `cargo run --release -p counterfoil-contract --example hostile`
/// measures all of them.
#[test]
#[cfg(target_os = "linux")]
fn a_text_of_64_megabytes_takes_less_than_a_gigabyte() {
    let shapes = [
        "quoted result",
        "ansi codes",
        "list of ones, lenient",
        "unknown keys, closed",
        "python literals",
        "blocks beside json",
        "long keys",
    ];
    for name in shapes {
        let shape = shapes::shapes().into_iter().find(|shape| shape.name == name).unwrap();
        // The text is a little longer, and 64 MiB are the limit.
        let text = shape.text(127 << 19);
        let report = shapes::contract(shape.contract).check(&text);
        assert_ne!(codes(&report), ["C0103"], "{name} was not read");
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 1_000_000, "{name}: {kilobytes} kB");
    }
}

#[test]
fn a_result_has_at_most_a_million_values() {
    let contract = contract("schema: {}\n");
    let ones = |count: usize| format!("[{}1]", "1,".repeat(count - 2));
    assert!(contract.check(&ones(1_000_000)).is_accepted());
    let text = format!("Here: {}", ones(1_000_001));
    let report = contract.check(&text);
    assert_eq!(codes(&report), ["C0128"]);
    let span = report.violations[0].span.unwrap();
    assert_eq!(span.start, text.len() - 2, "the value that is one too many");
    assert_eq!(report.violations[0].message, "the result has more than 1000000 values");
    let value: Value = serde_json::from_str(&ones(1_000_001)).unwrap();
    assert_eq!(codes(&contract.check_value(&value)), ["C0128"]);
}

#[test]
fn the_limit_on_values_can_be_lower_and_not_higher() {
    let low = contract("schema: {}\npolicy: { max_values: 3 }\n");
    assert!(low.check("[1, 2]").is_accepted());
    for text in ["[1, 2, 3]", "[[], [1]]", r#"{"a": 1, "b": [1]}"#] {
        assert_eq!(codes(&low.check(text)), ["C0128"], "{text}");
    }
    for limit in [0, 1_000_001] {
        let yaml = format!(
            "contract: hostile/x\nversion: 1\nframing: any-json\nschema: {{}}\npolicy: {{ max_values: {limit} }}\n"
        );
        let error = Contract::from_yaml(&yaml).unwrap_err();
        assert_eq!(error.problems[0].code, Code::BadPolicy, "{limit}");
    }
    // A published contract does not change because there is a limit now.
    assert!(!contract("schema: {}\n").definition().to_yaml().unwrap().contains("max_values"));
}

#[test]
fn values_with_long_paths_count_more() {
    let contract = contract("schema: {}\npolicy: { max_values: 1000 }\n");
    let text = |key: usize| format!(r#"{{"{}": [{}1]}}"#, "k".repeat(key), "1,".repeat(99));
    assert!(contract.check(&text(100)).is_accepted());
    assert_eq!(codes(&contract.check(&text(10_000))), ["C0128"]);
}

#[test]
fn blocks_have_the_same_limit() {
    let yaml = "contract: hostile/block\nversion: 1\nframing: output-block\npolicy: { max_values: 20 }\nfields: { status: a | b, files?: [string], more?: any }\n";
    let contract = Contract::from_yaml(yaml).unwrap();
    let block = |lines: &str| format!("---OUTPUT---\nstatus: a\n{lines}---END---\n");
    assert!(contract.check(&block("files: [a, b]\n")).is_accepted());
    let list = vec!["x"; 30].join(", ");
    assert_eq!(codes(&contract.check(&block(&format!("files: [{list}]\n")))), ["C0128"]);
    let lines: String = (0..30).map(|index| format!("k{index}: 1\n")).collect();
    assert!(codes(&contract.check(&block(&lines))).contains(&"C0128"));
}

#[test]
fn defaults_do_not_make_a_result_large() {
    let contract = contract(
        "policy: { max_values: 1000 }\nschema: { type: object, properties: { items: { type: array, items: { type: object, properties: { a: { default: [1, 2, 3, 4, 5, 6, 7, 8, 9] } } } } } }\n",
    );
    let text = |count: usize| format!(r#"{{"items": [{}{{}}]}}"#, "{},".repeat(count - 1));
    assert!(contract.check(&text(50)).is_accepted());
    assert_eq!(codes(&contract.check(&text(500))), ["C0128"]);
}

#[test]
fn what_the_lists_of_a_report_leave_out_is_counted() {
    let contract = contract("fields: { ok: boolean, items: [integer] }\n");
    let mut text = r#"{"ok": true, "items": []"#.to_owned();
    for index in 0..4_321 {
        write!(text, r#", "x{index}": 1"#).unwrap();
    }
    let report = contract.check(&format!("{text}}}"));
    assert!(report.is_accepted());
    assert_eq!((report.warnings.len(), report.left_out.warnings), (1_000, 3_321));
    let wrong = format!(r#"{{"ok": true, "items": [{}"x"]}}"#, r#""x", "#.repeat(2_999));
    let report = contract.check(&wrong);
    assert_eq!((report.violations.len(), report.left_out.violations), (1_000, 2_000));
    assert_eq!(report.violations[999].pointer, "/items/999");
    let told = serde_json::to_value(&report).unwrap();
    assert_eq!(told["left_out"], json!({"violations": 2_000}));
    // The form of a report that has everything is the one it always had.
    let report = contract.check(r#"{"ok": 1}"#);
    assert_eq!(serde_json::to_value(&report).unwrap().get("left_out"), None);
    let again: Report = serde_json::from_value(serde_json::to_value(&report).unwrap()).unwrap();
    assert!(again.left_out.is_empty());
}

#[test]
fn long_texts_fill_the_lists_early() {
    let contract = contract("fields: { ok: boolean }\n");
    let mut text = r#"{"ok": true"#.to_owned();
    for index in 0..400 {
        write!(text, r#", "{}{index}": 1"#, "k".repeat(4_000)).unwrap();
    }
    let report = contract.check(&format!("{text}}}"));
    assert_eq!(report.warnings.len() + report.left_out.warnings, 400);
    assert!(report.left_out.warnings > 250 && report.warnings.len() > 10);
}

#[test]
fn every_bad_item_is_left_out_of_what_is_salvaged() {
    let contract = contract("policy: { salvage: [/items] }\nfields: { items: [integer] }\n");
    let items: Vec<Value> =
        (0..6_000).map(|index| if index % 2 == 0 { json!(index) } else { json!("bad") }).collect();
    let report = contract.check(&json!({ "items": items }).to_string());
    let left = report.partial.as_ref().unwrap()["items"].as_array().unwrap();
    assert_eq!(left.len(), 3_000);
    assert!(left.iter().all(Value::is_number));
    assert_eq!((report.rejected_items.len(), report.left_out.rejected_items), (1_000, 2_000));
    let salvaged = contract.salvage_report(&report);
    assert_eq!(salvaged.valid.len(), 3_000);
    // Not one of two meanings is salvaged where a key is there twice, however often that is so.
    let twice = vec![r#"{"a": 1, "a": 2}"#; 1_500].join(",");
    let contract = contract_of_objects();
    let report = contract.check(&format!(r#"{{"items": [{twice}]}}"#));
    assert_eq!(report.violations.len() + report.left_out.violations, 1_500);
    assert_eq!(report.partial, None);
}

fn contract_of_objects() -> Contract {
    contract("policy: { salvage: [/items] }\nfields: { items: [{ a: integer }] }\n")
}

/// A schema whose references double at each of `levels` levels.
fn doubling(levels: usize, keyword: &str) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        defs.insert(format!("a{level}"), json!({keyword: [next, next]}));
    }
    defs.insert(format!("a{levels}"), json!({"type": "string", "maxLength": 3}));
    json!({"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": defs})
}

#[test]
fn a_schema_with_countless_alternatives_does_not_compile() {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for levels in [28, 500] {
            let schema = doubling(levels, keyword);
            let policy = counterfoil_contract::Policy::default();
            let framing = counterfoil_contract::Framing::AnyJson;
            let error = Contract::from_schema(&schema, framing, policy).unwrap_err();
            assert_eq!(error.problems[0].code, Code::BadSchema, "{keyword}");
            assert!(error.problems[0].message.contains("10000 schemas"), "{error}");
        }
    }
    let few = doubling(5, "anyOf");
    let policy = counterfoil_contract::Policy::default();
    let contract =
        Contract::from_schema(&few, counterfoil_contract::Framing::AnyJson, policy).unwrap();
    assert!(contract.check(r#"{"x": "abc"}"#).is_accepted());
    assert!(!contract.check(r#"{"x": "abcd"}"#).is_accepted());
}

#[test]
fn a_schema_that_unfolds_to_countless_fields_does_not_compile() {
    let mut defs = serde_json::Map::new();
    for level in 0..28 {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        let properties = json!({"l": next, "r": next});
        defs.insert(format!("a{level}"), json!({"type": "object", "properties": properties}));
    }
    defs.insert("a28".into(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/a0", "$defs": defs});
    let error = Contract::from_schema(
        &schema,
        counterfoil_contract::Framing::AnyJson,
        counterfoil_contract::Policy::default(),
    )
    .unwrap_err();
    assert!(error.problems[0].message.contains("20000 parts"), "{error}");
}

#[test]
fn rules_share_one_limit_on_their_steps() {
    let contract = contract(
        "fields: { items: [count] }\nrules:\n  - { id: some, warn: true, each: '/items/*', check: 'result.items.exists(one, one + 1 == item) || item > 0' }\n",
    );
    let text = |count: usize| json!({"items": (1..=count).collect::<Vec<_>>()}).to_string();
    assert!(contract.check(&text(200)).is_accepted());
    let report = contract.check(&text(3_000));
    assert_eq!(codes(&report), ["C0129"], "a rule that only warns must not hide the others");
}

#[test]
fn an_expression_cannot_build_long_texts() {
    let doubled = ".map(s, s + s)".repeat(40);
    for check in [
        format!("size(['x']{doubled}[0]) > 0"),
        format!("size({}) > 0", vec!["result.text"; 100].join(" + ")),
        "range(10000).all(a, result.text == result.other)".to_owned(),
        "range(10000).all(a, result.text.contains('y') == false)".to_owned(),
    ] {
        let contract = contract(&format!(
            "fields: {{ text: string, other: string }}\nrules:\n  - {{ id: long, check: \"{check}\" }}\n"
        ));
        let long = "x".repeat(1 << 20);
        let report = contract.check(&json!({"text": long, "other": long}).to_string());
        assert_eq!(codes(&report), ["C0305"], "{check}");
    }
}

#[test]
fn a_value_with_countless_repairs_is_refused() {
    let contract = contract("policy: { repair: syntax }\nfields: { items: list }\n");
    let text = |count: usize| format!("{{'items': [{}'x']}}", "'x', ".repeat(count));
    assert!(contract.check(&text(1_000)).is_accepted());
    let report = contract.check(&text(600_000));
    assert_eq!(codes(&report), ["C0129"]);
}
