//! What can be said about setting up, and by hooks.

use super::ListFormat;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

const EXITS: &str = "Exit codes: 0 nothing is in the way, or no contract is bound; 1 it could not be checked, or was sent back \
often enough: nothing is blocked, and the person sees the words; 2 the result is sent back, with the words on stderr.";

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Hold what the main agent says last to its contract: a hook of `Stop`
    #[command(after_help = EXITS)]
    ClaudeStop(HeldArgs),
    /// Hold what a subagent hands back to its contract: a hook of `SubagentStop`
    #[command(after_help = EXITS)]
    ClaudeSubagentStop(HeldArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HeldArgs {
    /// The contract, as ID or ID@VERSION [default: what counterfoil.toml binds to the agent]
    #[arg(long, value_name = "ID")]
    pub(crate) contract: Option<String>,

    /// A folder with contracts of your own, beside `contracts` next to counterfoil.toml
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Write what is shown, without asking
    #[arg(long)]
    pub(crate) yes: bool,

    /// Take out what an earlier init put in, and nothing else
    #[arg(long)]
    pub(crate) undo: bool,

    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// How to report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}
