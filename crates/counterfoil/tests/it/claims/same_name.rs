//! Claims of a contract that have the name of a claim that the engine makes.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;
use serde_json::json;

/// A project whose agent claims that a check succeeds, which does not, in a field with this name. The
/// state has these keys.
fn project(field: &str, keys: &str) -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.init_git();
    project.write("counterfoil.toml", "[checks]\nunit = \"false\"\nlint = \"true\"\n");
    project.write(
        "contracts/fix.yaml",
        format!(
            "contract: acme/fix\nversion: 1\nfields: {{ summary: string, {field}: boolean }}\n\
             claims: {{ {field}: {{ kind: command, check: unit }} }}\n"
        ),
    );
    project.write(
        "fix.yaml",
        format!(
            "workflow: fix\nagents:\n  fixer: {{ contract: acme/fix, prompt: Fix it. }}\ncontracts: [contracts]\n\
             start: fix\nstates:\n  fix: {{ agent: fixer, {keys} go: done }}\n  done: {{ end: done }}\n"
        ),
    );
    project.write(
        "script.yaml",
        format!(
            "replies:\n  - {{ agent: fixer, text: '{{\"summary\": \"Fixed.\", \"{field}\": true}}' }}\n"
        ),
    );
    project.commit_all("start");
    project
}

const RUN: [&str; 4] = ["run", "fix.yaml", "--agent", "script:script.yaml"];

#[test]
fn a_field_with_the_name_of_a_claim_of_the_engine_counts() {
    for field in ["tests", "protected"] {
        let project = project(field, "");
        let refuted = format!("{field} refuted: claimed to succeed, but `false` exited with 1");
        project.run(&RUN).expect(0, &[refuted.as_str(), "claims: 1 made, 1 refuted"]);
        let shown = project.run(&["show", "--claims"]);
        shown.expect(0, &["claims: 1 made, 1 refuted"]);
        assert!(!shown.stdout.contains("not counted"), "{}", shown.stdout);
        let (_, report) = project.code_and_json(&["show", "--format", "json"]);
        assert_eq!(report["claims"]["refuted"], 1, "{:#}", report["claims"]);
        let (_, stats) =
            project.code_and_json(&["claims", "stats", "--by", "field", "--format", "json"]);
        let groups = stats["groups"].as_array().unwrap();
        let of_field: Vec<_> = groups.iter().filter(|group| group["field"] == field).collect();
        assert_eq!(of_field.len(), 1, "{stats:#}");
        assert_eq!(of_field[0]["claims"], 1, "{stats:#}");
        let own = json!(format!("({field})"));
        assert!(groups.iter().any(|group| group["field"] == own), "{stats:#}");
    }
}

#[test]
fn a_required_field_with_such_a_name_is_counted_where_it_fails_the_run() {
    let project = project("tests", "repairs: 0,");
    let strict: Vec<&str> = RUN.iter().copied().chain(["--strict-claims"]).collect();
    project.run(&strict).expect(3, &["claims: 1 made, 1 refuted"]);
}

#[test]
fn a_state_sets_the_check_of_a_field_with_such_a_name() {
    let project = project("tests", "claims: { tests: { policy: require, check: lint } },");
    project.run(&RUN).expect(0, &["claims: 1 made, 1 verified"]);
}
