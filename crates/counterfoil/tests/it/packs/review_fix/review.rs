//! The first review: chunks, ids, and replies without a review.

use super::{
    FIXED, FIXER, GARBAGE, REVIEWER, SMALL, finding, fixed_at_once, found, ledger, nothing,
    one_file, outcomes, three_files,
};
use crate::packs::scenario::Scenario;
use serde_json::json;

/// Fixes for what three reviewers find in three files, and reviewers who find nothing after that.
fn and_all_is_fixed(scenario: Scenario) -> Scenario {
    let scenario = ["a", "b", "c"].iter().zip(1..).fold(scenario, |scenario, (name, chunk)| {
        let id = format!("c{chunk}-F001");
        let scenario = scenario.says(FIXER, outcomes(&[(&id, "fixed")])).when(&id);
        scenario.writes(&format!("src/{name}.rs"), &format!("pub fn {name}() {{ good() }}\n"))
    });
    (0..3).fold(scenario, |scenario, _| scenario.says(REVIEWER, nothing()))
}

#[test]
fn every_chunk_numbers_from_the_start_and_the_ids_differ() {
    let scenario = ["a", "b", "c"].iter().fold(three_files(), |scenario, name| {
        let file = format!("src/{name}.rs");
        scenario
            .says(REVIEWER, found(&[finding("F001", &file, "major")]))
            .when(&format!("file: {file}"))
    });
    let ran = and_all_is_fixed(scenario).run(&SMALL);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c2-F001 fixed 1", "c3-F001 fixed 1"]);
    assert_eq!(ran.variables()["recommendation"], "approve");
    assert_eq!(ran.read("src/b.rs"), "pub fn b() { good() }\n");
}

#[test]
fn the_diff_is_split_by_whole_files_into_chunks_that_fit() {
    let ran = three_files().says(REVIEWER, nothing()).run(&[]);
    assert_eq!(
        ran.attempts(),
        ["review/1/unified-reviewer#1 accepted"],
        "the default holds all of it"
    );
    let prompt = ran.prompt("review/1/unified-reviewer#1", 1);
    assert!(prompt.contains("3 whole files: src/a.rs, src/b.rs, src/c.rs"), "{prompt}");
    assert!(prompt.contains("+pub fn c() { changed() }"), "{prompt}");

    let apart = three_files()
        .says(REVIEWER, nothing())
        .says(REVIEWER, nothing())
        .says(REVIEWER, nothing())
        .run(&SMALL);
    assert_eq!(apart.report["attempts"].as_array().unwrap().len(), 3);
    let second = apart.prompt("review/2/unified-reviewer#1", 1);
    assert!(second.contains("+pub fn b() { changed() }") && !second.contains("fn a()"), "{second}");
}

#[test]
fn three_chunks_of_which_one_is_malformed_and_repaired() {
    let scenario = three_files()
        .says(REVIEWER, found(&[finding("F001", "src/a.rs", "major")]))
        .when("file: src/a.rs")
        .raw(REVIEWER, "```json\n{\"groups\": [{\"description\": \"cut of\n```\n")
        .when("file: src/b.rs")
        .says(REVIEWER, found(&[finding("F001", "src/b.rs", "major")]))
        .when("file: src/b.rs")
        .says(REVIEWER, found(&[finding("F001", "src/c.rs", "major")]))
        .when("file: src/c.rs");
    let ran = and_all_is_fixed(scenario).run(&SMALL);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c2-F001 fixed 1", "c3-F001 fixed 1"]);
    assert_eq!(ran.attempt("review/2/unified-reviewer#1")["repairs_asked"], 1);
    assert_eq!(ran.attempt("review/1/unified-reviewer#1")["repairs_asked"], 0);
}

#[test]
fn three_chunks_of_which_one_stays_malformed_block_the_approval() {
    let scenario = three_files()
        .says(REVIEWER, found(&[finding("F001", "src/a.rs", "major")]))
        .when("file: src/a.rs")
        .says(REVIEWER, nothing())
        .when("file: src/c.rs")
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/a.rs", "pub fn a() { good() }\n")
        .says(REVIEWER, nothing())
        .when("file: src/a.rs")
        .says(REVIEWER, nothing())
        .when("file: src/c.rs");
    // In both reviews: the reply and two repairs.
    let ran = (0..6)
        .fold(scenario, |scenario, _| scenario.raw(REVIEWER, GARBAGE).when("file: src/b.rs"))
        .run(&SMALL);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1"], "what the others found is kept");
    assert_eq!(ran.read("src/a.rs"), "pub fn a() { good() }\n");
    assert_eq!(ran.variables()["recommendation"], "comment");
    assert_eq!(ran.variables()["unreviewed"][0]["files"], json!(["src/b.rs"]));
    assert!(ran.reason().contains("chunk 5 (src/b.rs)"), "{}", ran.reason());
}

#[test]
fn what_is_no_review_is_no_approval() {
    let answers = [
        // Nothing at all, prose, JSON outside of any fence, another fence, a template, something
        // else in the fence.
        "",
        GARBAGE,
        "{\"groups\": []}",
        "```yaml\ngroups: []\n```",
        "```json\n{\"groups\": [{\"description\": \"<description>\", \"findings\": []}]}\n```",
        "```json\n{\"approved\": true}\n```",
        "```json\n[]\n```",
    ];
    for text in answers {
        let ran = (0..3)
            .fold(one_file().built_in_only(), |scenario, _| scenario.raw(REVIEWER, text))
            .run(&[]);
        assert_eq!(ran.ended(), ("blocked", None, 7), "{text}: {ran:?}");
        assert_eq!(ran.attempts(), ["review/1/unified-reviewer#1 contract"], "{text}");
        assert_eq!(ran.variables()["recommendation"], "comment", "{text}");
        assert!(
            ran.reason().starts_with("not reviewed, so not approved: chunk 1 (src/lib.rs)"),
            "{}",
            ran.reason()
        );
    }
}

#[test]
fn a_result_of_another_form_is_explained_and_asked_for_again() {
    let wrong = json!({"groups": [{"description": "keys", "findings": [{"id": "F001", "file": "src/lib.rs"}]}]});
    let ran = one_file()
        .says(REVIEWER, wrong)
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "minor")]))
        .says(FIXER, outcomes(&[("c1-F001", "blocked")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let asked = ran.prompt("review/1/unified-reviewer#1", 2);
    for field in ["issue", "severity", "line", "category"] {
        assert!(asked.contains(field), "{asked}");
    }
    assert_eq!(ledger(&ran), ["c1-F001 blocked 1"]);
}

#[test]
fn every_file_of_a_chunk_must_have_been_read() {
    let read = |files: &[&str]| json!({"groups": [], "files_reviewed": files});
    let ran = three_files()
        .says(REVIEWER, json!({"groups": []}))
        .says(REVIEWER, read(&["src/a.rs", "src/c.rs"]))
        .says(REVIEWER, read(&["src/a.rs", "./src/b.rs", "b/src/c.rs"]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.variables()["recommendation"], "approve");
    for reply in [2, 3] {
        let asked = ran.prompt("review/1/unified-reviewer#1", reply);
        assert!(asked.contains("src/a.rs, src/b.rs, src/c.rs"), "{asked}");
    }
}

#[test]
fn good_findings_of_a_review_that_stays_wrong_are_kept() {
    let bad =
        found(&[finding("F001", "src/lib.rs", "major"), finding("F002", "src/lib.rs", "trivial")]);
    let ran = one_file()
        .says(REVIEWER, bad.clone())
        .says(REVIEWER, bad.clone())
        .says(REVIEWER, bad)
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .run(&[]);
    // The second review is one, and nothing stands unreviewed any more; but what could not be read
    // is in the ledger, as it came.
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-unread-1 open 0"]);
    let unread = &ran.variables()["findings"][1]["finding"]["issue"];
    assert!(unread.as_str().unwrap().contains("F002 is wrong in src/lib.rs"), "{unread}");
    assert_eq!(ran.variables()["recommendation"], "comment");
    assert!(
        ran.transitions().contains(&"review/1: unified-reviewer>unreviewed".to_owned()),
        "{:?}",
        ran.transitions()
    );
    assert_eq!(ran.variables()["unreviewed"], json!([]));
}

#[test]
fn a_reviewer_that_fails_leaves_its_chunk_unreviewed() {
    for how in ["agent", "permission"] {
        let ran = three_files()
            .built_in_only()
            .reply(REVIEWER)
            .fails(how)
            .when("file: src/b.rs")
            .says(REVIEWER, nothing())
            .says(REVIEWER, nothing())
            .run(&SMALL);
        assert_eq!(ran.ended(), ("blocked", None, 7), "{how}: {ran:?}");
        assert!(ran.reason().contains("chunk 2 (src/b.rs)"), "{}", ran.reason());
        assert_eq!(ran.variables()["unreviewed"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn guidance_reaches_reviewers_and_fixers() {
    let words = "Mind the overflow.";
    let ran = fixed_at_once("major").run(&["--task", words]);
    for attempt in
        ["review/1/unified-reviewer#1", "fix/c1-g1/fix#1", "rereview/2/unified-reviewer#1"]
    {
        assert!(ran.prompt(attempt, 1).contains(words), "{attempt}");
    }
    let without = fixed_at_once("major").run(&[]);
    assert_eq!(without.ended(), ("done", None, 0));
    assert!(!without.prompt("review/1/unified-reviewer#1", 1).contains("Guidance"));
}

#[test]
fn nothing_that_changed_is_nothing_to_approve() {
    let ran = Scenario::new("review-fix").run(&[]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!((ran.attempts().len(), &ran.variables()["recommendation"]), (0, &json!(null)));
    assert!(ran.reason().contains("nothing was reviewed; --input base="), "{}", ran.reason());
}

#[test]
fn a_base_that_is_not_there_is_said_before_any_agent_works() {
    let ran = one_file().run(&["--input", "base=no-such-branch"]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(
        ran.attempts().is_empty() && ran.reason().contains("no-such-branch"),
        "{}",
        ran.reason()
    );
}

#[test]
fn the_base_stays_what_it_was_when_the_run_began() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .exec(
            "git -c user.name=Kim -c user.email=kim@example.com commit -qam 'while it is reviewed'",
        )
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let again = ran.prompt("rereview/2/unified-reviewer#1", 1);
    assert!(again.contains("-    1\n") && again.contains("+    1 // as it should be"), "{again}");
}

#[test]
fn a_reviewer_does_not_write() {
    let ran =
        one_file().says(REVIEWER, nothing()).writes("src/lib.rs", "pub fn mine() {}\n").run(&[]);
    assert_eq!(ran.read("src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n");
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}
