//! The context that a runner of JavaScript passes to a test: `t` of `test('a', (t) => …)`.

use super::super::parse::{arguments_of, children, node_text};
use super::{Kind, Reader};
use std::collections::HashSet;
use tree_sitter::Node;

/// The names by which a test reaches its runner.
#[derive(Default)]
pub(in super::super) struct Contexts<'s> {
    /// The contexts.
    objects: HashSet<&'s str>,
    /// What skips, taken out of a context: `({ skip }) => …`.
    skips: HashSet<&'s str>,
}

impl<'s> Contexts<'s> {
    /// Adds the first parameter of a function.
    pub(in super::super) fn add(&mut self, function: Node<'_>, text: &'s [u8]) {
        let list = function.child_by_field_name("parameters");
        let first = function.child_by_field_name("parameter").or_else(|| first_named(list?));
        let Some(first) = first else { return };
        // With a type, the name is inside.
        let pattern = first.child_by_field_name("pattern").unwrap_or(first);
        match pattern.kind() {
            "identifier" => {
                self.objects.insert(node_text(pattern, text));
            }
            "object_pattern" => {
                for part in children(pattern) {
                    let (key, name) = match part.kind() {
                        "shorthand_property_identifier_pattern" => (Some(part), Some(part)),
                        "pair_pattern" => {
                            (part.child_by_field_name("key"), part.child_by_field_name("value"))
                        }
                        _ => continue,
                    };
                    let key = key.map(|key| node_text(key, text));
                    if matches!(key, Some("skip" | "todo")) {
                        self.skips.extend(name.map(|name| node_text(name, text)));
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether a function with this name was taken out of a context and skips.
    pub(super) fn skips_by(&self, name: &str) -> bool {
        self.skips.contains(name)
    }
}

impl Reader<'_, '_> {
    /// Whether a node is the name of a context.
    pub(super) fn is_context(&self, node: Node<'_>) -> bool {
        node.kind() == "identifier" && self.contexts.objects.contains(node_text(node, self.text))
    }

    /// Whether a call is one of a method of the context: `t.todo()`, `this.skip()`.
    pub(super) fn is_of_context(&self, call: Node<'_>) -> bool {
        let object = call
            .child_by_field_name("function")
            .and_then(|callee| callee.child_by_field_name("object"));
        object.is_some_and(|object| object.kind() == "this" || self.is_context(object))
    }

    /// An assertion of a context: `t.equal(a, b)`.
    pub(super) fn of_context(&self, call: Node<'_>, object: Node<'_>, name: &str) -> Option<Kind> {
        if !self.is_context(object) {
            return None;
        }
        match name {
            "pass" => Some(Kind::Constant),
            _ => is_assertion(name).then(|| self.call(call, name, 0)),
        }
    }

    /// Reads a test within a test, `t.test('a', (t) => …)`, and adds its context. Returns whether
    /// the test is skipped.
    pub(in super::super) fn skips_inner_test(&mut self, call: Node<'_>) -> bool {
        if call.kind() != "call_expression" {
            return false;
        }
        let Some(callee) = call.child_by_field_name("function") else { return false };
        let name = self.last_name(callee);
        let skips = matches!(name, "skip" | "todo" | "fixme");
        if !skips && !matches!(name, "test" | "it" | "only") {
            return false;
        }
        let arguments = arguments_of(call);
        let Some(function) = arguments.iter().copied().find(|node| is_function(*node)) else {
            return false;
        };
        self.contexts.add(function, self.text);
        let is_titled = arguments
            .first()
            .is_some_and(|first| matches!(first.kind(), "string" | "template_string"));
        let option = |name: &str| {
            arguments.iter().filter(|node| node.kind() == "object").any(|options| {
                property(*options, name, self.text)
                    .is_some_and(|value| !self.conditions.truth(value).is(false))
            })
        };
        is_titled && (skips || option("skip") || option("todo"))
    }
}

/// Whether a context has an assertion with this name, in tap, tape, AVA and the like.
fn is_assertion(name: &str) -> bool {
    matches!(
        name,
        "ok" | "notOk"
            | "true"
            | "false"
            | "truthy"
            | "falsy"
            | "assert"
            | "is"
            | "isNot"
            | "not"
            | "eq"
            | "equal"
            | "equals"
            | "notEqual"
            | "strictEqual"
            | "notStrictEqual"
            | "deepEqual"
            | "deepEquals"
            | "notDeepEqual"
            | "looseEqual"
            | "same"
            | "notSame"
            | "strictSame"
            | "strictNotSame"
            | "like"
            | "match"
            | "notMatch"
            | "doesNotMatch"
            | "regex"
            | "notRegex"
            | "has"
            | "hasStrict"
            | "type"
            | "throws"
            | "doesNotThrow"
            | "notThrows"
            | "throwsAsync"
            | "notThrowsAsync"
            | "rejects"
            | "resolves"
            | "resolveMatch"
            | "error"
            | "ifError"
            | "snapshot"
            | "matchSnapshot"
            | "fail"
    )
}

fn first_named(list: Node<'_>) -> Option<Node<'_>> {
    children(list).into_iter().find(|child| child.is_named() && !child.is_extra())
}

/// Whether a node is a function without a declaration.
pub(in super::super) fn is_function(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "arrow_function"
            | "function_expression"
            | "generator_function"
            | "function"
            | "method_definition"
    )
}

/// The value of a property of an object, or the method of that name.
pub(in super::super) fn property<'t>(
    object: Node<'t>,
    name: &str,
    text: &[u8],
) -> Option<Node<'t>> {
    let is_name = |key: Node<'_>| node_text(key, text).trim_matches(['"', '\'']) == name;
    children(object).into_iter().find_map(|entry| match entry.kind() {
        "pair" if entry.child_by_field_name("key").is_some_and(is_name) => {
            entry.child_by_field_name("value")
        }
        "method_definition" if entry.child_by_field_name("name").is_some_and(is_name) => {
            Some(entry)
        }
        "shorthand_property_identifier" if is_name(entry) => Some(entry),
        _ => None,
    })
}
