//! The session's directory: its owner, its files, and that they satisfy their contracts after every
//! step.

use super::{
    SLUG, Team, acceptance, asked, blocked, doc, done, folder, held_back, holds, ok, session,
    status, status_of, task, times,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const GATES: &[&str] = &["Reviewer", "QA", "Security"];

/// Copies the session's directory to a place outside of the repository.
const KEEP: &str =
    "mkdir -p ../trace; n=$(ls ../trace | wc -l); cp -r .agents-work/*_play ../trace/$n; ";

/// What an agent says who also keeps the session as it found it.
fn watching(scenario: Scenario, agent: &str, said: Value, does: &str) -> Scenario {
    scenario.says(agent, said).exec(&format!("{KEEP}{does}"))
}

/// The sessions as they were kept, in order.
fn kept(ran: &ScenarioRun) -> Vec<std::path::PathBuf> {
    let trace = ran.path("../trace");
    (0..std::fs::read_dir(&trace).unwrap().count()).map(|n| trace.join(n.to_string())).collect()
}

#[test]
fn every_file_of_the_session_holds_to_its_contract_after_every_transition() {
    // Every agent and every check of the engine looks: what they find was written by the transition
    // before them.
    let look = format!("cmd: {{ {KEEP}}} >/dev/null; test -f src/lib.rs");
    let mut looked = task("T-001", &[]);
    looked["checks"] = json!([look]);
    let plan = json!({"tasks": [looked]}).to_string();
    let spec = doc("spec.md", "# Spec") + &doc("acceptance.json", &acceptance(&look));
    let scenario = watching(Scenario::team(), "SpecAgent", status("NEEDS_INFO", "For whom?"), "")
        .answer("ASK_USER", "For us.");
    let scenario = watching(scenario, "SpecAgent", ok(), &spec);
    let scenario = watching(scenario, "Architect", ok(), &doc("architecture.md", "# A"));
    let scenario = watching(scenario, "Planner", ok(), &doc("tasks.yaml", &plan));
    let scenario = watching(scenario, "Coder", ok(), "touch src/part.rs");
    let scenario = watching(scenario, "Reviewer", held_back("No."), "");
    let scenario = watching(scenario, "Coder", ok(), "echo >> src/part.rs");
    let scenario = watching(scenario, "Reviewer", ok(), "");
    let scenario = ["QA", "Security"].iter().fold(scenario, |scenario, gate| {
        let scenario = watching(scenario, gate, held_back("No."), "");
        let scenario = watching(scenario, "Coder", ok(), "echo >> src/part.rs");
        watching(scenario, gate, ok(), "")
    });
    let scenario = watching(scenario, "Integrator", ok(), "");
    let scenario = watching(scenario, "Docs", ok(), &doc("report.md", "# Report"));
    let ran = watching(scenario, "Integrator", ok(), "").play_allowing("**");
    done(&ran);
    for fix in ["REVIEW>FIX_REVIEW", "QA>FIX_TESTS", "SECURITY>FIX_SECURITY"] {
        assert_eq!(times(&ran, fix), 1, "{fix}: {ran:?}");
    }
    let (mut shown, mut updates) = (Vec::new(), Vec::new());
    for kept in kept(&ran) {
        let read = |file: &str| std::fs::read_to_string(kept.join(file));
        let text = read("status.json").unwrap();
        holds("gated-team/status", &text);
        let status: Value = serde_json::from_str(&text).unwrap();
        shown.push(status["current_state"].as_str().unwrap().to_owned());
        updates.push(status["last_update"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
        if let Ok(text) = read("acceptance.json") {
            holds("gated-team/acceptance", &text);
        }
        // It is written as JSON here, which is YAML too.
        if let Ok(text) = read("tasks.yaml") {
            holds("gated-team/tasks", &text);
        }
    }
    // A fix shows as the loop it belongs to.
    let phases = [
        ("INTAKE", 2),
        ("DESIGN", 1),
        ("PLAN", 1),
        ("IMPLEMENT_LOOP", 11),
        ("INTEGRATE", 2),
        ("RELEASE", 3),
    ];
    let wanted: Vec<String> =
        phases.iter().flat_map(|(phase, times)| vec![(*phase).to_owned(); *times]).collect();
    assert_eq!(shown, wanted);
    assert!(updates.is_sorted() && updates.first() < updates.last(), "{updates:?}");
}

#[test]
fn fix_build_shows_as_integrate() {
    let wanted = acceptance("cmd: test -f src/wanted.rs");
    let scenario = Scenario::team()
        .intake_with(&wanted)
        .design()
        .plan(&[task("T-001", &[])])
        .codes()
        .passes(GATES);
    let scenario = watching(scenario.passes(&["Integrator"]), "Integrator", ok(), "");
    let ran = scenario.says("Coder", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    let status: Value =
        serde_json::from_str(&std::fs::read_to_string(kept(&ran)[0].join("status.json")).unwrap())
            .unwrap();
    assert_eq!(status["current_state"], "INTEGRATE");
    assert_eq!(status["last_ci_result"], "red");
}

#[test]
fn the_folder_is_named_for_the_day_and_the_slug() {
    let named = Scenario::team()
        .says("SpecAgent", status("FAIL", "enough"))
        .run(&["--task", "Add: a Search, please!"]);
    blocked(&named, "enough");
    let name = folder(&named);
    let (date, slug) = name.strip_prefix(".agents-work/").unwrap().split_once('_').unwrap();
    assert_eq!(slug, "add-a-search-please");
    let began = named.events()[0]["at"].as_i64().unwrap();
    let began = jiff::Timestamp::from_millisecond(began).unwrap().to_string();
    assert_eq!(date, &began[..10], "the day on which it began");
    assert_eq!(status_of(&named)["session"], format!("{date}_{slug}"));
}

#[test]
fn a_second_session_of_the_day_gets_a_2() {
    let scenario = Scenario::team().says("SpecAgent", status("FAIL", "enough"));
    let first = scenario.play();
    let second =
        scenario.run_after(&first, &["--task", "Add parts", "--input", &format!("slug={SLUG}")]);
    blocked(&second, "enough");
    assert_eq!(folder(&second), format!("{}-2", folder(&first)));
    assert_eq!(
        status_of(&second)["session"],
        format!("{}-2", status_of(&first)["session"].as_str().unwrap())
    );
}

/// A session of long ago.
const EARLIER: &str = ".agents-work/2025-01-01_before/spec.md";

#[test]
fn an_agent_that_writes_into_an_earlier_session_is_refused() {
    let scenario = Scenario::team().file(EARLIER, "as it was\n").commit().planned();
    let scenario = scenario
        .says("Coder", ok())
        .writes(EARLIER, "rewritten\n")
        .codes()
        .passes(GATES)
        .released();
    let ran = scenario.play();
    done(&ran);
    assert_eq!(ran.read(EARLIER), "as it was\n");
    assert_eq!(ran.attempt("IMPLEMENT#1")["repairs_asked"], 1, "{ran:?}");
    assert!(ran.prompt("IMPLEMENT#1", 2).contains(EARLIER), "{}", ran.prompt("IMPLEMENT#1", 2));
}

#[test]
fn an_agent_that_keeps_writing_into_an_earlier_session_is_blocked() {
    let scenario = Scenario::team().file(EARLIER, "as it was\n").commit().intake();
    let scenario = (0..3).fold(scenario, |scenario, n| {
        scenario.says("Architect", ok()).writes(EARLIER, &format!("{n}\n"))
    });
    let ran = scenario.play();
    blocked(&ran, EARLIER);
    assert_eq!(ran.read(EARLIER), "as it was\n");
}

#[test]
fn an_earlier_session_is_protected_where_git_ignores_it() {
    let base = || {
        let scenario = Scenario::team().file(".gitignore", ".agents-work/\n").commit();
        scenario
            .file(EARLIER, "as it was\n")
            .file(".agents-work/2025-01-01_before/tasks.yaml", "t\n")
    };
    // Edited, removed, and added to.
    let spoils = format!(
        "echo mine > {EARLIER}; cd .agents-work/2025-01-01_before; rm -f tasks.yaml; echo > new.md"
    );
    let ran =
        base().planned().says("Coder", ok()).exec(&spoils).codes().passes(GATES).released().play();
    done(&ran);
    assert_eq!(ran.attempt("IMPLEMENT#1")["repairs_asked"], 1, "{ran:?}");
    assert_eq!(ran.read(EARLIER), "as it was\n");
    assert_eq!(ran.read(".agents-work/2025-01-01_before/tasks.yaml"), "t\n");
    assert!(!ran.path(".agents-work/2025-01-01_before/new.md").exists());
    let asked = ran.prompt("IMPLEMENT#1", 2);
    assert!(
        asked.contains(EARLIER) && asked.contains("new.md") && asked.contains("tasks.yaml"),
        "{asked}"
    );
    // An agent that keeps doing so is blocked.
    let keeps =
        (0..3).fold(base().planned(), |scenario, _| scenario.says("Coder", ok()).exec(&spoils));
    let ran = keeps.passes(GATES).released().play();
    blocked(&ran, EARLIER);
    assert_eq!(ran.read(EARLIER), "as it was\n");
}

#[test]
fn status_json_is_written_by_the_engine_alone() {
    // The Coder declares everything done: the next agent finds what the engine knows.
    let forged = r#"f=$(echo .agents-work/*_play)/status.json; sed -i 's/"completed_tasks": .*/"completed_tasks": ["T-001"],/' $f"#;
    let scenario = Scenario::team().planned().says("Coder", ok()).exec(forged);
    let scenario = scenario.writes("src/part.rs", "// part\n");
    let ran = watching(scenario, "Reviewer", status("FAIL", "enough"), "").play();
    blocked(&ran, "enough");
    let text = std::fs::read_to_string(kept(&ran)[0].join("status.json")).unwrap();
    holds("gated-team/status", &text);
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["completed_tasks"], json!([]));
    assert_eq!(status_of(&ran)["completed_tasks"], json!([]));
}

#[test]
fn what_others_make_of_status_json_is_put_right_at_the_next_transition() {
    // A check of the project writes over it; the next agent finds it as it should be.
    let mut clumsy = task("T-001", &[]);
    clumsy["checks"] = json!(["cmd: echo '{}' > $(echo .agents-work/*_play)/status.json"]);
    let scenario =
        Scenario::team().intake().design().plan(&[clumsy]).codes().passes(&["Reviewer", "QA"]);
    let ran = watching(scenario, "Security", status("FAIL", "enough"), "").play_allowing("**");
    blocked(&ran, "enough");
    let text = std::fs::read_to_string(kept(&ran)[0].join("status.json")).unwrap();
    holds("gated-team/status", &text);
}

#[test]
fn a_status_that_cannot_be_written_blocks() {
    // A check puts a folder in its place: the next transition cannot be written down.
    let mut hostile = task("T-001", &[]);
    hostile["checks"] =
        json!(["cmd: f=$(echo .agents-work/*_play)/status.json; rm -f $f; mkdir -p $f/full"]);
    let scenario =
        Scenario::team().intake().design().plan(&[hostile]).codes().passes(GATES).released();
    let ran = scenario.play_allowing("**");
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("status.json"), "{ran:?}");
    assert!(!asked(&ran).contains(&"SECURITY#1".to_owned()), "{ran:?}");
    // Nothing half-written is left behind.
    let left = std::fs::read_dir(ran.path(&folder(&ran)))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.starts_with(".counterfoil-")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn those_who_only_read_change_nothing() {
    let scenario = Scenario::team().planned().codes();
    let writes = |scenario: Scenario, reader: &str| {
        let scenario = scenario.says(reader, ok()).writes("src/lib.rs", "// mine\n");
        scenario.passes(&[reader])
    };
    let scenario = writes(writes(scenario, "Reviewer").passes(&["QA"]), "Security").released();
    let ran = scenario.play();
    done(&ran);
    assert!(ran.read("src/lib.rs").contains("pub fn one"));
    for attempt in ["REVIEW#1", "SECURITY#1"] {
        assert_eq!(ran.attempt(attempt)["repairs_asked"], 1, "{attempt}: {ran:?}");
    }
}

#[test]
fn those_who_write_documents_write_no_code() {
    let scenario = Scenario::team()
        .intake()
        .says("Architect", ok())
        .writes("src/lib.rs", "// mine\n")
        .design();
    let ran = scenario.says("Planner", status("FAIL", "enough")).play();
    blocked(&ran, "enough");
    assert!(ran.read("src/lib.rs").contains("pub fn one"));
    assert_eq!(ran.attempt("DESIGN#1")["repairs_asked"], 1);
}

#[test]
fn assumptions_are_what_the_first_agents_noted() {
    let noted = super::but(&json!({"artifacts": {"notes": ["names are ASCII"]}}));
    let spec = doc("spec.md", "# Spec") + &doc("acceptance.json", &acceptance("cmd: true"));
    let ran = Scenario::team()
        .says("SpecAgent", noted)
        .exec(&spec)
        .says("Architect", status("FAIL", "enough"))
        .play();
    assert_eq!(status_of(&ran)["assumptions"], json!(["names are ASCII"]));
}

#[test]
fn a_run_that_is_killed_goes_on_in_its_session_with_its_counts() {
    let scenario =
        Scenario::team().built_in_only().planned().codes().says("Reviewer", held_back("No."));
    let scenario = scenario
        .codes()
        .says("Reviewer", ok())
        .exec("test -f ../reached || { touch ../reached; sleep 60; }")
        .passes(&["Reviewer", "QA", "Security"]);
    let scenario = scenario.released();
    let mut live = scenario.start(&["--task", "Add parts", "--input", &format!("slug={SLUG}")]);
    live.wait_for_file("../reached");
    let ran = ScenarioRun::show(live.kill()).resume(&[]);
    done(&ran);
    assert_eq!(times(&ran, "REVIEW>FIX_REVIEW"), 1);
    assert_eq!(status_of(&ran)["retry_counts"]["T-001"]["FIX_REVIEW"], 1);
    assert!(folder(&ran).ends_with("_play"), "no second folder: {}", folder(&ran));
    assert!(ran.path(&session(&ran, "report.md")).exists());
}
