//! Arguments about claims.

use super::{Format, StateLocation};
use clap::{Args, Subcommand, ValueEnum};
use counterfoil_engine::ledger::Dimension;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ClaimsArgs {
    #[command(subcommand)]
    command: Option<ClaimsCommand>,

    #[command(flatten)]
    stats: StatsArgs,
}

impl ClaimsArgs {
    /// The arguments of `claims stats`, which `claims` alone stands for.
    pub(crate) fn stats(&self) -> &StatsArgs {
        match &self.command {
            Some(ClaimsCommand::Stats(args)) => args,
            None => &self.stats,
        }
    }
}

#[derive(Debug, Subcommand)]
enum ClaimsCommand {
    /// Show violation and refutation rates by contract, field and agent
    Stats(StatsArgs),
}

const STATS_HELP: &str = "\
Every claim of every reply counts, with the verdict it got at that time. The refutation rate is the share of refuted claims among \
verified and refuted ones. The violation rate is the share of replies without a valid result among all replies.

Examples:
  counterfoil claims stats                    by contract, field and agent
  counterfoil claims stats --by player,model  compare models across all roles
  counterfoil claims stats --by contract --since 2026-01-01 --format csv";

#[derive(Debug, Args)]
#[command(after_help = STATS_HELP)]
pub(crate) struct StatsArgs {
    /// The dimensions to group by; `agent` is the agent of the workflow and its program, `player`
    /// only the program
    #[arg(long, value_enum, value_name = "DIMENSION,…", value_delimiter = ',', default_values_t = [By::Contract, By::Field, By::Agent])]
    pub(crate) by: Vec<By>,

    /// Include only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,

    /// Include only runs that started at this time or later: a date, or a date and time; UTC unless
    /// it has an offset
    #[arg(long, value_name = "DATE", value_parser = parse_since)]
    pub(crate) since: Option<i64>,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    /// The output format
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
    /// Text for people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// One line per group, for spreadsheets
    Csv,
}

const VERIFY_HELP: &str = "\
Exit codes:
  0    no claim failed
  1    the text has no valid result
  2    usage error: an unknown contract or repository, or a base that the clone
       does not have
  3    a claim failed; with --strict also: work is unfinished, or that is not
       known of a file
  130  stopped by a signal

A claim that the contract requires (policy: require) must be verified, if the result makes it. Of the others, every refuted \
claim fails; unverifiable claims are listed and do not fail. With --require, only the named ones of these can fail, and each \
of them must be verified: a stale, unverifiable or missing claim fails. With --strict, unfinished work fails, too; files in \
languages in which it is not found are only named. Each format lists what makes the exit code 3.

The base is the commit from before the agent worked. HEAD is wrong if the agent can commit: it is the agent's own commit then, \
so nothing seems to have changed. In CI, use the merge base or the base commit that the event names, and fetch the history: a \
shallow clone (`fetch-depth: 1`) does not have it.

`verify` makes no claims `protected` and `tests`: it does not notice deleted tests. `counterfoil run` does. With `verify`, \
declare a claim of kind count with figure tests-removed, and require it; --strict also reports tests that are skipped now.

Examples:
  # Before the agent works, remember the commit; afterwards, verify its answer.
  base=$(git rev-parse HEAD)
  counterfoil verify answer.txt --contract execution-loop/implementer \\
    --base \"$base\"

  # In a pull request: annotations on GitHub, and no unfinished work.
  counterfoil verify answer.txt --contract execution-loop/implementer \\
    --strict --format github \\
    --base \"$(git merge-base origin/main HEAD)\"

  # Run the tests, and require the claim about them.
  counterfoil verify qa.txt --contract execution-loop/qa --base \"$base\" \\
    --check test='make test' --require test_results";

#[derive(Debug, Args)]
#[command(after_help = VERIFY_HELP)]
pub(crate) struct VerifyArgs {
    /// The output of the agent: a file, or - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,

    /// The contract, as ID, ID@VERSION or a contract file
    #[arg(long, value_name = "ID")]
    pub(crate) contract: String,

    /// The commit that the agent started from; it is compared with the current work tree
    #[arg(long, value_name = "REV")]
    pub(crate) base: String,

    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// A folder with your own contracts
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// A named check and its command line; overrides the one in counterfoil.toml
    #[arg(long = "check", value_name = "NAME=CMD", value_parser = super::runs::parse_pair)]
    pub(crate) checks: Vec<(String, String)>,

    /// A claim that must be verified; other claims cannot fail. Can be repeated
    #[arg(long = "require", value_name = "CLAIM")]
    pub(crate) required: Vec<String>,

    /// A file that steers a check and that the agent may change, such as its script: the check is run
    /// as it is now. Otherwise it is also run as it was at the base. Can be repeated
    #[arg(long = "may-change", value_name = "PATH")]
    pub(crate) may_change: Vec<String>,

    /// Also fail if the changes leave work unfinished: placeholders, functions without a body, comments
    /// that put work off (TODO, FIXME, "for now") and skipped tests that were not there at the base. A
    /// file that cannot be examined fails, too; one in another language is only named
    #[arg(long)]
    pub(crate) strict: bool,

    /// Run no commands; claims that need one are unverifiable
    #[arg(long)]
    pub(crate) no_commands: bool,

    /// The output format: `human` prints validation errors to stderr; everything else is printed to
    /// stdout
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

const UNDO_HELP: &str = "\
Restores the files that agents changed in the repository, and those that were merged from worktrees, as they were before. Either all \
changes are reverted or none: if a file has changed since, nothing is reverted and the file is listed (exit code 1). The newest changes \
are reverted first. The run must have ended, and cannot be resumed then.

With STEP, only the changes of this step are reverted: those of all its visits. STEP#N is its N-th visit, with all attempts in it.

Not reverted: commits (their files are; use `git revert` for the commits), files that git ignores, what commands of the workflow changed, \
and what several agents changed in the same folder at the same time.

Examples:
  counterfoil undo last                 all changes of the last run
  counterfoil undo last implement       those of all visits of a step
  counterfoil undo last implement#2     those of its second visit
  counterfoil undo last build/login     those of this item";

#[derive(Debug, Args)]
#[command(after_help = UNDO_HELP)]
pub(crate) struct UndoArgs {
    /// The run: its id, a prefix of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Revert only this step or item, by its name in `counterfoil show`: all its visits, or one of
    /// them with STEP#N
    #[arg(value_name = "STEP")]
    pub(crate) workspace: Option<String>,

    #[command(flatten)]
    pub(crate) location: StateLocation,
}

/// Parses a time into milliseconds since 1970.
fn parse_since(text: &str) -> Result<i64, String> {
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
