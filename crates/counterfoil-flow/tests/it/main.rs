//! The tests of the crate that use only its public API, as one binary.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod check_uses;
mod checks;
mod examples;
mod explain;
mod fan_outs;
mod graph;
mod hostile;
mod laws;
mod mutants;
mod names;
mod reopening;
mod shapes;
mod shipped;
mod stored;
mod templates;
mod time_budget;
mod unknown_fields;
mod verdicts;
mod wire_names;
mod workspaces;
