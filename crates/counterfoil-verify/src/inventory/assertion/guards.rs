//! Code that is handed to something that discards its failures, or expects it to fail.

use super::super::constant::{Conditions, Guard, Names, Role, Truth};
use super::super::parse::{Language, arguments_of, children, find, node_bytes, node_text, walk};
use super::{Contexts, Kind, MAX_CHAIN, Reader};
use memchr::memmem;
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// The maximum number of nodes that are read to find an assertion in code that is handed over.
const MAX_NODES: usize = 1_000;

/// What becomes of a failed assertion in code that is handed to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Handling {
    /// The call fails unless an assertion of the runner fails.
    Expected,
    /// The call fails unless something else fails: a function that is tested, although it has the name
    /// of an assertion.
    Thrown,
    /// It is discarded.
    Discarded,
}

impl Handling {
    /// What becomes of the failures of code without assertions of the runner.
    fn of_others(self) -> Self {
        if self == Self::Expected { Self::Thrown } else { self }
    }
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
        let callee = call.child_by_field_name("function")?;
        let name = self.last_name(callee);
        if let Some(Role::Guard(guard)) = self.role(name)
            && guard.is_called_by(callee)
        {
            return Some((Handling::Discarded, arguments_of(call)));
        }
        match self.language {
            Language::Python if is_raises(name) => {
                let mut arguments = arguments_of(call);
                if arguments.len() < 2 {
                    return None;
                }
                let expected = arguments.remove(0);
                let is_assertion = self.names_assertion_error(expected);
                let handling = if is_assertion { Handling::Expected } else { Handling::Thrown };
                Some((handling, arguments))
            }
            _ if self.language.is_javascript() => {
                let (handling, code) = self.has_to_throw(call)?;
                Some((handling, arguments_of(code)))
            }
            _ => None,
        }
    }

    /// The call with the code that has to throw, `assert.throws(code)`, and the one of `expect` in
    /// `expect(code).toThrow()`; and whether it may be the error of a failed assertion.
    fn has_to_throw<'t>(&self, call: Node<'t>) -> Option<(Handling, Node<'t>)> {
        let mut node = call.child_by_field_name("function")?;
        if node.kind() != "member_expression" {
            return None;
        }
        let names_other = |call: Node<'_>, at: u32| {
            let list = call.child_by_field_name("arguments");
            let error = list.and_then(|list| list.named_child(at));
            error.is_some_and(|error| {
                error.kind() == "identifier" && is_other_error(node_text(error, self.text))
            })
        };
        let handling =
            |is_other: bool| if is_other { Handling::Thrown } else { Handling::Expected };
        if matches!(self.last_name(node), "throws" | "throwsAsync" | "rejects") {
            return Some((handling(names_other(call, 1)), call));
        }
        let mut throws = false;
        let mut is_other = names_other(call, 0);
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
                        return (throws && is_expect).then_some((handling(is_other), node));
                    }
                    is_other |= names_other(node, 0);
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
        let of_runner = code
            .into_iter()
            .filter_map(|code| match code.kind() {
                "identifier" => match local.get(node_bytes(code, self.text)) {
                    Some(local) => Some(*local == Handling::Expected),
                    None => self.named_assertion(code),
                },
                _ => self.named_assertion(code).or_else(|| self.asserts(code)),
            })
            .reduce(|a, b| a || b)?;
        Some(if of_runner { handling } else { handling.of_others() })
    }

    /// Whether a call is given an assertion by its name, `assertRaises(AssertionError,
    /// self.assertEqual, a, b)`, and whether it is one of the runner.
    pub(in super::super) fn given_assertion(&self, call: Node<'_>) -> Option<bool> {
        arguments_of(call).into_iter().find_map(|code| self.named_assertion(code))
    }

    /// Whether code is the name of an assertion, and of one of the runner.
    fn named_assertion(&self, code: Node<'_>) -> Option<bool> {
        let name = match code.kind() {
            "attribute" => self.last_name(code),
            "identifier" if self.language == Language::Python => node_text(code, self.text),
            _ => return None,
        };
        let is_assertion = name.starts_with("assert") && !is_of_mock(name);
        is_assertion.then(|| self.is_method_of_runner(code, name))
    }

    /// The functions of a body that have assertions and are handed over by name, and what becomes
    /// of their failures.
    pub(in super::super) fn handed_over(&self, body: Node<'_>) -> HashMap<&'s [u8], Handling> {
        let mut local: HashMap<&'s [u8], bool> = HashMap::new();
        let (mut calls, mut caught) = (Vec::new(), Vec::new());
        walk(body, |node| {
            match node.kind() {
                "function_definition" | "function_declaration" | "variable_declarator" => {
                    let is_function = node.kind() != "variable_declarator"
                        || node.child_by_field_name("value").is_some_and(super::is_function);
                    let name = node.child_by_field_name("name").filter(|_| is_function);
                    if let Some(name) = name
                        && let Some(of_runner) = self.asserts(node)
                    {
                        local.insert(node_bytes(name, self.text), of_runner);
                    }
                }
                "call" | "call_expression" => calls.push(node),
                "let_declaration" if self.is_discarded_failure(node) => {
                    let name = node.child_by_field_name("pattern");
                    if self.asserts(node).is_some() {
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
                if let Some(of_runner) = local.get(name) {
                    let handling = if *of_runner { handling } else { handling.of_others() };
                    handed.insert(name, handling);
                }
            }
        }
        handed
    }

    /// Whether code has an assertion about what is tested, and one of the runner.
    pub(in super::super) fn asserts(&self, code: Node<'_>) -> Option<bool> {
        let mut of_runner = None;
        find(code, MAX_NODES, |node| {
            if self.is_about_code(node) {
                of_runner = Some(of_runner == Some(true) || self.is_of_runner(node));
            }
            of_runner == Some(true)
        });
        of_runner
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

    /// Whether an assertion is one of the language, the runner or a mock. A function that only has the
    /// name of an assertion may be what is tested.
    pub(in super::super) fn is_of_runner(&self, assertion: Node<'_>) -> bool {
        let is_call = matches!(assertion.kind(), "call" | "call_expression");
        let callee = assertion.child_by_field_name("function").filter(|_| is_call);
        let Some(callee) = callee else { return true };
        match self.language {
            Language::Python => {
                let name = self.last_name(callee);
                !name.starts_with("assert")
                    || is_of_mock(name)
                    || self.is_method_of_runner(callee, name)
            }
            _ if self.language.is_javascript() && callee.kind() == "identifier" => matches!(
                node_text(callee, self.text),
                "assert"
                    | "expect"
                    | "fail"
                    | "assertEquals"
                    | "assertNotEquals"
                    | "assertStrictEquals"
                    | "assertNotStrictEquals"
            ),
            _ => true,
        }
    }

    /// Whether a callee of Python is a method of unittest, or one that a class of tests adds to it.
    fn is_method_of_runner(&self, callee: Node<'_>, name: &str) -> bool {
        let object = callee.child_by_field_name("object");
        object.is_some_and(|object| {
            matches!(node_bytes(object, self.text), b"self" | b"cls")
                || name.trim_start_matches("assert").starts_with(char::is_uppercase)
        })
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
            Some(Role::Guard(guard)) => {
                let is_guard = guard.is_context && guard.is_called_by(callee);
                return is_guard.then_some(Role::Discards);
            }
            _ => return None,
        };
        self.names_assertion_error(arguments).then_some(role)
    }

    /// Whether a context of a `with` statement expects an exception.
    pub(super) fn is_raises(&self, value: Node<'_>) -> bool {
        let callee = value.child_by_field_name("function");
        callee.is_some_and(|callee| is_raises(self.last_name(callee)))
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
) -> HashMap<&'s [u8], Guard> {
    let mut found: HashMap<&[u8], Guard> = HashMap::new();
    if language != Language::Python && !language.is_javascript() {
        return found;
    }
    let mut open: Vec<(Node<'_>, bool)> =
        children(root).into_iter().map(|node| (node, false)).collect();
    while let Some((node, is_method)) = open.pop() {
        let field = |name| node.child_by_field_name(name);
        let is_guard = match node.kind() {
            "decorated_definition" => {
                open.extend(field("definition").map(|node| (node, is_method)));
                false
            }
            "export_statement" => {
                open.extend(field("declaration").map(|node| (node, is_method)));
                false
            }
            "lexical_declaration" | "variable_declaration" => {
                open.extend(children(node).into_iter().map(|node| (node, is_method)));
                false
            }
            "class_definition" | "class_declaration" => {
                let body = field("body").map(children).unwrap_or_default();
                open.extend(body.into_iter().map(|node| (node, true)));
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
        let is_quiet = node.kind() == "class_definition" && exits_quietly(node, text, file);
        if let Some(name) = field("name").filter(|_| is_guard || is_quiet) {
            let is_context = is_quiet || find(node, MAX_NODES, |node| node.kind() == "yield");
            let guard = Guard { is_own: !is_method, is_method, is_context };
            let known = found.entry(node_bytes(name, text)).or_default();
            *known = known.or(guard);
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

/// Whether an error of JavaScript is never that of a failed assertion.
fn is_other_error(name: &str) -> bool {
    matches!(
        name,
        "TypeError" | "RangeError" | "SyntaxError" | "ReferenceError" | "URIError" | "EvalError"
    )
}

/// Whether an assertion is about the calls of a mock.
fn is_of_mock(name: &str) -> bool {
    name.starts_with("assert_") && (name.contains("call") || name.contains("await"))
}
