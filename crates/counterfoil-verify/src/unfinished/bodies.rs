//! Functions without a body.
//!
//! A function that deliberately does nothing is common: an implementation of an interface, a hook to
//! override, a callback. Those are recognised by where they stand, and a comment in the body says
//! that it is meant. What remains is a function of its own that is called for nothing.

use super::{File, Unfinished, UnfinishedKind};
use crate::inventory::parse::{Language, children};
use tree_sitter::Node;

/// The function at a node, if it has no body and should have one.
pub(super) fn read(node: Node<'_>, file: &File<'_>) -> Option<Unfinished> {
    if file.is_test {
        return None;
    }
    let is_empty = match file.language {
        Language::Rust => rust(node, file),
        Language::Python => python(node, file),
        Language::JavaScript | Language::TypeScript | Language::Tsx => javascript(node, file),
        Language::Go => go(node, file),
    };
    let name = node.child_by_field_name("name").filter(|_| is_empty)?;
    let mut place = file.place(UnfinishedKind::EmptyBody, node, "");
    file.text_of(name).clone_into(&mut place.key);
    Some(place)
}

/// Whether a block has neither a statement nor a comment.
fn is_blank(node: Node<'_>) -> bool {
    node.child_by_field_name("body").is_some_and(|body| body.named_child_count() == 0)
}

/// Whether a name says that the function does nothing.
fn is_no_op(name: &str) -> bool {
    let name = name.to_lowercase().replace('_', "");
    name.contains("noop") || name.contains("nothing") || name.contains("dummy") || name == "main"
}

fn name_of<'s>(node: Node<'_>, file: &'s File<'_>) -> &'s str {
    node.child_by_field_name("name").map(|name| file.text_of(name)).unwrap_or_default()
}

fn rust(node: Node<'_>, file: &File<'_>) -> bool {
    if node.kind() != "function_item" || !is_blank(node) || is_no_op(name_of(node, file)) {
        return false;
    }
    // A result or an attribute says more about it: `const fn new() -> () {}`, `#[test] fn a() {}`.
    if has_attribute(node) || node.child_by_field_name("return_type").is_some() {
        return false;
    }
    let parameters =
        node.child_by_field_name("parameters").map(|parameters| file.text_of(parameters));
    // `_name` says that a value is not used.
    let ignores = parameters
        .unwrap_or_default()
        .split(',')
        .any(|one| one.trim_start_matches(['(', ' ', '\n']).starts_with('_'));
    let mut above = node.parent();
    while let Some(outer) = above {
        match outer.kind() {
            "trait_item" => return false,
            "impl_item" if outer.child_by_field_name("trait").is_some() => return false,
            // An item in a function or a macro is part of something else.
            "block" | "token_tree" | "macro_definition" => return false,
            "mod_item" if name_of(outer, file).contains("test") => return false,
            // One of several definitions, each for some configuration.
            "mod_item" if has_attribute(outer) => return false,
            _ => above = outer.parent(),
        }
    }
    !ignores
}

fn has_attribute(item: Node<'_>) -> bool {
    item.prev_named_sibling().is_some_and(|before| before.kind() == "attribute_item")
}

fn python(node: Node<'_>, file: &File<'_>) -> bool {
    if node.kind() != "function_definition" || is_no_op(name_of(node, file)) {
        return false;
    }
    let Some(body) = node.child_by_field_name("body") else { return false };
    let statements: Vec<Node<'_>> = children(body).into_iter().filter(Node::is_named).collect();
    let does_nothing = match statements.as_slice() {
        [only] => {
            only.kind() == "pass_statement"
                || (only.kind() == "expression_statement" && file.text_of(*only).trim() == "...")
        }
        _ => false,
    };
    let parent = node.parent();
    let is_decorated = parent.is_some_and(|parent| parent.kind() == "decorated_definition");
    // A comment beside `pass` is outside of the block.
    let has_comment = node.next_sibling().or(parent.and_then(|parent| parent.next_sibling()));
    let has_comment = has_comment.is_some_and(|next| {
        next.is_extra() && next.start_position().row <= body.end_position().row + 1
    }) || children(node).iter().any(Node::is_extra);
    let is_special = name_of(node, file).starts_with("__");
    // An alternative for some version or platform, or a type that only checkers read.
    let is_alternative =
        ["if_statement", "try_statement"].iter().any(|kind| nearest(node, kind).is_some());
    let is_inner = is_alternative || nearest(node, "function_definition").is_some();
    does_nothing
        && !(is_decorated || has_comment || is_special || is_inner)
        // A method that does nothing is a hook, or overrides one.
        && python_class(node).is_none()
}

/// The nearest node of a kind around a node.
fn nearest<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    let mut above = node.parent();
    while let Some(outer) = above.filter(|outer| outer.kind() != kind) {
        above = outer.parent();
    }
    above
}

/// The class around a node of Python.
pub(super) fn python_class(node: Node<'_>) -> Option<Node<'_>> {
    nearest(node, "class_definition")
}

/// Whether a class is meant to be subclassed: it says so by its bases, or a method is abstract.
pub(super) fn is_abstract(class: Node<'_>, file: &File<'_>) -> bool {
    let bases = class.child_by_field_name("superclasses").map(|bases| file.text_of(bases));
    let text = file.text_of(class);
    bases.is_some_and(|bases| bases.contains("ABC") || bases.contains("Protocol"))
        || text.contains("abstractmethod")
        || ["Base", "Abstract", "Mixin", "Interface"]
            .iter()
            .any(|part| name_of(class, file).contains(part))
}

/// Whether another class of the file is derived from a class.
pub(super) fn has_subclass(class: Node<'_>, file: &File<'_>) -> bool {
    let name = name_of(class, file);
    let Some(root) = outermost(class) else { return false };
    let mut found = false;
    crate::inventory::parse::walk(root, |node| {
        if !found && node.kind() == "class_definition" {
            let bases = node.child_by_field_name("superclasses");
            found = bases.is_some_and(|bases| {
                children(bases).into_iter().any(|base| file.text_of(base) == name)
            });
        }
        !found
    });
    found
}

fn outermost(node: Node<'_>) -> Option<Node<'_>> {
    let mut outer = node.parent()?;
    while let Some(above) = outer.parent() {
        outer = above;
    }
    Some(outer)
}

/// Whether a statement of Python is a text that stands alone.
pub(super) fn is_docstring(statement: Node<'_>) -> bool {
    statement.kind() == "expression_statement"
        && statement.named_child(0).is_some_and(|only| only.kind() == "string")
}

fn javascript(node: Node<'_>, file: &File<'_>) -> bool {
    if node.kind() == "variable_declarator" {
        return constant_function(node, file);
    }
    // A method that does nothing is a hook, or overrides one. An arrow function is a callback.
    if !matches!(node.kind(), "function_declaration" | "generator_function_declaration") {
        return false;
    }
    let is_top =
        node.parent().is_some_and(|parent| matches!(parent.kind(), "program" | "export_statement"));
    let parameters =
        node.child_by_field_name("parameters").map(|parameters| file.text_of(parameters));
    let ignores = parameters.unwrap_or_default().trim_start_matches('(').starts_with('_');
    is_top && !ignores && is_blank(node) && !is_no_op(name_of(node, file))
        // `function Name() {}` before the time of classes.
        && !name_of(node, file).starts_with(char::is_uppercase)
}

/// Whether a constant of a module is a function without a body: `const save = (path) => {}`.
fn constant_function(node: Node<'_>, file: &File<'_>) -> bool {
    let Some(declaration) = node.parent().filter(|it| it.kind() == "lexical_declaration") else {
        return false;
    };
    let is_top = declaration
        .parent()
        .is_some_and(|parent| matches!(parent.kind(), "program" | "export_statement"));
    let value = node
        .child_by_field_name("value")
        .filter(|value| matches!(value.kind(), "arrow_function" | "function_expression"));
    let body = value.and_then(|value| value.child_by_field_name("body"));
    let is_empty =
        body.is_some_and(|body| body.kind() == "statement_block" && body.named_child_count() == 0);
    let name = name_of(node, file);
    is_top
        && is_empty
        && file.text_of(declaration).starts_with("const")
        && !name.starts_with('_')
        && !name.to_lowercase().starts_with("empty")
        && !is_no_op(name)
}

fn go(node: Node<'_>, file: &File<'_>) -> bool {
    // A method that does nothing satisfies an interface.
    node.kind() == "function_declaration"
        && is_blank(node)
        && !is_no_op(name_of(node, file))
        && !matches!(name_of(node, file), "init")
        && node.child_by_field_name("result").is_none()
}
