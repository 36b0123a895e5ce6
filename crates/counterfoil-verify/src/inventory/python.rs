//! Finds tests in Python: what pytest and unittest would collect, and what keeps them from it.

mod assignments;
mod bindings;
mod container;
mod decorators;
mod hooks;
mod marks;

use super::body::{Body, first_effective, is_inert};
use super::constant::Truth;
use super::parse::{arguments_of, children, line_number, node_bytes, walk};
use super::scope::{FoundTest, ScopeId, TestCollector};
use super::source::{Source, Switch};
use assignments::Value;
use bindings::{Binding, Bindings, Bound};
use container::Container;
use decorators::{Aliases, Decorators};
use memchr::memmem;
use tree_sitter::Node;

/// Methods and functions that run before each test of their container.
const SETUP: [&str; 10] = [
    "setUp",
    "setUpClass",
    "asyncSetUp",
    "setUpModule",
    "setup",
    "setup_method",
    "setup_class",
    "setup_module",
    "setup_function",
    "pytest_runtest_setup",
];

/// Collects the tests of a file.
pub(super) fn find(root: Node<'_>, source: &Source<'_>, found: &mut TestCollector) {
    let aliases = Aliases::read(root, source);
    let mut reader =
        Reader { source, found, aliases, bindings: Bindings::default(), open: Vec::new() };
    reader.open.push(Container {
        node: root,
        scope: ScopeId::FILE,
        collects: true,
        ..Container::at(root)
    });
    while let Some(container) = reader.open.pop() {
        for child in children(container.node) {
            reader.statement(Container { node: child, ..container });
        }
    }
    let Reader { bindings, found, .. } = reader;
    bindings.apply(found);
}

struct Reader<'a, 's, 't> {
    source: &'a Source<'s>,
    found: &'a mut TestCollector,
    aliases: Aliases<'s>,
    bindings: Bindings,
    open: Vec<Container<'t>>,
}

impl<'s, 't> Reader<'_, 's, 't> {
    fn statement(&mut self, at: Container<'t>) {
        let node = at.node;
        match node.kind() {
            "decorated_definition" => {
                let decorators =
                    children(node).into_iter().filter(|child| child.kind() == "decorator");
                let decorators = Decorators::read(decorators, self.source, &self.aliases);
                if let Some(node) = node.child_by_field_name("definition") {
                    self.definition(Container { node, ..at }, &decorators);
                }
            }
            "function_definition" | "class_definition" => {
                self.definition(at, &Decorators::default());
            }
            "expression_statement" => {
                if let Some(inner) = node.named_child(0) {
                    self.expression(Container { node: inner, ..at });
                }
            }
            "delete_statement" => {
                for target in children(node).into_iter().filter(Node::is_named) {
                    self.targets(at, target, None);
                }
            }
            "raise_statement" if self.raises_skip(node) => self.skip(at),
            "import_statement" | "import_from_statement" => self.imports(at),
            "if_statement" | "elif_clause" => {
                let truth = node
                    .child_by_field_name("condition")
                    .map_or(Truth::Unknown, |condition| self.source.truth(condition));
                for child in children(node).into_iter().filter(Node::is_named) {
                    let wanted = match child.kind() {
                        "block" => true,
                        "elif_clause" | "else_clause" => false,
                        _ => continue,
                    };
                    self.open.push(at.branch(child, truth, wanted));
                }
            }
            "while_statement" => {
                let truth = node
                    .child_by_field_name("condition")
                    .map_or(Truth::Unknown, |condition| self.source.truth(condition));
                self.open.push(at.branch(node, truth, true));
            }
            "for_statement" => {
                let field = |name| node.child_by_field_name(name);
                let value =
                    field("right").map(|value| Value::read(value, self.source, &self.aliases));
                if let Some(left) = field("left") {
                    self.targets(at, left, value.as_ref());
                }
                self.open.push(at);
            }
            "except_clause" => self.open.push(Container { conditions: at.conditions + 1, ..at }),
            // Definitions may be nested in conditions.
            kind if kind.ends_with("_statement") || kind.ends_with("_clause") => {
                self.open.push(at);
            }
            "block" | "ERROR" => self.open.push(at),
            _ => {}
        }
    }

    /// An expression that is a statement of a module or a class.
    fn expression(&mut self, at: Container<'t>) {
        let mut node = at.node;
        while node.kind() == "parenthesized_expression"
            && let Some(inner) = node.named_child(0)
        {
            node = inner;
        }
        let at = Container { node, ..at };
        self.marks_by_call(at);
        match node.kind() {
            "call" => self.call(at),
            "named_expression" => {
                let field = |name| node.child_by_field_name(name);
                let value =
                    field("value").map(|value| Value::read(value, self.source, &self.aliases));
                if let Some(name) = field("name") {
                    self.targets(at, name, value.as_ref());
                }
            }
            "assignment" | "augmented_assignment" => {
                // `a = b = None`: all get the last value.
                let (mut lefts, mut right) = (Vec::new(), Some(node));
                while let Some(inner) = right
                    && matches!(inner.kind(), "assignment" | "augmented_assignment")
                {
                    lefts.extend(inner.child_by_field_name("left"));
                    right = inner.child_by_field_name("right");
                }
                let value = right.map(|node| Value::read(node, self.source, &self.aliases));
                for left in lefts {
                    self.targets(at, left, value.as_ref());
                }
                // `np = pytest.importorskip("numpy")`.
                if let Some(node) = right.filter(|right| right.kind() == "call") {
                    self.call(Container { node, ..at });
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, at: Container<'t>) {
        let node = at.node;
        let callee = node
            .child_by_field_name("function")
            .map(|callee| self.source.node_text(callee))
            .unwrap_or_default();
        let arguments = arguments_of(node);
        let module = matches!(callee, "globals" | "vars" | "locals");
        match callee {
            "pytest.skip"
            | "pytest.xfail"
            | "pytest.exit"
            | "pytest.importorskip"
            | "importorskip"
            | "skip"
            | "sys.exit"
            | "os._exit"
            | "exit"
            | "quit" => self.skip(at),
            // Under another name of the module.
            _ if last(callee) == "skip"
                && arguments.iter().any(|argument| {
                    self.source.node_text(*argument).starts_with("allow_module_level")
                }) =>
            {
                self.skip(at);
            }
            "setattr" | "delattr" if arguments.len() > 1 => {
                let object = of_module(self.source.node_text(arguments[0]));
                let name = unquoted(self.source.node_text(arguments[1]));
                match name {
                    Some(name) => {
                        let owners = object.split('.').filter(|owner| !owner.is_empty());
                        let path: Vec<&str> = owners.chain([name]).collect();
                        let value = arguments
                            .get(2)
                            .map(|value| Value::read(*value, self.source, &self.aliases));
                        self.target(at, &path, value.as_ref());
                    }
                    None => self.computed(at),
                }
            }
            "exec" | "eval" => self.computed(at),
            _ if module && at.scope == ScopeId::FILE => {}
            _ if ["globals()", "vars()", "locals()"].iter().any(|of| callee.starts_with(of)) => {
                let name =
                    arguments.first().and_then(|first| unquoted(self.source.node_text(*first)));
                match (matches!(last(callee), "pop" | "__delitem__"), name) {
                    (true, Some(name)) => self.target(at, &[name], None),
                    _ => self.computed(at),
                }
            }
            _ if callee.rsplit('.').nth(1) == Some("pytestmark") => {
                let path: Vec<&str> = callee.split('.').map(str::trim).collect();
                let added = node.child_by_field_name("arguments");
                let added = added.map(|list| Value::read(list, self.source, &self.aliases));
                self.target(at, &path[..path.len() - 1], added.as_ref());
            }
            _ if callee.starts_with("collect_ignore") => {
                self.found.switches(hooks::ignored(at.node, self.source));
            }
            _ => {}
        }
    }

    fn definition(&mut self, at: Container<'t>, decorators: &Decorators) {
        let node = at.node;
        let name = node
            .child_by_field_name("name")
            .map(|name| self.source.node_text(name))
            .unwrap_or_default();
        let body = node.child_by_field_name("body");
        if node.kind() == "class_definition" {
            return self.class(at, name, body, decorators);
        }
        if let Some(body) = body {
            self.helper(at, name, body, decorators);
        }
        if !at.collects || !name.starts_with("test") || decorators.fixture {
            return;
        }
        let statements = body.map(children).unwrap_or_default().into_iter().filter(Node::is_named);
        let text = self.source.text;
        let first = first_effective(statements, |statement| is_inert_statement(statement, text));
        let mut checks = body.map(|body| self.source.checks(body)).unwrap_or_default();
        checks.conditional_skips = checks.conditional_skips.saturating_add(at.conditions);
        checks.escapes |= decorators.discards;
        let is_off = decorators.cases == Some(0)
            || body.is_some_and(|body| never_runs(node, body, self.source));
        let skipped = decorators.skipped.max(at.skip()).max(checks.skips).max(is_off.into());
        let calls = body.map(|body| called(body, self.source)).unwrap_or_default();
        let index = self.found.count();
        self.bindings.add(Binding {
            scope: at.scope,
            name: name.to_owned(),
            at: node.start_byte(),
            bound: Bound::Test(index),
            conditions: at.conditions,
        });
        let parameters = node.child_by_field_name("parameters");
        let used = parameters.map(|list| identifiers(list, self.source)).unwrap_or_default();
        self.bindings.uses(index, used.into_iter().chain(decorators.fixtures.iter().cloned()));
        self.found.add(
            at.scope,
            FoundTest {
                name: name.to_owned(),
                line: line_number(node),
                skipped,
                inert: first.is_none(),
                only: false,
                body: body
                    .map(|body| Body::from_node(body, text, is_assertion))
                    .unwrap_or_default()
                    .with_cases(decorators.cases)
                    .with_called(calls.into_iter())
                    .with_checks(checks),
            },
        );
    }

    fn class(
        &mut self,
        at: Container<'t>,
        name: &'s str,
        body: Option<Node<'t>>,
        decorators: &Decorators,
    ) {
        let node = at.node;
        let scope = self.found.enter(at.scope, name, ".");
        self.found.skip(scope, decorators.skipped.max(at.skip()));
        for _ in 0..at.conditions.min(1) {
            self.found.condition(scope);
        }
        let bases = node
            .child_by_field_name("superclasses")
            .map(|list| node_bytes(list, self.source.text))
            .unwrap_or_default();
        let has_bases = bases.len() > 2 && bases != b"(object)";
        let collects = name.starts_with("Test")
            || memmem::find(bases, b"Test").is_some()
            || (has_bases
                && ["Test", "Tests", "TestCase"].iter().any(|ending| name.ends_with(ending)));
        self.bindings.add(Binding {
            scope: at.scope,
            name: name.to_owned(),
            at: node.start_byte(),
            bound: Bound::Class(scope, has_bases),
            conditions: at.conditions,
        });
        self.open.extend(body.map(|node| Container {
            node,
            scope,
            collects,
            conditions: 0,
            ..Container::at(node)
        }));
    }

    /// A function that is not a test may still decide about tests.
    fn helper(&mut self, at: Container<'t>, name: &str, body: Node<'t>, decorators: &Decorators) {
        if at.dead {
            return;
        }
        let is_file = at.scope == ScopeId::FILE;
        if is_file && let Some(switch) = hooks::hook(at.node, name, body, self.source) {
            self.found.switches([switch]);
        }
        if decorators.fixture || SETUP.contains(&name) {
            let checks = self.source.checks(body);
            let skips = checks.skips.is_some() || checks.conditional_skips > 0;
            if skips && (decorators.autouse || SETUP.contains(&name)) {
                if checks.skips.is_some() {
                    self.found.skip(at.scope, checks.skips);
                } else {
                    self.found.condition(at.scope);
                }
                if is_file {
                    let code = Body::from_node(body, self.source.text, |_| false).digest;
                    let what = format!("`{name}` skips tests");
                    self.found.switches([Switch::with_code(at.node, what, code)]);
                }
            } else if skips {
                self.bindings.skipping_fixture(name);
            }
        }
        if is_file {
            return;
        }
        let calls_super = || mentions(body, "super", self.source);
        match name {
            // pytest does not collect a class that has one.
            "__init__" | "__new__" => self.bindings.constructor(at.scope),
            "run" | "debug" | "__call__" if at.collects && !calls_super() => self.skip(at),
            "_callTestMethod" if at.collects && !calls_super() => {
                let parameters = at.node.child_by_field_name("parameters");
                let names = parameters.map(|list| identifiers(list, self.source));
                let mut given = names.unwrap_or_default().into_iter().skip(1);
                if !given.any(|name| mentions(body, &name, self.source)) {
                    self.skip(at);
                }
            }
            _ if is_assertion_method(name) && at.collects => {
                let checks = self.source.checks(body);
                let raises = checks.effective > 0
                    || calls_super()
                    || mentions(body, "AssertionError", self.source)
                    || memmem::find(node_bytes(body, self.source.text), b"fail").is_some();
                if !raises {
                    let what = format!("replaces `{name}` by a method that cannot fail");
                    self.found.switches([Switch::new(at.node, what)]);
                }
            }
            _ => {}
        }
    }
}

/// The names that a body calls.
fn called<'s>(body: Node<'_>, source: &Source<'s>) -> Vec<&'s str> {
    let mut names = Vec::new();
    walk(body, |node| {
        if node.kind() == "call"
            && let Some(callee) = node.child_by_field_name("function")
        {
            let name = callee.child_by_field_name("attribute").unwrap_or(callee);
            if name.kind() == "identifier" {
                names.push(source.node_text(name));
            }
        }
        true
    });
    names
}

/// The last part of a dotted name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default().trim()
}

/// A path without the expression for the module itself.
fn of_module(path: &str) -> &str {
    let rest = path.strip_prefix("sys.modules[__name__]");
    rest.map_or(path, |rest| rest.trim_start_matches('.'))
}

/// The content of a plain string literal.
fn unquoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix(['"', '\''])?.strip_suffix(['"', '\''])?;
    inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then_some(inner)
}

/// Whether a name is one of the assertions of a library.
fn is_assertion_method(name: &str) -> bool {
    let rest = name.strip_prefix("assert");
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
        || matches!(name, "fail" | "failUnless" | "failIf")
}

/// Whether a node mentions a name.
fn mentions(node: Node<'_>, name: &str, source: &Source<'_>) -> bool {
    let (mut found, mut fuel) = (false, 2_000_usize);
    walk(node, |node| {
        fuel = fuel.saturating_sub(1);
        found = found || (node.kind() == "identifier" && source.node_text(node) == name);
        !found && fuel > 0
    });
    found
}

/// The identifiers of a list of parameters.
fn identifiers(list: Node<'_>, source: &Source<'_>) -> Vec<String> {
    children(list)
        .into_iter()
        .filter(|child| child.kind() == "identifier")
        .map(|child| source.node_text(child).to_owned())
        .collect()
}

/// Whether a runner calls a function without running its body: a generator, or a coroutine that
/// waits for nothing.
fn never_runs(function: Node<'_>, body: Node<'_>, source: &Source<'_>) -> bool {
    let is_async = function.child(0).is_some_and(|first| source.node_text(first) == "async");
    let (mut yields, mut awaits) = (false, false);
    walk(body, |node| {
        yields |= node.kind() == "yield";
        awaits |= node.kind() == "await" || node.kind() == "async";
        !matches!(node.kind(), "function_definition" | "lambda" | "class_definition")
            || node == body
    });
    // Where something runs coroutines, one that waits for nothing runs as well.
    let has_runner = || {
        [b"asyncio".as_slice(), b"anyio", b"trio", b"IsolatedAsyncio"]
            .iter()
            .any(|name| memmem::find(source.text, name).is_some())
    };
    yields || (is_async && !awaits && !has_runner())
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
