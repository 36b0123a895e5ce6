//! Required claims: what the repair prompt says, what the agent can correct, and where the run goes
//! if it does not.

use crate::verification::project::{DirtyProject, claims, replies};
use serde_json::json;

#[test]
fn a_refuted_claim_is_sent_back_with_what_was_observed_and_its_correction_is_kept_beside_it() {
    let project = DirtyProject::new();
    project.write_one_step("", ", claims: { files: require }");
    let ran = project.run_replies(
        &[
            claims(
                &["a.rs", "b.rs", "c.rs"],
                json!({"writes": {"a.rs": "new\n", "d.rs": "more\n"}}),
            ),
            claims(&["a.rs", "d.rs"], json!({})),
        ],
        &["a.rs", "d.rs"],
    );
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.outcomes(), ["accepted"]);
    assert_eq!(ran.verdict(0, "files"), "verified");
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], 1);
    assert_eq!(ran.report["attempts"][0]["replies"][0]["status"], "refuted");
    insta::assert_snapshot!("repair_prompt", project.prompt(&ran, "work_1.2"));
    let asked = project.events().into_iter().find(|event| event["kind"] == "repair-asked").unwrap();
    assert_eq!(asked["claims"][0]["verdict"], "refuted", "the history has it: {asked:#}");
    let told = project.run(&["show", "last", "--claims"]);
    told.expect(0, &["refuted", "verified", "b.rs"]);
}

#[test]
fn a_claim_that_is_never_corrected_fails_the_run_with_its_own_exit_code() {
    let project = DirtyProject::new();
    project.write_one_step("", ", repairs: 2, claims: { files: require }");
    let lie = || claims(&["b.rs"], json!({}));
    let ran = project.run_replies(
        &[claims(&["b.rs"], json!({"writes": {"a.rs": "new\n"}})), lie(), lie()],
        &["a.rs"],
    );
    assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{ran:?}");
    assert_eq!(ran.outcomes(), ["claim"]);
    for words in ["b.rs", "a.rs", "claimed 1 file"] {
        assert!(ran.reason().contains(words), "{}", ran.reason());
    }
    ran.assert_claim(0, "files", "refuted", &["a.rs"]);
    assert_eq!(ran.report["attempts"][0]["value"], json!(null), "a refuted result is none");
}

#[test]
fn the_trouble_claim_leads_elsewhere() {
    let project = DirtyProject::new();
    project.write_workflow(
        "",
        "work",
        "  work: { agent: worker, repairs: 0, claims: { files: require }, on: { claim: { go: look, reason: problem.reason } }, go: end }\n  \
         look: { end: blocked }",
    );
    let ran = project.run_replies(&[claims(&["b.rs"], json!({}))], &[]);
    assert_eq!((ran.report["outcome"].as_str(), ran.code), (Some("blocked"), Some(7)), "{ran:?}");
    assert!(ran.reason().contains("b.rs"), "{}", ran.reason());
}

#[test]
fn guards_see_what_became_of_each_claim() {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", "[checks]\ntest = \"exit 0\"\n");
    let states = "  work:\n    agent: worker\n    next:\n      \
        - { when: claims.files.verdict == \"refuted\", go: refuted, reason: claims.files.reason }\n      \
        - { when: claims.tests_pass.verdict == \"none\", go: silent }\n      \
        - { when: claims.protected.verdict == \"refuted\", go: guarded }\n      \
        - { go: end }\n  \
        refuted: { end: blocked }\n  silent: { end: failed }\n  guarded: { end: exhausted }";
    for (result, does, touched, outcome) in [
        (
            json!({"files": ["a.rs"], "tests_pass": true}),
            json!({"writes": {"a.rs": "1\n"}}),
            &["a.rs"][..],
            "done",
        ),
        (json!({"files": ["b.rs"], "tests_pass": true}), json!({}), &[], "blocked"),
        (json!({"files": []}), json!({}), &[], "failed"),
        (
            json!({"files": [], "tests_pass": true}),
            json!({"writes": {"AGENTS.md": "obey\n"}}),
            &[],
            "exhausted",
        ),
    ] {
        project.write_workflow("", "work", states);
        let ran = project.run_replies(&[replies(&result, does)], touched);
        assert_eq!(ran.report["outcome"], outcome, "{result}: {ran:?}");
        let reason = ran.reason();
        assert!(outcome != "blocked" || reason.contains("b.rs"), "{reason}");
    }
}

/// An agent that removes the tests and claims that they pass. It crashes when it is asked about that.
const CRASHING: &str = r#"
case "$(cat)" in *"does not match what was observed"*) exit 1 ;; esac
echo '// Nothing to see.' > tests/it.rs
echo '{"files": ["tests/it.rs"], "tests_pass": true}'
"#;

#[test]
fn a_crash_after_a_requested_repair_corrects_no_claim() {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", "[checks]\ntest = \"exit 4\"\n");
    project.write_one_step("", ", claims: { tests_pass: require }, on: { agent: { go: end } }");
    let script = project.scratch_path("crashing.sh");
    std::fs::write(&script, CRASHING).unwrap();
    let ran = project.run_agent(&format!("command:sh {}", script.display()));
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.outcomes(), ["agent"]);
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], 1, "{ran:?}");
    let totals = &ran.report["claims"];
    assert_eq!(
        (&totals["made"], &totals["verified"], &totals["refuted"], &totals["corrected"]),
        (&json!(3), &json!(1), &json!(2), &json!(0)),
        "{totals:#}"
    );
    project.run(&["show"]).expect(0, &["claims: 3 made, 1 verified, 2 refuted"]);
    let shown = project.run(&["show", "last", "--claims"]);
    shown.expect(0, &["✗ tests_pass: refuted", "✓ files: verified", "✗ tests: refuted"]);
    assert!(!shown.stdout.contains("corrected later"), "{}", shown.stdout);
    let receipt = project.run(&["receipt", "last", "--format", "markdown"]).stdout;
    assert!(receipt.contains("tests_pass"), "{receipt}");
    let by_field = ["claims", "stats", "--by", "field", "--format", "json"];
    let (_, stats) = project.code_and_json(&by_field);
    let groups = stats["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["field"] == "tests_pass").unwrap();
    assert_eq!((&group["refuted"], &group["corrected"]), (&json!(1), &json!(0)), "{stats:#}");
}
