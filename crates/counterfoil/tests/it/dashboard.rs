//! The dashboard and the HTTP API, as the real program serves them.

mod beside_run;
mod browser;
pub(crate) mod client;
mod command;
mod remote;
