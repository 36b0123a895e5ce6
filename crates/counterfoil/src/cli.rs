//! The commands and arguments of the command line. This module depends on no other module here but
//! the list of schemas.

use clap::{Args, Parser, Subcommand, ValueEnum};
use counterfoil_contract::policy::{RepairPolicy, Truncated};
use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::{Context, Framing, Policy};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod claims;
mod contained;
mod help;
mod long_help;
mod mcp;
mod packs;
mod receipts;
mod recordings;
mod runs;
mod scaffold;
mod setup;

pub(crate) use claims::{ClaimsArgs, ClaimsCommand, StatsArgs, StatsFormat, UndoArgs, VerifyArgs};
pub(crate) use contained::ContainedArgs;
pub(crate) use help::command;
pub(crate) use mcp::McpArgs;
pub(crate) use packs::{DemoArgs, PackArgs, PackCommand};
pub(crate) use receipts::{
    ReceiptArgs, ReceiptCommand, ReceiptFormat, VerifyReceiptArgs, WriteReceiptArgs,
};
pub(crate) use recordings::{ExportArgs, ReplayArgs};
pub(crate) use runs::{
    AnswerArgs, CleanArgs, GraphFormat, ResumeArgs, RunArgs, RunFormat, RunRef, RunsArgs, ShowArgs,
    StateLocation, WorkflowArgs, WorkflowCommand,
};
pub(crate) use scaffold::{NewArgs, NewCommand, SchemaArgs, SourceArgs};
pub(crate) use setup::{DoctorArgs, HookArgs, HookCheckArgs, HookCommand, InitArgs};

use long_help::{
    CHECK_HELP, COMPLETIONS, DEMO, DOCTOR, HOOK, INIT, MCP, NEW, REPLAY, RESUME, RESUME_HELP, RUN,
    RUN_HELP, SCHEMA, SHOW, VERIFY,
};

/// Validate and verify the results of coding agents.
#[derive(Debug, Parser)]
#[command(name = "counterfoil", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 success (accepted, additive, valid, done), 1 failure, 2 usage error, 3 a claim failed or a batch is malformed; for runs also 4 waiting, 5 agent failure, 6 attempts or budget exhausted, 7 blocked, 8 a review that requests changes, 9 the state folder was destroyed or altered, 122 no room on the disk, 124 timeout, 130 stopped or cancelled.\nSet COUNTERFOIL_LOG=info to log structured events to stderr, or warn for rejections and problems only, and NO_COLOR=1 to disable colours."
)]
pub(crate) struct Cli {
    /// Format of the log that `COUNTERFOIL_LOG` enables
    #[arg(long, value_enum, global = true, value_name = "json|text", hide_possible_values = true)]
    pub(crate) log_format: Option<LogFormat>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object per line; messages for people are such lines, too
    Json,
    /// Lines of text
    Text,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Extract the result from a text and validate it against a contract
    Check(CheckArgs),
    /// List, show, render, compare and lint contracts
    Contract(ContractArgs),
    /// Check and draw workflows
    Workflow(WorkflowArgs),
    /// List, show and eject the built-in workflow packs
    Pack(PackArgs),
    /// Run a workflow
    #[command(long_about = RUN, after_help = RUN_HELP)]
    Run(RunArgs),
    /// Continue a run after an interruption, an answer or a failure
    #[command(long_about = RESUME, after_help = RESUME_HELP)]
    Resume(ResumeArgs),
    /// Cancel a run
    Cancel(RunRef),
    /// List runs, newest first
    Runs(RunsArgs),
    /// Show a run on one screen, a step of it, or what went wrong
    #[command(after_help = SHOW)]
    Show(ShowArgs),
    /// Answer a question of a run
    Answer(AnswerArgs),
    /// Revert the changes that a run made in the repository
    Undo(UndoArgs),
    /// Remove what old runs left: transcripts, patches, worktrees
    Clean(CleanArgs),
    /// Export the transcripts of a run as a recording, redacted
    Export(ExportArgs),
    /// Write the receipt of a run: what was asked, changed and verified
    Receipt(ReceiptArgs),
    /// Replay recordings and transcripts, and report what changed
    #[command(long_about = REPLAY)]
    Replay(ReplayArgs),
    /// Show statistics about claims over all runs
    Claims(ClaimsArgs),
    /// Verify the claims of an agent against a repository, without a run
    #[command(long_about = VERIFY)]
    Verify(VerifyArgs),
    /// Accept results from agents as an MCP server
    #[command(long_about = MCP)]
    Mcp(McpArgs),
    /// Explain a diagnostic code, with a bad and a good example
    Explain(ExplainArgs),
    /// Run a pack offline in a new repository, with scripted agents
    #[command(long_about = DEMO)]
    Demo(DemoArgs),
    /// Write a new contract or workflow, and a script that runs it
    #[command(long_about = NEW)]
    New(NewArgs),
    /// Print the JSON Schema of a file or of what commands print
    #[command(long_about = SCHEMA)]
    Schema(SchemaArgs),
    /// Set up a project: checks, contracts, hooks and the MCP server
    #[command(long_about = INIT)]
    Init(InitArgs),
    /// Check the setup and suggest fixes
    #[command(long_about = DOCTOR)]
    Doctor(DoctorArgs),
    /// Validate agent output from Claude Code hooks
    #[command(long_about = HOOK)]
    Hook(HookArgs),
    /// Print the script that completes commands and names in a shell
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands to a folder
    Man(ManArgs),
    /// Restrict this process with Landlock, and become a command
    #[command(hide = true)]
    Contained(ContainedArgs),
    /// End agents and checks when stdin closes
    #[command(hide = true)]
    Watch,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

/// The project that a command works in.
pub(crate) struct ProjectRepo<'a> {
    /// The repository given on the command line. Without it, the current folder is the project.
    pub(crate) given: Option<&'a Path>,
}

impl Command {
    /// For a command that reads the configuration or state of a project: the repository given on
    /// the command line, if any. None for other commands, and for hooks, whose stderr goes to an
    /// agent.
    pub(crate) fn project(&self) -> Option<ProjectRepo<'_>> {
        let given = match self {
            Self::Run(args) => &args.location.repo,
            Self::Resume(args) => &args.location.repo,
            Self::Cancel(args) => &args.location.repo,
            Self::Runs(args) => &args.location.repo,
            Self::Show(args) => &args.location.repo,
            Self::Answer(args) => &args.location.repo,
            Self::Undo(args) => &args.location.repo,
            Self::Clean(args) => &args.location.repo,
            Self::Export(args) => &args.location.repo,
            Self::Receipt(ReceiptArgs { command: Some(ReceiptCommand::Verify(args)), .. }) => {
                &args.location.repo
            }
            Self::Receipt(ReceiptArgs { write, .. }) => &write.location.repo,
            Self::Claims(ClaimsArgs { command: ClaimsCommand::Stats(args) }) => &args.location.repo,
            Self::Verify(args) => &args.repo,
            Self::Mcp(args) => &args.location.repo,
            Self::Init(args) => &args.repo,
            Self::Doctor(args) => &args.repo,
            Self::Check(_)
            | Self::Contract(_)
            | Self::Workflow(_)
            | Self::Pack(_)
            | Self::Replay(_)
            | Self::Explain(_)
            | Self::Demo(_)
            | Self::New(_)
            | Self::Schema(_)
            | Self::Hook(_)
            | Self::Completions { .. }
            | Self::Contained(_)
            | Self::Watch
            | Self::Man(_) => return None,
        };
        Some(ProjectRepo { given: given.as_deref() })
    }
}

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
    #[arg(long, value_name = "N", value_parser = runs::parse_whole::<usize>)]
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0 for code scanning
    Sarif,
    /// `JUnit` XML for test reports
    Junit,
    /// Workflow commands of GitHub Actions
    Github,
}

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
    /// Print the JSON Schema; constraints that the target cannot express are listed on stderr
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
pub(crate) enum ListFormat {
    /// Text for people
    #[default]
    Human,
    /// JSON
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// Text for people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0 for code scanning
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
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

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The code, such as C0201; lists all codes if omitted
    pub(crate) code: Option<String>,
}
