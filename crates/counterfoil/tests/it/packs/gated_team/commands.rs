//! Commands that agents wrote: which of them run, with which environment, and who is asked.

use super::{Team, acceptance, blocked, but, done, status_of, task, waits, went};
use crate::packs::scenario::Scenario;
use serde_json::json;

const GATES: &[&str] = &["Reviewer", "QA", "Security"];

/// A whole session whose acceptance is decided by a line.
fn accepted_by(line: &str) -> Scenario {
    let scenario = Scenario::team().built_in_only().intake_with(&acceptance(line)).design();
    scenario.plan(&[task("T-001", &[])]).codes().passes(GATES).released()
}

#[test]
fn usual_commands_run_without_asking() {
    for line in [
        "cmd: true",
        "cmd: test -f src/lib.rs && grep -q one src/lib.rs",
        "cmd: sh tests/all.sh >/dev/null 2>&1",
        "cmd: cd src; ! test -f missing.rs",
        "cmd: ./tests/all.sh",
    ] {
        let scenario = accepted_by(line).file("tests/all.sh", "#!/bin/sh\nexit 0\n");
        let ran = scenario.git(&["add", "--chmod=+x", "tests/all.sh"]).commit().play();
        if line.contains("./tests") {
            // A file that may not be executed cannot run.
            blocked(&ran, "./tests/all.sh");
        } else {
            done(&ran);
        }
        assert_eq!(ran.variables()["approved"], json!([]), "{line}");
    }
}

#[test]
fn other_commands_are_shown_to_a_person_before_anything_runs() {
    for line in [
        "cmd: touch ../ran",
        "cmd: test -f src/lib.rs; touch ../ran",
        "cmd: test \"$(touch ../ran)\" = ''",
        "cmd: echo > ../ran",
        "cmd: sh -c 'touch ../ran'",
        "cmd: FOO=1 touch ../ran",
    ] {
        let ran = accepted_by(line).play();
        let question = waits(&ran);
        assert_eq!(question["choices"], json!(["yes", "no"]));
        assert!(question["question"].as_str().unwrap().contains(&line[5..]), "{question}");
        assert!(!ran.path("../ran").exists() && !went(&ran, "TASK>IMPLEMENT"), "{line}: {ran:?}");
        // It is a decision like any other, and the session says that it waits.
        let status = status_of(&ran);
        assert_eq!(status["user_decisions"][0]["state_context"], "ALLOW");
        assert_eq!(status["blocked_tasks"][0]["id"], "meta");
    }
}

#[test]
fn a_person_allows_or_refuses() {
    let ran = accepted_by("cmd: touch src/ran").play();
    let allowed = ran.answer_and_resume(ran.questions()[0], "yes");
    done(&allowed);
    assert!(allowed.path("src/ran").exists());
    assert_eq!(allowed.variables()["approved"], json!(["cmd: touch src/ran"]));
    let ran = accepted_by("cmd: touch src/ran").answer("ASK_USER", "no").play();
    blocked(&ran, "may not run: cmd: touch src/ran");
    assert!(!ran.path("src/ran").exists());
}

#[test]
fn a_pattern_allows_and_a_star_does_not_leave_the_command() {
    done(&accepted_by("cmd: touch src/ran").play_allowing("touch src/*"));
    for (line, pattern) in [
        ("cmd: touch src/ran; touch ../ran", "touch src/*"),
        ("cmd: touch src/ran", "touch src.ran"),
        ("cmd: touch src/ran", "touch"),
    ] {
        waits(&accepted_by(line).play_allowing(pattern));
    }
}

#[test]
fn the_command_of_a_check_of_the_project_is_allowed() {
    let scenario = accepted_by("cmd: wc -l < src/lib.rs")
        .file("counterfoil.toml", "[checks]\ntest = \"wc -l < src/lib.rs\"\n");
    done(&scenario.commit().play());
}

#[test]
fn commands_of_agents_do_not_get_the_environment() {
    // Only what is usual, and what a person named.
    let seen = "env | sed 's/=.*//' | sort > ../seen";
    let scenario = accepted_by(&format!("cmd: {seen}"));
    let arguments = ["--task", "Add parts", "--input", "slug=play", "--input", "allow=**"];
    let ran = scenario.run(&arguments);
    done(&ran);
    let known = ["PATH", "HOME", "LANG", "LANGUAGE", "TERM", "PWD", "OLDPWD", "SHLVL", "_"];
    let names = |ran: &crate::packs::run::ScenarioRun| -> Vec<String> {
        let text = std::fs::read_to_string(ran.path("../seen")).unwrap();
        let unusual = |name: &&str| !known.contains(name) && !name.starts_with("LC_");
        text.lines().filter(unusual).map(str::to_owned).collect()
    };
    assert_eq!(names(&ran), Vec::<String>::new());
    let ran = scenario.run(&[&arguments[..], &["--input", "environment=NO_COLOR"]].concat());
    done(&ran);
    assert_eq!(names(&ran), ["NO_COLOR"]);
}

#[test]
fn a_program_that_turns_up_later_is_asked_about() {
    // It cannot be found when the plan is made; the Coder brings it.
    let scenario = Scenario::team().built_in_only().intake_with(&acceptance("cmd: true")).design();
    let mut checked = task("T-001", &[]);
    checked["checks"] = json!(["cmd: our-own-tool"]);
    let coded = but(&json!({"artifacts": {"files_changed": ["src/part.rs"]}}));
    let scenario =
        scenario.plan(&[checked]).says("Coder", coded).exec("echo '// more' >> src/part.rs");
    let ran = scenario.passes(&["Reviewer", "QA"]).play();
    // It was never installed: it cannot run.
    blocked(&ran, "our-own-tool: not found");
    assert!(ran.questions().is_empty());
}
