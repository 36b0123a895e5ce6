//! Agents: adapters over recorded streams.

mod agents;
