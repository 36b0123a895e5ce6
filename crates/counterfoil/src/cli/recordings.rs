//! What can be said about recordings.

use super::Place;
use super::runs::RunFormat;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run: its id, the start of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// The folder to write, which must be new or empty [default: recording-RUN]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) place: Place,

    /// Leave secrets in: for your own eyes only
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recordings, transcripts (NAME.stdout, NAME.jsonl), plain texts, or folders with such
    #[arg(value_name = "DIR|FILE", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Judge by this contract, as ID, ID@VERSION or a file [default: the newest of the id that was
    /// recorded]
    #[arg(long, value_name = "ID")]
    pub(crate) contract: Option<String>,

    /// A folder with contracts of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// The program whose events transcripts hold, where nothing else says so
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Write what comes out now into the recordings
    #[arg(long)]
    pub(crate) update: bool,

    /// How to report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}
