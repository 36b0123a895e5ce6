//! What can be said about claims.

use super::{Format, Place};
use clap::{Args, Subcommand, ValueEnum};
use counterfoil_engine::ledger::Dimension;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ClaimsArgs {
    #[command(subcommand)]
    pub(crate) command: ClaimsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClaimsCommand {
    /// Say, over all runs, who hands back what is asked and whose word holds
    Stats(StatsArgs),
}

const STATS_HELP: &str = "\
A claim counts with the verdict it got when it was made, in whatever reply. The refutation rate is refuted of verified and \
refuted together; the violation rate is replies without a result that satisfies its contract, of all replies.

Examples:
  counterfoil claims stats                            by contract, field and agent
  counterfoil claims stats --by player,model          which model to trust, whatever its role
  counterfoil claims stats --by contract --since 2026-01-01 --format csv";

#[derive(Debug, Args)]
#[command(after_help = STATS_HELP)]
pub(crate) struct StatsArgs {
    /// What to group by; `agent` is the name in the workflow and who plays it, `player` only the
    /// latter
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',', default_values_t = [By::Contract, By::Field, By::Agent])]
    pub(crate) by: Vec<By>,

    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,

    /// Only runs that began at this time or later: a date, or a date and time, in UTC unless it
    /// says otherwise
    #[arg(long, value_name = "DATE", value_parser = since)]
    pub(crate) since: Option<i64>,

    #[command(flatten)]
    pub(crate) place: Place,

    /// How to report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: StatsFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Contract,
    Field,
    Agent,
    Player,
    Model,
    Version,
}

impl From<By> for Dimension {
    fn from(by: By) -> Self {
        match by {
            By::Contract => Self::Contract,
            By::Field => Self::Field,
            By::Agent => Self::Agent,
            By::Player => Self::Player,
            By::Model => Self::Model,
            By::Version => Self::Version,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// For people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// A line for each group, for spreadsheets
    Csv,
}

const VERIFY_HELP: &str = "\
Exit codes: 0 nothing that counts is refuted, 1 the text has no result that satisfies the contract, 2 usage (no such contract, \
revision or repository), 3 a claim that counts does not hold.

Without --require every refuted claim counts, whatever the contract says should follow from it; what cannot be verified is \
shown and does not count. With --require only the claims it names count, and each of them must be verified: one that is \
stale, unverifiable or not made at all does not hold either.

Examples:
  counterfoil verify answer.txt --contract acme/fix --base origin/main
  counterfoil verify answer.txt --contract acme/fix --base HEAD~1 --check test='cargo test' --require tests_passing
  agent -p \"$PROMPT\" | counterfoil verify --contract acme/fix --base HEAD --format github";

#[derive(Debug, Args)]
#[command(after_help = VERIFY_HELP)]
pub(crate) struct VerifyArgs {
    /// What the agent handed back: a file, or - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,

    /// The contract, as ID, ID@VERSION or a contract file
    #[arg(long, value_name = "ID")]
    pub(crate) contract: String,

    /// The revision that the agent began from; the work tree as it is now is compared with it
    #[arg(long, value_name = "REV")]
    pub(crate) base: String,

    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// A folder with contracts of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// A named check and the command line that it is, over those of counterfoil.toml
    #[arg(long = "check", value_name = "NAME=CMD", value_parser = super::runs::pair)]
    pub(crate) checks: Vec<(String, String)>,

    /// Only this claim counts, and it must be verified; can be given several times
    #[arg(long = "require", value_name = "CLAIM")]
    pub(crate) required: Vec<String>,

    /// Run nothing: claims that need a command are unverifiable
    #[arg(long)]
    pub(crate) no_commands: bool,

    /// How to report: human words about a text that is refused go to stderr, everything else to
    /// stdout
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

const UNDO_HELP: &str = "\
All of it is put back or nothing: a file that somebody changed since stands in the way, and is named (exit code 1). What the \
workspaces of a run brought in is put back newest first.

Examples:
  counterfoil undo last                 everything that the last run brought in
  counterfoil undo last build/login     only what this item did";

#[derive(Debug, Args)]
#[command(after_help = UNDO_HELP)]
pub(crate) struct UndoArgs {
    /// The run: its id, the start of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Only the changes of this workspace, as `counterfoil show` names it
    #[arg(value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,

    #[command(flatten)]
    pub(crate) place: Place,
}

/// A time, in milliseconds since 1970.
fn since(text: &str) -> Result<i64, String> {
    let utc = |at: DateTime| at.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
    let at = text
        .parse::<Timestamp>()
        .ok()
        .or_else(|| text.parse::<DateTime>().ok().and_then(utc))
        .or_else(|| text.parse::<Date>().ok().and_then(|date| utc(date.at(0, 0, 0, 0))));
    at.map(Timestamp::as_millisecond).ok_or_else(|| {
        "expected a date such as 2026-01-31 or a time such as 2026-01-31T08:00Z".to_owned()
    })
}
