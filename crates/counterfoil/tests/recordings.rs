//! Recordings as their users meet them: a run that is exported, what is in the folder, and what
//! replaying it says.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "runs/scene.rs"]
#[allow(dead_code, reason = "shared with the tests of runs")]
mod scene;
#[path = "common/steady.rs"]
mod steady;
#[path = "common/told.rs"]
#[allow(dead_code, reason = "shared with the tests of runs")]
mod told;

#[path = "recordings/bad.rs"]
mod bad;
#[path = "recordings/runs.rs"]
mod runs;
#[path = "recordings/secrets.rs"]
mod secrets;
#[path = "recordings/streams.rs"]
mod streams;
