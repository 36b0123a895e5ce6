//! The fields of the origin documents: each takes what its document gives it, and nothing else.
//!
//! `tests/origin/fields.txt` lists them apart from the contracts, so that a contract which loses a
//! field, a word or a bound is found.

use counterfoil_contract::{Contract, Framing};
use counterfoil_packs::registry;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// A line of the table: a field of some contracts.
struct Field {
    contracts: Vec<Arc<Contract>>,
    pointer: String,
    optional: bool,
    kind: String,
}

fn fields() -> Vec<Field> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/origin/fields.txt");
    let (registry, mut contracts, mut fields) = (registry(), Vec::new(), Vec::<Field>::new());
    for line in std::fs::read_to_string(path).unwrap().lines() {
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            contracts.clear();
            continue;
        }
        let Some(field) = line.strip_prefix("  ") else {
            contracts.push(registry.get(line).unwrap());
            continue;
        };
        let (pointer, kind) = field.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        fields.push(Field {
            contracts: contracts.clone(),
            pointer: pointer.trim_start_matches('?').to_owned(),
            optional: pointer.starts_with('?'),
            kind: kind.to_owned(),
        });
    }
    fields
}

/// Values that a field of this kind takes, and values that it does not.
fn samples(kind: &str) -> (Vec<Value>, Vec<Value>) {
    let texts = |good: &[&str], bad: &[&str]| {
        let others = [json!(7), json!(true), json!({}), Value::Null];
        let bad = bad.iter().map(|one| json!(one)).chain(others);
        (good.iter().map(|one| json!(one)).collect(), bad.collect())
    };
    if let Some(kind) = kind.strip_suffix(" or none") {
        let (good, bad) = samples(kind);
        return (
            [good, vec![Value::Null]].concat(),
            bad.into_iter().filter(|one| !one.is_null()).collect(),
        );
    }
    if let Some(item) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        let (good, bad) = samples(item);
        let list = |items: Vec<Value>| items.into_iter().map(|one| json!([one]));
        return (
            [json!([])].into_iter().chain(list(good)).collect(),
            list(bad).chain([Value::Null]).collect(),
        );
    }
    if let Some((least, most)) = kind.split_once(" to ") {
        let (least, most): (i64, i64) = (least.parse().unwrap(), most.parse().unwrap());
        let bad = [json!(least - 1), json!(most + 1), json!("1"), json!(1.5), Value::Null];
        return (vec![json!(least), json!(most)], bad.to_vec());
    }
    if kind.contains(" | ") {
        let words: Vec<&str> = kind.split(" | ").collect();
        return texts(&words, &["else", "", &words.join("|")]);
    }
    match kind {
        "text" => texts(&["a word", "T1: two, three"], &[]),
        "path" => texts(&["src/a.rs", "spec.md"], &["/etc/passwd", "../a.rs", "a/../../b"]),
        "task" => texts(&["T001", "T1234"], &["T01", "001", "t001", "T001a"]),
        "n/m" => texts(&["1/1", "2/3"], &["3/2", "0/3", "2", "two of three"]),
        "time" => texts(
            &["2026-03-01T09:30:00Z", "2026-03-01T09:30:00.5+01:00"],
            &["yesterday", "2026-03-01", "2026-03-01T25:30:00Z", "2026-03-01T09:30:00"],
        ),
        "count" => (
            vec![json!(0), json!(7)],
            vec![json!(-1), json!(1.5), json!("7"), json!(true), json!([7]), Value::Null],
        ),
        "1 or more" => (
            vec![json!(1), json!(1000)],
            vec![json!(0), json!(-1), json!(1.5), json!("1"), Value::Null],
        ),
        "percent" => (
            vec![json!(0), json!(91.67), json!(100)],
            vec![json!(-1), json!(100.5), json!("91"), json!(true), Value::Null],
        ),
        "boolean" => (
            vec![json!(true), json!(false)],
            vec![json!("true"), json!("false"), json!("yes"), json!(1), json!(0), Value::Null],
        ),
        "object" => (vec![json!({})], vec![json!("a word"), json!(7), json!([]), json!(true)]),
        // With fields or items of their own, which have lines of their own.
        "record" => (vec![], vec![json!("a word"), json!(7), json!([]), json!(true), Value::Null]),
        "list" => {
            (vec![json!([])], vec![json!("a word"), json!(7), json!({}), json!(true), Value::Null])
        }
        other => panic!("no kind is called {other}"),
    }
}

/// The codes at a place and below it, without those of rules: a field that contradicts another one
/// has a good value of its own.
fn codes(contract: &Contract, value: &Value, pointer: &str) -> Vec<String> {
    let report = contract.check_value(value);
    let at = |found: &str| found == pointer || found.starts_with(&format!("{pointer}/"));
    let found = report.violations.iter().filter(|violation| at(&violation.pointer));
    found.map(|one| one.code.to_string()).filter(|code| !code.starts_with("C03")).collect()
}

#[test]
fn every_field_takes_what_its_origin_says_and_nothing_else() {
    for Field { contracts, pointer, optional, kind } in fields() {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut tried = 0;
        for contract in contracts {
            let examples = &contract.definition().examples;
            let has_parent = |one: &&Value| one.pointer(parent).is_some_and(Value::is_object);
            let Some(example) = examples.iter().find(has_parent) else { continue };
            tried += 1;
            let id = contract.id();
            let with = |new: &Value| {
                let mut value = example.clone();
                value.pointer_mut(parent).unwrap()[name] = new.clone();
                codes(&contract, &value, &pointer)
            };
            if kind.contains(" | ") {
                let ty = contract.ty().at(pointer.split('/').skip(1)).map(|ty| ty.non_null());
                assert_eq!(ty.unwrap().to_string(), kind, "{id}: the words of {pointer}");
            }
            let (good, bad) = samples(&kind);
            for value in good {
                assert_eq!(with(&value), [""; 0], "{id}: {pointer} does not take {value}");
            }
            // Null is absence, where a field may be absent.
            for value in bad.iter().filter(|value| !(optional && value.is_null())) {
                assert!(!with(value).is_empty(), "{id}: {pointer} takes {value}");
            }
            let mut without = example.clone();
            without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
            let missing = codes(&contract, &without, &pointer);
            let expected: &[&str] = if optional { &[] } else { &["C0201"] };
            assert_eq!(missing, expected, "{id} without {pointer}");
        }
        assert!(tried > 0, "no example has {parent}, so {pointer} was not tried");
    }
}

#[test]
fn unknown_fields_are_kept_and_noted() {
    for entry in registry().iter() {
        let contract = entry.contract().unwrap();
        if contract.framing() == Framing::OutputBlock {
            continue;
        }
        for example in &contract.definition().examples {
            let mut value = example.clone();
            value["surprise"] = json!({"of": 7});
            let report = contract.check_value(&value);
            let noted = report.warnings.iter().any(|warning| {
                (warning.code.as_str(), warning.pointer.as_str()) == ("W0101", "/surprise")
            });
            let id = contract.id();
            assert!(report.is_accepted() && noted, "{id}: {report:#?}");
            assert_eq!(report.value.unwrap()["surprise"], json!({"of": 7}), "{id}");
        }
    }
}
