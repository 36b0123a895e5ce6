//! Setting up, as people meet it: hooks, `init`, `doctor`.
#![allow(clippy::unwrap_used)]

#[path = "setup/hook.rs"]
mod hook;
#[path = "setup/house.rs"]
mod house;
