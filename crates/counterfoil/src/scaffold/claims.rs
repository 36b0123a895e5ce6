//! The claims that an example of a result obviously makes, by the names and types of its fields.

use counterfoil_contract::claim::{Claim, ClaimKind};
use serde_json::{Map, Value};

/// The check that a field about tests is compared with.
const TEST_CHECK: &str = "test";

const FILES: [&str; 6] = [
    "files_changed",
    "changed_files",
    "files_modified",
    "modified_files",
    "files_touched",
    "files_written",
];
const TESTS: [&str; 6] =
    ["tests_passing", "tests_passed", "tests_pass", "tests_ok", "tests_green", "all_tests_pass"];
const COMMITS: [&str; 4] = ["commit", "commit_hash", "commit_sha", "commit_id"];

/// The claims of an example, by field. None of them is required: they are verified and reported.
pub(super) fn of(example: &Value) -> Vec<(&str, Claim)> {
    let fields = example.as_object().into_iter().flat_map(Map::iter);
    fields.filter_map(|(name, value)| Some((name.as_str(), claim(name, value)?))).collect()
}

fn claim(name: &str, value: &Value) -> Option<Claim> {
    let is = |names: &[&str]| names.contains(&name.to_lowercase().replace('-', "_").as_str());
    match value {
        Value::Array(items) if is(&FILES) && items.iter().all(Value::is_string) => {
            Some(Claim::new(ClaimKind::FilesChanged))
        }
        Value::Bool(_) if is(&TESTS) => {
            let check = Some(TEST_CHECK.to_owned());
            Some(Claim { check, ..Claim::new(ClaimKind::Command) })
        }
        Value::String(_) if is(&COMMITS) => Some(Claim::new(ClaimKind::Commit)),
        _ => None,
    }
}

/// The example as an agent that changed no files would fill it in.
pub(super) fn without_work(example: &Value) -> Value {
    let mut result = example.clone();
    for (name, claim) in of(example) {
        if claim.kind == ClaimKind::FilesChanged {
            result[name] = Value::Array(Vec::new());
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_named_and_typed_like_a_claim_is_one() {
        let kinds = |example: Value| {
            let kind = |(name, claim): (&str, Claim)| (name.to_owned(), claim.kind);
            of(&example).into_iter().map(kind).collect::<Vec<_>>()
        };
        assert_eq!(
            kinds(
                json!({"files_changed": ["a"], "tests_passing": true, "commit": "abc1234", "ok": true})
            ),
            [
                ("files_changed".to_owned(), ClaimKind::FilesChanged),
                ("tests_passing".to_owned(), ClaimKind::Command),
                ("commit".to_owned(), ClaimKind::Commit),
            ]
        );
        assert_eq!(
            kinds(json!({"files_changed": 3, "tests_passing": "12 of 12", "files": ["a"]})),
            []
        );
        assert_eq!(kinds(json!({"changedFiles": ["a"], "Changed-Files": []})).len(), 1);
    }

    #[test]
    fn who_did_nothing_changed_no_files() {
        let example = json!({"files_changed": ["a"], "summary": "S."});
        assert_eq!(without_work(&example), json!({"files_changed": [], "summary": "S."}));
    }
}
