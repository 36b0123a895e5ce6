//! The packs, end to end: each scenario is a real run of the binary in a repository of its own,
//! with a script for the agents.
//!
//! One scenario of each workflow also runs with the pack ejected and renamed, and must end the same
//! way. With `COUNTERFOIL_ALL_EJECTED=1` all scenarios do so, except the slow ones.
mod project;
mod run;
mod scenario;

mod execution_loop;
mod feature_pipeline;
mod gated_team;
mod review_fix;
mod spec_pipeline;
