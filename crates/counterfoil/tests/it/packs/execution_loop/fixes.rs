//! Fix requests of the gates: which agent gets them, and for how long.

use super::{clean, complete, dirty, failed, incomplete, kept, passed, scenario, turns, work};
use serde_json::json;

#[test]
fn the_five_agents_work_in_turn_until_the_task_is_complete() {
    let ran = scenario().completes("2").plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(turns(&ran), ["implementer", "qa", "code-quality", "manager", "dod"]);
    assert_eq!(
        ran.transitions(),
        [
            "implement>look",
            "look>measure",
            "measure>compare",
            "compare>qa",
            "qa>code-quality",
            "code-quality>weigh",
            "weigh>verdict",
            "verdict>manager",
            "manager>recheck",
            "recheck>recompare",
            "recompare>own-scripts",
            "own-scripts>dod",
            "dod>settle",
            "settle>done"
        ]
    );
    assert_eq!((ran.reason(), &ran.report["iterations"]), ("Hand it over", &json!(1)));
    assert_eq!(ran.read("src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n");
}

#[test]
fn qa_fails_twice_and_then_passes_and_fix_info_reaches_the_implementer_and_is_gone_after() {
    let ran = scenario()
        .also_ejected()
        .fails_qa("0", "one must not be 0")
        .fails_qa("3", "one must not be 3")
        .passes("1")
        .says("dod", incomplete(&["say why"]))
        .completes("1 // one")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.report["iterations"], 4);
    let heard = |n: usize| {
        let prompt = ran.prompt(&format!("implement#{n}"), 1);
        ["one must not be 0", "one must not be 3", "say why"].map(|fix| prompt.contains(fix))
    };
    assert_eq!(heard(1), [false, false, false]);
    assert_eq!(heard(2), [true, false, false]);
    assert_eq!(heard(3), [false, true, false]);
    assert_eq!(heard(4), [false, false, true]);
    assert_eq!(ran.variables()["qa_fix_info"], json!(null));
    // Who did not pass stops the iteration: nobody looks at the quality of what does not work.
    assert_eq!(turns(&ran)[..6], ["implementer", "qa", "manager", "implementer", "qa", "manager"]);
}

#[test]
fn quality_fails_and_its_fix_info_and_errors_reach_the_implementer() {
    let ran = scenario()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .completes("1 + 1")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    let prompt = ran.prompt("implement#2", 1);
    for part in ["Code quality did not pass", "break the line", "- src/lib.rs:2: E1 too long"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(ran.prompt("code-quality#2", 1).contains("break the line"));
    assert_eq!(ran.variables()["quality_fix_info"], json!(null));
    assert_eq!(ran.variables()["blocking"], json!([]));
}

#[test]
fn each_gate_clears_only_its_own_fix_info() {
    let ran = scenario()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        // QA fails next: what code quality wants is still open.
        .fails_qa("1 +\n 1", "it does not compile")
        // QA passes, code quality does not: QA wants nothing any more.
        .implements("1 + 1")
        .says("qa", passed())
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "no sums"))
        .says("manager", kept())
        .completes("3 - 1")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    let heard = |n: usize| {
        let prompt = ran.prompt(&format!("implement#{n}"), 1);
        ["break the line", "it does not compile", "no sums"].map(|fix| prompt.contains(fix))
    };
    assert_eq!(heard(2), [true, false, false]);
    assert_eq!(heard(3), [true, true, false]);
    assert_eq!(heard(4), [false, false, true]);
}

#[test]
fn an_incomplete_task_starts_the_next_iteration_with_its_remaining_items() {
    let ran = scenario()
        .passes("2")
        .says("dod", incomplete(&["US-006: errors", "US-007: messages"]))
        .completes("2 // done")
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    assert!(!ran.prompt("implement#1", 1).contains("What is left"));
    let prompt = ran.prompt("implement#2", 1);
    for part in ["- US-006: errors\n- US-007: messages\n", "last looked at: Go on"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(ran.prompt("qa#2", 1).contains("- US-006: errors"));
    assert_eq!(ran.variables()["remaining_items"], json!([]));
    assert!(ran.transitions().contains(&"dod>again".to_owned()), "{:?}", ran.transitions());
}

#[test]
fn an_incomplete_task_without_items_goes_on_with_the_recommendation() {
    let ran = scenario().passes("2").says("dod", incomplete(&[])).completes("2 // done").plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(ran.prompt("implement#2", 1).contains("last looked at: Go on"));
    assert_eq!(ran.variables()["asked"], json!(["Go on"]));
}

#[test]
fn a_partial_implementation_goes_on_to_qa_which_decides() {
    let partial = json!({"status": "partial", "summary": "Only one of two", "files_changed": ["src/lib.rs"],
                         "files_added": [], "next_steps": "Ask how dashes are counted"});
    let ran = scenario()
        .says("implementer", partial.clone())
        .writes("src/lib.rs", "pub fn one() {}\n")
        .says("qa", failed("the second is missing"))
        .says("manager", kept())
        // The same again, and this time QA is content.
        .says("implementer", partial)
        .writes("src/lib.rs", "pub fn one() {}\npub fn two() {}\n")
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    let prompt = ran.prompt("qa#1", 1);
    for part in
        ["- status: partial", "- summary: Only one of two", "next: Ask how dashes are counted"]
    {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(ran.prompt("implement#2", 1).contains("the second is missing"));
}

#[test]
fn later_agents_are_given_values_and_never_another_agents_text() {
    let ran = scenario()
        .raw(
            "implementer",
            &format!("Between us: it was hard.\n\n{}\n\nThat is all.", work("Made it 2")),
        )
        .writes("src/lib.rs", "pub fn two() {}\n")
        .raw("qa", &format!("I had a bad feeling.\n\n{}", passed()))
        .raw("code-quality", &format!("Ran the linter twice.\n\n{}", clean()))
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(ran.prompt("qa#1", 1).contains("- modified: src/lib.rs"));
    assert!(ran.prompt("code-quality#1", 1).contains("- modified: src/lib.rs"));
    assert!(ran.prompt("manager#1", 1).contains("- passed: it counts (seen)"));
    assert!(ran.prompt("dod#1", 1).contains("The implementer: success: Made it 2"));
    for attempt in ["qa#1", "code-quality#1", "manager#1", "dod#1"] {
        let prompt = ran.prompt(attempt, 1);
        for text in ["Between us", "That is all", "bad feeling", "linter twice"] {
            assert!(!prompt.contains(text), "{attempt}: {prompt}");
        }
    }
}

#[test]
fn every_agent_is_told_the_task_the_iteration_and_what_to_hand_back() {
    let ran = scenario().completes("2").plays();
    for (attempt, field) in [
        ("implement#1", "`files_added`"),
        ("qa#1", "`dod_achieved`"),
        ("code-quality#1", "`blocking_issues_count`"),
        ("manager#1", "`artifacts_modified`"),
        ("dod#1", "`task_complete`"),
    ] {
        let prompt = ran.prompt(attempt, 1);
        // What to hand back is the end of the prompt: its fields, and then the examples.
        let (work, result) = prompt.rsplit_once("\nFields:\n").unwrap();
        for part in ["Count to two", "iteration 1 of at most 5"] {
            assert!(work.contains(part), "{attempt} lacks {part}: {prompt}");
        }
        assert!(result.contains(field) && result.ends_with("}\n```\n"), "{attempt}: {prompt}");
    }
}
