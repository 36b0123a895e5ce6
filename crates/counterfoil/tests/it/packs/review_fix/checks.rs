//! The project's checks: before the review, and after every round of fixes.

use super::{FIXED, FIXER, REVIEWER, finding, ledger, of_report, outcomes};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// Tests that pass while `src/lib.rs` has a function `one`.
const CHECKS: &str =
    "[checks]\ntest = \"grep -q 'fn one' src/lib.rs || { echo 'one is gone'; exit 1; }\"\n";

fn project(lib: &str) -> Scenario {
    Scenario::new("review-fix").file("counterfoil.toml", CHECKS).commit().file("src/lib.rs", lib)
}

fn review(findings: &[Value]) -> Value {
    super::found(findings)
}

#[test]
fn a_check_that_a_fix_broke_is_sent_back_and_fixed() {
    let ran = project("pub fn one() -> u32 {\n    2\n}\n")
        .says(REVIEWER, review(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", "pub fn two() -> u32 {\n    1\n}\n")
        .says(REVIEWER, review(&[]))
        .says(FIXER, outcomes(&[("check-test", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, review(&[]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "check-test fixed 1"]);
    assert_eq!(ran.variables()["recommendation"], "approve");
    let sent = ran.prompt("fix/check-test/fix#1", 1);
    assert!(sent.contains("one is gone"), "the output of the check is quoted: {sent}");
}

#[test]
fn a_check_that_failed_before_is_said_and_does_not_block() {
    let ran = project("pub fn two() -> u32 {\n    2\n}\n")
        .says(REVIEWER, review(&[finding("F001", "src/lib.rs", "minor")]))
        .says(FIXER, outcomes(&[("c1-F001", "blocked")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.variables()["recommendation"], "comment");
    assert!(ran.reason().contains("failing checks: test (before, too)"), "{}", ran.reason());
    let first = ran.prompt("review/1/unified-reviewer#1", 1);
    assert!(first.contains("`test`: ") && first.contains("one is gone"), "{first}");
    assert!(ran.read(&of_report(&ran, "report.md")).contains("## Failing checks"));
}

#[test]
fn a_fixer_is_told_the_base_the_files_and_the_diff() {
    let ran = project("pub fn one() -> u32 {\n    2\n}\n")
        .says(REVIEWER, review(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, review(&[]))
        .run(&[]);
    let prompt = ran.prompt("fix/c1-g1/fix#1", 1);
    let base = ran.variables()["since"].as_str().unwrap();
    for part in
        [base, "Its files: src/lib.rs.", "+    2", "- `test`: grep -q 'fn one'", "run_check"]
    {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let end = format!("----- end of the diff, {} -----", ran.run_id());
    assert!(prompt.contains(&end), "{prompt}");
    let second = ran.prompt("rereview/2/unified-reviewer#1", 1);
    assert!(!second.contains("chunk 2") && second.contains("second look"), "{second}");
}

#[test]
fn what_the_reviewer_remarks_beside_an_approval_is_in_the_report() {
    let said = json!({"success": true, "findings": [], "files_reviewed": 1, "summary": "Mind the overflow in release 2."});
    let ran =
        super::one_file().says("code-reviewer", said).run(&["--input", "reviewer=code-reviewer"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.read(&of_report(&ran, "report.md")).contains("Mind the overflow in release 2."));
    assert_eq!(ran.json(&of_report(&ran, "report.json"))["remarks"][0]["chunk"], 1);
}
