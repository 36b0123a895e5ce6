//! Code that stands for what is not written.

use super::{File, Unfinished, UnfinishedKind, function_name, says_not_implemented};
use crate::inventory::parse::{Language, children};
use tree_sitter::Node;

/// The placeholder at a node, if it is one.
pub(super) fn read(node: Node<'_>, file: &File<'_>) -> Option<Unfinished> {
    let is_placeholder = match file.language {
        Language::Rust => rust(node, file),
        Language::Python => python(node, file),
        Language::JavaScript | Language::TypeScript | Language::Tsx => javascript(node, file),
        Language::Go => go(node, file),
    };
    let within = || function_name(node, file).to_owned();
    is_placeholder.then(|| file.place(UnfinishedKind::Placeholder, node, &within()))
}

/// `todo!()`, `unimplemented!()`, `panic!("not implemented")`, also in the tokens of a macro.
fn rust(node: Node<'_>, file: &File<'_>) -> bool {
    let (name, arguments) = match node.kind() {
        "macro_invocation" => {
            let path = node.child_by_field_name("macro").map(|path| file.text_of(path));
            let tokens = children(node).into_iter().find(|child| child.kind() == "token_tree");
            (path.unwrap_or_default().rsplit("::").next().unwrap_or_default(), tokens)
        }
        // In tokens there are only names, marks and groups.
        "identifier" if node.parent().is_some_and(|parent| parent.kind() == "token_tree") => {
            let mark = node.next_sibling().filter(|next| next.kind() == "!");
            let tokens = mark.and_then(|mark| mark.next_sibling());
            match tokens.filter(|tokens| tokens.kind() == "token_tree") {
                Some(tokens) => (file.text_of(node), Some(tokens)),
                None => return false,
            }
        }
        _ => return false,
    };
    match name {
        "todo" | "unimplemented" => true,
        "panic" => arguments.is_some_and(|tokens| says_not_implemented(file.text_of(tokens))),
        _ => false,
    }
}

/// `raise NotImplementedError`, `raise RuntimeError("TODO")`, outside of what others are to override.
fn python(node: Node<'_>, file: &File<'_>) -> bool {
    if node.kind() != "raise_statement" {
        return false;
    }
    let Some(raised) = node.named_child(0) else { return false };
    let (name, message) = match raised.kind() {
        "call" => (raised.child_by_field_name("function"), raised.child_by_field_name("arguments")),
        _ => (Some(raised), None),
    };
    let text = message.map(|message| file.text_of(message)).unwrap_or_default();
    let says = says_not_implemented(text);
    if name.map(|name| file.text_of(name)) != Some("NotImplementedError") {
        return says && is_only_statement(node) && !is_to_be_overridden(node, file);
    }
    let is_about_writing = message.is_none_or(|message| message.named_child_count() == 0);
    (is_about_writing || says || is_plain_message(text))
        && is_only_statement(node)
        && !is_to_be_overridden(node, file)
}

/// Whether a message is a plain text that is not about arguments that are not supported, or about
/// what others are to write.
fn is_plain_message(arguments: &str) -> bool {
    let text = arguments.to_lowercase();
    let is_plain =
        text.strip_prefix('(').is_some_and(|rest| rest.trim_start().starts_with(['"', '\'']));
    let others = ["support", "subclass", "overrid", "abstract", "derived", "inherit", "{", "%"];
    is_plain && !others.iter().any(|part| text.contains(part))
}

/// Whether a statement is all that its function does, apart from a docstring.
fn is_only_statement(node: Node<'_>) -> bool {
    let Some(block) = node.parent().filter(|block| block.kind() == "block") else { return false };
    let is_function = block.parent().is_some_and(|above| above.kind() == "function_definition");
    is_function
        && children(block).into_iter().filter(Node::is_named).all(|statement| {
            statement == node || statement.is_extra() || super::bodies::is_docstring(statement)
        })
}

/// Whether the function around a node is a method that subclasses are to override.
fn is_to_be_overridden(node: Node<'_>, file: &File<'_>) -> bool {
    super::bodies::python_class(node).is_some_and(|class| {
        super::bodies::is_abstract(class, file) || super::bodies::has_subclass(class, file)
    })
}

/// `throw new Error("not implemented")`.
fn javascript(node: Node<'_>, file: &File<'_>) -> bool {
    if node.kind() != "throw_statement" {
        return false;
    }
    let thrown = node.named_child(0).filter(|thrown| thrown.kind() == "new_expression");
    let message = thrown
        .and_then(|thrown| thrown.child_by_field_name("arguments"))
        .and_then(|arguments| arguments.named_child(0));
    message.is_some_and(|message| {
        matches!(message.kind(), "string" | "template_string")
            && says_not_implemented(file.text_of(message))
    })
}

/// `panic("not implemented")`.
fn go(node: Node<'_>, file: &File<'_>) -> bool {
    if node.kind() != "call_expression" {
        return false;
    }
    let is_panic =
        node.child_by_field_name("function").is_some_and(|name| file.text_of(name) == "panic");
    let message =
        node.child_by_field_name("arguments").and_then(|arguments| arguments.named_child(0));
    is_panic
        && message.is_some_and(|message| {
            matches!(message.kind(), "interpreted_string_literal" | "raw_string_literal")
                && says_not_implemented(file.text_of(message))
        })
}
