//! Functions with assertions that nothing in their file calls.

use super::assertion::is_function;
use super::constant::Names;
use super::parse::{Language, children, is_comment, line_number, node_bytes, node_text};
use super::source::Source;
use tree_sitter::Node;

/// The names and lines of the functions of a file that have assertions and are never called. Those
/// that others may call are left out: methods, exported and decorated ones, hooks.
pub(super) fn idle(root: Node<'_>, source: &Source<'_>) -> Vec<(String, u32)> {
    let functions = functions(root, source);
    if functions.is_empty() {
        return Vec::new();
    }
    let names = Names::read(root, source.text);
    functions
        .into_iter()
        .filter_map(|function| {
            let name = function.child_by_field_name("name")?;
            let times = names.occurrences.get(node_bytes(name, source.text))?;
            let code = function.child_by_field_name("value").unwrap_or(function);
            let body = code.child_by_field_name("body")?;
            let is_idle = *times == 1 && source.checks(body).effective > 0;
            is_idle.then(|| (source.node_text(name).to_owned(), line_number(name)))
        })
        .collect()
}

/// The functions at the top of a file and of its modules that only their file calls.
fn functions<'t>(root: Node<'t>, source: &Source<'_>) -> Vec<Node<'t>> {
    let mut functions = Vec::new();
    // Those of Go are called by other files of their package.
    if source.language == Language::Go {
        return functions;
    }
    let mut open = vec![root];
    while let Some(container) = open.pop() {
        let mut has_attribute = false;
        for node in children(container) {
            match node.kind() {
                _ if is_comment(node) => continue,
                "attribute_item" => {
                    has_attribute = true;
                    continue;
                }
                "mod_item" => open.extend(node.child_by_field_name("body")),
                "function_item" => {
                    let is_public =
                        children(node).iter().any(|child| child.kind() == "visibility_modifier");
                    functions.extend((!has_attribute && !is_public).then_some(node));
                }
                "function_definition" | "function_declaration" => functions.push(node),
                "lexical_declaration" | "variable_declaration" => {
                    functions.extend(
                        children(node).into_iter().filter(|node| {
                            node.child_by_field_name("value").is_some_and(is_function)
                        }),
                    );
                }
                _ => {}
            }
            has_attribute = false;
        }
    }
    functions.retain(|function| {
        let name = function.child_by_field_name("name");
        !is_hook(name.map(|name| node_text(name, source.text)).unwrap_or_default())
    });
    functions
}

/// Whether a runner calls a function with this name.
fn is_hook(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "main"
        || ["test", "pytest_", "setup", "teardown", "before", "after", "load_tests"]
            .iter()
            .any(|start| name.starts_with(start))
}
