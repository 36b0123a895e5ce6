//! Verifies the claims of an agent against observations: changed files, commands, counts, commits
//! and tests. Decides which changes an agent must not make.

pub mod baseline;
mod check_files;
pub mod claims;
pub mod config;
pub mod inventory;
pub mod protect;
mod read_file;
mod relative_path;
pub mod unfinished;
pub mod workspace_diff;
pub mod yaml;
