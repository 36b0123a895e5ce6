//! Verification when things go wrong: claims that cannot be, checks that misbehave, repositories in
//! odd states, kills. Each has a clear outcome, and nothing of the user's is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[path = "../common/git.rs"]
mod git;
#[path = "../faults/house.rs"]
#[allow(dead_code, reason = "shared with the tests of faults and kills")]
mod house;
mod scene;

mod checks;
mod conflicts;
mod crashes;
mod paths;
mod protection;
mod repairs;
mod repositories;
mod together;
