//! Compatibility of contract versions, in both directions.
use counterfoil_contract::compat::{Comparison, Direction, compare};
use counterfoil_contract::{Code, Contract};

fn contract(body: &str) -> Contract {
    Contract::from_yaml(&format!("contract: acme/check\n{body}")).unwrap()
}

fn diff(old: &str, new: &str) -> Comparison {
    compare(&contract(&format!("version: 1\n{old}")), &contract(&format!("version: 2\n{new}")))
}

const BASE: &str = "fields: { ok: boolean, level: low | high, note?: string }";

/// The only break of a change, with its counterexample.
fn only_break(old: &str, new: &str) -> (Code, Direction, String) {
    let found = diff(old, new);
    assert_eq!(found.breaks.len(), 1, "{found:#?}");
    let broken = &found.breaks[0];
    (broken.code, broken.direction, broken.counterexample.as_ref().expect("a value").to_string())
}

#[test]
fn the_same_contract_is_its_own_successor() {
    assert!(diff(BASE, BASE).is_additive());
}

#[test]
fn an_optional_field_is_additive() {
    let new =
        "fields: { ok: boolean, level: low | high, note?: string, extra?: { count: integer } }";
    let found = diff(BASE, new);
    assert!(found.is_additive(), "{found:#?}");
}

#[test]
fn a_new_required_field_breaks_old_writers() {
    let (code, direction, value) =
        only_break(BASE, "fields: { ok: boolean, level: low | high, note?: string, by: string }");
    assert_eq!((code, direction), (Code::OldValuesFail, Direction::OldWriterNewReader));
    assert!(!value.contains("\"by\""), "{value}");
}

#[test]
fn the_reason_of_a_break_is_about_its_field() {
    let found = diff(
        "fields: { ok: boolean, list: [string] }",
        "fields: { done: boolean, list: [{ name: string, passed: boolean }] }",
    );
    let of_list = found.breaks.iter().filter(|broken| broken.message.contains("`list"));
    let reasons: Vec<&str> = of_list.filter_map(|broken| broken.because.as_deref()).collect();
    assert!(!reasons.is_empty(), "{found:#?}");
    let of_others = |reason: &&str| reason.contains("`done`") || reason.contains("`ok`");
    assert!(!reasons.iter().any(of_others), "{reasons:#?}");
}

#[test]
fn a_narrower_enum_breaks_old_writers() {
    let (code, direction, value) = only_break(
        BASE,
        "fields: { ok: boolean, level: low, note?: string }"
            .replace("level: low,", "level: { enum: [low] },")
            .as_str(),
    );
    assert_eq!((code, direction), (Code::OldValuesFail, Direction::OldWriterNewReader));
    assert!(value.contains("\"high\""), "{value}");
}

#[test]
fn a_wider_enum_breaks_old_readers() {
    let (code, direction, value) =
        only_break(BASE, "fields: { ok: boolean, level: low | high | extreme, note?: string }");
    assert_eq!((code, direction), (Code::NewValuesFail, Direction::NewWriterOldReader));
    assert!(value.contains("\"extreme\""), "{value}");
}

#[test]
fn a_removed_required_field_breaks_old_readers() {
    let found = diff(BASE, "fields: { level: low | high, note?: string }");
    assert!(
        found.breaks.iter().any(|b| b.code == Code::NewValuesFail && b.counterexample.is_some()),
        "{found:#?}"
    );
}

#[test]
fn a_removed_optional_field_breaks_old_readers() {
    let (code, direction, _) = only_break(BASE, "fields: { ok: boolean, level: low | high }");
    assert_eq!((code, direction), (Code::NewValuesFail, Direction::NewWriterOldReader));
}

#[test]
fn a_changed_type_breaks_both() {
    let found = diff(BASE, "fields: { ok: string, level: low | high, note?: string }");
    let directions: Vec<_> = found.breaks.iter().map(|b| b.direction).collect();
    assert!(
        directions.contains(&Direction::OldWriterNewReader)
            && directions.contains(&Direction::NewWriterOldReader)
    );
}

#[test]
fn a_changed_framing_breaks_with_a_text_that_shows_it() {
    let example = "\nexamples: [{ ok: true, level: low }]";
    let (code, _, value) =
        only_break(&format!("{BASE}{example}"), &format!("framing: json-only\n{BASE}{example}"));
    assert_eq!(code, Code::FramingChanged);
    assert!(value.contains("```json"), "{value}");
}

#[test]
fn a_new_rule_that_old_values_fail_breaks() {
    let rule = "\nrules: [{ id: note-when-failed, when: '!result.ok', require: [note] }]";
    let (code, direction, value) = only_break(BASE, &format!("{BASE}{rule}"));
    assert_eq!((code, direction), (Code::RuleChanged, Direction::OldWriterNewReader));
    assert!(value.contains("\"ok\":false"), "{value}");
}

#[test]
fn a_rule_on_a_new_field_is_additive() {
    let new = "fields: { ok: boolean, level: low | high, note?: string, count?: integer }
rules: [{ id: count-positive, when: 'has(result.count)', check: 'result.count > 0' }]";
    let found = diff(BASE, new);
    assert!(found.is_additive(), "{found:#?}");
}

#[test]
fn a_removed_rule_breaks_old_readers() {
    let rule = "\nrules: [{ id: note-when-failed, when: '!result.ok', require: [note] }]";
    let (code, direction, _) = only_break(&format!("{BASE}{rule}"), BASE);
    assert_eq!((code, direction), (Code::RuleChanged, Direction::NewWriterOldReader));
}

#[test]
fn a_rule_nobody_can_be_seen_to_fail_is_unproven_and_says_so() {
    let old = "fields: { text: string }";
    let new =
        "fields: { text: string }\nrules: [{ id: odd, check: \"result.text != 'xyzzy-42'\" }]";
    let found = diff(old, new);
    assert_eq!(found.breaks.len(), 1);
    assert_eq!(found.breaks[0].code, Code::Unproven);
    assert!(found.breaks[0].message.contains("could not be proven"));
}

#[test]
fn a_tighter_bound_breaks_old_writers() {
    let (code, _, value) = only_break(
        "fields: { n: { type: integer, minimum: 0 } }",
        "fields: { n: { type: integer, minimum: 5 } }",
    );
    assert_eq!(code, Code::OldValuesFail);
    assert!(value.contains("\"n\":"), "{value}");
}

#[test]
fn an_older_version_is_no_successor() {
    let old = contract(&format!("version: 2\n{BASE}"));
    let new = contract(&format!("version: 1\n{BASE}"));
    assert_eq!(compare(&old, &new).breaks[0].code, Code::NotNewer);
}

#[test]
fn a_witness_satisfies_the_contract_that_wrote_it() {
    // The old rules refuse most values of the old schema.
    let old = "fields: { ok: boolean, level: low | high, note: string }\nrules:\n\
        - { id: good-means-low, check: '!result.ok || result.level == \"low\"' }\n\
        - { id: bad-needs-note, check: 'result.ok || size(result.note) > 3' }\n\
        examples:\n- { ok: true, level: low, note: fine }\n- { ok: false, level: high, note: broken }";
    for new in [
        "fields: { ok: boolean, level: { enum: [high] }, note: string }",
        "fields: { ok: boolean, level: low | high, note: string, by: string }",
        "fields: { ok: boolean, level: low | high, note: { type: string, minLength: 5 } }",
    ] {
        let found = diff(old, new);
        let writer = contract(&format!("version: 1\n{old}"));
        let breaks: Vec<_> = found
            .breaks
            .iter()
            .filter(|found| found.direction == Direction::OldWriterNewReader)
            .collect();
        assert!(!breaks.is_empty(), "{new}");
        for found in breaks {
            let Some(value) = &found.counterexample else { continue };
            let report = writer.check_value(value);
            assert!(report.is_accepted(), "{new}: {value}: {report:#?}");
        }
    }
}
