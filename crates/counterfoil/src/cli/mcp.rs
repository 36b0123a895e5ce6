//! Arguments of the MCP server.

use super::StateLocation;
use clap::Args;
use counterfoil_contract::render::vendor::Target;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The session file of an attempt, written by the engine: the expected result and where to
    /// store it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["contract", "contracts", "target", "repo", "state"])]
    pub(crate) session: Option<PathBuf>,

    /// A contract for results, as ID or ID@VERSION [default: the contracts that counterfoil.toml
    /// assigns to agents]
    #[arg(long, value_name = "ID")]
    pub(crate) contract: Vec<String>,

    /// A folder with your own contracts
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// The dialect of the tool's schema [draft2020, claude, codex, gemini]
    #[arg(long, default_value = "draft2020")]
    pub(crate) target: Target,

    #[command(flatten)]
    pub(crate) location: StateLocation,
}
