//! Compares the settings of vite, a program, without those parts that only say how modules are found
//! and built.

use crate::inventory::parse::{Deadline, Language, children, first_error, node_text, parse, walk};
use std::path::Path;
use tree_sitter::Node;

/// Settings about the product and not about its tests.
const ORDINARY: &[&str] =
    &["resolve", "server", "preview", "build", "css", "base", "publicDir", "optimizeDeps", "json"];

/// Functions that may be called for the value of a setting.
const PLAIN_CALLS: &[&str] =
    &["path.resolve", "path.join", "resolve", "join", "fileURLToPath", "URL", "dirname"];

/// Modules that may be imported for these.
const PLAIN_MODULES: &[&str] = &["path", "node:path", "url", "node:url"];

/// Parts of names of what tests are made of: who replaces it decides about tests.
const TEST_LIBRARIES: &[&str] =
    &["test", "jest", "chai", "expect", "assert", "mocha", "jasmine", "sinon", "node:", "cypress"];

/// Whether something differs that can decide about tests. True if it cannot be told.
pub(super) fn differ(path: &Path, start: Option<&[u8]>, now: Option<&[u8]>) -> bool {
    let Some(language) = Language::from_path(path) else { return true };
    match (start, now) {
        (Some(start), Some(now)) => match (steering(language, start), steering(language, now)) {
            (Some(start), Some(now)) => start != now,
            _ => true,
        },
        _ => true,
    }
}

/// The words of the file, without its ordinary settings. None if it does not parse.
fn steering(language: Language, text: &[u8]) -> Option<Vec<String>> {
    let tree = parse(language, text, Deadline::after(Deadline::PER_FILE)).ok()?;
    if first_error(tree.root_node()).is_some() {
        return None;
    }
    let mut words = Vec::new();
    walk(tree.root_node(), |node| {
        if node.kind() == "comment" || is_ordinary(node, text) {
            return false;
        }
        if node.child_count() == 0 && node_text(node, text) != "," {
            words.push(node_text(node, text).to_owned());
        }
        true
    });
    Some(words)
}

fn is_ordinary(node: Node<'_>, text: &[u8]) -> bool {
    match node.kind() {
        "pair" => {
            let (key, value) = (node.child_by_field_name("key"), node.child_by_field_name("value"));
            let (Some(key), Some(value)) = (key, value) else { return false };
            // `build` and the like are settings of vite only at the top of the settings.
            let depth = std::iter::successors(node.parent(), Node::parent)
                .filter(|node| node.kind() == "pair")
                .count();
            depth == 0
                && ORDINARY.contains(&node_text(key, text).trim_matches(['"', '\'']))
                && is_plain(value, text)
        }
        "import_statement" => {
            let source = node.child_by_field_name("source");
            let source = source.map(|source| node_text(source, text)).unwrap_or_default();
            PLAIN_MODULES.contains(&source.trim_matches(['"', '\'']))
        }
        _ => false,
    }
}

/// Whether a value runs nothing but what is known, and replaces no library of tests.
fn is_plain(value: Node<'_>, text: &[u8]) -> bool {
    let mut plain = true;
    walk(value, |node| {
        plain &= match node.kind() {
            "call_expression" | "new_expression" => {
                let field =
                    if node.kind() == "call_expression" { "function" } else { "constructor" };
                let name = node.child_by_field_name(field).map(|name| node_text(name, text));
                name.is_some_and(|name| PLAIN_CALLS.contains(&name))
            }
            "pair" => node.child_by_field_name("key").is_some_and(|key| {
                let key = node_text(key, text).to_ascii_lowercase();
                !TEST_LIBRARIES.iter().any(|library| key.contains(library))
            }),
            "string_fragment" => {
                let in_find =
                    node.parent().and_then(|string| string.parent()).is_some_and(|pair| {
                        pair.child_by_field_name("key")
                            .is_some_and(|key| node_text(key, text).contains("find"))
                    });
                let name = node_text(node, text);
                !in_find || !TEST_LIBRARIES.iter().any(|library| name.contains(library))
            }
            "regex"
            | "spread_element"
            | "arrow_function"
            | "function_expression"
            | "method_definition"
            | "await_expression"
            | "assignment_expression"
            | "computed_property_name"
            | "sequence_expression" => false,
            _ => true,
        };
        plain
    });
    plain && !children(value).iter().any(|child| child.kind() == "shorthand_property_identifier")
}
