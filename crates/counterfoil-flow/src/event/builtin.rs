//! Built-in steps as events record them.

use counterfoil_contract::text::{Form, neutralize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longer texts are truncated.
const MAX_LENGTH: usize = 100;

/// A step that the engine performs itself, without an agent or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltinStep {
    /// Reads this file.
    Read(String),
    /// Collects the changes since this revision; an empty revision means the first commit.
    Changes(String),
    /// Makes a commit with this subject line.
    Commit(String),
    /// Runs these checks of the project after a step.
    Checks(Vec<String>),
    /// Runs these checks of the project before the first step of the run.
    BaseChecks(Vec<String>),
}

impl fmt::Display for BuiltinStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read {}", display(path)),
            Self::Changes(since) if since.is_empty() => f.write_str("changes since the beginning"),
            Self::Changes(since) => write!(f, "changes since {}", display(short(since))),
            Self::Commit(subject) => write!(f, "commit {}", display(subject)),
            Self::Checks(names) | Self::BaseChecks(names) => {
                f.write_str(&display(&names.join(", ")))
            }
        }
    }
}

/// Shortens a full commit hash.
fn short(revision: &str) -> &str {
    let is_name = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_name { &revision[..12] } else { revision }
}

/// The text on one line, truncated, with unsafe characters escaped.
fn display(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = neutralize(&words, Form::Line);
    if line.chars().count() <= MAX_LENGTH {
        return line.into_owned();
    }
    let cut: String = line.chars().take(MAX_LENGTH - 1).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builtin_step_is_shown_on_one_short_line() {
        let text = |builtin: BuiltinStep| builtin.to_string();
        assert_eq!(text(BuiltinStep::Read("plan/tasks.yaml".into())), "read plan/tasks.yaml");
        assert_eq!(
            text(BuiltinStep::Changes("0123456789abcdef".repeat(3))),
            "changes since 0123456789ab"
        );
        assert_eq!(text(BuiltinStep::Changes("origin/main".into())), "changes since origin/main");
        assert_eq!(text(BuiltinStep::Changes(String::new())), "changes since the beginning");
        assert_eq!(
            text(BuiltinStep::Commit("feat(a):\u{1b}[2J it".into())),
            r"commit feat(a):\u{1b}[2J it"
        );
        let long = text(BuiltinStep::Commit("ä".repeat(300)));
        assert!(long.ends_with('…') && long.chars().count() == 107, "{long}");
    }

    #[test]
    fn a_builtin_step_is_serialised_by_its_kind() {
        let written = serde_json::to_string(&BuiltinStep::Read("a.yaml".into())).unwrap();
        assert_eq!(written, r#"{"read":"a.yaml"}"#);
        assert_eq!(
            serde_json::from_str::<BuiltinStep>(&written).unwrap(),
            BuiltinStep::Read("a.yaml".into())
        );
    }
}
