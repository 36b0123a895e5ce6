//! Code that catches a failed assertion: whether it fails the test, keeps the error, or swallows it.

use super::super::constant::{Role, is_failure};
use super::super::parse::{
    Language, arguments_of, children, find, is_comment, node_bytes, node_text,
};
use super::{Kind, MAX_CHAIN, Reader, is_function};
use tree_sitter::Node;

/// The maximum number of nodes that are read to find out whether a handler fails the test.
const MAX_NODES: usize = 1_000;

/// What the contexts of a `with` statement do.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Around {
    /// They swallow a failed assertion.
    pub(in super::super) swallows: bool,
    /// They expect a failed assertion.
    pub(in super::super) expects: bool,
    /// They expect some exception.
    pub(in super::super) throws: bool,
}

impl Reader<'_, '_> {
    /// Whether a `try` statement swallows a failed assertion of its body.
    pub(in super::super) fn swallows(&self, node: Node<'_>) -> bool {
        let python = self.language == Language::Python;
        children(node).into_iter().any(|part| match part.kind() {
            "except_clause" | "except_group_clause" => self.catches(part) && !self.fails(part),
            "catch_clause" => !self.fails(part),
            "finally_clause" if python || part.named_child_count() > 0 => {
                part.named_child(0).map(children).unwrap_or_default().iter().any(|statement| {
                    matches!(
                        statement.kind(),
                        "return_statement" | "break_statement" | "continue_statement"
                    )
                })
            }
            _ => false,
        })
    }

    /// Whether an `except` clause catches failed assertions.
    fn catches(&self, clause: Node<'_>) -> bool {
        let mut named = false;
        let all = children(clause)
            .into_iter()
            .filter(|child| child.is_named() && child.kind() != "block" && !is_comment(*child))
            .any(|what| {
                named = true;
                self.names_assertion_error(what)
            });
        all || !named
    }

    pub(super) fn names_assertion_error(&self, node: Node<'_>) -> bool {
        find(node, MAX_NODES, |node| {
            node.child_count() == 0 && {
                let name = node_text(node, self.text);
                is_failure(name)
                    || (node.kind() == "identifier" && self.role(name) == Some(Role::Failures))
            }
        })
    }

    /// Whether a handler fails the test, or keeps what it caught for something that reads it.
    pub(super) fn fails(&self, handler: Node<'_>) -> bool {
        find(handler, MAX_NODES, |node| {
            let fails = match node.kind() {
                "raise_statement" => !self.is_skip(node),
                "throw_statement" => true,
                "call" | "call_expression" => self.is_failing_call(node),
                // A value that is kept to be compared later.
                "assignment" | "assignment_expression" => {
                    let field = |name| node.child_by_field_name(name);
                    field("left").is_some_and(|left| self.reads(left) > 0)
                        && field("right")
                            .is_some_and(|value| !self.conditions.is_constant(value, |_, _| false))
                }
                _ => false,
            };
            fails
                || self.assertion(node).is_some_and(Kind::can_fail)
                || self.expectation(node).is_some_and(|(_, kind)| kind.can_fail())
        })
    }

    /// Whether a call in a handler fails the test, passes the error on, or keeps it.
    fn is_failing_call(&self, node: Node<'_>) -> bool {
        let Some(callee) = node.child_by_field_name("function") else { return false };
        let name = self.last_name(callee);
        let is_given =
            node.child_by_field_name("arguments").is_some_and(|list| list.named_child_count() > 0);
        match name {
            // The list is read by something else than this call.
            "append" | "push" | "add" => {
                let list = callee
                    .child_by_field_name("object")
                    .or_else(|| callee.child_by_field_name("operand"));
                is_given && list.is_some_and(|list| self.reads(list) > 1)
            }
            "done" | "reject" | "next" => is_given && self.language != Language::Python,
            _ => {
                let is_helper = || name.to_ascii_lowercase().contains("assert");
                name.starts_with("fail") || (is_helper() && self.assertion(node).is_none())
            }
        }
    }

    /// How often a name of the test is read.
    fn reads(&self, name: Node<'_>) -> u32 {
        if name.kind() != "identifier" {
            return 0;
        }
        self.conditions.names.first().map_or(0, |own| own.reads(node_bytes(name, self.text)))
    }

    /// What the contexts of a `with` statement do.
    pub(in super::super) fn contexts(&self, node: Node<'_>) -> Around {
        let mut contexts = Vec::new();
        for clause in children(node).into_iter().filter(|child| child.kind() == "with_clause") {
            for item in children(clause).into_iter().filter(|child| child.kind() == "with_item") {
                let Some(value) = item.child_by_field_name("value") else { continue };
                let is_named = value.kind() == "as_pattern";
                contexts.push(value.named_child(0).filter(|_| is_named).unwrap_or(value));
            }
        }
        // `stack.enter_context(suppress(AssertionError))`.
        for statement in node.child_by_field_name("body").map(children).unwrap_or_default() {
            let Some(call) = statement.named_child(0).filter(|call| call.kind() == "call") else {
                continue;
            };
            let callee = call.child_by_field_name("function");
            if callee.is_some_and(|callee| self.last_name(callee) == "enter_context") {
                contexts.extend(arguments_of(call).first());
            }
        }
        let mut around = Around::default();
        for context in contexts {
            let role = self.context(context);
            around.swallows |= role == Some(Role::Discards);
            around.expects |= role == Some(Role::Expects);
            around.throws |= role == Some(Role::Expects) || self.is_raises(context);
        }
        around
    }

    /// Whether a statement runs code and discards its failure: an ignored `catch_unwind`, a promise
    /// whose rejection is ignored, a deferred `recover`.
    pub(in super::super) fn is_discarded_failure(&self, node: Node<'_>) -> bool {
        match (self.language, node.kind()) {
            (Language::Rust, "expression_statement" | "let_declaration") => {
                self.outer_calls(node)
                    && node.child_by_field_name("pattern").is_none_or(|pattern| {
                        let name = node_text(pattern, self.text);
                        let is_name = pattern.kind() == "identifier";
                        name.starts_with('_') || (is_name && self.is_kept_in_vain(node, name))
                    })
            }
            (Language::JavaScript | Language::TypeScript | Language::Tsx, "call_expression") => {
                let Some(callee) = node.child_by_field_name("function") else { return false };
                let arguments = arguments_of(node);
                let handler = match (self.last_name(callee), arguments.as_slice()) {
                    _ if callee.kind() != "member_expression" => None,
                    ("catch", [handler, ..]) => Some(*handler),
                    ("then", [first, handler, ..]) if !is_function(*first) => Some(*handler),
                    _ => None,
                };
                handler.is_some_and(|handler| is_function(handler) && !self.fails(handler))
            }
            // What became of the promises is not read.
            (
                Language::JavaScript | Language::TypeScript | Language::Tsx,
                "expression_statement" | "return_statement",
            ) => {
                let mut call = node.named_child(0);
                if let Some(inner) = call.filter(|inner| inner.kind() == "await_expression") {
                    call = inner.named_child(0);
                }
                call.and_then(|call| call.child_by_field_name("function"))
                    .is_some_and(|callee| self.last_name(callee) == "allSettled")
            }
            _ => false,
        }
    }

    /// Whether an ignored Rust statement catches panics and does not pass them on.
    fn outer_calls(&self, statement: Node<'_>) -> bool {
        let mut node = statement.child_by_field_name("value").or(statement.named_child(0));
        for _ in 0..MAX_CHAIN {
            let Some(call) = node.filter(|node| node.kind() == "call_expression") else {
                return false;
            };
            let Some(callee) = call.child_by_field_name("function") else { return false };
            match callee.kind() {
                "field_expression" => {
                    let name = callee
                        .child_by_field_name("field")
                        .map(|name| node_text(name, self.text))
                        .unwrap_or_default();
                    if matches!(
                        name,
                        "unwrap" | "expect" | "unwrap_or_else" | "unwrap_err" | "expect_err"
                    ) {
                        return false;
                    }
                    node = callee.child_by_field_name("value");
                }
                _ if self.last_name(callee) == "drop" => {
                    node =
                        call.child_by_field_name("arguments").and_then(|list| list.named_child(0));
                }
                _ => return matches!(self.last_name(callee), "catch_unwind" | "spawn"),
            }
        }
        false
    }
}
