//! The arguments of the hidden command `contained`. A run writes them, nobody else.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ContainedArgs {
    /// Say what Landlock can do here
    #[arg(long)]
    pub(crate) probe: bool,
    /// A file or folder that the command may write
    #[arg(long = "write")]
    pub(crate) writes: Vec<PathBuf>,
    /// A file or folder in a writable one that the command may only read
    #[arg(long = "read")]
    pub(crate) reads: Vec<PathBuf>,
    /// A folder that is replaced by an empty one
    #[arg(long = "private")]
    pub(crate) private: Vec<PathBuf>,
    /// A folder that the command does not see
    #[arg(long = "hide-folder")]
    pub(crate) hidden_folders: Vec<PathBuf>,
    /// A file that the command does not see
    #[arg(long = "hide-file")]
    pub(crate) hidden_files: Vec<PathBuf>,
    /// Mount the places in name spaces
    #[arg(long)]
    pub(crate) mounts: bool,
    /// Forbid TCP
    #[arg(long)]
    pub(crate) no_network: bool,
    /// The working directory
    #[arg(long, default_value = ".")]
    pub(crate) cwd: PathBuf,
    /// The command and its arguments
    #[arg(last = true)]
    pub(crate) argv: Vec<OsString>,
}
