//! What can be said to the server that takes results.

use super::Place;
use clap::Args;
use counterfoil_contract::render::vendor::Target;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// A file that says what one attempt of a run hands in, and where it is kept; written by the
    /// engine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["contract", "contracts", "target", "repo", "state"])]
    pub(crate) session: Option<PathBuf>,

    /// A contract that results are held to, as ID or ID@VERSION [default: those that
    /// counterfoil.toml binds to agents]
    #[arg(long, value_name = "ID")]
    pub(crate) contract: Vec<String>,

    /// A folder with contracts of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// The dialect of the tool's schema [draft2020, claude, codex, gemini]
    #[arg(long, default_value = "draft2020")]
    pub(crate) target: Target,

    #[command(flatten)]
    pub(crate) place: Place,
}
