//! What the engine does itself in a state, as it is told.

use serde::{Deserialize, Serialize};
use std::fmt;

/// More of a message or a name is not told.
const MAX_LENGTH: usize = 100;

/// What the engine does itself, where neither an agent nor a command works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltinStep {
    /// It reads this file.
    Read(String),
    /// It looks at what changed since this revision; since the beginning, if it is empty.
    Changes(String),
    /// It commits, with this as the first line of the message.
    Commit(String),
}

impl fmt::Display for BuiltinStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read {}", shown(path)),
            Self::Changes(since) if since.is_empty() => f.write_str("changes since the beginning"),
            Self::Changes(since) => write!(f, "changes since {}", shown(short(since))),
            Self::Commit(subject) => write!(f, "commit {}", shown(subject)),
        }
    }
}

/// The name of a commit is known by its beginning.
fn short(revision: &str) -> &str {
    let is_name = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_name { &revision[..12] } else { revision }
}

/// One line, cut where it gets long, without what could move a terminal.
fn shown(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    if line.chars().count() <= MAX_LENGTH {
        return line.to_owned();
    }
    let cut: String = line.chars().take(MAX_LENGTH - 1).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deed_is_told_in_one_short_line() {
        let told = |builtin: BuiltinStep| builtin.to_string();
        assert_eq!(told(BuiltinStep::Read("plan/tasks.yaml".into())), "read plan/tasks.yaml");
        assert_eq!(
            told(BuiltinStep::Changes("0123456789abcdef".repeat(3))),
            "changes since 0123456789ab"
        );
        assert_eq!(told(BuiltinStep::Changes("origin/main".into())), "changes since origin/main");
        assert_eq!(told(BuiltinStep::Changes(String::new())), "changes since the beginning");
        assert_eq!(
            told(BuiltinStep::Commit("feat(a):\u{1b}[2J it".into())),
            "commit feat(a): [2J it"
        );
        let long = told(BuiltinStep::Commit("ä".repeat(300)));
        assert!(long.ends_with('…') && long.chars().count() == 107, "{long}");
    }

    #[test]
    fn a_deed_is_written_by_its_kind() {
        let written = serde_json::to_string(&BuiltinStep::Read("a.yaml".into())).unwrap();
        assert_eq!(written, r#"{"read":"a.yaml"}"#);
        assert_eq!(
            serde_json::from_str::<BuiltinStep>(&written).unwrap(),
            BuiltinStep::Read("a.yaml".into())
        );
    }
}
