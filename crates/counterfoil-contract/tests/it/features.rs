//! What an embedder can leave out, and how a contract that needs it is refused. Run these with
//! `cargo test -p counterfoil-contract --no-default-features`.

use counterfoil_contract::{Code, Contract};

const WITH_RULE: &str = r#"{
    "contract": "acme/check", "version": 1,
    "fields": { "ok": "boolean", "fix_info?": "string" },
    "rules": [{ "id": "fix-info-when-failed", "when": "!result.ok", "require": ["fix_info"] }]
}"#;

const WITH_CLAIM: &str = r#"{
    "contract": "acme/check", "version": 1,
    "fields": { "ok": "boolean" },
    "claims": { "ok": { "kind": "command", "check": "test", "when": "result.ok" } }
}"#;

#[test]
fn a_contract_without_rules_needs_no_feature() {
    let contract = Contract::from_json(
        r#"{ "contract": "acme/check", "version": 1, "fields": { "level": "low | high" } }"#,
    )
    .unwrap();
    assert!(contract.check(r#"Done: {"level": "low"}"#).is_accepted());
    assert_eq!(contract.check(r#"{"level": "none"}"#).codes(), [Code::NotAllowed]);
}

#[cfg(feature = "rules")]
#[test]
fn rules_and_conditions_of_claims_are_compiled() {
    let contract = Contract::from_json(WITH_RULE).unwrap();
    assert_eq!(contract.check(r#"{"ok": false}"#).codes(), [Code::MissingWhen]);
    Contract::from_json(WITH_CLAIM).unwrap();
}

#[cfg(not(feature = "rules"))]
#[test]
fn without_rules_a_contract_that_has_some_does_not_load() {
    let error = Contract::from_json(WITH_RULE).unwrap_err();
    assert_eq!(error.problems.len(), 1);
    let problem = &error.problems[0];
    assert_eq!((problem.code, problem.place.as_str()), (Code::BadRule, "rules[0]"));
    assert!(problem.message.contains("'fix-info-when-failed' cannot be evaluated"), "{problem}");
    assert!(problem.hint.contains("feature `rules`"), "{problem}");

    let error = Contract::from_json(WITH_CLAIM).unwrap_err();
    assert_eq!(error.problems[0].code, Code::BadClaim);
    assert_eq!(error.problems[0].place, "claims.ok.when");
    assert!(error.problems[0].hint.contains("feature `rules`"), "{error}");
}

#[test]
fn contract_files_are_json_or_with_the_feature_yaml() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("a.json");
    std::fs::write(&json, r#"{"contract": "a/b", "version": 1, "fields": {"ok": "boolean"}}"#)
        .unwrap();
    assert_eq!(Contract::from_file(&json).unwrap().reference(), "a/b@1");

    let yaml = folder.path().join("a.yaml");
    std::fs::write(&yaml, "contract: a/b\nversion: 1\nfields: { ok: boolean }\n").unwrap();
    let loaded = Contract::from_file(&yaml);
    if cfg!(feature = "yaml") {
        assert_eq!(loaded.unwrap().reference(), "a/b@1");
    } else {
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains("cannot read YAML") && error.contains("feature `yaml`"), "{error}");
    }
}
