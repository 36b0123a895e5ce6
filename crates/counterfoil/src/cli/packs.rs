//! Arguments about packs.

use super::{ListFormat, RunUiArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    #[command(subcommand)]
    pub(crate) command: PackCommand,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// A pack, a folder with an ejected pack, or `contracts`
    #[arg(value_name = "PACK|DIR", default_value = "execution-loop")]
    pub(crate) pack: String,

    /// The folder for the repository; it must be empty or not exist [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Print every event of the run, instead of the lines that matter
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// A script for the agents, such as an edited copy of the script in the pack
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) dashboard: RunUiArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PackCommand {
    /// List packs: name, summary, workflows, agents, inputs
    List {
        /// The output format
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Show a pack: workflows, inputs, agents, files and commands
    Show {
        /// The pack
        #[arg(value_name = "PACK")]
        pack: String,
        /// The output format
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Write the files of a pack to a folder for editing
    Eject {
        /// The pack
        #[arg(value_name = "PACK")]
        pack: String,
        /// The folder; it is created if it does not exist
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Write to a folder that is not empty, and overwrite files of the same names
        #[arg(long)]
        force: bool,
    },
}
