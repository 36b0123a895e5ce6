//! The packs, end to end: each scenario is a real run of the binary in a repository of its own,
//! with agents played by a script. Every one is played twice, by the pack that comes along and by
//! the same pack ejected, renamed and run from its folder.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(dead_code, reason = "the harness has more than every pack needs")]

#[path = "../common/git.rs"]
mod git;
#[path = "../common/steady.rs"]
mod steady;
#[path = "../common/told.rs"]
mod told;

mod ran;
mod scene;
mod stage;

mod execution_loop;
mod feature_pipeline;
mod gated_team;
mod review_fix;
mod spec_pipeline;
