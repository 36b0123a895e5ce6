//! Snapshots and workspaces.

mod repositories;
mod snapshot;
mod workspaces;
