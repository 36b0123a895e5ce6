//! Checks the path patterns of `writes` and `protect`.

use super::Checker;
use crate::ast::SpannedStr;
use crate::finding::Code;
use crate::template::Template;
use crate::yaml_tree::Node;
use counterfoil_contract::expr::Type;
use std::collections::BTreeMap;

impl<'n> Checker<'n> {
    /// The patterns of `protect`. They are templates, because some paths are known only at run time.
    pub(super) fn protected(&mut self, node: &'n Node) -> Vec<Template> {
        let names = self.patterns(node, "protect");
        let is_constant = |text: &str| !text.contains("{{") && !text.contains("{%");
        names
            .into_iter()
            .filter_map(|name| {
                let pattern = name.text.strip_prefix('!').unwrap_or(name.text);
                let is_valid = !is_constant(pattern) || self.is_glob(name, pattern);
                is_valid.then(|| self.template(name)).flatten()
            })
            .collect()
    }

    /// Type-checks the patterns of `protect` against the variables of the main machine.
    pub(super) fn check_protect_types(&mut self, node: &'n Node, types: &BTreeMap<String, Type>) {
        // A value that is not a list of patterns has been reported.
        let texts = node.items().unwrap_or(std::slice::from_ref(node)).iter();
        for name in texts.filter_map(|node| Some(SpannedStr { text: node.text()?, node })) {
            if let Ok(template) = Template::compile(name.text) {
                self.check_template_types(name, &template, types);
            }
        }
    }

    /// The patterns of a list. Invalid ones are reported.
    pub(super) fn globs(&mut self, node: &'n Node, key: &str) -> Vec<String> {
        let names = self.patterns(node, key);
        let is_stored = self.is_stored;
        for name in names.iter().filter(|name| !is_stored && name.text.contains("{{")) {
            let message = format!("`{key}` cannot use variables");
            self.report(
                Code::BadGlob,
                name.node,
                message,
                "only `protect` can: write plain globs here",
            );
        }
        names
            .into_iter()
            .filter(|name| self.is_glob(*name, name.text))
            .map(|name| name.text.to_owned())
            .collect()
    }

    fn patterns(&mut self, node: &'n Node, key: &str) -> Vec<SpannedStr<'n>> {
        if node.items().is_none() && node.text().is_none() {
            let message = format!("`{key}` is {}, not a list of patterns", node.describe());
            self.report(Code::WrongForm, node, message, format!("write {key}: [\"src/**\"]"));
            return Vec::new();
        }
        self.reader.strings(node, "a pattern")
    }

    fn is_glob(&mut self, name: SpannedStr<'n>, pattern: &str) -> bool {
        let Err(why) = validate_glob(pattern) else { return true };
        let message = format!("'{}' is not a valid path pattern: {why}", shortened(pattern));
        let hint = "write a glob relative to the repository: src/**, *.lock, docs/{a,b}.md";
        self.report(Code::BadGlob, name.node, message, hint);
        false
    }
}

/// The maximum length of a pattern. It bounds the recursion over nested braces.
const MAX_PATTERN_BYTES: usize = 1000;

/// Checks that a pattern is a glob of paths inside the repository.
fn validate_glob(text: &str) -> Result<(), String> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(format!("it has {} bytes, more than {MAX_PATTERN_BYTES}", text.len()));
    }
    let inner = text.trim_start_matches("./").trim_start_matches('/');
    if inner.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if inner.split('/').any(|part| part == "..") {
        return Err("it points outside the repository".to_owned());
    }
    match globset::GlobBuilder::new(inner).literal_separator(true).build() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.kind().to_string()),
    }
}

fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    if text.chars().count() <= MAX_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::validate_glob;

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
            assert_eq!(validate_glob(good), Ok(()), "{good:?}");
        }
        for bad in
            ["", " ", "/", "./", "..", "../x", "a/../b", "a/..", "a[", "a{b", "a}", "[z-a]", "a\\"]
        {
            assert!(validate_glob(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn deep_and_long_patterns_end() {
        let deep = |n: usize| format!("{}a{}", "{".repeat(n), "}".repeat(n));
        let _ = validate_glob(&deep(400));
        assert!(validate_glob(&deep(200_000)).is_err());
        assert!(validate_glob(&"a/".repeat(1_000_000)).is_err());
    }
}
