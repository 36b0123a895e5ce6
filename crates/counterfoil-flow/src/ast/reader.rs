//! Typed access to YAML nodes: strings, mappings with known keys, numbers. A value of the wrong form
//! is reported with its position.

use super::SpannedStr;
use crate::finding::{Code, Finding};
use crate::yaml_tree::{Kind, Node, part_span};
use counterfoil_contract::Span;
use counterfoil_contract::source::Source;
use counterfoil_contract::suggest::nearest;

/// Turns YAML nodes into the syntax tree and collects findings.
pub(crate) struct Reader<'n> {
    pub(crate) file: &'n str,
    pub(crate) text: &'n str,
    pub(crate) source: &'n Source<'n>,
    pub(crate) findings: Vec<Finding>,
}

/// The number of findings after which further ones are dropped.
const MAX_FINDINGS: usize = 100;

/// The entries of a mapping, in file order.
pub(crate) type Entries<'n> = Vec<(SpannedStr<'n>, &'n Node)>;

impl<'n> Reader<'n> {
    /// Reports a finding at a node.
    pub(crate) fn report(
        &mut self,
        code: Code,
        node: &Node,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if self.at_limit() {
            return;
        }
        let span = self.first_line(node);
        self.findings.push(Finding::new(code, self.file, message, hint).at(span));
    }

    /// The first line of a node. Only that one is marked.
    pub(crate) fn first_line(&self, node: &Node) -> Span {
        let block = self.text.get(node.start..self.end_with_delimiter(node)).unwrap_or_default();
        let line = block.split('\n').next().unwrap_or_default().trim_end();
        self.source.span(node.start, node.start + line.len().max(1))
    }

    /// Reports a finding at a part of a scalar, given as a character range of its value.
    pub(crate) fn report_part(
        &mut self,
        code: Code,
        node: &Node,
        part: (usize, usize),
        message: &str,
        hint: &str,
    ) {
        if self.at_limit() {
            return;
        }
        let span = part_span(self.source, self.text, node, part.0, part.1);
        self.findings.push(Finding::new(code, self.file, message, hint).at(span));
    }

    /// Whether the maximum number of findings is reached. Callers skip the search for positions and
    /// similar names, which takes time, for findings that would be dropped.
    pub(crate) fn at_limit(&self) -> bool {
        self.findings.len() >= MAX_FINDINGS
    }

    /// The end of a node, including the closing brace or bracket of a flow collection.
    fn end_with_delimiter(&self, node: &Node) -> usize {
        let end = node.end.max(node.start);
        let closing = match (&node.kind, self.text.as_bytes().get(node.start)) {
            (Kind::Map(_), Some(b'{')) => '}',
            (Kind::List(_), Some(b'[')) => ']',
            _ => return end,
        };
        let rest = self.text.get(end..).unwrap_or_default();
        let inner = rest.trim_start_matches([' ', ',']);
        if inner.starts_with(closing) { end + (rest.len() - inner.len()) + 1 } else { end }
    }

    /// The entries of a mapping. Anything else than a mapping or null is reported.
    pub(crate) fn entries(&mut self, node: &'n Node, what: &str) -> Entries<'n> {
        let Some(entries) = node.entries() else {
            if !matches!(node.kind, Kind::Null) {
                let found = node.describe();
                self.report(
                    Code::WrongForm,
                    node,
                    format!("{what} is {found}, not a mapping"),
                    "write it as `name: …` lines",
                );
            }
            return Vec::new();
        };
        let mut names = Vec::new();
        for (key, value) in entries {
            match key.text() {
                Some(text) => names.push((SpannedStr { text, node: key }, value)),
                None => {
                    self.report(
                        Code::WrongForm,
                        key,
                        format!("a key must be a string, not {}", key.describe()),
                        "put it in quotes",
                    );
                }
            }
        }
        names
    }

    /// The entries of a mapping. Keys other than `keys` are reported. A misspelt one then counts as
    /// the key that was meant, so that the mistake causes a single finding.
    pub(crate) fn known_entries(
        &mut self,
        node: &'n Node,
        what: &str,
        keys: &[&'static [&'static str]],
    ) -> Entries<'n> {
        let entries = self.entries(node, what);
        let all = || keys.iter().copied().flatten().copied();
        for (name, _) in &entries {
            if !all().any(|key| key == name.text) && !self.at_limit() {
                let hint = match meant(name.text, all()) {
                    Some(key) => format!("did you mean '{key}'?"),
                    None => format!("known keys: {}", all().collect::<Vec<_>>().join(", ")),
                };
                self.report(
                    Code::UnknownKey,
                    name.node,
                    format!("{what} has no key '{}'", name.text),
                    hint,
                );
            }
        }
        as_meant(entries, keys, |_| true)
    }

    /// A string. Numbers and booleans are reported rather than converted.
    pub(crate) fn string(&mut self, node: &'n Node, what: &str) -> Option<SpannedStr<'n>> {
        match node.text() {
            Some(text) => Some(SpannedStr { text, node }),
            None => {
                let found = node.describe();
                let hint = match node.kind {
                    Kind::Bool(_) | Kind::Number(_) => "put it in quotes",
                    _ => "write a string",
                };
                self.report(
                    Code::WrongForm,
                    node,
                    format!("{what} is {found}, not a string"),
                    hint,
                );
                None
            }
        }
    }

    /// A list of strings, or a single string as a list of one.
    pub(crate) fn strings(&mut self, node: &'n Node, what: &str) -> Vec<SpannedStr<'n>> {
        match node.items() {
            Some(items) => items.iter().filter_map(|item| self.string(item, what)).collect(),
            None => self.string(node, what).into_iter().collect(),
        }
    }

    /// The value of a key.
    pub(crate) fn get(entries: &Entries<'n>, key: &str) -> Option<&'n Node> {
        entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| *node)
    }

    /// The value of a key, which must be a string.
    pub(crate) fn get_string(
        &mut self,
        entries: &Entries<'n>,
        key: &str,
    ) -> Option<SpannedStr<'n>> {
        Self::get(entries, key).and_then(|node| self.string(node, &format!("`{key}`")))
    }

    /// The value of a key, which must be a boolean; false if the key is absent.
    pub(super) fn get_bool(&mut self, entries: &Entries<'n>, key: &str) -> bool {
        match Self::get(entries, key) {
            None => false,
            Some(node) => match node.kind {
                Kind::Bool(flag) => flag,
                _ => {
                    self.report(
                        Code::WrongForm,
                        node,
                        format!("`{key}` is {}, not a boolean", node.describe()),
                        "write true or false",
                    );
                    false
                }
            },
        }
    }

    /// A whole number of at least 0.
    pub(crate) fn unsigned(&mut self, node: &Node, what: &str) -> Option<u64> {
        if let Kind::Number(number) = &node.kind
            && let Some(number) = number.as_u64()
        {
            return Some(number);
        }
        self.report(
            Code::WrongForm,
            node,
            format!("{what} is not a whole number"),
            "write a number such as 3",
        );
        None
    }
}

/// Whether a mapping has a key that is not known. It has a finding, and may stand for a key that is
/// missing: the mistake causes a single finding.
pub(super) fn has_unknown(entries: &Entries<'_>, keys: &[&'static [&'static str]]) -> bool {
    let is_known = |name: &str| keys.iter().copied().flatten().any(|key| *key == name);
    entries.iter().any(|(name, _)| !is_known(name.text))
}

/// The entries with the keys that were meant in place of misspelt ones, if they are allowed and not
/// there too.
pub(super) fn as_meant<'n>(
    mut entries: Entries<'n>,
    keys: &[&'static [&'static str]],
    is_allowed: impl Fn(&str) -> bool,
) -> Entries<'n> {
    let all = || keys.iter().copied().flatten().copied();
    for at in 0..entries.len() {
        let text = entries[at].0.text;
        if all().any(|key| key == text) {
            continue;
        }
        if let Some(key) = meant(text, all())
            && is_allowed(key)
            && !entries.iter().any(|(name, _)| name.text == key)
        {
            entries[at].0.text = key;
        }
    }
    entries
}

/// The key that was probably meant.
fn meant<'k>(word: &str, keys: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    one_letter_more(word, keys.clone()).or_else(|| nearest(word, keys))
}

/// The key of which a word is a misspelling by a letter too many at the end. By the measure of
/// similarity alone, `goo` is nearer to `goto` than to `go`.
fn one_letter_more<'k>(word: &str, keys: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let (last, _) = word.char_indices().next_back()?;
    let mut keys = keys;
    keys.find(|key| key.len() > 1 && word.get(..last) == Some(key))
}

#[cfg(test)]
mod tests {
    use super::one_letter_more;

    #[test]
    fn a_letter_too_many_is_found_before_a_longer_key() {
        let keys = ["when", "go", "goto", "é"];
        for (word, key) in [
            ("goo", Some("go")),
            ("gotoo", Some("goto")),
            ("go", None),
            ("", None),
            ("éa", Some("é")),
        ] {
            assert_eq!(one_letter_more(word, keys.into_iter()), key, "{word}");
        }
    }
}
