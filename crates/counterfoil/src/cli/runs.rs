//! Arguments about workflows and runs.

use super::{LintFormat, ListFormat, RunUiArgs};
use clap::{Args, Subcommand, ValueEnum};
use counterfoil_flow::Budget;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Args)]
pub(crate) struct WorkflowArgs {
    #[command(subcommand)]
    pub(crate) command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Report all problems of workflows
    Check {
        /// Workflow files, names of packs, or folders: every workflow file in a folder and the folders
        /// in it
        #[arg(required = true, value_name = "WORKFLOW")]
        files: Vec<PathBuf>,
        /// A folder with your own contracts
        #[arg(long, value_name = "DIR")]
        contracts: Vec<PathBuf>,
        /// The output format: `human` prints to stderr, the others to stdout
        #[arg(long, value_enum, default_value_t)]
        format: LintFormat,
    },
    /// Draw a workflow
    Graph {
        /// The name of a pack, or a workflow file
        #[arg(value_name = "WORKFLOW")]
        workflow: PathBuf,
        /// A folder with your own contracts
        #[arg(long, value_name = "DIR")]
        contracts: Vec<PathBuf>,
        /// The output format
        #[arg(long, value_enum, default_value_t)]
        format: GraphFormat,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Mermaid, for Markdown
    #[default]
    Mermaid,
    /// DOT, for Graphviz
    Dot,
    /// An SVG image
    Svg,
}

/// The repository and the folder with its runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct StateLocation {
    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// The folder with the runs [default: as in counterfoil.toml, else in ~/.local/state/counterfoil]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

// A server that is asked instead of a folder.
#[derive(Clone, Debug, Args)]
pub(crate) struct RemoteArgs {
    /// Ask the server at this address, such as `http://127.0.0.1:4173`, instead of reading a folder. Its token
    /// is found by itself for a server of yours on this machine, else in `COUNTERFOIL_SERVER_TOKEN`
    #[arg(long, value_name = "URL", conflicts_with_all = ["repo", "state"])]
    pub(crate) server: Option<String>,
}

// What a run may spend, from its start on.
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// The maximum cost of the whole run
    #[arg(long, value_name = "USD", value_parser = parse_amount)]
    max_cost: Option<f64>,

    /// The maximum number of tokens of the whole run, input and output together
    #[arg(long, value_name = "N", value_parser = parse_count)]
    max_tokens: Option<u64>,

    /// The maximum duration of the whole run, such as 90s, 30m or 8h
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    max_time: Option<u64>,

    /// The maximum number of iterations of the whole run
    #[arg(long, value_name = "N", value_parser = parse_count)]
    max_iterations: Option<u64>,

    /// The maximum number of attempts of the whole run
    #[arg(long, value_name = "N", value_parser = parse_count)]
    max_attempts: Option<u64>,
}

impl BudgetArgs {
    pub(crate) fn budget(&self) -> Budget {
        Budget {
            tokens: self.max_tokens,
            cost_usd: self.max_cost,
            time_ms: self.max_time,
            iterations: self.max_iterations,
            attempts: self.max_attempts,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The name of a pack (see `counterfoil pack list`), or a workflow file
    #[arg(value_name = "WORKFLOW")]
    pub(crate) workflow: PathBuf,

    /// The input `task`: text, or @FILE to read it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) task: Option<String>,

    /// Another input; can be repeated
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) inputs: Vec<(String, String)>,

    /// Fail the run if findings of this severity or higher remain (the input `fail_on`)
    #[arg(long, value_name = "SEVERITY|never")]
    pub(crate) fail_on: Option<String>,

    /// The program for all agents: claude, codex, gemini, acp:CMDLINE, command:CMDLINE or script:FILE; or
    /// NAME=SPEC for one agent [default: as in counterfoil.toml]
    #[arg(long = "agent", value_name = "[NAME=]SPEC")]
    pub(crate) agents: Vec<String>,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    /// A folder with your own contracts
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) budget: BudgetArgs,

    /// Refuse to start if cost or tokens are limited and it cannot be known what an agent uses
    #[arg(long)]
    pub(crate) strict: bool,

    /// Require every claim to be verified, including those that the workflow only records
    #[arg(long)]
    pub(crate) strict_claims: bool,

    /// Run this command when the run ends, asks a question or stalls: the event is in its environment
    /// (`COUNTERFOIL_EVENT`, `COUNTERFOIL_RUN`, `COUNTERFOIL_TEXT`) and on its standard input as JSON;
    /// `desktop` shows a notification
    #[arg(long, value_name = "CMD")]
    pub(crate) notify: Option<String>,

    /// Resume the last run of this workflow if it has not ended
    #[arg(long)]
    pub(crate) resume_last: bool,

    #[command(flatten)]
    pub(crate) dashboard: RunUiArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Text for people; of a run, printed to stderr while it goes on
    #[default]
    Human,
    /// One JSON object
    Json,
    /// `JUnit` XML for test reports
    Junit,
    /// Workflow commands of GitHub Actions
    Github,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run: its id, a prefix of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// The program for all agents, or NAME=SPEC for one agent, from now on [default: as before]
    #[arg(long = "agent", value_name = "[NAME=]SPEC")]
    pub(crate) agents: Vec<String>,

    /// Reason for resuming; recorded with your name if the run had ended
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) because: String,

    /// The new value of an input; can be repeated
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) inputs: Vec<(String, String)>,

    /// The new maximum of a limit of the workflow; can be repeated
    #[arg(long = "limit", value_name = "NAME=N", value_parser = parse_limit)]
    pub(crate) limits: Vec<(String, u64)>,

    /// Run this command when the run ends, asks a question or stalls, as with `run`
    #[arg(long, value_name = "CMD")]
    pub(crate) notify: Option<String>,

    /// Accept counterfoil.toml even though it changed while an agent was running
    #[arg(long)]
    pub(crate) accept_config: bool,

    #[command(flatten)]
    pub(crate) dashboard: RunUiArgs,

    #[command(flatten)]
    pub(crate) budget: BudgetArgs,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

#[derive(Debug, Args)]
pub(crate) struct RunRef {
    /// The run: its id, a prefix of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

const CLEAN_HELP: &str = "\
The journal is kept: `runs`, `show` and `claims` still know the runs. Without its transcripts, a run cannot be exported, and without \
its patches it cannot be undone. A run that has not ended is never touched.

Examples:
  counterfoil clean --dry-run           what would be removed
  counterfoil clean --older-than 7d     of runs that ended more than a week ago
  counterfoil clean --older-than 0d --max-size 1G
                                        until what is left takes less than 1 GiB";

#[derive(Debug, Args)]
#[command(after_help = CLEAN_HELP)]
pub(crate) struct CleanArgs {
    /// Remove files of runs whose last event is older than this, such as 12h, 30d or 8w
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = parse_age)]
    pub(crate) older_than: u64,

    /// Stop as soon as less than this is used, such as 500M or 2G; the oldest runs go first
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_size: Option<u64>,

    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) location: StateLocation,
}

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(flatten)]
    pub(crate) location: StateLocation,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// The maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_whole::<usize>)]
    pub(crate) limit: usize,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its id, a prefix of it, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,

    /// A step of the run: the path of its state, an unambiguous part of it, or PATH#N for the N-th visit
    /// [default: the last visit]
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<String>,

    /// Print the prompts of the step
    #[arg(long, requires = "step", group = "part")]
    pub(crate) prompt: bool,

    /// Print the last reply of the step, as the agent wrote it
    #[arg(long, requires = "step", group = "part")]
    pub(crate) reply: bool,

    /// Print the result of the step, as JSON
    #[arg(long, requires = "step", group = "part")]
    pub(crate) result: bool,

    /// Print what the step changed in the files, as a unified diff
    #[arg(long, requires = "step", group = "part")]
    pub(crate) diff: bool,

    /// Print every event with its details, instead of one screen
    #[arg(long, group = "part", conflicts_with = "step")]
    pub(crate) timeline: bool,

    /// Print only what went wrong, and what could not be checked
    #[arg(long, group = "part", conflicts_with = "step")]
    pub(crate) trouble: bool,

    /// Print what happens until the run ends or waits
    #[arg(long, group = "part", conflicts_with = "step")]
    pub(crate) follow: bool,

    /// Print the journal, one event per line
    #[arg(long, group = "part", conflicts_with = "step")]
    pub(crate) events: bool,

    /// Print each claim with the observed value, the verdict and the evidence
    #[arg(long, group = "part")]
    pub(crate) claims: bool,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The run: its id, a prefix of it, or `last`; without it, the open questions of all runs are listed
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// The id of the question, as in `show`
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Option<String>,

    /// The answer: one of the choices, or a text
    #[arg(value_name = "ANSWER")]
    pub(crate) answer: Option<String>,

    /// A comment on the choice, for the agents that continue
    #[arg(value_name = "COMMENT")]
    pub(crate) words: Option<String>,

    /// Resume the run immediately, print its outcome and end with its exit code; with --server, it runs
    /// in a process of its own on the machine of the server
    #[arg(long)]
    pub(crate) resume: bool,

    /// Run this command when the resumed run ends, asks a question or stalls, as with `run`
    #[arg(long, value_name = "CMD", requires = "resume", conflicts_with = "server")]
    pub(crate) notify: Option<String>,

    #[command(flatten)]
    pub(crate) location: StateLocation,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// The output format, with --resume
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn parse_limit(text: &str) -> Result<(String, u64), String> {
    let (name, max) = parse_pair(text).map_err(|_| "expected NAME=N".to_owned())?;
    let max = max.parse().map_err(|_| format!("'{max}' is not a whole number"))?;
    Ok((name, max))
}

fn parse_amount(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("expected an amount such as 2.50".to_owned()),
    }
}

/// Parses a number of which at least one is needed.
fn parse_count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("expected a whole number of at least 1".to_owned()),
    }
}

pub(super) fn parse_whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

fn parse_duration(text: &str) -> Result<u64, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    parsed
        .and_then(|duration| u64::try_from(duration.as_millis()).ok())
        .filter(|ms| *ms > 0)
        .ok_or_else(|| "expected a duration such as 90s, 30m or 8h".to_owned())
}

/// Parses an age into milliseconds.
fn parse_age(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 24 * 7,
        _ => return Err("expected an age such as 12h, 30d or 8w".to_owned()),
    };
    let number: u64 =
        number.parse().map_err(|_| "expected an age such as 12h, 30d or 8w".to_owned())?;
    number.checked_mul(hours * 3_600_000).ok_or_else(|| "the age is too large".to_owned())
}

/// Parses a size into bytes.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size such as 500M or 2G".to_owned();
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let shift = match unit {
        "" | "B" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes() {
        for (text, hours) in [("12h", Some(12)), ("30d", Some(720)), ("1w", Some(168))] {
            assert_eq!(parse_age(text).ok(), hours.map(|hours: u64| hours * 3_600_000), "{text}");
        }
        for text in ["", "d", "3", "-1d", "1y", "99999999999999999999d", "9999999999999999999w"] {
            assert!(parse_age(text).is_err(), "{text}");
        }
        for (text, bytes) in [("10", 10), ("1K", 1024), ("2M", 2 << 20), ("3G", 3 << 30)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1", "1T", "99999999999999999999"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
