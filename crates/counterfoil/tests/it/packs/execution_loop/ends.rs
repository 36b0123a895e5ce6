//! How a run ends, and what it asks before.

use super::{TASK, clean, complete, failed, incomplete, kept, looked, passed, scenario, turns};
use crate::packs::scenario::Scenario;
use serde_json::json;

#[test]
fn blocked_ends_the_run_as_blocked_with_its_next_steps() {
    let ran = scenario()
        .says(
            "implementer",
            json!({"status": "blocked", "summary": "No database", "files_changed": [],
                                    "files_added": [], "next_steps": "Do phase 1 first"}),
        )
        .says("manager", kept())
        .plays();
    assert_eq!((ran.ended(), ran.reason()), (("blocked", None, 7), "Do phase 1 first"));
    // The books are kept all the same, and nobody else works.
    assert_eq!(turns(&ran), ["implementer", "manager"]);
    let prompt = ran.prompt("manager#1", 1);
    assert!(prompt.contains("The work is blocked and ends here: Do phase 1 first"), "{prompt}");
}

#[test]
fn blocked_without_next_steps_ends_with_its_summary() {
    let blocked = json!({"status": "blocked", "summary": "No database", "files_changed": [], "files_added": []});
    let ran = scenario().says("implementer", blocked).says("manager", kept()).plays();
    assert_eq!((ran.ended(), ran.reason()), (("blocked", None, 7), "No database"));
}

fn fails(scenario: Scenario, times: usize) -> Scenario {
    (1..=times)
        .fold(scenario, |scenario, n| scenario.fails_qa(&format!("{n} + 0"), &format!("not {n}")))
}

#[test]
fn five_iterations_end_as_exhausted() {
    let ran = fails(scenario(), 6).plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("exhausted", None, 6), &json!(5)));
    assert_eq!(ran.reason(), "not done after 5 of 5 iterations; still open: QA: not 5");
    // The manager kept the books of the last one too.
    assert_eq!(turns(&ran).len(), 15);
    assert_eq!(turns(&ran).last().unwrap(), "manager");
}

#[test]
fn max_iterations_is_an_input() {
    let ran = fails(scenario(), 3).run(&[&TASK[..], &["--input", "max_iterations=2"]].concat());
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("exhausted", None, 6), &json!(2)));
    let ran =
        scenario().completes("2").run(&[&TASK[..], &["--input", "max_iterations=1"]].concat());
    assert_eq!(ran.ended(), ("done", None, 0));
}

#[test]
fn an_incomplete_task_counts_its_iterations_too() {
    let mut scenario = scenario();
    for n in 1..=2 {
        scenario = scenario.passes(&format!("{n} + 0")).says("dod", incomplete(&["US-2"]));
    }
    let ran = scenario.run(&[&TASK[..], &["--input", "max_iterations=2"]].concat());
    assert_eq!(ran.ended(), ("exhausted", None, 6));
    assert_eq!(ran.reason(), "not done after 2 of 2 iterations; still open: US-2");
}

#[test]
fn without_an_iteration_nothing_is_done() {
    for none in ["max_iterations=0", "max_iterations=-1"] {
        let ran = scenario().completes("2").run(&[&TASK[..], &["--input", none]].concat());
        assert_eq!((ran.ended(), turns(&ran).len()), (("exhausted", None, 6), 0), "{none}");
        assert!(ran.reason().starts_with("not done after 0 of "), "{}", ran.reason());
    }
}

#[test]
fn the_same_request_three_times_with_nothing_changed_is_no_progress() {
    let mut scenario = scenario();
    for _ in 0..5 {
        scenario = scenario
            .says("implementer", looked())
            .says("qa", failed("it must be 2"))
            .says("manager", kept());
    }
    let ran = scenario.plays();
    assert_eq!(
        (ran.ended(), &ran.report["iterations"]),
        (("exhausted", Some("no-progress"), 6), &json!(3))
    );
    assert!(ran.reason().contains("nothing in the work tree changed"), "{}", ran.reason());
}

#[test]
fn another_request_each_time_is_progress_also_with_nothing_changed() {
    let mut scenario = scenario();
    for n in 1..=5 {
        scenario = scenario
            .says("implementer", looked())
            .says("qa", failed(&format!("point {n}")))
            .says("manager", kept());
    }
    let ran = scenario.plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("exhausted", None, 6), &json!(5)));
}

#[test]
fn complete_with_low_confidence_asks_a_person() {
    let ran = scenario().passes("2").says("dod", complete("low")).plays();
    assert_eq!((ran.ended(), ran.questions()), (("waiting", None, 4), vec!["confirm"]));
    assert_eq!(ran.report["questions"][0]["choices"], json!(["yes", "no"]));
    let question = ran.report["questions"][0]["question"].as_str().unwrap();
    for part in ["but: confidence is low.", "Recommended: Hand it over", "add in words"] {
        assert!(question.contains(part), "{part}: {question}");
    }
    let ran = ran.answer_and_resume("confirm", "yes");
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.reason(), "a person confirmed that the task is complete");
    // Nothing was done again for it.
    assert_eq!(turns(&ran).len(), 5);
}

#[test]
fn only_low_confidence_asks() {
    for confidence in ["medium", "high"] {
        let ran = scenario().passes("2").says("dod", complete(confidence)).plays();
        assert_eq!(ran.ended(), ("done", None, 0), "{confidence}");
    }
    // And only about a task that is complete.
    let ran = scenario().passes("2").says("dod", incomplete(&["US-2"])).completes("3").plays();
    assert_eq!(ran.ended(), ("done", None, 0));
}

#[test]
fn a_person_who_says_no_says_what_is_missing_and_it_is_implemented() {
    let ran = scenario()
        .passes("2")
        .says("dod", complete("low"))
        .answer("confirm", "no")
        .answer("missing", "negative numbers")
        .completes("-2")
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    let prompt = ran.prompt("implement#2", 1);
    // What was recommended for a complete task is no advice for this one.
    assert!(
        prompt.contains("- negative numbers\n") && !prompt.contains("Hand it over"),
        "{prompt}"
    );
    assert!(ran.prompt("qa#2", 1).contains("- negative numbers\n"));
}

#[test]
fn a_person_says_in_one_step_what_is_missing() {
    let ran = scenario()
        .passes("2")
        .says("dod", complete("low"))
        .answer("confirm", "no: negative numbers")
        .completes("-2")
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    assert!(ran.prompt("implement#2", 1).contains("- negative numbers\n"));
}

#[test]
fn a_person_who_says_no_after_the_last_iteration_is_not_asked_what_is_missing() {
    let ran = scenario()
        .passes("2")
        .says("dod", complete("low"))
        .answer("confirm", "no")
        .run(&[&TASK[..], &["--input", "max_iterations=1"]].concat());
    assert_eq!(ran.ended(), ("exhausted", None, 6));
    assert!(
        ran.reason().contains("a person says that the task is not complete"),
        "{}",
        ran.reason()
    );
}

#[test]
fn a_restart_does_not_reset_the_count() {
    let two = [&TASK[..], &["--input", "max_iterations=2"]].concat();
    let ran = scenario().fails_qa("3", "not 3").passes("2").says("dod", complete("low")).run(&two);
    assert_eq!((ran.ended().2, &ran.report["iterations"]), (4, &json!(2)));
    assert_eq!(ran.answer_and_resume("confirm", "no").ended(), ("exhausted", None, 6));
}

#[test]
fn a_run_that_is_killed_goes_on_where_it_was_with_what_it_was_asked() {
    let scenario = scenario()
        .built_in_only()
        .fails_qa("3", "not 3")
        .implements("2")
        .exec("touch .git/killed; sleep 60")
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"));
    let mut live = scenario.start(&TASK);
    live.wait_for_file(".git/killed");
    let ran = crate::packs::run::ScenarioRun::show(live.kill());
    // The reply that was in flight is played anew, without the sleep.
    let again =
        super::scenario().built_in_only().fails_qa("3", "not 3").implements("2").completes("2");
    let ran = again.resume(&ran, &[]);
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    assert!(ran.prompt("implement#3", 1).contains("not 3"), "{ran:?}");
    assert!(ran.prompt("implement#3", 1).contains("iteration 2 of at most 5"));
}
