//! What the engine does itself in a state, with real repositories: reading files, looking at
//! changes, committing.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod changes;
mod commit;
pub(crate) mod project;
mod read;
