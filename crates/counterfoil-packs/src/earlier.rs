//! Earlier published versions of contracts, defined by their differences from the current ones.

use crate::contracts::{
    FixResult, ImplementOutput, ImplementationResult, ReviewFinding, ReviewResult, SessionStatus,
    TddPhaseBlock, TeamOutput,
};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch};
use counterfoil_contract::{AgentOutput, Definition};
use serde_json::{Value, json};

pub(crate) fn definitions() -> Vec<Definition> {
    // Claims that could not be verified: a count without what it counts, a commit without its
    // files, planned changes.
    let count = || Claim::new(ClaimKind::Count);
    let commit = || Claim::new(ClaimKind::Commit).required();
    let planned = || Claim::new(ClaimKind::FilesChanged).matching(ClaimMatch::BestEffort);
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
        ReviewFinding::definition().version(1).counter_example(
            "C0204",
            json!({"severity": "minor", "file": "src/cache.py", "line": 0, "message": "The name says nothing"}),
        ),
        open_loops(SessionStatus::definition().version(1)),
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
        TddPhaseBlock::definition().version(1).claim("tests_added", count()),
        without_claim(
            ImplementOutput::definition()
                .version(1)
                .claim("result/files_created", count())
                .claim("result/files_modified", count())
                .claim("result/tests_passed", Claim::check("test")),
            "result/tests_total",
        ),
        TeamOutput::definition().version(1).claim("artifacts/files_to_create_or_update", planned()),
    ]
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

fn without_claim(mut definition: Definition, claim: &str) -> Definition {
    definition.claims.remove(claim);
    definition
}
