//! Patterns for paths that agents may or may not write.

use super::Checker;
use crate::draft::Name;
use crate::finding::Code;
use crate::template::Template;
use crate::tree::Node;
use counterfoil_contract::Type;
use std::collections::BTreeMap;

impl<'n> Checker<'n> {
    /// The patterns that protect paths: templates, since some paths are known only when the run is
    /// under way.
    pub(super) fn protected(&mut self, node: &'n Node) -> Vec<Template> {
        let names = self.patterns(node, "protect");
        let plain = |text: &str| !text.contains("{{") && !text.contains("{%");
        names
            .into_iter()
            .filter_map(|name| {
                let pattern = name.text.strip_prefix('!').unwrap_or(name.text);
                let good = !plain(pattern) || self.is_glob(name, pattern);
                good.then(|| self.template(name)).flatten()
            })
            .collect()
    }

    /// Holds the patterns that protect paths to what the run itself knows.
    pub(super) fn protected_by(&mut self, node: &'n Node, types: &BTreeMap<String, Type>) {
        // What is no list of patterns was reported.
        let texts = node.items().unwrap_or(std::slice::from_ref(node)).iter();
        for name in texts.filter_map(|node| Some(Name { text: node.text()?, node })) {
            if let Ok(template) = Template::compile(name.text) {
                self.typed_template(name, &template, types);
            }
        }
    }

    /// The patterns of a list; those that are none are reported.
    pub(super) fn globs(&mut self, node: &'n Node, key: &str) -> Vec<String> {
        let names = self.patterns(node, key);
        let kept = self.kept;
        for name in names.iter().filter(|name| !kept && name.text.contains("{{")) {
            let message = format!("`{key}` does not know the run's variables");
            self.report(
                Code::BadGlob,
                name.node,
                message,
                "only `protect` does: write plain globs here",
            );
        }
        names
            .into_iter()
            .filter(|name| self.is_glob(*name, name.text))
            .map(|name| name.text.to_owned())
            .collect()
    }

    fn patterns(&mut self, node: &'n Node, key: &str) -> Vec<Name<'n>> {
        if node.items().is_none() && node.text().is_none() {
            let message = format!("`{key}` is {}, not a list of patterns", node.name());
            self.report(Code::WrongForm, node, message, format!("write {key}: [\"src/**\"]"));
            return Vec::new();
        }
        self.reader.names(node, "a pattern")
    }

    fn is_glob(&mut self, name: Name<'n>, pattern: &str) -> bool {
        let Err(why) = glob(pattern) else { return true };
        let message = format!("'{}' is no pattern for paths: {why}", shortened(pattern));
        let hint = "write a glob of paths in the repository: src/**, *.lock, docs/{a,b}.md";
        self.report(Code::BadGlob, name.node, message, hint);
        false
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
        for good in [
            "src/**",
            "*.lock",
            "docs",
            "docs/",
            "./a",
            "/a/b",
            "a/{b,c}/[xy]?.rs",
            "..a",
            "a b\n",
            "ä",
        ] {
            assert_eq!(glob(good), Ok(()), "{good:?}");
        }
        for bad in
            ["", " ", "/", "./", "..", "../x", "a/../b", "a/..", "a[", "a{b", "a}", "[z-a]", "a\\"]
        {
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
