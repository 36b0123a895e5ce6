//! The tests of the crate that use only its public API, as one binary.

mod examples;
mod laws;
mod mutants;
mod names;
mod shipped;
mod time_budget;
mod workspaces;
