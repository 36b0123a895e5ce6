//! The states that a session passes through, and the agents it asks.

use super::{
    Team, agents, asked, blocked, but, doc, done, folder, holds, ok, session, status_of, task, went,
};
use crate::packs::scenario::Scenario;
use serde_json::json;

const GATES: &[&str] = &["Reviewer", "QA", "Security"];

#[test]
fn the_whole_path_from_intake_to_done() {
    let ran = Scenario::team().also_ejected().planned().codes().passes(GATES).released().play();
    done(&ran);
    assert_eq!(
        asked(&ran),
        [
            "INTAKE#1",
            "DESIGN#1",
            "PLAN#1",
            "IMPLEMENT#1",
            "REVIEW#1",
            "QA#1",
            "SECURITY#1",
            "INTEGRATE#1",
            "RELEASE#1",
            "RELEASE_REPORT#1"
        ]
    );
    for step in [
        "INTAKE_ACCEPTANCE>DESIGN",
        "DESIGN_ARCHITECTURE>PLAN",
        "PLAN_ORDER>PLANNED",
        "IMPLEMENT_LOOP>INTEGRATE",
        "INTEGRATE_MANUAL>RELEASE",
        "RELEASE_RESULT>DONE",
    ] {
        assert!(went(&ran, step), "{step}: {ran:?}");
    }
    let status = status_of(&ran);
    assert_eq!(status["completed_tasks"], json!(["T-001"]));
    assert_eq!(status["last_ci_result"], "green");
    for file in
        ["spec.md", "acceptance.json", "architecture.md", "tasks.yaml", "status.json", "report.md"]
    {
        assert!(ran.path(&session(&ran, file)).is_file(), "{file}");
    }
}

#[test]
fn a_full_run_uses_all_nine_core_agents() {
    let ran = Scenario::team().planned().codes().passes(GATES).released().play();
    for agent in [
        "SpecAgent",
        "Architect",
        "Planner",
        "Coder",
        "Reviewer",
        "QA",
        "Security",
        "Integrator",
        "Docs",
    ] {
        assert!(agents(&ran).contains(&agent), "{agent}: {ran:?}");
    }
}

#[test]
fn security_looks_once_where_nothing_asks_for_it() {
    let scenario =
        Scenario::team().intake().design().plan(&[task("T-001", &[]), task("T-002", &[])]);
    let scenario = scenario
        .codes()
        .codes()
        .passes(&["Reviewer", "QA", "Reviewer", "QA", "Security"])
        .released();
    let ran = scenario.play();
    done(&ran);
    // The first task goes without; the last one is looked at for all of them.
    assert_eq!(agents(&ran).iter().filter(|agent| **agent == "Security").count(), 1);
    assert!(went(&ran, "SECURITY_NEEDED>TASK_DONE"), "{ran:?}");
}

#[test]
fn security_is_required_by_the_risk_flag() {
    let mut risky = task("T-001", &[]);
    risky["risk_flags"] = json!(["security"]);
    let scenario = Scenario::team().intake().design().plan(&[risky, task("T-002", &["T-001"])]);
    let ran = scenario
        .codes()
        .codes()
        .passes(&["Reviewer", "QA", "Security", "Reviewer", "QA"])
        .released()
        .play();
    done(&ran);
    let order = agents(&ran);
    let security = order.iter().position(|agent| *agent == "Security").unwrap();
    // It belongs to the first task: the second Coder comes after it.
    assert_eq!(order[security + 1], "Coder", "{ran:?}");
    assert_eq!(order.iter().filter(|agent| **agent == "Security").count(), 1);
}

#[test]
fn security_is_required_where_authentication_input_or_the_network_is_touched() {
    // By the title, by the goal, by a file that was changed although nobody said so.
    for (title, goal, file) in [
        ("Check the password", "It is checked", "src/a.rs"),
        ("Part one", "Forms work", "src/a.rs"),
        ("Part one", "It is there", "src/http_client.rs"),
    ] {
        let mut first = task("T-001", &[]);
        (first["title"], first["goal"]) = (json!(title), json!(goal));
        let scenario = Scenario::team()
            .built_in_only()
            .intake()
            .design()
            .plan(&[first, task("T-002", &["T-001"])]);
        let scenario =
            scenario.says("Coder", ok()).writes(file, "// new\n").passes(&["Reviewer", "QA"]);
        let ran = scenario.says("Security", super::status("FAIL", "looked")).play();
        blocked(&ran, "looked");
        assert_eq!(ran.variables()["current"]["id"], "T-001", "{title}, {goal}, {file}: {ran:?}");
    }
}

#[test]
fn security_is_required_by_a_concern_of_anybody() {
    let concern = but(&json!({"gates": {"security_concerns": ["who may call this?"]}}));
    let scenario =
        Scenario::team().intake().design().plan(&[task("T-001", &[]), task("T-002", &["T-001"])]);
    let scenario = scenario
        .codes()
        .says("Reviewer", concern)
        .passes(&["QA"])
        .says("Security", super::status("FAIL", "looked"));
    let ran = scenario.play();
    blocked(&ran, "looked");
    assert_eq!(ran.variables()["current"]["id"], "T-001");
}

#[test]
fn a_task_is_taken_when_its_dependencies_are_done() {
    let plan = [task("T-001", &["T-002"]), task("T-002", &[])];
    let scenario = Scenario::team().intake().design().plan(&plan).codes().codes();
    let ran = scenario.passes(&["Reviewer", "QA", "Reviewer", "QA", "Security"]).released().play();
    done(&ran);
    assert_eq!(status_of(&ran)["completed_tasks"], json!(["T-002", "T-001"]));
    assert!(ran.prompt("IMPLEMENT#1", 1).contains("Part T-002 is there"));
    assert!(ran.prompt("IMPLEMENT#2", 1).contains("Part T-001 is there"));
}

#[test]
fn a_plan_that_goes_round_is_sent_back_to_the_planner() {
    let plan = [task("T-001", &["T-002"]), task("T-002", &["T-001"])];
    let scenario = Scenario::team().intake().design().plan(&plan).plan(&[task("T-001", &[])]);
    let ran = scenario.codes().passes(GATES).released().play();
    done(&ran);
    assert!(went(&ran, "PLAN_ORDER>PLAN"), "{ran:?}");
    let again = ran.prompt("PLAN#2", 1);
    assert!(again.contains("cannot be put in order") && again.contains("T-002"), "{again}");
}

#[test]
fn a_ui_adds_the_designer() {
    let scenario = Scenario::team().intake().design();
    let scenario = scenario.says("Designer", ok()).exec(&doc("design-specs/list.md", "# The list"));
    let scenario = scenario.plan(&[task("T-001", &[])]).codes().passes(GATES).released();
    let ran = scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "ui=true"]);
    done(&ran);
    assert_eq!(asked(&ran)[..4], ["INTAKE#1", "DESIGN#1", "DESIGN_UI#1", "PLAN#1"]);
    let spec = session(&ran, "design-specs/list.md");
    for follows in ["IMPLEMENT#1", "REVIEW#1", "QA#1"] {
        assert!(ran.prompt(follows, 1).contains(&spec), "{follows} does not get {spec}");
    }
}

#[test]
fn the_lean_path_skips_design_and_plan_and_never_the_reviewer() {
    let ran = Scenario::team().intake().codes().passes(&["Reviewer", "QA"]).released().run(LEAN);
    done(&ran);
    assert_eq!(
        asked(&ran),
        [
            "INTAKE#1",
            "IMPLEMENT#1",
            "REVIEW#1",
            "QA#1",
            "INTEGRATE#1",
            "RELEASE#1",
            "RELEASE_REPORT#1"
        ]
    );
    assert!(!ran.path(&session(&ran, "architecture.md")).exists());
    // The one task is written down for those who read tasks.yaml.
    holds("gated-team/tasks", &ran.read(&session(&ran, "tasks.yaml")));
    assert_eq!(status_of(&ran)["completed_tasks"], json!(["T-001"]));
}

const LEAN: &[&str] = &["--task", "Add parts", "--input", "slug=play", "--input", "path=lean"];

#[test]
fn more_than_three_files_close_the_lean_path() {
    for (files, target) in [(3, "INTAKE_ACCEPTANCE>PLANNED"), (4, "INTAKE_ACCEPTANCE>DESIGN")] {
        let names: Vec<String> = (0..files).map(|n| format!("src/part{n}.rs")).collect();
        let spec =
            doc("spec.md", "# Spec") + &doc("acceptance.json", &super::acceptance("cmd: true"));
        let said = but(&json!({"artifacts": {"files_to_create_or_update": names}}));
        let ran = Scenario::team().built_in_only().says("SpecAgent", said).exec(&spec).run(LEAN);
        assert!(went(&ran, target), "{files} files: {ran:?}");
    }
}

#[test]
fn an_architecture_ui_or_security_side_closes_the_lean_path() {
    let sides = [
        (but(&json!({"artifacts": {"touches": ["architecture"]}})), "Add parts", "ui=false"),
        (ok(), "Add parts", "ui=true"),
        (
            but(&json!({"gates": {"security_concerns": ["it opens a port"]}})),
            "Add parts",
            "ui=false",
        ),
        (ok(), "Check the password", "ui=false"),
    ];
    for (said, goal, ui) in sides {
        let spec =
            doc("spec.md", "# Spec") + &doc("acceptance.json", &super::acceptance("cmd: true"));
        let scenario = Scenario::team().built_in_only().says("SpecAgent", said).exec(&spec);
        let ran = scenario.run(&[
            "--task",
            goal,
            "--input",
            "slug=play",
            "--input",
            "path=lean",
            "--input",
            ui,
        ]);
        assert!(went(&ran, "INTAKE_ACCEPTANCE>DESIGN"), "{goal}, {ui}: {ran:?}");
    }
}

#[test]
fn work_that_grows_beyond_three_files_leaves_the_lean_path() {
    let scenario =
        Scenario::team().intake().says("Coder", ok()).exec("touch a.rs b.rs c.rs d.rs").design();
    let ran = scenario.says("Planner", super::status("FAIL", "no plan")).run(LEAN);
    blocked(&ran, "no plan");
    assert!(went(&ran, "IMPLEMENT>DESIGN"), "{ran:?}");
}

#[test]
fn what_an_agent_recommends_next_is_advice() {
    let mut early = ok();
    early["next"] = json!({"recommended_agent": "Docs", "recommended_task_id": "T-009", "reason": "Release it"});
    let scenario =
        Scenario::team().planned().says("Coder", early).writes("src/part.rs", "// part\n");
    let ran = scenario.passes(GATES).released().play();
    done(&ran);
    assert!(went(&ran, "IMPLEMENT>REVIEW"), "{ran:?}");
    assert!(folder(&ran).ends_with("_play"));
}
