//! What stands in a test, as far as it can be compared: its words without comments and layout, how
//! many assertions there are, and whether it would do anything.

use super::parse::{bytes, is_comment, walk, word};
use std::hash::{DefaultHasher, Hash, Hasher};
use tree_sitter::Node;

/// The most words that are compared one by one.
const MAX_WORDS: usize = 4_096;

/// The fewest words that say enough to call two bodies alike without being the same.
const MIN_ALIKE: usize = 12;

/// What stands in a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// Of all words, in order.
    pub(super) digest: u64,
    /// The digests of the first words, sorted.
    words: Vec<u32>,
    /// How many assertions it has.
    pub(super) assertions: u32,
    /// How many cases it is run with, where they are listed.
    pub(super) cases: Option<u32>,
}

impl Body {
    /// Of the words of a node.
    pub(super) fn of(node: Node<'_>, text: &[u8], is_assertion: impl Fn(&str) -> bool) -> Self {
        let mut body = Self::default();
        let mut whole = DefaultHasher::new();
        walk(node, |node| {
            if is_comment(node) {
                return false;
            }
            if node.child_count() == 0 {
                let said = bytes(node, text);
                said.hash(&mut whole);
                if body.words.len() < MAX_WORDS {
                    let mut one = DefaultHasher::new();
                    said.hash(&mut one);
                    #[allow(clippy::cast_possible_truncation)] // Half of a digest is a digest.
                    body.words.push(one.finish() as u32);
                }
                let name = is_name(node) || node.kind() == "assert";
                body.assertions = body
                    .assertions
                    .saturating_add(u32::from(name && is_assertion(word(node, text))));
            }
            true
        });
        body.digest = whole.finish();
        body.words.sort_unstable();
        body
    }

    /// The same with a number of cases.
    pub(super) fn with_cases(mut self, cases: Option<usize>) -> Self {
        self.cases = cases.map(|cases| u32::try_from(cases).unwrap_or(u32::MAX));
        self
    }

    /// Whether two bodies share most of their words. Costs as much as the longer one has words,
    /// which is bounded.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let (short, long) =
            (self.words.len().min(other.words.len()), self.words.len().max(other.words.len()));
        if short < MIN_ALIKE || short * 4 < long * 3 {
            return false;
        }
        let (mut left, mut right, mut shared) =
            (self.words.iter().peekable(), other.words.iter().peekable(), 0_usize);
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
        shared * 4 >= long * 3
    }

    /// What comparing it one by one costs.
    pub(super) fn weight(&self) -> usize {
        self.words.len()
    }
}

/// Whether a node without children is a name.
fn is_name(node: Node<'_>) -> bool {
    node.is_named()
        && (node.kind().ends_with("identifier")
            || matches!(node.kind(), "this" | "self" | "crate" | "super"))
}

/// Whether a piece of code can do nothing that a test would notice: every name in it is one that
/// `is_idle` lets through.
pub(super) fn is_idle(
    node: Node<'_>,
    text: &[u8],
    is_idle: impl Fn(Node<'_>, &str) -> bool,
) -> bool {
    let mut idle = true;
    walk(node, |node| {
        if is_comment(node) {
            return false;
        }
        if idle && node.child_count() == 0 && is_name(node) && !is_idle(node, word(node, text)) {
            idle = false;
        }
        idle
    });
    idle
}

/// Statements up to the first that does something; None if nothing does before the end or a return.
pub(super) fn first_doing<'t>(
    statements: impl IntoIterator<Item = Node<'t>>,
    idle: impl Fn(Node<'t>) -> bool,
) -> Option<Node<'t>> {
    for statement in statements {
        if is_comment(statement) {
            continue;
        }
        if !idle(statement) {
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
