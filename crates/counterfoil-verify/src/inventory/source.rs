//! A parsed file, as the readers of the languages see it.

use super::assertion::{self, Contexts};
use super::checks::{self, Checks};
use super::constant::{Conditions, Names, Role, Truth};
use super::parse::{Language, line_number, node_bytes, node_text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tree_sitter::Node;

/// The maximum length of a piece of code that is quoted.
const MAX_QUOTED: usize = 80;

/// The maximum length of a name that is recognised.
const MAX_NAME: usize = 100;

/// The text of a file with its language and constants.
pub(super) struct Source<'s> {
    pub(super) language: Language,
    pub(super) text: &'s [u8],
    /// Whether a runner collects tests from a file of this name.
    pub(super) is_collected: bool,
    /// Whether the file is the `__init__.py` of a folder with tests: what it skips are the others.
    pub(super) is_package_of_tests: bool,
    names: Names<'s>,
}

impl<'s> Source<'s> {
    /// Reads the constants of a file.
    pub(super) fn read(language: Language, path: &Path, root: Node<'_>, text: &'s [u8]) -> Self {
        let is_collected = language.is_collected(path);
        let is_package_of_tests = path.file_name().is_some_and(|name| name == "__init__.py")
            && path.iter().any(|part| part.to_string_lossy().contains("test"));
        let mut names = Names::of_file(root, text);
        let guards = assertion::guards(language, root, text, &names);
        names.roles.extend(guards.into_iter().map(|(name, guard)| (name, Role::Guard(guard))));
        Self { language, text, is_collected, is_package_of_tests, names }
    }

    /// Whether a function of the file discards the failures of what it runs.
    pub(super) fn is_guard(&self, callee: Node<'_>, name: &str) -> bool {
        matches!(
            self.names.roles.get(name.as_bytes()),
            Some(Role::Guard(guard)) if guard.is_called_by(callee)
        )
    }

    /// What a body checks.
    pub(super) fn checks(&self, body: Node<'_>) -> Checks {
        checks::read(self.language, body, self.text, &self.names, Contexts::default())
    }

    /// What the body of a test checks whose function may get a context.
    pub(super) fn checks_with(&self, function: Node<'_>, body: Node<'_>) -> Checks {
        let mut contexts = Contexts::default();
        contexts.add(function, self.text);
        checks::read(self.language, body, self.text, &self.names, contexts)
    }

    /// What is known of a condition.
    pub(super) fn truth(&self, node: Node<'_>) -> Truth {
        let names = [&self.names];
        Conditions { text: self.text, names: &names }.truth(node)
    }

    /// The text of a node.
    pub(super) fn node_text(&self, node: Node<'_>) -> &'s str {
        node_text(node, self.text)
    }

    /// The last part of a dotted name. Reads only the end, since a chain of calls has any length.
    pub(super) fn last_name(&self, node: Node<'_>) -> &'s str {
        let path = node_bytes(node, self.text);
        let end = &path[path.len().saturating_sub(MAX_NAME)..];
        let name = end.rsplit(|byte| matches!(byte, b'.' | b':')).next().unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default().trim()
    }

    /// The text of a node on one line, shortened.
    pub(super) fn quote(&self, node: Node<'_>) -> String {
        let raw = self.node_text(node);
        let raw = raw.get(..raw.floor_char_boundary(4 * MAX_QUOTED)).unwrap_or(raw);
        quote(raw)
    }
}

/// A text on one line, shortened.
pub(super) fn quote(text: &str) -> String {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match plain.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

/// Something outside of tests that decides which tests run, or whether they can fail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Switch {
    /// What identifies it before and after a step.
    pub(super) key: String,
    /// What it does, for people.
    pub(super) what: String,
    /// The line, counted from 1.
    pub(super) line: u32,
    /// The name of a setting that selects tests, and what it selects. One that selects more than
    /// before leaves out nothing.
    pub(super) selects: Option<(String, BTreeSet<String>)>,
    /// Whether it selects what the runner selects without it.
    pub(super) is_usual: bool,
    /// Files without which it decides about nothing: where one of them is new, no test is lost.
    pub(super) about: Vec<PathBuf>,
    /// The manifest of its package: where both it and the settings are new, no test is lost.
    pub(super) manifest: Option<PathBuf>,
}

impl Switch {
    /// A switch that is identified by what it does.
    pub(super) fn new(node: Node<'_>, what: String) -> Self {
        Self {
            key: what.clone(),
            what,
            line: line_number(node),
            selects: None,
            is_usual: false,
            about: Vec::new(),
            manifest: None,
        }
    }

    /// A switch that is another one if its code changes.
    pub(super) fn with_code(node: Node<'_>, what: String, code: u64) -> Self {
        Self { key: format!("{what} {code:x}"), ..Self::new(node, what) }
    }
}
