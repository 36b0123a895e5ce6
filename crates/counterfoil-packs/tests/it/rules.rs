//! For each rule, one value that violates only this rule: the rule rejects it and points at the right
//! field.

mod cases;

use cases::cases;
use counterfoil_contract::Contract;
use counterfoil_packs::{definitions, registry};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn changed(contract: &Contract, example: usize, changes: &[(&str, Value)]) -> Value {
    let mut value = contract.definition().examples[example].clone();
    for (pointer, new) in changes {
        *value.pointer_mut(pointer).unwrap_or_else(|| panic!("{}: no {pointer}", contract.id())) =
            new.clone();
    }
    value
}

fn violations(contract: &Contract, value: &Value) -> Vec<(String, String)> {
    let report = contract.check_value(value);
    let all = report.violations.iter().chain(&report.warnings);
    all.map(|violation| (violation.code.to_string(), violation.pointer.clone()))
        .filter(|(code, _)| code != "W0107")
        .collect()
}

#[test]
fn each_rule_rejects_a_value_that_violates_it_and_points_at_the_field() {
    let registry = registry();
    for (id, rule, example, changes, code, pointer) in cases() {
        let contract = registry.get(id).unwrap();
        let rules: Vec<&str> =
            contract.definition().rules.iter().map(|rule| rule.id.as_str()).collect();
        assert!(rules.contains(&rule), "{id} has no rule {rule}");
        let value = changed(&contract, example, &changes);
        let found = violations(&contract, &value);
        let expected = (code.to_owned(), pointer.to_owned());
        assert!(found.contains(&expected), "{id}/{rule}: {found:?}");
        let message = contract
            .definition()
            .rules
            .iter()
            .find(|known| known.id == rule)
            .unwrap()
            .message
            .clone();
        if let Some(message) = message {
            let report = contract.check_value(&value);
            let mut said = report
                .violations
                .iter()
                .chain(&report.warnings)
                .map(|violation| &violation.message);
            assert!(said.any(|said| *said == message), "{id}/{rule}");
        }
    }
}

#[test]
fn every_rule_has_a_case() {
    let tried: BTreeSet<(String, String)> =
        cases().iter().map(|(id, rule, ..)| ((*id).to_owned(), (*rule).to_owned())).collect();
    let of_envelopes =
        ["success-has-result", "success-has-no-error", "error-has-error", "error-has-no-result"];
    for definition in definitions() {
        for rule in &definition.rules {
            let known = of_envelopes.contains(&rule.id.as_str())
                || tried.contains(&(definition.contract.clone(), rule.id.clone()));
            assert!(known, "{}/{} has no case", definition.contract, rule.id);
        }
    }
}

#[test]
fn an_envelope_holds_a_result_or_an_error() {
    let registry = registry();
    let mut envelopes = 0;
    for entry in registry.iter() {
        let contract = entry.contract().unwrap();
        if !contract.definition().rules.iter().any(|rule| rule.id == "success-has-result") {
            continue;
        }
        envelopes += 1;
        let [failed, succeeded] = contract.definition().examples.as_slice() else {
            panic!("two examples")
        };
        let expect = |value: Value, code: &str, pointer: &str| {
            assert_eq!(
                violations(&contract, &value),
                [(code.to_owned(), pointer.to_owned())],
                "{}",
                contract.id()
            );
        };
        let mut without_result = succeeded.clone();
        without_result.as_object_mut().unwrap().remove("result");
        expect(without_result, "C0301", "/result");
        let mut with_error = succeeded.clone();
        with_error["error"] = failed["error"].clone();
        expect(with_error, "C0302", "/error");
        let mut without_error = failed.clone();
        without_error["error"] = Value::Null;
        expect(without_error, "C0301", "/error");
        let mut with_result = failed.clone();
        with_result["result"] = succeeded["result"].clone();
        expect(with_result, "C0302", "/result");
        let mut with_null = succeeded.clone();
        with_null["error"] = Value::Null;
        assert!(
            contract.check_value(&with_null).is_accepted(),
            "{}: null is absence",
            contract.id()
        );
        let mut other_agent = succeeded.clone();
        other_agent["agent"] = json!("orchestrator");
        expect(other_agent, "C0203", "/agent");
        for (field, unknown) in [("type", "OutOfMemoryError"), ("recovery_strategy", "pray")] {
            let mut value = failed.clone();
            value["error"][field] = json!(unknown);
            expect(value, "C0203", &format!("/error/{field}"));
        }
    }
    assert_eq!(envelopes, 11);
}

#[test]
fn rounding_is_not_a_contradiction() {
    let analyze = registry().get("spec-pipeline/analyze").unwrap();
    for (percentage, good) in
        [(83.33, true), (83.0, true), (83.8, true), (83.9, false), (82.8, false)]
    {
        let value = changed(
            &analyze,
            1,
            &[("/result/coverage_analysis/coverage_percentage", json!(percentage))],
        );
        assert_eq!(analyze.check_value(&value).is_accepted(), good, "{percentage}");
    }
    let nothing = changed(
        &analyze,
        1,
        &[
            ("/result/coverage_analysis/coverage_percentage", json!(100)),
            ("/result/coverage_analysis/total_requirements", json!(0)),
            ("/result/coverage_analysis/requirements_with_tasks", json!(0)),
        ],
    );
    assert!(analyze.check_value(&nothing).is_accepted(), "nothing of nothing is any share");
    // 3 of 4 tasks.
    let implement = registry().get("spec-pipeline/implement").unwrap();
    for (percentage, good) in [(75.5, true), (74.5, true), (75.6, false), (74.4, false)] {
        let value = changed(&implement, 1, &[("/result/completion_percentage", json!(percentage))]);
        assert_eq!(implement.check_value(&value).is_accepted(), good, "{percentage}");
    }
}

#[test]
fn a_phase_is_one_of_so_many() {
    let tdd = registry().get("feature-pipeline/tdd-task-executor").unwrap();
    for (phase, good) in [
        ("1/1", true),
        ("2/3", true),
        ("10/12", true),
        ("3/2", false),
        ("0/3", false),
        ("2", false),
        ("a/b", false),
        ("1/", false),
    ] {
        let value = changed(&tdd, 0, &[("/phase", json!(phase))]);
        let found = violations(&tdd, &value);
        assert_eq!(found.is_empty(), good, "{phase}: {found:?}");
        assert!(found.iter().all(|(_, pointer)| pointer == "/phase"), "{phase}: {found:?}");
    }
}
