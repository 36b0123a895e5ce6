//! Every invalid change to a valid result is rejected, and the violation points at the change.

use counterfoil_contract::expr::Type;
use counterfoil_contract::{Contract, Framing, Report};
use counterfoil_packs::registry;
use serde_json::{Value, json};

/// A valid example with one invalid change.
struct Mutant {
    value: Value,
    pointer: String,
    change: &'static str,
    /// Whether only a strict reader rejects it.
    strict_only: bool,
}

/// One sample value of each JSON kind that no contract expects.
fn sample_values() -> [(&'static str, Value); 6] {
    [
        ("string", json!("mutant 7")),
        ("number", json!(7)),
        ("fraction", json!(7.5)),
        ("boolean", json!(true)),
        ("object", json!({"mutant": 7})),
        ("null", Value::Null),
    ]
}

fn allows(ty: &Type, kind: &str) -> bool {
    ty.alternatives().iter().any(|ty| match ty {
        Type::Any => true,
        Type::Null => kind == "null",
        Type::Bool => kind == "boolean",
        Type::Int => kind == "number",
        Type::Double => matches!(kind, "number" | "fraction"),
        Type::String(_) => kind == "string",
        Type::Object(_) | Type::Map(_) => kind == "object",
        Type::List(_) | Type::Union(_) => false,
    })
}

fn is_enum(ty: &Type) -> bool {
    ty.alternatives().iter().any(|ty| matches!(ty, Type::String(Some(_))))
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether a run fills in the field, so that an agent may leave it out.
fn is_filled(contract: &Contract, pointer: &str) -> bool {
    let fields = contract.definition().filled.keys();
    fields.into_iter().any(|field| Some(field.trim_end_matches('?')) == pointer.strip_prefix('/'))
}

/// Whether the field has a default.
fn has_default(contract: &Contract, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    let object = contract.ty().at(parent.split('/').skip(1)).and_then(|ty| ty.object().cloned());
    object
        .is_some_and(|object| object.fields.get(name).is_some_and(|field| field.default.is_some()))
}

fn with(root: &Value, pointer: &str, new: Value) -> Value {
    let mut value = root.clone();
    *value.pointer_mut(pointer).unwrap() = new;
    value
}

fn with_member(root: &Value, parent: &str, name: &str, new: Value) -> Value {
    let mut value = root.clone();
    value.pointer_mut(parent).unwrap()[name] = new;
    value
}

fn without(root: &Value, parent: &str, name: &str) -> Value {
    let mut value = root.clone();
    value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    value
}

/// Collects every mutant of the value at a pointer and of all nested values.
fn mutants(contract: &Contract, root: &Value, pointer: &str, ty: &Type, found: &mut Vec<Mutant>) {
    let value = root.pointer(pointer).unwrap();
    let mut push = |value, pointer: &str, change, strict_only| {
        found.push(Mutant { value, pointer: pointer.to_owned(), change, strict_only });
    };
    if !pointer.is_empty() {
        // In a block, a single value is accepted as a list with one item.
        let listed = contract.framing() == Framing::OutputBlock && ty.items().is_some();
        for (kind, other) in sample_values() {
            let is_none = kind == "null" && is_filled(contract, pointer);
            if !allows(ty, kind) && (!listed || kind == "null") && !is_none {
                // Null is read as the default, where there is one.
                let strict_only = kind == "null" && has_default(contract, pointer);
                push(with(root, pointer, other), pointer, kind, strict_only);
            }
        }
        if is_enum(ty) {
            push(with(root, pointer, json!("MUTANT")), pointer, "unknown word", false);
        }
    }
    match value {
        Value::Object(members) => {
            if let Some(object) = ty.object() {
                for (name, field) in &object.fields {
                    let inner = format!("{pointer}/{}", escape(name));
                    if !members.contains_key(name) {
                        // An optional field that the example does not have.
                        for (kind, other) in sample_values() {
                            if kind != "null" && !allows(&field.ty, kind) {
                                push(with_member(root, pointer, name, other), &inner, kind, false);
                            }
                        }
                        continue;
                    }
                    if field.required && !is_filled(contract, &inner) {
                        push(
                            without(root, pointer, name),
                            &inner,
                            "nothing",
                            field.default.is_some(),
                        );
                    }
                }
                for (name, field) in &object.fields {
                    if members.contains_key(name) {
                        mutants(
                            contract,
                            root,
                            &format!("{pointer}/{}", escape(name)),
                            &field.ty,
                            found,
                        );
                    }
                }
            } else if let Some(Type::Map(values)) =
                ty.alternatives().iter().find(|ty| matches!(ty, Type::Map(_)))
            {
                for name in members.keys() {
                    mutants(contract, root, &format!("{pointer}/{}", escape(name)), values, found);
                }
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                mutants(
                    contract,
                    root,
                    &format!("{pointer}/{index}"),
                    ty.items().unwrap_or(&Type::Any),
                    found,
                );
            }
        }
        _ => {}
    }
}

fn check_mutant(contract: &Contract, mutant: &Mutant) -> Report {
    if !mutant.strict_only {
        return contract.check_value(&mutant.value);
    }
    let text = match contract.framing() {
        Framing::FencedJson => format!("```json\n{}\n```", mutant.value),
        Framing::AnyJson | Framing::JsonOnly => mutant.value.to_string(),
        Framing::OutputBlock => panic!("blocks have no defaults"),
    };
    contract.check_strictly(&text)
}

#[test]
fn every_mutant_is_refused_where_it_was_changed() {
    let mut count = 0;
    for entry in registry().iter() {
        let contract = entry.contract().unwrap();
        let mut own = 0;
        for example in &contract.definition().examples {
            let mut found = Vec::new();
            mutants(&contract, example, "", contract.ty(), &mut found);
            for mutant in &found {
                let report = check_mutant(&contract, mutant);
                let (id, change, pointer) = (contract.id(), mutant.change, &mutant.pointer);
                assert!(
                    !report.is_accepted(),
                    "{id}: {change} at {pointer} is accepted: {}",
                    mutant.value
                );
                assert!(
                    report.violations.iter().any(|violation| violation.pointer == *pointer),
                    "{id}: {change} at {pointer} is refused elsewhere: {:#?}",
                    report.violations
                );
            }
            own += found.len();
        }
        assert!(own >= 8, "{} has only {own} mutants", contract.id());
        count += own;
    }
    assert!(count > 3000, "only {count} mutants ran");
}

#[test]
fn a_strict_reader_refuses_every_mutant_too() {
    for entry in registry().iter() {
        let contract = entry.contract().unwrap();
        if contract.framing() == Framing::OutputBlock {
            continue;
        }
        for example in &contract.definition().examples {
            let mut found = Vec::new();
            mutants(&contract, example, "", contract.ty(), &mut found);
            for mutant in found {
                let report = check_mutant(&contract, &Mutant { strict_only: true, ..mutant });
                assert!(!report.is_accepted(), "{}", contract.id());
            }
        }
    }
}

/// The lists whose items are read one by one: contract, example, and where the list is.
const SALVAGED: [(&str, usize, &str); 8] = [
    ("execution-loop/code-quality", 1, "/issues"),
    ("review-fix/implementation-result", 0, "/task_results"),
    ("review-fix/review-result", 0, "/findings"),
    ("review-fix/grouped-review-result", 0, "/groups"),
    ("review-fix/grouped-review-result", 0, "/groups/0/findings"),
    ("review-fix/fix-outcomes", 0, "/outcomes"),
    ("review-fix/finding-group", 0, "/findings"),
    ("spec-pipeline/analyze", 1, "/result/findings"),
];

#[test]
fn good_items_beside_a_bad_one_are_salvaged() {
    for (id, example, list) in SALVAGED {
        let contract = registry().get(id).unwrap();
        let good = &contract.definition().examples[example];
        let mut value = good.clone();
        let items = value.pointer_mut(list).unwrap().as_array_mut().unwrap();
        let place = format!("{list}/{}", items.len());
        items.push(json!({"mutant": 7}));
        // Such a result is no result: what is good of it is apart, and what is not has its place.
        let report = contract.check_value(&value);
        assert_eq!((report.is_accepted(), &report.value), (false, &None), "{id}");
        let kept = contract.check_value(good).value.unwrap();
        let partial = report.partial.unwrap_or_else(|| panic!("{id}: nothing of {list} is kept"));
        assert_eq!(partial.pointer(list), kept.pointer(list), "{id}");
        let refused = report.rejected_items.iter();
        let refused: Vec<_> =
            refused.map(|one| (one.pointer.as_str(), &one.value["mutant"])).collect();
        assert_eq!(refused, [(place.as_str(), &json!(7))], "{id}");
    }
}
