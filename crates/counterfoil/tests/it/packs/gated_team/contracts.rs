//! The five contracts of the team, field by field.

use super::{but, ok};
use crate::packs::scenario::example;
use serde_json::{Value, json};

/// Whether a contract takes a value.
fn takes(contract: &str, value: &Value) -> bool {
    let contract = counterfoil_packs::registry_for(contract).get(contract).unwrap();
    contract.check(&value.to_string()).value.is_some()
}

/// The contract's first example, otherwise at one place; without that place, if there is no value.
fn changed(contract: &str, pointer: &str, value: Option<Value>) -> Value {
    let mut whole = example(contract);
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let place = whole.pointer_mut(parent).unwrap_or_else(|| panic!("{contract} has no {parent}"));
    match value {
        Some(value) => match place {
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
            place => place[name] = value,
        },
        None => drop(
            place.as_object_mut().unwrap().remove(name).unwrap_or_else(|| panic!("no {pointer}")),
        ),
    }
    whole
}

fn each_is_required(contract: &str, pointers: &[&str]) {
    for pointer in pointers {
        assert!(
            !takes(contract, &changed(contract, pointer, None)),
            "{contract} does without {pointer}"
        );
    }
}

fn one_of(contract: &str, pointer: &str, values: &[&str]) {
    for value in values {
        assert!(
            takes(contract, &changed(contract, pointer, Some(json!(value)))),
            "{contract} {pointer}: {value}"
        );
    }
    for value in ["", "other", &values[0].to_lowercase().to_uppercase()] {
        let is_one = values.contains(&value);
        assert_eq!(
            takes(contract, &changed(contract, pointer, Some(json!(value)))),
            is_one,
            "{contract} {pointer}: {value}"
        );
    }
}

const AGENTS: &[&str] = &[
    "SpecAgent",
    "Architect",
    "Designer",
    "Planner",
    "Coder",
    "Reviewer",
    "QA",
    "Security",
    "Integrator",
    "Docs",
    "Orchestrator",
];

#[test]
fn fields_of_the_input() {
    let input = "gated-team/input";
    each_is_required(
        input,
        &[
            "/task",
            "/task/id",
            "/task/title",
            "/task/goal",
            "/task/non_goals",
            "/task/context_files",
            "/task/constraints",
            "/task/acceptance_checks",
            "/task/risk_flags",
            "/repo_state",
            "/repo_state/branch",
            "/repo_state/ci_status",
            "/tools_available",
        ],
    );
    one_of(input, "/repo_state/ci_status", &["unknown", "green", "red"]);
    one_of(input, "/task/risk_flags/0", &["security", "perf", "breaking-change", "none"]);
    assert!(takes(input, &changed(input, "/artifact_list", None)));
    for step in [json!(null), json!("cargo build")] {
        assert!(takes(input, &changed(input, "/repo_state/last_failed_step", Some(step))));
    }
    assert!(!takes(input, &changed(input, "/repo_state/last_failed_step", Some(json!(1)))));
    for (id, good) in [
        ("T-001", true),
        ("T-1000", true),
        ("meta", true),
        ("T-1", false),
        ("T-XXX", false),
        ("same", false),
    ] {
        assert_eq!(takes(input, &changed(input, "/task/id", Some(json!(id)))), good, "{id}");
    }
    for (check, good) in
        [("cmd: cargo test", true), ("manual: look", true), ("cargo test", false), ("cmd:", false)]
    {
        assert_eq!(
            takes(input, &changed(input, "/task/acceptance_checks/0", Some(json!(check)))),
            good,
            "{check}"
        );
    }
    assert!(!takes(input, &changed(input, "/task/context_files/0", Some(json!("../out.md")))));
}

#[test]
fn fields_of_the_output() {
    let output = "gated-team/output";
    each_is_required(
        output,
        &[
            "/status",
            "/summary",
            "/artifacts",
            "/gates",
            "/gates/meets_definition_of_done",
            "/gates/needs_review",
            "/gates/needs_tests",
            "/gates/security_concerns",
            "/next",
            "/next/recommended_agent",
            "/next/recommended_task_id",
            "/next/reason",
        ],
    );
    one_of(output, "/status", &["OK", "BLOCKED", "NEEDS_INFO", "FAIL"]);
    one_of(output, "/next/recommended_agent", AGENTS);
    for (id, good) in [("T-001", true), ("meta", true), ("same", true), ("next", false)] {
        assert_eq!(
            takes(output, &changed(output, "/next/recommended_task_id", Some(json!(id)))),
            good,
            "{id}"
        );
    }
}

#[test]
fn artifacts_are_open_and_their_lists_optional() {
    for part in [
        json!({"artifacts": {"test_results": {"passed": 3}, "ci_notes": "green"}}),
        json!({"artifacts": {"review_comments": ["a", {"file": "b.rs"}], "findings": [{"severity": "low"}, "c"]}}),
        json!({"gates": {"security_concerns": ["a", {"severity": "low"}]}}),
    ] {
        assert!(takes("gated-team/output", &but(&part)), "{part}");
    }
    let mut bare = ok();
    bare["artifacts"] = json!({});
    assert!(takes("gated-team/output", &bare));
    for list in [
        "files_to_create_or_update",
        "files_changed",
        "tests_added_or_updated",
        "commands_to_run",
        "manual_steps",
        "review_comments",
        "findings",
        "notes",
    ] {
        assert!(!takes("gated-team/output", &but(&json!({"artifacts": {list: [1]}}))), "{list}");
    }
}

#[test]
fn the_gates_of_a_result_are_booleans_and_not_words() {
    for gate in ["meets_definition_of_done", "needs_review", "needs_tests"] {
        for word in [json!("false"), json!("true"), json!(0), json!(null)] {
            assert!(
                !takes("gated-team/output", &but(&json!({"gates": {gate: word}}))),
                "{gate}: {word}"
            );
        }
    }
}

#[test]
fn json_only_means_nothing_around_it() {
    let contract =
        counterfoil_packs::registry_for("gated-team/output").get("gated-team/output").unwrap();
    let bare = ok().to_string();
    assert!(contract.check(&format!("\n  {bare}\n\n")).value.is_some());
    for around in [
        format!("Done: {bare}"),
        format!("{bare}\nThat is all."),
        format!("```json\n{bare}\n```"),
        format!("{bare}{bare}"),
        format!("// Done.\n{bare}"),
        bare.replacen('{', "{ /* Done. */", 1),
    ] {
        assert!(contract.check(&around).value.is_none(), "{around}");
    }
}

#[test]
fn fields_of_status_json() {
    let status = "gated-team/status";
    each_is_required(
        status,
        &[
            "/current_state",
            "/session",
            "/completed_tasks",
            "/blocked_tasks",
            "/assumptions",
            "/user_decisions",
            "/retry_counts",
            "/known_issues",
            "/last_ci_result",
            "/last_update",
        ],
    );
    one_of(
        status,
        "/current_state",
        &[
            "INTAKE",
            "DESIGN",
            "PLAN",
            "IMPLEMENT_LOOP",
            "INTEGRATE",
            "RELEASE",
            "DONE",
            "ASK_USER",
            "BLOCKED",
        ],
    );
    one_of(status, "/last_ci_result", &["unknown", "green", "red"]);
    let decision = json!({"question": "q", "answer": null, "timestamp": "2026-03-01T09:30:00Z", "state_context": "DESIGN"});
    for (place, value, good) in [
        ("/session", json!("2026-03-01_search"), true),
        ("/session", json!("2026-03-01_search-2"), true),
        ("/session", json!("search"), false),
        ("/last_update", json!("yesterday"), false),
        ("/completed_tasks", json!(["T-001"]), true),
        ("/completed_tasks", json!(["first"]), false),
        ("/blocked_tasks", json!([{"id": "T-002", "reason": "why"}]), true),
        ("/blocked_tasks", json!([{"id": "T-002"}]), false),
        (
            "/retry_counts",
            json!({"T-001": {"FIX_REVIEW": 0, "FIX_TESTS": 1, "FIX_SECURITY": 2, "FIX_BUILD": 3}}),
            true,
        ),
        ("/retry_counts", json!({"T-001": {"FIX_REVIEW": -1}}), false),
        ("/user_decisions", json!([decision]), true),
        (
            "/user_decisions",
            json!([{"question": "q", "answer": "a", "timestamp": "now", "state_context": "DESIGN"}]),
            false,
        ),
    ] {
        assert_eq!(
            takes(status, &changed(status, place, Some(value.clone()))),
            good,
            "{place}: {value}"
        );
    }
}

#[test]
fn fields_of_tasks_yaml_and_acceptance_json() {
    each_is_required(
        "gated-team/tasks",
        &[
            "/tasks",
            "/tasks/0/id",
            "/tasks/0/title",
            "/tasks/0/depends_on",
            "/tasks/0/checks",
            "/tasks/0/done_when",
        ],
    );
    each_is_required(
        "gated-team/acceptance",
        &["/criteria", "/criteria/0/id", "/criteria/0/description", "/criteria/0/checks"],
    );
    for list in ["checks", "done_when"] {
        assert!(
            !takes(
                "gated-team/tasks",
                &changed("gated-team/tasks", &format!("/tasks/0/{list}"), Some(json!([])))
            ),
            "{list}"
        );
    }
    assert!(!takes("gated-team/acceptance", &json!({"criteria": []})));
}
