//! The commands of the command line and the formats that several of them print. The arguments of each
//! group of commands are a module in it. This module depends on no other module here but the list of
//! schemas.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

mod check;
mod claims;
mod contained;
mod contracts;
mod help;
mod long_help;
mod mcp;
mod packs;
mod receipts;
mod recordings;
mod runs;
mod scaffold;
mod serve;
mod setup;

pub(crate) use check::{AttemptArgs, CheckArgs};
pub(crate) use claims::{ClaimsArgs, StatsArgs, StatsFormat, UndoArgs, VerifyArgs};
pub(crate) use contained::ContainedArgs;
pub(crate) use contracts::{ContractArgs, ContractCommand, ShowFormat};
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
pub(crate) use serve::{RunUiArgs, ServeArgs, UiArgs};
pub(crate) use setup::{DoctorArgs, HookArgs, HookCheckArgs, HookCommand, InitArgs};

use long_help::{
    COMPLETIONS, DEMO, DOCTOR, HOOK, INIT, MCP, NEW, REPLAY, RESUME, RESUME_HELP, RUN, RUN_HELP,
    SCHEMA, SERVE, SHOW, UI, VERIFY,
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
    /// Open the dashboard of a repository's runs in the browser
    #[command(long_about = UI)]
    Ui(UiArgs),
    /// Serve the dashboard and the HTTP API
    #[command(long_about = SERVE)]
    Serve(ServeArgs),
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
            Self::Ui(args) => &args.location.repo,
            Self::Serve(args) => &args.repo,
            Self::Answer(args) => &args.location.repo,
            Self::Undo(args) => &args.location.repo,
            Self::Clean(args) => &args.location.repo,
            Self::Export(args) => &args.location.repo,
            Self::Receipt(ReceiptArgs { command: Some(ReceiptCommand::Verify(args)), .. }) => {
                &args.location.repo
            }
            Self::Receipt(ReceiptArgs { write, .. }) => &write.location.repo,
            Self::Claims(args) => &args.stats().location.repo,
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

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The code, such as C0201; lists all codes if omitted
    pub(crate) code: Option<String>,
}
