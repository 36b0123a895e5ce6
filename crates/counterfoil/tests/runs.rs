//! Workflows as their users meet them: the real binary, agents played by a script, and what is
//! printed where.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "faults/house.rs"]
#[allow(dead_code, reason = "shared with the tests of faults")]
mod house;
#[path = "runs/scene.rs"]
mod scene;
#[path = "common/steady.rs"]
mod steady;
#[path = "common/told.rs"]
mod told;

#[path = "runs/answers.rs"]
mod answers;
#[path = "runs/artifacts.rs"]
mod artifacts;
#[path = "runs/attempts.rs"]
mod attempts;
#[path = "runs/checking.rs"]
mod checking;
#[path = "runs/commands.rs"]
mod commands;
#[path = "runs/fans.rs"]
mod fans;
#[path = "runs/language.rs"]
mod language;
#[path = "runs/listing.rs"]
mod listing;
#[path = "runs/moves.rs"]
mod moves;
#[path = "runs/prompts.rs"]
mod prompts;
#[path = "runs/resuming.rs"]
mod resuming;
#[path = "runs/steps.rs"]
mod steps;
#[path = "runs/usage.rs"]
mod usage;
#[path = "runs/words.rs"]
mod words;
