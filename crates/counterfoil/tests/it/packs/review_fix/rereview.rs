//! The second review: known and new findings, and when the loop ends.

use super::{
    FIXED, FIXER, GARBAGE, REVIEWER, excuses, finding, fixed_at_once, found, ledger, nothing,
    one_file, outcomes,
};
use crate::packs::scenario::Scenario;
use serde_json::json;

const AGAIN: &str = "rereview/2/unified-reviewer#1";

/// One finding in `src/lib.rs` that a fixer says is fixed.
fn said_to_be_fixed() -> Scenario {
    one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
}

/// It is fixed a second time, and then it stays so.
fn and_fixed_again(scenario: Scenario) -> Scenario {
    scenario
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n// really\n")
        .says(REVIEWER, nothing())
}

#[test]
fn the_second_review_sees_the_change_as_it_is_now_and_what_is_known() {
    let ran = fixed_at_once("major").run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.report["iterations"], 1);
    let prompt = ran.prompt(AGAIN, 1);
    assert!(prompt.contains("+    1 // as it should be") && !prompt.contains("+    2"), "{prompt}");
    assert!(
        prompt.contains("c1-F001 (fixed) major, src/lib.rs:1: F001 is wrong in src/lib.rs"),
        "{prompt}"
    );
    assert!(prompt.contains("It is fixed, the fixer says: c1-F001 is fixed"), "{prompt}");
    assert!(!ran.prompt("review/1/unified-reviewer#1", 1).contains("known already"));
}

#[test]
fn a_fixed_finding_that_is_found_again_under_its_id_is_open_again() {
    let scenario =
        said_to_be_fixed().says(REVIEWER, found(&[finding("c1-F001", "src/lib.rs", "major")]));
    let ran = and_fixed_again(scenario).run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 2"]);
    let told = "it was said to be fixed (c1-F001 is fixed), and the review found it again";
    assert_eq!(excuses(&ran, "c1-F001"), [told]);
    assert!(ran.prompt("fix/c1-g1/fix#2", 1).contains(told));
}

#[test]
fn one_that_is_found_again_is_not_fixed_by_saying_so_once_more() {
    let scenario =
        said_to_be_fixed().says(REVIEWER, found(&[finding("c1-F001", "src/lib.rs", "critical")]));
    let again = outcomes(&[("c1-F001", "fixed")]);
    let scenario =
        scenario.says(FIXER, again.clone()).says(FIXER, again.clone()).says(FIXER, again.clone());
    let ran =
        scenario.says(FIXER, again.clone()).says(FIXER, again.clone()).says(FIXER, again).run(&[]);
    assert_ne!(ran.variables()["recommendation"], "approve", "{ran:?}");
    let claims = ran.report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["claims"].as_array().unwrap());
    let refuted = claims
        .filter(|claim| claim["claim"] == "outcomes" && claim["verdict"] == "refuted")
        .count();
    assert!(refuted > 0, "the second time nothing was changed: {ran:?}");
}

#[test]
fn a_fixed_finding_that_is_found_again_in_the_same_words_is_open_again() {
    let ran = and_fixed_again(
        said_to_be_fixed().says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")])),
    )
    .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 2"]);
}

#[test]
fn a_new_finding_of_the_second_review_has_an_id_of_its_own() {
    let mut other = finding("F001", "src/lib.rs", "major");
    other["issue"] = json!("the fix broke something else");
    let ran = said_to_be_fixed()
        .says(REVIEWER, found(&[other]))
        .says(FIXER, outcomes(&[("c2-F001", "fixed")]))
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n// both\n")
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c2-F001 fixed 1"]);
    assert_eq!(ran.report["iterations"], 2);
}

#[test]
fn the_same_words_far_away_are_another_finding() {
    let mut far = finding("F001", "src/lib.rs", "major");
    far["line"] = json!(12);
    let ran = said_to_be_fixed()
        .says(REVIEWER, found(&[far]))
        .says(FIXER, outcomes(&[("c2-F001", "blocked")]))
        .run(&[]);
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c2-F001 blocked 1"], "{ran:?}");
}

#[test]
fn one_that_is_found_again_in_another_file_says_where() {
    let elsewhere = finding("c1-F001", "src/other.rs", "major");
    let ran = and_fixed_again(said_to_be_fixed().says(REVIEWER, found(&[elsewhere]))).run(&[]);
    assert_eq!(ledger(&ran), ["c1-F001 fixed 2"], "{ran:?}");
    let told = &excuses(&ran, "c1-F001")[0];
    assert!(
        told.ends_with("found it again in src/other.rs: c1-F001 is wrong in src/other.rs"),
        "{told}"
    );
}

#[test]
fn what_is_known_and_not_fixed_is_not_counted_twice() {
    let both =
        found(&[finding("F001", "src/lib.rs", "minor"), finding("F002", "src/lib.rs", "minor")]);
    let ran = one_file()
        .says(REVIEWER, both.clone())
        .says(FIXER, outcomes(&[("c1-F001", "blocked")]))
        .when("c1-F001")
        .says(FIXER, outcomes(&[("c1-F002", "fixed")]))
        .when("c1-F002")
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "minor")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 blocked 1", "c1-F002 fixed 1"]);
}

#[test]
fn at_most_three_iterations_and_what_is_found_then_stays_open() {
    let mut scenario = one_file().says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]));
    for round in 1..=4 {
        scenario = scenario
            .says(FIXER, outcomes(&[(&format!("c{round}-F00{round}"), "fixed")]))
            .writes("src/lib.rs", &format!("pub fn one() -> u32 {{\n    {round}0\n}}\n"))
            .says(REVIEWER, found(&[finding(&format!("F00{}", round + 1), "src/lib.rs", "major")]));
    }
    let ran = scenario.run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.report["iterations"], 3);
    assert_eq!(
        ledger(&ran),
        ["c1-F001 fixed 1", "c2-F002 fixed 1", "c3-F003 fixed 1", "c4-F004 open 0"]
    );
    assert_eq!(ran.variables()["recommendation"], "comment");
    assert_eq!(ran.attempts().iter().filter(|attempt| attempt.starts_with("fix/")).count(), 3);
}

#[test]
fn what_did_not_change_is_not_reviewed_again() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "minor")]))
        .says(FIXER, outcomes(&[("c1-F001", "deferred")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let reviews = ran
        .attempts()
        .into_iter()
        .filter(|attempt| attempt.contains("reviewer"))
        .collect::<Vec<_>>();
    assert_eq!(
        reviews,
        ["review/1/unified-reviewer#1 accepted", "rereview/2/unified-reviewer#1 accepted"]
    );
}

#[test]
fn a_second_review_that_is_none_blocks_the_approval() {
    let ran =
        (0..3).fold(said_to_be_fixed(), |scenario, _| scenario.raw(REVIEWER, GARBAGE)).run(&[]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1"]);
    assert_eq!(ran.variables()["recommendation"], "comment");
    assert!(ran.reason().contains("chunk 2 (src/lib.rs)"), "{}", ran.reason());
}

#[test]
fn a_change_that_the_fixers_took_back_leaves_nothing_to_look_at() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n")
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!((ledger(&ran), ran.attempts().len()), (vec!["c1-F001 fixed 1".to_owned()], 2));
}
