//! Adapters for the vendors' command-line agents. An adapter knows how its program is called and
//! what its events mean. To add a program, add a module here, implement [`Adapter`] and extend
//! [`adapters`].

pub mod call_events;
mod claude;
mod codex;
pub(crate) mod common;
mod gemini;
pub mod home_overlay;
pub mod record;

use call_events::CallEvent;
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::{Access, AttemptOutcome, Usage};
use counterfoil_process::Exit;
use home_overlay::HomeOverlay;
use record::{RecordParser, RecordPlace, RecordedTokens};
use serde_json::Value;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A command-line program that acts as an agent and reports its work as a stream of events.
pub trait Adapter: Send + Sync {
    /// The name of the program in specs and in `[agents.NAME]`.
    fn name(&self) -> &'static str;

    /// The command that installs the program.
    fn install(&self) -> &'static str;

    /// The oldest supported version and the newest tested one.
    fn versions(&self) -> (&'static str, &'static str);

    /// The schema dialect of the program.
    fn dialect(&self) -> Target;

    /// How the model returns structured output, if the program accepts a schema for it.
    fn structured_output(&self) -> Option<Delivery>;

    /// The size of the longest schema that the program accepts, in bytes.
    fn max_schema_bytes(&self) -> usize {
        usize::MAX
    }

    /// What the program may do with an access, in words and in its own terms, unless the user's
    /// flags and settings say otherwise.
    fn permissions(&self, access: Access) -> &'static str;

    /// The environment variables that this program may see in addition to the common ones. A `*`
    /// at the end matches any suffix.
    fn variables(&self) -> &'static [&'static str];

    /// Variables that are set when the program is only asked for its version.
    fn version_variables(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Further variables that the program may see because its own configuration refers to them,
    /// such as the variable with an API key.
    fn configured_variables(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Vec<String> {
        let _ = env;
        Vec::new()
    }

    /// Whether the program reports what its work cost.
    fn reports_cost(&self) -> bool {
        false
    }

    /// The model that the program's own configuration chooses, if it is known.
    fn configured_model(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
        let _ = env;
        None
    }

    /// How the program is called for one prompt. The prompt itself goes to standard input.
    fn call(&self, request: &PromptRequest<'_>) -> Call;

    /// The prompt, escaped where the program would read it as a command of its own.
    fn prompt<'p>(&self, prompt: &'p str) -> Cow<'p, str> {
        Cow::Borrowed(prompt)
    }

    /// The overlay over the program's folder in the user's home, for programs that accept settings
    /// in no other way.
    fn home_overlay(&self, request: &PromptRequest<'_>) -> Option<HomeOverlay> {
        let _ = request;
        None
    }

    /// A new parser for the events of one reply.
    fn parser(&self) -> Box<dyn StreamParser>;

    /// What an event tells of tool calls. None if it is none of the program's events.
    fn call_events(&self, object: &[u8]) -> Option<Vec<CallEvent>> {
        let _ = object;
        None
    }

    /// The files in which the program records a conversation while it goes on, as far as they are
    /// there.
    fn record_files(&self, place: &RecordPlace<'_>) -> Vec<PathBuf>;

    /// A new parser for such a record.
    fn record_parser(&self) -> Box<dyn RecordParser>;
}

/// One prompt to a program: everything that its command line depends on.
pub struct PromptRequest<'t> {
    /// The configured model, if there is one.
    pub model: Option<&'t str>,
    /// The user's own flags. They follow ours.
    pub flags: &'t [String],
    /// What the program may do in the workspace.
    pub access: Access,
    /// The most that it may spend on the prompt, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// The conversation that the prompt belongs to.
    pub conversation: Conversation<'t>,
    /// The schema of the reply in the program's dialect, if it accepts one.
    pub schema: Option<&'t Value>,
    /// Our MCP server, if it is attached.
    pub server: Option<&'t Server>,
    /// A private folder for temporary files, outside of the workspace. It is empty before the first
    /// prompt and removed after the last one.
    pub scratch: &'t Path,
    /// The working directory.
    pub cwd: &'t Path,
    /// Looks up an environment variable.
    pub env: &'t dyn Fn(&str) -> Option<OsString>,
}

/// Which conversation a prompt belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversation<'t> {
    /// A new conversation, with its id where the program lets us choose it.
    New(&'t str),
    /// An existing conversation, by its id.
    Resume(&'t str),
}

/// Our MCP server for one attempt, which receives results and runs checks while an agent works. It
/// uses standard input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it receives results.
    pub receives: bool,
    /// How long a call of a tool may take, if the server runs checks. They take longer than other
    /// tools.
    pub call_timeout: Option<Duration>,
}

impl Server {
    /// The name of the server in the programs' configuration.
    pub const NAME: &'static str = "counterfoil";
    /// The tool that receives a result.
    pub const TOOL: &'static str = "submit_result";
    /// The tool that runs a check of the project.
    pub const RUN_CHECK: &'static str = "run_check";
    /// The tools of this server. Each is part of every request to a model, so there is none that
    /// an attempt does not need.
    pub fn tools(&self) -> Vec<&'static str> {
        let submit = self.receives.then_some(Self::TOOL);
        let run_check = self.call_timeout.map(|_| Self::RUN_CHECK);
        submit.into_iter().chain(run_check).collect()
    }
}

/// How a program is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// Environment variables that are set in addition to the inherited ones.
    pub variables: Vec<(OsString, OsString)>,
    /// Files to write into the scratch folder before the call.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Notes on requested settings that could not be applied.
    pub notes: Vec<String>,
}

/// Parses the events of one reply, line by line. Unknown events are skipped.
pub trait StreamParser: Send {
    /// Parses a line without its line ending. Returns a line of activity for progress displays.
    fn on_line(&mut self, line: &[u8]) -> Option<String>;

    /// Whether the final event was received.
    fn finished(&self) -> bool;

    /// The id of the conversation, once it is known.
    fn conversation(&self) -> Option<&str>;

    /// Whether a tool call has no result yet.
    fn has_open_calls(&self) -> bool {
        self.progress().open_call.is_some()
    }

    /// How far the reply is, as far as the program tells.
    fn progress(&self) -> ReplyProgress<'_> {
        ReplyProgress::default()
    }

    /// Returns the parsed reply after the program has ended.
    fn finish(self: Box<Self>, end: &StreamEnd<'_>) -> ParsedReply;
}

/// How far a reply is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyProgress<'p> {
    /// The model, if the program tells it.
    pub model: Option<&'p str>,
    /// The number of tool calls so far.
    pub calls: u64,
    /// The tool that runs.
    pub open_call: Option<&'p str>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub struct StreamEnd<'e> {
    /// The exit status.
    pub exit: Exit,
    /// The end of standard error.
    pub errors: &'e str,
    /// When the program ended, in milliseconds since 1970. Relative times such as "in 12 s" refer
    /// to it.
    pub at: i64,
}

/// A parsed reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedReply {
    /// The verdict of the final event.
    pub verdict: Verdict,
    /// The exit status that the program uses for a complete reply.
    pub exit: i32,
    /// The text of the reply: the last message of the agent, not the messages between tool calls.
    pub text: String,
    /// The messages of the turn before the last one, in order, without those before a call of a tool
    /// that is not ours.
    pub earlier: Vec<String>,
    /// The structured output.
    pub structured: Option<Value>,
    /// The id of the conversation.
    pub conversation: Option<String>,
    /// The model that replied.
    pub model: Option<String>,
    /// The version that the program reports.
    pub version: Option<String>,
    /// The usage that the program reports.
    pub meter: UsageMeter,
    /// The denied actions: the tool and the reason.
    pub denied: Vec<String>,
    /// Notes on unexpected input: lines that are not events, a second final event, …
    pub anomalies: Vec<String>,
}

impl ParsedReply {
    /// All messages that may have the result, as one text, if there are several.
    pub fn messages(&self) -> Option<String> {
        let last = std::iter::once(&self.text).filter(|text| !text.is_empty());
        let all: Vec<&str> = self.earlier.iter().chain(last).map(String::as_str).collect();
        (!self.earlier.is_empty()).then(|| all.join("\n\n"))
    }
}

/// What the final event of a reply says.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Verdict {
    /// There was no final event.
    #[default]
    Missing,
    /// The program reports success. The exit status must agree.
    Complete,
    /// The program reports a failure, in its events or on standard error.
    Failed(Failure),
}

/// A failure that a program reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The kind of failure.
    pub outcome: AttemptOutcome,
    /// The reason, as text.
    pub reason: String,
    /// When a limit is lifted, in milliseconds since 1970.
    pub reset_at: Option<i64>,
    /// Whether the schema was rejected. The same prompt may succeed without it.
    pub schema_rejected: bool,
}

impl Failure {
    /// A failure without a reset time.
    pub fn new(outcome: AttemptOutcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: reason.into(), reset_at: None, schema_rejected: false }
    }
}

/// The usage that a program reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageMeter {
    /// Input tokens, including those read from a cache.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost in US dollars, if the program reports it.
    pub cost_usd: f64,
    /// Whether the tokens are totals of the whole conversation.
    pub tokens_are_cumulative: bool,
    /// Whether the cost is a total of the whole conversation.
    pub cost_is_cumulative: bool,
}

impl UsageMeter {
    /// The reading of a conversation that has used this.
    pub fn of_conversation(used: Usage) -> Self {
        Self {
            input_tokens: used.input_tokens,
            output_tokens: used.output_tokens,
            cost_usd: used.cost_usd,
            tokens_are_cumulative: true,
            cost_is_cumulative: true,
        }
    }

    /// Whether the program reported no tokens.
    pub fn is_empty(&self) -> bool {
        self.input_tokens == 0 && self.output_tokens == 0
    }

    /// The next reading if these tokens were used since and the program reports nothing itself.
    #[must_use]
    pub fn plus(&self, used: RecordedTokens) -> Self {
        let total = |before: u64, used: u64| {
            if self.tokens_are_cumulative { before.saturating_add(used) } else { used }
        };
        Self {
            input_tokens: total(self.input_tokens, used.input),
            output_tokens: total(self.output_tokens, used.output),
            cost_usd: if self.cost_is_cumulative { self.cost_usd } else { 0.0 },
            ..*self
        }
    }

    /// The usage since an earlier reading. For totals of a conversation this is the difference.
    pub fn since(&self, before: &Self) -> Usage {
        let tokens = |now: u64, before: u64| {
            // A total that went down was reset.
            if self.tokens_are_cumulative && now >= before { now - before } else { now }
        };
        let (now, then) = (self.cost_usd, before.cost_usd);
        Usage {
            input_tokens: tokens(self.input_tokens, before.input_tokens),
            output_tokens: tokens(self.output_tokens, before.output_tokens),
            cost_usd: if self.cost_is_cumulative && now >= then { now - then } else { now },
            wall_ms: 0,
        }
    }
}

/// All adapters.
pub fn adapters() -> &'static [&'static dyn Adapter] {
    &[&claude::Claude, &codex::Codex, &gemini::Gemini]
}

/// Finds an adapter by its name.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    adapters().iter().copied().find(|adapter| adapter.name() == name)
}
