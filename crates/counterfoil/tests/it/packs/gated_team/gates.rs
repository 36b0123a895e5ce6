//! The gates: the engine computes them, independent of what an agent reports.

use super::{
    Team, acceptance, asked, blocked, but, doc, done, held_back, ok, session, status, status_of,
    task, times, went,
};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

#[test]
fn a_document_that_is_missing_blocks_with_its_path() {
    let spec = doc("spec.md", "# Spec");
    let cases: [(&str, Scenario); 5] = [
        ("spec.md", Scenario::team().says("SpecAgent", ok())),
        ("acceptance.json", Scenario::team().says("SpecAgent", ok()).exec(&spec)),
        ("architecture.md", Scenario::team().intake().says("Architect", ok())),
        ("tasks.yaml", Scenario::team().intake().design().says("Planner", ok())),
        (
            "report.md",
            Scenario::team().planned().codes().passes(&[
                "Reviewer",
                "QA",
                "Security",
                "Integrator",
                "Docs",
                "Integrator",
            ]),
        ),
    ];
    for (file, scenario) in cases {
        let ran = scenario.built_in_only().play();
        blocked(&ran, file);
        assert!(ran.reason().contains(&session(&ran, file)), "{file}: {ran:?}");
    }
}

#[test]
fn a_readme_that_is_missing_blocks_the_release() {
    let scenario =
        Scenario::team().planned().codes().passes(&["Reviewer", "QA", "Security", "Integrator"]);
    let scenario =
        scenario.says("Docs", ok()).deletes("README.md").exec(&doc("report.md", "# Report"));
    blocked(&scenario.passes(&["Integrator"]).play(), "README.md");
}

#[test]
fn a_context_file_that_is_missing_blocks_the_dispatch() {
    // Somebody throws the specification away while a person is asked: the Architect is not asked
    // again.
    let scenario = Scenario::team().intake().says("Architect", status("NEEDS_INFO", "How many?"));
    let ran = scenario.design().play();
    ran.each(|project| std::fs::remove_file(project.path(session(&ran, "spec.md"))).unwrap());
    let ran = ran.answer_and_resume(ran.questions()[0], "One.");
    blocked(&ran, "spec.md");
    assert_eq!(asked(&ran), ["INTAKE#1", "DESIGN#1"]);
    assert_eq!(ran.report["state"], "BLOCKED");
}

#[test]
fn a_designer_without_a_design_spec_blocks() {
    let scenario = Scenario::team().intake().design().says("Designer", ok());
    let ran = scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "ui=true"]);
    blocked(&ran, "design-specs");
}

#[test]
fn acceptance_without_testable_criteria_is_sent_back() {
    let bad = json!({"criteria": [{"id": "AC-1", "description": "it is good", "checks": []}]})
        .to_string();
    let ran = Scenario::team()
        .intake_with(&bad)
        .intake()
        .says("Architect", status("FAIL", "enough"))
        .play();
    blocked(&ran, "enough");
    assert!(went(&ran, "INTAKE_ACCEPTANCE>INTAKE"), "{ran:?}");
    let again = ran.prompt("INTAKE#2", 1);
    assert!(again.contains("acceptance.json does not hold") && again.contains("checks"), "{again}");
    assert!(!ran.prompt("DESIGN#1", 1).contains("does not hold"));
}

#[test]
fn a_document_that_stays_wrong_blocks_after_two_more_drafts() {
    let drafts = [
        json!({"criteria": []}),
        json!({"criteria": [{"id": "AC-1", "description": "it works", "checks": []}]}),
        json!({"criteria": [{"id": "AC-1", "checks": ["cmd: true"]}]}),
    ];
    let scenario = drafts
        .iter()
        .fold(Scenario::team(), |scenario, draft| scenario.intake_with(&draft.to_string()));
    let ran = scenario.play();
    blocked(&ran, "'drafts' of 2 is used up");
    assert_eq!(asked(&ran).len(), 3);
}

#[test]
fn a_plan_without_checks_or_an_end_is_sent_back() {
    let mut bare = task("T-001", &[]);
    bare["done_when"] = json!([]);
    let scenario = Scenario::team().intake().design().plan(&[bare]).plan(&[task("T-001", &[])]);
    let ran = scenario.says("Coder", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    assert!(went(&ran, "PLAN_TASKS>PLAN"), "{ran:?}");
    assert!(ran.prompt("PLAN#2", 1).contains("done_when"));
}

#[test]
fn an_empty_document_is_sent_back() {
    let empty = doc("spec.md", "") + &doc("acceptance.json", &acceptance("cmd: true"));
    let ran = Scenario::team().says("SpecAgent", ok()).exec(&empty).intake().play();
    assert!(went(&ran, "INTAKE_SPEC>INTAKE"), "{ran:?}");
    assert!(ran.prompt("INTAKE#2", 1).contains("spec.md is empty"));
}

#[test]
fn ok_without_the_definition_of_done_is_refused_and_repaired() {
    let undone = but(&json!({"gates": {"meets_definition_of_done": false}}));
    let scenario = Scenario::team()
        .says("SpecAgent", undone)
        .intake()
        .says("Architect", status("FAIL", "enough"));
    let ran = scenario.play();
    blocked(&ran, "enough");
    assert_eq!(ran.attempt("INTAKE#1")["repairs_asked"], 1, "{ran:?}");
    assert!(ran.prompt("INTAKE#1", 2).contains("meets_definition_of_done"));
}

#[test]
fn ok_with_a_high_finding_is_refused() {
    let severe =
        but(&json!({"artifacts": {"findings": [{"severity": "High", "file": "src/lib.rs"}]}}));
    let scenario = Scenario::team().intake();
    let ran = scenario
        .says("Architect", severe.clone())
        .says("Architect", severe.clone())
        .says("Architect", severe)
        .play();
    blocked(&ran, "high or critical");
    assert_eq!(ran.attempt("DESIGN#1")["repairs_asked"], 2);
}

/// What each gate says that does not pass although its status is OK, and the fix it leads to.
fn not_passing() -> Vec<(&'static str, Value, &'static str)> {
    let gates = |gates: Value| but(&json!({"summary": "Not yet.", "gates": gates}));
    let finding = |severity: &str| {
        but(
            &json!({"summary": "Not yet.", "artifacts": {"findings": [{"severity": severity, "file": "src/lib.rs"}]}}),
        )
    };
    vec![
        ("Reviewer", gates(json!({"meets_definition_of_done": false})), "REVIEW>FIX_REVIEW"),
        ("Reviewer", gates(json!({"needs_review": true})), "REVIEW>FIX_REVIEW"),
        ("Reviewer", finding("critical"), "REVIEW>FIX_REVIEW"),
        ("QA", gates(json!({"meets_definition_of_done": false})), "QA>FIX_TESTS"),
        ("QA", gates(json!({"needs_tests": true})), "QA>FIX_TESTS"),
        (
            "Security",
            gates(json!({"security_concerns": ["passwords in the clear"]})),
            "SECURITY>FIX_SECURITY",
        ),
        ("Security", finding("high"), "SECURITY>FIX_SECURITY"),
        ("Security", gates(json!({"meets_definition_of_done": false})), "SECURITY>FIX_SECURITY"),
        ("Integrator", gates(json!({"meets_definition_of_done": false})), "INTEGRATE>FIX_BUILD"),
    ]
}

#[test]
fn ok_that_holds_something_back_does_not_pass_the_gate() {
    for (gate, said, step) in not_passing() {
        let before =
            ["Reviewer", "QA", "Security", "Integrator"].into_iter().take_while(|one| *one != gate);
        let scenario =
            Scenario::team().built_in_only().planned().codes().passes(&before.collect::<Vec<_>>());
        let ran = scenario.says(gate, said.clone()).play();
        assert!(went(&ran, step), "{gate} says {said}: {ran:?}");
    }
}

#[test]
fn a_low_finding_or_needs_tests_at_the_reviewer_does_not_hold_back() {
    let remark = but(&json!({
        "artifacts": {"findings": [{"severity": "low", "file": "src/lib.rs"}], "review_comments": ["a nicer name?"]},
        "gates": {"needs_tests": true}
    }));
    let ran = Scenario::team()
        .planned()
        .codes()
        .says("Reviewer", remark)
        .passes(&["QA", "Security"])
        .released()
        .play();
    done(&ran);
    assert_eq!(times(&ran, "REVIEW>QA"), 1);
}

#[test]
fn fail_is_blocked() {
    for (agent, scenario) in [
        ("Architect", Scenario::team().intake()),
        ("Coder", Scenario::team().planned()),
        ("Reviewer", Scenario::team().planned().codes()),
    ] {
        let ran = scenario.built_in_only().says(agent, status("FAIL", "It cannot be done.")).play();
        blocked(&ran, "FAIL: It cannot be done.");
    }
}

#[test]
fn a_process_that_fails_ends_the_run_and_the_status_says_blocked() {
    let ran = Scenario::team().planned().reply("Coder").fails("permission").play();
    assert_eq!(ran.ended(), ("failed", Some("permission"), 5), "{ran:?}");
    assert_eq!(status_of(&ran)["current_state"], "BLOCKED");
}

#[test]
fn an_agent_that_is_blocked_blocks_the_session() {
    let ran =
        Scenario::team().planned().says("Coder", held_back("The compiler is missing.")).play();
    blocked(&ran, "BLOCKED: The compiler is missing.");
    assert_eq!(status_of(&ran)["blocked_tasks"][0]["id"], "T-001");
}

#[test]
fn a_gate_that_is_blocked_leads_to_a_fix() {
    let scenario =
        Scenario::team().planned().codes().says("Reviewer", held_back("It leaks.")).codes();
    let ran = scenario.passes(&["Reviewer", "QA", "Security"]).released().play();
    done(&ran);
    assert!(went(&ran, "REVIEW>FIX_REVIEW") && went(&ran, "FIX_REVIEW>REVIEW"), "{ran:?}");
}

#[test]
fn prose_around_the_json_is_refused_and_repaired() {
    let prose = format!("Here you are:\n{}\n", ok());
    let fenced = format!("```json\n{}\n```\n", ok());
    let scenario = Scenario::team().raw("SpecAgent", &prose).raw("SpecAgent", &fenced).intake();
    let ran = scenario.says("Architect", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    assert_eq!(ran.attempt("INTAKE#1")["repairs_asked"], 2, "{ran:?}");
    for (reply, place) in [(2, "before"), (3, "around")] {
        let prompt = ran.prompt("INTAKE#1", reply);
        let wrong: Vec<&str> = prompt.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(wrong.len(), 1, "nothing else is wrong: {prompt}");
        let said = format!("there is text {place} the result, which must be alone");
        assert!(wrong[0].contains(&said), "{prompt}");
        assert!(!prompt.contains("You are SpecAgent"), "the work is not asked for again: {prompt}");
    }
}

#[test]
fn what_the_coder_wrote_stays_although_its_report_is_garbage() {
    let garbage = |scenario: Scenario| scenario.raw("Coder", "Done!");
    let scenario = garbage(Scenario::team().planned()).exec("echo '// half' > src/part.rs");
    let ran = garbage(garbage(scenario)).play();
    blocked(&ran, "no result");
    assert_eq!(ran.read("src/part.rs"), "// half\n");
    assert!(!went(&ran, "IMPLEMENT>REVIEW"), "{ran:?}");
}

#[test]
fn no_valid_review_after_the_repairs_is_flagged_and_never_approval() {
    let scenario = Scenario::team().planned().codes();
    let ran = scenario
        .raw("Reviewer", "Looks good to me!")
        .raw("Reviewer", "Approved.")
        .raw("Reviewer", "{}")
        .play();
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(went(&ran, "REVIEW>BLOCKED") && !went(&ran, "REVIEW>QA"), "{ran:?}");
    assert_eq!(ran.attempt("REVIEW#1")["replies"].as_array().unwrap().len(), 3);
    // What the Coder wrote stays.
    assert!(ran.path("src/part.rs").exists());
}

#[test]
fn cmd_checks_of_a_task_are_run_and_not_believed() {
    let mut checked = task("T-001", &[]);
    checked["checks"] = json!(["cmd: test -f src/wanted.rs"]);
    let scenario =
        Scenario::team().intake().design().plan(&[checked]).codes().passes(&["Reviewer", "QA"]);
    let scenario = scenario
        .says("Coder", ok())
        .writes("src/wanted.rs", "// wanted\n")
        .passes(&["QA", "Security"]);
    let ran = scenario.released().play();
    done(&ran);
    assert!(went(&ran, "QA_RESULT>FIX_TESTS") && went(&ran, "FIX_TESTS>QA"), "{ran:?}");
    assert!(ran.prompt("FIX_TESTS#1", 1).contains("test -f src/wanted.rs exited with 1"));
}

#[test]
fn cmd_checks_of_the_acceptance_are_run_and_ci_is_green_when_all_pass() {
    let wanted = acceptance("cmd: echo looked; test -f src/wanted.rs");
    let scenario =
        Scenario::team().intake_with(&wanted).design().plan(&[task("T-001", &[])]).codes();
    let scenario = scenario.passes(&["Reviewer", "QA", "Security", "Integrator", "Integrator"]);
    let scenario = scenario
        .says("Coder", ok())
        .writes("src/wanted.rs", "// wanted\n")
        .passes(&["Reviewer"])
        .documented()
        .passes(&["Integrator"]);
    let ran = scenario.play();
    done(&ran);
    assert!(
        went(&ran, "INTEGRATE_RESULT>FIX_BUILD") && went(&ran, "FIX_BUILD>FIX_BUILD_CODE"),
        "{ran:?}"
    );
    assert!(
        went(&ran, "FIX_BUILD_CODE>INTEGRATE_CHECKS"),
        "back to the gate that was red: {ran:?}"
    );
    assert!(ran.prompt("FIX_BUILD#1", 1).contains("exited with 1: looked"));
    let sent = ran.prompt("FIX_BUILD#1", 1);
    assert!(
        sent.contains(r#""ci_status": "red""#)
            && sent.contains(r#""last_failed_step": "cmd: echo looked"#),
        "{sent}"
    );
    assert!(ran.prompt("RELEASE#1", 1).contains(r#""ci_status": "green""#));
    assert_eq!(status_of(&ran)["last_ci_result"], "green");
}

#[test]
fn what_docs_breaks_is_found_before_done() {
    let scenario =
        Scenario::team().planned().codes().passes(&["Reviewer", "QA", "Security", "Integrator"]);
    let scenario = scenario.documented().says("Integrator", ok()).deletes("src/lib.rs");
    let scenario = scenario
        .passes(&["Integrator"])
        .says("Coder", ok())
        .writes("src/lib.rs", "pub fn one() {}\n");
    let ran = scenario.passes(&["Reviewer"]).documented().passes(&["Integrator"]).play();
    done(&ran);
    assert!(went(&ran, "RELEASE_RESULT>FIX_BUILD"), "{ran:?}");
    assert_eq!(times(&ran, "INTEGRATE_MANUAL>RELEASE"), 2);
}

#[test]
fn a_check_is_run_as_it_stands() {
    // The words `cmd:` in it are its own, and so are braces and quotes.
    let check = r#"cmd: test "$(echo 'cmd: {{ x }}')" = 'cmd: {{ x }}'"#;
    let scenario = Scenario::team()
        .intake_with(&acceptance(check))
        .design()
        .plan(&[task("T-001", &[])])
        .codes();
    done(&scenario.passes(&["Reviewer", "QA", "Security"]).released().play_allowing("**"));
}

#[test]
fn tests_required_but_nothing_runnable_is_blocked() {
    let mut manual = task("T-001", &[]);
    manual["checks"] = json!(["manual: look at it"]);
    let scenario = Scenario::team()
        .intake_with(&acceptance("manual: look at it"))
        .design()
        .plan(&[manual])
        .codes();
    let missing = but(&json!({"gates": {"needs_tests": true}}));
    let ran = scenario.passes(&["Reviewer"]).says("QA", missing).play();
    blocked(&ran, "nothing to run");
    assert!(!went(&ran, "QA>FIX_TESTS"));
}

#[test]
fn a_check_that_cannot_be_run_is_blocked_at_the_integration() {
    let scenario = Scenario::team().intake_with(&acceptance("cmd: no-such-tool --test")).design();
    let mut unchecked = task("T-001", &[]);
    unchecked["checks"] = json!(["manual: look at it"]);
    let looked = but(&json!({"artifacts": {"test_results": "looked at it"}}));
    let scenario = scenario.plan(&[unchecked]).codes().passes(&["Reviewer"]).says("QA", looked);
    let ran = scenario.passes(&["Security", "Integrator"]).play();
    blocked(&ran, "this cannot be run: cmd: no-such-tool --test: no-such-tool: not found");
    assert_eq!(status_of(&ran)["last_ci_result"], "red");
}

/// The reviewer sees it only as it was corrected.
#[test]
fn a_claim_of_the_coder_that_is_refuted_is_asked_for_again() {
    let claims = |file: &str| but(&json!({"artifacts": {"files_changed": [file]}}));
    let scenario = Scenario::team().planned().says("Coder", claims("src/elsewhere.rs"));
    let scenario = scenario.writes("src/part.rs", "// part\n").says("Coder", claims("src/part.rs"));
    let ran = scenario.says("Reviewer", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    let again = ran.prompt("IMPLEMENT#1", 2);
    assert!(again.contains("claimed: src/elsewhere.rs"), "{again}");
    let prompt = ran.prompt("REVIEW#1", 1);
    assert!(
        prompt.contains("- Changed for this task, or said to be: src/part.rs.")
            && !prompt.contains("src/elsewhere.rs"),
        "{prompt}"
    );
}
