//! The spans of the parts of a value in the raw text, computed on demand.

use crate::edit::OffsetMap;
use crate::json::{self, Node};
use crate::policy::Limits;
use std::borrow::Cow;
use std::cell::OnceCell;

/// The spans of a value and its parts.
pub(crate) struct ValueSpans<'t> {
    origin: Origin<'t>,
    node: OnceCell<Option<Node>>,
    /// The pointer of the value in the parsed text; not empty if an envelope was removed.
    prefix: String,
    /// Whether the value was parsed from a JSON string: its parts then have no spans of their own.
    opaque: bool,
}

enum Origin<'t> {
    /// The value has no text.
    None,
    /// The value was parsed from JSON text, which repairs may have edited.
    Json { text: Cow<'t, str>, map: OffsetMap },
    /// The spans are known already.
    Node,
}

impl<'t> ValueSpans<'t> {
    /// Spans of a value without a text.
    pub(crate) fn none() -> Self {
        Self { origin: Origin::None, node: OnceCell::new(), prefix: String::new(), opaque: false }
    }

    /// Spans of a value that was parsed from `text`.
    pub(crate) fn from_json(text: Cow<'t, str>, map: OffsetMap) -> Self {
        Self { origin: Origin::Json { text, map }, ..Self::none() }
    }

    /// Spans that are known already.
    pub(crate) fn from_node(node: Node) -> Self {
        Self {
            origin: Origin::Node,
            node: OnceCell::from(Some(node)),
            prefix: String::new(),
            opaque: false,
        }
    }

    /// Makes pointers relative to a member of the value.
    pub(crate) fn descend(&mut self, key: &str) {
        if !self.opaque {
            self.prefix.push('/');
            self.prefix.push_str(&json::escape(key));
        }
    }

    /// Marks the value as parsed from a JSON string.
    pub(crate) fn enter_string(&mut self) {
        self.opaque = true;
    }

    /// The tree of spans, as byte offsets of the raw text.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.node
            .get_or_init(|| {
                let Origin::Json { text, map } = &self.origin else { return None };
                let mut node = json::extents(text, Limits::of_depth(crate::policy::MAX_DEPTH))?;
                node.relocate(&mut |start, end| map.range(start, end));
                Some(node)
            })
            .as_ref()
    }

    /// The span of the value at a pointer, or of the nearest enclosing value.
    pub(crate) fn value(&self, pointer: &str) -> Option<(usize, usize)> {
        let (node, _) = self.locate(pointer)?;
        Some((node.start, node.end))
    }

    /// The span of the key at a pointer, or of its value if there is no key.
    pub(crate) fn key(&self, pointer: &str) -> Option<(usize, usize)> {
        let (node, all) = self.locate(pointer)?;
        Some(node.key.filter(|_| all && !self.opaque).unwrap_or((node.start, node.end)))
    }

    fn locate(&self, pointer: &str) -> Option<(&Node, bool)> {
        let node = self.node()?;
        if self.opaque {
            return Some(node.locate(&self.prefix));
        }
        let (from, all) = node.locate(&self.prefix);
        if !all {
            return Some((from, false));
        }
        Some(from.locate(pointer))
    }
}
