//! Fields that are filled in from what is known of the attempt.

use counterfoil_contract::render::vendor::{Target, schema};
use counterfoil_contract::{Code, Context, Contract, Report, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

const CONTRACT: &str = r#"
contract: acme/work
version: 1
framing: any-json
fields:
  ok: boolean
  run: string
  at: timestamp
  meta: { took_ms: count, note: string }
filled:
  run: run.id
  at: run.ended
  meta/took_ms: run.duration_ms
rules:
  - { id: not-too-long, check: "result.meta.took_ms < 1000" }
examples:
  - { ok: true, run: a, at: "2026-03-01T09:30:00Z", meta: { took_ms: 5, note: fine } }
"#;

fn contract() -> Contract {
    Contract::from_yaml(CONTRACT).unwrap()
}

fn check(value: &Value, context: Context) -> Report {
    let contract = contract();
    contract.check_with(&value.to_string(), &contract.policy().with_context(&Arc::new(context)))
}

fn ended() -> Context {
    Context {
        run: Some("run-1".into()),
        ended: Some("2026-03-02T10:00:00Z".into()),
        duration_ms: Some(70),
        ..Context::default()
    }
}

#[test]
fn what_is_known_is_filled_in() {
    let report = check(&json!({"ok": true, "meta": {"note": "fine"}}), ended());
    assert_eq!(
        report.value,
        Some(json!({
            "ok": true, "meta": {"note": "fine", "took_ms": 70},
            "run": "run-1", "at": "2026-03-02T10:00:00Z"
        })),
        "{report:#?}"
    );
    assert_eq!(report.provenance.filled, ["/at", "/meta/took_ms", "/run"]);
    assert_eq!(report.warnings, []);
}

#[test]
fn the_same_value_from_the_agent_is_fine_and_null_is_none() {
    let same = json!({"ok": true, "run": "run-1", "at": null, "meta": {"note": "fine"}});
    assert!(check(&same, ended()).is_accepted());
}

#[test]
fn another_value_from_the_agent_is_a_violation() {
    let other = json!({"ok": true, "run": "run-7", "meta": {"note": "fine", "took_ms": 71}});
    let report = check(&other, ended());
    assert_eq!(report.codes(), [Code::FilledDiffers]);
    let places: Vec<&str> =
        report.violations.iter().map(|violation| violation.pointer.as_str()).collect();
    assert_eq!(places, ["/run", "/meta/took_ms"]);
    assert!(contract().repair(&report).contains("leave out `run`: it is filled in"));
}

#[test]
fn a_value_of_the_agent_is_kept_where_the_contract_says_so() {
    let contract =
        Contract::from_yaml(&CONTRACT.replace("  at: run.ended", "  at?: run.ended")).unwrap();
    let check = |value: Value| {
        let policy = contract.policy().with_context(&Arc::new(ended()));
        contract.check_with(&value.to_string(), &policy)
    };
    let given = |at: &str| json!({"ok": true, "at": at, "meta": {"note": "fine"}});
    let at = |report: Report| report.value.map(|value| value["at"].clone());
    assert_eq!(at(check(given("2026-03-01T09:30:00Z"))), Some(json!("2026-03-01T09:30:00Z")));
    assert_eq!(check(given("yesterday")).value, None, "it must still be a timestamp");
    let left_out = json!({"ok": true, "meta": {"note": "fine"}});
    assert_eq!(at(check(left_out)), Some(json!("2026-03-02T10:00:00Z")));
    assert!(!contract.prompt().contains("`at`"), "the agent is not asked for it");
}

#[test]
fn a_time_is_what_a_field_of_that_form_accepts() {
    let contract =
        Contract::from_yaml("contract: a/b\nversion: 1\nfields: { at: timestamp }").unwrap();
    for (text, is_time) in [
        ("2026-03-01T09:30:00Z", true),
        ("2026-03-01T09:30:00.25+02:00", true),
        ("2026-03-01T09:30:00", false),
        ("2026-03-01", false),
        ("2026-13-01T09:30:00Z", false),
        ("yesterday", false),
        ("", false),
    ] {
        assert_eq!(Timestamp::parse(text).is_some(), is_time, "{text}");
        assert_eq!(contract.check_value(&json!({ "at": text })).is_accepted(), is_time, "{text}");
    }
}

#[test]
fn rules_see_what_is_filled_in() {
    let context = Context { duration_ms: Some(1000), ..ended() };
    let report = check(&json!({"ok": true, "meta": {"note": "fine"}}), context);
    assert_eq!(report.codes(), [Code::Contradiction]);
}

#[test]
fn what_is_not_known_is_left_out_or_to_the_agent() {
    let value = json!({"ok": true, "meta": {"note": "fine"}});
    let report = contract().check(&value.to_string());
    assert_eq!(report.value, Some(value.clone()), "{report:#?}");
    let noted: Vec<(Code, &str)> =
        report.warnings.iter().map(|warning| (warning.code, warning.pointer.as_str())).collect();
    let missing = |pointer| (Code::NotFilled, pointer);
    assert_eq!(noted, [missing("/at"), missing("/meta/took_ms"), missing("/run")]);
    // Before the end of an attempt, its start and its run are known.
    let report = check(&value, Context { run: Some("run-1".into()), ..Context::default() });
    assert_eq!(report.value.unwrap()["run"], "run-1");
    let given = json!({"ok": true, "run": "a", "at": "2026-03-01T09:30:00Z", "meta": {"took_ms": 5, "note": ""}});
    assert_eq!(contract().check(&given.to_string()).value, Some(given));
    let wrong = json!({"ok": true, "run": 7, "meta": {"note": "fine"}});
    assert_eq!(contract().check(&wrong.to_string()).codes(), [Code::WrongType]);
}

#[test]
fn the_agent_is_not_asked_for_it() {
    let contract = contract();
    let mut texts = vec![contract.prompt()];
    texts.extend(Target::ALL.map(|target| schema(&contract, target).schema.to_string()));
    texts.push(contract.repair(&contract.check("nothing")));
    for text in texts {
        for field in ["took_ms", "\"run\"", "`run`", "\"at\"", "`at`"] {
            assert!(!text.contains(field), "{field}: {text}");
        }
        assert!(text.contains("note"), "{text}");
    }
}

#[test]
fn every_mistake_in_filled_is_named() {
    let fields = "contract: acme/work\nversion: 1\nfields: { ok: boolean, n: integer, list: [{ id: string }] }\n";
    for (filled, wrong) in [
        ("{ n: run.duration_ms }", None),
        ("{ n: run.duration_ms / 1000 }", None),
        ("{ nn: run.duration_ms }", Some("'nn' is not a field of the result")),
        ("{ list/0/id: run.id }", Some("'list/0/id' is not a field of the result")),
        ("{ n: run.id }", Some("does not fit the field")),
        ("{ n: run.durations }", Some("durations")),
        ("{ n: result.n }", Some("result")),
        ("{ n: 'run.' }", Some("")),
    ] {
        let found = Contract::from_yaml(&format!("{fields}filled: {filled}"));
        match (found, wrong) {
            (Ok(_), None) => {}
            (Err(error), Some(wrong)) => {
                assert!(error.problems.iter().all(|problem| problem.code == Code::BadFilled));
                assert!(error.to_string().contains(wrong), "{filled}: {error}");
            }
            (found, _) => panic!("{filled}: {found:?}"),
        }
    }
}

const OBJECTS: &str = r##"
contract: acme/objects
version: 1
framing: any-json
schema:
  type: object
  required: [ok, meta, outer, mixed, open]
  properties:
    ok: { type: boolean }
    meta: { $ref: "#/$defs/times" }
    outer: { type: object, required: [inner], properties: { inner: { $ref: "#/$defs/times" } } }
    mixed: { type: object, required: [run, note], properties: { run: { type: string }, note: { type: string } } }
    open: { type: object, required: [run], properties: { run: { type: string } }, additionalProperties: true }
    times: { $ref: "#/$defs/times" }
  $defs:
    times: { type: object, required: [took_ms, run], properties: { took_ms: { type: integer }, run: { type: string } } }
filled:
  meta/took_ms: run.duration_ms
  meta/run: run.id
  outer/inner/took_ms: run.duration_ms
  outer/inner/run?: run.id
  mixed/run: run.id
  open/run: run.id
rules:
  - { id: meta-is-there, require: [meta] }
examples:
  - ok: true
    meta: { took_ms: 1, run: a }
    outer: { inner: { took_ms: 1, run: a } }
    mixed: { run: a, note: fine }
    open: { run: a }
"##;

#[test]
fn an_object_that_is_filled_in_is_not_asked_for() {
    let contract = Contract::from_yaml(OBJECTS).unwrap();
    let mut asked = vec![contract.prompt(), contract.repair(&contract.check("nothing"))];
    asked.extend(Target::ALL.map(|target| schema(&contract, target).schema.to_string()));
    for text in asked {
        for name in ["meta", "outer", "inner"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }
    assert!(contract.prompt().contains("`mixed`") && contract.prompt().contains("`open`"));
    let names: Vec<&String> = contract.asked_type().object().unwrap().fields.keys().collect();
    assert_eq!(names, ["mixed", "ok", "open", "times"], "others may refer to the same schema");
    assert_eq!(
        contract.asked_examples(),
        [json!({"ok": true, "mixed": {"note": "fine"}, "open": {}})]
    );
}

#[test]
fn an_object_that_is_filled_in_is_not_required() {
    let contract = Contract::from_yaml(OBJECTS).unwrap();
    let check = |value: &Value, context: Context| {
        contract.check_with(&value.to_string(), &contract.policy().with_context(&Arc::new(context)))
    };
    let filled = json!({"took_ms": 70, "run": "run-1"});
    for given in [json!({}), json!({"meta": null, "outer": null}), json!({"meta": {}, "outer": {}})]
    {
        let mut value = json!({"ok": true, "mixed": {"note": "fine"}, "open": {}});
        value.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let report = check(&value, ended());
        let result = report.value.clone().unwrap_or_default();
        assert_eq!(result["meta"], filled, "{report:#?}");
        assert_eq!(result["outer"]["inner"], filled, "{report:#?}");
    }
    let other =
        json!({"ok": true, "meta": {"run": "run-7"}, "mixed": {"note": "fine"}, "open": {}});
    assert_eq!(check(&other, ended()).codes(), [Code::FilledDiffers]);
}

#[test]
fn an_object_that_needs_fields_which_it_does_not_name_is_asked_for() {
    let asked_for = |more: &str| {
        let contract = Contract::from_yaml(&format!(
            "contract: acme/more\nversion: 1\nframing: any-json\nfilled: {{ meta/run: run.id }}\n\
             schema: {{ type: object, required: [meta], properties: {{ meta: {{ type: object, \
             properties: {{ run: {{ type: string }} }}, {more} }} }} }}\n"
        ))
        .unwrap();
        let policy = contract.policy().with_context(&Arc::new(ended()));
        let report = contract.check_with(r#"{"meta": {"note": "fine"}}"#, &policy);
        let filled = json!({"meta": {"note": "fine", "run": "run-1"}});
        assert_eq!(report.value, Some(filled), "{more}: {report:#?}");
        contract.asked_type().object().unwrap().fields.contains_key("meta")
    };
    for more in [
        "required: [run, note]",
        "minProperties: 2",
        "dependentRequired: { run: [note] }",
        "dependentSchemas: { run: { required: [note] } }",
    ] {
        assert!(asked_for(more), "{more}");
    }
    for more in ["required: [run]", "minProperties: 1"] {
        assert!(!asked_for(more), "{more}");
    }
}

#[test]
fn an_object_of_which_nothing_is_known_may_be_missing() {
    let contract = Contract::from_yaml(OBJECTS).unwrap();
    let value = json!({"ok": true, "mixed": {"note": "fine"}, "open": {}});
    let report = contract.check(&value.to_string());
    assert_eq!(report.value, Some(value), "{report:#?}");
    assert!(report.warnings.iter().all(|warning| warning.code == Code::NotFilled));
}

#[test]
fn a_rule_applies_to_an_object_with_a_field_of_the_agent() {
    let contract = Contract::from_yaml(
        "contract: acme/mixed\nversion: 1\nfields: { ok: boolean, mixed?: { run: string, note: string } }\n\
         filled: { mixed/run: run.id }\nrules: [{ id: mixed-when-ok, when: result.ok, require: [mixed] }]\n",
    )
    .unwrap();
    assert_eq!(contract.check(r#"{"ok": true}"#).codes(), [Code::MissingWhen]);
    assert!(contract.check(r#"{"ok": true, "mixed": {"note": "fine"}}"#).is_accepted());
}

#[test]
fn a_rule_applies_to_what_else_it_requires() {
    let contract = Contract::from_yaml(
        "contract: acme/both\nversion: 1\nfields: { ok: boolean, run?: string, note?: string }\n\
         filled: { run: run.id }\nrules: [{ id: both, when: result.ok, require: [run, note] }]\n",
    )
    .unwrap();
    assert_eq!(contract.check(r#"{"ok": true}"#).codes(), [Code::MissingWhen]);
    assert!(contract.check(r#"{"ok": true, "note": "fine"}"#).is_accepted());
}
