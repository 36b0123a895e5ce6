//! Arguments about recordings.

use super::StateLocation;
use super::runs::RunFormat;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run: its id, a prefix of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// The folder to write; it must be empty or not exist [default: recording-RUN]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    /// Do not redact secrets; do not share such a recording
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recordings, transcripts (NAME.stdout, NAME.jsonl), plain texts, or folders that contain them
    #[arg(value_name = "DIR|FILE", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Validate against this contract, as ID, ID@VERSION or a file [default: the newest version of
    /// the recorded contract]
    #[arg(long, value_name = "ID")]
    pub(crate) contract: Option<String>,

    /// A folder with your own contracts
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// The program that wrote the transcripts, if they do not say so themselves
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Update the recordings with the new results
    #[arg(long)]
    pub(crate) update: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}
