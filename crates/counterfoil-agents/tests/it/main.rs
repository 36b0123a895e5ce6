//! Agents: adapters over recorded streams, and commands as real processes.

mod agents;
mod command;
