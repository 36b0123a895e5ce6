//! Patterns for paths that agents may or may not write.

use super::Checker;
use crate::finding::Code;
use crate::tree::Node;

impl<'n> Checker<'n> {
    /// The patterns of a list; those that are none are reported.
    pub(super) fn globs(&mut self, node: &'n Node, key: &str) -> Vec<String> {
        if node.items().is_none() && node.text().is_none() {
            let message = format!("`{key}` is {}, not a list of patterns", node.name());
            self.report(Code::WrongForm, node, message, format!("write {key}: [\"src/**\"]"));
            return Vec::new();
        }
        let names = self.reader.names(node, "a pattern");
        let mut globs = Vec::with_capacity(names.len());
        for name in names {
            match glob(name.text) {
                Ok(()) => globs.push(name.text.to_owned()),
                Err(why) => {
                    let message = format!("'{}' is no pattern for paths: {why}", shortened(name.text));
                    let hint = "write a glob of paths in the repository: src/**, *.lock, docs/{a,b}.md";
                    self.report(Code::BadGlob, name.node, message, hint);
                }
            }
        }
        globs
    }
}

/// A longer pattern is no pattern that somebody wrote; deep braces in it would be followed down.
const LONGEST: usize = 1000;

/// Whether a pattern is a glob of paths inside of the repository.
fn glob(text: &str) -> Result<(), String> {
    if text.len() > LONGEST {
        return Err(format!("it has {} bytes, more than {LONGEST}", text.len()));
    }
    let inner = text.trim_start_matches("./").trim_start_matches('/');
    if inner.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if inner.split('/').any(|part| part == "..") {
        return Err("it leads out of the repository".to_owned());
    }
    match globset::GlobBuilder::new(inner).literal_separator(true).build() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.kind().to_string()),
    }
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs_stay_in_the_repository() {
        for good in
            ["src/**", "*.lock", "docs", "docs/", "./a", "/a/b", "a/{b,c}/[xy]?.rs", "..a", "a b\n", "ä"]
        {
            assert_eq!(glob(good), Ok(()), "{good:?}");
        }
        for bad in ["", " ", "/", "./", "..", "../x", "a/../b", "a/..", "a[", "a{b", "a}", "[z-a]", "a\\"] {
            assert!(glob(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn deep_and_long_patterns_end() {
        let deep = |n: usize| format!("{}a{}", "{".repeat(n), "}".repeat(n));
        let _ = glob(&deep(400));
        assert!(glob(&deep(200_000)).is_err());
        assert!(glob(&"a/".repeat(1_000_000)).is_err());
    }
}
