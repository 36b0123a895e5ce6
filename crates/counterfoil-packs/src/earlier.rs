//! Versions of contracts that were published and are not the current ones, told by what they said
//! otherwise.

use crate::contracts::{
    FixResult, ImplementOutput, ImplementationResult, ReviewResult, TddPhaseBlock, TeamOutput,
};
use counterfoil_contract::{AgentOutput, Claim, ClaimKind, ClaimMatch, Definition};

pub(crate) fn definitions() -> Vec<Definition> {
    // Claims that nothing could be held against: a number without what it counts, a commit without
    // its files, a plan.
    let count = || Claim::new(ClaimKind::Count);
    let commit = || Claim::new(ClaimKind::Commit).required();
    let planned = || Claim::new(ClaimKind::FilesChanged).matching(ClaimMatch::BestEffort);
    vec![
        FixResult::definition()
            .version(1)
            .claim("commit_sha", commit())
            .claim("validation_passed", Claim::check("test")),
        ImplementationResult::definition()
            .version(1)
            .claim("commits", commit())
            .claim("task_results/*/commit_sha", commit())
            .claim("validation_passed", Claim::check("test")),
        ReviewResult::definition().version(1).claim("files_reviewed", count()),
        TddPhaseBlock::definition().version(1).claim("tests_added", count()),
        without(
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

fn without(mut definition: Definition, claim: &str) -> Definition {
    definition.claims.remove(claim);
    definition
}
