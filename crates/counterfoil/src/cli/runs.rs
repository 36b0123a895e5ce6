//! What can be said about workflows and runs.

use super::ListFormat;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct WorkflowArgs {
    #[command(subcommand)]
    pub(crate) command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Say everything that is wrong with workflows
    Check {
        /// Workflow files, or names of packs
        #[arg(required = true, value_name = "WORKFLOW")]
        files: Vec<PathBuf>,
        /// A folder with contracts of your own
        #[arg(long, value_name = "DIR")]
        contracts: Vec<PathBuf>,
        /// How to report
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Draw a workflow
    Graph {
        /// A pack's name, or a workflow file
        #[arg(value_name = "WORKFLOW")]
        workflow: PathBuf,
        /// A folder with contracts of your own
        #[arg(long, value_name = "DIR")]
        contracts: Vec<PathBuf>,
        /// How to draw it
        #[arg(long, value_enum, default_value_t)]
        format: GraphFormat,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// For Markdown
    #[default]
    Mermaid,
    /// For Graphviz
    Dot,
    /// A picture
    Svg,
}

/// Where runs are kept.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// The repository [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,

    /// The folder that keeps the runs [default: .counterfoil in the repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

impl Place {
    /// The same on the command line, for commands that are shown.
    pub(crate) fn words(&self) -> String {
        crate::tell::place(self.repo.as_deref(), self.state.as_deref())
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A pack's name (`counterfoil pack list`), or a workflow file
    #[arg(value_name = "WORKFLOW")]
    pub(crate) workflow: PathBuf,

    /// The input `task`: a text, or @FILE
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) task: Option<String>,

    /// Another input
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) inputs: Vec<(String, String)>,

    /// Who plays the agents: claude, codex, gemini, command:CMDLINE or script:FILE; NAME=SPEC for
    /// one of them [default: as counterfoil.toml says]
    #[arg(long = "agent", value_name = "[NAME=]SPEC")]
    pub(crate) agents: Vec<String>,

    #[command(flatten)]
    pub(crate) place: Place,

    /// A folder with contracts of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// Spend at most this
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub(crate) max_cost: Option<f64>,

    /// Use at most so many tokens, in and out together
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,

    /// Take at most so long, as 90s, 30m, 8h
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) max_time: Option<u64>,

    /// Go on with the last run of this workflow if it has not ended
    #[arg(long)]
    pub(crate) resume_last: bool,

    /// How to report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// For people, as it goes, on stderr
    #[default]
    Human,
    /// One JSON object
    Json,
    /// `JUnit` XML, for test reports
    Junit,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run: its id, the start of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Who plays the agents from here on, if not who did
    #[arg(long = "agent", value_name = "[NAME=]SPEC")]
    pub(crate) agents: Vec<String>,

    #[command(flatten)]
    pub(crate) place: Place,

    /// How to report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// The run: its id, the start of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Show at most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// How to list
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its id, the start of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    #[command(flatten)]
    pub(crate) place: Place,

    /// Print the journal, one event a line
    #[arg(long)]
    pub(crate) events: bool,

    /// Print what was claimed against what was observed, with the verdict and what it rests on
    #[arg(long, conflicts_with = "events")]
    pub(crate) claims: bool,

    /// How to show it
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The run: its id, the start of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// The question, as `show` names it
    #[arg(value_name = "QUESTION")]
    pub(crate) question: String,

    /// The answer
    #[arg(value_name = "ANSWER")]
    pub(crate) answer: String,

    /// Go on with the run at once
    #[arg(long)]
    pub(crate) resume: bool,

    #[command(flatten)]
    pub(crate) place: Place,

    /// How to report, with --resume
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn amount(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("expected an amount such as 2.50".to_owned()),
    }
}

fn duration(text: &str) -> Result<u64, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    parsed
        .and_then(|duration| u64::try_from(duration.as_millis()).ok())
        .filter(|ms| *ms > 0)
        .ok_or_else(|| "expected a duration such as 90s, 30m or 8h".to_owned())
}
