//! What can be said on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::{Framing, Policy, RepairPolicy};
use std::path::PathBuf;

mod claims;
mod mcp;
mod packs;
mod people;
mod recordings;
mod runs;

pub(crate) use claims::{ClaimsArgs, ClaimsCommand, StatsArgs, StatsFormat, UndoArgs, VerifyArgs};
pub(crate) use mcp::McpArgs;
pub(crate) use packs::{DemoArgs, PackArgs, PackCommand};
pub(crate) use people::{DoctorArgs, HeldArgs, HookArgs, HookCommand, InitArgs};
pub(crate) use recordings::{ExportArgs, ReplayArgs};
pub(crate) use runs::{
    AnswerArgs, GraphFormat, OneRun, Place, ResumeArgs, RunArgs, RunFormat, RunsArgs, ShowArgs,
    WorkflowArgs, WorkflowCommand,
};

/// Hold the results of coding agents to their contracts.
#[derive(Debug, Parser)]
#[command(name = "counterfoil", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 accepted (or additive, or valid, or done), 1 not, 2 usage, 3 a claim does not hold; of a run also 4 waiting, 5 agent, 6 exhausted or out of budget, 7 blocked, 124 timeout, 130 cancelled.\nSet COUNTERFOIL_LOG=warn for structured events on stderr, NO_COLOR for no colour."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const VERIFY: &str = "\
Hold what an agent claims against a repository, without a run.

The result is found in the text and held to its contract. Then each claim that the contract declares is held against what \
changed between the base and the work tree as it is now, and against checks that are run there.";

const MCP: &str = "\
Take results from agents: a server of the Model Context Protocol over standard input and output.

An agent hands in its result with the tool `submit_result` while it works. A result that breaks its contract comes back with everything \
that is wrong with it; a good one is kept, in .counterfoil/submissions.jsonl, and acknowledged. `get_contract` and `check_result` \
help. Ends when standard input does.";

const REPLAY: &str = "\
Judge recordings and transcripts again, and say what changed since they were recorded.

What agents said goes through the readers of their programs and through the contracts, as in a run; no agent is asked. Each attempt is \
held to the contract that is current under the id it was recorded with, or else to the one in the recording. A transcript \
without a recorded outcome is new; `--update` records what comes out. Ends with 0 if nothing changed, 1 if something did or could \
not be judged.";

const DEMO: &str = "\
See a pack at work, offline: a real run in a git repository that is made for it, with agents that are played by a script.

The repository is left for looking, with the run in it; where it is stands at the end. `counterfoil demo contracts` shows the \
contract engine alone, on three texts. Ends with 0 if the run ended as the demo is meant to, else as the run did.";

const INIT: &str = "\
Set a project up: bind its agents to contracts, and attach hooks and the server that takes results.

Shows what it would add to which file, as diffs on standard output, and writes it only if somebody agrees: with --yes, or at a \
terminal. Ends with 0 if everything is in place, and with 1 if something would be added and nobody agreed.";

const DOCTOR: &str = "\
Say whether what is needed is there, what is in the way, and what mends it.

Looks at the programs that play agents (whether they are there, which version, whether a login can be seen, by which ways they \
hand back results), at counterfoil.toml, and at what stands between people and their contracts. Nobody is called, and nothing is \
written. Ends with 0 if everything that is needed works, and with 1 if not.";

const HOOK: &str = "\
Hold what agents say to their contracts where our engine does not run them.

Claude Code runs these as hooks, with a payload on standard input; `counterfoil init` sets them up. A result that does not \
satisfy the contract of the agent is sent back, with what is wrong with it, three times for the same and six times in all. \
Then it is let through, and the person is told.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the result in a text and hold it to a contract
    Check(CheckArgs),
    /// List, show, render, compare and lint contracts
    Contract(ContractArgs),
    /// Check and draw workflows
    Workflow(WorkflowArgs),
    /// List, show and eject packs: workflows that come along
    Pack(PackArgs),
    /// Run a workflow
    Run(RunArgs),
    /// Go on with a run: after a stop, a crash, an answer
    Resume(ResumeArgs),
    /// End a run for good
    Cancel(OneRun),
    /// List runs, the newest first
    Runs(RunsArgs),
    /// Tell the story of a run
    Show(ShowArgs),
    /// Answer a question of a run
    Answer(AnswerArgs),
    /// Put back what the workspaces of a run brought into the repository
    Undo(UndoArgs),
    /// Write what agents said in a run into a folder, without secrets, to be looked at and replayed
    Export(ExportArgs),
    /// Judge recordings and transcripts again, and say what changed since they were recorded
    #[command(long_about = REPLAY)]
    Replay(ReplayArgs),
    /// Sum up, over all runs, what became of claims
    Claims(ClaimsArgs),
    /// Hold what an agent claims against a repository, without a run
    #[command(long_about = VERIFY)]
    Verify(VerifyArgs),
    /// Take results from agents through a tool, over MCP
    #[command(long_about = MCP)]
    Mcp(McpArgs),
    /// Explain a code, with a bad and a good example
    Explain(ExplainArgs),
    /// See a pack at work, offline, in a repository that is made for it
    #[command(long_about = DEMO)]
    Demo(DemoArgs),
    /// Set a project up: bind its agents to contracts, and attach hooks and the server that takes
    /// results
    #[command(long_about = INIT)]
    Init(InitArgs),
    /// Say whether what is needed is there, what is in the way, and what mends it
    #[command(long_about = DOCTOR)]
    Doctor(DoctorArgs),
    /// Hold what agents say to their contracts where our engine does not run them: hooks
    #[command(long_about = HOOK)]
    Hook(HookArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The text: a file, or - for standard input
    #[arg(value_name = "FILE", default_value = "-", conflicts_with = "batch")]
    pub(crate) file: PathBuf,

    /// The contract, as ID or ID@VERSION
    #[arg(long, value_name = "ID", conflicts_with = "schema")]
    pub(crate) contract: Option<String>,

    /// A folder with contracts of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,

    /// A JSON Schema file to hold the text to, instead of a contract
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,

    /// Where the result stands, with --schema [any-json, fenced-json, json-only, output-block]
    #[arg(long, value_name = "FRAMING", conflicts_with = "contract")]
    pub(crate) framing: Option<Framing>,

    /// What may be mended, with --schema
    #[arg(long, value_enum, conflicts_with = "contract")]
    pub(crate) repair: Option<RepairArg>,

    /// Allow changes of type, each recorded, with --schema
    #[arg(long, conflicts_with = "contract")]
    pub(crate) coerce: bool,

    /// No defaults, repairs, coercions or duplicate keys
    #[arg(long)]
    pub(crate) strict: bool,

    /// Refuse larger texts [default: 64 MiB]
    #[arg(long, value_name = "N")]
    pub(crate) max_bytes: Option<usize>,

    /// Refuse deeper values [default: 128]
    #[arg(long, value_name = "N", value_parser = depth)]
    pub(crate) max_depth: Option<usize>,

    /// Check many texts: a file with one JSON object a line, or - for standard input
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["contract", "schema", "format", "strict"])]
    pub(crate) batch: Option<PathBuf>,

    /// How to report: human goes to stderr and the value to stdout, the others to stdout
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

fn depth(text: &str) -> Result<usize, String> {
    let deepest = counterfoil_contract::DEEPEST;
    match text.parse::<usize>() {
        Ok(depth) if (1..=deepest).contains(&depth) => Ok(depth),
        _ => Err(format!("expected a number from 1 to {deepest}")),
    }
}

impl CheckArgs {
    /// A policy with the limits of the command line.
    pub(crate) fn limits(&self, policy: &Policy) -> Policy {
        let mut policy = if self.strict { policy.strictly() } else { policy.clone() };
        policy.max_bytes = self.max_bytes.unwrap_or(policy.max_bytes);
        policy.max_depth = self.max_depth.unwrap_or(policy.max_depth);
        policy
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RepairArg {
    /// Strict JSON or nothing
    None,
    /// Mend the syntax, and record every repair
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// `JUnit` XML, for test reports
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
pub(crate) struct Sources {
    /// A folder with contracts of your own
    #[arg(long, value_name = "DIR")]
    pub(crate) contracts: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    /// List contracts: id, version, framing, agent, summary
    List {
        #[command(flatten)]
        sources: Sources,
        /// How to list
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Show a contract
    Show {
        /// ID, ID@VERSION or a contract file
        id: String,
        #[command(flatten)]
        sources: Sources,
        /// How to show it
        #[arg(long, value_enum, default_value_t)]
        format: ShowFormat,
    },
    /// Print the JSON Schema; what the target cannot express goes to stderr
    Schema {
        /// ID, ID@VERSION or a contract file
        id: String,
        #[command(flatten)]
        sources: Sources,
        /// The dialect [draft2020, claude, codex, gemini]
        #[arg(long, default_value = "draft2020")]
        target: Target,
    },
    /// Print the prompt suffix that tells an agent what to hand back
    Prompt {
        /// ID, ID@VERSION or a contract file
        id: String,
        #[command(flatten)]
        sources: Sources,
    },
    /// Print the prompt that asks again for a bad output
    Repair {
        /// ID, ID@VERSION or a contract file
        id: String,
        /// The bad output: a file, or - for standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        #[command(flatten)]
        sources: Sources,
    },
    /// Prove that NEW is an additive successor of OLD, or show the value that breaks
    Diff {
        /// ID, ID@VERSION or a contract file
        old: String,
        /// ID, ID@VERSION or a contract file
        new: String,
        #[command(flatten)]
        sources: Sources,
        /// How to report
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Load contract files and say what is wrong with them
    Lint {
        /// Contract files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    #[default]
    Human,
    /// JSON
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// The contract file
    #[default]
    Yaml,
    /// The same as JSON
    Json,
    /// The reference page
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The code, as C0201; without it, all codes are listed
    pub(crate) code: Option<String>,
}
