//! Claude Code: how it is called. What its events mean is for [`reader`].

mod events;
mod failure;
mod meter;
mod reader;

use super::adapter::{Adapter, Call, Conversation, Reader, Server, Turn};
use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::Access;
use serde_json::json;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

/// Claude Code.
#[derive(Debug)]
pub(crate) struct Claude;

/// How it is installed.
const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";

/// The longest argument that Linux hands to a program, with the end of it.
const LONGEST_ARGUMENT: usize = 128 << 10;

/// What reads: a list of what is there, so that a tool of a later version is not there by default.
/// Which commands of `Bash` read is decided by the permission mode.
const READING: &str = "Bash,Glob,Grep,Read,Task";

/// What writes. It is not in the list of what reads, and a rule against it also binds subagents.
const WRITING: &str = "Edit,NotebookEdit,Write";

/// What would work on in another place or at another time, where nobody sees it.
const ELSEWHERE: &str = "CronCreate,EnterWorktree,ScheduleWakeup";

/// What is set for every call unless the user has it set already.
const DEFAULTS: [(&str, &str); 2] = [
    // The workflow has retries of its own, which wait longer and are seen.
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
    // Else its last event comes while commands and subagents are still at work.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
];

/// What is set for every call.
const QUIET: [(&str, &str); 5] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    // What keeps it from starting is then an event, too.
    ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1"),
];

/// Variables of a cloud that models are asked through, which are nobody's business otherwise.
const CLOUDS: [(&str, &[&str]); 3] = [
    ("CLAUDE_CODE_USE_BEDROCK", &["AWS_*"]),
    (
        "CLAUDE_CODE_USE_VERTEX",
        &["GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "CLOUD_ML_REGION", "VERTEX_*"],
    ),
    ("CLAUDE_CODE_USE_FOUNDRY", &["AZURE_*"]),
];

impl Adapter for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn install(&self) -> &'static str {
        INSTALL
    }

    fn versions(&self) -> (&'static str, &'static str) {
        ("2.1.100", "2.1.325")
    }

    fn dialect(&self) -> Target {
        Target::Claude
    }

    fn takes_schema(&self) -> bool {
        true
    }

    /// Names, not `CLAUDE_CODE_*`: among those are ones that skip every permission, and ones that
    /// tie it to a session that we may be running in.
    fn variables(&self) -> &'static [&'static str] {
        &[
            "ANTHROPIC_*",
            "API_TIMEOUT_MS",
            "BASH_DEFAULT_TIMEOUT_MS",
            "BASH_MAX_OUTPUT_LENGTH",
            "BASH_MAX_TIMEOUT_MS",
            "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
            "CLAUDE_CODE_CERT_STORE",
            "CLAUDE_CODE_CLIENT_CERT",
            "CLAUDE_CODE_CLIENT_KEY",
            "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
            "CLAUDE_CODE_DISABLE_1M_CONTEXT",
            "CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
            "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
            "CLAUDE_CODE_DISABLE_THINKING",
            "CLAUDE_CODE_EFFORT_LEVEL",
            "CLAUDE_CODE_EXTRA_BODY",
            "CLAUDE_CODE_GATEWAY_TOKEN",
            "CLAUDE_CODE_GIT_BASH_PATH",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_RETRIES",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_SHELL",
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
            "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
            "CLAUDE_CODE_SUBAGENT_MODEL",
            "CLAUDE_CODE_TMPDIR",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CONFIG_DIR",
            "DISABLE_PROMPT_CACHING*",
            "MAX_MCP_OUTPUT_TOKENS",
            "MAX_THINKING_TOKENS",
            "MCP_TIMEOUT",
            "MCP_TOOL_TIMEOUT",
        ]
    }

    fn named_variables(&self, ours: &dyn Fn(&str) -> Option<OsString>) -> Vec<String> {
        let used = |switch: &str| {
            ours(switch).is_some_and(|value| {
                !["", "0", "false"].map(OsStr::new).contains(&value.as_os_str())
            })
        };
        CLOUDS
            .iter()
            .filter(|(switch, _)| used(switch))
            .flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned()))
            .collect()
    }

    fn call(&self, turn: &Turn<'_>) -> Call {
        let mut call = Call::default();
        say(&mut call, ["-p", "--output-format", "stream-json", "--verbose"]);
        match turn.conversation {
            Conversation::New(id) => say(&mut call, ["--session-id", id]),
            Conversation::On(id) => say(&mut call, ["--resume", id]),
        }
        if let Some(model) = turn.model {
            say(&mut call, ["--model", model]);
        }
        set(&mut call, &QUIET);
        for (name, value) in DEFAULTS {
            if (turn.ours)(name).is_none() {
                set(&mut call, &[(name, value)]);
            }
        }
        access(&mut call, turn);
        server(&mut call, turn);
        schema(&mut call, turn);
        call.arguments.extend(turn.flags.iter().map(OsString::from));
        call
    }

    fn prompt<'p>(&self, prompt: &'p str) -> Cow<'p, str> {
        // What begins with a slash and a name that it knows is a command of its own.
        if prompt.starts_with('/') {
            Cow::Owned(format!("\n{prompt}"))
        } else {
            Cow::Borrowed(prompt)
        }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<reader::ClaudeReader>::default()
    }
}

/// What it may do to the workspace. Nothing is ever asked: what is not allowed is denied, and it is
/// told so.
fn access(call: &mut Call, turn: &Turn<'_>) {
    match turn.access {
        Access::ReadOnly => {
            say(
                call,
                ["--permission-mode", "dontAsk", "--tools", READING, "--disallowedTools", WRITING],
            );
            // Settings in the repository may allow more and run hooks, and an agent before may have
            // written them. Without them it does not read the project's CLAUDE.md,
            // unless the folder is named as one more.
            say(call, ["--setting-sources", "user", "--add-dir"]);
            call.arguments.push(turn.cwd.into());
            set(call, &[("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1")]);
        }
        Access::WorkspaceWrite => {
            say(call, ["--permission-mode", "acceptEdits", "--disallowedTools", ELSEWHERE]);
        }
    }
}

/// The server that takes results, and no other: what a run starts stands in its settings, not in
/// the user's files.
fn server(call: &mut Call, turn: &Turn<'_>) {
    say(call, ["--strict-mcp-config"]);
    let Some(server) = turn.server else { return };
    let Some((program, arguments)) = server.command.split_first() else { return };
    // Loaded always: else its tools are only found by those who search for them.
    let config = json!({"mcpServers": {(Server::NAME): {
        "type": "stdio", "command": program, "args": arguments, "alwaysLoad": true,
    }}});
    let file = turn.scratch.join("mcp.json");
    let tools = Server::TOOLS.map(|tool| format!("mcp__{}__{tool}", Server::NAME)).join(",");
    say(call, ["--mcp-config"]);
    call.arguments.push(file.clone().into());
    say(call, ["--allowedTools", &tools]);
    call.files.push((file, config.to_string().into_bytes()));
}

/// The schema of the answer, which can only be an argument.
fn schema(call: &mut Call, turn: &Turn<'_>) {
    let Some(schema) = turn.schema else { return };
    let schema = schema.to_string();
    if schema.len() < LONGEST_ARGUMENT {
        say(call, ["--json-schema", &schema]);
    } else {
        call.notes.push(format!(
            "its schema has {} bytes and an argument holds at most {}, so claude was not given it",
            schema.len(),
            LONGEST_ARGUMENT - 1
        ));
    }
}

fn say<const N: usize>(call: &mut Call, arguments: [&str; N]) {
    call.arguments.extend(arguments.map(OsString::from));
}

fn set(call: &mut Call, variables: &[(&str, &str)]) {
    call.variables.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
}
