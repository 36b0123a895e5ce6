//! The other reviewer: single findings without ids.

use super::{FIXED, FIXER, REVIEWER, ledger, one_file, outcomes};
use serde_json::{Value, json};

const CODE_REVIEWER: &str = "code-reviewer";
const BY_IT: [&str; 2] = ["--input", "reviewer=code-reviewer"];

fn review(findings: &Value) -> Value {
    json!({"success": true, "findings": findings, "files_reviewed": 1, "summary": "Read all of it"})
}

fn remark(severity: &str, message: &str) -> Value {
    json!({"severity": severity, "file": "src/lib.rs", "line": 2, "message": message})
}

#[test]
fn one_finding_is_one_group_and_a_suggestion_counts_as_minor() {
    let ran = one_file()
        .says(
            CODE_REVIEWER,
            review(&json!([
                remark("major", "It returns two"),
                remark("suggestion", "Name it better")
            ])),
        )
        .says(FIXER, outcomes(&[("c1-F1", "fixed")]))
        .when("It returns two")
        .writes("src/lib.rs", FIXED)
        .says(FIXER, outcomes(&[("c1-F2", "blocked")]))
        .when("Name it better")
        .says(CODE_REVIEWER, review(&json!([])))
        .run(&BY_IT);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F1 fixed 1", "c1-F2 blocked 1"]);
    assert_eq!(ran.variables()["findings"][1]["finding"]["severity"], "minor");
    assert_eq!(ran.variables()["recommendation"], "approve", "only a suggestion is left");
    let mut fixes: Vec<String> =
        ran.attempts().into_iter().filter(|attempt| attempt.starts_with("fix/")).collect();
    fixes.sort();
    assert_eq!(fixes, ["fix/c1-g1/fix#1 accepted", "fix/c1-g2/fix#1 accepted"]);
    let again = ran.prompt("rereview/2/code-reviewer#1", 1);
    assert!(again.contains("(fixed) major, src/lib.rs:2: It returns two"), "{again}");
}

#[test]
fn a_finding_in_the_same_words_is_the_same_and_open_again() {
    let said = || review(&json!([remark("major", "It returns two")]));
    let ran = one_file()
        .says(CODE_REVIEWER, said())
        .says(FIXER, outcomes(&[("c1-F1", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(CODE_REVIEWER, said())
        .says(FIXER, outcomes(&[("c1-F1", "blocked")]))
        .run(&BY_IT);
    assert_eq!(
        (ran.ended(), ledger(&ran)),
        (("done", None, 0), vec!["c1-F1 blocked 2".to_owned()]),
        "{ran:?}"
    );
}

#[test]
fn a_review_that_says_it_is_none_is_no_approval() {
    for (fields, words) in [
        (
            json!({"success": false, "errors": ["the diff is empty"]}),
            "could not review it: the diff is empty",
        ),
        (json!({"truncated": true}), "did not read all of it"),
        (json!({"files_reviewed": 0}), "read no file"),
    ] {
        let mut said = review(&json!([]));
        for (field, value) in fields.as_object().unwrap() {
            said[field] = value.clone();
        }
        let ran = one_file().built_in_only().says(CODE_REVIEWER, said).run(&BY_IT);
        assert_eq!(ran.ended(), ("blocked", None, 7), "{fields}: {ran:?}");
        assert!(ran.reason().contains(words), "{}", ran.reason());
        assert_eq!(ran.variables()["recommendation"], "comment");
    }
}

#[test]
fn what_a_truncated_review_found_is_kept() {
    let mut said = review(&json!([remark("critical", "It returns two")]));
    said["truncated"] = json!(true);
    let ran = one_file()
        .says(CODE_REVIEWER, said)
        .says(FIXER, outcomes(&[("c1-F1", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(CODE_REVIEWER, review(&json!([])))
        .run(&BY_IT);
    assert_eq!(
        (ran.ended(), ledger(&ran)),
        (("done", None, 0), vec!["c1-F1 fixed 1".to_owned()]),
        "{ran:?}"
    );
}

#[test]
fn strict_types_are_asked_for_again() {
    let mut said = review(&json!([]));
    said["success"] = json!("true");
    let ran =
        one_file().says(CODE_REVIEWER, said).says(CODE_REVIEWER, review(&json!([]))).run(&BY_IT);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("review/1/code-reviewer#1")["repairs_asked"], 1);
}

#[test]
fn another_reviewer_is_refused() {
    let ran = one_file().built_in_only().says(REVIEWER, super::nothing()).run(&[]);
    let said = ran.run_command(&["run", "review-fix", "--input", "reviewer=somebody"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("unified-reviewer"), "{said:?}");
}
