//! Whatever goes wrong around a run has a clear outcome, says what and how to go on, and loses
//! nothing that was journaled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[path = "faults/house.rs"]
#[allow(dead_code, reason = "shared with the tests of kills")]
mod house;

#[path = "faults/agents.rs"]
mod agents;
#[path = "faults/artifacts.rs"]
mod artifacts;
#[path = "faults/budgets.rs"]
mod budgets;
#[path = "faults/files.rs"]
mod files;
#[path = "faults/guards.rs"]
mod guards;
#[path = "faults/leftovers.rs"]
mod leftovers;
#[path = "faults/progress.rs"]
mod progress;
#[path = "faults/room.rs"]
mod room;
#[path = "faults/sharing.rs"]
mod sharing;
#[path = "faults/signals.rs"]
mod signals;
#[path = "faults/state.rs"]
mod state;
