//! The extents of the values of a parsed text.

use super::unescape;
use crate::work;
use std::cell::OnceCell;

/// The extent of a value in the text that was parsed, with those of its children.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The extent of the key, for a member of an object.
    pub(crate) key: Option<(usize, usize)>,
    pub(crate) children: Children,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Children {
    #[default]
    None,
    Items(Vec<Node>),
    Members(Members),
}

/// The members of an object, in the order of the text. Of duplicate keys the last counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    list: Vec<(String, Node)>,
    /// Their indexes, sorted by key. Built for the first lookup among many.
    sorted: OnceCell<Vec<usize>>,
}

/// So many members are searched one by one.
const MAX_SEARCHED: usize = 16;

impl Members {
    pub(crate) fn push(&mut self, key: String, node: Node) {
        self.list.push((key, node));
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &(String, Node)> {
        self.list.iter()
    }

    /// The last member with a key.
    fn get(&self, key: &str) -> Option<&Node> {
        if self.list.len() <= MAX_SEARCHED {
            work::count(self.list.len());
            return self.list.iter().rev().find(|(name, _)| name == key).map(|(_, node)| node);
        }
        work::count(self.list.len().ilog2() as usize);
        let sorted = self.sorted.get_or_init(|| {
            work::count(self.list.len());
            let mut sorted: Vec<usize> = (0..self.list.len()).collect();
            // Stable, so that of equal keys the last is the last.
            sorted.sort_by_key(|index| self.list[*index].0.as_str());
            sorted
        });
        let after = sorted.partition_point(|index| self.list[*index].0.as_str() <= key);
        let (name, node) = &self.list[sorted[after.checked_sub(1)?]];
        (name == key).then_some(node)
    }
}

impl From<Vec<(String, Node)>> for Members {
    fn from(list: Vec<(String, Node)>) -> Self {
        Self { list, sorted: OnceCell::new() }
    }
}

impl Node {
    /// The node at a JSON pointer or its nearest ancestor, and whether it is the node itself.
    pub(crate) fn locate(&self, pointer: &str) -> (&Node, bool) {
        let mut node = self;
        for token in pointer.split('/').skip(1) {
            let token = unescape(token);
            let next = match &node.children {
                Children::Members(members) => members.get(&token),
                Children::Items(items) => {
                    token.parse::<usize>().ok().and_then(|index| items.get(index))
                }
                Children::None => None,
            };
            match next {
                Some(next) => node = next,
                None => return (node, false),
            }
        }
        (node, true)
    }

    /// Applies `map` to every extent.
    pub(crate) fn relocate(&mut self, map: &mut impl FnMut(usize, usize) -> (usize, usize)) {
        let mut open: Vec<&mut Node> = vec![self];
        while let Some(node) = open.pop() {
            (node.start, node.end) = map(node.start, node.end);
            node.key = node.key.map(|(start, end)| map(start, end));
            match &mut node.children {
                Children::None => {}
                Children::Items(items) => open.extend(items.iter_mut()),
                Children::Members(members) => {
                    open.extend(members.list.iter_mut().map(|(_, node)| node));
                }
            }
        }
    }
}
