//! The programs that can act as agents: how each one is called, what its output means, which of
//! its results counts, and what is stored of it.
//!
//! To add a vendor's command-line program, add a module to `adapters/`, implement
//! [`adapters::Adapter`] in it and list it in [`adapters::adapters`].

pub mod acp;
pub mod adapters;
pub mod agent;
pub mod assignment;
pub mod check_service;
pub mod cli_runner;
pub mod command_agent;
pub mod config;
pub mod environment;
mod interruption;
pub mod line_buffer;
pub mod prices;
pub mod recording;
pub mod redact;
pub mod result_selection;
pub mod script_agent;
pub mod spec;
mod stderr_end;
pub mod submissions;
mod termination;
pub mod tool_calls;
pub mod trace_context;
pub mod transcript;
