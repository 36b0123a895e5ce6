//! Results that are wrong, contradictory, missing, or surrounded by text.

use super::{clean, complete, dirty, failed, kept, passed, scenario, turns, work};
use crate::packs::run::ScenarioRun;
use serde_json::{Value, json};

/// An attempt that was asked again so often, and what it was asked with last.
fn asked_again(ran: &ScenarioRun, attempt: &str, times: usize) -> String {
    let told = ran.attempt(attempt);
    assert_eq!(
        (&told["repairs_asked"], &told["outcome"]),
        (&json!(times), &json!("accepted")),
        "{told:#}"
    );
    ran.prompt(attempt, times + 1)
}

#[test]
fn dod_achieved_with_a_failed_check_is_refused_and_repaired() {
    let mut wrong = failed("the second is missing");
    wrong["dod_achieved"] = true.into();
    let ran = scenario()
        .implements("2")
        .says("qa", wrong)
        .says("qa", failed("the second is missing"))
        .says("manager", kept())
        .completes("3")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    let prompt = asked_again(&ran, "qa#1", 1);
    assert!(
        prompt.contains("`dod_achieved` is true, but an entry of `checks` did not pass"),
        "{prompt}"
    );
    // What was repaired is what counts: the gate did not pass.
    assert_eq!(turns(&ran)[..3], ["implementer", "qa", "manager"]);
    assert!(ran.prompt("implement#2", 1).contains("the second is missing"));
}

#[test]
fn dod_not_achieved_without_fix_info_is_refused_and_repaired() {
    let mut wrong = failed("");
    wrong.as_object_mut().unwrap().remove("fix_info");
    let ran = scenario()
        .implements("2")
        .says("qa", wrong)
        .says("qa", failed("the second is missing"))
        .says("manager", kept())
        .completes("3")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(asked_again(&ran, "qa#1", 1).contains("fix_info"));
    assert!(ran.prompt("implement#2", 1).contains("the second is missing"));
}

#[test]
fn quality_passed_with_blocking_issues_is_refused_and_repaired() {
    let mut wrong = clean();
    wrong["blocking_issues_count"] = 1.into();
    let ran = scenario()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", wrong)
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .completes("3")
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    assert!(asked_again(&ran, "code-quality#1", 1).contains("`blocking_issues_count` is above 0"));
}

#[test]
fn quality_failed_without_fix_info_is_refused_and_repaired() {
    let mut wrong = dirty(&[("src/lib.rs", 2)], "");
    wrong.as_object_mut().unwrap().remove("fix_info");
    let ran = scenario()
        .implements("2")
        .says("qa", passed())
        .says("code-quality", wrong)
        .says("code-quality", dirty(&[("src/lib.rs", 2)], "break the line"))
        .says("manager", kept())
        .completes("3")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(asked_again(&ran, "code-quality#1", 1).contains("fix_info"));
    assert!(ran.prompt("implement#2", 1).contains("break the line"));
}

/// The definition of done is refused once, and complete the second time, for this reason.
fn dod_refused(wrong: Value, because: &str, why: &str) {
    let right = complete_with("/recommendation", json!(why));
    let ran = scenario().passes("2").says("dod", wrong).says("dod", right).plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = asked_again(&ran, "dod#1", 1);
    assert!(prompt.contains(because), "{prompt}");
}

fn complete_with(pointer: &str, value: Value) -> Value {
    let mut dod = complete("high");
    *dod.pointer_mut(pointer).unwrap() = value;
    dod
}

#[test]
fn complete_with_remaining_items_is_refused_and_repaired() {
    dod_refused(
        complete_with("/remaining_items", json!(["US-2"])),
        "`remaining_items` is not empty",
        "`remaining_items` named US-2, which is done.",
    );
}

#[test]
fn complete_with_stories_or_phases_left_is_refused_and_repaired() {
    dod_refused(
        complete_with("/summary/user_stories_done", json!(1)),
        "is below `summary.user_stories_total`",
        "Hand it over",
    );
    dod_refused(
        complete_with("/summary/phases_done", json!(0)),
        "is below `summary.phases_total`",
        "Hand it over",
    );
}

#[test]
fn task_complete_as_a_text_does_not_complete() {
    for text in ["false", "true"] {
        let wrong = complete_with("/task_complete", json!(text));
        // Nobody corrects it: it is never taken for a yes.
        let ran = scenario()
            .passes("2")
            .says("dod", wrong.clone())
            .says("dod", wrong.clone())
            .says("dod", wrong)
            .plays();
        assert_eq!(ran.ended(), ("failed", Some("contract"), 1), "{text}");
        assert_eq!(ran.attempt("dod#1")["violations"][0]["pointer"], "/task_complete");
    }
    dod_refused(
        complete_with("/task_complete", json!("false")),
        "/task_complete",
        "`task_complete` was a slip: all of it is there.",
    );
}

#[test]
fn no_json_at_all_never_passes_a_gate() {
    let words = "All is well, everything passes, and the task is complete.";
    let silent = |scenario: crate::packs::scenario::Scenario, agent: &str| {
        let ran = scenario.raw(agent, words).raw(agent, words).raw(agent, words).plays();
        assert_eq!(ran.ended(), ("failed", Some("contract"), 1), "{agent}");
        let last = ran.report["attempts"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&last["agent"], &last["outcome"]),
            (&json!(agent), &json!("contract")),
            "{last:#}"
        );
        // Asked again twice in its session, and flagged with everything that was received; the work
        // is not redone.
        assert_eq!((&last["repairs_asked"], &last["n"]), (&json!(2), &json!(1)));
        for reply in last["replies"].as_array().unwrap() {
            let transcript = reply["transcript"].as_str().unwrap();
            assert_eq!(reply["status"], "absent");
            assert_eq!(ran.read(&format!(".counterfoil/{transcript}")), words);
        }
        ran
    };
    silent(scenario(), "implementer");
    silent(scenario().implements("2"), "qa");
    silent(scenario().implements("2").says("qa", passed()), "code-quality");
    let ran = silent(scenario().passes("2"), "dod");
    assert!(ran.prompt("dod#1", 2).contains("Your answer contained no result"));
}

#[test]
fn a_missing_result_is_asked_for_again_and_the_work_is_not_redone() {
    let ran = scenario()
        .raw("implementer", "Done, and it was fun.")
        .writes("src/lib.rs", "pub fn two() {}\n")
        .raw("implementer", "{\"status\": \"finished\"}")
        .says("implementer", work("Made it 2"))
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    let prompt = asked_again(&ran, "implement#1", 2);
    assert!(prompt.contains("/status") && !prompt.contains("# The task"), "{prompt}");
}

#[test]
fn side_effects_outlive_a_bad_report() {
    let mut scenario = scenario();
    for _ in 0..3 {
        scenario = scenario
            .raw("implementer", "I changed something.")
            .writes("src/lib.rs", "pub fn two() {}\n");
    }
    let ran = scenario.plays();
    assert_eq!(ran.ended(), ("failed", Some("contract"), 1));
    assert_eq!(ran.read("src/lib.rs"), "pub fn two() {}\n");
    let ended = ran
        .events()
        .into_iter()
        .find(|event| event["kind"] == "attempt-ended" && event["attempt"] == "implement#1")
        .unwrap();
    assert!(ended["changed"].to_string().contains("src/lib.rs"), "{ended:#}");
}

#[test]
fn a_result_is_found_in_fences_in_prose_and_over_many_lines() {
    let ran = scenario()
        .raw("implementer", &format!("Done.\n\n```json\n{:#}\n```\n", work("Made it 2")))
        .writes("src/lib.rs", "pub fn two() {}\n")
        .raw("qa", &format!("I ran {{everything}}. Result: {} That is it.", passed()))
        .raw("code-quality", &format!("{:#}", clean()).replace('\n', "\n      "))
        // Malformed JSON is repaired, because the contract allows it, and the repair is recorded.
        .raw("manager", "{'updated': False, 'artifacts_modified': [], 'summary': 'Nothing',}")
        // The last attempt decides; the template and the wrong one before it do not.
        .raw(
            "dod",
            &format!(
                "{{\"task_complete\": true|false}}\nFirst I thought: {}\nBut: {}",
                complete("total"),
                complete("high")
            ),
        )
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(
        ran.report["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|attempt| attempt["repairs_asked"] == 0)
    );
}

#[test]
fn two_verdicts_that_differ_are_asked_about() {
    let both = format!("First I thought: {}\nBut: {}", complete("low"), complete("high"));
    let ran = scenario().passes("2").raw("dod", &both).says("dod", complete("high")).plays();
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(asked_again(&ran, "dod#1", 1).contains("two valid results that differ"));
}

#[test]
fn a_template_that_is_echoed_is_no_result() {
    let template =
        r#"{"status": "success|partial|blocked", "summary": "Brief description of what was done"}"#;
    let ran = scenario().raw("implementer", template).completes("2").plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(asked_again(&ran, "implement#1", 1).contains("success|partial|blocked"));
}

#[test]
fn fields_that_nobody_knows_are_kept_and_change_nothing() {
    let mut said = kept();
    said["mood"] = "good".into();
    let mut qa = passed();
    qa["mood"] = json!({});
    let ran = scenario()
        .implements("2")
        .says("qa", qa)
        .says("code-quality", clean())
        .says("manager", said)
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempt("manager#1")["value"]["mood"], "good");
    assert_eq!(ran.attempt("qa#1")["value"]["mood"], json!({}));
    assert_eq!(ran.attempt("qa#1")["repairs_asked"], 0);
}

#[test]
fn a_gate_is_asked_about_fields_that_nobody_reads_and_passes_without_them() {
    let mut qa = passed();
    qa["mood"] = "good".into();
    let ran = scenario()
        .implements("2")
        .says("qa", qa)
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempt("qa#1")["repairs_asked"], 1);
    let asked = ran.prompt("qa#1", 2);
    assert!(asked.contains("the field `mood` is not part of the contract"), "{asked}");
}

#[test]
fn a_list_that_is_left_out_is_empty() {
    let ran = scenario()
        .says("implementer", json!({"status": "success", "summary": "Nothing to do"}))
        .says("qa", passed())
        .says("code-quality", clean())
        .says("manager", kept())
        .says("dod", complete("high"))
        .answer("confirm", "yes")
        .plays();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempt("implement#1")["value"]["files_changed"], json!([]));
    assert!(ran.prompt("qa#1", 1).contains("Nothing. No file differs"));
    // It is not taken for done without a word.
    assert_eq!(ran.variables()["concerns"], json!(["the implementer changed no file"]));
}

#[test]
fn qa_that_cannot_run_the_tests_does_not_pass() {
    let ran = scenario()
        .implements("2")
        .says("qa", json!({
            "dod_achieved": false,
            "checks": [{"criterion": "tests can be run", "passed": false, "details": "no tests collected"}],
            "test_results": {"total": 0, "passed": 0, "failed": 0},
            "fix_info": "There is no test file. Add tests/two.rs"
        }))
        .says("manager", kept())
        .completes("2 // tested")
        .plays();
    assert_eq!((ran.ended(), &ran.report["iterations"]), (("done", None, 0), &json!(2)));
    assert!(ran.prompt("implement#2", 1).contains("There is no test file. Add tests/two.rs"));
}
