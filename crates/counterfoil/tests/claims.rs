//! Claims as their users meet them: in the story of a run, in a table, over all runs, and in a job
//! without a run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "claims/house.rs"]
mod house;

#[path = "claims/shown.rs"]
mod shown;
#[path = "claims/stats.rs"]
mod stats;
#[path = "claims/undo.rs"]
mod undo;
#[path = "claims/verify.rs"]
mod verify;
