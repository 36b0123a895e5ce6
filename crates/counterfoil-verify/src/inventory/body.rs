//! The comparable content of a test: its tokens without comments and layout, the number of its
//! assertions, and whether it has any effect.

use super::checks::Checks;
use super::parse::{is_comment, node_bytes, node_text, walk};
use std::hash::{DefaultHasher, Hash, Hasher};
use tree_sitter::Node;

/// The maximum number of tokens that are compared one by one.
const MAX_TOKENS: usize = 4_096;

/// The minimum number of tokens for a comparison by similarity.
const MIN_SIMILAR_TOKENS: usize = 12;

/// Names by which something is written or converted and nothing is checked.
const WRITES: [&str; 26] = [
    "print", "println", "eprintln", "eprint", "dbg", "console", "log", "logging", "logger", "info",
    "debug", "warn", "warning", "Log", "Logf", "fmt", "Println", "Printf", "Print", "str", "repr",
    "bool", "int", "len", "drop", "_",
];

/// The content of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// The digest of all tokens, in order.
    pub(super) digest: u64,
    /// The digests of the first tokens, sorted.
    tokens: Vec<u32>,
    /// The digests of the names among them, sorted, each once.
    names: Vec<u32>,
    /// The digests of the names that are called, where they can be told from others.
    called: Option<Vec<u32>>,
    /// The number of assertions.
    pub(super) assertions: u32,
    /// The number of cases that the test is run with, where they are listed.
    pub(super) cases: Option<u32>,
    /// What the assertions check.
    pub(super) checks: Checks,
    /// Whether it has no effect, but for assertions on constants.
    pub(super) is_inert: bool,
    /// Whether the test passes if its code fails.
    pub(super) expects_failure: bool,
}

impl Body {
    /// Reads the tokens of a node.
    pub(super) fn from_node(
        node: Node<'_>,
        text: &[u8],
        is_assertion: impl Fn(&str) -> bool,
    ) -> Self {
        let mut body = Self::default();
        let mut whole = DefaultHasher::new();
        walk(node, |node| {
            if is_comment(node) {
                return false;
            }
            if node.child_count() == 0 {
                let token = node_bytes(node, text);
                token.hash(&mut whole);
                if body.tokens.len() < MAX_TOKENS {
                    let digest = digest(token);
                    body.tokens.push(digest);
                    if is_name(node) {
                        body.names.push(digest);
                    }
                }
                let name = is_name(node) || node.kind() == "assert";
                body.assertions = body
                    .assertions
                    .saturating_add(u32::from(name && is_assertion(node_text(node, text))));
            }
            true
        });
        body.digest = whole.finish();
        body.tokens.sort_unstable();
        body.names.sort_unstable();
        body.names.dedup();
        body
    }

    /// Sets the number of cases.
    pub(super) fn with_cases(mut self, cases: Option<usize>) -> Self {
        self.cases = cases.map(|cases| u32::try_from(cases).unwrap_or(u32::MAX));
        self
    }

    /// Sets the names that are called.
    pub(super) fn with_called<'t>(mut self, names: impl Iterator<Item = &'t str>) -> Self {
        self.called = Some(names.take(MAX_TOKENS).map(|name| digest(name.as_bytes())).collect());
        self
    }

    /// Whether every name that this body calls occurs in another one, but for those that only write
    /// something.
    pub(super) fn calls_only_names_of(&self, other: &Self) -> bool {
        let called = self.called.as_ref().unwrap_or(&self.names);
        let writes = WRITES.map(|name| digest(name.as_bytes()));
        called.iter().all(|name| other.names.binary_search(name).is_ok() || writes.contains(name))
    }

    /// Sets what the assertions check.
    pub(super) fn with_checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Adds skips under a condition.
    pub(super) fn add_conditions(&mut self, number: u32) {
        let skips = &mut self.checks.conditional_skips;
        *skips = skips.saturating_add(number);
    }

    /// Whether every name of this body occurs in another one.
    pub(super) fn has_only_names_of(&self, other: &Self) -> bool {
        self.names.iter().all(|name| other.names.binary_search(name).is_ok())
    }

    /// Whether another body is this one, edited: they share most of their tokens, and no name is
    /// gone. A test that calls something else is another test, however similar it looks. The cost
    /// is linear in the number of tokens, which is limited.
    pub(super) fn is_similar(&self, other: &Self) -> bool {
        let (short, long) =
            (self.tokens.len().min(other.tokens.len()), self.tokens.len().max(other.tokens.len()));
        if short < MIN_SIMILAR_TOKENS || short * 4 < long * 3 {
            return false;
        }
        let (mut left, mut right, mut shared) =
            (self.tokens.iter().peekable(), other.tokens.iter().peekable(), 0_usize);
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => drop(left.next()),
                std::cmp::Ordering::Greater => drop(right.next()),
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    left.next();
                    right.next();
                }
            }
        }
        shared * 4 >= long * 3 && self.has_only_names_of(other)
    }

    /// The cost of a comparison with this body, in tokens.
    pub(super) fn comparison_cost(&self) -> usize {
        self.tokens.len()
    }
}

fn digest(token: &[u8]) -> u32 {
    let mut one = DefaultHasher::new();
    token.hash(&mut one);
    #[allow(clippy::cast_possible_truncation)] // Half of a digest is a digest.
    let digest = one.finish() as u32;
    digest
}

/// Whether a leaf node is a name.
fn is_name(node: Node<'_>) -> bool {
    node.is_named()
        && (node.kind().ends_with("identifier")
            || matches!(node.kind(), "this" | "self" | "crate" | "super"))
}

/// Whether a piece of code has no effect that a test would notice: `is_inert` accepts every name in
/// it.
pub(super) fn is_inert(
    node: Node<'_>,
    text: &[u8],
    is_inert: impl Fn(Node<'_>, &str) -> bool,
) -> bool {
    let mut inert = true;
    walk(node, |node| {
        if is_comment(node) {
            return false;
        }
        if inert
            && node.child_count() == 0
            && is_name(node)
            && !is_inert(node, node_text(node, text))
        {
            inert = false;
        }
        inert
    });
    inert
}

/// The first statement that has an effect; none if there is none before the end or a return.
pub(super) fn first_effective<'t>(
    statements: impl IntoIterator<Item = Node<'t>>,
    inert: impl Fn(Node<'t>) -> bool,
) -> Option<Node<'t>> {
    for statement in statements {
        if is_comment(statement) {
            continue;
        }
        if !inert(statement) {
            return Some(statement);
        }
        let inner = statement.named_child(0).unwrap_or(statement);
        if [statement, inner]
            .iter()
            .any(|node| matches!(node.kind(), "return_statement" | "return_expression"))
        {
            return None;
        }
    }
    None
}
