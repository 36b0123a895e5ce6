//! Gemini CLI: `gemini -o stream-json`, with a policy and settings of ours for one run.
//!
//! It takes servers and settings only from the user's home, from the workspace, and from files that
//! root owns. The first two are the user's, the third is no way for most people; so it gets a
//! folder in scratch for its home, in which all but the settings are links.

mod events;
mod failure;

use super::adapter::stand_in::{Edit, StandIn};
use super::adapter::{Adapter, Call, Conversation, Reader, Server, Turn};
use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::Access;
use serde_json::json;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Gemini CLI.
pub(crate) struct Gemini;

/// Without a model it asks another one which to take, before each prompt. This name is that of the
/// newest quick one that the account has.
const MODEL: &str = "flash";

/// The variable that names the folder in which it looks for `.gemini`.
const HOME: &str = "GEMINI_CLI_HOME";

/// Without this it starts itself once more with more memory, as a child that outlives it, and takes
/// twice as long.
const NO_RELAUNCH: &str = "GEMINI_CLI_NO_RELAUNCH";

/// Variables that are set for it.
const VARIABLES: [(&str, &str); 5] = [
    // Modes, servers and settings of the workspace are only heeded in a folder that is trusted.
    ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    (NO_RELAUNCH, "true"),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
    // Nobody is there to log in.
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

    fn takes_schema(&self) -> bool {
        false
    }

    fn variables(&self) -> &'static [&'static str] {
        &["GEMINI_*", "GOOGLE_*", "CLOUD_SHELL"]
    }

    fn for_version(&self) -> &'static [(&'static str, &'static str)] {
        // Each time it would leave two files behind in the home.
        &[(NO_RELAUNCH, "true"), (HOME, "/dev/null")]
    }

    fn call(&self, turn: &Turn<'_>) -> Call {
        let mut arguments: Vec<OsString> = Vec::new();
        if !given(turn, &["-m", "--model"]) {
            let asked = turn.model.map(OsString::from).or_else(|| set(turn, "GEMINI_MODEL"));
            arguments.extend(["-m".into(), asked.unwrap_or_else(|| MODEL.into())]);
        }
        arguments.extend(["-o", "stream-json"].map(OsString::from));
        if !given(turn, &["--approval-mode", "--yolo", "-y"]) {
            arguments.extend(["--approval-mode", mode(turn.access)].map(OsString::from));
        }
        let policy = policy(turn.scratch);
        if let Some(path) = as_flag(&policy) {
            arguments.extend(["--admin-policy", path].map(OsString::from));
        }
        arguments.extend(match turn.conversation {
            Conversation::New(id) => ["--session-id", id].map(OsString::from),
            Conversation::On(id) => ["--resume", id].map(OsString::from),
        });
        arguments.extend(turn.flags.iter().map(OsString::from));
        Call {
            arguments,
            variables: VARIABLES.map(|(name, value)| (name.into(), value.into())).into(),
            files: vec![(policy, rules(turn.access).into_bytes())],
            notes: Vec::new(),
        }
    }

    fn prompt<'p>(&self, prompt: &'p str) -> Cow<'p, str> {
        // What begins with a slash is a command of its own.
        if prompt.starts_with('/') {
            Cow::Owned(format!("\n{prompt}"))
        } else {
            Cow::Borrowed(prompt)
        }
    }

    fn stand_in(&self, turn: &Turn<'_>) -> Option<StandIn> {
        let home = set(turn, HOME).or_else(|| set(turn, "HOME")).map(PathBuf::from);
        let at = turn.scratch.join("home");
        Some(StandIn {
            of: home.map(|home| home.join(".gemini")),
            at: at.join(".gemini"),
            without: &["tmp", "history", "projects.json", "projects.json.lock"],
            settings: "settings.json",
            edits: edits(turn),
            variables: vec![(HOME.into(), at.into())],
        })
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(events::Events::default())
    }
}

/// A variable of ours that is not empty.
fn set(turn: &Turn<'_>, name: &str) -> Option<OsString> {
    (turn.ours)(name).filter(|value| !value.is_empty())
}

/// Whether the user's flags say what one of these says.
fn given(turn: &Turn<'_>, names: &[&str]) -> bool {
    turn.flags.iter().any(|flag| names.contains(&flag.split('=').next().unwrap_or(flag)))
}

/// The mode that goes with what an agent may do. Each offers only the tools that it allows.
fn mode(access: Access) -> &'static str {
    match access {
        Access::ReadOnly => "default",
        Access::WorkspaceWrite => "auto_edit",
    }
}

/// The file with the policy.
fn policy(scratch: &Path) -> PathBuf {
    scratch.join("policy.toml")
}

/// A path as a flag can name it: a comma stands between two.
fn as_flag(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| !path.contains(','))
}

/// The tools that change files.
const EDITS: [&str; 2] = ["write_file", "replace"];
/// The tool that runs commands.
const SHELL: &str = "run_shell_command";
/// The tools that change the mode. Leaving the mode for plans without somebody to ask enters the
/// one in which everything is allowed.
const MODES: [&str; 2] = ["enter_plan_mode", "exit_plan_mode"];

/// Where hooks and servers stand that it runs when it starts again, as calls name it. An expression
/// of two parts is refused as unsafe.
const OWN: [&str; 2] = [r#""file_path":"\.gemini[/\\]"#, r#""file_path":"[^"]*[/\\]\.gemini[/\\]"#];

/// What nothing else may allow: policies of the user and of the workspace are weaker than this one.
fn rules(access: Access) -> String {
    let deny = |tools: &[&str], pattern: Option<&str>| {
        let pattern =
            pattern.map(|pattern| format!("argsPattern = '{pattern}'\n")).unwrap_or_default();
        format!(
            "[[rule]]\ntoolName = {}\n{pattern}decision = \"deny\"\npriority = 999\n",
            json!(tools)
        )
    };
    match access {
        Access::ReadOnly => deny(&[&MODES[..], &EDITS, &[SHELL]].concat(), None),
        Access::WorkspaceWrite => {
            let own = OWN.map(|pattern| deny(&EDITS, Some(pattern)));
            [deny(&MODES, None)].into_iter().chain(own).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Our settings, over the user's.
fn edits(turn: &Turn<'_>) -> Vec<Edit> {
    let mut edits = vec![
        // Longer waits are ours.
        Edit::Fill(&["general", "maxAttempts"], json!(2)),
        Edit::Set(&["general", "enableAutoUpdate"], json!(false)),
        Edit::Set(&["general", "enableAutoUpdateNotification"], json!(false)),
        Edit::Set(&["general", "plan", "enabled"], json!(false)),
        Edit::Set(&["privacy", "usageStatisticsEnabled"], json!(false)),
        Edit::Set(&["telemetry", "enabled"], json!(false)),
        Edit::Set(&["ide", "enabled"], json!(false)),
        // Every `@` in a prompt would become the first file whose name holds what stands behind
        // it.
        Edit::Set(&["context", "fileFiltering", "enableRecursiveFileSearch"], json!(false)),
    ];
    if !given(turn, &["--approval-mode", "--yolo", "-y"]) {
        edits.push(Edit::Set(&["security", "disableYoloMode"], json!(true)));
    }
    let policy = policy(turn.scratch);
    if as_flag(&policy).is_none() {
        edits.push(Edit::Set(&["adminPolicyPaths"], json!([policy.to_string_lossy()])));
    }
    let elsewhere = ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"];
    if set(turn, "GEMINI_API_KEY").is_some()
        && elsewhere.iter().all(|name| set(turn, name).is_none())
    {
        edits.push(Edit::Fill(&["security", "auth", "selectedType"], json!("gemini-api-key")));
    }
    if let Some((program, arguments)) = turn.server.and_then(|server| server.command.split_first())
    {
        let server = json!({"command": program, "args": arguments, "trust": true});
        edits.push(Edit::Set(&["mcpServers", Server::NAME], server));
        edits.push(Edit::Join(&["mcp", "allowed"], Server::NAME));
        edits.push(Edit::Leave(&["mcp", "excluded"], Server::NAME));
    }
    edits
}
