//! What is particular to one program that plays agents: how it is called, and what its events mean.
//! No I/O.

pub(crate) mod common;
pub mod stand_in;

use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::{Access, AttemptOutcome, Usage};
use counterfoil_process::Exit;
use serde_json::Value;
use stand_in::StandIn;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A program that plays agents, over its own stream of events.
pub trait Adapter: Send + Sync {
    /// As it is named in specs and in `[agents.NAME]`.
    fn name(&self) -> &'static str;

    /// How it is installed, as a command that can be copied.
    fn install(&self) -> &'static str;

    /// The versions that are known to work: the oldest, and the newest that was tried.
    fn versions(&self) -> (&'static str, &'static str);

    /// Its dialect of schemas.
    fn dialect(&self) -> Target;

    /// Whether it can be given a schema for its answer.
    fn takes_schema(&self) -> bool;

    /// Whether its answer by that schema is the text itself.
    fn answers_in_text(&self) -> bool {
        false
    }

    /// The variables of ours that it may see beside those that every program may; `*` at the end
    /// stands for anything.
    fn variables(&self) -> &'static [&'static str];

    /// Variables that are set for it when it is only asked for its version.
    fn for_version(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Further variables that its own files name, such as the one that holds a key.
    fn named_variables(&self, ours: &dyn Fn(&str) -> Option<OsString>) -> Vec<String> {
        let _ = ours;
        Vec::new()
    }

    /// How it is called for one prompt, which it gets on its standard input.
    fn call(&self, turn: &Turn<'_>) -> Call;

    /// The prompt as it must be written so that the program takes it for a prompt: some see
    /// commands in it.
    fn prompt<'p>(&self, prompt: &'p str) -> Cow<'p, str> {
        Cow::Borrowed(prompt)
    }

    /// The folder in scratch that it is given for its own in the user's home, if it takes settings
    /// in no other way.
    fn stand_in(&self, turn: &Turn<'_>) -> Option<StandIn> {
        let _ = turn;
        None
    }

    /// Somebody who understands its events, for one prompt.
    fn reader(&self) -> Box<dyn Reader>;
}

/// What a call is made of.
pub struct Turn<'t> {
    /// The model, if one is asked for.
    pub model: Option<&'t str>,
    /// Flags of the user's own, behind ours.
    pub flags: &'t [String],
    /// What it may do to the workspace.
    pub access: Access,
    /// The conversation.
    pub conversation: Conversation<'t>,
    /// The schema of its answer in its own dialect, where it takes one.
    pub schema: Option<&'t Value>,
    /// The server that takes results, if it is attached.
    pub server: Option<&'t Server>,
    /// A folder for files that it needs: private, outside of what agents change, empty before the
    /// first prompt, gone behind the last.
    pub scratch: &'t Path,
    /// Where it works.
    pub cwd: &'t Path,
    /// Our variables.
    pub ours: &'t dyn Fn(&str) -> Option<OsString>,
}

/// Which conversation a prompt belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversation<'t> {
    /// A new one; its id, where the program lets us choose it.
    New(&'t str),
    /// One that goes on.
    On(&'t str),
}

/// The server that takes results while an agent is at work: ours, over standard input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl Server {
    /// What the server is called where a program is told of it.
    pub const NAME: &'static str = "counterfoil";
    /// The tool that takes a result.
    pub const TOOL: &'static str = "submit_result";
    /// Every tool of it.
    pub const TOOLS: [&'static str; 3] = [Self::TOOL, "get_contract", "check_result"];
}

/// How a program is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Behind the program.
    pub arguments: Vec<OsString>,
    /// Variables that are set for it, over those of ours that it sees.
    pub variables: Vec<(OsString, OsString)>,
    /// Files that it needs, in the scratch folder.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// What could not be done as it was asked for, in words.
    pub notes: Vec<String>,
}

/// Understands the events of one reply, one line after the other. What it does not know it passes
/// over.
pub trait Reader: Send {
    /// Takes a line, without its end; gives words for whoever watches.
    fn line(&mut self, line: &[u8]) -> Option<String>;

    /// Whether the last event has come.
    fn finished(&self) -> bool;

    /// What the reply comes to, now that the program has ended.
    fn read(self: Box<Self>, end: &End<'_>) -> Heard;
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub struct End<'e> {
    /// Its exit status.
    pub exit: Exit,
    /// The end of what it wrote to standard error.
    pub errors: &'e str,
    /// When it ended, in milliseconds since 1970: some limits are lifted "in 12 s".
    pub at: i64,
}

/// What was understood of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// What its last event says.
    pub verdict: Verdict,
    /// The exit status that goes with a reply that is whole.
    pub exit: i32,
    /// The text of the answer: the last message of its own, not those between tools.
    pub text: String,
    /// The answer by its own schema channel.
    pub structured: Option<Value>,
    /// The id of the conversation.
    pub conversation: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The version that the program says it has.
    pub version: Option<String>,
    /// What it says it used.
    pub meter: Meter,
    /// What it was not allowed to do, in words: the tool, and why.
    pub denied: Vec<String>,
    /// What was odd about the stream, in words: lines that are no events, a second end, …
    pub odd: Vec<String>,
}

/// What the last event of a reply says.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Verdict {
    /// It never came.
    #[default]
    Missing,
    /// The program takes the reply for whole. That alone is no result.
    Whole,
    /// The program says, in its events or on standard error, that it failed.
    Failed(Failure),
}

/// A failure as a program tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind.
    pub outcome: AttemptOutcome,
    /// In words.
    pub reason: String,
    /// When a limit is lifted, in milliseconds since 1970.
    pub reset_at: Option<i64>,
    /// Whether it is the schema that was refused: without it, the same prompt may be answered.
    pub schema: bool,
}

impl Failure {
    /// A failure without a time.
    pub fn new(outcome: AttemptOutcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: reason.into(), reset_at: None, schema: false }
    }
}

/// What a program says it used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meter {
    /// Tokens in, those read from a cache too.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Money, where it says.
    pub cost_usd: f64,
    /// Whether the tokens are those of the whole conversation.
    pub tokens_add_up: bool,
    /// Whether the money is that of the whole conversation.
    pub cost_adds_up: bool,
}

impl Meter {
    /// What was used since it stood so: where a program counts over the whole conversation, the
    /// difference.
    pub fn since(&self, before: &Self) -> Usage {
        let tokens = |now: u64, before: u64| {
            // One that became less was begun anew.
            if self.tokens_add_up && now >= before { now - before } else { now }
        };
        let (now, then) = (self.cost_usd, before.cost_usd);
        Usage {
            input_tokens: tokens(self.input_tokens, before.input_tokens),
            output_tokens: tokens(self.output_tokens, before.output_tokens),
            cost_usd: if self.cost_adds_up && now >= then { now - then } else { now },
            wall_ms: 0,
        }
    }
}

/// The programs that are known.
pub fn adapters() -> &'static [&'static dyn Adapter] {
    &[&super::claude::Claude, &super::codex::Codex, &super::gemini::Gemini]
}

/// One by its name.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    adapters().iter().copied().find(|adapter| adapter.name() == name)
}
