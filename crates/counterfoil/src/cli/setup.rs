//! Arguments of `init`, `doctor` and `hook`.

use super::ListFormat;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

const EXIT_CODES: &str = "Exit codes: 0 the result is valid, or the agent has no contract; 1 the result could not be checked or \
was sent back too often: nothing is blocked, and the user sees the message; 2 the result is sent back, with the message on stderr.";

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Validate the last message of the main agent: a `Stop` hook
    #[command(after_help = EXIT_CODES)]
    ClaudeStop(HookCheckArgs),
    /// Validate the result of a subagent: a `SubagentStop` hook
    #[command(after_help = EXIT_CODES)]
    ClaudeSubagentStop(HookCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HookCheckArgs {
    /// The contract, as ID or ID@VERSION [default: the contract that counterfoil.toml
    /// assigns to the agent]
    #[arg(long, value_name = "ID")]
    pub(crate) contract: Option<String>,

    /// A folder with your own contracts, in addition to `contracts` next to counterfoil.toml
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Write the changes without asking
    #[arg(long)]
    pub(crate) yes: bool,

    /// Bind an agent to a contract; can be repeated
    #[arg(long, value_name = "AGENT=CONTRACT", value_parser = parse_binding, conflicts_with = "undo")]
    pub(crate) bind: Vec<(String, String)>,

    /// Remove what an earlier init added, and nothing else
    #[arg(long)]
    pub(crate) undo: bool,

    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
}

fn parse_binding(text: &str) -> Result<(String, String), String> {
    let (agent, contract) = text.split_once('=').ok_or("write AGENT=CONTRACT")?;
    if agent.trim().is_empty() || contract.trim().is_empty() {
        return Err("write AGENT=CONTRACT".to_owned());
    }
    Ok((agent.to_owned(), contract.to_owned()))
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}
