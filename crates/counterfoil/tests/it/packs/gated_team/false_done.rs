//! Ways to a false done. In each row one agent is wrong, lies, is cut off, quotes, retracts, is lazy
//! or speaks of something else, as often as it is asked; all others do and say what is needed to end
//! as done. None may.

use super::{Team, asked, but, doc, done, folder, held_back, ok, status_of, task, went};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// How often each agent has a reply: enough for all repairs and all fixes.
const TIMES: usize = 9;

const AGENTS: [&str; 9] = [
    "SpecAgent",
    "Architect",
    "Planner",
    "Coder",
    "Reviewer",
    "QA",
    "Security",
    "Integrator",
    "Docs",
];

/// One more reply of an agent that does its part.
fn honest(scenario: Scenario, agent: &str, tasks: &[Value]) -> Scenario {
    match agent {
        "SpecAgent" => scenario.intake(),
        "Architect" => scenario.design(),
        "Planner" => scenario.plan(tasks),
        "Coder" => scenario.codes(),
        "Docs" => scenario.documented(),
        gate => scenario.passes(&[gate]),
    }
}

/// A scenario in which all agents but one are honest, and that one replies as given, again and
/// again.
pub(super) fn all_but(liar: &str, base: Scenario, lie: impl Fn(Scenario) -> Scenario) -> Scenario {
    let mut scenario = base.built_in_only();
    for agent in AGENTS {
        for _ in 0..TIMES {
            scenario = if agent == liar {
                lie(scenario)
            } else {
                honest(scenario, agent, &[task("T-001", &[])])
            };
        }
    }
    scenario
}

/// The run of it. It must not be done, and the liar must have been asked.
pub(super) fn refused(liar: &str, lie: impl Fn(Scenario) -> Scenario) -> ScenarioRun {
    let ran = all_but(liar, Scenario::team(), lie).play();
    never_done(&ran);
    ran
}

#[track_caller]
pub(super) fn never_done(ran: &ScenarioRun) {
    let (outcome, _, code) = ran.ended();
    assert!(outcome != "done" && code != 0, "{ran:?}");
    assert_ne!(status_of(ran)["current_state"], "DONE", "{ran:?}");
}

#[test]
fn without_a_lie_it_is_done() {
    done(&all_but("nobody", Scenario::team(), |scenario| scenario).play());
}

/// Results with the status OK of gates that must not pass: what is wrong, whose it is, and the
/// result.
fn not_ok() -> Vec<(&'static str, &'static str, Value)> {
    let findings = |list: Value| but(&json!({"artifacts": {"findings": list}}));
    let comments = |list: Value| but(&json!({"artifacts": {"review_comments": list}}));
    let concerns = |list: Value| but(&json!({"gates": {"security_concerns": list}}));
    vec![
        ("a finding that begins with HIGH", "Security", findings(json!(["HIGH: path traversal"]))),
        (
            "a severity in brackets",
            "Security",
            findings(json!(["1. [Critical] the key is logged"])),
        ),
        (
            "a severity in a line of a text",
            "Security",
            findings(json!(["Read it.\n- **High**: no login"])),
        ),
        (
            "HIGH, and a missing thing",
            "Security",
            findings(json!(["HIGH: no authentication on /admin"])),
        ),
        (
            "a comment with a severity",
            "Reviewer",
            comments(json!([{"severity": "High", "file": "src/part.rs"}])),
        ),
        (
            "a comment that begins with it",
            "Reviewer",
            comments(json!(["ok", "CRITICAL - data is lost"])),
        ),
        (
            "a comment in an object",
            "Reviewer",
            comments(json!([{"file": "a", "comment": "[HIGH] it leaks"}])),
        ),
        ("a concern of QA", "QA", concerns(json!([{"severity": "critical", "what": "a shell"}]))),
        (
            "a concern of the Integrator",
            "Integrator",
            concerns(json!(["Severity: high, keys in the log"])),
        ),
        (
            "a list of its own",
            "Security",
            but(&json!({"artifacts": {"vulnerabilities": [{"severity": "HIGH"}]}})),
        ),
        (
            "a count of findings",
            "Security",
            findings(json!([{"critical": 0, "high": 2, "low": 7}])),
        ),
        ("a CVSS score", "Security", findings(json!([{"cvss": 9.8, "file": "src/part.rs"}]))),
        (
            "a summary that says it",
            "Reviewer",
            but(&json!({"summary": "HIGH: it leaks, but fine by me."})),
        ),
        (
            "the definition of done is not met",
            "Reviewer",
            but(&json!({"gates": {"meets_definition_of_done": false}})),
        ),
        ("somebody has to look again", "Reviewer", but(&json!({"gates": {"needs_review": true}}))),
        ("tests are missing", "QA", but(&json!({"gates": {"needs_tests": true}}))),
        ("a concern of Security", "Security", concerns(json!(["words are not escaped"]))),
        (
            "tests that failed",
            "QA",
            but(&json!({"artifacts": {"test_results": {"passed": 9, "failed": 2}}})),
        ),
        (
            "tests that failed, in words",
            "QA",
            but(&json!({"artifacts": {"test_results": "9 passed, 2 failed"}})),
        ),
        ("tests that were not run", "QA", but(&json!({"artifacts": {"test_results": "not run"}}))),
        (
            "no tests at all",
            "QA",
            but(&json!({"artifacts": {"test_results": {"total": 0, "passed": 0}}})),
        ),
        (
            "a red build",
            "Integrator",
            but(&json!({"artifacts": {"test_results": {"build": {"exit_code": 2}}}})),
        ),
    ]
}

/// Results that do not speak of what was asked.
fn of_something_else() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("another task", "Reviewer", but(&json!({"summary": "T-002 is fine."}))),
        ("another task by its id", "QA", but(&json!({"artifacts": {"task_id": "T-007"}}))),
        (
            "another session",
            "Security",
            but(&json!({"artifacts": {"session": "2025-01-01_before"}})),
        ),
        (
            "a file of another session",
            "Coder",
            but(
                &json!({"artifacts": {"files_changed": [".agents-work/2025-01-01_before/spec.md"]}}),
            ),
        ),
    ]
}

/// How many fixes a task has.
pub(super) const FIXES: usize = 3;

/// All rows in one run: in each of its tasks, each gate says three of its rows, and then passes.
/// None of the rows passes, and the next round does.
#[test]
fn ok_with_something_that_contradicts_it() {
    let rows = not_ok();
    let of =
        |gate: &str| -> Vec<_> { rows.iter().filter(|(_, whose, _)| *whose == gate).collect() };
    let of_tasks = [
        ("Reviewer", "REVIEW>FIX_REVIEW", "REVIEW>QA"),
        ("QA", "QA>FIX_TESTS", "QA>QA_CHECKS"),
        ("Security", "SECURITY>FIX_SECURITY", "SECURITY>TASK_DONE"),
    ];
    let tasks = of_tasks.iter().map(|(gate, ..)| of(gate).len().div_ceil(FIXES)).max().unwrap();
    let planned: Vec<Value> = (1..=tasks)
        .map(|number| {
            let mut planned = task(&format!("T-00{number}"), &[]);
            planned["risk_flags"] = json!(["security"]);
            planned
        })
        .collect();
    let mut scenario = Scenario::team().built_in_only().intake().design().plan(&planned);
    // Each row takes a fix.
    for _ in 0..tasks + rows.len() {
        scenario = scenario.codes();
    }
    let mut expected = Vec::new();
    for (gate, fix, pass) in of_tasks {
        let rows = of(gate);
        let mut chunks = rows.chunks(FIXES);
        for _ in 0..tasks {
            for (way, _, said) in chunks.next().unwrap_or_default() {
                scenario = scenario.says(gate, said.clone());
                expected.push((*way, fix));
            }
            scenario = scenario.passes(&[gate]);
            expected.push(("nothing", pass));
        }
    }
    for (way, gate, said) in of("Integrator") {
        scenario = scenario.says(gate, said.clone()).passes(&["Integrator"]);
        expected.push((way, "INTEGRATE>FIX_BUILD"));
    }
    expected.push(("nothing", "INTEGRATE>INTEGRATE_CHECKS"));
    // What was fixed at the integration is reviewed.
    scenario = scenario.passes(&["Reviewer"]).released();
    let ran = scenario.play();
    let steps = super::way(&ran);
    let states = ["REVIEW>", "QA>", "SECURITY>", "INTEGRATE>"];
    let taken = states.iter().flat_map(|state| {
        steps
            .iter()
            .filter(move |step| step.starts_with(state) && *step != "REVIEW>SECURITY_NEEDED")
    });
    let taken: Vec<&str> = taken.map(String::as_str).collect();
    let rounds: Vec<_> = expected.iter().map(|(way, _)| *way).zip(taken.iter().copied()).collect();
    assert_eq!(rounds, expected, "{ran:?}");
    assert_eq!(taken.len(), expected.len(), "{ran:?}");
    done(&ran);
}

#[test]
fn what_speaks_of_something_else_is_asked_for_again() {
    let rows = of_something_else();
    let mut scenario = Scenario::team().built_in_only().planned();
    for agent in AGENTS.iter().skip(3) {
        for (_, _, said) in rows.iter().filter(|(_, whose, _)| whose == agent) {
            scenario = scenario.says(agent, said.clone());
        }
        scenario = match *agent {
            "Integrator" => scenario.passes(&["Integrator", "Integrator"]),
            agent => honest(scenario, agent, &[]),
        };
    }
    let ran = scenario.play();
    done(&ran);
    let states = [
        ("Coder", "IMPLEMENT#1"),
        ("Reviewer", "REVIEW#1"),
        ("QA", "QA#1"),
        ("Security", "SECURITY#1"),
    ];
    for (agent, attempt) in states {
        let lies = rows.iter().filter(|(_, whose, _)| *whose == agent).count();
        assert_eq!(ran.attempt(attempt)["repairs_asked"], lies, "{attempt}: {ran:?}");
    }
}

#[test]
fn remarks_that_are_not_severe_pass_and_are_kept() {
    let remarks = [
        json!("no HIGH issues"),
        json!("High-level names would read better"),
        json!("HIGH: none"),
        json!("0 high, 0 critical"),
        json!({"severity": "low", "confidence": "high", "comment": "a nicer name?"}),
    ];
    let said = but(&json!({"artifacts": {"review_comments": remarks}}));
    let ran =
        all_but("Reviewer", Scenario::team(), |scenario| scenario.says("Reviewer", said.clone()))
            .play();
    done(&ran);
    assert!(!went(&ran, "REVIEW>FIX_REVIEW"), "{ran:?}");
    let report = ran.read(&super::session(&ran, "report.md"));
    assert!(report.contains("a nicer name?"), "{report}");
    for later in ["QA#1", "SECURITY#1", "INTEGRATE#1", "RELEASE#1"] {
        assert!(ran.prompt(later, 1).contains("a nicer name?"), "{later}");
    }
}

/// Texts of a reviewer that are no approval.
fn not_an_answer() -> Vec<(&'static str, String)> {
    let (yes, no) = (ok().to_string(), held_back("It leaks.").to_string());
    let contract =
        counterfoil_packs::registry_for("gated-team/output").get("gated-team/output").unwrap();
    let shown = contract.definition().examples[0].to_string();
    vec![
        ("an approval that is retracted", format!("{yes}\nNo, wait:\n{no}")),
        (
            "an approval that is quoted",
            format!("The Coder would like me to say {yes}, but it leaks."),
        ),
        ("an approval before one that is cut off", format!("{yes}\n{}", &no[..no.len() / 2])),
        ("an approval that is cut off", yes[..yes.len() - 20].to_owned()),
        ("an approval in words", "Looks good to me, approved!".to_owned()),
        ("the example of the prompt", shown),
        ("an approval while thinking", format!("<think>{yes}</think>")),
        ("nothing", String::new()),
    ]
}

#[test]
fn what_is_not_an_answer_is_no_approval() {
    for (way, text) in not_an_answer() {
        let ran = all_but("Reviewer", Scenario::team(), |scenario| scenario.raw("Reviewer", &text))
            .play();
        let (outcome, _, code) = ran.ended();
        assert!(outcome != "done" && code != 0, "{way}: {ran:?}");
        assert!(!went(&ran, "REVIEW>QA"), "{way}: {ran:?}");
    }
}

#[test]
fn a_critical_finding_that_later_rounds_forget_is_not_accepted() {
    let critical = but(&json!({
        "status": "BLOCKED", "gates": {"meets_definition_of_done": false},
        "artifacts": {"findings": ["CRITICAL: anybody can delete notes"]}
    }));
    for (gate, step) in [
        ("Reviewer", "REVIEW>FIX_REVIEW"),
        ("QA", "QA>FIX_TESTS"),
        ("Security", "SECURITY>FIX_SECURITY"),
    ] {
        let said = std::cell::Cell::new(true);
        let scenario = all_but(gate, Scenario::team(), |scenario| {
            if said.replace(false) {
                scenario.says(gate, critical.clone())
            } else {
                scenario.says(gate, held_back("Not yet."))
            }
        });
        let ran = scenario.answer("ASK_USER", "accept with known issues").play();
        never_done(&ran);
        assert!(went(&ran, step), "{gate}: {ran:?}");
        let choices = ran.report["questions"][0]["choices"].clone();
        assert_eq!(choices, json!(["another approach", "simplify", "guidance"]), "{gate}");
    }
}

#[test]
fn a_gate_that_never_passes_ends_with_a_person() {
    for (gate, said) in [
        ("Reviewer", held_back("No.")),
        ("QA", super::status("FAIL", "It does not work.")),
        ("Security", held_back("No.")),
        ("Integrator", held_back("No.")),
    ] {
        let ran = refused(gate, |scenario| scenario.says(gate, said.clone()));
        super::waits(&ran);
    }
}

#[test]
fn a_design_spec_that_is_not_there_blocks() {
    let designed = |designer: &dyn Fn(Scenario) -> Scenario, planned: Value| {
        let mut scenario = all_but("Planner", Scenario::team(), |scenario| {
            scenario.plan(std::slice::from_ref(&planned))
        });
        for _ in 0..3 {
            scenario = designer(scenario);
        }
        scenario.run(&["--task", "Add parts", "--input", "slug=play", "--input", "ui=true"])
    };
    // No page, an empty page, and a page that the plan names and nobody wrote.
    let nothing = |scenario: Scenario| scenario.says("Designer", ok());
    let empty = |scenario: Scenario| {
        scenario
            .says("Designer", ok())
            .exec("d=$(echo .agents-work/*_play)/design-specs; mkdir -p $d; : > $d/list.md")
    };
    let written = |scenario: Scenario| {
        scenario.says("Designer", ok()).exec(&doc("design-specs/list.md", "# List"))
    };
    let mut named = task("T-001", &[]);
    named["goal"] = json!("As design-specs/detail.md says");
    for (designer, planned, missing) in [
        (&nothing as &dyn Fn(Scenario) -> Scenario, task("T-001", &[]), "design-specs"),
        (&empty, task("T-001", &[]), "design-specs"),
        (&written, named, "design-specs/detail.md"),
    ] {
        let ran = designed(designer, planned);
        never_done(&ran);
        super::blocked(
            &ran,
            &format!("missing: {}", if missing.contains(".md") { "" } else { "a file in " }),
        );
        assert!(ran.reason().contains(missing), "{ran:?}");
        assert!(!asked(&ran).contains(&"IMPLEMENT#1".to_owned()), "{ran:?}");
    }
    let ran = designed(&written, task("T-001", &[]));
    done(&ran);
    // A page that the Designer says to have written.
    let pages = ["list.md", "other.md"].map(|page| format!("{}/design-specs/{page}", folder(&ran)));
    let said = but(&json!({"artifacts": {"files_changed": pages}}));
    let claimed = |scenario: Scenario| {
        scenario.says("Designer", said.clone()).exec(&doc("design-specs/list.md", "# List"))
    };
    let ran = designed(&claimed, task("T-001", &[]));
    super::blocked(&ran, &format!("missing: {}", pages[1]));
}

#[test]
fn a_release_that_breaks_the_work_is_not_done() {
    let breaks = |scenario: Scenario| scenario.says("Integrator", ok()).exec("rm -f src/lib.rs");
    let ran = refused("Integrator", breaks);
    assert!(went(&ran, "INTEGRATE_RESULT>FIX_BUILD"), "{ran:?}");
}

#[test]
fn documents_that_are_missing_or_empty_are_no_release() {
    for left_out in ["report.md", "README.md"] {
        let ran = refused("Docs", |scenario| match left_out {
            "README.md" => {
                scenario.says("Docs", ok()).exec(&(doc("report.md", "# R") + ": > README.md"))
            }
            _ => scenario.says("Docs", ok()),
        });
        super::blocked(&ran, left_out);
    }
}

#[test]
fn an_agent_that_fails_is_no_approval() {
    for kind in ["permission", "agent"] {
        let ran = refused("Security", |scenario| scenario.reply("Security").fails(kind));
        assert_eq!(status_of(&ran)["current_state"], "BLOCKED");
        assert_eq!(status_of(&ran)["last_failed_step"], "SECURITY");
    }
}
