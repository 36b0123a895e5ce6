//! Fixing: the outcomes that a fixer reports, and what happens to its files.

use super::{
    FIXED, FIXER, GARBAGE, REVIEWER, excuses, finding, fixed_at_once, found, found_together,
    ledger, nothing, one_file, outcomes,
};
use crate::packs::scenario::Scenario;
use serde_json::json;
use std::path::Path;

const FIX: &str = "fix/c1-g1/fix#1";

/// Three findings in one group, in `src/lib.rs`.
fn three_findings() -> Scenario {
    let all = ["F001", "F002", "F003"].map(|id| finding(id, "src/lib.rs", "minor"));
    one_file().says(REVIEWER, found_together(&all))
}

#[test]
fn outcomes_for_all_ids() {
    let ran = three_findings()
        .also_ejected()
        .says(
            FIXER,
            outcomes(&[("c1-F001", "fixed"), ("c1-F002", "blocked"), ("c1-F003", "deferred")]),
        )
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .says(FIXER, outcomes(&[("c1-F003", "fixed")]))
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n// three\n")
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-F002 blocked 1", "c1-F003 fixed 2"]);
    assert_eq!(excuses(&ran, "c1-F002"), ["c1-F002 is blocked"]);
}

#[test]
fn outcomes_for_some_ids_defer_the_others_and_say_so() {
    let ran = three_findings()
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .says(FIXER, outcomes(&[("c1-F002", "blocked"), ("c1-F003", "blocked")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-F002 blocked 2", "c1-F003 blocked 2"]);
    assert_eq!(excuses(&ran, "c1-F002"), ["the fixer did not mention it", "c1-F002 is blocked"]);
    let again = ran.prompt("fix/c1-g1/fix#2", 1);
    assert!(
        again.contains("c1-F002") && !again.contains("c1-F001"),
        "what is fixed is not sent again: {again}"
    );
}

#[test]
fn an_outcome_for_an_unknown_id_is_a_violation() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1"]);
    let asked = ran.prompt(FIX, 2);
    assert!(asked.contains("an outcome names a finding that was not sent"), "{asked}");
}

#[test]
fn two_outcomes_for_one_id_are_a_violation() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed"), ("c1-F001", "deferred")]))
        .writes("src/lib.rs", FIXED)
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt(FIX)["repairs_asked"], 1);
    assert!(ran.prompt(FIX, 2).contains("c1-F001"), "{}", ran.prompt(FIX, 2));
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1"]);
}

#[test]
fn ids_that_stay_unknown_cost_the_findings_their_outcome_and_not_the_work() {
    let wrong = || outcomes(&[("F001", "fixed")]);
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, wrong())
        .writes("src/lib.rs", FIXED)
        .says(FIXER, wrong())
        .says(FIXER, wrong())
        .says(REVIEWER, nothing())
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 2"]);
    assert_eq!(ran.read("src/lib.rs"), FIXED);
    assert!(excuses(&ran, "c1-F001")[0].starts_with("no report of the fixer: "), "{ran:?}");
}

#[test]
fn fixed_for_a_file_that_was_not_touched_is_refuted_and_repaired() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("README.md", "# Something else\n")
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1"]);
    let asked = ran.prompt(FIX, 2);
    assert!(asked.contains("its file did not change: c1-F001 in src/lib.rs"), "{asked}");
}

#[test]
fn fixed_that_stays_refuted_is_deferred() {
    let scenario = one_file().says(
        REVIEWER,
        found_together(&[
            finding("F001", "src/lib.rs", "major"),
            finding("F002", "src/lib.rs", "minor"),
        ]),
    );
    let said = || outcomes(&[("c1-F001", "fixed"), ("c1-F002", "blocked")]);
    let scenario = (0..9).fold(scenario, |scenario, at| {
        if at < 3 {
            scenario.says(FIXER, said())
        } else {
            scenario.says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        }
    });
    let ran = scenario.run(&[]);
    // What it said of the other finding counts.
    assert_eq!(ledger(&ran), ["c1-F001 deferred 3", "c1-F002 blocked 1"], "{ran:?}");
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.variables()["recommendation"], "comment");
    assert!(
        excuses(&ran, "c1-F001").iter().all(|excuse| excuse.contains("did not change")),
        "{ran:?}"
    );
    assert_eq!(ran.attempt(FIX)["outcome"], "claim");
}

#[test]
fn a_fixer_that_edits_files_and_then_writes_garbage_leaves_its_edits() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .raw(FIXER, GARBAGE)
        .writes("src/lib.rs", FIXED)
        .writes("src/new.rs", "pub fn new() {}\n")
        .raw(FIXER, "Still no block.")
        .raw(FIXER, "")
        .says(REVIEWER, nothing())
        // It is told what happened, and finds that nothing is left to do: that its file did not
        // change now refutes nothing.
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(
        (ran.read("src/lib.rs"), ran.read("src/new.rs")),
        (FIXED.into(), "pub fn new() {}\n".into())
    );
    assert_eq!(ledger(&ran), ["c1-F001 fixed 2"]);
    assert_eq!(ran.attempts()[1], "fix/c1-g1/fix#1 contract");
    // They are recorded from version control, and looked at: the next review has them in its diff.
    let again = ran.prompt("rereview/2/unified-reviewer#1", 1);
    assert!(again.contains("+pub fn new() {}") && again.contains("as it should be"), "{again}");
    let fixes =
        ran.events().into_iter().filter(|event| event["kind"] == "workspace-folded").count();
    assert!(fixes >= 1, "{ran:?}");
    let second = ran.prompt("fix/c1-g1/fix#2", 1);
    assert!(
        second.contains("no report of the fixer: ") && second.contains("Its file was changed then"),
        "{second}"
    );
    // What the first attempt changed, the second need not change again: nothing shows who fixed it.
    let claims = ran.attempt("fix/c1-g1/fix#2")["claims"].to_string();
    assert!(!claims.contains("outcomes"), "{claims}");
}

#[test]
fn a_fixer_that_fails_defers_its_findings_and_the_next_one_fixes_them() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .reply(FIXER)
        .fails("agent")
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 2"]);
    assert_eq!(excuses(&ran, "c1-F001").len(), 1);
}

#[test]
fn deferred_three_times_is_sent_with_the_earlier_excuses_and_then_no_more() {
    let excuse = |text: &str| json!({"outcomes": [{"id": "c1-F001", "outcome": "deferred", "explanation": text}]});
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "critical")]))
        .says(FIXER, excuse("needs a migration"))
        .says(FIXER, excuse("the migration is not there"))
        .says(FIXER, excuse("ask me tomorrow"))
        .run(&[]);
    assert_eq!(ran.ended(), ("failed", None, 8), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 deferred 3"]);
    assert_eq!(
        excuses(&ran, "c1-F001"),
        ["needs a migration", "the migration is not there", "ask me tomorrow"]
    );
    let third = ran.prompt("fix/c1-g1/fix#3", 1);
    assert!(third.contains("sent 2 times before"), "{third}");
    assert!(third.contains("- needs a migration\n  - the migration is not there"), "{third}");
    assert!(!ran.prompt(FIX, 1).contains("before and is still there"));
    assert_eq!(ran.variables()["recommendation"], "request-changes");
    assert_eq!(ran.report["iterations"], 3);
}

#[test]
fn three_attempts_are_the_most_whatever_the_rounds_are() {
    let scenario = one_file().says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]));
    let scenario = (0..5).fold(scenario, |scenario, at| {
        let text = format!("not in attempt {at}");
        scenario.says(
            FIXER,
            json!({"outcomes": [{"id": "c1-F001", "outcome": "deferred", "explanation": text}]}),
        )
    });
    let more_rounds = |pack: &Path| {
        let file = pack.join("workflow.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("rounds: { max: 3"));
        std::fs::write(&file, text.replace("rounds: { max: 3", "rounds: { max: 5")).unwrap();
    };
    let ran = scenario.run_changed(more_rounds, &[]);
    assert_eq!(
        (ran.ended(), ledger(&ran)),
        (("done", None, 0), vec!["c1-F001 deferred 3".to_owned()]),
        "{ran:?}"
    );
}

#[test]
fn blocked_is_not_sent_again() {
    let ran = one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", "major")]))
        .says(FIXER, outcomes(&[("c1-F001", "blocked")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 blocked 1"]);
    assert_eq!(ran.attempts().len(), 2, "{:?}", ran.attempts());
}

/// A command that waits until the other one has begun, so neither ends if they run one after the
/// other.
fn wait_for(meet: &Path, own: &str, other: &str) -> String {
    let at = meet.display();
    format!(
        "touch {at}/{own}; n=0; until [ -e {at}/{other} ]; do n=$((n+1)); [ $n -lt 600 ] || exit 1; sleep 0.05; done"
    )
}

#[test]
fn groups_are_fixed_in_parallel() {
    let meet = tempfile::tempdir().unwrap();
    let wait = |own: &str, other: &str| wait_for(meet.path(), own, other);
    let ran = one_file()
        .built_in_only()
        .file("src/b.rs", "pub fn b() {}\n")
        .says(
            REVIEWER,
            found(&[finding("F001", "src/lib.rs", "major"), finding("F002", "src/b.rs", "major")]),
        )
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .when("c1-F001")
        .exec(&format!("{} && echo '// fixed' >> src/lib.rs", wait("one", "two")))
        .says(FIXER, outcomes(&[("c1-F002", "fixed")]))
        .when("c1-F002")
        .exec(&format!("{} && echo '// fixed' >> src/b.rs", wait("two", "one")))
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-F002 fixed 1"]);
    assert!(
        ran.read("src/lib.rs").ends_with("// fixed\n")
            && ran.read("src/b.rs").ends_with("// fixed\n")
    );
}

#[test]
fn a_group_whose_lines_another_changed_is_deferred_and_fixed_in_the_next_round() {
    // Once: what is kept of the second one has a name of its own in every run.
    let ran = one_file()
        .built_in_only()
        .says(
            REVIEWER,
            found(&[
                finding("F001", "src/lib.rs", "major"),
                finding("F002", "src/lib.rs", "major"),
            ]),
        )
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .when("c1-F001")
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    10\n}\n")
        .says(FIXER, outcomes(&[("c1-F002", "fixed")]))
        .when("c1-F002")
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    20\n}\n")
        .says(REVIEWER, nothing())
        .says(FIXER, outcomes(&[("c1-F002", "fixed")]))
        .when("c1-F002")
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-F002 fixed 2"]);
    let excuse = &excuses(&ran, "c1-F002")[0];
    assert!(excuse.contains("conflict") && excuse.contains(".patch"), "{excuse}");
    assert_eq!(ran.read("src/lib.rs"), FIXED);
}

#[test]
fn the_user_index_is_not_touched_and_nothing_is_committed() {
    let ran = fixed_at_once("major").git(&["add", "src/lib.rs"]).run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.git(&["log", "--format=%s"]).lines().count(), 1);
    assert!(ran.git(&["diff", "--cached"]).contains("+    2"), "what was staged is staged still");
}

#[test]
fn what_checks_leave_behind_in_two_worktrees_is_no_conflict() {
    let meet = tempfile::tempdir().unwrap();
    let work = |own: &str, other: &str, file: &str| {
        let wait = wait_for(meet.path(), own, other);
        format!("{wait} && echo '// fixed' >> {file} && echo {own} > .coverage")
    };
    let read = json!({"groups": [], "files_reviewed": ["src/lib.rs", "src/b.rs", ".coverage"]});
    let ran = one_file()
        .built_in_only()
        .file("src/b.rs", "pub fn b() {}\n")
        .says(
            REVIEWER,
            found(&[finding("F001", "src/lib.rs", "major"), finding("F002", "src/b.rs", "major")]),
        )
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .when("c1-F001")
        .exec(&work("one", "two", "src/lib.rs"))
        .says(FIXER, outcomes(&[("c1-F002", "fixed")]))
        .when("c1-F002")
        .exec(&work("two", "one", "src/b.rs"))
        .says(REVIEWER, read)
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-F002 fixed 1"]);
    assert!(["src/lib.rs", "src/b.rs"].iter().all(|file| ran.read(file).ends_with("// fixed\n")));
    assert_eq!(ran.read(".coverage").lines().count(), 1);
}
