//! A Model Context Protocol (MCP) server over standard input and output. An agent submits its
//! result while it works and gets the validation errors within the same turn.
//!
//! `tools` defines the tools and handles calls, `arguments` decodes their arguments, `response`
//! renders the replies; none of them does I/O. `message` parses a line, `transport` reads and
//! writes lines, and `serve` connects them to the protocol implementation of `rmcp`.

mod arguments;
mod message;
mod response;
mod serve;
mod tools;
mod transport;

pub(crate) use serve::{SubmissionStore, serve};
pub(crate) use tools::SubmissionTools;
