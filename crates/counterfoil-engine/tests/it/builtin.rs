//! The built-in steps in real repositories: `read`, `changes` and `commit`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod changes;
mod commit;
pub(crate) mod project;
mod read;
