//! Retries: what they answer for, and what they and the next agents are told.

use crate::shell_project::run_arguments;
use crate::verification::project::{DirtyProject, VerifiedRun, claims};
use counterfoil_testkit::{TIMEOUT, wait_until};
use serde_json::json;

const RETRIED: &str = ", repairs: 0, retries: { claim: 1 }, claims: { files: require }";

#[test]
fn a_retry_is_verified_against_the_tree_before_the_first_attempt() {
    let project = DirtyProject::new();
    project.write_one_step("", RETRIED);
    let ran = project.run_replies(
        &[
            claims(&["b.rs"], json!({"writes": {"a.rs": "new\n"}})),
            // It finds the work done, and says so.
            claims(&["a.rs"], json!({})),
        ],
        &["a.rs"],
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.outcomes(), ["claim", "accepted"]);
    assert_eq!(ran.verdict(1, "files"), "verified");
    let prompt = project.prompt(&ran, "work_2.1");
    assert!(prompt.contains("## What was observed"), "{prompt}");
    assert!(prompt.contains("an earlier attempt at this step, `files`: "), "{prompt}");
    // The refuted claim stays in the summary.
    assert_eq!(ran.report["claims"]["corrected"], 1, "{:#}", ran.report["claims"]);
    assert_eq!(ran.report["claims"]["refuted"], 0);
    let shown = project.run(&["show"]);
    shown.expect(0, &["1 refuted earlier and corrected"]);
}

#[test]
fn every_case_of_a_test_report_has_a_name_of_its_own() {
    let project = DirtyProject::new();
    project.write_one_step("", ", repairs: 2, claims: { files: require }");
    project.write_script(&[
        claims(&["b.rs"], json!({"writes": {"a.rs": "new\n"}})),
        claims(&["c.rs"], json!({})),
        claims(&["a.rs"], json!({})),
    ]);
    let mut arguments = run_arguments("flow.yaml", "script:script.yaml");
    arguments[5] = "junit".to_owned();
    let ran = project.run(&arguments);
    let names: Vec<&str> = ran.stdout.split("<testcase name=\"").skip(1).collect();
    let names: Vec<&str> = names.iter().filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(
        names.iter().filter(|name| name.contains("claims files")).collect::<Vec<_>>(),
        [
            &"work #1 claims files in reply 1",
            &"work #1 claims files in reply 2",
            &"work #1 claims files"
        ],
        "{ran:?}"
    );
    let unique: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len(), "{names:#?}");
}

/// The state is visited again for another task; that is no correction of what was said of the first.
#[test]
fn a_visit_for_another_task_does_not_hide_what_was_refuted() {
    let project = DirtyProject::new();
    project.write_workflow(
        "variables: { round: { type: integer, initial: 0 } }\nlimits: { rounds: { max: 2, then: end } }",
        "work",
        "  work:\n    agent: worker\n    claims: { files: record }\n    next:\n      - { when: round < 1, set: { round: round + 1 }, go: work, counts: rounds }\n      - { go: end }",
    );
    let ran = project.run_replies(
        &[
            claims(&["b.rs"], json!({"writes": {"a.rs": "new\n"}})),
            claims(&["b.rs"], json!({"writes": {"b.rs": "new\n"}})),
        ],
        &["a.rs", "b.rs"],
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let totals = &ran.report["claims"];
    assert_eq!(
        (&totals["made"], &totals["verified"], &totals["refuted"], &totals["corrected"]),
        (&json!(2), &json!(1), &json!(1), &json!(0)),
        "{totals:#}"
    );
    project.run(&["show"]).expect(0, &["claims: 2 made, 1 verified, 1 refuted", "✗ files refuted"]);
}

#[test]
fn a_test_that_the_first_attempt_removed_is_missing_in_the_retry() {
    let project = DirtyProject::new();
    project.write_one_step("", RETRIED);
    let ran = project.run_replies(
        &[
            claims(&["b.rs"], json!({"writes": {"tests/it.rs": "// Nothing to see.\n"}})),
            claims(&["tests/it.rs"], json!({})),
        ],
        &["tests/it.rs"],
    );
    assert_eq!(ran.verdict(1, "tests"), "refuted", "{ran:?}");
}

#[test]
fn the_next_agent_is_told_what_was_observed() {
    let project = DirtyProject::new();
    project.write_workflow(
        "",
        "work",
        "  work: { agent: worker, claims: { files: record }, go: next }\n  \
           next: { agent: worker, claims: { files: record }, go: end }",
    );
    let ran = project.run_replies(
        &[claims(&["b.rs"], json!({"writes": {"a.rs": "new\n"}})), claims(&[], json!({}))],
        &["a.rs"],
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let prompt = project.prompt(&ran, "next_1.1");
    assert!(prompt.contains("- 'work', `files`: "), "{prompt}");
    assert_eq!(ran.verdict(1, "files"), "verified", "another step begins anew");
}

#[test]
fn a_step_that_was_killed_answers_for_what_it_did_before() {
    let project = DirtyProject::new();
    project.write_one_step("", ", repairs: 0, claims: { files: require }");
    let sign = project.scratch_path("at-work");
    let work = format!(
        "echo new > a.rs; test -e '{0}' && exit 0; touch '{0}'; exec sleep 60",
        sign.display()
    );
    project.write_script(&[claims(&["a.rs"], json!({"exec": work}))]);
    let live = project.start(&run_arguments("flow.yaml", "script:script.yaml"));
    wait_until(TIMEOUT, "the step is at work", || sign.exists().then_some(()));
    assert!(live.kill());
    let ran = VerifiedRun::from(project.run(&["resume", "last", "--format", "json"]));
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.outcomes(), ["cancelled", "accepted"]);
    assert_eq!(ran.verdict(1, "files"), "verified", "the file was written before the kill");
}

#[test]
fn a_step_that_was_killed_during_a_repair_is_told_what_was_refuted() {
    let project = DirtyProject::new();
    project.write_one_step("", ", repairs: 1, claims: { files: require }");
    let sign = project.scratch_path("at-work");
    let work = format!("test -e '{0}' && exit 0; touch '{0}'; exec sleep 60", sign.display());
    project.write_script(&[
        claims(&["b.rs"], json!({"writes": {"a.rs": "new\n"}})),
        claims(&["a.rs"], json!({"exec": work})),
    ]);
    let live = project.start(&run_arguments("flow.yaml", "script:script.yaml"));
    wait_until(TIMEOUT, "the repair is at work", || sign.exists().then_some(()));
    wait_until(TIMEOUT, "the repair is recorded", || {
        (project.count_events("repair-asked") == 1).then_some(())
    });
    assert!(live.kill());
    let ran = VerifiedRun::from(project.run(&["resume", "last", "--format", "json"]));
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.outcomes(), ["cancelled", "accepted"]);
    let prompt = project.prompt(&ran, "work_2.1");
    assert!(prompt.contains("an earlier attempt at this step, `files`: "), "{prompt}");
    assert_eq!(ran.report["claims"]["corrected"], 1, "{:#}", ran.report["claims"]);
}

#[test]
fn a_claim_that_fails_a_run_has_one_annotation() {
    let project = DirtyProject::new();
    project.write_one_step("", ", repairs: 2, claims: { files: require }");
    project.write_script(&[
        claims(&["b.rs"], json!({"writes": {"a.rs": "new\n"}})),
        claims(&["c.rs"], json!({})),
        claims(&["b.rs"], json!({})),
    ]);
    let mut arguments = run_arguments("flow.yaml", "script:script.yaml");
    arguments[5] = "github".to_owned();
    let ran = project.run(&arguments);
    let errors: Vec<&str> =
        ran.stdout.lines().filter(|line| line.starts_with("::error ")).collect();
    assert_eq!(errors.len(), 2, "{ran:?}");
    assert!(errors[0].starts_with("::error title=work #1%3A files refuted::files: "), "{errors:?}");
    assert!(errors[1].ends_with("failed::because of work #1: files refuted"), "{errors:?}");
}
