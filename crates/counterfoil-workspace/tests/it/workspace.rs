//! Workspaces, with real git: how they open, how work comes back, and that nothing of the user's is
//! touched or lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crashes;
mod crowd;
mod folding;
mod laws;
mod opening;
mod scene;
mod sweeping;
mod undoing;
