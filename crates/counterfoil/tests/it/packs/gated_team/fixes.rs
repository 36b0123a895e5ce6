//! Fix loops: three attempts of each kind for each task, then a person decides.

use super::{
    Team, acceptance, blocked, but, done, held_back, ok, status, status_of, task, times, waits,
    went,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const CHOICES: [&str; 4] = ["another approach", "accept with known issues", "simplify", "guidance"];

/// A gate that rejects the only task until its limit, and what comes before it.
fn exhausted(gate: &str) -> Scenario {
    let before = ["Reviewer", "QA", "Security"].into_iter().take_while(|one| *one != gate);
    let scenario = Scenario::team().planned().codes().passes(&before.collect::<Vec<_>>());
    (1..=4).fold(scenario, |scenario, n| {
        let scenario = scenario.says(gate, held_back(&format!("Problem {n}.")));
        if n <= 3 { scenario.codes() } else { scenario }
    })
}

/// How often each kind was tried for a task, as status.json has it.
fn tried(ran: &ScenarioRun, task: &str, kind: &str) -> Value {
    status_of(ran)["retry_counts"][task][kind].clone()
}

/// It waits with the four choices, after three fixes of this kind.
fn asks(ran: &ScenarioRun, step: &str, kind: &str, task: &str) {
    let question = waits(ran);
    assert_eq!(question["choices"], json!(CHOICES), "{question:#}");
    assert_eq!(times(ran, step), 3, "{ran:?}");
    assert_eq!(tried(ran, task, kind), 3);
    let decision = &status_of(ran)["user_decisions"][0];
    assert_eq!(decision["answer"], Value::Null);
    assert_eq!(decision["state_context"], kind);
}

#[test]
fn fix_review_three_times_then_ask_user() {
    let ran = exhausted("Reviewer").play();
    asks(&ran, "REVIEW>FIX_REVIEW", "FIX_REVIEW", "T-001");
    assert_eq!(times(&ran, "FIX_REVIEW>REVIEW"), 3);
}

#[test]
fn fix_tests_three_times_then_ask_user() {
    let ran = exhausted("QA").play();
    asks(&ran, "QA>FIX_TESTS", "FIX_TESTS", "T-001");
    assert_eq!(times(&ran, "FIX_TESTS>QA"), 3);
    assert_eq!(times(&ran, "IMPLEMENT>REVIEW"), 1, "back to the gate that blocked, not before it");
}

#[test]
fn fix_security_three_times_then_ask_user() {
    let ran = exhausted("Security").play();
    asks(&ran, "SECURITY>FIX_SECURITY", "FIX_SECURITY", "T-001");
    assert_eq!(times(&ran, "FIX_SECURITY>SECURITY"), 3);
}

/// The checks of the acceptance stay red.
fn red_build() -> Scenario {
    let wanted = acceptance("cmd: test -f src/wanted.rs");
    let scenario =
        Scenario::team().intake_with(&wanted).design().plan(&[task("T-001", &[])]).codes();
    let scenario = scenario.passes(&["Reviewer", "QA", "Security", "Integrator"]);
    (0..3).fold(scenario, |scenario, _| scenario.passes(&["Integrator"]).codes())
}

#[test]
fn fix_build_three_times_then_ask_user() {
    let ran = red_build().play();
    asks(&ran, "INTEGRATE_RESULT>FIX_BUILD", "FIX_BUILD", "meta");
    assert_eq!(times(&ran, "FIX_BUILD_CODE>INTEGRATE_CHECKS"), 3);
    assert_eq!(status_of(&ran)["last_ci_result"], "red");
}

#[test]
fn the_same_words_three_times_are_no_end_before_the_person_is_asked() {
    let scenario = Scenario::team().planned().codes();
    let scenario =
        (0..3).fold(scenario, |scenario, _| scenario.says("Reviewer", held_back("No.")).codes());
    let ran = scenario.says("Reviewer", held_back("No.")).play();
    asks(&ran, "REVIEW>FIX_REVIEW", "FIX_REVIEW", "T-001");
}

/// The gate is not asked about it again; the Coder is, and after three times a person.
#[test]
fn a_fix_that_changes_nothing_is_none() {
    for (gate, state, fix) in [
        ("Reviewer", "REVIEW", "FIX_REVIEW"),
        ("QA", "QA", "FIX_TESTS"),
        ("Security", "SECURITY", "FIX_SECURITY"),
    ] {
        let before = ["Reviewer", "QA", "Security"].into_iter().take_while(|one| *one != gate);
        let scenario = Scenario::team().built_in_only().planned().codes();
        let scenario = scenario.passes(&before.collect::<Vec<_>>()).says(gate, held_back("No."));
        // Nothing at all, and the same content again.
        let scenario = scenario
            .says("Coder", ok())
            .says("Coder", ok())
            .exec("cp src/part.rs x; mv x src/part.rs");
        let ran = scenario.says("Coder", ok()).play();
        assert_eq!(waits(&ran)["choices"], json!(CHOICES), "{gate}: {ran:?}");
        assert_eq!(times(&ran, &format!("{state}>{fix}")), 1, "{gate}: {ran:?}");
        assert_eq!(times(&ran, &format!("{fix}>{fix}")), 2, "{gate}: {ran:?}");
        assert!(!went(&ran, &format!("{fix}>{state}")), "{gate}: {ran:?}");
        assert_eq!(tried(&ran, "T-001", fix), 3);
        let again = ran.prompt(&format!("{fix}#2"), 1);
        assert!(again.contains(&format!("- {fix}: nothing was changed")), "{again}");
    }
}

#[test]
fn a_fix_that_was_made_before_a_question_is_one() {
    let edit = "echo '// fixed' >> src/part.rs";
    let scenario = Scenario::team().planned().codes().says("Reviewer", held_back("No."));
    let scenario = scenario.says("Coder", status("NEEDS_INFO", "Is it enough?")).exec(edit);
    let scenario = scenario.answer("ASK_USER", "Yes.").says("Coder", ok());
    let ran = scenario.passes(&["Reviewer", "QA", "Security"]).released().play();
    done(&ran);
    assert_eq!(tried(&ran, "T-001", "FIX_REVIEW"), 1);
}

#[test]
fn a_fix_of_the_build_is_one_if_the_integrator_or_the_coder_changed_something() {
    let scenario = || {
        let gates = ["Reviewer", "QA", "Security"];
        let scenario = Scenario::team().built_in_only().planned().codes().passes(&gates);
        scenario.says("Integrator", held_back("It does not build."))
    };
    let nobody =
        (0..3).fold(scenario(), |scenario, _| scenario.passes(&["Integrator"]).says("Coder", ok()));
    let ran = nobody.play();
    waits(&ran);
    assert_eq!(times(&ran, "FIX_BUILD_CODE>FIX_BUILD"), 2, "{ran:?}");
    assert!(!went(&ran, "FIX_BUILD_CODE>INTEGRATE"), "{ran:?}");
    // What the Integrator changed is reviewed.
    let fixed = scenario().says("Integrator", ok()).writes("build.cfg", "all\n");
    let ran = fixed.says("Coder", ok()).passes(&["Integrator", "Reviewer"]);
    let ran = ran.documented().passes(&["Integrator"]).play();
    done(&ran);
    assert!(
        went(&ran, "FIX_BUILD_CODE>INTEGRATE") && went(&ran, "INTEGRATE_RESULT>REVIEW"),
        "{ran:?}"
    );
}

#[test]
fn each_task_and_each_kind_has_its_own_three() {
    let scenario =
        Scenario::team().intake().design().plan(&[task("T-001", &[]), task("T-002", &["T-001"])]);
    let reviewed = |scenario: Scenario| {
        (0..3).fold(scenario.codes(), |scenario, _| {
            scenario.says("Reviewer", held_back("No.")).codes()
        })
    };
    let scenario = reviewed(scenario).passes(&["Reviewer"]);
    let scenario = reviewed(scenario.says("QA", held_back("No.")).codes().passes(&["QA"]));
    let ran = scenario.passes(&["Reviewer", "QA", "Security"]).released().play();
    done(&ran);
    assert_eq!(
        status_of(&ran)["retry_counts"],
        json!({
            "T-001": {"FIX_REVIEW": 3, "FIX_TESTS": 1, "FIX_SECURITY": 0, "FIX_BUILD": 0},
            "T-002": {"FIX_REVIEW": 3, "FIX_TESTS": 0, "FIX_SECURITY": 0, "FIX_BUILD": 0}
        })
    );
}

#[test]
fn another_approach_gives_one_more_try_with_the_text() {
    let scenario = exhausted("Reviewer")
        .answer("ASK_USER", "another approach")
        .answer("ASK_USER", "Use a table.");
    let ran = scenario.codes().says("Reviewer", held_back("Still not.")).play();
    let question = waits(&ran);
    assert_eq!(question["choices"], json!(CHOICES), "one more try, and no more: {question:#}");
    assert_eq!(tried(&ran, "T-001", "FIX_REVIEW"), 4);
    assert!(ran.prompt("FIX_REVIEW#4", 1).contains("another approach: Use a table."));
    let decisions = status_of(&ran)["user_decisions"].clone();
    assert_eq!(decisions[0]["answer"], "another approach: Use a table.");
    assert_eq!(decisions[1]["answer"], Value::Null);
}

#[test]
fn guidance_gives_one_more_try_with_the_text() {
    // In one answer.
    let scenario = exhausted("QA").answer("ASK_USER", "guidance: Run it twice.");
    let ran = scenario.codes().passes(&["QA", "Security"]).released().play();
    done(&ran);
    assert!(ran.prompt("FIX_TESTS#4", 1).contains("guidance: Run it twice."));
    assert!(!ran.prompt("FIX_TESTS#3", 1).contains("Run it twice."));
}

#[test]
fn simplify_sends_the_task_back_to_the_planner() {
    let scenario = exhausted("Reviewer").answer("ASK_USER", "simplify");
    let mut simpler = task("T-001", &[]);
    simpler["goal"] = json!("A smaller part is there");
    let scenario = scenario.plan(&[simpler]).codes().says("Reviewer", held_back("Almost.")).codes();
    let ran = scenario.passes(&["Reviewer", "QA", "Security"]).released().play();
    done(&ran);
    let prompt = ran.prompt("PLAN#2", 1);
    assert!(prompt.contains("Make T-001 simpler") && prompt.contains("Problem 4."), "{prompt}");
    assert!(ran.prompt("IMPLEMENT#2", 1).contains("A smaller part is there"));
    // It has its tries again, and those before stay counted.
    assert_eq!(tried(&ran, "T-001", "FIX_REVIEW"), 4);
}

#[test]
fn accept_writes_known_issues_and_passes_the_gate() {
    let cases = [
        ("Reviewer", "ANSWERED>QA", vec!["QA", "Security"]),
        ("QA", "ANSWERED>SECURITY_NEEDED", vec!["Security"]),
        ("Security", "ANSWERED>TASK_DONE", vec![]),
    ];
    for (gate, step, rest) in cases {
        let scenario =
            exhausted(gate).built_in_only().answer("ASK_USER", "accept with known issues");
        let ran = scenario.passes(&rest).released().play();
        done(&ran);
        assert!(went(&ran, step), "{gate}: {ran:?}");
        assert_eq!(status_of(&ran)["known_issues"], json!(["T-001: Problem 4."]));
        assert!(ran.prompt("RELEASE#1", 1).contains("T-001: Problem 4."));
    }
}

#[test]
fn accept_lets_a_red_check_go_and_nothing_else() {
    let scenario = red_build().answer("ASK_USER", "accept with known issues");
    let ran = scenario.passes(&["Reviewer"]).documented().passes(&["Integrator"]).play();
    done(&ran);
    assert_eq!(ran.variables()["accepted"], json!(["cmd: test -f src/wanted.rs"]));
    let known = status_of(&ran)["known_issues"][0].clone();
    assert!(known.as_str().unwrap().contains("test -f src/wanted.rs"), "{known}");
    // The task's own check still runs.
    assert!(
        ran.commands().iter().any(|command| command.starts_with("RELEASE_CHECKS/1/")),
        "{ran:?}"
    );
}

#[test]
fn accept_is_never_for_a_high_or_critical_finding() {
    let severe = but(&json!({
        "status": "BLOCKED", "summary": "Passwords in the clear.", "gates": {"meets_definition_of_done": false},
        "artifacts": {"findings": [{"severity": "critical", "file": "src/lib.rs"}]}
    }));
    let scenario = Scenario::team().planned().codes().passes(&["Reviewer", "QA"]);
    let scenario =
        (0..3).fold(scenario, |scenario, _| scenario.says("Security", severe.clone()).codes());
    let scenario = scenario.says("Security", severe).answer("ASK_USER", "accept with known issues");
    let ran = scenario.play();
    // The answer of the script is none of the choices, so it still waits.
    assert_eq!(waits(&ran)["choices"], json!(["another approach", "simplify", "guidance"]));
    assert!(ran.stderr.contains("accept with known issues"), "{}", ran.stderr);
    assert_eq!(status_of(&ran)["known_issues"], json!([]));
}

#[test]
fn what_a_gate_found_reaches_the_coder_and_is_gone_after() {
    let comments = but(&json!({
        "status": "BLOCKED", "summary": "Two things.", "gates": {"meets_definition_of_done": false},
        "artifacts": {"review_comments": ["name it better", {"file": "src/part.rs", "line": 3, "comment": "off by one"}]}
    }));
    let scenario =
        Scenario::team().intake().design().plan(&[task("T-001", &[]), task("T-002", &["T-001"])]);
    let scenario = scenario.codes().says("Reviewer", comments).codes().passes(&["Reviewer", "QA"]);
    let ran = scenario.says("Coder", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    let fix = ran.prompt("FIX_REVIEW#1", 1);
    assert!(
        fix.contains("Two things.")
            && fix.contains("name it better")
            && fix.contains(r#""comment":"off by one""#),
        "{fix}"
    );
    let next = ran.prompt("IMPLEMENT#2", 1);
    assert!(!next.contains("name it better") && !next.contains("Two things."), "{next}");
}
