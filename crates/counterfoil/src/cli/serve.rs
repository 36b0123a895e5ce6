//! Arguments of the dashboard and the HTTP API.

use super::StateLocation;
use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    #[command(flatten)]
    pub(crate) location: StateLocation,

    /// Print the address and do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,

    /// The port to listen at [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}

// The dashboard beside a run.
#[derive(Debug, Args)]
pub(crate) struct RunUiArgs {
    /// Show the run in the dashboard while it works, and open its page in the browser; at a terminal, the
    /// dashboard stays open after the run until Ctrl-C
    #[arg(long)]
    pub(crate) ui: bool,

    /// With --ui, print the address and do not open a browser
    #[arg(long, requires = "ui")]
    pub(crate) no_open: bool,

    /// With --ui, the port to listen at [default: any that is free]
    #[arg(long, value_name = "PORT", requires = "ui")]
    pub(crate) port: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// A folder with runs; can be repeated [default: that of the repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Vec<PathBuf>,

    /// The address to listen at. Others than those of this machine need --token-file
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,

    /// The port to listen at
    #[arg(long, value_name = "PORT", default_value_t = 4173)]
    pub(crate) port: u16,

    /// A name by which browsers may call the server, besides its address; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,

    /// The file with the token that programs send [default: a new one in a file of your own]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Only show runs: no answers, no cancelling, no continuing
    #[arg(long, conflicts_with = "allow_start")]
    pub(crate) read_only: bool,

    /// Let clients start runs, which execute commands on this machine
    #[arg(long)]
    pub(crate) allow_start: bool,
}
