//! The keys that appear twice in one object.

use super::{Children, Node, escape, parse_with_extents};
use crate::policy::Limits;
use std::collections::HashSet;

/// A key that appears again in one object.
#[derive(Debug)]
pub(crate) struct DuplicateKey {
    pub(crate) pointer: String,
    /// The extent of the later key.
    pub(crate) key: (usize, usize),
    /// Whether its value differs from the one before.
    pub(crate) differs: bool,
}

/// The keys of a JSON text that appear twice in one object, in the order of the text.
pub(crate) fn duplicate_keys(text: &str, limits: Limits) -> Vec<DuplicateKey> {
    let Ok(parsed) = parse_with_extents(text, limits) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open: Vec<(&Node, String)> = Vec::new();
    open.extend(parsed.node.as_ref().map(|root| (root, String::new())));
    while let Some((node, pointer)) = open.pop() {
        match &node.children {
            Children::None => {}
            Children::Items(items) => {
                open.extend(
                    items.iter().enumerate().map(|(i, child)| (child, format!("{pointer}/{i}"))),
                );
            }
            Children::Members(members) => {
                let mut seen = HashSet::new();
                for (key, child) in members.iter() {
                    let child_pointer = format!("{pointer}/{}", escape(key));
                    if !seen.insert(key.as_str()) {
                        found.push(DuplicateKey {
                            pointer: child_pointer.clone(),
                            key: child.key.unwrap_or((child.start, child.end)),
                            differs: parsed.differing.contains(&child.end),
                        });
                    }
                    open.push((child, child_pointer));
                }
            }
        }
    }
    found.sort_by_key(|duplicate| duplicate.key);
    found
}
