//! Finds tests in Rust: functions with a test attribute, also inside of macro invocations.

use super::body::{Body, first_effective, is_inert};
use super::parse::{children, is_comment, line_number, node_bytes, node_text, walk};
use super::scope::{FoundTest, ScopeId, Skip, TestCollector};
use super::source::{Source, Switch};
use super::tokens;
use tree_sitter::Node;

/// Collects the tests of a file.
pub(super) fn find(root: Node<'_>, source: &Source<'_>, found: &mut TestCollector) {
    let text = source.text;
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
                    if inner.skipped.is_some() {
                        found.skip(scope, inner.skipped);
                        if scope == ScopeId::FILE {
                            let what = "the file is never built".to_owned();
                            found.switches([Switch::new(child, what)]);
                        }
                    }
                    for _ in 0..inner.conditions {
                        found.condition(scope);
                    }
                }
                "function_item" if attributes.test => {
                    function(child, source, &attributes, scope, found);
                }
                "mod_item" => {
                    let name = child
                        .child_by_field_name("name")
                        .map(|name| node_text(name, text))
                        .unwrap_or_default();
                    if let Some(body) = child.child_by_field_name("body") {
                        open.push((body, module(found, scope, name, &attributes)));
                    } else if !attributes.skipped.is_some() && !found.is_skipped(scope) {
                        found.module(scope, name, line_number(child), attributes.path);
                    }
                }
                "macro_invocation" => invocation(child, text, scope, &attributes, found),
                "expression_statement" => {
                    if let Some(inner) =
                        child.named_child(0).filter(|inner| inner.kind() == "macro_invocation")
                    {
                        invocation(inner, text, scope, &attributes, found);
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
    found.skip(scope, attributes.skipped);
    for _ in 0..attributes.conditions {
        found.condition(scope);
    }
    scope
}

fn function(
    node: Node<'_>,
    source: &Source<'_>,
    attributes: &Attributes,
    scope: ScopeId,
    found: &mut TestCollector,
) {
    let text = source.text;
    let name =
        node.child_by_field_name("name").map(|name| node_text(name, text)).unwrap_or_default();
    let block = node.child_by_field_name("body");
    let statements = block.map(children).unwrap_or_default().into_iter().filter(Node::is_named);
    let inert = |statement: Node<'_>| {
        matches!(statement.kind(), "use_declaration" | "attribute_item")
            || is_inert(statement, text, is_inert_name)
    };
    let checks = block.map(|block| source.checks(block)).unwrap_or_default();
    let mut test = FoundTest {
        name: name.to_owned(),
        line: line_number(node),
        skipped: attributes.skipped.max(checks.skips),
        inert: first_effective(statements, inert).is_none(),
        only: false,
        body: block
            .map(|block| Body::from_node(block, text, is_assertion))
            .unwrap_or_default()
            .with_cases(attributes.case_count())
            .with_checks(checks),
    };
    test.body.expects_failure = attributes.should_panic;
    test.body.add_conditions(attributes.conditions);
    found.add(scope, test);
}

/// Finds tests in the tokens of a macro invocation, which the grammar does not parse as items.
fn invocation(
    node: Node<'_>,
    text: &[u8],
    scope: ScopeId,
    attributes: &Attributes,
    found: &mut TestCollector,
) {
    let path =
        node.child_by_field_name("macro").map(|path| node_text(path, text)).unwrap_or_default();
    let name = path.rsplit("::").next().unwrap_or(path).trim();
    let Some(tokens) = children(node).into_iter().find(|child| child.kind() == "token_tree") else {
        return;
    };
    if name == "include" && !attributes.skipped.is_some() {
        let path = node_text(tokens, text).split('"').nth(1).map(str::to_owned);
        found.module(scope, "", line_number(node), path);
    }
    let before = found.count();
    scan(tokens, text, name == "quickcheck", scope, found);
    if found.count() == before && is_test_word(name) {
        // The macro itself defines a test.
        let test = FoundTest {
            name: format!("{name}!({})", first_word(tokens, text)),
            line: line_number(node),
            skipped: Skip::No,
            inert: false,
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
                ";" => {
                    if let Item::Module(name) = item
                        && !attributes.skipped.is_some()
                    {
                        found.module(scope, name, line_number(token), attributes.path);
                    }
                    (attributes, item) = (Attributes::default(), Item::None);
                }
                "token_tree" if opens == b'{' => {
                    match item {
                        Item::Function(at, Some(name)) if attributes.test || every => {
                            let test = FoundTest {
                                name: name.to_owned(),
                                line: line_number(at),
                                skipped: attributes.skipped,
                                inert: is_inert(token, text, is_inert_name),
                                only: false,
                                body: Body::from_node(token, text, is_assertion)
                                    .with_cases(attributes.case_count())
                                    .with_checks(tokens::checks(token, text)),
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
    skipped: Skip,
    /// The number of conditions of which it is not known whether they hold.
    conditions: u32,
    should_panic: bool,
    cases: usize,
    /// The file of a module.
    path: Option<String>,
}

impl Attributes {
    /// Reads `#[…]`, `#![…]` or `[…]`.
    fn read(&mut self, attribute: &[u8]) {
        let attribute = String::from_utf8_lossy(attribute);
        let inner = attribute.trim_start_matches(['#', '!', '[', ' ']).trim_end_matches(']');
        let (name, arguments) = split(inner);
        match name {
            "ignore" => self.skipped = Skip::Always,
            "should_panic" => self.should_panic = true,
            "cfg" => match holds(arguments, MAX_DEPTH) {
                Some(Holds::Never) => self.skipped = Skip::Always,
                Some(Holds::Here | Holds::NotHere) => {}
                None => self.conditions += 1,
            },
            "cfg_attr" => {
                let parts = parts(arguments);
                let condition = parts.first().and_then(|first| holds(first, MAX_DEPTH));
                let may_hold = !matches!(condition, Some(Holds::Never | Holds::NotHere));
                for part in parts.iter().skip(1) {
                    let (name, rest) = split(part);
                    let is_off = name == "ignore"
                        || name == "cfg" && holds(rest, MAX_DEPTH) == Some(Holds::Never);
                    if is_off && may_hold {
                        let is_constant = parts.first().is_some_and(|first| is_always(first));
                        self.skipped = self.skipped.max(Skip::under(!is_constant));
                    }
                    self.should_panic |= name == "should_panic" && may_hold;
                    self.test |= is_test_word(name);
                }
            }
            "path" => self.path = inner.split('"').nth(1).map(str::to_owned),
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

/// The maximum depth of a condition.
const MAX_DEPTH: usize = 16;

/// What is known of the condition of a `cfg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// It is true here.
    Here,
    /// It is true elsewhere: on another platform, under another tool.
    NotHere,
    /// It is true nowhere: `any()`, `false`.
    Never,
}

/// What is known of a condition; nothing if it depends on features or flags.
fn holds(condition: &str, depth: usize) -> Option<Holds> {
    let depth = depth.checked_sub(1)?;
    let condition = condition.trim();
    let (name, arguments) = split(condition);
    let is_list = condition.ends_with(')');
    let each = || parts(arguments).into_iter().filter(|part| !part.is_empty());
    let platform = |is: bool| Some(if is { Holds::Here } else { Holds::NotHere });
    match name {
        "true" | "test" | "debug_assertions" if !is_list => Some(Holds::Here),
        "false" => Some(Holds::Never),
        "any" => {
            let all: Vec<_> = each().map(|part| holds(part, depth)).collect();
            match () {
                () if all.contains(&Some(Holds::Here)) => Some(Holds::Here),
                () if all.contains(&None) => None,
                () if all.contains(&Some(Holds::NotHere)) => Some(Holds::NotHere),
                () => Some(Holds::Never),
            }
        }
        "all" => {
            let all: Vec<_> = each().map(|part| holds(part, depth)).collect();
            match () {
                () if all.contains(&Some(Holds::Never)) => Some(Holds::Never),
                () if all.contains(&Some(Holds::NotHere)) => Some(Holds::NotHere),
                () if all.contains(&None) => None,
                () => Some(Holds::Here),
            }
        }
        "not" => match holds(arguments, depth) {
            // What is always true has no tool or platform in it.
            Some(Holds::Here) if is_always(arguments) => Some(Holds::Never),
            Some(Holds::Here) => Some(Holds::NotHere),
            Some(Holds::NotHere | Holds::Never) => Some(Holds::Here),
            None => None,
        },
        "unix" => platform(cfg!(unix)),
        "windows" => platform(cfg!(windows)),
        "miri" | "loom" | "kani" | "coverage" | "coverage_nightly" | "tarpaulin" | "fuzzing"
        | "doc" | "docsrs" => Some(Holds::NotHere),
        "target_os" | "target_arch" | "target_family" => {
            let value = condition.split('=').nth(1)?.trim().trim_matches('"');
            platform(
                value == std::env::consts::OS
                    || value == std::env::consts::ARCH
                    || value == std::env::consts::FAMILY,
            )
        }
        _ => None,
    }
}

fn is_always(condition: &str) -> bool {
    let plain: String = condition.chars().filter(|c| !c.is_whitespace()).collect();
    matches!(plain.as_str(), "all()" | "true" | "test" | "not(any())" | "not(false)")
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
