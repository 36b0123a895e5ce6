//! What is not done is kept as a patch and set aside, and is taken up again when the run is.

use super::{
    Pipeline, about, approved, commits, doc, failing, kept, pipeline, ready, rejected, with,
};
use crate::packs::scenario::Scenario;
use serde_json::json;

const TWO: [&str; 2] = ["--task", "a: Add a\nc: Add c"];

/// `a` has a blocker in its second phase, and `c` sees whether anything of it is there.
fn blocked() -> Scenario {
    let blocker = with(failing("2/2"), &json!({"blockers": ["there is no key for the service"]}));
    pipeline()
        .plan("a", &[], 1, 2)
        .plan("c", &[], 2, 1)
        .tdd("a", "1/2")
        .says("tdd-task-executor", blocker)
        .when(&about("a"))
        .writes("src/lib.rs", "// half\n")
        .tdd("c", "1/1")
        .exec("! test -e src/a.rs && ! grep half src/lib.rs && : > src/clean.rs")
        .review("c", approved())
        .gate("c", ready())
}

#[test]
fn a_blocked_feature_is_kept_as_a_patch_and_the_next_one_starts_without_it() {
    let ran = blocked().run(&TWO);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.read("src/clean.rs").is_empty(), "the next feature found what was blocked");
    assert!(ran.read("src/lib.rs").contains("fn one") && !ran.path("src/a.rs").exists());
    let patch = kept(&ran);
    assert!(patch.contains("+// 1/2\n") && patch.contains("+// half\n"), "{patch}");
    let reason = ran.reason();
    assert!(reason.contains("the work is kept in .counterfoil/kept/"), "{reason}");
    let files = ran.git(&["show", "--name-only", "--format=", "HEAD"]);
    let document = doc("c");
    let expected = [document.as_str(), "src/c.rs", "src/clean.rs", "tests/c_1.rs"];
    assert_eq!(files.lines().collect::<Vec<_>>(), expected);
    assert!(ran.read(".claude/features/MASTER.md").contains(".patch"));
}

#[test]
fn a_blocked_feature_goes_on_with_its_work_when_the_run_is_resumed() {
    let ran = blocked().run(&TWO);
    let again = blocked().tdd("a", "2/2").review("a", approved()).gate("a", ready());
    let ran = again.resume(&ran, &[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(commits(&ran), ["feat(c): Add c", "feat(a): Add a"]);
    let files = ran.git(&["show", "--name-only", "--format=", "HEAD"]);
    for file in ["src/a.rs", "tests/a_1.rs", "tests/a_2.rs"] {
        assert!(files.lines().any(|line| line == file), "{file}: {files}");
    }
}

#[test]
fn what_a_hook_refuses_is_set_aside_and_committed_when_the_run_is_resumed() {
    let hook = "#!/bin/sh\n! git diff --cached --name-only | grep -q src/a.rs || { echo 'a ticket is missing'; exit 1; }\n";
    let ran = pipeline()
        .file(".git/hooks/pre-commit", hook)
        .git(&["-c", "alias.allow=!chmod +x .git/hooks/pre-commit", "allow"])
        .plan("a", &[], 1, 1)
        .plan("c", &[], 2, 1)
        .build("a")
        .tdd("c", "1/1")
        .exec("! test -e src/a.rs && : > src/clean.rs")
        .review("c", approved())
        .gate("c", ready())
        .run(&TWO);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(commits(&ran), ["feat(c): Add c"]);
    assert!(ran.path("src/clean.rs").exists() && !ran.path("src/a.rs").exists(), "{ran:?}");
    assert!(kept(&ran).contains("+// 1/1\n") && ran.reason().contains("a ticket is missing"));
    ran.each(|project| std::fs::remove_file(project.path(".git/hooks/pre-commit")).unwrap());
    let ran = ran.resume(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(commits(&ran), ["feat(c): Add c", "feat(a): Add a"]);
    assert_eq!(ran.git(&["show", "HEAD:src/a.rs"]), "// 1/1\n");
}

#[test]
fn what_a_person_changed_in_the_same_file_stays() {
    let hook = "#!/bin/sh\nexit 1\n";
    let ran = pipeline()
        .file(".git/hooks/pre-commit", hook)
        .git(&["-c", "alias.allow=!chmod +x .git/hooks/pre-commit", "allow"])
        .file("README.md", "# Mine\n")
        .plan("a", &[], 1, 1)
        .tdd("a", "1/1")
        .exec("echo theirs >> README.md")
        .review("a", approved())
        .gate("a", ready())
        .run(&super::ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(ran.read("README.md"), "# Mine\ntheirs\n");
    assert!(ran.reason().contains("since yours are in the same files"), "{}", ran.reason());
}

#[test]
fn a_skipped_feature_is_kept_as_a_patch() {
    let mut scenario = pipeline().plan("a", &[], 1, 1).tdd("a", "1/1");
    for round in 1..=3 {
        scenario = scenario.review("a", rejected("no"));
        if round < 3 {
            scenario = scenario.fix("a");
        }
    }
    let ran = scenario.answer("decide", "skip").run(&super::ONE);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(kept(&ran).contains("+// fixed\n") && !ran.path("src/a.rs").exists(), "{ran:?}");
}
