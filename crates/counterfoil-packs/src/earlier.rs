//! Earlier published versions of contracts, defined by their differences from the current ones.

use crate::contracts::{
    Acceptance, FixResult, GroupedReviewResult, ImplementationResult, ReviewFinding, ReviewResult,
    SessionStatus, TaskPlan, TddPhaseBlock, TeamOutput,
};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch};
use counterfoil_contract::{AgentOutput, Definition};
use serde_json::{Value, json};

pub(crate) fn review_fix() -> Vec<Definition> {
    // A commit without its files could not be verified.
    let commit = || Claim::new(ClaimKind::Commit).required();
    // Required fields without a default, which the origin's own models may leave out.
    let fix = || {
        without_defaults(
            FixResult::definition().version(2),
            &[&["/properties/files_changed"], &FILE_CHANGE[..]].concat(),
        )
    };
    let implementation = || {
        without_defaults(
            ImplementationResult::definition().version(2),
            &[&IMPLEMENTATION[..], &FILE_CHANGE[..]].concat(),
        )
    };
    vec![
        fix(),
        implementation(),
        silent_about_files(GroupedReviewResult::definition().version(1)),
        ReviewFinding::definition().version(1).counter_example(
            "C0204",
            json!({"severity": "minor", "file": "src/cache.py", "line": 0, "message": "The name says nothing"}),
        ),
        fix()
            .version(1)
            .claim("commit_sha", commit())
            .claim("validation_passed", Claim::check("test")),
        implementation()
            .version(1)
            .claim("commits", commit())
            .claim("task_results/*/commit_sha", commit())
            .claim("validation_passed", Claim::check("test")),
        ReviewResult::definition().version(1).claim("files_reviewed", count()),
    ]
}

pub(crate) fn feature_pipeline() -> Vec<Definition> {
    vec![TddPhaseBlock::definition().version(1).claim("tests_added", count())]
}

pub(crate) fn gated_team() -> Vec<Definition> {
    // Planned changes could not be verified.
    let planned = Claim::new(ClaimKind::FilesChanged).matching(ClaimMatch::BestEffort);
    vec![
        open_loops(SessionStatus::definition().version(1)),
        TeamOutput::definition().version(1).claim("artifacts/files_to_create_or_update", planned),
        without_field(
            one_name(TaskPlan::definition().version(1)),
            "/$defs/PlannedTask",
            "non_goals",
        ),
        without_field(Acceptance::definition().version(1), "", "non_goals"),
    ]
}

/// A count without what it counts, which could not be verified.
fn count() -> Claim {
    Claim::new(ClaimKind::Count)
}

/// Fields that got a default, as pointers into the schema.
const FILE_CHANGE: [&str; 2] =
    ["/$defs/FileChange/properties/lines_added", "/$defs/FileChange/properties/lines_removed"];
const IMPLEMENTATION: [&str; 10] = [
    "/properties/task_results",
    "/properties/files_changed",
    "/properties/commits",
    "/$defs/TaskResult/properties/files_changed",
    "/$defs/TaskResult/properties/tests_added",
    "/$defs/TaskResult/properties/duration_ms",
    "/$defs/TaskResult/properties/validation",
    "/$defs/StepValidation/properties/output",
    "/$defs/StepValidation/properties/duration_ms",
    "/$defs/StepValidation/properties/auto_fixed",
];

/// A review that does not say which files were read.
fn silent_about_files(definition: Definition) -> Definition {
    let mut definition = without_field(definition, "", "files_reviewed");
    for example in definition.examples.iter_mut().filter_map(Value::as_object_mut) {
        example.shift_remove("files_reviewed");
    }
    definition
}

fn without_defaults(mut definition: Definition, fields: &[&str]) -> Definition {
    for field in fields {
        let field = definition.schema.as_mut().and_then(|schema| schema.pointer_mut(field));
        if let Some(Value::Object(field)) = field {
            field.shift_remove("default");
        }
    }
    definition
}

/// The status of a session in which loops could have any name.
fn open_loops(mut definition: Definition) -> Definition {
    let counts =
        definition.schema.as_mut().and_then(|schema| schema.pointer_mut("/$defs/RetryCounts"));
    if let Some(Value::Object(counts)) = counts {
        counts.shift_remove("additionalProperties");
    }
    definition.counter_examples.retain(|counter| counter.because != "C0209");
    definition
}

/// A contract in which every field has one name.
fn one_name(mut definition: Definition) -> Definition {
    definition.policy.rename.clear();
    definition
}

/// A contract whose schema lacks an optional field of the object at a pointer.
fn without_field(mut definition: Definition, object: &str, field: &str) -> Definition {
    let fields = definition
        .schema
        .as_mut()
        .and_then(|schema| schema.pointer_mut(&format!("{object}/properties")));
    if let Some(Value::Object(fields)) = fields {
        fields.shift_remove(field);
    }
    definition
}
