//! Claude Code: how it is called. [`parser`] reads its events.

mod calls;
mod events;
mod failure;
mod parser;
mod record;
mod usage;

use super::call_events::CallEvent;
use super::record::{RecordParser, RecordPlace};
use super::{Adapter, Call, Conversation, PromptRequest, Server, StreamParser};
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::Access;
use serde_json::json;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The adapter for Claude Code.
#[derive(Debug)]
pub(crate) struct Claude;

/// The command that installs it.
const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";

/// The longest argument that Linux passes to a program, including its NUL byte.
const MAX_ARGUMENT_BYTES: usize = 128 << 10;

/// The tools for read-only access. This is an allow list, so tools of newer versions are not
/// available by default. The permission mode decides which `Bash` commands only read.
const READ_TOOLS: &str = "Bash,Glob,Grep,Read,Task";

/// The tools that write. They are not in the allow list, and denying them also applies to
/// subagents.
const WRITE_TOOLS: &str = "Edit,NotebookEdit,Write";

/// The tools that continue the work in another folder or at a later time, outside of the attempt.
const DETACHED_TOOLS: &str = "CronCreate,EnterWorktree,ScheduleWakeup";

/// The flag for the most that a prompt may cost, in US dollars.
const MAX_BUDGET: &str = "--max-budget-usd";

/// Variables that are set unless the user has set them.
const DEFAULTS: [(&str, &str); 2] = [
    // The workflow has its own retries, which wait longer and are visible.
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
    // Otherwise the final event arrives while commands and subagents are still running.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
];

/// Variables that are set for every call.
const QUIET: [(&str, &str); 5] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    // Reports startup failures as events.
    ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1"),
];

/// The variables of cloud providers. They are passed on only if Claude Code uses the provider.
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
        ("2.1.187", "2.1.325")
    }

    fn dialect(&self) -> Target {
        Target::Claude
    }

    fn structured_output(&self) -> Option<Delivery> {
        Some(Delivery::Tool { name: "StructuredOutput", server: None })
    }

    /// The schema can only be an argument.
    fn max_schema_bytes(&self) -> usize {
        MAX_ARGUMENT_BYTES - 1
    }

    /// Single names instead of `CLAUDE_CODE_*`, because some of those variables skip all permission
    /// checks, and others connect it to a session that we may be running in.
    fn permissions(&self, access: Access) -> &'static str {
        match access {
            Access::ReadOnly => "reads files, and runs commands that only read (mode dontAsk)",
            Access::WorkspaceWrite => {
                "edits files, and runs file commands, in its folder (mode acceptEdits); other commands as its settings allow"
            }
        }
    }

    fn reports_cost(&self) -> bool {
        true
    }

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

    fn configured_variables(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Vec<String> {
        let is_enabled = |switch: &str| {
            env(switch).is_some_and(|value| {
                !["", "0", "false"].map(OsStr::new).contains(&value.as_os_str())
            })
        };
        CLOUDS
            .iter()
            .filter(|(switch, _)| is_enabled(switch))
            .flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned()))
            .collect()
    }

    fn call(&self, request: &PromptRequest<'_>) -> Call {
        let mut call = Call::default();
        add_arguments(&mut call, ["-p", "--output-format", "stream-json", "--verbose"]);
        match request.conversation {
            Conversation::New(id) => add_arguments(&mut call, ["--session-id", id]),
            Conversation::Resume(id) => add_arguments(&mut call, ["--resume", id]),
        }
        if let Some(model) = request.model {
            add_arguments(&mut call, ["--model", model]);
        }
        set_variables(&mut call, &QUIET);
        for (name, value) in DEFAULTS {
            if (request.env)(name).is_none() {
                set_variables(&mut call, &[(name, value)]);
            }
        }
        restrict_access(&mut call, request);
        attach_server(&mut call, request);
        if let Some(schema) = request.schema {
            add_arguments(&mut call, ["--json-schema", &schema.to_string()]);
        }
        if let Some(most) = request.max_cost_usd.filter(|_| !sets_budget(request.flags)) {
            // Rounded up, so that less than the limit is not taken for all of it.
            add_arguments(&mut call, [MAX_BUDGET, &format!("{:.6}", (most * 1e6).ceil() / 1e6)]);
        }
        call.arguments.extend(request.flags.iter().map(OsString::from));
        call
    }

    fn prompt<'p>(&self, prompt: &'p str) -> Cow<'p, str> {
        // Claude Code reads a leading slash with a known name as a command of its own.
        if prompt.starts_with('/') {
            Cow::Owned(format!("\n{prompt}"))
        } else {
            Cow::Borrowed(prompt)
        }
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::<parser::ClaudeParser>::default()
    }

    fn call_events(&self, object: &[u8]) -> Option<Vec<CallEvent>> {
        calls::call_events(object)
    }

    fn record_files(&self, place: &RecordPlace<'_>) -> Vec<PathBuf> {
        record::files(place)
    }

    fn record_parser(&self) -> Box<dyn RecordParser> {
        Box::<record::ClaudeRecord>::default()
    }
}

/// Whether the user's flags limit the cost of a prompt.
fn sets_budget(flags: &[String]) -> bool {
    flags.iter().any(|flag| flag == MAX_BUDGET || flag.starts_with(&format!("{MAX_BUDGET}=")))
}

/// The flags for access to the workspace. Actions that are not allowed are denied without asking.
fn restrict_access(call: &mut Call, request: &PromptRequest<'_>) {
    match request.access {
        Access::ReadOnly => {
            add_arguments(
                call,
                [
                    "--permission-mode",
                    "dontAsk",
                    "--tools",
                    READ_TOOLS,
                    "--disallowedTools",
                    WRITE_TOOLS,
                ],
            );
            // Settings in the repository may allow more actions and run hooks, and an earlier agent
            // may have written them. Without project settings, the project's CLAUDE.md is only read
            // if the folder is added explicitly.
            add_arguments(call, ["--setting-sources", "user", "--add-dir"]);
            call.arguments.push(request.cwd.into());
            set_variables(call, &[("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1")]);
        }
        Access::WorkspaceWrite => {
            add_arguments(
                call,
                ["--permission-mode", "acceptEdits", "--disallowedTools", DETACHED_TOOLS],
            );
        }
    }
}

/// Attaches our server, and no other server from the user's files.
fn attach_server(call: &mut Call, request: &PromptRequest<'_>) {
    add_arguments(call, ["--strict-mcp-config"]);
    let Some(server) = request.server else { return };
    let Some((program, arguments)) = server.command.split_first() else { return };
    // Without `alwaysLoad` the tools are only found by a tool search.
    let config = json!({"mcpServers": {(Server::NAME): {
        "type": "stdio", "command": program, "args": arguments, "alwaysLoad": true,
    }}});
    let file = request.scratch.join("mcp.json");
    let tools: Vec<String> =
        server.tools().into_iter().map(|tool| format!("mcp__{}__{tool}", Server::NAME)).collect();
    add_arguments(call, ["--mcp-config"]);
    call.arguments.push(file.clone().into());
    add_arguments(call, ["--allowedTools", &tools.join(",")]);
    if let Some(timeout) = server.call_timeout {
        let ms = timeout.as_millis().to_string();
        call.variables.push(("MCP_TOOL_TIMEOUT".into(), ms.into()));
    }
    call.files.push((file, config.to_string().into_bytes()));
}

fn add_arguments<const N: usize>(call: &mut Call, arguments: [&str; N]) {
    call.arguments.extend(arguments.map(OsString::from));
}

fn set_variables(call: &mut Call, variables: &[(&str, &str)]) {
    call.variables.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
}
