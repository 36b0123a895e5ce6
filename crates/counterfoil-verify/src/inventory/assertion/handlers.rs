//! Code that catches a failed assertion: whether it fails the test, keeps the error, or swallows it.

use super::super::parse::{Language, children, is_comment, node_bytes, node_text, walk};
use super::{Kind, MAX_CHAIN, Reader};
use tree_sitter::Node;

/// The maximum number of nodes that are read to find out whether a handler fails the test.
const MAX_NODES: usize = 1_000;

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

    fn names_assertion_error(&self, node: Node<'_>) -> bool {
        let (mut found, mut fuel) = (false, MAX_NODES);
        walk(node, |node| {
            fuel = fuel.saturating_sub(1);
            found = found
                || (node.child_count() == 0
                    && matches!(
                        node_text(node, self.text),
                        "AssertionError" | "Exception" | "BaseException" | "failureException"
                    ));
            !found && fuel > 0
        });
        found
    }

    /// Whether a handler fails the test, or keeps what it caught for something that reads it.
    fn fails(&self, handler: Node<'_>) -> bool {
        let (mut fails, mut fuel) = (false, MAX_NODES);
        walk(handler, |node| {
            fuel = fuel.saturating_sub(1);
            fails = fails
                || match node.kind() {
                    "raise_statement" => !self.is_skip(node),
                    "throw_statement" => true,
                    "call" | "call_expression" => self.is_failing_call(node),
                    // A value that is kept to be compared later.
                    "assignment" | "assignment_expression" => {
                        let field = |name| node.child_by_field_name(name);
                        field("left").is_some_and(|left| self.reads(left) > 0)
                            && field("right").is_some_and(|value| {
                                !self.conditions.is_constant(value, |_, _| false)
                            })
                    }
                    _ => false,
                }
                || self.assertion(node).is_some_and(Kind::can_fail)
                || self.expectation(node).is_some_and(|(_, kind)| kind.can_fail());
            !fails && fuel > 0
        });
        fails
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

    /// What the contexts of a `with` statement do: swallow a failed assertion, or expect one.
    pub(in super::super) fn contexts(&self, node: Node<'_>) -> (bool, bool) {
        let (mut swallows, mut expects) = (false, false);
        for clause in children(node).into_iter().filter(|child| child.kind() == "with_clause") {
            for item in children(clause).into_iter().filter(|child| child.kind() == "with_item") {
                let Some(mut call) = item.child_by_field_name("value") else { continue };
                if call.kind() == "as_pattern" {
                    call = call.named_child(0).unwrap_or(call);
                }
                let Some(callee) = call.child_by_field_name("function") else { continue };
                let Some(arguments) = call.child_by_field_name("arguments") else { continue };
                match self.last_name(callee) {
                    "suppress" => swallows |= self.names_assertion_error(arguments),
                    "raises" | "assertRaises" | "assertRaisesRegex" => {
                        expects |= self.names_assertion_error(arguments);
                    }
                    _ => {}
                }
            }
        }
        (swallows, expects)
    }

    /// Whether a statement runs code and discards its failure: an ignored `catch_unwind`, a promise
    /// whose rejection is ignored, a deferred `recover`.
    pub(in super::super) fn is_discarded_failure(&self, node: Node<'_>) -> bool {
        match (self.language, node.kind()) {
            (Language::Rust, "expression_statement" | "let_declaration") => {
                let ignored = match node.child_by_field_name("pattern") {
                    Some(pattern) => node_text(pattern, self.text).starts_with('_'),
                    None => true,
                };
                ignored && self.outer_calls(node)
            }
            (Language::JavaScript | Language::TypeScript | Language::Tsx, "call_expression") => {
                let Some(callee) = node.child_by_field_name("function") else { return false };
                callee.kind() == "member_expression"
                    && self.last_name(callee) == "catch"
                    && node.child_by_field_name("arguments").is_some_and(|handler| {
                        handler.named_child(0).is_some_and(|handler| {
                            matches!(handler.kind(), "arrow_function" | "function_expression")
                                && !self.fails(handler)
                        })
                    })
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
