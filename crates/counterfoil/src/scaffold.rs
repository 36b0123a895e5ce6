//! The files of a new contract or workflow. No I/O.
//!
//! `names` derives the names, `infer` a schema from an example, `claims` what can be verified of it,
//! `success` which of its fields say that the work succeeded, `agent_file` reads a subagent's Markdown file, `files` writes the texts, and `taken` says what they
//! have of the subagent's file. A scaffold is checked as a whole before any file is written.

mod agent_file;
mod claims;
mod files;
mod infer;
mod names;
mod reply;
mod success;
mod taken;

pub(crate) use agent_file::{AgentFile, parse as parse_agent_file};
pub(crate) use files::{Scaffold, contract_files, workflow_files};
pub(crate) use infer::{field_paths, schema_of};
pub(crate) use names::{Subject, names};
pub(crate) use taken::{BlockUse, taken_from};
