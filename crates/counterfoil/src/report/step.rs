//! What `counterfoil show RUN STEP` prints of a step besides its attempts.

use schemars::JsonSchema;
use serde::Serialize;

/// The changes of a step.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepDiff {
    /// The changes as a unified diff.
    pub(crate) diff: String,
}
