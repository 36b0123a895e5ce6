//! Verifies what an agent claims against what can be observed: files, commands that are run for the
//! purpose, counts, commits, tests. Protects files that an agent must not change.

pub mod base;
pub mod claims;
pub mod config;
pub mod inventory;
pub mod observed;
pub mod protect;
pub mod wording;
pub mod yaml;
