//! The pack spec-pipeline. Each agent has one good reply; a scenario puts others before it.

mod agents;
mod clock;
mod errors;
mod evidence;
mod false_done;
mod false_done_reports;
mod feedback;
mod gates;
mod people;
mod prerequisites;
mod prompts;
mod questions;
mod resuming;
mod sizes;
mod strategies;
mod words;

use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// The agents, upstream first.
const AGENTS: [&str; 11] = [
    "specify",
    "clarify",
    "research",
    "plan",
    "checklist",
    "tasks",
    "analyze",
    "implement",
    "test",
    "review",
    "taskstoissues",
];

/// What every run is given.
const ASKED: [&str; 4] = ["--task", "Add a search", "--input", "feature_id=search"];

fn play() -> Scenario {
    Scenario::new("spec-pipeline")
}

/// A repository with one check.
fn checked(check: &str, command: &str) -> Scenario {
    play().file("counterfoil.toml", &format!("[checks]\n{check} = {}\n", json!(command))).commit()
}

/// Adds a good reply of every agent after the existing ones, and the approval.
fn then_all_goes_well(scenario: Scenario) -> Scenario {
    AGENTS.into_iter().fold(scenario, good).answer("approve", "proceed")
}

/// A good reply of an agent, which really writes what it says.
fn good(scenario: Scenario, agent: &str) -> Scenario {
    let scenario = scenario.says(agent, succeeded(agent));
    match agent {
        "specify" => scenario.writes("specs/search/spec.md", "# Search\n"),
        "research" => scenario.writes("specs/search/research.json", "{}\n"),
        "plan" => scenario.writes("specs/search/plan.md", "# Plan\n"),
        "checklist" => scenario.writes("specs/search/checklists/api.md", "- [ ] clear?\n"),
        "tasks" => scenario.writes("specs/search/tasks.md", "- [ ] T001 search\n"),
        "analyze" => scenario.writes("specs/search/analysis.md", "nothing\n"),
        // Each time it is asked, it changes something, and ticks the tasks off.
        "implement" => scenario.exec(
            "echo 'pub fn search() {}' >> src/search.rs
             test ! -f specs/search/tasks.md || sed -i 's/\\[ \\]/[x]/' specs/search/tasks.md",
        ),
        _ => scenario,
    }
}

fn run(scenario: Scenario, size: &str) -> ScenarioRun {
    let size = format!("size={size}");
    then_all_goes_well(scenario).run(&[&ASKED[..], &["--input", &size]].concat())
}

/// An agent's envelope around its good result.
fn succeeded(agent: &str) -> Value {
    envelope(agent, &result(agent))
}

fn envelope(agent: &str, result: &Value) -> Value {
    json!({"agent": agent, "status": "success", "timestamp": "2026-03-01T09:30:00Z", "execution_time_ms": 10, "result": result})
}

/// A good result with one field changed, in its envelope.
fn with(agent: &str, pointer: &str, value: Value) -> Value {
    let mut result = result(agent);
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    result.pointer_mut(parent).unwrap()[name] = value;
    envelope(agent, &result)
}

/// An agent's error: recoverable, without a strategy of its own.
fn error(agent: &str, kind: &str) -> Value {
    error_with(agent, kind, json!({}))
}

/// The same with further fields.
fn error_with(agent: &str, kind: &str, more: Value) -> Value {
    let mut error =
        json!({"type": kind, "code": "BROKEN", "message": "it is broken", "recoverable": true});
    let Value::Object(more) = more else { panic!("{more} has no fields") };
    error.as_object_mut().unwrap().extend(more);
    json!({"agent": agent, "status": "error", "timestamp": "2026-03-01T09:30:00Z", "execution_time_ms": 1, "error": error})
}

fn finding(severity: &str, kind: &str) -> Value {
    json!({
        "severity": severity, "type": kind, "message": format!("a {kind}"), "location": "specs/search/spec.md:3",
        "recommendation": "put it right"
    })
}

/// An analysis with these findings.
fn analysis(findings: &[Value]) -> Value {
    let count = |severity: &str| findings.iter().filter(|one| one["severity"] == severity).count();
    json!({
        "analysis_report": "specs/search/analysis.md", "artifacts_analyzed": ["specs/search/spec.md"],
        "total_findings": findings.len(),
        "findings_by_severity": {
            "CRITICAL": count("CRITICAL"), "HIGH": count("HIGH"), "MEDIUM": count("MEDIUM"), "LOW": count("LOW")
        },
        "findings": findings,
        "coverage_analysis": {
            "total_requirements": 2, "requirements_with_tasks": 2, "coverage_percentage": 100.0,
            "uncovered_requirements": []
        }
    })
}

/// What an agent hands back when all is well.
fn result(agent: &str) -> Value {
    match agent {
        "specify" => json!({
            "branch_name": "search", "spec_file": "specs/search/spec.md", "feature_number": 7, "short_name": "search",
            "clarifications_needed": 1, "sections_generated": ["Goal"], "checklist_status": "complete",
            "next_steps": ["clarify"]
        }),
        "clarify" => json!({
            "spec_file": "specs/search/spec.md", "clarifications_resolved": 1, "questions_asked": 1,
            "remaining_ambiguities": 0
        }),
        "research" => json!({
            "research_cache_file": "specs/search/research.json", "technologies_researched": [], "decisions": [],
            "confidence_level": "HIGH"
        }),
        "plan" => json!({
            "plan_file": "specs/search/plan.md", "research_file": "specs/search/research.md",
            "data_model_file": "specs/search/data-model.md", "contracts_dir": "specs/search/contracts/",
            "quickstart_file": "specs/search/quickstart.md", "technologies": [], "constitution_violations": [],
            "artifacts_created": ["specs/search/plan.md"]
        }),
        "checklist" => json!({
            "checklist_file": "specs/search/checklists/api.md", "domain": "api", "total_items": 1, "categories": ["Clarity"]
        }),
        "tasks" => json!({
            "tasks_file": "specs/search/tasks.md", "task_count": 1,
            "phases": {"setup": 0, "foundational": 0, "user_stories": 1, "polish": 0}, "parallelizable_tasks": 0,
            "task_ids": ["T001"], "dependencies_mapped": true
        }),
        "analyze" => analysis(&[]),
        "implement" => json!({
            "tasks_file": "specs/search/tasks.md", "tasks_completed": 1, "tasks_total": 1, "completion_percentage": 100.0,
            "tests_passed": 4, "tests_total": 4, "coverage_percentage": 91.5, "files_created": 1, "files_modified": 0,
            "implementation_phases": {"user_stories": "completed"}
        }),
        "test" => json!({
            "feature_id": "search", "overall_status": "PASSED",
            "quality_gates": {
                "tests_passing": {"status": "PASSED", "details": {"total": 4, "passed": 4, "failed": 0}},
                "coverage": {"status": "PASSED", "details": {"overall": 91.5, "required": 80.0}},
                "code_quality": {"status": "PASSED", "details": {"lint_errors": 0, "type_errors": 0}},
                "build_validation": {"status": "PASSED", "details": {"docker_compose": "valid"}}
            },
            "success_criteria": [{"id": "SC-001", "description": "it finds", "status": "PASSED"}]
        }),
        "review" => json!({
            "feature_id": "search", "overall_status": "APPROVED",
            "changes_made": {"files_moved": [], "files_deleted": [], "files_created": [], "files_modified": []},
            "constitution_compliance": {"status": "PASS", "passed": 3, "failed": 0},
            "cleanup_summary": {"tests_removed": 0, "files_moved": 0, "dead_code_lines_removed": 0}
        }),
        "taskstoissues" => json!({
            "issues_created": 1,
            "issues": [{"number": 1, "title": "T001", "url": "https://example.org/1", "task_id": "T001"}],
            "labels_applied": []
        }),
        other => panic!("no agent is named {other}"),
    }
}

/// The agents' attempts in their order, by name.
fn worked(ran: &ScenarioRun) -> Vec<String> {
    let name = |attempt: String| attempt.split('#').next().unwrap().to_owned();
    ran.attempts().into_iter().map(name).collect()
}

/// What comes behind a heading of a prompt, as JSON.
fn section(prompt: &str, heading: &str) -> Option<Value> {
    let behind = prompt.split_once(&format!("\n{heading}:\n"))?.1;
    let mut values = serde_json::Deserializer::from_str(behind).into_iter::<Value>();
    Some(values.next().unwrap().unwrap_or_else(|why| panic!("{heading}: {why}\n{behind}")))
}

/// What an agent was asked to fix, before anything else, which must satisfy its contract.
fn feedback(ran: &ScenarioRun, attempt: &str) -> Value {
    let prompt = ran.prompt(attempt, 1);
    let value =
        section(&prompt, "FEEDBACK_CONTEXT").unwrap_or_else(|| panic!("{attempt}: {prompt}"));
    holds("spec-pipeline/feedback-context", &value);
    let first = "Fix every issue in `issues_to_fix` before anything else";
    assert!(prompt.contains(first), "{attempt}: {prompt}");
    value
}

/// The types of the issues in a feedback.
fn types(feedback: &Value) -> Vec<&str> {
    feedback["issues_to_fix"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect()
}

/// Asserts that a value satisfies a contract.
fn holds(contract: &str, value: &Value) {
    let contract = counterfoil_packs::registry_for(contract).get(contract).unwrap();
    let report = contract.check_strictly(&value.to_string());
    assert!(report.is_accepted(), "{report:#?}");
}
