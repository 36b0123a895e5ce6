//! The paths of files in a recording.

/// The longest part of a folder name that comes from the path of its attempt.
const MAX_PATH_CHARS: usize = 60;

/// The paths of the files of one reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFiles {
    base: String,
}

impl ReplyFiles {
    /// The files of a reply, by the number of its attempt and its own number, both from 1.
    pub fn new(attempt: usize, path: &[String], reply: usize) -> Self {
        let joined = path.join(".");
        let safe = joined.chars().take(MAX_PATH_CHARS).map(|char| {
            if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' }
        });
        Self { base: format!("attempts/{attempt:03}-{}/{reply}", safe.collect::<String>()) }
    }

    /// The prompt.
    pub fn prompt(&self) -> String {
        format!("{}.prompt", self.base)
    }

    /// Standard output.
    pub fn stdout(&self) -> String {
        format!("{}.stdout", self.base)
    }

    /// Standard error.
    pub fn stderr(&self) -> String {
        format!("{}.stderr", self.base)
    }

    /// The submissions through the tool.
    pub fn submissions(&self) -> String {
        format!("{}.submissions.jsonl", self.base)
    }

    /// The final text.
    pub fn text(&self) -> String {
        format!("{}.text", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_workspace::path::is_strictly_inside;
    use std::path::Path;

    #[test]
    fn paths_are_safe_and_in_order() {
        let path = ["build".to_owned(), "a b/../c".to_owned()];
        assert_eq!(ReplyFiles::new(2, &path, 1).stdout(), "attempts/002-build.a_b_.._c/1.stdout");
        let prompt = ReplyFiles::new(1, &["..".to_owned()], 1).prompt();
        assert!(is_strictly_inside(Path::new(&prompt)));
    }
}
