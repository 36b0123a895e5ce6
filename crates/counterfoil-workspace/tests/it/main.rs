//! Snapshots and workspaces.

mod tree;
mod workspace;
