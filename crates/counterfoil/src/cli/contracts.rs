//! The commands of `counterfoil contract`.

use super::{AttemptArgs, LintFormat, ListFormat};
use clap::{Args, Subcommand, ValueEnum};
use counterfoil_contract::render::vendor::Target;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ContractArgs {
    #[command(subcommand)]
    pub(crate) command: ContractCommand,
}

#[derive(Debug, Args)]
pub(crate) struct ContractSources {
    /// A folder with your own contracts, in addition to `contracts` next to counterfoil.toml
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    /// List contracts: id, version, framing, agent, summary, and the file of your own
    List {
        #[command(flatten)]
        sources: ContractSources,
        /// The output format
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Show a contract
    Show {
        /// ID, ID@VERSION or a contract file
        id: String,
        #[command(flatten)]
        sources: ContractSources,
        /// The output format
        #[arg(long, value_enum, default_value_t)]
        format: ShowFormat,
    },
    /// Print the JSON Schema; how it differs from the contract for the target is listed on stderr
    Schema {
        /// ID, ID@VERSION or a contract file
        id: String,
        #[command(flatten)]
        sources: ContractSources,
        /// The dialect [draft2020, claude, codex, gemini]
        #[arg(long, default_value = "draft2020")]
        target: Target,
    },
    /// Print the prompt suffix that describes the expected result
    Prompt {
        /// ID, ID@VERSION or a contract file
        id: String,
        #[command(flatten)]
        sources: ContractSources,
    },
    /// Print the repair prompt for an invalid output
    Repair {
        /// ID, ID@VERSION or a contract file
        id: String,
        /// The invalid output: a file, or - for standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        #[command(flatten)]
        sources: ContractSources,
        #[command(flatten)]
        attempt: AttemptArgs,
    },
    /// Prove that NEW is an additive successor of OLD, or print a value that breaks
    Diff {
        /// ID, ID@VERSION or a contract file
        old: String,
        /// ID, ID@VERSION or a contract file
        new: String,
        #[command(flatten)]
        sources: ContractSources,
        /// The output format
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Load contract files and report all problems
    Lint {
        /// Contract files, or folders: every contract file in a folder and the folders in it. The id
        /// of a contract of the project stands for its file
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// The output format: `human` prints to stderr, the others to stdout
        #[arg(long, value_enum, default_value_t)]
        format: LintFormat,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// The contract file
    #[default]
    Yaml,
    /// The contract file as JSON
    Json,
    /// The reference page
    Markdown,
}
