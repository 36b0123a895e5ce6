//! Tests in Rust: functions that an attribute makes tests of, also where a macro is around them.

use super::body::{Body, first_doing, is_idle};
use super::parse::{bytes, children, is_comment, line_of, walk, word};
use super::scope::{Findings, Found, ScopeId};
use tree_sitter::Node;

/// Finds the tests of a file.
pub(super) fn find(root: Node<'_>, text: &[u8], found: &mut Findings) {
    let mut open = vec![(root, ScopeId::FILE)];
    while let Some((node, scope)) = open.pop() {
        let mut marks = Marks::default();
        for child in children(node) {
            match child.kind() {
                "attribute_item" => {
                    marks.read(bytes(child, text));
                    continue;
                }
                "inner_attribute_item" => {
                    let mut inner = Marks::default();
                    inner.read(bytes(child, text));
                    if inner.skipped {
                        found.skip(scope);
                    }
                }
                "function_item" if marks.test => function(child, text, &marks, scope, found),
                "mod_item" => {
                    let name = child
                        .child_by_field_name("name")
                        .map(|name| word(name, text))
                        .unwrap_or_default();
                    if let Some(body) = child.child_by_field_name("body") {
                        open.push((body, module(found, scope, name, &marks)));
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
            marks = Marks::default();
        }
    }
}

fn module(found: &mut Findings, outer: ScopeId, name: &str, marks: &Marks) -> ScopeId {
    let scope = found.enter(outer, name, "::");
    if marks.skipped {
        found.skip(scope);
    }
    scope
}

fn function(node: Node<'_>, text: &[u8], marks: &Marks, scope: ScopeId, found: &mut Findings) {
    let name = node.child_by_field_name("name").map(|name| word(name, text)).unwrap_or_default();
    let block = node.child_by_field_name("body");
    let statements = block.map(children).unwrap_or_default().into_iter().filter(Node::is_named);
    let idle = |statement: Node<'_>| {
        matches!(statement.kind(), "use_declaration" | "attribute_item")
            || is_idle(statement, text, is_idle_name)
    };
    let test = Found {
        name: name.to_owned(),
        line: line_of(node),
        skipped: marks.skipped,
        empty: first_doing(statements, idle).is_none(),
        only: false,
        body: block
            .map(|block| Body::of(block, text, is_assertion))
            .unwrap_or_default()
            .with_cases(marks.listed()),
    };
    found.add(scope, test);
}

/// What a macro is given is no tree of items, but tests can be seen in its tokens.
fn invocation(node: Node<'_>, text: &[u8], scope: ScopeId, found: &mut Findings) {
    let path = node.child_by_field_name("macro").map(|path| word(path, text)).unwrap_or_default();
    let name = path.rsplit("::").next().unwrap_or(path).trim();
    let Some(tokens) = children(node).into_iter().find(|child| child.kind() == "token_tree") else {
        return;
    };
    let before = found.count();
    scan(tokens, text, name == "quickcheck", scope, found);
    if found.count() == before && is_test_word(name) {
        // A macro that makes a test of what it is given.
        let test = Found {
            name: format!("{name}!({})", first_word(tokens, text)),
            line: line_of(node),
            skipped: false,
            empty: false,
            only: false,
            body: Body::of(tokens, text, is_assertion),
        };
        found.add(scope, test);
    }
}

/// Finds `#[test] fn name(…) {…}` and `mod name {…}` in tokens, whatever stands around and between.
fn scan(tokens: Node<'_>, text: &[u8], every: bool, scope: ScopeId, found: &mut Findings) {
    let mut open = vec![(tokens, scope)];
    while let Some((node, scope)) = open.pop() {
        let mut marks = Marks::default();
        let (mut hash, mut item) = (false, Item::None);
        for token in children(node) {
            // Only its first byte: the text of what nests would be read once for each level.
            let opens = text.get(token.start_byte()).copied().unwrap_or_default();
            match token.kind() {
                _ if is_comment(token) => {}
                "#" => hash = true,
                "!" if hash => {}
                "token_tree" if hash && opens == b'[' => {
                    marks.read(bytes(token, text));
                    hash = false;
                }
                "fn" => item = Item::Function(token, None),
                "mod" => item = Item::Module(""),
                "identifier" => match &mut item {
                    Item::Function(_, name @ None) => *name = Some(word(token, text)),
                    Item::Module(name) if name.is_empty() => *name = word(token, text),
                    _ => {}
                },
                ";" => (marks, item) = (Marks::default(), Item::None),
                "token_tree" if opens == b'{' => {
                    match item {
                        Item::Function(at, Some(name)) if marks.test || every => {
                            let test = Found {
                                name: name.to_owned(),
                                line: line_of(at),
                                skipped: marks.skipped,
                                empty: is_idle(token, text, is_idle_name),
                                only: false,
                                body: Body::of(token, text, is_assertion)
                                    .with_cases(marks.listed()),
                            };
                            found.add(scope, test);
                        }
                        Item::Function(..) => {}
                        Item::Module(name) => {
                            let inner = module(found, scope, name, &marks);
                            open.push((token, inner));
                        }
                        Item::None => open.push((token, scope)),
                    }
                    (marks, item) = (Marks::default(), Item::None);
                }
                "token_tree" if matches!(item, Item::None) => open.push((token, scope)),
                _ => {}
            }
        }
    }
}

/// What stands between its keyword and its braces.
enum Item<'t> {
    None,
    Function(Node<'t>, Option<&'t str>),
    Module(&'t str),
}

fn first_word(tokens: Node<'_>, text: &[u8]) -> String {
    let mut first = None;
    walk(tokens, |node| {
        let said = if node.child_count() == 0 { word(node, text) } else { "" };
        if first.is_none() && said.contains(char::is_alphanumeric) && !is_comment(node) {
            first = Some(said.to_owned());
        }
        first.is_none() && !is_comment(node)
    });
    first.unwrap_or_default()
}

/// What attributes say about what stands behind them.
#[derive(Default)]
struct Marks {
    test: bool,
    skipped: bool,
    cases: usize,
}

impl Marks {
    /// Reads `#[…]`, `#![…]` or `[…]`.
    fn read(&mut self, attribute: &[u8]) {
        let said = String::from_utf8_lossy(attribute);
        let inner = said.trim_start_matches(['#', '!', '[', ' ']).trim_end_matches(']');
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

    fn listed(&self) -> Option<usize> {
        (self.cases > 0).then_some(self.cases)
    }
}

/// The last part of an attribute's path, and what stands in its brackets.
fn split(attribute: &str) -> (&str, &str) {
    let end = attribute.find(['(', '[', '{', '=']).unwrap_or(attribute.len());
    let (path, rest) = attribute.split_at(end);
    let name = path.rsplit("::").next().unwrap_or(path).trim();
    let rest =
        rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
    (name, rest)
}

/// What stands between commas that are in no brackets.
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

/// Whether a condition cannot hold: `any()`, `false`, `not(all())`, or one of these among others
/// that must all hold.
fn is_never(condition: &str) -> bool {
    let plain: String = condition.chars().filter(|c| !c.is_whitespace()).collect();
    let never = |part: &str| matches!(part, "any()" | "false" | "not(all())" | "not(true)");
    let all = plain.strip_prefix("all(").and_then(|rest| rest.strip_suffix(')'));
    never(&plain) || all.is_some_and(|list| parts(list).into_iter().any(never))
}

/// Whether an attribute or a macro of this name makes tests: `test`, `test_case`,
/// `wasm_bindgen_test`, `rstest`.
fn is_test_word(name: &str) -> bool {
    matches!(name, "rstest" | "proptest" | "gtest" | "googletest" | "quickcheck")
        || name.split('_').any(|part| matches!(part, "test" | "tests"))
}

fn is_idle_name(_: Node<'_>, name: &str) -> bool {
    let name = name.trim_start_matches("debug_").trim_start_matches("prop_");
    name.starts_with("assert")
        || matches!(name, "Ok" | "println" | "eprintln" | "print" | "eprint" | "_")
}

fn is_assertion(name: &str) -> bool {
    name.contains("assert")
}
