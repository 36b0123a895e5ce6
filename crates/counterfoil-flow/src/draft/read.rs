//! Reading nodes: texts, mappings with known keys, numbers; what has the wrong form is reported
//! where it stands.

use super::Name;
use crate::finding::{Code, Finding};
use crate::tree::{Kind, Node, inside};
use counterfoil_contract::{Source, did_you_mean};

/// Sorts the tree and collects what has the wrong form.
pub(crate) struct Reader<'n> {
    pub(crate) file: &'n str,
    pub(crate) text: &'n str,
    pub(crate) source: &'n Source<'n>,
    pub(crate) findings: Vec<Finding>,
}

/// A file with more wrong in it than this is not read on.
const MOST_FINDINGS: usize = 100;

pub(crate) type Entries<'n> = Vec<(Name<'n>, &'n Node)>;

impl<'n> Reader<'n> {
    /// Reports something about a node.
    pub(crate) fn report(
        &mut self,
        code: Code,
        node: &Node,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if self.is_full() {
            return;
        }
        // Of a block only the first line is marked.
        let block = self.text.get(node.start..self.closed(node)).unwrap_or_default();
        let line = block.split('\n').next().unwrap_or_default().trim_end();
        let span = self.source.span(node.start, node.start + line.len().max(1));
        self.findings.push(Finding::new(code, self.file, message, hint).at(span));
    }

    /// Reports something about a part of a scalar, in characters of its value.
    pub(crate) fn report_inside(
        &mut self,
        code: Code,
        node: &Node,
        part: (usize, usize),
        message: &str,
        hint: &str,
    ) {
        if self.is_full() {
            return;
        }
        let span = inside(self.source, self.text, node, part.0, part.1);
        self.findings.push(Finding::new(code, self.file, message, hint).at(span));
    }

    /// Whether more findings would help nobody; finding the place and the nearest name of each
    /// takes its time.
    pub(crate) fn is_full(&self) -> bool {
        self.findings.len() >= MOST_FINDINGS
    }

    /// The end of a node; of one in braces or brackets, behind the closing one.
    fn closed(&self, node: &Node) -> usize {
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

    pub(crate) fn entries(&mut self, node: &'n Node, what: &str) -> Entries<'n> {
        let Some(entries) = node.entries() else {
            if !matches!(node.kind, Kind::Null) {
                let found = node.name();
                self.report(
                    Code::WrongForm,
                    node,
                    format!("{what} is {found}, not a mapping"),
                    "write `name: …` lines",
                );
            }
            return Vec::new();
        };
        let mut names = Vec::new();
        for (key, value) in entries {
            match key.text() {
                Some(text) => names.push((Name { text, node: key }, value)),
                None => {
                    self.report(
                        Code::WrongForm,
                        key,
                        format!("{} is not a name", key.name()),
                        "quote it",
                    );
                }
            }
        }
        names
    }

    /// The entries of a mapping whose keys are known; others are reported.
    pub(crate) fn known(&mut self, node: &'n Node, what: &str, keys: &[&[&str]]) -> Entries<'n> {
        let entries = self.entries(node, what);
        for (name, _) in &entries {
            let mut known = keys.iter().copied().flatten().copied();
            if !known.any(|key| key == name.text) {
                let all = || keys.iter().copied().flatten().copied();
                let hint = did_you_mean(name.text, all())
                    .unwrap_or_else(|| format!("known: {}", all().collect::<Vec<_>>().join(", ")));
                self.report(
                    Code::UnknownKey,
                    name.node,
                    format!("{what} has no '{}'", name.text),
                    hint,
                );
            }
        }
        entries
    }

    /// A text; numbers and booleans are not silently made into one.
    pub(crate) fn name(&mut self, node: &'n Node, what: &str) -> Option<Name<'n>> {
        match node.text() {
            Some(text) => Some(Name { text, node }),
            None => {
                let found = node.name();
                let hint = match node.kind {
                    Kind::Bool(_) | Kind::Number(_) => "put it in quotes",
                    _ => "write a text",
                };
                self.report(Code::WrongForm, node, format!("{what} is {found}, not a text"), hint);
                None
            }
        }
    }

    pub(crate) fn names(&mut self, node: &'n Node, what: &str) -> Vec<Name<'n>> {
        match node.items() {
            Some(items) => items.iter().filter_map(|item| self.name(item, what)).collect(),
            None => self.name(node, what).into_iter().collect(),
        }
    }

    pub(crate) fn pick(entries: &Entries<'n>, key: &str) -> Option<&'n Node> {
        entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| *node)
    }

    pub(crate) fn pick_name(&mut self, entries: &Entries<'n>, key: &str) -> Option<Name<'n>> {
        Self::pick(entries, key).and_then(|node| self.name(node, &format!("`{key}`")))
    }

    pub(super) fn flag(&mut self, entries: &Entries<'n>, key: &str) -> bool {
        match Self::pick(entries, key) {
            None => false,
            Some(node) => match node.kind {
                Kind::Bool(flag) => flag,
                _ => {
                    self.report(
                        Code::WrongForm,
                        node,
                        format!("`{key}` is {}, not a boolean", node.name()),
                        "write true or false",
                    );
                    false
                }
            },
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn whole(&mut self, node: &Node, what: &str) -> Option<u64> {
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
