//! Tests in Python: what pytest and unittest would collect.

use super::body::{Body, first_doing, is_idle};
use super::parse::{bytes, children, line_of, walk, word};
use super::scope::{Findings, Found, ScopeId};
use memchr::memmem;
use tree_sitter::Node;

/// Finds the tests of a file.
pub(super) fn find(root: Node<'_>, text: &[u8], found: &mut Findings) {
    let mut open = vec![Place { node: root, scope: ScopeId::FILE, collects: true }];
    while let Some(place) = open.pop() {
        for child in children(place.node) {
            let place = Place { node: child, ..place };
            match child.kind() {
                "decorated_definition" => {
                    let marks =
                        children(child).into_iter().filter(|child| child.kind() == "decorator");
                    let marks = Marks::read(marks, text);
                    if let Some(node) = child.child_by_field_name("definition") {
                        definition(Place { node, ..place }, text, &marks, found, &mut open);
                    }
                }
                "function_definition" | "class_definition" => {
                    definition(place, text, &Marks::default(), found, &mut open);
                }
                "expression_statement" if leaves_out(child, text) => found.skip(place.scope),
                "expression_statement" => {}
                // A definition may stand under a condition.
                kind if kind.ends_with("_statement") || kind.ends_with("_clause") => {
                    open.push(place)
                }
                "block" | "ERROR" => open.push(place),
                _ => {}
            }
        }
    }
}

/// Somewhere that definitions stand.
#[derive(Clone, Copy)]
struct Place<'t> {
    node: Node<'t>,
    scope: ScopeId,
    /// Whether functions here can be tests.
    collects: bool,
}

fn definition<'t>(
    place: Place<'t>,
    text: &[u8],
    marks: &Marks,
    found: &mut Findings,
    open: &mut Vec<Place<'t>>,
) {
    let node = place.node;
    let name = node.child_by_field_name("name").map(|name| word(name, text)).unwrap_or_default();
    let body = node.child_by_field_name("body");
    if node.kind() == "class_definition" {
        let scope = found.enter(place.scope, name, ".");
        if marks.skipped {
            found.skip(scope);
        }
        let bases = node
            .child_by_field_name("superclasses")
            .map(|list| bytes(list, text))
            .unwrap_or_default();
        let collects = name.starts_with("Test")
            || ["Test", "Tests", "TestCase"].iter().any(|ending| name.ends_with(ending))
            || memmem::find(bases, b"Test").is_some();
        open.extend(body.map(|node| Place { node, scope, collects }));
        return;
    }
    if !place.collects || !name.starts_with("test") || marks.fixture {
        return;
    }
    let statements = body.map(children).unwrap_or_default().into_iter().filter(Node::is_named);
    let first = first_doing(statements, |statement| is_idle_statement(statement, text));
    found.add(
        place.scope,
        Found {
            name: name.to_owned(),
            line: line_of(node),
            skipped: marks.skipped || first.is_some_and(|first| is_skip(first, text)),
            empty: first.is_none(),
            only: false,
            body: body
                .map(|body| Body::of(body, text, is_assertion))
                .unwrap_or_default()
                .with_cases(marks.cases),
        },
    );
}

/// What decorators say about what stands behind them.
#[derive(Default)]
struct Marks {
    skipped: bool,
    fixture: bool,
    cases: Option<usize>,
}

impl Marks {
    fn read<'t>(decorators: impl Iterator<Item = Node<'t>>, text: &[u8]) -> Self {
        let mut marks = Self::default();
        for decorator in decorators {
            let Some(expression) = decorator.named_child(0) else { continue };
            let callee = expression.child_by_field_name("function").unwrap_or(expression);
            let name = word(callee, text).rsplit('.').next().unwrap_or_default().trim();
            marks.skipped |= is_skip_mark(name);
            marks.fixture |= name == "fixture";
            if name == "parametrize" {
                marks.cases = rows(expression).map(|rows| rows * marks.cases.unwrap_or(1));
            }
        }
        marks
    }
}

/// How many values a parametrised test is given, where they stand in a list.
fn rows(call: Node<'_>) -> Option<usize> {
    let arguments = call.child_by_field_name("arguments")?;
    let list = arguments.named_children(&mut arguments.walk()).nth(1)?;
    if !matches!(list.kind(), "list" | "tuple") {
        return None;
    }
    let spread = |node: &Node<'_>| node.kind() == "list_splat";
    let rows: Vec<_> = children(list)
        .into_iter()
        .filter(|node| node.is_named() && node.kind() != "comment")
        .collect();
    (!rows.iter().any(spread)).then_some(rows.len())
}

fn is_skip_mark(name: &str) -> bool {
    matches!(name, "xfail" | "expectedFailure" | "SkipTest")
        || name.to_ascii_lowercase().starts_with("skip")
}

/// A line of a module or a class that leaves out everything in it.
fn leaves_out(statement: Node<'_>, text: &[u8]) -> bool {
    let Some(inner) = statement.named_child(0) else { return false };
    if inner.kind() == "call" {
        let callee = inner
            .child_by_field_name("function")
            .map(|callee| bytes(callee, text))
            .unwrap_or_default();
        return callee == b"pytest.skip" || callee == b"pytest.xfail";
    }
    if inner.kind() != "assignment" {
        return false;
    }
    let left = inner.child_by_field_name("left").map(|left| bytes(left, text)).unwrap_or_default();
    let Some(right) = inner.child_by_field_name("right") else { return false };
    match left {
        b"pytestmark" => has_skip_mark(right, text),
        b"__test__" => bytes(right, text) == b"False",
        _ => false,
    }
}

fn has_skip_mark(node: Node<'_>, text: &[u8]) -> bool {
    let mut skip = false;
    walk(node, |node| {
        skip = skip || (node.kind() == "identifier" && is_skip_mark(word(node, text)));
        !skip
    });
    skip
}

/// `pytest.skip(…)`, `self.skipTest(…)`, `raise SkipTest(…)`.
fn is_skip(statement: Node<'_>, text: &[u8]) -> bool {
    let Some(inner) = statement.named_child(0) else { return false };
    let callee = inner.child_by_field_name("function").unwrap_or(inner);
    let name = word(callee, text).rsplit('.').next().unwrap_or_default();
    match statement.kind() {
        "raise_statement" => name == "SkipTest",
        "expression_statement" => {
            inner.kind() == "call" && matches!(name, "skip" | "skipTest" | "xfail")
        }
        _ => false,
    }
}

fn is_idle_statement(statement: Node<'_>, text: &[u8]) -> bool {
    let idle = |_: Node<'_>, name: &str| {
        name.starts_with("assert") || matches!(name, "self" | "print" | "_")
    };
    is_idle(statement, text, idle)
}

fn is_assertion(name: &str) -> bool {
    name.contains("assert") || name == "raises"
}
