//! The extents of the values of a parsed text.

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
    /// Members in the order of the text; of duplicate keys the last counts.
    Members(Vec<(String, Node)>),
}

impl Node {
    /// The node at a JSON pointer or its nearest ancestor, and whether it is the node itself.
    pub(crate) fn locate(&self, pointer: &str) -> (&Node, bool) {
        let mut node = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match &node.children {
                Children::Members(members) => {
                    members.iter().rev().find(|(key, _)| *key == token).map(|(_, node)| node)
                }
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
                Children::Members(members) => open.extend(members.iter_mut().map(|(_, node)| node)),
            }
        }
    }
}
