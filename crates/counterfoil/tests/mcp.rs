//! `counterfoil mcp` as its clients meet it: the real binary over pipes, and frames as they write
//! them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/frames.rs"]
mod frames;
#[path = "mcp/people.rs"]
mod people;
#[path = "mcp/results.rs"]
mod results;
#[path = "mcp/tools.rs"]
mod tools;
