//! Ways to a false done by changes after the review has passed. They are reviewed, or it is not done.

use super::false_done::FIXES;
use super::{Team, acceptance, done, held_back, ok, status_of, task, went};
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// Files that are changed after the review has passed, by whom, and the step to the next review.
fn changed_later() -> Vec<(&'static str, Scenario, &'static str)> {
    let edit = "echo '// nobody asked for this' >> src/part.rs";
    let team = || Scenario::team().built_in_only();
    let reviewed = || team().planned().codes().passes(&["Reviewer"]);
    let gated = || reviewed().passes(&["QA", "Security"]);
    let wanted = acceptance("cmd: test -f src/wanted.rs");
    let red = || {
        let scenario = team().intake_with(&wanted).design().plan(&[task("T-001", &[])]).codes();
        scenario.passes(&["Reviewer", "QA", "Security", "Integrator"])
    };
    vec![
        ("QA that passes", reviewed().says("QA", ok()).exec(edit), "QA>REVIEW"),
        (
            "QA before it passes",
            reviewed().says("QA", held_back("No.")).exec(edit).codes().passes(&["QA"]),
            "QA>REVIEW",
        ),
        (
            "QA that asks",
            reviewed()
                .says("QA", super::status("NEEDS_INFO", "Which one?"))
                .exec(edit)
                .answer("ASK_USER", "This one.")
                .passes(&["QA"]),
            "QA>REVIEW",
        ),
        (
            "QA that adds a file",
            reviewed().says("QA", ok()).writes("tests/more.sh", "exit 0\n"),
            "QA>REVIEW",
        ),
        (
            "QA whose gate a person waives",
            (0..FIXES)
                .fold(reviewed(), |scenario, _| {
                    scenario.says("QA", held_back("No.")).exec(edit).codes()
                })
                .says("QA", held_back("No."))
                .answer("ASK_USER", "accept with known issues"),
            "ANSWERED>REVIEW",
        ),
        (
            "the Integrator that puts it together",
            gated().says("Integrator", ok()).exec(edit),
            "INTEGRATE_RESULT>REVIEW",
        ),
        (
            "the Integrator that fixes the build",
            red().says("Integrator", ok()).writes("src/wanted.rs", "// x\n").says("Coder", ok()),
            "INTEGRATE_RESULT>REVIEW",
        ),
        (
            "the Coder that fixes the build",
            red().passes(&["Integrator"]).says("Coder", ok()).writes("src/wanted.rs", "// x\n"),
            "INTEGRATE_RESULT>REVIEW",
        ),
        (
            "the Integrator that closes the session",
            gated().passes(&["Integrator"]).documented().says("Integrator", ok()).exec(edit),
            "RELEASE_RESULT>REVIEW",
        ),
        (
            "the Integrator that calls a script README.sh",
            gated()
                .passes(&["Integrator"])
                .documented()
                .says("Integrator", ok())
                .writes("README.sh", "exit 0\n"),
            "RELEASE_RESULT>REVIEW",
        ),
        (
            "the Integrator that calls a module CHANGELOG.md.rs",
            gated()
                .passes(&["Integrator"])
                .documented()
                .says("Integrator", ok())
                .writes("src/CHANGELOG.md.rs", "// x\n"),
            "RELEASE_RESULT>REVIEW",
        ),
        (
            "Docs that calls a script README.sh",
            gated()
                .passes(&["Integrator"])
                .documented()
                .writes("README.sh", "exit 0\n")
                .passes(&["Integrator"]),
            "RELEASE_RESULT>REVIEW",
        ),
        (
            "Docs that rewrites code in docs",
            team()
                .file("docs/conf.py", "x = 1\n")
                .commit()
                .planned()
                .codes()
                .passes(&["Reviewer", "QA", "Security", "Integrator"])
                .documented()
                .writes("docs/conf.py", "import os\n")
                .passes(&["Integrator"]),
            "RELEASE_RESULT>REVIEW",
        ),
        (
            "Docs that writes code, and asks",
            gated()
                .passes(&["Integrator"])
                .says("Docs", super::status("NEEDS_INFO", "For whom?"))
                .writes("docs/conf.py", "import os\n")
                .answer("ASK_USER", "For all.")
                .documented()
                .passes(&["Integrator"]),
            "RELEASE_RESULT>REVIEW",
        ),
        (
            "the Integrator that asks before it closes the session",
            gated()
                .passes(&["Integrator"])
                .documented()
                .says("Integrator", super::status("NEEDS_INFO", "For whom?"))
                .exec(edit)
                .answer("ASK_USER", "For all.")
                .passes(&["Integrator"]),
            "RELEASE_RESULT>REVIEW",
        ),
    ]
}

#[test]
fn what_is_changed_after_the_review_is_reviewed() {
    for (way, scenario, step) in changed_later() {
        let scenario = scenario.says("Reviewer", held_back("Nobody asked for this."));
        let ran = scenario.says("Coder", super::status("FAIL", "enough")).play();
        super::blocked(&ran, "enough");
        assert!(went(&ran, step) && went(&ran, "REVIEW>FIX_REVIEW"), "{way}: {ran:?}");
        let sent = ran.prompt("REVIEW#2", 1);
        assert!(sent.contains("Since the last review that passed"), "{way}: {sent}");
        let file = match way {
            "QA that adds a file" => "tests/more.sh",
            way if way.ends_with("fixes the build") => "src/wanted.rs",
            way if way.ends_with("README.sh") => "README.sh",
            way if way.ends_with("CHANGELOG.md.rs") => "src/CHANGELOG.md.rs",
            "Docs that writes code, and asks" | "Docs that rewrites code in docs" => "docs/conf.py",
            _ => "src/part.rs",
        };
        let touched =
            sent.lines().find(|line| line.starts_with("- Changed for this task")).unwrap();
        assert!(touched.contains(file), "{way}: {touched}");
    }
}

#[test]
fn documents_that_are_written_last_are_not_reviewed() {
    let scenario = Scenario::team().planned().codes();
    let scenario = scenario.passes(&["Reviewer", "QA", "Security", "Integrator"]).documented();
    let scenario = scenario.writes("docs/parts.md", "# Parts\n").says("Integrator", ok());
    let names = ["README", "README.rst", "README-de.txt", "CHANGELOG.adoc", "parts/README.fr.md"];
    let scenario = names.iter().fold(scenario, |scenario, name| scenario.writes(name, "Parts\n"));
    let ran = scenario.play();
    done(&ran);
    assert!(!went(&ran, "RELEASE_RESULT>REVIEW"), "{ran:?}");
}

#[test]
fn what_was_changed_later_and_passes_its_review_is_done() {
    // QA adds a test, and the Integrator a file at each of its turns.
    let scenario = Scenario::team().planned().codes().passes(&["Reviewer"]);
    let scenario = scenario.says("QA", ok()).writes("tests/more.sh", "exit 0\n");
    let scenario = scenario.passes(&["Reviewer", "Security"]);
    let scenario = scenario.says("Integrator", ok()).writes("build.cfg", "all\n");
    let keeps = "mkdir -p ../kept; cp .agents-work/*_play/status.json ../kept/";
    let scenario = scenario.says("Reviewer", ok()).exec(keeps).documented();
    let scenario = scenario.says("Integrator", ok()).writes("release.cfg", "all\n");
    let ran = scenario.passes(&["Reviewer"]).play();
    done(&ran);
    let passed: Vec<String> =
        super::way(&ran).into_iter().filter(|step| step.starts_with("REVIEW>")).collect();
    let expected =
        ["REVIEW>QA", "REVIEW>QA_CHECKS", "REVIEW>SECURITY_NEEDED", "REVIEW>SECURITY_NEEDED"];
    assert_eq!(passed, expected, "{ran:?}");
    assert_eq!(status_of(&ran)["completed_tasks"], json!(["T-001"]));
    let kept = std::fs::read_to_string(ran.path("../kept/status.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["current_state"], "INTEGRATE", "the review of the whole work");
    assert!(!ran.prompt("REVIEW#1", 1).contains("Since the last review that passed"));
}
