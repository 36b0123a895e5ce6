//! Earlier published versions of the envelopes: agents were asked for timestamps, branches and
//! documents that only the engine knows or that need not exist.
//! In between they could leave them out, but the schema that they were given did not say so.

use super::{
    AnalyzeResult, ChecklistResult, ClarifyResult, Envelope, FeatureReviewResult, ImplementResult,
    PlanResult, ResearchResult, SpecResult, SpecifyResult, TasksResult, TasksToIssuesResult,
    TestResult, error_example, without_error,
};
use counterfoil_contract::claim::{Claim, ClaimKind};
use counterfoil_contract::{AgentOutput, Definition};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The earlier versions of all agents' contracts.
pub(crate) fn earlier_definitions() -> Vec<Definition> {
    let mut all = vec![
        first::<SpecifyResult>(&SPECIFY),
        first::<ClarifyResult>(&[]),
        first::<ResearchResult>(&[]),
        first::<PlanResult>(&PLAN),
        first::<ChecklistResult>(&[]),
        first::<TasksResult>(&[]),
        first::<AnalyzeResult>(&[]),
        first::<TestResult>(&[]),
        first::<FeatureReviewResult>(&[]),
        first::<TasksToIssuesResult>(&[]),
    ];
    for definition in &mut all {
        match definition.contract.as_str() {
            "spec-pipeline/review" => claims_of_items(definition),
            "spec-pipeline/test" => one_criterion(definition),
            _ => {}
        }
    }
    // A count without what it counts, and a check for a count, could not be verified.
    let count = || Claim::new(ClaimKind::Count);
    let implement = || first::<ImplementResult>(&IMPLEMENT);
    let mut oldest = implement()
        .claim("result/files_created", count())
        .claim("result/files_modified", count())
        .claim("result/tests_passed", Claim::check("test"));
    oldest.claims.remove("result/tests_total");
    all.extend([
        implement().version(2),
        oldest,
        without(Envelope::<SpecifyResult>::definition().version(2), &SPECIFY, "x-asked"),
        without(Envelope::<PlanResult>::definition().version(2), &PLAN, "x-asked"),
        without(Envelope::<ImplementResult>::definition().version(3), &IMPLEMENT, "x-asked"),
    ]);
    all
}

/// The fields that agents may leave out.
const SPECIFY: [&str; 2] =
    ["SpecifyResult/properties/branch_name", "SpecifyResult/properties/feature_number"];
const PLAN: [&str; 4] = [
    "PlanResult/properties/research_file",
    "PlanResult/properties/data_model_file",
    "PlanResult/properties/contracts_dir",
    "PlanResult/properties/quickstart_file",
];
const IMPLEMENT: [&str; 1] = ["ImplementResult/properties/tasks_file"];

/// A definition whose fields lack a keyword of their schema.
fn without(mut definition: Definition, fields: &[&str], keyword: &str) -> Definition {
    for field in fields {
        let field = definition
            .schema
            .as_mut()
            .and_then(|schema| schema.pointer_mut(&format!("/$defs/{field}")));
        if let Some(Value::Object(field)) = field {
            field.shift_remove(keyword);
        }
    }
    definition
}

/// The first version of an agent's contract. `defaults` are the fields that got one later.
fn first<R>(defaults: &[&str]) -> Definition
where
    R: SpecResult + Serialize + DeserializeOwned + JsonSchema + 'static,
{
    let definition = without(Envelope::<R>::definition().version(1), defaults, "x-asked");
    let mut definition = without(definition, defaults, "default");
    definition.filled.clear();
    let error = json!({
        "type": "PrerequisiteError", "code": "SPEC_NOT_FOUND", "message": "There is no spec.md to start from",
        "details": {"looked_in": "specs/007-search"}, "recoverable": true,
        "recovery_strategy": "run_prerequisite_agent",
        "suggested_action": {"agent": "specify", "reason": "It writes the spec"}
    });
    let example = error_example::<R>(&error);
    if let Some(counter) = definition.counter_examples.first_mut() {
        counter.value = without_error(example.clone());
    }
    if let Some(first) = definition.examples.first_mut() {
        *first = example;
    }
    definition
}

/// A review's claims about each file that it lists: an empty list claimed nothing.
fn claims_of_items(definition: &mut Definition) {
    for (list, item, kind) in [
        ("files_moved", "to", ClaimKind::FilesRenamed),
        ("files_deleted", "path", ClaimKind::FilesDeleted),
        ("files_created", "path", ClaimKind::FilesAdded),
        ("files_modified", "path", ClaimKind::FilesModified),
    ] {
        definition.claims.remove(&format!("result/changes_made/{list}"));
        definition.claims.insert(format!("result/changes_made/{list}/*/{item}"), Claim::new(kind));
    }
}

/// A test whose examples have one success criterion, which was not tested.
fn one_criterion(definition: &mut Definition) {
    let counter = definition.counter_examples.iter_mut().map(|counter| &mut counter.value);
    for example in definition.examples.iter_mut().chain(counter) {
        if let Some(Value::Array(criteria)) = example.pointer_mut("/result/success_criteria") {
            criteria.truncate(1);
        }
    }
}
