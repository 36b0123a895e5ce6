//! The arguments of `counterfoil check`, and what is known of the attempt that a text is from.

use super::Format;
use super::long_help::CHECK_HELP;
use super::runs::parse_whole;
use clap::{Args, ValueEnum};
use counterfoil_contract::policy::{RepairPolicy, Truncated};
use counterfoil_contract::{Context, Framing, Policy, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArgs {
    /// The texts to check: files, or - for standard input [default: -]
    #[arg(value_name = "FILE", conflicts_with = "batch")]
    pub(crate) files: Vec<PathBuf>,

    /// The contract: ID, ID@VERSION, or a contract file
    #[arg(long, value_name = "ID|FILE", conflicts_with = "schema")]
    pub(crate) contract: Option<String>,

    /// A folder with your own contracts, in addition to `contracts` next to counterfoil.toml
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// A JSON Schema file to validate against, instead of a contract
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,

    /// How the result is framed, with --schema [any-json, fenced-json, json-only, output-block]
    #[arg(long, value_name = "FRAMING", conflicts_with = "contract")]
    pub(crate) framing: Option<Framing>,

    /// Which repairs are allowed, with --schema
    #[arg(long, value_enum, conflicts_with = "contract")]
    pub(crate) repair: Option<RepairArg>,

    /// What happens to a result that is cut off, with --schema and --repair syntax
    #[arg(long, value_enum, conflicts_with = "contract")]
    pub(crate) truncated: Option<TruncatedArg>,

    /// Allow type coercions, with --schema; each is recorded
    #[arg(long, conflicts_with = "contract")]
    pub(crate) coerce: bool,

    #[command(flatten)]
    pub(crate) attempt: AttemptArgs,

    /// Check many texts: files with one JSON object per line, or - for standard input. Each result is
    /// written before the next line is read
    #[arg(long, value_name = "FILE.jsonl", num_args = 1.., conflicts_with_all = ["format", "prompt"])]
    pub(crate) batch: Vec<PathBuf>,

    /// The output format: `human` prints the report to stderr and the value to stdout; the others
    /// print to stdout
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

// What is known of the attempt that a text is from.
#[derive(Debug, Args)]
pub(crate) struct AttemptArgs {
    /// Allow no defaults, repairs, coercions or duplicate keys
    #[arg(long)]
    pub(crate) strict: bool,

    /// The maximum size of the text in bytes [default: 64 MiB]
    #[arg(long, value_name = "N", value_parser = parse_whole::<usize>)]
    pub(crate) max_bytes: Option<usize>,

    /// The maximum nesting depth of the value [default: 128]
    #[arg(long, value_name = "N", value_parser = parse_depth)]
    pub(crate) max_depth: Option<usize>,

    /// The prompt that the agent was given. Text that the agent only quotes from it, or from what the
    /// contract adds to it, is not taken for a result
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,

    /// The folder in which the agent worked: absolute paths inside it become relative [default: the
    /// current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,

    /// A fact about the attempt, for fields that a contract fills in; can be repeated. Names: run,
    /// workflow, step, task, attempt, started, ended, `duration_ms`
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_known)]
    pub(crate) known: Vec<(String, String)>,
}

fn parse_depth(text: &str) -> Result<usize, String> {
    let max = counterfoil_contract::policy::MAX_DEPTH;
    match text.parse::<usize>() {
        Ok(depth) if (1..=max).contains(&depth) => Ok(depth),
        _ => Err(format!("expected a number from 1 to {max}")),
    }
}

impl AttemptArgs {
    /// A policy with the limits given on the command line.
    pub(crate) fn apply_limits(&self, policy: &Policy) -> Policy {
        let mut policy = if self.strict { policy.strictly() } else { policy.clone() };
        policy.max_bytes = self.max_bytes.unwrap_or(policy.max_bytes);
        policy.max_depth = self.max_depth.unwrap_or(policy.max_depth);
        let folder = self.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
        let of = |name: &str| {
            self.known.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        policy.with_context(&Arc::new(Context {
            workspace: counterfoil_workspace::folder_names(&folder),
            run: of("run"),
            workflow: of("workflow"),
            step: of("step"),
            task: of("task"),
            attempt: of("attempt"),
            started: of("started"),
            ended: of("ended"),
            duration_ms: of("duration_ms").and_then(|duration| duration.parse().ok()),
        }))
    }
}

/// Parses `NAME=VALUE`, where the name is one that a contract can use.
fn parse_known(text: &str) -> Result<(String, String), String> {
    const NAMES: [&str; 8] =
        ["run", "workflow", "step", "task", "attempt", "started", "ended", "duration_ms"];
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    if !NAMES.contains(&name) {
        return Err(format!("'{name}' is not one of {}", NAMES.join(", ")));
    }
    if name == "duration_ms" && value.parse::<u64>().is_err() {
        return Err("duration_ms is a number of milliseconds".to_owned());
    }
    if matches!(name, "started" | "ended") && Timestamp::parse(value).is_none() {
        return Err(format!("{name} is a time as in RFC 3339, such as 2026-01-31T12:00:00Z"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RepairArg {
    /// Accept strict JSON only
    None,
    /// Repair syntax errors, and record every repair
    Syntax,
}

impl From<RepairArg> for RepairPolicy {
    fn from(arg: RepairArg) -> Self {
        match arg {
            RepairArg::None => Self::None,
            RepairArg::Syntax => Self::Syntax,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TruncatedArg {
    /// Reject it
    Reject,
    /// Close what is open at its end, and record that
    Accept,
}

impl From<TruncatedArg> for Truncated {
    fn from(arg: TruncatedArg) -> Self {
        match arg {
            TruncatedArg::Reject => Self::Reject,
            TruncatedArg::Accept => Self::Accept,
        }
    }
}
