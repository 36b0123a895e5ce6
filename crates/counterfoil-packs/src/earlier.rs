//! Earlier published versions of contracts, defined by their differences from the current ones.

use crate::contracts::{
    FixResult, ImplementOutput, ImplementationResult, ReviewResult, TddPhaseBlock, TeamOutput,
};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch};
use counterfoil_contract::{AgentOutput, Definition};

pub(crate) fn definitions() -> Vec<Definition> {
    // Claims that could not be verified: a count without what it counts, a commit without its
    // files, planned changes.
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

fn without_claim(mut definition: Definition, claim: &str) -> Definition {
    definition.claims.remove(claim);
    definition
}
