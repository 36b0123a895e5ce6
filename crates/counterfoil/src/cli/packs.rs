//! What can be said about packs.

use super::ListFormat;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    #[command(subcommand)]
    pub(crate) command: PackCommand,
}

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// A pack, a folder with an ejected pack, or `contracts`
    #[arg(value_name = "PACK|DIR", default_value = "execution-loop")]
    pub(crate) pack: String,

    /// Where to make the repository: a folder that is empty or not there [default: in the
    /// temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Another script to play the agents by, such as an edited copy of the pack's own
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PackCommand {
    /// List packs: name, summary, workflows, agents, inputs
    List {
        /// How to list
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Show a pack: its workflows, what they take, who works in them, its files, how to run it
    Show {
        /// The pack
        #[arg(value_name = "PACK")]
        pack: String,
        /// How to show it
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Write the files of a pack into a folder, to be edited there
    Eject {
        /// The pack
        #[arg(value_name = "PACK")]
        pack: String,
        /// The folder; it is made if it is not there
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Write into a folder that is not empty, over files of the same names
        #[arg(long)]
        force: bool,
    },
}
