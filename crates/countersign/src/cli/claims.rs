//! What can be said about claims.

use super::Place;
use clap::{Args, Subcommand, ValueEnum};
use countersign_engine::ledger::Dimension;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

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
  countersign claims stats                            by contract, field and agent
  countersign claims stats --by player,model          which model to trust, whatever its role
  countersign claims stats --by contract --since 2026-01-01 --format csv";

#[derive(Debug, Args)]
#[command(after_help = STATS_HELP)]
pub(crate) struct StatsArgs {
    /// What to group by; `agent` is the name in the workflow and who plays it, `player` only the latter
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',', default_values_t = [By::Contract, By::Field, By::Agent])]
    pub(crate) by: Vec<By>,

    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,

    /// Only runs that began at this time or later: a date, or a date and time, in UTC unless it says otherwise
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

/// A time, in milliseconds since 1970.
fn since(text: &str) -> Result<i64, String> {
    let utc = |at: DateTime| at.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
    let at = text
        .parse::<Timestamp>()
        .ok()
        .or_else(|| text.parse::<DateTime>().ok().and_then(utc))
        .or_else(|| text.parse::<Date>().ok().and_then(|date| utc(date.at(0, 0, 0, 0))));
    at.map(Timestamp::as_millisecond)
        .ok_or_else(|| "expected a date such as 2026-01-31 or a time such as 2026-01-31T08:00Z".to_owned())
}
