//! Older results and runs stay readable when a contract grows.

use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};
use std::path::Path;

const ISSUE: [&str; 4] = ["--task", "It returns two", "--input", "issue=17"];

/// A fix as version 1 of its contract asks for it: without anything that came later.
fn fix() -> Value {
    json!({
        "success": true, "issue_number": 17, "issue_title": "It returns two",
        "files_changed": [{"file_path": "src/lib.rs", "change_type": "modified", "lines_added": 1, "lines_removed": 1}]
    })
}

fn change(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    std::fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn a_run_checkpointed_under_an_older_contract_version_resumes() {
    let meet = tempfile::tempdir().unwrap();
    let at = meet.path().display().to_string();
    let scenario = Scenario::new("review-fix/issue");
    let scenario = (0..2).fold(scenario, |scenario, _| {
        scenario
            .says("issue-fixer", fix())
            .exec(&format!("[ -e {at}/began ] || {{ touch {at}/began; sleep 600; }}"))
            .writes("src/lib.rs", "pub fn one() -> u32 {\n    3\n}\n")
    });
    // It begins when version 1 was the newest,
    let older = |pack: &Path| {
        change(&pack.join("issue.yaml"), "review-fix/fix-result,", "review-fix/fix-result@1,");
    };
    let mut live = scenario.start_changed(older, &ISSUE);
    live.wait_until("the fixer is at work", |_| meet.path().join("began").exists());
    let project = live.kill();
    // and when it goes on, version 2 is.
    change(
        &project.pack_dir().join("issue.yaml"),
        "review-fix/fix-result@1,",
        "review-fix/fix-result,",
    );
    let ran = ScenarioRun::show(project).resume(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let last = ran.report["attempts"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["contract"], &last["outcome"]),
        (&json!("review-fix/fix-result@1"), &json!("accepted"))
    );
    // A run that begins now is held to what is the newest now.
    let newer = scenario.run(&ISSUE);
    assert_eq!(newer.report["attempts"][0]["contract"], "review-fix/fix-result@3");
}

#[test]
fn a_result_of_every_older_version_is_read_by_the_newest() {
    for earlier in counterfoil_packs::earlier_definitions() {
        if !earlier.contract.starts_with("review-fix/") {
            continue;
        }
        let newest =
            counterfoil_packs::registry_for(&earlier.contract).get(&earlier.contract).unwrap();
        assert!(newest.definition().version > earlier.version, "{}", newest.reference());
        for example in &earlier.examples {
            let report = newest.check(&format!("```json\n{example:#}\n```\n"));
            assert!(
                report.violations.is_empty(),
                "{}: {example}: {:?}",
                newest.reference(),
                report.violations
            );
        }
    }
}
