//! Code that is handed to something that discards its failures, or expects it to fail.

use super::super::constant::{Conditions, Names, Role, Truth};
use super::super::parse::{Language, arguments_of, children, node_bytes, node_text, walk};
use super::{Contexts, Kind, MAX_CHAIN, Reader};
use memchr::memmem;
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// The maximum number of nodes that are read to find an assertion in code that is handed over.
const MAX_NODES: usize = 1_000;

/// What becomes of a failed assertion in code that is handed to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Handling {
    /// The call fails unless it fails.
    Expected,
    /// It is discarded.
    Discarded,
}

impl<'s> Reader<'_, 's> {
    /// What a name stands for where failures are caught.
    pub(super) fn role(&self, name: &str) -> Option<Role> {
        let mut names = self.conditions.names.iter();
        names.find_map(|names| names.roles.get(name.as_bytes())).copied()
    }

    /// What a call does with the failures of the code that it is given, and that code.
    fn handed<'t>(&self, call: Node<'t>) -> Option<(Handling, Vec<Node<'t>>)> {
        if !matches!(call.kind(), "call" | "call_expression") {
            return None;
        }
        let name = self.last_name(call.child_by_field_name("function")?);
        if self.role(name) == Some(Role::Guard) {
            return Some((Handling::Discarded, arguments_of(call)));
        }
        match self.language {
            Language::Python if is_raises(name) => {
                let mut arguments = arguments_of(call);
                if arguments.len() < 2 {
                    return None;
                }
                let expected = arguments.remove(0);
                let is_expected = self.names_assertion_error(expected);
                is_expected.then_some((Handling::Expected, arguments))
            }
            _ if self.language.is_javascript() => {
                let code = self.has_to_throw(call)?;
                Some((Handling::Expected, arguments_of(code)))
            }
            _ => None,
        }
    }

    /// The call with the code that has to throw: `assert.throws(code)`, and the one of `expect` in
    /// `expect(code).toThrow()`.
    fn has_to_throw<'t>(&self, call: Node<'t>) -> Option<Node<'t>> {
        let mut node = call.child_by_field_name("function")?;
        if node.kind() != "member_expression" {
            return None;
        }
        if matches!(self.last_name(node), "throws" | "throwsAsync" | "rejects") {
            return Some(call);
        }
        let mut throws = false;
        for _ in 0..MAX_CHAIN {
            match node.kind() {
                "member_expression" => {
                    let name = node.child_by_field_name("property")?;
                    let name = node_text(name, self.text);
                    if name == "not" {
                        return None;
                    }
                    throws |= name.starts_with("toThrow")
                        || matches!(name, "throw" | "Throw" | "rejects" | "rejected")
                        || name == "rejectedWith";
                    node = node.child_by_field_name("object")?;
                }
                "call_expression" => {
                    let callee = node.child_by_field_name("function")?;
                    if callee.kind() == "identifier" {
                        let is_expect = node_bytes(callee, self.text) == b"expect";
                        return (throws && is_expect).then_some(node);
                    }
                    node = callee;
                }
                _ => return None,
            }
        }
        None
    }

    /// What a call does with the failed assertions of the code that it is given; nothing if it is
    /// given none. `local` are the functions with assertions that are handed over by name.
    pub(in super::super) fn handles(
        &self,
        call: Node<'_>,
        local: &HashMap<&'s [u8], Handling>,
    ) -> Option<Handling> {
        let (handling, code) = self.handed(call)?;
        let asserts = code.into_iter().any(|code| match code.kind() {
            "identifier" => local.contains_key(node_bytes(code, self.text)),
            _ => self.names_assertion(code) || self.has_assertion(code),
        });
        asserts.then_some(handling)
    }

    /// Whether a call is given an assertion by its name: `assertRaises(AssertionError,
    /// self.assertEqual, a, b)`.
    pub(in super::super) fn is_given_assertion(&self, call: Node<'_>) -> bool {
        arguments_of(call).into_iter().any(|code| self.names_assertion(code))
    }

    fn names_assertion(&self, code: Node<'_>) -> bool {
        let name = if code.kind() == "attribute" { self.last_name(code) } else { "" };
        name.starts_with("assert") && !is_of_mock(name)
    }

    /// The functions of a body that have assertions and are handed over by name, and what becomes
    /// of their failures.
    pub(in super::super) fn handed_over(&self, body: Node<'_>) -> HashMap<&'s [u8], Handling> {
        let mut local: HashSet<&'s [u8]> = HashSet::new();
        let (mut calls, mut caught) = (Vec::new(), Vec::new());
        walk(body, |node| {
            match node.kind() {
                "function_definition" | "function_declaration" | "variable_declarator" => {
                    let is_function = node.kind() != "variable_declarator"
                        || node.child_by_field_name("value").is_some_and(super::is_function);
                    let name = node.child_by_field_name("name").filter(|_| is_function);
                    if let Some(name) = name
                        && self.has_assertion(node)
                    {
                        local.insert(node_bytes(name, self.text));
                    }
                }
                "call" | "call_expression" => calls.push(node),
                "let_declaration" if self.is_discarded_failure(node) => {
                    let name = node.child_by_field_name("pattern");
                    if self.has_assertion(node) {
                        caught.extend(name.map(|name| node_bytes(name, self.text)));
                    }
                }
                _ => {}
            }
            true
        });
        let mut handed: HashMap<_, _> =
            caught.into_iter().map(|name| (name, Handling::Expected)).collect();
        if local.is_empty() {
            return handed;
        }
        for (handling, code) in calls.into_iter().filter_map(|call| self.handed(call)) {
            for code in code.into_iter().filter(|code| code.kind() == "identifier") {
                let name = node_bytes(code, self.text);
                if local.contains(name) {
                    handed.insert(name, handling);
                }
            }
        }
        handed
    }

    /// Whether code has an assertion about what is tested.
    pub(in super::super) fn has_assertion(&self, code: Node<'_>) -> bool {
        let (mut found, mut fuel) = (false, MAX_NODES);
        walk(code, |node| {
            fuel = fuel.saturating_sub(1);
            found = found || self.is_about_code(node);
            !found && fuel > 0
        });
        found
    }

    /// Whether a node is an assertion about what is tested. What fails wherever it is reached says
    /// that something else has to fail before, and the ones of mocks have no opposite of their own.
    pub(in super::super) fn is_about_code(&self, node: Node<'_>) -> bool {
        let kind = self.assertion(node).or_else(|| self.expectation(node).map(|(_, kind)| kind));
        kind.is_some_and(|kind| !matches!(kind, Kind::Failing | Kind::Contradiction))
            && node
                .child_by_field_name("function")
                .is_none_or(|callee| !is_of_mock(self.last_name(callee)))
    }

    /// What a context of a `with` statement does with failed assertions.
    pub(super) fn context(&self, value: Node<'_>) -> Option<Role> {
        if value.kind() == "identifier" {
            let role = self.role(node_text(value, self.text));
            return role.filter(|role| matches!(role, Role::Discards | Role::Expects));
        }
        let callee = value.child_by_field_name("function")?;
        let arguments = value.child_by_field_name("arguments")?;
        let name = self.last_name(callee);
        let role = match self.role(name) {
            _ if name == "suppress" => Role::Discards,
            _ if is_raises(name) => Role::Expects,
            Some(Role::Suppress) => Role::Discards,
            Some(Role::Guard) => return Some(Role::Discards),
            _ => return None,
        };
        self.names_assertion_error(arguments).then_some(role)
    }

    /// Whether an assignment keeps a context that expects a failed assertion.
    pub(in super::super) fn expects_later(&self, assignment: Node<'_>) -> bool {
        let value = assignment.child_by_field_name("right");
        value.filter(|value| value.kind() == "call").and_then(|value| self.context(value))
            == Some(Role::Expects)
    }

    /// Whether a function runs what it is given, or the block that it is around, and discards the
    /// failures of that.
    fn is_guard(&self, function: Node<'_>) -> bool {
        let mut given: HashSet<&[u8]> = HashSet::new();
        walk(function, |node| {
            let list = match node.kind() {
                "parameters" | "formal_parameters" => children(node),
                "arrow_function" => node.child_by_field_name("parameter").into_iter().collect(),
                _ => Vec::new(),
            };
            for parameter in list {
                let name = match parameter.kind() {
                    "typed_parameter" => parameter.named_child(0),
                    "required_parameter" => parameter.child_by_field_name("pattern"),
                    _ => Some(parameter),
                };
                given.extend(
                    name.filter(|name| name.kind() == "identifier")
                        .map(|name| node_bytes(name, self.text)),
                );
            }
            true
        });
        let runs_given = |node: Node<'_>| {
            node.kind() == "yield"
                || (node.kind().starts_with("call")
                    && node
                        .child_by_field_name("function")
                        .is_some_and(|callee| given.contains(node_bytes(callee, self.text))))
        };
        let (mut discards, mut passes_on) = (false, false);
        walk(function, |node| {
            if node.kind() == "try_statement" && self.swallows(node) {
                if let Some(body) = node.child_by_field_name("body") {
                    walk(body, |node| {
                        discards |= runs_given(node);
                        !discards
                    });
                }
                // A harness of the project counts failures and looks at their number later.
                walk(node, |node| {
                    passes_on |= matches!(
                        node.kind(),
                        "update_expression"
                            | "augmented_assignment"
                            | "augmented_assignment_expression"
                    );
                    !passes_on
                });
                return false;
            }
            passes_on |= runs_given(node);
            true
        });
        discards && !passes_on && !self.fails(function)
    }
}

/// The functions and classes of a file that discard the failures of what they run.
pub(in super::super) fn guards<'s>(
    language: Language,
    root: Node<'_>,
    text: &'s [u8],
    file: &Names<'s>,
) -> Vec<&'s [u8]> {
    let mut found = Vec::new();
    if language != Language::Python && !language.is_javascript() {
        return found;
    }
    let mut open = children(root);
    while let Some(node) = open.pop() {
        let field = |name| node.child_by_field_name(name);
        let is_guard = match node.kind() {
            "decorated_definition" => {
                open.extend(field("definition"));
                false
            }
            "export_statement" => {
                open.extend(field("declaration"));
                false
            }
            "lexical_declaration" | "variable_declaration" => {
                open.extend(children(node));
                false
            }
            "class_definition" | "class_declaration" => {
                open.extend(field("body").map(children).unwrap_or_default());
                false
            }
            "function_definition"
            | "function_declaration"
            | "variable_declarator"
            | "method_definition" => {
                memmem::find(node_bytes(node, text), b"try").is_some() && {
                    let own = Names::read(node, text);
                    let names = [&own, file];
                    let conditions = Conditions { text, names: &names };
                    let contexts = Contexts::default();
                    let reader = Reader::new(language, text, &conditions, contexts);
                    reader.is_guard(node)
                }
            }
            _ => false,
        };
        let is_quiet = || node.kind() == "class_definition" && exits_quietly(node, text, file);
        if is_guard || is_quiet() {
            found.extend(field("name").map(|name| node_bytes(name, text)));
        }
    }
    found
}

/// Whether the class of a context discards every failure: its `__exit__` returns true.
fn exits_quietly<'s>(class: Node<'_>, text: &'s [u8], file: &Names<'s>) -> bool {
    let names = [file];
    let conditions = Conditions { text, names: &names };
    let methods = class.child_by_field_name("body").map(children).unwrap_or_default();
    methods.into_iter().any(|method| {
        let name = method.child_by_field_name("name").map(|name| node_bytes(name, text));
        let mut is_quiet = false;
        if matches!(name, Some(b"__exit__" | b"__aexit__")) {
            walk(method, |node| {
                is_quiet |= node.kind() == "return_statement"
                    && node
                        .named_child(0)
                        .is_some_and(|value| conditions.truth(value) == Truth::Always(true));
                !is_quiet
            });
        }
        is_quiet
    })
}

/// Whether a function of Python expects an exception.
fn is_raises(name: &str) -> bool {
    matches!(name, "raises" | "assertRaises" | "assertRaisesRegex")
}

/// Whether an assertion is about the calls of a mock.
fn is_of_mock(name: &str) -> bool {
    name.starts_with("assert_") && (name.contains("call") || name.contains("await"))
}
