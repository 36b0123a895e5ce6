//! The subcommands of the command line, one module for each.

pub(crate) mod ask;
pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod claims;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod contained;
pub(crate) mod contract;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod pack;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod undo;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod workflow;
