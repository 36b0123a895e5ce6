//! Gemini CLI: `gemini -o stream-json`, with our own policy and settings for one run.
//!
//! It reads servers and settings only from the user's home, from the workspace, and from files of
//! root. We must not change the first two, and most users cannot change the third. So it gets a
//! home overlay in the scratch folder.

mod calls;
mod failure;
mod parser;
mod record;

use super::call_events::CallEvent;
use super::home_overlay::{HomeOverlay, SettingsEdit};
use super::record::{RecordParser, RecordPlace};
use super::{Adapter, Call, Conversation, PromptRequest, Server, StreamParser};
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::Access;
use serde_json::json;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The adapter for Gemini CLI.
pub(crate) struct Gemini;

/// The default model. Without a model, Gemini CLI asks another model which one to use before each
/// prompt. This name stands for the newest fast model of the account.
const MODEL: &str = "flash";

/// The variable with the folder that contains `.gemini`.
const HOME: &str = "GEMINI_CLI_HOME";

/// Without this variable it restarts itself with more memory, as a child process that outlives it,
/// and takes twice as long.
const NO_RELAUNCH: &str = "GEMINI_CLI_NO_RELAUNCH";

/// Variables that are set for every call.
const VARIABLES: [(&str, &str); 5] = [
    // Modes, servers and settings of the workspace only apply in a trusted folder.
    ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    (NO_RELAUNCH, "true"),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
    // Nobody can log in.
    ("NO_BROWSER", "true"),
    ("NO_COLOR", "1"),
];

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn install(&self) -> &'static str {
        "npm install -g @google/gemini-cli"
    }

    fn versions(&self) -> (&'static str, &'static str) {
        ("0.47.0", "0.61.0")
    }

    fn dialect(&self) -> Target {
        Target::Gemini
    }

    fn structured_output(&self) -> Option<Delivery> {
        None
    }

    fn permissions(&self, access: Access) -> &'static str {
        match access {
            Access::ReadOnly => "reads files; runs no commands (mode default)",
            Access::WorkspaceWrite => {
                "edits files; runs no commands unless its policies allow them (mode auto_edit)"
            }
        }
    }

    fn variables(&self) -> &'static [&'static str] {
        &["GEMINI_*", "GOOGLE_*", "CLOUD_SHELL"]
    }

    fn version_variables(&self) -> &'static [(&'static str, &'static str)] {
        // Otherwise each call leaves two files in the home.
        &[(NO_RELAUNCH, "true"), (HOME, "/dev/null")]
    }

    fn configured_model(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
        env("GEMINI_MODEL")?.into_string().ok().filter(|model| !model.is_empty())
    }

    fn call(&self, request: &PromptRequest<'_>) -> Call {
        let mut arguments: Vec<OsString> = Vec::new();
        if !has_flag(request, &["-m", "--model"]) {
            let asked =
                request.model.map(OsString::from).or_else(|| variable(request, "GEMINI_MODEL"));
            arguments.extend(["-m".into(), asked.unwrap_or_else(|| MODEL.into())]);
        }
        arguments.extend(["-o", "stream-json"].map(OsString::from));
        if !has_flag(request, &["--approval-mode", "--yolo", "-y"]) {
            arguments
                .extend(["--approval-mode", approval_mode(request.access)].map(OsString::from));
        }
        let policy = policy_file(request.scratch);
        if let Some(path) = as_flag(&policy) {
            arguments.extend(["--admin-policy", path].map(OsString::from));
        }
        arguments.extend(match request.conversation {
            Conversation::New(id) => ["--session-id", id].map(OsString::from),
            Conversation::Resume(id) => ["--resume", id].map(OsString::from),
        });
        arguments.extend(request.flags.iter().map(OsString::from));
        Call {
            arguments,
            variables: VARIABLES.map(|(name, value)| (name.into(), value.into())).into(),
            files: vec![(policy, policy_rules(request.access).into_bytes())],
            notes: Vec::new(),
        }
    }

    fn prompt<'p>(&self, prompt: &'p str) -> Cow<'p, str> {
        // Gemini CLI reads a leading slash as a command of its own.
        if prompt.starts_with('/') {
            Cow::Owned(format!("\n{prompt}"))
        } else {
            Cow::Borrowed(prompt)
        }
    }

    fn home_overlay(&self, request: &PromptRequest<'_>) -> Option<HomeOverlay> {
        let home = variable(request, HOME).or_else(|| variable(request, "HOME")).map(PathBuf::from);
        let folder = request.scratch.join("home");
        Some(HomeOverlay {
            source: home.map(|home| home.join(".gemini")),
            path: overlay_folder(request.scratch),
            exclude: &["tmp", "history", "projects.json", "projects.json.lock"],
            settings_file: "settings.json",
            edits: settings_edits(request),
            variables: vec![(HOME.into(), folder.into())],
        })
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(parser::GeminiParser::default())
    }

    fn call_events(&self, object: &[u8]) -> Option<Vec<CallEvent>> {
        calls::call_events(object)
    }

    fn record_files(&self, place: &RecordPlace<'_>) -> Vec<PathBuf> {
        record::files(place)
    }

    fn record_parser(&self) -> Box<dyn RecordParser> {
        Box::<record::GeminiRecord>::default()
    }
}

/// The program's own folder in the home overlay.
fn overlay_folder(scratch: &Path) -> PathBuf {
    scratch.join("home").join(".gemini")
}

/// A variable that is set and not empty.
fn variable(request: &PromptRequest<'_>, name: &str) -> Option<OsString> {
    (request.env)(name).filter(|value| !value.is_empty())
}

/// Whether the user's flags contain one of these.
fn has_flag(request: &PromptRequest<'_>, names: &[&str]) -> bool {
    request.flags.iter().any(|flag| names.contains(&flag.split('=').next().unwrap_or(flag)))
}

/// The approval mode for an access level. Each mode offers only the tools that it allows.
fn approval_mode(access: Access) -> &'static str {
    match access {
        Access::ReadOnly => "default",
        Access::WorkspaceWrite => "auto_edit",
    }
}

/// The path of the policy file.
fn policy_file(scratch: &Path) -> PathBuf {
    scratch.join("policy.toml")
}

/// A path that can be passed as a flag. The flag takes a list with commas.
fn as_flag(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| !path.contains(','))
}

/// The tools that change files.
const EDIT_TOOLS: [&str; 2] = ["write_file", "replace"];
/// The tool that runs commands.
const SHELL_TOOL: &str = "run_shell_command";
/// The tools that change the mode. Leaving plan mode without a user enters the mode that allows
/// everything.
const MODE_TOOLS: [&str; 2] = ["enter_plan_mode", "exit_plan_mode"];

/// The paths, as tool calls contain them, of hooks and servers that the next start would run. A
/// single expression with two alternatives is rejected as unsafe.
const OWN_CONFIG: [&str; 2] =
    [r#""file_path":"\.gemini[/\\]"#, r#""file_path":"[^"]*[/\\]\.gemini[/\\]"#];

/// The policy. It takes precedence over the policies of the user and of the workspace.
fn policy_rules(access: Access) -> String {
    let deny = |tools: &[&str], pattern: Option<&str>| {
        let pattern =
            pattern.map(|pattern| format!("argsPattern = '{pattern}'\n")).unwrap_or_default();
        format!(
            "[[rule]]\ntoolName = {}\n{pattern}decision = \"deny\"\npriority = 999\n",
            json!(tools)
        )
    };
    match access {
        Access::ReadOnly => deny(&[&MODE_TOOLS[..], &EDIT_TOOLS, &[SHELL_TOOL]].concat(), None),
        Access::WorkspaceWrite => {
            let own = OWN_CONFIG.map(|pattern| deny(&EDIT_TOOLS, Some(pattern)));
            [deny(&MODE_TOOLS, None)].into_iter().chain(own).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Our changes to the user's settings.
fn settings_edits(request: &PromptRequest<'_>) -> Vec<SettingsEdit> {
    let mut edits = vec![
        // The workflow has its own retries, which wait longer.
        SettingsEdit::SetDefault(&["general", "maxAttempts"], json!(2)),
        SettingsEdit::Set(&["general", "enableAutoUpdate"], json!(false)),
        SettingsEdit::Set(&["general", "enableAutoUpdateNotification"], json!(false)),
        SettingsEdit::Set(&["general", "plan", "enabled"], json!(false)),
        SettingsEdit::Set(&["privacy", "usageStatisticsEnabled"], json!(false)),
        SettingsEdit::Set(&["telemetry", "enabled"], json!(false)),
        SettingsEdit::Set(&["ide", "enabled"], json!(false)),
        // Otherwise every `@` in a prompt becomes the first file whose name contains the text after
        // it.
        SettingsEdit::Set(&["context", "fileFiltering", "enableRecursiveFileSearch"], json!(false)),
    ];
    if !has_flag(request, &["--approval-mode", "--yolo", "-y"]) {
        edits.push(SettingsEdit::Set(&["security", "disableYoloMode"], json!(true)));
    }
    let policy = policy_file(request.scratch);
    if as_flag(&policy).is_none() {
        edits.push(SettingsEdit::Set(&["adminPolicyPaths"], json!([policy.to_string_lossy()])));
    }
    let other_auth = ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"];
    if variable(request, "GEMINI_API_KEY").is_some()
        && other_auth.iter().all(|name| variable(request, name).is_none())
    {
        edits.push(SettingsEdit::SetDefault(
            &["security", "auth", "selectedType"],
            json!("gemini-api-key"),
        ));
    }
    if let Some(server) = request.server
        && let Some((program, arguments)) = server.command.split_first()
    {
        let timeout = server.call_timeout;
        let mut server = json!({"command": program, "args": arguments, "trust": true});
        if let Some(timeout) = timeout {
            server["timeout"] = json!(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        }
        edits.push(SettingsEdit::Set(&["mcpServers", Server::NAME], server));
        edits.push(SettingsEdit::AddToList(&["mcp", "allowed"], Server::NAME));
        edits.push(SettingsEdit::RemoveFromList(&["mcp", "excluded"], Server::NAME));
    }
    edits
}
