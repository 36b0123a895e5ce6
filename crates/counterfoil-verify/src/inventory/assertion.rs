//! Recognises assertions, skips, and code that swallows a failed assertion, in each language.

mod constants;
mod contexts;
mod guards;
mod handlers;
mod unwinding;

pub(super) use contexts::{Contexts, is_function, property};
pub(super) use guards::{Handling, guards};

use super::constant::{Conditions, Truth};
use super::parse::{Language, arguments_of, is_comment, node_bytes, node_text};
use super::tokens;
use std::cell::Cell;
use tree_sitter::Node;

/// The maximum length of a name that is recognised.
const MAX_NAME: usize = 100;

/// The maximum length of a chain such as `expect(a).not.toBe(b)`.
const MAX_CHAIN: usize = 12;

/// Whether an assertion can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It can.
    Effective,
    /// It fails wherever it is reached: `fail()`.
    Failing,
    /// It compares constants that differ: `assert False`.
    Contradiction,
    /// It compares constants that agree, or a value with itself.
    Constant,
    /// It uses only constants, and it is not known whether it holds.
    Undecided,
    /// It always holds, although it mentions what is tested.
    Disarmed,
}

impl Kind {
    /// An assertion on constants, of which it may be known whether it holds.
    pub(super) fn on_constants(holds: Option<bool>) -> Self {
        match holds {
            Some(true) => Self::Constant,
            Some(false) => Self::Contradiction,
            None => Self::Undecided,
        }
    }

    /// Whether it fails, or may fail for what is tested.
    pub(super) fn can_fail(self) -> bool {
        matches!(self, Self::Effective | Self::Failing | Self::Contradiction)
    }
}

/// Reads the nodes of one language.
pub(super) struct Reader<'a, 's> {
    pub(super) language: Language,
    pub(super) text: &'s [u8],
    pub(super) conditions: &'a Conditions<'a, 's>,
    pub(super) contexts: Contexts<'s>,
    /// How much code may still be searched for what reads a result.
    searchable: Cell<usize>,
}

impl<'a, 's> Reader<'a, 's> {
    pub(super) fn new(
        language: Language,
        text: &'s [u8],
        conditions: &'a Conditions<'a, 's>,
        contexts: Contexts<'s>,
    ) -> Self {
        let searchable = Cell::new(unwinding::MAX_SEARCHED);
        Self { language, text, conditions, contexts, searchable }
    }

    /// Whether a node is an assertion, and whether it can fail.
    pub(super) fn assertion(&self, node: Node<'_>) -> Option<Kind> {
        match (node.kind(), self.language) {
            ("assert_statement", Language::Python) => {
                Some(self.condition(node.named_child(0)?, true))
            }
            ("call", Language::Python) => {
                let name = self.last_name(node.child_by_field_name("function")?);
                let asserts = name.starts_with("assert")
                    || matches!(name, "raises" | "warns" | "fail" | "deprecated_call");
                asserts.then(|| self.call(node, name, 0))
            }
            ("call_expression", Language::JavaScript | Language::TypeScript | Language::Tsx) => {
                self.javascript(node)
            }
            ("call_expression", Language::Go) => self.go(node),
            ("macro_invocation", Language::Rust) => {
                let name = node.child_by_field_name("macro").map(|path| self.last_name(path))?;
                if !name.contains("assert") && !matches!(name, "panic" | "unreachable") {
                    return None;
                }
                Some(tokens::assertion(node, name, self.text))
            }
            _ => None,
        }
    }

    /// The last part of a path: `equal` of `assert.equal`. Reads only the end, since a chain of
    /// calls has a callee of any length.
    fn last_name(&self, callee: Node<'_>) -> &'s str {
        let path = node_bytes(callee, self.text);
        let end = &path[path.len().saturating_sub(MAX_NAME)..];
        let name = end.rsplit(|byte| matches!(byte, b'.' | b':')).next().unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default().trim()
    }

    /// An assertion that a condition has a value.
    fn condition(&self, node: Node<'_>, wanted: bool) -> Kind {
        let truth = self.conditions.truth(node);
        if self.conditions.is_constant(node, |_, _| false) {
            return Kind::on_constants(truth.always().map(|value| value == wanted));
        }
        match truth {
            Truth::Always(value) if value == wanted => match node.kind() {
                // `a == a`.
                "comparison_operator" | "binary_expression" if !is_joined(node) => Kind::Constant,
                _ => Kind::Disarmed,
            },
            _ => Kind::Effective,
        }
    }

    /// An assertion that is a call, whose first arguments are not part of it.
    fn call(&self, node: Node<'_>, name: &str, ignored: usize) -> Kind {
        let arguments: Vec<Node<'_>> = arguments_of(node)
            .into_iter()
            .filter(|child| !is_comment(*child) && child.kind() != "keyword_argument")
            .skip(ignored)
            .collect();
        let lower = name.to_ascii_lowercase();
        let plain =
            lower.trim_start_matches("assert").trim_start_matches('_').trim_end_matches('f');
        match plain {
            "fail" | "failnow" => return Kind::Failing,
            "raises" | "warns" => return Kind::Effective,
            // What a mock was called with.
            _ if plain.contains("call") || plain.contains("await") => return Kind::Effective,
            _ => {}
        }
        let Some(first) = arguments.first().copied() else { return Kind::Effective };
        match plain {
            "" | "true" | "ok" | "istrue" | "truthy" if arguments.len() < 3 => {
                return self.condition(first, true);
            }
            "false" | "isfalse" | "notok" | "falsy" => return self.condition(first, false),
            _ => {}
        }
        let second = arguments.get(1).copied();
        let constant = |node: Node<'_>| self.conditions.is_constant(node, |_, _| false);
        if constant(first) && second.is_none_or(constant) {
            return Kind::on_constants(self.holds(plain, first, second));
        }
        let is_negative = plain.contains("not")
            || plain.starts_with("ne")
            || matches!(plain, "less" | "greater")
            || plain.contains("raises")
            || plain.contains("throw");
        let same = second.is_some_and(|second| self.is_same(first, second));
        if same && !is_negative { Kind::Constant } else { Kind::Effective }
    }

    /// Whether two pieces of code are the same, without a call of unbounded length.
    fn is_same(&self, a: Node<'_>, b: Node<'_>) -> bool {
        let (a, b) = (node_bytes(a, self.text), node_bytes(b, self.text));
        a.len() < 2_000 && a == b
    }

    fn javascript(&self, node: Node<'_>) -> Option<Kind> {
        let callee = node.child_by_field_name("function")?;
        if callee.kind() == "identifier" {
            let name = node_text(callee, self.text);
            return match name {
                _ if name.starts_with("assert") => Some(self.call(node, name, 0)),
                "fail" => Some(Kind::Failing),
                _ => None,
            };
        }
        let object = callee.child_by_field_name("object")?;
        let base = match object.kind() {
            "identifier" => node_text(object, self.text),
            "member_expression" => self.last_name(object),
            _ => return None,
        };
        let name = self.last_name(callee);
        let asserts = base == "assert" || (matches!(base, "chai") && name == "assert");
        if asserts {
            return Some(self.call(node, name, 0));
        }
        match (base, name) {
            ("expect", "fail" | "unreachable") | ("done", "fail") => Some(Kind::Failing),
            ("should", _) => Some(Kind::Effective),
            _ => self.of_context(node, object, name),
        }
    }

    /// `expect(value)` with what follows: `.not.toBe(other)`, `.to.be.true`. Returns the identity
    /// of the call of `expect`, since the parts of a chain lead to the same one.
    pub(super) fn expectation(&self, node: Node<'_>) -> Option<(usize, Kind)> {
        if !self.language.is_javascript() {
            return None;
        }
        let (mut node, mut is_negated, mut matcher, mut wanted) = (node, false, "", None);
        let mut arguments = None;
        // `expect(a).toBe` compares nothing unless it is called.
        let is_called = node.kind() == "call_expression";
        for _ in 0..MAX_CHAIN {
            match node.kind() {
                "member_expression" => {
                    let name = node
                        .child_by_field_name("property")
                        .map(|name| node_text(name, self.text))
                        .unwrap_or_default();
                    is_negated |= name == "not";
                    if matcher.is_empty() {
                        (matcher, wanted) = (name, arguments);
                    }
                    arguments = None;
                    node = node.child_by_field_name("object")?;
                }
                "call_expression" => {
                    let callee = node.child_by_field_name("function")?;
                    let list = node.child_by_field_name("arguments")?;
                    if callee.kind() == "identifier" {
                        return (node_bytes(callee, self.text) == b"expect").then(|| {
                            let value = list.named_child(0);
                            let is_uncalled = !is_called
                                && matcher
                                    .strip_prefix("to")
                                    .is_some_and(|rest| rest.starts_with(char::is_uppercase));
                            let kind = if is_uncalled {
                                Kind::Constant
                            } else {
                                self.expected(value, matcher, wanted, is_negated)
                            };
                            (node.id(), kind)
                        });
                    }
                    arguments = list.named_child(0);
                    node = callee;
                }
                _ => return None,
            }
        }
        None
    }

    fn expected(
        &self,
        value: Option<Node<'_>>,
        matcher: &str,
        wanted: Option<Node<'_>>,
        is_negated: bool,
    ) -> Kind {
        let Some(value) = value else { return Kind::Undecided };
        let ignored = |node: Node<'_>, name: &str| {
            node.kind() == "property_identifier" || matches!(name, "expect" | "undefined")
        };
        if matcher.is_empty() {
            // Without a matcher, nothing is compared.
            return Kind::Constant;
        }
        let constant = |node| self.conditions.is_constant(node, ignored);
        if constant(value) && wanted.is_none_or(constant) {
            let holds = self.matches(matcher, value, wanted);
            return Kind::on_constants(holds.map(|holds| holds != is_negated));
        }
        if is_negated {
            return Kind::Effective;
        }
        if wanted.is_some_and(|wanted| self.is_same(value, wanted)) {
            return Kind::Constant;
        }
        let is_true = wanted.map_or("", |wanted| node_text(wanted, self.text)) == "true";
        let asks =
            matches!(matcher, "toBeTruthy" | "toBeDefined" | "true" | "ok" | "exist" | "not")
                || is_true;
        if asks && self.conditions.truth(value) == Truth::Always(true) {
            return Kind::Disarmed;
        }
        Kind::Effective
    }

    fn go(&self, node: Node<'_>) -> Option<Kind> {
        let callee = node.child_by_field_name("function")?;
        let name = node_text(callee.child_by_field_name("field")?, self.text);
        let base = callee.child_by_field_name("operand").map(|base| node_text(base, self.text))?;
        let library = matches!(base, "assert" | "require" | "check" | "is");
        if library {
            return Some(self.call(node, name, 1));
        }
        matches!(
            name,
            "Error" | "Errorf" | "Fatal" | "Fatalf" | "Fail" | "FailNow" | "Check" | "Assert"
        )
        .then_some(Kind::Effective)
        .or_else(|| {
            let suite = matches!(base, "s" | "suite") && name.starts_with(char::is_uppercase);
            let known = ["Equal", "True", "False", "Nil", "No", "Len", "Contains", "Error"];
            (suite && known.iter().any(|known| name.starts_with(known)))
                .then(|| self.call(node, name, 0))
        })
    }

    /// Whether a statement or call skips the test or ends the run as if it had passed.
    pub(super) fn is_skip(&self, node: Node<'_>) -> bool {
        if self.language == Language::Python && node.kind() == "raise_statement" {
            let raised = node.named_child(0).unwrap_or(node);
            let raised = raised.child_by_field_name("function").unwrap_or(raised);
            return matches!(self.last_name(raised), "SkipTest" | "Skipped");
        }
        let call = match node.kind() {
            "expression_statement" => match node.named_child(0) {
                Some(inner) if inner.kind() == "await" || inner.kind() == "await_expression" => {
                    inner.named_child(0).unwrap_or(inner)
                }
                Some(inner) => inner,
                None => return false,
            },
            // `return this.skip()`. Others return what they call, such as a query.
            "return_statement" => match node.named_child(0) {
                Some(inner) if self.is_of_context(inner) => inner,
                _ => return false,
            },
            _ => return false,
        };
        self.is_skip_call(call)
    }

    /// Whether a call skips.
    pub(super) fn is_skip_call(&self, call: Node<'_>) -> bool {
        if !call.kind().starts_with("call") {
            return false;
        }
        let Some(callee) = call.child_by_field_name("function") else { return false };
        let raw = node_bytes(callee, self.text);
        if raw.len() > 100 {
            return false;
        }
        let path = node_text(callee, self.text);
        let name = self.last_name(callee);
        let first = call.child_by_field_name("arguments").and_then(|list| list.named_child(0));
        match self.language {
            Language::Python => match name {
                "skip" | "xfail" => path != "self.skip" && !path.starts_with("mark."),
                "skipTest" | "importorskip" | "_exit" => true,
                "exit" => path == "pytest.exit",
                _ => false,
            },
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                let always = || {
                    first.is_none_or(|first| {
                        matches!(first.kind(), "string" | "template_string")
                            || self.conditions.truth(first).is(true)
                    }) && call.child_by_field_name("arguments").is_none_or(|list| {
                        list.named_child_count() < 2
                            || first.is_some_and(|first| first.kind() == "true")
                    })
                };
                match name {
                    _ if callee.kind() == "identifier" => {
                        name == "pending" || (self.contexts.skips_by(name) && always())
                    }
                    "skip" | "fixme" => callee.kind() == "member_expression" && always(),
                    // Other objects have such a method as well.
                    "todo" => self.is_of_context(call) && always(),
                    "exit" => path == "process.exit" || path == "Deno.exit",
                    _ => false,
                }
            }
            Language::Go => match name {
                "Skip" | "Skipf" | "SkipNow" => true,
                "Exit" => path == "os.Exit",
                _ => false,
            },
            Language::Rust => name == "exit" && path.contains("process"),
        }
    }
}

fn is_joined(node: Node<'_>) -> bool {
    node.child_by_field_name("operator")
        .is_some_and(|operator| matches!(operator.kind(), "||" | "&&" | "or" | "and"))
}
