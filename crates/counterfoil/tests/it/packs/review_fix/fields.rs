//! The published contracts, field by field, and where a result may be in a text.

use counterfoil_contract::{Code, Contract};
use counterfoil_packs::contracts::{Finding, FixerResult, validate_output};
use serde_json::{Value, json};

/// The first example of a contract with something else at a place, as a reply; `null` takes it out.
fn changed(contract: &Contract, pointer: &str, value: &Value) -> String {
    let mut result = contract.definition().examples[0].clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = result.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
    match (parent, value) {
        (Value::Object(fields), Value::Null) => drop(fields.remove(name)),
        (Value::Object(fields), value) => drop(fields.insert(name.to_owned(), value.clone())),
        (parent, value) => parent[name.parse::<usize>().unwrap()] = value.clone(),
    }
    format!("```json\n{result:#}\n```\n")
}

/// Whether a contract accepts its first example with something else at a place.
fn takes(contract: &str, pointer: &str, value: &Value) -> bool {
    let contract = counterfoil_packs::registry_for(contract).get(contract).unwrap();
    contract.check(&changed(&contract, pointer, value)).violations.is_empty()
}

/// Asserts that fields are filled in with a warning if they are left out, and that a strict reader
/// requires them.
fn filled_in(id: &str, fields: &[&str]) {
    let contract = counterfoil_packs::registry_for(id).get(id).unwrap();
    for field in fields {
        let text = changed(&contract, field, &Value::Null);
        let report = contract.check(&text);
        assert!(report.is_accepted(), "{id} without {field}: {report:#?}");
        let mut defaults = report.warnings.iter().filter(|one| one.code == Code::DefaultUsed);
        assert!(defaults.any(|one| one.pointer == *field), "{id} without {field}: {report:#?}");
        assert_eq!(contract.check_strictly(&text).codes(), [Code::Missing], "{id}: {field}");
    }
}

fn all_taken(contract: &str, cases: &[(&str, Value)]) {
    for (pointer, value) in cases {
        assert!(takes(contract, pointer, value), "{contract} refuses {value} at {pointer}");
    }
}

fn none_taken(contract: &str, cases: &[(&str, Value)]) {
    for (pointer, value) in cases {
        assert!(!takes(contract, pointer, value), "{contract} takes {value} at {pointer}");
    }
}

#[test]
fn fixer_result() {
    let id = "review-fix/fixer-result";
    all_taken(
        id,
        &[
            ("/files_mentioned", json!(null)),
            ("/files_mentioned", json!([])),
            ("/error_details", json!("why")),
        ],
    );
    none_taken(
        id,
        &[
            ("/success", json!("true")),
            ("/success", json!(null)),
            ("/summary", json!(null)),
            ("/success", json!(false)),
        ],
    );
    let failed =
        "```json\n{\"success\": false, \"summary\": \"no\", \"error_details\": \" \"}\n```";
    let error = validate_output::<FixerResult>(failed).unwrap_err().to_string();
    assert!(error.contains("`error_details` is required"), "blank details are none: {error}");
    let good = "{\"success\": true, \"summary\": \"yes\", \"files_mentioned\": [\"a.rs\"]}";
    let fixer =
        validate_output::<FixerResult>(&format!("Done.\n\n```json\n{good}\n```\n")).unwrap();
    assert_eq!((fixer.success, fixer.summary.as_str()), (true, "yes"));
    assert_eq!(serde_json::to_value(&fixer.files_mentioned).unwrap(), json!(["a.rs"]));
    let error = validate_output::<FixerResult>(&format!("Done: {good}")).unwrap_err().to_string();
    assert!(error.contains("outside of any fenced code block"), "{error}");
}

#[test]
fn finding_and_its_line() {
    let id = "review-fix/finding";
    all_taken(
        id,
        &[
            ("/line", json!(42)),
            ("/line", json!("42")),
            ("/line", json!("10-20")),
            ("/fix_hint", json!("so")),
        ],
    );
    all_taken(id, &["critical", "major", "minor"].map(|severity| ("/severity", json!(severity))));
    none_taken(
        id,
        &[
            ("/severity", json!("suggestion")),
            ("/line", json!(null)),
            ("/line", json!([1])),
            ("/file", json!("../etc/passwd")),
            ("/file", json!("/etc/passwd")),
        ],
    );
    none_taken(
        id,
        &["/id", "/file", "/issue", "/category", "/severity"].map(|field| (field, json!(null))),
    );
    for line in ["42", "\"42\""] {
        let text = format!(
            "```json\n{{\"id\": \"F1\", \"file\": \"a\", \"line\": {line}, \"issue\": \"i\", \"severity\": \"minor\", \"category\": \"c\"}}\n```"
        );
        let found = validate_output::<Finding>(&text).unwrap();
        assert_eq!(serde_json::to_value(&found.line).unwrap(), "42", "it is kept as a text");
    }
}

#[test]
fn finding_group_and_grouped_review_result() {
    let finding = |id: &str| json!({"id": id, "file": "a", "line": 1, "issue": "i", "severity": "minor", "category": "c"});
    let group = |ids: &[&str]| json!({"description": "d", "findings": ids.iter().map(|id| finding(id)).collect::<Vec<_>>()});
    all_taken(
        "review-fix/finding-group",
        &[("/findings", json!([])), ("/findings", group(&["a", "b"])["findings"].clone())],
    );
    none_taken(
        "review-fix/finding-group",
        &[
            ("/description", json!(null)),
            ("/findings", json!(null)),
            ("/findings", group(&["a", "a"])["findings"].clone()),
        ],
    );
    all_taken(
        "review-fix/grouped-review-result",
        &[("/groups", json!([])), ("/groups", json!([group(&["a"]), group(&["b"])]))],
    );
    none_taken(
        "review-fix/grouped-review-result",
        &[("/groups", json!(null)), ("/groups", json!([group(&["a"]), group(&["a"])]))],
    );
}

#[test]
fn fix_outcome_and_fix_outcomes() {
    let id = "review-fix/fix-outcome";
    all_taken(id, &["fixed", "blocked", "deferred"].map(|outcome| ("/outcome", json!(outcome))));
    none_taken(
        id,
        &[("/outcome", json!("done")), ("/id", json!(null)), ("/explanation", json!(null))],
    );
    let twice = json!([{"id": "a", "outcome": "fixed", "explanation": "x"}, {"id": "a", "outcome": "blocked", "explanation": "y"}]);
    none_taken("review-fix/fix-outcomes", &[("/outcomes", json!(null)), ("/outcomes", twice)]);
}

#[test]
fn review_finding() {
    let id = "review-fix/review-finding";
    all_taken(
        id,
        &["critical", "major", "minor", "suggestion"]
            .map(|severity| ("/severity", json!(severity))),
    );
    all_taken(
        id,
        &[
            ("/line", json!(null)),
            ("/line", json!(1)),
            // Some reviewers write it where there is no line.
            ("/line", json!(0)),
            ("/suggestion", json!(null)),
            ("/convention_ref", json!("c")),
            ("/message", json!("ten chars.")),
        ],
    );
    none_taken(
        id,
        &[
            ("/line", json!(-1)),
            ("/line", json!("3")),
            ("/message", json!("nine char")),
            ("/severity", json!("info")),
            ("/file", json!(null)),
        ],
    );
}

#[test]
fn review_result_and_usage() {
    let id = "review-fix/review-result";
    all_taken(
        id,
        &["/truncated", "/output", "/metadata", "/errors", "/usage"]
            .map(|field| (field, json!(null))),
    );
    none_taken(
        id,
        &["/success", "/findings", "/files_reviewed", "/summary"].map(|field| (field, json!(null))),
    );
    none_taken(id, &[("/files_reviewed", json!(-1)), ("/success", json!("true"))]);
    none_taken(
        id,
        &["input_tokens", "output_tokens", "duration_ms", "total_cost"].map(|field| {
            (
                match field {
                    "input_tokens" => "/usage/input_tokens",
                    "output_tokens" => "/usage/output_tokens",
                    "duration_ms" => "/usage/duration_ms",
                    _ => "/usage/total_cost",
                },
                json!(-1),
            )
        }),
    );
}

#[test]
fn fix_result_and_file_change() {
    let id = "review-fix/fix-result";
    let defaulted = [
        "/issue_url",
        "/root_cause",
        "/fix_description",
        "/commit_sha",
        "/verification_passed",
        "/validation_passed",
        "/output",
        "/metadata",
        "/errors",
    ];
    all_taken(id, &defaulted.map(|field| (field, json!(null))));
    filled_in(id, &["/files_changed"]);
    none_taken(
        id,
        &["/success", "/issue_number", "/issue_title"].map(|field| (field, json!(null))),
    );
    none_taken(
        id,
        &[
            ("/issue_number", json!(0)),
            ("/files_changed", json!(["src/a.py"])),
            ("/files_changed", json!("src/a.py")),
        ],
    );
    all_taken(
        id,
        &["added", "modified", "deleted"]
            .map(|change| ("/files_changed/0/change_type", json!(change))),
    );
    all_taken(id, &[("/files_changed/0/change_type", json!(null))]);
    none_taken(
        id,
        &[
            ("/files_changed/0/change_type", json!("moved")),
            ("/files_changed/0/lines_added", json!(-1)),
            ("/files_changed/0/lines_removed", json!(-1)),
            ("/files_changed/0/file_path", json!(null)),
        ],
    );
    none_taken(
        id,
        &[
            ("/files_changed/0/change_type", json!("renamed")),
            ("/files_changed/1/old_path", json!(null)),
        ],
    );
}

#[test]
fn implementation_result_and_task_result() {
    let id = "review-fix/implementation-result";
    all_taken(
        id,
        &["/validation_passed", "/output", "/metadata", "/errors"]
            .map(|field| (field, json!(null))),
    );
    filled_in(id, &["/task_results", "/files_changed", "/commits"]);
    none_taken(
        id,
        &["/success", "/tasks_completed", "/tasks_failed", "/tasks_skipped"]
            .map(|field| (field, json!(null))),
    );
    none_taken(
        id,
        &[
            ("/tasks_completed", json!(-1)),
            ("/tasks_failed", json!(-1)),
            ("/tasks_skipped", json!(-1)),
        ],
    );
    let task = "/task_results/0/task_id";
    all_taken(id, &[(task, json!("T001")), (task, json!("T12345"))]);
    none_taken(
        id,
        &["T01", "T001 ", "xT001", "T001a", "t001", "T"].map(|name| (task, json!(name))),
    );
    let statuses = ["pending", "in_progress", "completed", "failed", "skipped"];
    all_taken(id, &statuses.map(|status| ("/task_results/0/status", json!(status))));
    none_taken(
        id,
        &[("/task_results/0/status", json!("done")), ("/task_results/0/duration_ms", json!(-1))],
    );
    all_taken(
        id,
        &["format", "lint", "typecheck", "test"]
            .map(|step| ("/task_results/0/validation/0/step", json!(step))),
    );
    none_taken(
        id,
        &[
            ("/task_results/0/validation/0/step", json!("build")),
            ("/task_results/0/validation/0/success", json!("true")),
        ],
    );
}

#[test]
fn agent_result_is_read_still_and_says_what_to_use() {
    let id = "review-fix/agent-result";
    all_taken(id, &[("/errors", json!(null)), ("/output", json!("anything"))]);
    none_taken(
        id,
        &[("/success", json!(false)), ("/usage", json!(null)), ("/success", json!(null))],
    );
    let contract = counterfoil_packs::registry_for(id).get(id).unwrap();
    let deprecated = serde_json::to_value(contract.definition()).unwrap()["deprecated"].to_string();
    assert!(
        deprecated.contains("fixer-result") && deprecated.contains("fix-outcomes"),
        "{deprecated}"
    );
}

#[test]
fn a_result_stands_in_a_fence_and_nowhere_else() {
    let contract = counterfoil_packs::registry_for("review-fix/grouped-review-result")
        .get("review-fix/grouped-review-result")
        .unwrap();
    let good = "{\"groups\": []}";
    for text in [
        format!("```json\n{good}\n```"),
        format!("```JSON\n{good}\n```"),
        format!("```jsonc\n{good}\n```"),
        format!("```\n{good}\n```"),
        format!("~~~~json\n{good}\n~~~~~"),
        format!("   ```json\n   {good}\n   ```"),
        format!("- so:\n  ```json\n  {good}\n  ```"),
        format!("> ```json\n> {good}\n> ```"),
        // The last one decides, labelled or not.
        format!("```json\n{{\"groups\": 1}}\n```\nor\n```json\n{good}\n```"),
        format!("```json\n{{\"groups\": 1}}\n```\nor\n```\n{good}\n```"),
    ] {
        assert!(contract.check(&text).violations.is_empty(), "{text}");
    }
    for (text, status, project) in [
        (good.to_owned(), "rejected", "extraction"),
        (format!("All good: {good} as you see."), "rejected", "extraction"),
        (String::new(), "absent", "extraction"),
        ("All good, as you see.".to_owned(), "absent", "extraction"),
        (format!("```python\n{good}\n```"), "rejected", "extraction"),
        (format!("```sh\nls\n```\n{good}\n```sh\nls\n```"), "rejected", "extraction"),
        (format!("```json\n{good}\n```\nor {{\"groups\": 1}}"), "rejected", "extraction"),
        (
            format!("```json\n{good}\n```\nor\n```json\n{{\"groups\": 1}}\n```"),
            "rejected",
            "validation",
        ),
        (
            format!("```json\n{good}\n```\nor\n```\n{{\"groups\": 1}}\n```"),
            "rejected",
            "validation",
        ),
        ("```json\n{\"groups\": [\n```".to_owned(), "rejected", "parse"),
        ("```json\n{\"groups\": {}}\n```".to_owned(), "rejected", "validation"),
    ] {
        let report = serde_json::to_value(contract.check(&text)).unwrap();
        assert_eq!(
            (&report["status"], &report["stage"]),
            (&json!(status), &json!(project)),
            "{text}"
        );
        let violation = &report["violations"][0];
        for part in ["message", "expected", "received"] {
            assert!(
                violation[part].as_str().is_some_and(|part| !part.is_empty()),
                "{part}: {text}"
            );
        }
        if status == "rejected" {
            assert!(!violation["span"].is_null(), "a place: {violation}");
        }
    }
}

#[test]
fn what_was_expected_and_what_was_received_is_said() {
    let contract = counterfoil_packs::registry_for("review-fix/fix-outcome")
        .get("review-fix/fix-outcome")
        .unwrap();
    let text = "```json\n{\"id\": \"F1\", \"outcome\": \"done\", \"explanation\": \"x\"}\n```";
    let report = serde_json::to_value(contract.check(text)).unwrap();
    let violation = &report["violations"][0];
    assert_eq!(violation["pointer"], "/outcome");
    assert!(violation["expected"].as_str().unwrap().contains("deferred"), "{violation}");
    assert!(violation["received"].as_str().unwrap().contains("done"), "{violation}");
    assert_eq!(violation["span"]["line"], 2);
}

#[test]
fn six_agents_have_one_contract_each() {
    let agents = [
        ("fixer", "review-fix/fixer-result"),
        ("issue-fixer", "review-fix/fix-result"),
        ("implementer", "review-fix/implementation-result"),
        ("code-reviewer", "review-fix/review-result"),
        ("unified-reviewer", "review-fix/grouped-review-result"),
        ("simple-fixer", "review-fix/fix-outcomes"),
    ];
    let pack = counterfoil_packs::pack("review-fix").unwrap();
    let mut used: Vec<(String, String)> = Vec::new();
    for workflow in pack.workflows() {
        let text: Value = serde_saphyr::from_str(pack.text(workflow.file).unwrap()).unwrap();
        for (name, role) in text["agents"].as_object().unwrap() {
            used.push((name.clone(), role["contract"].as_str().unwrap().to_owned()));
        }
    }
    for (agent, id) in agents {
        let contracts: Vec<&str> =
            used.iter().filter(|(name, _)| name == agent).map(|(_, id)| id.as_str()).collect();
        assert_eq!(contracts, [id], "{agent}");
        assert_eq!(
            counterfoil_packs::registry_for(id).get(id).unwrap().definition().agent.as_deref(),
            Some(agent)
        );
    }
    assert_eq!(used.len(), agents.len());
}
