//! The tool items of Codex: activity lines for progress displays, and denied actions.

use crate::adapters::common::{activity_line, truncate};
use serde::Deserialize;

/// A command that Codex ran.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    command: String,
    aggregated_output: String,
    status: String,
}

impl Command {
    /// The activity line.
    pub(super) fn activity(&self) -> Option<String> {
        activity_line(&self.line()).map(|line| format!("$ {line}"))
    }

    /// Why the command was denied, if it was. A write that the sandbox blocked is only visible in
    /// the output of the command.
    pub(super) fn denied(&self) -> Option<String> {
        let why = if self.status == "declined" {
            "declined"
        } else {
            self.aggregated_output
                .lines()
                .map(str::trim)
                .find(|line| line.ends_with(": Read-only file system"))?
        };
        Some(format!("{}: {}", truncate(&self.line(), 120), truncate(why, 200)))
    }

    /// The command without the shell that runs it.
    pub(super) fn line(&self) -> String {
        let short = &self.command[..self.command.floor_char_boundary(4096)];
        match shlex::split(short).as_deref() {
            Some([_, flag, line]) if flag.starts_with('-') && flag.ends_with('c') => line.clone(),
            _ => short.to_owned(),
        }
    }
}

/// A call of an MCP tool.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ServerCall {
    server: String,
    tool: String,
    error: Option<ToolMessage>,
}

/// A message of Codex.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolMessage {
    pub(super) message: String,
}

/// How a call of an MCP tool failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// The call was denied.
    Denied(String),
    /// The call failed for another reason.
    Other(String),
}

impl ServerCall {
    /// The activity line.
    pub(super) fn activity(&self) -> Option<String> {
        activity_line(&self.name())
    }

    /// The name of the tool with that of its server.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }

    /// How the call failed, if it did.
    pub(super) fn failed(&self) -> Option<Failed> {
        let why = &self.error.as_ref()?.message;
        let text = format!(
            "{}.{}: {}",
            truncate(&self.server, 60),
            truncate(&self.tool, 60),
            truncate(why, 200)
        );
        let denied =
            ["requires approval", "rejected by user", "user cancelled", "user rejected", "denied"];
        let lowercase = why.to_lowercase();
        Some(if denied.iter().any(|cue| lowercase.contains(cue)) {
            Failed::Denied(text)
        } else {
            Failed::Other(text)
        })
    }
}

/// A change of files.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Edit {
    changes: Vec<Change>,
    status: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Change {
    path: String,
}

impl Edit {
    /// The activity line.
    pub(super) fn activity(&self) -> Option<String> {
        self.target().map(|target| format!("edits {target}"))
    }

    /// The files: the first one, and the number of the others.
    pub(super) fn target(&self) -> Option<String> {
        let first = self.changes.first()?;
        let more = match self.changes.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        activity_line(&first.path).map(|path| format!("{path}{more}"))
    }

    /// Why the edit was denied, if it was.
    pub(super) fn denied(&self) -> Option<String> {
        (self.status == "declined")
            .then(|| self.activity().unwrap_or_else(|| "an edit".to_owned()) + ": declined")
    }
}

/// A web search.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Search {
    query: String,
}

impl Search {
    /// The activity line.
    pub(super) fn activity(&self) -> Option<String> {
        self.target().map(|query| format!("searches for {query}"))
    }

    /// What is searched for.
    pub(super) fn target(&self) -> Option<String> {
        activity_line(&self.query)
    }
}

/// The plan of the agent.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Plan {
    items: Vec<PlanItem>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlanItem {
    text: String,
    completed: bool,
}

impl Plan {
    /// The activity line: the next open item.
    pub(super) fn activity(&self) -> Option<String> {
        self.items.iter().find(|item| !item.completed).and_then(|item| activity_line(&item.text))
    }
}

/// The denied actions on standard error. Denied edits and denied escapes from the sandbox are
/// reported nowhere else.
pub(super) fn denied_in_stderr(errors: &str) -> impl Iterator<Item = String> {
    const CUES: [&str; 4] =
        ["rejected", "approval policy is never", "blocked by policy", "not permitted"];
    errors
        .lines()
        .filter_map(|line| line.split_once("tools::router: error=").map(|(_, why)| why))
        .filter(|why| CUES.iter().any(|cue| why.to_lowercase().contains(cue)))
        .map(|why| truncate(why, 300))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(command: &str, output: &str, status: &str) -> Command {
        Command { command: command.into(), aggregated_output: output.into(), status: status.into() }
    }

    #[test]
    fn a_command_is_shown_without_its_shell() {
        let activity = |line| command(line, "", "").activity();
        assert_eq!(activity("/bin/bash -lc 'cargo test'"), Some("$ cargo test".to_owned()));
        assert_eq!(activity("cargo test"), Some("$ cargo test".to_owned()));
        assert_eq!(activity("/bin/bash -lc 'open"), Some("$ /bin/bash -lc 'open".to_owned()));
        assert_eq!(activity(""), None);
    }

    #[test]
    fn a_blocked_write_is_found_in_the_output_of_a_command() {
        let denied = |output, status| command("/bin/bash -lc 'touch a'", output, status).denied();
        let erofs = "ok\ntouch: cannot touch 'a': Read-only file system\n";
        let text = "touch a: touch: cannot touch 'a': Read-only file system";
        assert_eq!(denied(erofs, "completed"), Some(text.to_owned()));
        assert_eq!(denied("", "declined"), Some("touch a: declined".to_owned()));
        assert_eq!(denied("see: Read-only file systems\nPermission denied", "failed"), None);
    }

    #[test]
    fn denials_are_distinguished_from_other_lines_of_standard_error() {
        let errors = "\
            Reading prompt from stdin...\n\
            2026-11-15T15:59:05Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only sandbox\n\
            2026-11-15T15:59:06Z ERROR codex_core::tools::router: error=approval policy is Never; reject command\n\
            2026-11-15T15:59:07Z ERROR codex_core::tools::router: error=unsupported call: nothing\n\
            2026-11-15T15:59:08Z ERROR other: rejected\n";
        let denied: Vec<String> = denied_in_stderr(errors).collect();
        assert_eq!(
            denied,
            [
                "patch rejected: writing is blocked by read-only sandbox",
                "approval policy is Never; reject command"
            ]
        );
    }

    #[test]
    fn a_denied_call_is_distinguished_from_a_failed_one() {
        let call = |message: &str| ServerCall {
            server: "counterfoil".into(),
            tool: "submit_result".into(),
            error: Some(ToolMessage { message: message.into() }),
        };
        let why = "MCP tool call requires approval, but approval policy is never";
        let text = format!("counterfoil.submit_result: {why}");
        assert_eq!(call(why).failed(), Some(Failed::Denied(text)));
        let text = "counterfoil.submit_result: timed out".to_owned();
        assert_eq!(call("timed out").failed(), Some(Failed::Other(text)));
        assert_eq!(ServerCall::default().failed(), None);
    }
}
