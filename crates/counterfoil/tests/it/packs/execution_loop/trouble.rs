//! Agents that fail, and a manager that reports nothing.

use super::{clean, complete, dirty, failed, kept, passed, scenario, turns, work};
use crate::packs::scenario::Scenario;
use serde_json::json;

/// Every agent's step fails once in this way, and then all is well.
fn each_fails_once(how: &str) -> Scenario {
    scenario()
        .reply("implementer")
        .fails(how)
        .reply("qa")
        .fails(how)
        .reply("code-quality")
        .fails(how)
        .reply("manager")
        .fails(how)
        .reply("dod")
        .fails(how)
        .completes("2")
}

#[test]
fn a_process_failure_of_one_step_is_retried_and_not_fatal() {
    for how in ["transport", "agent", "timeout"] {
        let ran = each_fails_once(how).plays();
        assert_eq!(
            (ran.ended(), &ran.report["iterations"]),
            (("done", None, 0), &json!(1)),
            "{how}"
        );
        let steps = ["implement", "qa", "code-quality", "manager", "dod"];
        let expected: Vec<String> = steps
            .iter()
            .flat_map(|step| [format!("{step}#1 {how}"), format!("{step}#2 accepted")])
            .collect();
        assert_eq!(ran.attempts(), expected, "{how}");
    }
}

#[test]
fn a_step_whose_process_fails_again_and_again_ends_the_run_as_failed_by_it() {
    for (how, tries) in [("agent", 2), ("transport", 11), ("permission", 1)] {
        let scenario = (0..tries)
            .fold(scenario().implements("2"), |scenario, _| scenario.reply("qa").fails(how));
        let ran = scenario.plays();
        assert_eq!(ran.ended(), ("failed", Some(how), 5), "{how}");
        assert_eq!(turns(&ran).len(), 1 + tries, "{how}");
    }
}

#[test]
fn the_manager_also_runs_when_an_iteration_stops_early() {
    let ran = scenario()
        .fails_qa("0", "not 0")
        .implements("2")
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .says(
            "implementer",
            json!({"status": "blocked", "summary": "No room", "files_changed": [], "files_added": []}),
        )
        .says("manager", kept())
        .plays();
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert_eq!(
        turns(&ran),
        [
            "implementer",
            "qa",
            "manager",
            "implementer",
            "qa",
            "code-quality",
            "manager",
            "implementer",
            "manager"
        ]
    );
    let told = |n: usize| ran.prompt(&format!("manager#{n}"), 1);
    assert!(
        told(1).contains("- QA: not 0") && told(1).contains("- failed: it counts"),
        "{}",
        told(1)
    );
    assert!(
        told(2).contains("- code quality: break the line")
            && told(2).contains("- passed: it counts")
    );
    // What QA said in an earlier iteration is not news of this one.
    assert!(
        told(3).contains("ends here: No room") && !told(3).contains("it counts"),
        "{}",
        told(3)
    );
}

#[test]
fn books_that_are_not_kept_stop_nothing() {
    let wrong = "I ticked a few boxes.";
    let ran = scenario()
        // By nobody, again and again.
        .implements("0")
        .says("qa", failed("not 0"))
        .reply("manager")
        .fails("agent")
        .reply("manager")
        .fails("agent")
        .implements("2")
        .says("qa", failed("not 2"))
        .reply("manager")
        .fails("permission")
        .implements("3")
        .says("qa", passed())
        .says("code-quality", clean())
        .raw("manager", wrong)
        .raw("manager", wrong)
        .raw("manager", wrong)
        .says("dod", complete("high"))
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(3)));
    let kept: Vec<String> =
        ran.attempts().into_iter().filter(|told| told.starts_with("manager")).collect();
    assert_eq!(
        kept,
        ["manager#1 agent", "manager#2 agent", "manager#3 permission", "manager#4 contract"]
    );
}

#[test]
fn books_that_are_wrong_in_the_same_way_every_time_stop_nothing() {
    let mut scenario = scenario();
    for n in 1..=5 {
        scenario = scenario.implements(&format!("{n} + 0")).says("qa", failed(&format!("not {n}")));
        for _ in 0..3 {
            scenario = scenario.raw("manager", "I ticked a few boxes.");
        }
    }
    let ran = scenario.plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("exhausted", None, 6), &json!(5)));
}

#[test]
fn a_manager_that_updated_nothing_is_no_failure() {
    let ran = scenario()
        .says("implementer", work("Made it 2"))
        .writes("src/lib.rs", "pub fn two() {}\n")
        .says("qa", passed())
        .says("code-quality", clean())
        .says(
            "manager",
            json!({"updated": false, "artifacts_modified": [], "summary": "The disk is full"}),
        )
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempt("manager#1")["value"]["summary"], "The disk is full");
    assert!(ran.transitions().contains(&"manager>recheck".to_owned()), "{:?}", ran.transitions());
}
