//! The dashboard and the HTTP API, as the real program serves them.

mod browser;
pub(crate) mod client;
mod command;
mod remote;
