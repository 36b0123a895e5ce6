//! The repository that agents work in: git, snapshots of the work tree, worktrees of their own for
//! attempts that write side by side, and merging those back.

pub mod git;
pub mod left;
pub mod tree;
pub mod workspace;
