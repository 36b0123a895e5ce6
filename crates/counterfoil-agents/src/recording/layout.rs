//! The names of files in a recording.

use std::path::{Component, Path};

/// The longest name that a folder gets of the path of its attempt.
const LONGEST: usize = 60;

/// The files of one reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    base: String,
}

impl Names {
    /// Those of a reply, by the number of its attempt and its own, both from 1.
    pub fn of(attempt: usize, path: &[String], reply: usize) -> Self {
        let joined = path.join(".");
        let plain = joined.chars().take(LONGEST).map(|char| {
            if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' }
        });
        Self { base: format!("attempts/{attempt:03}-{}/{reply}", plain.collect::<String>()) }
    }

    /// What was asked.
    pub fn prompt(&self) -> String {
        format!("{}.prompt", self.base)
    }

    /// What came on standard output.
    pub fn stdout(&self) -> String {
        format!("{}.stdout", self.base)
    }

    /// What came on standard error.
    pub fn stderr(&self) -> String {
        format!("{}.stderr", self.base)
    }

    /// What was handed in through the tool.
    pub fn submissions(&self) -> String {
        format!("{}.submissions.jsonl", self.base)
    }

    /// The final text.
    pub fn text(&self) -> String {
        format!("{}.text", self.base)
    }
}

/// Whether a path stays in the folder it is in.
pub fn is_inside(path: &str) -> bool {
    let path = Path::new(path);
    path.components().next().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_in_order() {
        let path = ["build".to_owned(), "a b/../c".to_owned()];
        assert_eq!(Names::of(2, &path, 1).stdout(), "attempts/002-build.a_b_.._c/1.stdout");
        assert!(is_inside(&Names::of(1, &["..".to_owned()], 1).prompt()));
    }

    #[test]
    fn a_path_that_leads_out_is_none() {
        for (path, inside) in [
            ("a/b", true),
            ("", false),
            ("/etc/passwd", false),
            ("../a", false),
            ("a/../../b", false),
        ] {
            assert_eq!(is_inside(path), inside, "{path}");
        }
    }
}
