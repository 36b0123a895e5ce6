//! What the prompts hand over of what the engine knows.

use super::{clean, complete, failed, incomplete, kept, passed, scenario};
use crate::packs::scenario::Scenario;

/// A project with a check `test` that names what it misses.
fn tested() -> Scenario {
    let test = "grep -q ' 2' src/lib.rs || { echo one is not 2; exit 1; }";
    scenario()
        .file("src/lib.rs", "pub fn one() -> u32 {\n    2\n}\n")
        .file("counterfoil.toml", &format!("[checks]\ntest = \"{test}\"\n"))
        .commit()
}

#[test]
fn after_a_refuted_qa_the_implementer_gets_the_failing_output_and_what_was_tried() {
    let ran = tested()
        .implements("3")
        .says("qa", passed())
        .says("manager", kept())
        .completes("2 + 0")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let base = ran.git(&["rev-parse", "HEAD"]);
    let prompt = ran.prompt("implement#2", 1);
    for part in [
        ">>>>> begin: output of test, quoted\none is not 2\n<<<<< end: output of test",
        "The work tree holds the uncommitted work of the iterations before you",
        "Changed since the run began:\n- src/lib.rs\n",
        "- iteration 1: success, Made it 3; then: QA did not pass",
        &format!("The run began at commit {}", base.trim()),
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    // The first one knows the checks and that there is nothing yet.
    let prompt = ran.prompt("implement#1", 1);
    assert!(
        prompt.contains("src/lib.rs || { echo one is not 2; exit 1; }`: passed before"),
        "{prompt}"
    );
    assert!(!prompt.contains("predecessor"), "{prompt}");
    // It passed since: the output is not shown any more.
    assert!(!ran.prompt("qa#2", 1).contains("begin: output of test"));
}

#[test]
fn the_gates_are_given_what_was_observed_and_the_diff_between_marks() {
    let ran = tested()
        .implements("2 + 0")
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    for attempt in ["qa#1", "code-quality#1"] {
        let prompt = ran.prompt(attempt, 1);
        let diff = prompt.split_once(">>>>> begin: diff, quoted\n").unwrap().1;
        let diff = diff.split_once("<<<<< end: diff").unwrap().0;
        assert!(diff.contains("-    2\n+    2 + 0\n"), "{attempt}: {prompt}");
        assert!(prompt.contains("): passed; ") && prompt.contains("before the run began: passed"));
        assert!(prompt.contains("- modified: src/lib.rs"), "{attempt}: {prompt}");
    }
    assert!(ran.prompt("dod#1", 1).contains("- test: passed; before the run began: passed"));
}

#[test]
fn qa_sees_the_counts_of_the_tests_in_numbers_or_in_the_output() {
    for (printed, shown) in [
        ("test result: ok. 2 passed; 0 failed; 1 ignored", "; 3 tests, 2 passed, 0 failed; before"),
        ("All three are fine.", "begin: output of test, quoted\nAll three are fine.\n"),
    ] {
        let ran = scenario()
            .file("counterfoil.toml", &format!("[checks]\ntest = \"echo '{printed}'\"\n"))
            .commit()
            .completes("2")
            .plays();
        let prompt = ran.prompt("qa#1", 1);
        assert!(prompt.contains(shown), "{shown}: {prompt}");
    }
}

#[test]
fn code_quality_is_told_where_an_error_elsewhere_counts() {
    let ran = scenario().completes("2").plays();
    let prompt = ran.prompt("code-quality#1", 1);
    assert!(prompt.contains("counts where it is caused: give it the changed file"), "{prompt}");
}

#[test]
fn dod_is_told_of_all_iterations() {
    let ran = scenario()
        .implements("0")
        .says("qa", failed("not 0"))
        .says("manager", kept())
        .passes("1 + 1")
        .says("dod", incomplete(&["the third"]))
        .completes("3")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = ran.prompt("dod#2", 1);
    for part in [
        "- iteration 1: success, Made it 0; then: QA did not pass",
        "- iteration 2: success, Made it 1 + 1; then: both gates passed",
        "- iteration 3: success, Made it 3; then: both gates passed",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
}
