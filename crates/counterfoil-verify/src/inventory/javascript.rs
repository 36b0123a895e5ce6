//! Finds tests in JavaScript and TypeScript: calls of `it`, `test` and `describe` in the forms of
//! the common runners.

use super::body::{Body, first_effective, is_inert};
use super::parse::{children, line_number, node_bytes, node_text};
use super::scope::{FoundTest, ScopeId, TestCollector};
use tree_sitter::Node;

/// The maximum length of a chain such as `a.b(c).d` that names a call.
const MAX_CHAIN: usize = 8;

/// Collects the tests of a file.
pub(super) fn find(root: Node<'_>, text: &[u8], found: &mut TestCollector) {
    let mut open = vec![(root, ScopeId::FILE)];
    while let Some((node, scope)) = open.pop() {
        let mut inner = scope;
        if node.kind() == "call_expression"
            && let Some(call) = Call::read(node, text)
        {
            match call.kind {
                Kind::Test => {
                    found.add(scope, call.test(text));
                    continue;
                }
                Kind::Suite => {
                    inner = found.enter(scope, &call.title, " > ");
                    if call.skipped {
                        found.skip(inner);
                    }
                    if call.only {
                        found.only(inner);
                    }
                }
            }
        }
        // Reversed, so that the first child is visited first.
        open.extend(
            children(node).into_iter().rev().filter(Node::is_named).map(|child| (child, inner)),
        );
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Test,
    Suite,
}

/// A call that defines a test or a suite.
struct Call<'t> {
    kind: Kind,
    node: Node<'t>,
    title: String,
    skipped: bool,
    only: bool,
    /// The function with the body of the test.
    callback: Option<Node<'t>>,
    cases: Option<usize>,
}

impl<'t> Call<'t> {
    fn read(node: Node<'t>, text: &[u8]) -> Option<Self> {
        let (base, chain, table) = chain(node.child_by_field_name("function")?, text)?;
        let (mut kind, mut skipped, mut only) = match base {
            "it" | "test" | "specify" => (Kind::Test, false, false),
            "describe" | "context" | "suite" => (Kind::Suite, false, false),
            "xit" | "xtest" | "xspecify" => (Kind::Test, true, false),
            "xdescribe" | "xcontext" | "xsuite" => (Kind::Suite, true, false),
            "fit" => (Kind::Test, false, true),
            "fdescribe" => (Kind::Suite, false, true),
            // `Deno.test`, `QUnit.test`, `QUnit.module`.
            "Deno" | "QUnit"
                if matches!(chain.first(), Some(&"test" | &"skip" | &"todo" | &"only")) =>
            {
                (Kind::Test, false, false)
            }
            "QUnit" if chain.first() == Some(&"module") => (Kind::Suite, false, false),
            _ => return None,
        };
        let mut is_todo = false;
        for name in chain {
            match name {
                "skip" | "skipIf" | "runIf" | "fixme" | "failing" | "fails" | "fail" | "ignore"
                | "if" => {
                    skipped = true;
                }
                "todo" => (skipped, is_todo) = (true, true),
                "only" => only = true,
                "describe" | "module" => kind = Kind::Suite,
                "each" | "for" | "concurrent" | "sequential" | "serial" | "parallel"
                | "shuffle" | "test" => {}
                _ => return None,
            }
        }
        let arguments: Vec<Node<'t>> = {
            let list =
                node.child_by_field_name("arguments").filter(|list| list.kind() == "arguments")?;
            children(list)
                .into_iter()
                .filter(|child| child.is_named() && child.kind() != "comment")
                .collect()
        };
        let first = *arguments.first()?;
        let mut callback = arguments.iter().copied().rev().find(|node| is_function(*node));
        let titled = matches!(first.kind(), "string" | "template_string");
        let mut title = title(first, text);
        if first.kind() == "object" {
            // `Deno.test({ name: …, fn() {} })`.
            title = property(first, "name", text)
                .map(|name| self::title(name, text))
                .unwrap_or_default();
            callback = property(first, "fn", text).filter(|node| is_function(*node));
        }
        for options in arguments.iter().filter(|node| node.kind() == "object") {
            let set = |name| {
                property(*options, name, text)
                    .is_some_and(|value| node_bytes(value, text) != b"false")
            };
            skipped |= set("skip") || set("ignore") || set("todo");
            only |= set("only");
        }
        let real = match kind {
            Kind::Suite => callback.is_some(),
            // The second argument may be the name of a function or a call that returns one. A title
            // alone is a test that is not written yet.
            Kind::Test if titled => {
                arguments.len() > 1 || is_todo || matches!(base, "it" | "xit" | "specify")
            }
            Kind::Test => callback.is_some(),
        };
        if !real {
            return None;
        }
        skipped |= kind == Kind::Test && titled && arguments.len() == 1;
        Some(Self { kind, node, title, skipped, only, callback, cases: table.and_then(rows) })
    }

    fn test(self, text: &[u8]) -> FoundTest {
        let block = self.callback.and_then(|callback| callback.child_by_field_name("body"));
        let statements: Vec<Node<'_>> = match block {
            Some(block) if block.kind() == "statement_block" => {
                children(block).into_iter().filter(Node::is_named).collect()
            }
            Some(expression) => vec![expression],
            None => Vec::new(),
        };
        let first =
            first_effective(statements, |statement| is_inert(statement, text, is_inert_name));
        let body =
            block.or_else(|| self.node.child_by_field_name("arguments")).unwrap_or(self.node);
        FoundTest {
            line: line_number(self.node),
            skipped: self.skipped || first.is_some_and(|first| is_skip(first, text)),
            empty: block.is_some() && first.is_none(),
            only: self.only,
            body: Body::from_node(body, text, is_assertion).with_cases(self.cases),
            name: self.title,
        }
    }
}

/// A chain of names: its base, the names after it, and the arguments of `each`.
type Chain<'t, 's> = (&'s str, Vec<&'s str>, Option<Node<'t>>);

/// The callee: `it.skip` is `it` with `skip`, `it.each(table)` is `it` with `each` and the table.
fn chain<'t, 's>(mut node: Node<'t>, text: &'s [u8]) -> Option<Chain<'t, 's>> {
    let (mut names, mut table) = (Vec::new(), None);
    for _ in 0..MAX_CHAIN {
        match node.kind() {
            "identifier" => {
                names.reverse();
                return Some((node_text(node, text), names, table));
            }
            "member_expression" => {
                names.push(node_text(node.child_by_field_name("property")?, text));
                node = node.child_by_field_name("object")?;
            }
            // Only where the returned function is called.
            "call_expression" if names.is_empty() => {
                table = node.child_by_field_name("arguments");
                node = node.child_by_field_name("function")?;
                let last = node.child_by_field_name("property").map(|name| node_text(name, text));
                if !matches!(last, Some("each" | "for" | "skipIf" | "runIf" | "if")) {
                    return None;
                }
            }
            _ => return None,
        }
    }
    None
}

fn is_function(node: Node<'_>) -> bool {
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
fn property<'t>(object: Node<'t>, name: &str, text: &[u8]) -> Option<Node<'t>> {
    children(object).into_iter().find_map(|entry| match entry.kind() {
        "pair"
            if entry.child_by_field_name("key").is_some_and(|key| node_text(key, text) == name) =>
        {
            entry.child_by_field_name("value")
        }
        "method_definition"
            if entry
                .child_by_field_name("name")
                .is_some_and(|key| node_text(key, text) == name) =>
        {
            Some(entry)
        }
        _ => None,
    })
}

/// A title as it is written, without quotes.
fn title(node: Node<'_>, text: &[u8]) -> String {
    let raw = node_bytes(node, text);
    let raw = String::from_utf8_lossy(&raw[..raw.len().min(400)]);
    let plain = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    let quote = |c| matches!(c, '"' | '\'' | '`');
    let inner = plain.strip_prefix(quote).map(|rest| rest.strip_suffix(quote).unwrap_or(rest));
    match inner {
        Some(inner) if matches!(node.kind(), "string" | "template_string") => inner.to_owned(),
        _ => plain,
    }
}

/// The number of rows in a table, where it is an array literal.
fn rows(arguments: Node<'_>) -> Option<usize> {
    let list = arguments.named_child(0).filter(|list| list.kind() == "array")?;
    let rows: Vec<_> = children(list)
        .into_iter()
        .filter(|node| node.is_named() && node.kind() != "comment")
        .collect();
    (!rows.iter().any(|row| row.kind() == "spread_element")).then_some(rows.len())
}

/// Whether a statement is `this.skip()`, `t.skip()`, `test.skip()` or `pending()`. A skip with a
/// condition does not count.
fn is_skip(statement: Node<'_>, text: &[u8]) -> bool {
    let call = statement
        .named_child(0)
        .filter(|_| statement.kind() == "expression_statement")
        .unwrap_or(statement);
    if call.kind() != "call_expression" {
        return false;
    }
    let Some(callee) = call.child_by_field_name("function") else { return false };
    let name = callee.child_by_field_name("property").unwrap_or(callee);
    if callee.kind() == "identifier" {
        return node_text(name, text) == "pending";
    }
    let condition = call.child_by_field_name("arguments").and_then(|list| list.named_child(0));
    let always =
        condition.is_none_or(|first| matches!(first.kind(), "string" | "template_string" | "true"));
    matches!(node_text(name, text), "skip" | "fixme") && always
}

fn is_inert_name(node: Node<'_>, name: &str) -> bool {
    node.kind() == "property_identifier"
        || matches!(name, "expect" | "assert" | "done" | "console" | "t" | "undefined")
}

fn is_assertion(name: &str) -> bool {
    matches!(name, "expect" | "should") || name.to_ascii_lowercase().contains("assert")
}
