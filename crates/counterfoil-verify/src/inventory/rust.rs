//! Finds tests in Rust: functions with a test attribute, also inside of macro invocations.

use super::body::{Body, first_effective, is_inert};
use super::parse::{children, is_comment, line_number, node_bytes, node_text, walk};
use super::scope::{FoundTest, ScopeId, TestCollector};
use tree_sitter::Node;

/// Collects the tests of a file.
pub(super) fn find(root: Node<'_>, text: &[u8], found: &mut TestCollector) {
    let mut open = vec![(root, ScopeId::FILE)];
    while let Some((node, scope)) = open.pop() {
        let mut attributes = Attributes::default();
        for child in children(node) {
            match child.kind() {
                "attribute_item" => {
                    attributes.read(node_bytes(child, text));
                    continue;
                }
                "inner_attribute_item" => {
                    let mut inner = Attributes::default();
                    inner.read(node_bytes(child, text));
                    if inner.skipped {
                        found.skip(scope);
                    }
                }
                "function_item" if attributes.test => {
                    function(child, text, &attributes, scope, found);
                }
                "mod_item" => {
                    let name = child
                        .child_by_field_name("name")
                        .map(|name| node_text(name, text))
                        .unwrap_or_default();
                    if let Some(body) = child.child_by_field_name("body") {
                        open.push((body, module(found, scope, name, &attributes)));
                    }
                }
                "macro_invocation" => invocation(child, text, scope, found),
                "expression_statement" => {
                    if let Some(inner) =
                        child.named_child(0).filter(|inner| inner.kind() == "macro_invocation")
                    {
                        invocation(inner, text, scope, found);
                    }
                }
                "ERROR" => open.push((child, scope)),
                _ if is_comment(child) => continue,
                _ => {}
            }
            attributes = Attributes::default();
        }
    }
}

fn module(
    found: &mut TestCollector,
    outer: ScopeId,
    name: &str,
    attributes: &Attributes,
) -> ScopeId {
    let scope = found.enter(outer, name, "::");
    if attributes.skipped {
        found.skip(scope);
    }
    scope
}

fn function(
    node: Node<'_>,
    text: &[u8],
    attributes: &Attributes,
    scope: ScopeId,
    found: &mut TestCollector,
) {
    let name =
        node.child_by_field_name("name").map(|name| node_text(name, text)).unwrap_or_default();
    let block = node.child_by_field_name("body");
    let statements = block.map(children).unwrap_or_default().into_iter().filter(Node::is_named);
    let inert = |statement: Node<'_>| {
        matches!(statement.kind(), "use_declaration" | "attribute_item")
            || is_inert(statement, text, is_inert_name)
    };
    let test = FoundTest {
        name: name.to_owned(),
        line: line_number(node),
        skipped: attributes.skipped,
        empty: first_effective(statements, inert).is_none(),
        only: false,
        body: block
            .map(|block| Body::from_node(block, text, is_assertion))
            .unwrap_or_default()
            .with_cases(attributes.case_count()),
    };
    found.add(scope, test);
}

/// Finds tests in the tokens of a macro invocation, which the grammar does not parse as items.
fn invocation(node: Node<'_>, text: &[u8], scope: ScopeId, found: &mut TestCollector) {
    let path =
        node.child_by_field_name("macro").map(|path| node_text(path, text)).unwrap_or_default();
    let name = path.rsplit("::").next().unwrap_or(path).trim();
    let Some(tokens) = children(node).into_iter().find(|child| child.kind() == "token_tree") else {
        return;
    };
    let before = found.count();
    scan(tokens, text, name == "quickcheck", scope, found);
    if found.count() == before && is_test_word(name) {
        // The macro itself defines a test.
        let test = FoundTest {
            name: format!("{name}!({})", first_word(tokens, text)),
            line: line_number(node),
            skipped: false,
            empty: false,
            only: false,
            body: Body::from_node(tokens, text, is_assertion),
        };
        found.add(scope, test);
    }
}

/// Finds `#[test] fn name(…) {…}` and `mod name {…}` in tokens at any depth.
fn scan(tokens: Node<'_>, text: &[u8], every: bool, scope: ScopeId, found: &mut TestCollector) {
    let mut open = vec![(tokens, scope)];
    while let Some((node, scope)) = open.pop() {
        let mut attributes = Attributes::default();
        let (mut hash, mut item) = (false, Item::None);
        for token in children(node) {
            // Only the first byte: reading the text of nested tokens at every level would be
            // quadratic.
            let opens = text.get(token.start_byte()).copied().unwrap_or_default();
            match token.kind() {
                _ if is_comment(token) => {}
                "#" => hash = true,
                "!" if hash => {}
                "token_tree" if hash && opens == b'[' => {
                    attributes.read(node_bytes(token, text));
                    hash = false;
                }
                "fn" => item = Item::Function(token, None),
                "mod" => item = Item::Module(""),
                "identifier" => match &mut item {
                    Item::Function(_, name @ None) => *name = Some(node_text(token, text)),
                    Item::Module(name) if name.is_empty() => *name = node_text(token, text),
                    _ => {}
                },
                ";" => (attributes, item) = (Attributes::default(), Item::None),
                "token_tree" if opens == b'{' => {
                    match item {
                        Item::Function(at, Some(name)) if attributes.test || every => {
                            let test = FoundTest {
                                name: name.to_owned(),
                                line: line_number(at),
                                skipped: attributes.skipped,
                                empty: is_inert(token, text, is_inert_name),
                                only: false,
                                body: Body::from_node(token, text, is_assertion)
                                    .with_cases(attributes.case_count()),
                            };
                            found.add(scope, test);
                        }
                        Item::Function(..) => {}
                        Item::Module(name) => {
                            let inner = module(found, scope, name, &attributes);
                            open.push((token, inner));
                        }
                        Item::None => open.push((token, scope)),
                    }
                    (attributes, item) = (Attributes::default(), Item::None);
                }
                "token_tree" if matches!(item, Item::None) => open.push((token, scope)),
                _ => {}
            }
        }
    }
}

/// An item whose keyword was read and whose block was not.
enum Item<'t> {
    None,
    Function(Node<'t>, Option<&'t str>),
    Module(&'t str),
}

fn first_word(tokens: Node<'_>, text: &[u8]) -> String {
    let mut first = None;
    walk(tokens, |node| {
        let token = if node.child_count() == 0 { node_text(node, text) } else { "" };
        if first.is_none() && token.contains(char::is_alphanumeric) && !is_comment(node) {
            first = Some(token.to_owned());
        }
        first.is_none() && !is_comment(node)
    });
    first.unwrap_or_default()
}

/// What the attributes of an item say about it.
#[derive(Default)]
struct Attributes {
    test: bool,
    skipped: bool,
    cases: usize,
}

impl Attributes {
    /// Reads `#[…]`, `#![…]` or `[…]`.
    fn read(&mut self, attribute: &[u8]) {
        let attribute = String::from_utf8_lossy(attribute);
        let inner = attribute.trim_start_matches(['#', '!', '[', ' ']).trim_end_matches(']');
        let (name, arguments) = split(inner);
        match name {
            "ignore" => self.skipped = true,
            "cfg" => self.skipped |= is_never(arguments),
            "cfg_attr" => {
                for part in parts(arguments).iter().skip(1) {
                    let (name, _) = split(part);
                    self.skipped |= name == "ignore";
                    self.test |= is_test_word(name);
                }
            }
            "case" => self.cases += 1,
            _ if is_test_word(name) => {
                self.test = true;
                self.cases += usize::from(name == "test_case");
            }
            _ => {}
        }
    }

    fn case_count(&self) -> Option<usize> {
        (self.cases > 0).then_some(self.cases)
    }
}

/// The last segment of an attribute's path, and its arguments.
fn split(attribute: &str) -> (&str, &str) {
    let end = attribute.find(['(', '[', '{', '=']).unwrap_or(attribute.len());
    let (path, rest) = attribute.split_at(end);
    let name = path.rsplit("::").next().unwrap_or(path).trim();
    let rest =
        rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
    (name, rest)
}

/// Splits a list at commas outside of brackets.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(list[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[from..].trim());
    parts
}

/// Whether a condition is never true: `any()`, `false`, `not(all())`, or an `all(…)` that contains
/// one of these.
fn is_never(condition: &str) -> bool {
    let plain: String = condition.chars().filter(|c| !c.is_whitespace()).collect();
    let never = |part: &str| matches!(part, "any()" | "false" | "not(all())" | "not(true)");
    let all = plain.strip_prefix("all(").and_then(|rest| rest.strip_suffix(')'));
    never(&plain) || all.is_some_and(|list| parts(list).into_iter().any(never))
}

/// Whether an attribute or macro of this name defines tests: `test`, `test_case`,
/// `wasm_bindgen_test`, `rstest`.
fn is_test_word(name: &str) -> bool {
    matches!(name, "rstest" | "proptest" | "gtest" | "googletest" | "quickcheck")
        || name.split('_').any(|part| matches!(part, "test" | "tests"))
}

fn is_inert_name(_: Node<'_>, name: &str) -> bool {
    let name = name.trim_start_matches("debug_").trim_start_matches("prop_");
    name.starts_with("assert")
        || matches!(name, "Ok" | "println" | "eprintln" | "print" | "eprint" | "_")
}

fn is_assertion(name: &str) -> bool {
    name.contains("assert")
}
