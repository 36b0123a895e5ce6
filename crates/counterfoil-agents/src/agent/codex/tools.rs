//! What Codex's tools did, as its items tell it: words for whoever watches, and what they were not
//! allowed.

use crate::agent::adapter::common::{cut, words};
use serde::Deserialize;

/// A command that it ran.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    command: String,
    aggregated_output: String,
    status: String,
}

impl Command {
    /// For whoever watches.
    pub(super) fn words(&self) -> Option<String> {
        words(&self.line()).map(|line| format!("$ {line}"))
    }

    /// Why it was not allowed, if it was not. A write that the sandbox stopped is only seen in what
    /// the command says of it.
    pub(super) fn denied(&self) -> Option<String> {
        let why = if self.status == "declined" {
            "declined"
        } else {
            self.aggregated_output
                .lines()
                .map(str::trim)
                .find(|line| line.ends_with(": Read-only file system"))?
        };
        Some(format!("{}: {}", cut(&self.line(), 120), cut(why, 200)))
    }

    /// The command without the shell that it is handed to.
    fn line(&self) -> String {
        let short = &self.command[..self.command.floor_char_boundary(4096)];
        match shlex::split(short).as_deref() {
            Some([_, flag, line]) if flag.starts_with('-') && flag.ends_with('c') => line.clone(),
            _ => short.to_owned(),
        }
    }
}

/// A call of a server's tool.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ServerCall {
    server: String,
    tool: String,
    error: Option<Said>,
}

/// Words of its own.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    pub(super) message: String,
}

/// How a call of a server's tool failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// It was not allowed.
    Denied(String),
    /// Otherwise.
    Otherwise(String),
}

impl ServerCall {
    /// For whoever watches.
    pub(super) fn words(&self) -> Option<String> {
        words(&format!("{}.{}", self.server, self.tool))
    }

    /// How it failed, if it did.
    pub(super) fn failed(&self) -> Option<Failed> {
        let why = &self.error.as_ref()?.message;
        let words = format!("{}.{}: {}", cut(&self.server, 60), cut(&self.tool, 60), cut(why, 200));
        let denied =
            ["requires approval", "rejected by user", "user cancelled", "user rejected", "denied"];
        let small = why.to_lowercase();
        Some(if denied.iter().any(|cue| small.contains(cue)) {
            Failed::Denied(words)
        } else {
            Failed::Otherwise(words)
        })
    }
}

/// Files that it changed.
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
    /// For whoever watches.
    pub(super) fn words(&self) -> Option<String> {
        let first = self.changes.first()?;
        let more = match self.changes.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        words(&first.path).map(|path| format!("edits {path}{more}"))
    }

    /// Why it was not allowed, if it was not.
    pub(super) fn denied(&self) -> Option<String> {
        (self.status == "declined")
            .then(|| self.words().unwrap_or_else(|| "an edit".to_owned()) + ": declined")
    }
}

/// A search on the web.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Search {
    query: String,
}

impl Search {
    /// For whoever watches.
    pub(super) fn words(&self) -> Option<String> {
        words(&self.query).map(|query| format!("searches for {query}"))
    }
}

/// What it intends to do.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Plan {
    items: Vec<Intent>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Intent {
    text: String,
    completed: bool,
}

impl Plan {
    /// For whoever watches: what comes next.
    pub(super) fn words(&self) -> Option<String> {
        self.items.iter().find(|intent| !intent.completed).and_then(|intent| words(&intent.text))
    }
}

/// What standard error says was not allowed: refusals of edits and of leaving the sandbox are told
/// nowhere else.
pub(super) fn denied_in(errors: &str) -> impl Iterator<Item = String> {
    const CUES: [&str; 4] =
        ["rejected", "approval policy is never", "blocked by policy", "not permitted"];
    errors
        .lines()
        .filter_map(|line| line.split_once("tools::router: error=").map(|(_, why)| why))
        .filter(|why| CUES.iter().any(|cue| why.to_lowercase().contains(cue)))
        .map(|why| cut(why, 300))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(command: &str, output: &str, status: &str) -> Command {
        Command { command: command.into(), aggregated_output: output.into(), status: status.into() }
    }

    #[test]
    fn a_command_is_shown_without_its_shell() {
        let shown = |line| command(line, "", "").words();
        assert_eq!(shown("/bin/bash -lc 'cargo test'"), Some("$ cargo test".to_owned()));
        assert_eq!(shown("cargo test"), Some("$ cargo test".to_owned()));
        assert_eq!(shown("/bin/bash -lc 'open"), Some("$ /bin/bash -lc 'open".to_owned()));
        assert_eq!(shown(""), None);
    }

    #[test]
    fn the_sandbox_is_seen_in_what_a_command_says() {
        let denied = |output, status| command("/bin/bash -lc 'touch a'", output, status).denied();
        let erofs = "ok\ntouch: cannot touch 'a': Read-only file system\n";
        let words = "touch a: touch: cannot touch 'a': Read-only file system";
        assert_eq!(denied(erofs, "completed"), Some(words.to_owned()));
        assert_eq!(denied("", "declined"), Some("touch a: declined".to_owned()));
        assert_eq!(denied("see: Read-only file systems\nPermission denied", "failed"), None);
    }

    #[test]
    fn refusals_are_told_from_other_lines_of_standard_error() {
        let errors = "\
            Reading prompt from stdin...\n\
            2026-11-15T15:59:05Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only sandbox\n\
            2026-11-15T15:59:06Z ERROR codex_core::tools::router: error=approval policy is Never; reject command\n\
            2026-11-15T15:59:07Z ERROR codex_core::tools::router: error=unsupported call: nothing\n\
            2026-11-15T15:59:08Z ERROR other: rejected\n";
        let denied: Vec<String> = denied_in(errors).collect();
        assert_eq!(
            denied,
            [
                "patch rejected: writing is blocked by read-only sandbox",
                "approval policy is Never; reject command"
            ]
        );
    }

    #[test]
    fn a_call_that_nobody_approved_is_told_from_one_that_failed() {
        let call = |message: &str| ServerCall {
            server: "counterfoil".into(),
            tool: "submit_result".into(),
            error: Some(Said { message: message.into() }),
        };
        let why = "MCP tool call requires approval, but approval policy is never";
        let words = format!("counterfoil.submit_result: {why}");
        assert_eq!(call(why).failed(), Some(Failed::Denied(words)));
        let words = "counterfoil.submit_result: timed out".to_owned();
        assert_eq!(call("timed out").failed(), Some(Failed::Otherwise(words)));
        assert_eq!(ServerCall::default().failed(), None);
    }
}
