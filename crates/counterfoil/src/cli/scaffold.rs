//! Arguments of `new` and `schema`.

use crate::schema::Kind;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    #[command(subcommand)]
    pub(crate) command: NewCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NewCommand {
    /// Write a contract, and a workflow of one step and a script to try it
    Contract {
        /// The id, as NAME or NAMESPACE/NAME [default namespace: the name of the folder]
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Write a workflow with its prompt and a script, and a contract unless contracts/NAME.yaml exists
    Workflow {
        /// The name, as NAME or NAMESPACE/NAME of its contract
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        source: SourceArgs,
    },
}

// What the contract is made from, and where it is written.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// A subagent's Markdown file: its instructions become the prompt, and the last JSON block in them
    /// the example
    #[arg(long, value_name = "FILE.md")]
    pub(crate) from_agent: Option<PathBuf>,

    /// A JSON file with a result: the contract gets its fields
    #[arg(long, value_name = "ANSWER.json")]
    pub(crate) from_example: Option<PathBuf>,

    /// Fields of the example that may be missing, such as note,findings.line [default: none; at a
    /// terminal you are asked]
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) optional: Option<Vec<String>>,

    /// The folder in which the files are written [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// What the schema describes; without it, the kinds are listed
    #[arg(value_enum, value_name = "KIND", hide_possible_values = true)]
    pub(crate) kind: Option<Kind>,

    /// Write the schema to a folder instead; without KIND, those of all files that people write
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,

    /// Also write the schemas of all data
    #[arg(long, requires = "write", conflicts_with = "kind")]
    pub(crate) all: bool,
}
