//! Questions to people, and their answers.

use super::{Team, acceptance, blocked, done, session, status, status_of, task, waits, went};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const GATES: &[&str] = &["Reviewer", "QA", "Security"];

#[test]
fn needs_info_asks_and_returns_to_the_state_that_asked() {
    let scenario = Scenario::team()
        .intake()
        .says("Architect", status("NEEDS_INFO", "One file or many?"))
        .design();
    let ran = scenario.play();
    let question = waits(&ran);
    assert_eq!(question["question"], "One file or many?");
    let pending = status_of(&ran)["user_decisions"][0].clone();
    assert_eq!(pending["question"], "One file or many?");
    assert_eq!(pending["answer"], Value::Null);
    assert_eq!(pending["state_context"], "DESIGN");
    let ran = ran.answer_and_resume(ran.questions()[0], "One.");
    assert!(went(&ran, "ANSWERED>DESIGN"), "{ran:?}");
    let sent = ran.prompt("DESIGN#2", 1);
    assert!(sent.contains("One file or many? The user: One."), "{sent}");
    let decisions = status_of(&ran)["user_decisions"].clone();
    assert_eq!(
        decisions.as_array().unwrap().len(),
        1,
        "the same record is completed: {decisions:#}"
    );
    assert_eq!(decisions[0]["answer"], "One.");
    assert_eq!(decisions[0]["state_context"], "DESIGN");
}

#[test]
fn needs_info_of_a_gate_returns_to_the_gate() {
    let scenario =
        Scenario::team().planned().codes().says("Reviewer", status("NEEDS_INFO", "Is it public?"));
    let scenario = scenario.answer("ASK_USER", "Yes.").passes(GATES).released();
    let ran = scenario.play();
    done(&ran);
    assert!(went(&ran, "REVIEW>ASK") && went(&ran, "ANSWERED>REVIEW"), "{ran:?}");
    assert!(ran.prompt("REVIEW#2", 1).contains("Is it public? The user: Yes."));
}

#[test]
fn a_run_with_a_pending_decision_is_resumed_with_it() {
    let scenario =
        Scenario::team().says("SpecAgent", status("NEEDS_INFO", "For whom?")).intake().design();
    let scenario = scenario.plan(&[task("T-001", &[])]).codes().passes(GATES).released();
    let ran = scenario.play();
    waits(&ran);
    let before = status_of(&ran);
    // Without an answer it still waits, with the same decision.
    let ran = ran.resume(&[]);
    waits(&ran);
    assert_eq!(status_of(&ran)["user_decisions"], before["user_decisions"]);
    // An answer that was only recorded counts when the run goes on.
    ran.each(|project| {
        let report = project.run_json(&["show", "last", "--format", "json"]).report;
        let question = report["questions"][0]["id"].as_str().unwrap().to_owned();
        let said = project.run(&["answer", "last", &question, "For us."]);
        assert!(said.is_success(), "{}", said.stderr);
    });
    let ran = ran.resume(&[]);
    done(&ran);
    assert!(went(&ran, "ANSWERED>INTAKE"), "{ran:?}");
    assert!(ran.prompt("INTAKE#2", 1).contains("For whom? The user: For us."));
    assert_eq!(status_of(&ran)["user_decisions"][0]["answer"], "For us.");
}

#[test]
fn manual_checks_are_asked_and_a_yes_passes() {
    let scenario =
        Scenario::team().intake_with(&acceptance("manual: the page reads well")).design();
    let mut seen = task("T-001", &[]);
    seen["checks"] = json!(["cmd: test -f src/lib.rs", "manual: the part looks well"]);
    let mut ran = scenario.plan(&[seen]).codes().passes(GATES).released().play();
    // That of the acceptance, and that of the task.
    for check in ["the page reads well", "the part looks well"] {
        let question = waits(&ran);
        assert_eq!(question["choices"], json!(["yes", "no"]));
        assert!(question["question"].as_str().unwrap().contains(check), "{question}");
        ran = ran.answer_and_resume(ran.questions()[0], "yes");
    }
    done(&ran);
    for decision in [0, 1] {
        assert_eq!(status_of(&ran)["user_decisions"][decision]["answer"], "yes");
    }
}

#[test]
fn a_manual_check_that_does_not_hold_is_fixed_and_asked_again() {
    let scenario =
        Scenario::team().intake_with(&acceptance("manual: the page reads well")).design();
    let scenario = scenario
        .plan(&[task("T-001", &[])])
        .codes()
        .passes(GATES)
        .passes(&["Integrator", "Integrator"])
        .codes()
        .passes(&["Reviewer"]);
    let scenario =
        scenario.answer("ASK_USER", "no").answer("ASK_USER", "Too long.").answer("ASK_USER", "yes");
    let ran = scenario.documented().passes(&["Integrator"]).play();
    done(&ran);
    assert!(went(&ran, "ANSWERED>FIX_BUILD") && went(&ran, "ANSWERED>INTEGRATE_MANUAL"), "{ran:?}");
    assert!(ran.prompt("FIX_BUILD#1", 1).contains("the page reads well does not hold: Too long."));
    assert_eq!(status_of(&ran)["user_decisions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_decision_is_on_disk_before_it_is_asked() {
    // The run stops where it asks; what stands in the file then is what the next one would find.
    let ran = Scenario::team().says("SpecAgent", status("NEEDS_INFO", "For whom?")).play();
    waits(&ran);
    let text = ran.read(&session(&ran, "status.json"));
    assert!(text.contains("For whom?") && text.contains("\"answer\": null"), "{text}");
    // Asked, but not answered: nothing else was begun.
    assert_eq!(ran.attempts(), ["INTAKE#1 accepted"]);
}

#[test]
fn an_answer_to_one_agent_is_a_constraint_of_all_that_follow() {
    let scenario = Scenario::team()
        .says("SpecAgent", status("NEEDS_INFO", "For whom?"))
        .answer("ASK_USER", "For us.");
    let ran = scenario.intake().says("Architect", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    assert!(ran.prompt("DESIGN#1", 1).contains("For whom? The user: For us."));
}

#[test]
fn a_choice_and_its_words_are_one_answer() {
    let scenario =
        Scenario::team().intake_with(&acceptance("manual: the page reads well")).design();
    let scenario = scenario
        .plan(&[task("T-001", &[])])
        .codes()
        .passes(GATES)
        .passes(&["Integrator", "Integrator"])
        .codes()
        .passes(&["Reviewer"]);
    let scenario =
        scenario.answer("ASK_USER", "no: Too long.").answer("ASK_USER", "yes: Well done.");
    let ran = scenario.documented().passes(&["Integrator"]).play();
    done(&ran);
    assert!(ran.prompt("FIX_BUILD#1", 1).contains("the page reads well does not hold: Too long."));
    let decisions = status_of(&ran)["user_decisions"].clone();
    assert_eq!(decisions[0]["answer"], "no: Too long.");
    assert_eq!(decisions[1]["answer"], "yes: Well done.");
    let report = ran.read(&session(&ran, "report.md"));
    assert!(report.contains("yes: Well done."), "{report}");
}
