//! Workspaces with real git: how they open, how work is merged back, and that no file of the user
//! is touched or lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod concurrent;
mod crashes;
mod fixture;
mod in_repository;
mod laws;
mod merging;
mod opening;
mod restoring;
mod sweeping;
mod undoing;
