//! The gates: errors outside of the changed lines, and reports that contradict the evidence.

use super::{TASK, clean, complete, dirty, incomplete, kept, passed, scenario, work};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// The first iteration meets code quality with these errors. If they block, there is a second one.
fn meets(scenario: Scenario, quality: Value) -> ScenarioRun {
    let ran = scenario
        .implements("2")
        .says("qa", passed())
        .says("code-quality", quality)
        .says("manager", kept())
        .says("manager", kept())
        .says("implementer", work("Made it better"))
        .writes("src/lib.rs", "pub fn one() -> u32 {\n    1 + 1\n}\n")
        .says("qa", passed())
        .says("code-quality", clean())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    ran
}

/// Whether it took another iteration.
fn blocked(ran: &ScenarioRun) -> bool {
    ran.report["iterations"] == 2
}

#[test]
fn an_error_in_a_line_that_was_touched_blocks() {
    let ran = meets(scenario(), dirty(&[("src/lib.rs", 2)], "break the line"));
    assert!(blocked(&ran));
    assert!(ran.transitions().contains(&"weigh>manager".to_owned()), "{:?}", ran.transitions());
    assert!(ran.prompt("manager#1", 1).contains("The iteration stopped early"));
}

#[test]
fn an_error_in_a_line_that_was_not_touched_does_not_block() {
    let ran = meets(scenario(), dirty(&[("src/lib.rs", 1), ("README.md", 1)], "break the lines"));
    assert!(!blocked(&ran), "{ran:?}");
    assert_eq!(ran.variables()["quality_fix_info"], json!(null));
    // It is not lost either: the manager is told of it.
    let prompt = ran.prompt("manager#1", 1);
    for part in ["Both gates passed", "- src/lib.rs:1: E1 too long", "- README.md:1: E1 too long"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(ran.prompt("dod#1", 1).contains("2 errors are in lines that the change did not touch"));
}

#[test]
fn only_the_errors_in_touched_lines_are_sent_to_the_implementer() {
    let ran = meets(scenario(), dirty(&[("src/lib.rs", 3), ("src/lib.rs", 2)], "break the lines"));
    assert!(blocked(&ran));
    let prompt = ran.prompt("implement#2", 1);
    assert!(prompt.contains("- src/lib.rs:2: E1"), "{prompt}");
    assert!(!prompt.contains("- src/lib.rs:3: E1"), "{prompt}");
}

#[test]
fn an_error_without_a_line_blocks_if_its_file_was_touched() {
    assert!(blocked(&meets(scenario(), dirty(&[("src/lib.rs", 0)], "say what it is for"))));
    assert!(!blocked(&meets(scenario(), dirty(&[("README.md", 0)], "say what it is for"))));
}

#[test]
fn every_line_of_a_new_file_is_touched() {
    let added = json!({"status": "success", "summary": "Added it", "files_changed": [], "files_added": ["src/two.rs"]});
    let ran = scenario()
        .says("implementer", added)
        .writes("src/two.rs", "pub fn two() {}\n\n\n")
        .says("qa", passed())
        // A path may begin with a dot.
        .says("code-quality", dirty(&[("./src/two.rs", 3)], "no blank lines at the end"))
        .says("manager", kept())
        .completes("2")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(blocked(&ran));
}

#[test]
fn lines_of_an_earlier_iteration_stay_touched_also_when_they_were_committed() {
    let ran = scenario()
        .passes("2")
        .says("dod", incomplete(&["the second"]))
        .says("implementer", json!({"status": "success", "summary": "Two", "files_changed": [], "files_added": ["src/two.rs"]}))
        .writes("src/two.rs", "pub fn two() {}\n")
        .exec("git commit --quiet --all --message two")
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .completes("1 + 1")
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(3)));
    assert!(ran.prompt("implement#3", 1).contains("break the line"));
}

#[test]
fn a_failure_that_lists_no_error_blocks() {
    let mut quality = dirty(&[("README.md", 1)], "it does not compile");
    quality["issues"][0]["severity"] = "warning".into();
    quality["blocking_issues_count"] = 0.into();
    let ran = meets(scenario(), quality);
    assert!(blocked(&ran));
    assert!(ran.prompt("implement#2", 1).contains("it does not compile"));
    assert!(ran.transitions().contains(&"code-quality>manager".to_owned()));
}

#[test]
fn a_warning_does_not_block() {
    let mut quality = clean();
    quality["issues"] = json!([{"file": "src/lib.rs", "line": 2, "code": "W1", "message": "long", "severity": "warning"}]);
    assert!(!blocked(&meets(scenario(), quality)));
}

#[test]
fn outside_of_git_every_error_blocks() {
    let scenario = scenario();
    std::fs::remove_dir_all(scenario.path(".git")).unwrap();
    let ran = meets(scenario, dirty(&[("README.md", 1)], "break the line"));
    assert!(blocked(&ran), "{ran:?}");
    assert!(ran.prompt("implement#2", 1).contains("- README.md:1: E1"));
}

/// A project with a check `test` that looks for a word in `src/lib.rs`.
fn tested() -> Scenario {
    scenario().file("counterfoil.toml", "[checks]\ntest = \"grep -q two src/lib.rs\"\n").commit()
}

fn counted() -> Value {
    let mut qa = passed();
    qa["test_results"] = json!({"total": 1, "passed": 1, "failed": 0});
    qa
}

#[test]
fn qa_does_not_pass_against_the_evidence() {
    let ran = tested()
        .implements("1")
        .says("qa", counted())
        .says("manager", kept())
        .implements("1 // not two")
        .says("qa", counted())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    let verdicts = ["qa#1", "qa#2"].map(|name| ran.attempt(name)["claims"][0]["verdict"].clone());
    assert_eq!(verdicts, ["refuted", "verified"]);
    let prompt = ran.prompt("implement#2", 1);
    assert!(prompt.contains("`grep -q two src/lib.rs` exited with 1"), "{prompt}");
    assert_eq!(
        ran.attempts()[..3],
        ["implement#1 accepted", "qa#1 accepted", "manager#1 accepted"]
    );
}

#[test]
fn a_claim_that_is_refuted_elsewhere_is_recorded_and_goes_on() {
    let ran = scenario()
        .says("implementer", json!({"status": "success", "summary": "Nothing", "files_changed": ["src/lib.rs", "README.md"], "files_added": []}))
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", json!({"updated": true, "artifacts_modified": ["README.md"], "summary": "Ticked it"}))
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(1)));
    for (attempt, claim) in [("implement#1", "files_changed"), ("manager#1", "artifacts_modified")]
    {
        let told = ran.attempt(attempt);
        let found = told["claims"].as_array().unwrap().iter().find(|one| one["claim"] == claim);
        assert_eq!(found.unwrap()["verdict"], "refuted", "{told:#}");
        assert_eq!(told["repairs_asked"], 0);
    }
}

#[test]
fn those_who_judge_write_nothing() {
    let ran = scenario()
        .implements("2")
        .says("qa", passed())
        .writes("src/lib.rs", "// QA made it pass\n")
        .says("code-quality", clean())
        .writes("lint.log", "fine\n")
        .says("manager", kept())
        .says("dod", complete("high"))
        .writes("DONE", "")
        .run(&TASK);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.read("src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n");
    assert!(!ran.path("lint.log").exists() && !ran.path("DONE").exists());
}

#[test]
fn the_manager_writes_documents_and_not_what_the_gates_passed() {
    let ran = scenario()
        .file("stories/US-1.md", "- [ ] two\n")
        .commit()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", clean())
        .says(
            "manager",
            json!({"updated": true, "artifacts_modified": ["stories/US-1.md"], "summary": "Ticked it"}),
        )
        .writes("stories/US-1.md", "- [x] two\n")
        .writes("src/lib.rs", "// tidied up\n")
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.read("stories/US-1.md"), "- [x] two\n");
    assert_eq!(ran.read("src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n");
}
