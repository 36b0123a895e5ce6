//! Where the parts of a value stand in the raw text, found out only when somebody asks.

use crate::edit::OffsetMap;
use crate::json::{self, Node};
use std::borrow::Cow;
use std::cell::OnceCell;

/// The extents of a value's parts.
pub(crate) struct Places<'t> {
    origin: Origin<'t>,
    node: OnceCell<Option<Node>>,
    /// Where in the parsed text the value now stands: an envelope may have been taken off.
    prefix: String,
    /// The value stands inside a string: its parts have no place of their own.
    opaque: bool,
}

enum Origin<'t> {
    /// No text.
    None,
    /// JSON text, possibly edited.
    Json { text: Cow<'t, str>, map: OffsetMap },
    /// Known already.
    Node,
}

impl<'t> Places<'t> {
    /// For a value without a text.
    pub(crate) fn none() -> Self {
        Self { origin: Origin::None, node: OnceCell::new(), prefix: String::new(), opaque: false }
    }

    /// For a value parsed from `text`.
    pub(crate) fn of_json(text: Cow<'t, str>, map: OffsetMap) -> Self {
        Self { origin: Origin::Json { text, map }, ..Self::none() }
    }

    /// For a value whose extents are known.
    pub(crate) fn of_node(node: Node) -> Self {
        Self {
            origin: Origin::Node,
            node: OnceCell::from(Some(node)),
            prefix: String::new(),
            opaque: false,
        }
    }

    /// From now on pointers begin at a member of the value.
    pub(crate) fn descend(&mut self, key: &str) {
        if !self.opaque {
            self.prefix.push('/');
            self.prefix.push_str(&json::escape(key));
        }
    }

    /// From now on the parts stand inside a string.
    pub(crate) fn enter_string(&mut self) {
        self.opaque = true;
    }

    /// All extents, in offsets of the raw text.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.node
            .get_or_init(|| {
                let Origin::Json { text, map } = &self.origin else { return None };
                let mut node = json::parse(text, crate::policy::MAX_DEPTH, true).ok()?.node?;
                node.relocate(&mut |start, end| map.range(start, end));
                Some(node)
            })
            .as_ref()
    }

    /// The extent of the value at a pointer; of the nearest value around it, if there is none.
    pub(crate) fn value(&self, pointer: &str) -> Option<(usize, usize)> {
        let (node, _) = self.locate(pointer)?;
        Some((node.start, node.end))
    }

    /// The extent of the key at a pointer, or of its value.
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
