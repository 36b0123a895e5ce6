//! `command:` agents, as real processes: small programs that print what real ones were recorded to
//! say.

#![allow(clippy::unwrap_used)]

mod environment;
mod program;
mod settings;
mod streams;
