//! Features that do not depend on each other, built at once in worktrees.

use super::{
    Pipeline, about, approved, commits, done, in_repository, kept, pipeline, planned, ready,
};
use crate::packs::scenario::Scenario;

const TWO: [&str; 4] = ["--task", "a: Add a\nb: Add b", "--input", "parallel=2"];

/// Waits until both executors are at work.
fn meet() -> String {
    in_repository(
        ": > .git/at-$$; i=0; while [ $(ls .git | grep -c ^at-) -lt 2 ] && [ $i -lt 200 ]; do \
         sleep 0.1; i=$((i+1)); done; [ $(ls .git | grep -c ^at-) -lt 2 ] || : > .git/both-met",
    )
}

/// Both features, each built while the other is.
fn both(scenario: Scenario) -> Scenario {
    let mut scenario = scenario.plan("a", &[], 1, 1).plan("b", &[], 2, 1);
    for slug in ["a", "b"] {
        scenario =
            scenario.tdd(slug, "1/1").exec(&meet()).review(slug, approved()).gate(slug, ready());
    }
    scenario
}

#[test]
fn independent_features_are_built_at_once_and_committed_each() {
    let ran = both(pipeline()).run(&TWO);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.path(".git/both-met").exists(), "they were not built at the same time");
    let mut subjects = commits(&ran);
    subjects.sort();
    assert_eq!(subjects, ["feat(a): Add a", "feat(b): Add b"]);
    for slug in ["a", "b"] {
        let subject = format!("feat({slug})");
        let files =
            ran.git(&["log", "--fixed-strings", "--grep", &subject, "--name-only", "--format="]);
        let theirs = ["a", "b"].map(|slug| files.contains(&format!("src/{slug}.rs")));
        assert_eq!(theirs, [slug == "a", slug == "b"], "{files}");
    }
}

#[test]
fn features_that_change_the_same_lines_are_not_both_merged() {
    let mut scenario = pipeline().plan("a", &[], 1, 1).plan("b", &[], 2, 1);
    for slug in ["a", "b"] {
        scenario = scenario
            .says("tdd-task-executor", done("1/1"))
            .when(&about(slug))
            .writes("src/lib.rs", &format!("// {slug}\n"))
            .tests(slug)
            .exec(&meet())
            .review(slug, approved())
            .gate(slug, ready());
    }
    let ran = scenario.run(&TWO);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(commits(&ran).len(), 1, "{ran:?}");
    assert!(ran.reason().contains("conflict") && kept(&ran).contains("src/lib.rs"), "{ran:?}");
}

#[test]
fn features_that_work_alone_and_not_together_are_not_both_committed() {
    let check = "[checks]\ntest = \"! test -e src/a.rs || ! test -e src/b.rs\"\n";
    let ran = both(pipeline().file("counterfoil.toml", check).commit()).run(&TWO);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    let done = commits(&ran).iter().filter(|subject| subject.starts_with("feat(")).count();
    assert!(done < 2, "{ran:?}");
    assert!(ran.reason().contains("the tests do not pass in the repository"), "{}", ran.reason());
}

#[test]
fn less_than_one_is_refused() {
    let ran = planned().build("a").run(&["--task", "a: Add a", "--input", "parallel=0"]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("`parallel` is less than 1"), "{}", ran.reason());
}
