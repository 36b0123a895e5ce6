//! A task whose Coder changes nothing, or lists files that it did not change, is not built.

use super::{Team, blocked, but, done, session, status, status_of, times, waits, went};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const GATES: &[&str] = &["Reviewer", "QA", "Security"];

/// The Coder says that it is done, and that it changed these files.
fn lists(files: &[&str]) -> Value {
    but(&json!({"summary": "It is written.", "artifacts": {"files_changed": files}}))
}

/// The Coder says that nothing has to be changed.
fn no_change() -> Value {
    but(&json!({
        "status": "NEEDS_INFO", "summary": "The part is there already.",
        "gates": {"meets_definition_of_done": false}, "artifacts": {"no_change": true}
    }))
}

#[test]
fn a_coder_that_changes_nothing_is_sent_back_and_then_a_person_decides() {
    let scenario = Scenario::team().planned();
    // Nothing at all, a file of the session, and the same content again.
    let scenario = scenario
        .says("Coder", lists(&[]))
        .says("Coder", lists(&[]))
        .exec(&super::doc("thoughts.md", "# Thoughts"))
        .says("Coder", lists(&[]))
        .exec("cp src/lib.rs x; mv x src/lib.rs");
    let ran = scenario.says("Coder", lists(&[])).play();
    let question = waits(&ran)["question"].as_str().unwrap();
    assert!(question.contains("T-001 is not built: no file was changed"), "{question}");
    assert_eq!(times(&ran, "IMPLEMENT>FIX_REVIEW"), 1, "{ran:?}");
    assert_eq!(times(&ran, "FIX_REVIEW>FIX_REVIEW"), 2, "{ran:?}");
    assert!(!went(&ran, "IMPLEMENT>REVIEW") && !went(&ran, "FIX_REVIEW>REVIEW"), "{ran:?}");
    assert_eq!(status_of(&ran)["retry_counts"]["T-001"]["FIX_REVIEW"], 3);
    let again = ran.prompt("FIX_REVIEW#1", 1);
    assert!(
        again.contains("T-001 is held back: T-001 is not built: no file was changed"),
        "{again}"
    );
}

#[test]
fn a_coder_that_builds_it_when_it_is_sent_back_goes_on() {
    let scenario = Scenario::team().planned().says("Coder", lists(&[])).codes();
    let ran = scenario.passes(GATES).released().play();
    done(&ran);
    assert!(went(&ran, "FIX_REVIEW>REVIEW"), "{ran:?}");
    assert_eq!(status_of(&ran)["last_failed_step"], Value::Null);
}

#[test]
fn a_list_that_is_not_true_is_asked_for_again() {
    // One that corrects its list, one that then does the work, one that does neither.
    let wrong = || lists(&["src/part.rs", "README.md"]);
    let corrects = Scenario::team().planned().says("Coder", wrong());
    let corrects =
        corrects.writes("src/part.rs", "// part\n").says("Coder", lists(&["src/part.rs"]));
    let works = Scenario::team().planned().says("Coder", lists(&["src/part.rs"])).codes();
    for scenario in [corrects, works] {
        let ran = scenario.built_in_only().passes(GATES).released().play();
        done(&ran);
        assert_eq!(ran.attempt("IMPLEMENT#1")["repairs_asked"], 1, "{ran:?}");
        assert!(!went(&ran, "IMPLEMENT>FIX_REVIEW"), "{ran:?}");
    }
    let insists = (0..3).fold(Scenario::team().planned(), |scenario, _| {
        scenario.says("Coder", wrong()).writes("src/part.rs", "// part\n")
    });
    let ran = insists.passes(GATES).released().play();
    blocked(&ran, "README.md");
    assert!(!went(&ran, "IMPLEMENT>REVIEW"), "{ran:?}");
}

#[test]
fn a_list_that_is_corrected_to_nothing_is_sent_back() {
    let scenario = Scenario::team().planned().says("Coder", lists(&["src/part.rs"]));
    let scenario = scenario.says("Coder", lists(&[])).says("Coder", status("FAIL", "enough"));
    let ran = scenario.play();
    blocked(&ran, "enough");
    assert!(went(&ran, "IMPLEMENT>FIX_REVIEW"), "{ran:?}");
}

#[test]
fn a_fix_with_a_list_that_is_not_true_is_asked_for_again() {
    let scenario = Scenario::team().planned().codes().says("Reviewer", super::held_back("No."));
    let scenario = scenario.says("Coder", lists(&["src/elsewhere.rs"])).codes();
    let ran = scenario.passes(GATES).released().play();
    done(&ran);
    assert_eq!(ran.attempt("FIX_REVIEW#1")["repairs_asked"], 1, "{ran:?}");
}

#[test]
fn a_task_that_needs_no_change_goes_on_if_a_person_agrees() {
    let at_once = || Scenario::team().built_in_only().planned().says("Coder", no_change());
    let sent_back = || {
        let scenario = Scenario::team().built_in_only().planned().says("Coder", lists(&[]));
        scenario.says("Coder", no_change())
    };
    for scenario in [at_once(), sent_back()] {
        let ran = scenario.answer("ASK_USER", "yes").passes(GATES).released().play();
        done(&ran);
        assert!(went(&ran, "ANSWERED>REVIEW"), "{ran:?}");
        let report = ran.read(&session(&ran, "report.md"));
        assert!(
            report.contains("nothing has to be changed: The part is there already."),
            "{report}"
        );
    }
    let ran = at_once().play();
    let question = waits(&ran);
    assert_eq!(question["choices"], json!(["yes", "no"]), "{question:#}");
    // If that person does not agree, it has to be built, and the person is asked at the end.
    let ran = at_once().answer("ASK_USER", "no: it is not").codes().passes(GATES);
    let ran = ran.passes(&["Integrator"]).play();
    assert!(ran.prompt("FIX_REVIEW#1", 1).contains("The user: no. it is not"), "{ran:?}");
    assert!(waits(&ran)["question"].as_str().unwrap().contains("this is put right"), "{ran:?}");
}

#[test]
fn what_was_built_before_a_question_counts() {
    let scenario = Scenario::team().planned().says("Coder", status("NEEDS_INFO", "Is it enough?"));
    let scenario = scenario.exec("echo '// part' >> src/part.rs").answer("ASK_USER", "Yes.");
    let ran = scenario.says("Coder", lists(&[])).passes(GATES).released().play();
    done(&ran);
    assert!(went(&ran, "IMPLEMENT>REVIEW"), "{ran:?}");
    // And it is no task that needs no change: what it asks is a question like others.
    let scenario = Scenario::team().planned().says("Coder", no_change());
    let ran = scenario.exec("echo '// part' >> src/part.rs").play();
    assert_eq!(waits(&ran)["choices"], json!([]), "{ran:?}");
}

/// Each task is looked at by itself.
#[test]
fn the_second_task_is_not_built_by_the_first() {
    let planned = [super::task("T-001", &[]), super::task("T-002", &["T-001"])];
    let scenario =
        Scenario::team().intake().design().plan(&planned).codes().passes(&["Reviewer", "QA"]);
    let scenario = scenario.says("Coder", lists(&[])).says("Coder", status("FAIL", "enough"));
    let ran = scenario.play();
    blocked(&ran, "enough");
    assert!(went(&ran, "IMPLEMENT>FIX_REVIEW"), "{ran:?}");
}
