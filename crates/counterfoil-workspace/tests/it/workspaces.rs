//! Workspaces, with real git: how they open, how work comes back, and that nothing of the user's is
//! touched or lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod concurrent;
mod crashes;
mod fixture;
mod laws;
mod merging;
mod opening;
mod sweeping;
mod undoing;
