//! The gate of code quality: which of its errors block.

use super::{clean, complete, dirty, incomplete, kept, passed, scenario, work};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// A project whose linter shows lines that are marked as long, with their place.
fn linted(text: &str) -> Scenario {
    let lint =
        "grep -Hn long src/lib.rs | sed 's/:[^:]*$/: E1 too long/' | grep . && exit 1 || true";
    scenario()
        .file("counterfoil.toml", &format!("[checks]\nlint = \"{lint}\"\n"))
        .file("src/lib.rs", text)
        .commit()
}

/// The first iteration meets code quality with this result. If it blocks, there is a second one.
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
fn an_error_in_a_file_that_changed_blocks_in_every_line() {
    for line in [0, 1, 2, 3] {
        let ran = meets(scenario(), dirty(&[("src/lib.rs", line)], "break the line"));
        assert!(blocked(&ran), "{line}: {ran:?}");
        assert!(ran.transitions().contains(&"verdict>manager".to_owned()));
        assert!(ran.prompt("manager#1", 1).contains("The iteration stopped early"));
    }
}

#[test]
fn an_error_in_another_file_does_not_block_and_is_not_lost() {
    let ran = meets(scenario(), dirty(&[("README.md", 1), ("README.md", 0)], "break the lines"));
    assert!(!blocked(&ran), "{ran:?}");
    assert_eq!(ran.variables()["quality_fix_info"], json!(null));
    for attempt in ["manager#1", "dod#1"] {
        let prompt = ran.prompt(attempt, 1);
        assert!(prompt.contains("- error from before: README.md:1: E1 too long"), "{prompt}");
    }
    assert!(ran.reason().contains("README.md:1: E1 too long"), "{}", ran.reason());
}

/// A file with an old error in its first line; the implementer changes the second.
const OLD: &str = "pub fn one() -> u32 { // long\n    1\n}\n";

#[test]
fn an_error_that_lint_showed_at_the_base_does_not_block() {
    let changed = "pub fn one() -> u32 { // long\n    2\n}\n";
    let ran = linted(OLD)
        .says("implementer", work("Made it 2"))
        .writes("src/lib.rs", changed)
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 1)], "break the line"))
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(1)));
    assert!(ran.prompt("code-quality#1", 1).contains("src/lib.rs:1: E1 too long"));
    assert!(ran.reason().contains("error from before: src/lib.rs:1: E1 too long"));
}

#[test]
fn an_error_that_only_moved_does_not_block() {
    let moved = "// One.\npub fn one() -> u32 { // long\n    2\n}\n";
    let ran = linted(OLD)
        .says("implementer", work("Made it 2"))
        .writes("src/lib.rs", moved)
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(1)));
}

#[test]
fn an_error_of_another_kind_than_lint_showed_blocks() {
    let changed = "pub fn one() -> u32 { // long\n    2\n}\n";
    let mut quality = dirty(&[("src/lib.rs", 1)], "say what it is for");
    quality["issues"][0]["code"] = "D1".into();
    quality["issues"][0]["message"] = "no comment".into();
    let ran = linted(OLD)
        .says("implementer", work("Made it 2"))
        .writes("src/lib.rs", changed)
        .says("qa", passed())
        .says("code-quality", quality)
        .says("manager", kept())
        .says("implementer", work("Said why"))
        .writes("src/lib.rs", &format!("/// Two.\n{changed}"))
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    assert!(ran.prompt("implement#2", 1).contains("- src/lib.rs:1: D1 no comment"));
}

#[test]
fn only_the_errors_that_block_are_sent_to_the_implementer() {
    let ran = meets(scenario(), dirty(&[("README.md", 1), ("src/lib.rs", 2)], "break the lines"));
    assert!(blocked(&ran));
    let prompt = ran.prompt("implement#2", 1);
    assert!(prompt.contains("- src/lib.rs:2: E1"), "{prompt}");
    assert!(!prompt.contains("- README.md:1: E1"), "{prompt}");
}

#[test]
fn a_new_file_is_changed_and_a_path_may_be_written_in_other_ways() {
    for file in ["./src/two.rs", "src/two.rs", "two.rs", "src\\two.rs", "b/src/two.rs"] {
        let added = json!({"status": "success", "summary": "Added it", "files_changed": [], "files_added": ["src/two.rs"]});
        let mut both = clean();
        both["files_analyzed"] = json!(["./src/lib.rs", "src/two.rs"]);
        let ran = scenario()
            .says("implementer", added)
            .writes("src/two.rs", "pub fn two() {}\n\n\n")
            .says("qa", passed())
            .says("code-quality", dirty(&[(file, 3)], "no blank lines at the end"))
            .says("manager", kept())
            .implements("2")
            .says("qa", passed())
            .says("code-quality", both)
            .says("manager", kept())
            .says("dod", complete("high"))
            .plays();
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        assert!(blocked(&ran), "{file}");
    }
}

#[test]
fn what_an_earlier_iteration_changed_stays_changed_also_when_it_was_committed() {
    let two = json!({"status": "success", "summary": "Two", "files_changed": [], "files_added": ["src/two.rs"]});
    let mut both = clean();
    both["files_analyzed"] = json!(["src/lib.rs", "src/two.rs"]);
    let ran = scenario()
        .passes("2")
        .says("dod", incomplete(&["the second"]))
        .says("implementer", two)
        .writes("src/two.rs", "pub fn two() {}\n")
        .exec("git commit --quiet --all --message two")
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .implements("1 + 1")
        .says("qa", passed())
        .says("code-quality", both)
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(3)));
    assert!(ran.prompt("implement#3", 1).contains("break the line"));
    let prompt = ran.prompt("code-quality#3", 1);
    assert!(prompt.contains("- src/lib.rs\n- src/two.rs\n"), "{prompt}");
}

#[test]
fn a_failure_that_lists_no_error_blocks() {
    let mut quality = dirty(&[("README.md", 1)], "it does not compile");
    quality["issues"][0]["severity"] = "warning".into();
    quality["blocking_issues_count"] = 0.into();
    let ran = meets(scenario(), quality);
    assert!(blocked(&ran));
    assert!(ran.prompt("implement#2", 1).contains("it does not compile"));
}

#[test]
fn a_warning_does_not_block_and_reaches_the_report_and_later_agents() {
    let mut quality = clean();
    quality["issues"] = json!([{"file": "src/lib.rs", "line": 2, "code": "W1", "message": "long", "severity": "warning"}]);
    quality["ignored_issues_count"] = 3.into();
    let ran = meets(scenario(), quality);
    assert!(!blocked(&ran));
    for part in ["warning: src/lib.rs:2: W1 long", "3 issues were left out as false alarms"] {
        for attempt in ["manager#1", "dod#1"] {
            let prompt = ran.prompt(attempt, 1);
            assert!(prompt.contains(part), "{part}: {prompt}");
        }
        assert!(ran.reason().contains(part), "{}", ran.reason());
    }
}

#[test]
fn files_that_were_not_looked_at_close_the_gate_also_beside_old_errors() {
    let mut quality = dirty(&[("README.md", 1)], "break the line");
    quality["files_analyzed"] = json!(["README.md"]);
    let ran = meets(scenario(), quality);
    assert!(blocked(&ran));
    assert!(ran.prompt("code-quality#2", 1).contains("did not look at src/lib.rs"));
}

#[test]
fn outside_of_git_every_error_blocks() {
    let scenario = scenario();
    std::fs::remove_dir_all(scenario.path(".git")).unwrap();
    let ran = meets(scenario, dirty(&[("README.md", 1)], "break the line"));
    assert!(blocked(&ran), "{ran:?}");
    assert!(ran.prompt("implement#2", 1).contains("- README.md:1: E1"));
}
