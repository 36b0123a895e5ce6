//! Integration tests of the command line: the real binary, in temporary projects.
//!
//! All modules are one binary, because each binary links the whole engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod architecture;
mod attacks;
mod claims;
mod cli;
mod containment;
mod dashboard;
mod docs;
mod faults;
mod first_steps;
mod folders_and_pipes;
mod journals;
mod kill;
mod logs;
mod mcp;
mod messages;
mod pack_commands;
mod packs;
mod project_contracts;
mod receipts;
mod recordings;
mod renamed;
mod runs;
mod schemas;
mod setup;
mod shell_project;
mod shipped;
mod small_disk;
mod state_folder;
#[cfg(feature = "opentelemetry")]
mod telemetry;
mod terminal;
mod verification;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_counterfoil");
