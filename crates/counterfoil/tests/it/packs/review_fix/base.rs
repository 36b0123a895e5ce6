//! What the change is against: the merge base by default, and how files are named.

use super::{FIXED, FIXER, REVIEWER, finding, found, ledger, nothing, outcomes};
use crate::packs::scenario::Scenario;
use serde_json::json;

const FIRST: &str = "review/1/unified-reviewer#1";
const TWO: &str = "pub fn one() -> u32 {\n    2\n}\n";

/// A branch `topic` with a committed change of `src/lib.rs`.
fn committed() -> Scenario {
    Scenario::new("review-fix")
        .git(&["checkout", "-q", "-b", "topic"])
        .file("src/lib.rs", TWO)
        .commit()
}

#[test]
fn a_branch_with_committed_work_is_reviewed_by_default() {
    let ran = committed().says(REVIEWER, nothing()).run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.prompt(FIRST, 1).contains("+    2"), "{}", ran.prompt(FIRST, 1));
    assert_eq!(ran.variables()["since"], ran.git(&["rev-parse", "main"]).trim());
}

#[test]
fn committed_and_uncommitted_work_are_one_change() {
    let ran = committed().file("README.md", "# Better\n").says(REVIEWER, nothing()).run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = ran.prompt(FIRST, 1);
    assert!(prompt.contains("+    2") && prompt.contains("+# Better"), "{prompt}");
}

#[test]
fn work_on_the_default_branch_is_compared_with_its_upstream() {
    let ran = Scenario::new("review-fix")
        .git(&["update-ref", "refs/remotes/origin/main", "HEAD"])
        .git(&["config", "branch.main.remote", "origin"])
        .git(&["config", "branch.main.merge", "refs/heads/main"])
        .git(&["config", "remote.origin.url", "."])
        .git(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"])
        .file("src/lib.rs", TWO)
        .commit()
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.variables()["since"], ran.git(&["rev-parse", "origin/main"]).trim());
}

#[test]
fn a_topic_branch_that_was_pushed_is_compared_with_the_default_branch() {
    let ran = committed()
        .git(&["update-ref", "refs/remotes/origin/topic", "HEAD"])
        .git(&["config", "branch.topic.remote", "origin"])
        .git(&["config", "branch.topic.merge", "refs/heads/topic"])
        .git(&["config", "remote.origin.url", "."])
        .git(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"])
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.variables()["since"], ran.git(&["rev-parse", "main"]).trim());
}

#[test]
fn what_was_merged_into_main_since_is_no_part_of_the_change() {
    let ran = committed()
        .git(&["checkout", "-q", "main"])
        .file("README.md", "# Somebody else\n")
        .commit()
        .git(&["checkout", "-q", "topic"])
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(!ran.prompt(FIRST, 1).contains("Somebody else"));
    assert_eq!(ran.variables()["files"], json!(["src/lib.rs"]));
}

#[test]
fn a_run_that_cannot_read_the_change_says_how_to_name_another_base() {
    let hint = "; --input base=REVISION names another base";
    let unrelated: fn(Scenario) -> Scenario =
        |one| one.git(&["checkout", "-q", "--orphan", "other"]).commit();
    let same: fn(Scenario) -> Scenario = |one| one;
    for (prepare, input, reason, helps) in [
        (same, "base=nowhere", "'nowhere' is not a revision", true),
        (unrelated, "base=merge-base", "have no common commit", true),
        (same, "chunk_tokens=0", "a chunk cannot have 0 tokens", false),
        (|one| one.file(".git/index", "broken"), "base=HEAD", "index file", false),
        (|one| one.git(&["config", "core.bare", "true"]), "base=HEAD", "work", false),
    ] {
        let scenario = Scenario::new("review-fix").built_in_only().file("src/lib.rs", TWO);
        let ran = prepare(scenario).run(&["--input", input]);
        assert_eq!(ran.ended(), ("blocked", None, 7), "{input}: {ran:?}");
        assert!(ran.reason().contains(reason), "{input}: {}", ran.reason());
        assert_eq!(ran.reason().contains(hint), helps, "{input}: {}", ran.reason());
    }
}

#[test]
fn a_file_has_one_name_however_it_is_written() {
    for file in ["src/lib.rs", "./src/lib.rs", "b/src/lib.rs", "a/src/lib.rs", "src//lib.rs"] {
        let review = json!({
            "groups": [{"description": "d", "findings": [finding("F001", file, "major")]}],
            "files_reviewed": [file]
        });
        let ran = Scenario::new("review-fix")
            .built_in_only()
            .file("src/lib.rs", TWO)
            .says(REVIEWER, review)
            .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
            .writes("src/lib.rs", FIXED)
            .says(REVIEWER, nothing())
            .run(&[]);
        assert_eq!(ran.ended(), ("done", None, 0), "{file}: {ran:?}");
        assert_eq!(ran.variables()["findings"][0]["finding"]["file"], "src/lib.rs", "{file}");
        assert_eq!(ran.attempt("fix/c1-g1/fix#1")["repairs_asked"], 0, "{file}");
    }
}

#[test]
fn an_absolute_path_in_the_workspace_is_the_same_file() {
    let reply =
        r#"printf '```json\n{"groups": [], "files_reviewed": ["%s/src/lib.rs"]}\n```\n' "$PWD""#;
    let scenario = Scenario::new("review-fix").built_in_only().file("src/lib.rs", TWO);
    let scenario = scenario.file(".git/reviewer.sh", reply);
    let ran = scenario.run(&["--agent", "unified-reviewer=command:sh .git/reviewer.sh"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
}

/// Two files in one change, and a finding in one of them.
fn two_files() -> Scenario {
    Scenario::new("review-fix")
        .file("src/lib.rs", TWO)
        .file("src/a.rs", "pub fn a() {}\n")
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "critical")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
}

#[test]
fn fixed_in_another_file_of_the_change_is_believed_unless_it_is_found_again() {
    let ran = two_files()
        .writes("src/a.rs", "pub fn a() { guard() }\n")
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1"]);
    assert_eq!(ran.attempt("fix/c1-g1/fix#1")["repairs_asked"], 0);

    let again = two_files()
        .built_in_only()
        .writes("src/a.rs", "pub fn a() { guard() }\n")
        .says(REVIEWER, found(&[finding("c1-F001", "src/lib.rs", "critical")]))
        .says(FIXER, outcomes(&[("c1-F001", "blocked")]))
        .run(&[]);
    assert_eq!(again.ended(), ("failed", None, 8), "{again:?}");
    assert_eq!(ledger(&again), ["c1-F001 blocked 2"]);
}

#[test]
fn fixed_by_a_new_file_is_believed() {
    let ran =
        two_files().writes("src/new.rs", "pub fn guard() {}\n").says(REVIEWER, nothing()).run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1"]);
}
