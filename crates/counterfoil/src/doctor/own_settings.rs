//! What the user's own settings of an agent program add to its agents, or forbid them. No I/O.
//!
//! Which settings reach our runs follows from how the adapters call the programs.

use counterfoil_agents::adapters::Server;
use counterfoil_contract::text::escape_control;
use serde_json::Value;

/// A settings file of a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SettingsFile {
    /// The file, as it is shown.
    pub(crate) name: String,
    /// Whose settings they are.
    pub(crate) of: Owner,
    /// The settings, or why they cannot be read.
    pub(crate) content: Result<Value, String>,
}

/// Whose settings a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user's, for all projects.
    User,
    /// The project's.
    Project,
}

/// The most rules that a line names.
const MAX_RULES: usize = 5;
/// The most characters of a rule.
const MAX_RULE_CHARS: usize = 60;

/// One line for each file that adds or forbids something.
pub(crate) fn lines(program: &str, files: &[SettingsFile]) -> Vec<String> {
    let line = |file: &SettingsFile| {
        let said = match &file.content {
            Err(why) => vec![format!("cannot be read: {why}")],
            Ok(settings) => match program {
                "claude" => claude(settings, file.of),
                "codex" => codex(settings, file.of),
                "gemini" => gemini(settings, file.of),
                _ => Vec::new(),
            },
        };
        (!said.is_empty()).then(|| format!("{}: {}", file.name, said.join("; ")))
    };
    files.iter().filter_map(line).collect()
}

/// Rules of the user hold in every run. Those of the project are not read by agents that only read.
fn claude(settings: &Value, of: Owner) -> Vec<String> {
    let permissions = &settings["permissions"];
    let mut said = Vec::new();
    for (key, words) in [
        ("allow", "allows"),
        ("deny", "denies"),
        ("ask", "denies, as nobody can be asked,"),
        ("additionalDirectories", "opens the folders"),
    ] {
        said.extend(list(&permissions[key]).map(|rules| format!("{words} {rules}")));
    }
    if !said.is_empty() && of == Owner::Project {
        said.push("not for agents with read-only".to_owned());
    }
    if let Some(mode) = permissions["defaultMode"].as_str() {
        said.push(format!("its defaultMode {} does not count", short(mode)));
    }
    said
}

/// The sandbox and the approval policy are set by us. What the sandbox `workspace-write` includes is
/// taken from the settings.
fn codex(settings: &Value, of: Owner) -> Vec<String> {
    let mut said = Vec::new();
    let sandbox = &settings["sandbox_workspace_write"];
    if sandbox["network_access"] == true {
        said.push("gives agents with workspace-write the network".to_owned());
    }
    if let Some(roots) = list(&sandbox["writable_roots"]) {
        said.push(format!("lets agents with workspace-write write in {roots}"));
    }
    if sandbox["exclude_slash_tmp"] == true {
        said.push("lets no agent write in /tmp".to_owned());
    }
    let servers = settings["mcp_servers"].as_object().into_iter().flatten();
    let servers: Vec<Value> = servers
        .filter(|(name, server)| *name != Server::NAME && server["enabled"] != false)
        .map(|(name, _)| Value::from(name.as_str()))
        .collect();
    if let Some(names) = list(&Value::Array(servers)) {
        said.push(format!("attaches the servers {names}, which no sandbox holds"));
    }
    if !said.is_empty() && of == Owner::Project {
        said.push("unless trust_level of the project is \"untrusted\"".to_owned());
    }
    for (key, instead) in
        [("sandbox_mode", "the access of the agent"), ("approval_policy", "`never`")]
    {
        if let Some(value) = settings[key].as_str() {
            said.push(format!("its {key} {} does not count: {instead} does", short(value)));
        }
    }
    said
}

/// The user's settings are copied, and those of the project hold because the folder is trusted for
/// the run.
fn gemini(settings: &Value, _: Owner) -> Vec<String> {
    let mut said = Vec::new();
    let tools = &settings["tools"];
    for (key, words) in [
        ("core", "leaves its agents only the tools"),
        ("exclude", "takes away the tools"),
        ("allowed", "allows without asking, but for what read-only denies,"),
    ] {
        said.extend(list(&tools[key]).map(|rules| format!("{words} {rules}")));
    }
    for (old, new) in [
        ("coreTools", "tools.core"),
        ("excludeTools", "tools.exclude"),
        ("allowedTools", "tools.allowed"),
    ] {
        if list(&settings[old]).is_some() {
            said.push(format!("its {old} does not count: current versions read {new}"));
        }
    }
    said
}

/// The texts of a list; none if there is none.
fn list(value: &Value) -> Option<String> {
    let all: Vec<&str> = value.as_array()?.iter().filter_map(Value::as_str).collect();
    let more = match all.len().saturating_sub(MAX_RULES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<String> = all.iter().take(MAX_RULES).map(|rule| short(rule)).collect();
    (!named.is_empty()).then(|| named.join(", ") + &more)
}

fn short(text: &str) -> String {
    let mut chars = text.chars();
    let short = escape_control(&chars.by_ref().take(MAX_RULE_CHARS).collect::<String>());
    if chars.next().is_some() { short + "…" } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(program: &str, of: Owner, content: Value) -> String {
        let file = SettingsFile { name: "file".to_owned(), of, content: Ok(content) };
        lines(program, &[file]).join("\n")
    }

    #[test]
    fn each_setting_that_reaches_a_run_is_said_in_one_line() {
        use Owner::{Project, User};
        for (program, of, settings, expected) in [
            (
                "claude",
                User,
                json!({"permissions": {"allow": ["Bash(make:*)"], "deny": ["WebFetch", "Read(.env)"]}}),
                "file: allows Bash(make:*); denies WebFetch, Read(.env)",
            ),
            (
                "claude",
                Project,
                json!({"permissions": {"ask": ["Bash(git push:*)"]}}),
                "file: denies, as nobody can be asked, Bash(git push:*); not for agents with read-only",
            ),
            (
                "claude",
                User,
                json!({"permissions": {"defaultMode": "bypassPermissions"}}),
                "file: its defaultMode bypassPermissions does not count",
            ),
            (
                "claude",
                User,
                json!({"permissions": {"additionalDirectories": ["/opt"]}}),
                "file: opens the folders /opt",
            ),
            ("claude", User, json!({"permissions": {"allow": []}, "model": "opus"}), ""),
            ("claude", User, json!({"permissions": 7}), ""),
            (
                "codex",
                User,
                json!({"approval_policy": "on-request", "sandbox_mode": "danger-full-access"}),
                "file: its sandbox_mode danger-full-access does not count: the access of the agent does; its approval_policy on-request does not count: `never` does",
            ),
            (
                "codex",
                User,
                json!({"sandbox_workspace_write": {"network_access": true, "writable_roots": ["/opt/x"], "exclude_slash_tmp": true}}),
                "file: gives agents with workspace-write the network; lets agents with workspace-write write in /opt/x; lets no agent write in /tmp",
            ),
            (
                "codex",
                Project,
                json!({"mcp_servers": {"db": {"command": "x"}, "off": {"enabled": false}, "counterfoil": {}}}),
                "file: attaches the servers db, which no sandbox holds; unless trust_level of the project is \"untrusted\"",
            ),
            ("codex", User, json!({"sandbox_workspace_write": {"network_access": false}}), ""),
            (
                "gemini",
                User,
                json!({"tools": {"exclude": ["read_file"], "core": ["glob"], "allowed": ["run_shell_command(git)"]}}),
                "file: leaves its agents only the tools glob; takes away the tools read_file; allows without asking, but for what read-only denies, run_shell_command(git)",
            ),
            (
                "gemini",
                Project,
                json!({"coreTools": ["glob"]}),
                "file: its coreTools does not count: current versions read tools.core",
            ),
            ("gemini", User, json!([]), ""),
        ] {
            assert_eq!(said(program, of, settings), expected);
        }
    }

    #[test]
    fn long_and_hostile_settings_stay_one_line() {
        let rules: Vec<String> =
            (0..500).map(|n| format!("Bash({n}\n\u{1b}[31m{})", "x".repeat(900))).collect();
        let line = said("claude", Owner::User, json!({"permissions": {"deny": rules}}));
        assert!(line.ends_with("and 495 more") && line.len() < 700, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let content = Err("it is not JSON: x".to_owned());
        let file = SettingsFile { name: "f".to_owned(), of: Owner::User, content };
        assert_eq!(lines("gemini", &[file]), ["f: cannot be read: it is not JSON: x"]);
    }
}
