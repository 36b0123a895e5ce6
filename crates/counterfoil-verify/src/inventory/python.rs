//! Finds tests in Python: what pytest and unittest would collect.

use super::body::{Body, first_effective, is_inert};
use super::parse::{children, line_number, node_bytes, node_text, walk};
use super::scope::{FoundTest, ScopeId, TestCollector};
use memchr::memmem;
use tree_sitter::Node;

/// Collects the tests of a file.
pub(super) fn find(root: Node<'_>, text: &[u8], found: &mut TestCollector) {
    let mut open = vec![Container { node: root, scope: ScopeId::FILE, collects: true }];
    while let Some(container) = open.pop() {
        for child in children(container.node) {
            let container = Container { node: child, ..container };
            match child.kind() {
                "decorated_definition" => {
                    let decorators =
                        children(child).into_iter().filter(|child| child.kind() == "decorator");
                    let decorators = Decorators::read(decorators, text);
                    if let Some(node) = child.child_by_field_name("definition") {
                        definition(
                            Container { node, ..container },
                            text,
                            &decorators,
                            found,
                            &mut open,
                        );
                    }
                }
                "function_definition" | "class_definition" => {
                    definition(container, text, &Decorators::default(), found, &mut open);
                }
                "expression_statement" if skips_scope(child, text) => found.skip(container.scope),
                "expression_statement" => {}
                // Definitions may be nested in conditions.
                kind if kind.ends_with("_statement") || kind.ends_with("_clause") => {
                    open.push(container);
                }
                "block" | "ERROR" => open.push(container),
                _ => {}
            }
        }
    }
}

/// A node that contains definitions.
#[derive(Clone, Copy)]
struct Container<'t> {
    node: Node<'t>,
    scope: ScopeId,
    /// Whether functions in it can be tests.
    collects: bool,
}

fn definition<'t>(
    container: Container<'t>,
    text: &[u8],
    decorators: &Decorators,
    found: &mut TestCollector,
    open: &mut Vec<Container<'t>>,
) {
    let node = container.node;
    let name =
        node.child_by_field_name("name").map(|name| node_text(name, text)).unwrap_or_default();
    let body = node.child_by_field_name("body");
    if node.kind() == "class_definition" {
        let scope = found.enter(container.scope, name, ".");
        if decorators.skipped {
            found.skip(scope);
        }
        let bases = node
            .child_by_field_name("superclasses")
            .map(|list| node_bytes(list, text))
            .unwrap_or_default();
        let collects = name.starts_with("Test")
            || ["Test", "Tests", "TestCase"].iter().any(|ending| name.ends_with(ending))
            || memmem::find(bases, b"Test").is_some();
        open.extend(body.map(|node| Container { node, scope, collects }));
        return;
    }
    if !container.collects || !name.starts_with("test") || decorators.fixture {
        return;
    }
    let statements = body.map(children).unwrap_or_default().into_iter().filter(Node::is_named);
    let first = first_effective(statements, |statement| is_inert_statement(statement, text));
    found.add(
        container.scope,
        FoundTest {
            name: name.to_owned(),
            line: line_number(node),
            skipped: decorators.skipped || first.is_some_and(|first| is_skip(first, text)),
            empty: first.is_none(),
            only: false,
            body: body
                .map(|body| Body::from_node(body, text, is_assertion))
                .unwrap_or_default()
                .with_cases(decorators.cases),
        },
    );
}

/// What the decorators of a definition say about it.
#[derive(Default)]
struct Decorators {
    skipped: bool,
    fixture: bool,
    cases: Option<usize>,
}

impl Decorators {
    fn read<'t>(nodes: impl Iterator<Item = Node<'t>>, text: &[u8]) -> Self {
        let mut decorators = Self::default();
        for decorator in nodes {
            let Some(expression) = decorator.named_child(0) else { continue };
            let callee = expression.child_by_field_name("function").unwrap_or(expression);
            let name = node_text(callee, text).rsplit('.').next().unwrap_or_default().trim();
            decorators.skipped |= is_skip_mark(name);
            decorators.fixture |= name == "fixture";
            if name == "parametrize" {
                decorators.cases =
                    rows(expression).map(|rows| rows * decorators.cases.unwrap_or(1));
            }
        }
        decorators
    }
}

/// The number of rows of a parametrized test, where they are a list or tuple literal.
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

/// Whether a statement of a module or a class skips everything in it.
fn skips_scope(statement: Node<'_>, text: &[u8]) -> bool {
    let Some(inner) = statement.named_child(0) else { return false };
    if inner.kind() == "call" {
        let callee = inner
            .child_by_field_name("function")
            .map(|callee| node_bytes(callee, text))
            .unwrap_or_default();
        return callee == b"pytest.skip" || callee == b"pytest.xfail";
    }
    if inner.kind() != "assignment" {
        return false;
    }
    let left =
        inner.child_by_field_name("left").map(|left| node_bytes(left, text)).unwrap_or_default();
    let Some(right) = inner.child_by_field_name("right") else { return false };
    match left {
        b"pytestmark" => has_skip_mark(right, text),
        b"__test__" => node_bytes(right, text) == b"False",
        _ => false,
    }
}

fn has_skip_mark(node: Node<'_>, text: &[u8]) -> bool {
    let mut skip = false;
    walk(node, |node| {
        skip = skip || (node.kind() == "identifier" && is_skip_mark(node_text(node, text)));
        !skip
    });
    skip
}

/// Whether a statement is `pytest.skip(…)`, `self.skipTest(…)` or `raise SkipTest(…)`.
fn is_skip(statement: Node<'_>, text: &[u8]) -> bool {
    let Some(inner) = statement.named_child(0) else { return false };
    let callee = inner.child_by_field_name("function").unwrap_or(inner);
    let name = node_text(callee, text).rsplit('.').next().unwrap_or_default();
    match statement.kind() {
        "raise_statement" => name == "SkipTest",
        "expression_statement" => {
            inner.kind() == "call" && matches!(name, "skip" | "skipTest" | "xfail")
        }
        _ => false,
    }
}

fn is_inert_statement(statement: Node<'_>, text: &[u8]) -> bool {
    let inert = |_: Node<'_>, name: &str| {
        name.starts_with("assert") || matches!(name, "self" | "print" | "_")
    };
    is_inert(statement, text, inert)
}

fn is_assertion(name: &str) -> bool {
    name.contains("assert") || name == "raises"
}
