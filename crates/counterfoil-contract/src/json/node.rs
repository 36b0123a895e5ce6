//! The extents of the values of a parsed text.

use super::unescape;
use crate::work;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::cell::OnceCell;
use std::hash::{BuildHasher, RandomState};

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
    /// Built for the first lookup among many.
    by_key: OnceCell<KeyIndex>,
}

/// The index of the last member with each key. Keys are hashed with a random seed: they come from
/// agents.
#[derive(Clone, Debug)]
struct KeyIndex {
    hasher: RandomState,
    last: HashTable<usize>,
}

impl KeyIndex {
    fn of(list: &[(String, Node)]) -> Self {
        work::count(list.len());
        let hasher = RandomState::new();
        let mut last = HashTable::with_capacity(list.len());
        for (index, (key, _)) in list.iter().enumerate() {
            let is_same = |other: &usize| list[*other].0 == *key;
            let rehash = |other: &usize| hasher.hash_one(list[*other].0.as_str());
            match last.entry(hasher.hash_one(key.as_str()), is_same, rehash) {
                Entry::Occupied(mut slot) => *slot.get_mut() = index,
                Entry::Vacant(slot) => drop(slot.insert(index)),
            }
        }
        Self { hasher, last }
    }

    fn get(&self, list: &[(String, Node)], key: &str) -> Option<usize> {
        work::count(1);
        self.last.find(self.hasher.hash_one(key), |index| list[*index].0 == key).copied()
    }
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
        let index = self.by_key.get_or_init(|| KeyIndex::of(&self.list)).get(&self.list, key)?;
        Some(&self.list[index].1)
    }
}

impl From<Vec<(String, Node)>> for Members {
    fn from(list: Vec<(String, Node)>) -> Self {
        Self { list, by_key: OnceCell::new() }
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
