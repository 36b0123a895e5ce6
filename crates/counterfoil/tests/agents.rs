//! The real command lines of the agents, driven by the real binary, with a mock of the vendors'
//! APIs behind them: nothing of it leaves the machine. What they are and how they get here stands
//! in testing/README.md.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "agents/mock.rs"]
mod mock;
#[path = "agents/stage.rs"]
mod stage;

#[path = "faults/house.rs"]
#[allow(dead_code, reason = "shared with the tests of faults")]
mod house;

#[path = "agents/channels.rs"]
mod channels;
#[path = "agents/fakes.rs"]
mod fakes;
#[path = "agents/hooks.rs"]
mod hooks;
#[path = "agents/install.rs"]
mod install;
#[path = "agents/packs.rs"]
mod packs;
#[path = "agents/permissions.rs"]
mod permissions;
#[path = "agents/results.rs"]
mod results;
#[path = "agents/stops.rs"]
mod stops;
#[path = "agents/trouble.rs"]
mod trouble;
