//! Arguments about receipts.

use super::{ListFormat, StateLocation};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const RECEIPT_HELP: &str = "\
The files are receipt-RUN.html and receipt-RUN.json. The page needs no network and has no script. Secrets are redacted as in \
`counterfoil export`, and everything that agents wrote is escaped.

Examples:
  counterfoil receipt last                         write the page and its JSON
  counterfoil receipt last --format markdown | gh pr comment --body-file -
  counterfoil receipt verify RECEIPT.json          check digests and the journal
  counterfoil receipt verify RECEIPT.json --rerun  run the checks again, too";

#[derive(Debug, Args)]
#[command(after_help = RECEIPT_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct ReceiptArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ReceiptCommand>,

    #[command(flatten)]
    pub(crate) write: WriteReceiptArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WriteReceiptArgs {
    /// The run: its id, a prefix of it, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,

    /// The folder for the files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,

    /// What is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReceiptFormat,

    #[command(flatten)]
    pub(crate) location: StateLocation,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiptFormat {
    /// A page and a JSON file
    #[default]
    Files,
    /// The JSON document, on stdout
    Json,
    /// A comment for a pull request, on stdout
    Markdown,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptCommand {
    /// Check the digests of a receipt, compare it with the journal, and run its checks again
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyReceiptArgs),
}

const VERIFY_HELP: &str = "\
Exit codes: 0 everything that was checked agrees, 1 the receipt was altered, is not of this journal or is not known to be genuine \
(--require-genuine), 2 usage error, 3 a check has another outcome than recorded.

Anybody can compute the digests of a receipt. That it is genuine is known only if its seal is checked, with the journal of the run \
and its key; --require-genuine fails where it is not known. With --rerun, a command of a receipt without a valid seal is run only \
if it is a check in counterfoil.toml.";

#[derive(Debug, Args)]
pub(crate) struct VerifyReceiptArgs {
    /// The JSON file of a receipt, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Run the checks again, in the repository as it is now
    #[arg(long)]
    pub(crate) rerun: bool,

    /// Fail unless the receipt is known to be genuine: the journal of its run and the key must be here
    #[arg(long)]
    pub(crate) require_genuine: bool,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}
