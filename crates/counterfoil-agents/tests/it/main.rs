//! Agents: adapters over recorded streams, commands as real processes, and a scripted agent of the
//! Agent Client Protocol.

mod acp;
mod agents;
mod command;
