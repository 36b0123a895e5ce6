//! Snapshots and workspaces.

mod snapshot;
mod workspaces;
