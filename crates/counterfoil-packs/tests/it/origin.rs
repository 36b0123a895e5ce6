//! The origin documents of the packs: their concrete examples are accepted, their templates are
//! rejected.
//!
//! `origin/accepted/<pack>/<contract>.<n>.txt` is a text as an agent would write it; those of the spec
//! pipeline are its templates, filled in.
//! `origin/templates/<pack>/<contract>…` is the text of an agent that echoes its instructions.

use counterfoil_contract::{Contract, Report, Status};
use counterfoil_packs::registry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn cases(kind: &str) -> Vec<(String, Arc<Contract>, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/origin").join(kind);
    let list = |folder: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let registry = registry();
    let mut cases = Vec::new();
    for pack in list(&root) {
        for file in list(&pack) {
            let (pack, name) = (
                pack.file_name().unwrap().to_str().unwrap(),
                file.file_name().unwrap().to_str().unwrap(),
            );
            let contract = name.split('.').next().unwrap();
            cases.push((
                format!("{pack}/{name}"),
                registry.get(&format!("{pack}/{contract}")).unwrap(),
                std::fs::read_to_string(&file).unwrap(),
            ));
        }
    }
    cases
}

#[test]
fn concrete_examples_are_accepted() {
    let cases = cases("accepted");
    assert_eq!(cases.len(), 30);
    for (name, contract, text) in cases {
        let report = contract.check(&text);
        assert!(report.is_accepted(), "{name}: {:#?}", report.violations);
        let typical: Vec<&str> =
            report.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert!(typical.is_empty(), "{name}: {typical:?}");
        assert!(report.provenance.repairs.is_empty(), "{name}");
    }
}

/// The pointers at which a placeholder was refused.
fn placeholders(report: &Report) -> Vec<&str> {
    report
        .violations
        .iter()
        .filter(|violation| violation.code.as_str() == "C0212")
        .map(|violation| violation.pointer.as_str())
        .collect()
}

/// Templates whose unquoted `true|false` is reported at another place than the other placeholders.
const UNQUOTED: &[&str] = &["execution-loop/dod.txt", "execution-loop/qa.txt"];

#[test]
fn unquoted_alternatives_are_placeholders_too() {
    for (name, contract, text) in cases("templates") {
        if UNQUOTED.contains(&name.as_str()) {
            let report = contract.check(&text);
            assert!(!placeholders(&report).is_empty(), "{name}: {:#?}", report.violations);
        }
    }
}

#[test]
fn templates_are_refused_because_of_their_placeholders() {
    let cases = cases("templates");
    assert_eq!(cases.len(), 31);
    for (name, contract, text) in cases {
        let report = contract.check(&text);
        assert_eq!(report.status, Status::Rejected, "{name}: {report:#?}");
        if UNQUOTED.contains(&name.as_str()) {
            continue;
        }
        // A comment, or dots that stand for fields: this is no JSON, and placeholders are not the
        // first thing wrong.
        if matches!(
            name.as_str(),
            "spec-pipeline/specify.success.txt" | "spec-pipeline/workflow-context.txt"
        ) {
            continue;
        }
        assert!(!placeholders(&report).is_empty(), "{name}: {:#?}", report.violations);
    }
}

#[test]
fn nothing_but_placeholders_is_wrong_with_the_templates_of_blocks() {
    for (name, contract, text) in cases("templates") {
        if !name.starts_with("feature-pipeline/") {
            continue;
        }
        let report = contract.check(&text);
        let named = placeholders(&report);
        for field in contract.ty().object().unwrap().fields.keys() {
            // Of a list the item may be named.
            let places = [format!("/{field}"), format!("/{field}/0")];
            assert!(
                named.iter().any(|named| places.iter().any(|place| place == named)),
                "{name}: {field} not in {named:?}"
            );
        }
        assert_eq!(named.len(), report.violations.len(), "{name}: {:#?}", report.violations);
    }
}

#[test]
fn each_placeholder_of_an_envelope_is_named() {
    for (name, expected) in [
        ("clarify.txt", vec!["/result/spec_file"]),
        ("tasks.txt", vec!["/result/tasks_file", "/result/task_ids/1"]),
        (
            "analyze.txt",
            vec![
                "/result/analysis_report",
                "/result/findings/0/severity",
                "/result/findings/0/type",
                "/result/findings/0/message",
                "/result/findings/0/location",
                "/result/findings/0/recommendation",
            ],
        ),
        ("implement.txt", vec!["/result/tasks_file", "/result/implementation_phases/..."]),
        (
            "test.txt",
            vec![
                "/result/feature_id",
                "/result/overall_status",
                "/result/success_criteria/0/description",
                "/result/success_criteria/0/status",
            ],
        ),
        ("plan.success.txt", vec!["/agent", "/timestamp", "/result/next_steps/0"]),
    ] {
        let name = format!("spec-pipeline/{name}");
        let (_, contract, text) =
            cases("templates").into_iter().find(|(case, ..)| *case == name).unwrap();
        assert_eq!(placeholders(&contract.check(&text)), expected, "{name}");
    }
}

#[test]
fn each_placeholder_of_the_team_is_named() {
    for (name, expected) in [
        (
            "input.txt",
            vec![
                "/task/id",
                "/task/title",
                "/task/goal",
                "/task/non_goals/0",
                "/task/context_files/3",
                "/task/constraints/0",
                "/task/risk_flags/0",
                "/repo_state/ci_status",
                "/repo_state/last_failed_step",
                "/artifact_list/0",
            ],
        ),
        (
            "output.txt",
            vec![
                "/status",
                "/summary",
                "/artifacts/files_to_create_or_update/0",
                "/artifacts/files_changed/0",
                "/artifacts/tests_added_or_updated/0",
                "/artifacts/commands_to_run/0",
                "/artifacts/manual_steps/0",
                "/artifacts/review_comments/0",
                "/artifacts/findings/0",
                "/artifacts/notes/0",
                "/next/recommended_agent",
                "/next/recommended_task_id",
                "/next/reason",
            ],
        ),
        (
            "status.txt",
            vec![
                "/current_state",
                "/session",
                "/blocked_tasks/0/reason",
                "/assumptions/0",
                "/user_decisions/0/question",
                "/user_decisions/0/answer",
                "/user_decisions/0/timestamp",
                "/user_decisions/0/state_context",
                "/known_issues/0",
                "/last_ci_result",
                "/last_update",
            ],
        ),
    ] {
        let name = format!("gated-team/{name}");
        let (_, contract, text) =
            cases("templates").into_iter().find(|(case, ..)| *case == name).unwrap();
        assert_eq!(placeholders(&contract.check(&text)), expected, "{name}");
    }
}
