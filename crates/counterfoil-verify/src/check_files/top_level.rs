//! The top-level statements of a file of code that can decide about tests. A `conftest.py` is run
//! before the tests, and a file of tests may be run as a script: what stands at its top level runs in
//! any case, and can end the run, leave tests out or replace what checks them.
//!
//! Everything counts, except what is known to do nothing by itself: imports by name, functions,
//! classes and fixtures that do not end or skip anything, and plain values. So a fixture for a new test
//! can be added.

use crate::inventory::parse::{Deadline, Language, children, first_error, node_text, parse, walk};
use tree_sitter::Node;

/// Names in a function or class of Python that end, skip or replace something.
const TELLING: &[&str] = &[
    "skip",
    "skipTest",
    "SkipTest",
    "xfail",
    "importorskip",
    "exit",
    "_exit",
    "SystemExit",
    "KeyboardInterrupt",
    "deselect",
    "exec",
    "eval",
    "__import__",
    "builtins",
    "setattr",
    "TestCase",
    "_pytest",
    "autouse",
    "hookimpl",
    "hookwrapper",
    "execv",
    "execvp",
    "force_result",
];

/// Decorators of Python that only wrap a function.
const PLAIN_DECORATORS: &[&str] = &[
    "fixture",
    "contextmanager",
    "asynccontextmanager",
    "staticmethod",
    "classmethod",
    "property",
    "dataclass",
    "cache",
    "lru_cache",
    "cached_property",
    "wraps",
    "overload",
    "override",
    "abstractmethod",
    "setter",
    "total_ordering",
    "parametrize",
    "usefixtures",
    "patch",
    "object",
];

/// Functions that may be called for a value, or to find modules.
const PLAIN_CALLS: &[&str] = &[
    "Path",
    "str",
    "int",
    "float",
    "dict",
    "list",
    "set",
    "frozenset",
    "tuple",
    "len",
    "sorted",
    "dirname",
    "abspath",
    "join",
    "resolve",
    "getenv",
    "get",
    "timedelta",
    "Decimal",
    "namedtuple",
    "TypeVar",
    "getLogger",
    "NewType",
    "joinpath",
    "with_name",
    "range",
    "require",
    "fileURLToPath",
];

/// Functions of JavaScript whose calls are tests.
const TEST_CALLS: &[&str] = &[
    "test",
    "it",
    "describe",
    "suite",
    "specify",
    "context",
    "before",
    "after",
    "beforeEach",
    "afterEach",
    "beforeAll",
    "afterAll",
];

/// What a file of code is to a check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is run before the tests.
    Hooks,
    /// It has tests and is run as a script. Only its tests may change: the inventory compares them.
    Tests,
}

/// Whether the statements that can decide about tests differ. True if it cannot be told.
pub(super) fn differ(
    role: Role,
    language: Language,
    start: Option<&[u8]>,
    now: Option<&[u8]>,
) -> bool {
    let statements = |text: Option<&[u8]>| deciding(role, language, text.unwrap_or_default());
    match (statements(start), statements(now)) {
        (Some(start), Some(now)) => start != now,
        _ => true,
    }
}

/// The statements that can decide about tests, in alphabetical order. None if the text does not parse.
fn deciding(role: Role, language: Language, text: &[u8]) -> Option<Vec<String>> {
    std::str::from_utf8(text).ok()?;
    let tree = parse(language, text, Deadline::after(Deadline::PER_FILE)).ok()?;
    let root = tree.root_node();
    if first_error(root).is_some() {
        return None;
    }
    let counts = |node: &Node<'_>| match language {
        Language::Python => !is_inert_python(*node, text, role),
        _ => !is_inert_script(*node, text, role),
    };
    let statements = children(root).into_iter().filter(Node::is_named).filter(counts);
    let mut statements: Vec<String> =
        statements.map(|node| node_text(node, text).to_owned()).collect();
    statements.sort();
    Some(statements)
}

fn is_inert_python(node: Node<'_>, text: &[u8], role: Role) -> bool {
    match node.kind() {
        "comment" | "pass_statement" | "import_statement" | "future_import_statement" => true,
        "import_from_statement" => children(node).iter().all(|part| match part.kind() {
            "wildcard_import" => false,
            "dotted_name" => !is_special(node_text(*part, text)),
            "aliased_import" => part
                .child_by_field_name("alias")
                .is_some_and(|alias| !is_special(node_text(alias, text))),
            _ => true,
        }),
        "decorated_definition" => children(node).into_iter().all(|part| match part.kind() {
            "decorator" => is_plain_decorator(part, text),
            _ => !part.is_named() || is_inert_python(part, text, role),
        }),
        "function_definition" => {
            let name = node.child_by_field_name("name").map(|name| node_text(name, text));
            let is_test = |name: &str| role == Role::Hooks || name.starts_with("test");
            name.is_some_and(|name| !is_special(name) && is_test(name)) && !tells(node, text)
        }
        "class_definition" => node.child_by_field_name("body").is_some_and(|body| {
            let mut parts = children(body).into_iter().filter(Node::is_named);
            // Its functions run in tests only.
            !tells(body, text) && parts.all(|part| is_inert_python(part, text, Role::Hooks))
        }),
        "if_statement" => {
            let condition = node.child_by_field_name("condition");
            let only_types = condition
                .is_some_and(|condition| node_text(condition, text).ends_with("TYPE_CHECKING"));
            let body = node.child_by_field_name("consequence").map(children).unwrap_or_default();
            only_types
                && node.child_by_field_name("alternative").is_none()
                && body
                    .into_iter()
                    .filter(Node::is_named)
                    .all(|part| is_inert_python(part, text, role))
        }
        "type_alias_statement" => true,
        "expression_statement" => {
            children(node).into_iter().filter(Node::is_named).all(|part| match part.kind() {
                "string" | "ellipsis" => true,
                "assignment" => {
                    let target = part.child_by_field_name("left");
                    let value = part.child_by_field_name("right");
                    target.is_some_and(|target| {
                        target.kind() == "identifier" && !is_special(node_text(target, text))
                    }) && value.is_none_or(|value| is_plain(value, text))
                }
                // It finds the code that is tested.
                "call" => {
                    let function = part.child_by_field_name("function");
                    let name = function.map(|name| node_text(name, text)).unwrap_or_default();
                    let arguments = part.child_by_field_name("arguments");
                    matches!(name, "sys.path.insert" | "sys.path.append")
                        && arguments.is_some_and(|arguments| is_plain(arguments, text))
                }
                _ => false,
            })
        }
        _ => false,
    }
}

/// Whether a name at the top level means something to a test runner.
fn is_special(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    name.starts_with("pytest_")
        || name.starts_with("collect_ignore")
        || matches!(name, "pytestmark" | "load_tests" | "__test__" | "setUpModule" | "__getattr__")
}

fn is_plain_decorator(node: Node<'_>, text: &[u8]) -> bool {
    let name = node_text(node, text).trim_start_matches('@');
    let name = name.split('(').next().unwrap_or(name).trim();
    PLAIN_DECORATORS.contains(&name.rsplit('.').next().unwrap_or(name)) && !tells(node, text)
}

/// Whether a node has a name that ends, skips or replaces something.
fn tells(node: Node<'_>, text: &[u8]) -> bool {
    let mut tells = false;
    walk(node, |node| {
        if node.kind() == "identifier" && TELLING.contains(&node_text(node, text)) {
            // `monkeypatch.setattr` is undone after the test.
            let of_fixture = node.prev_sibling().and_then(|dot| dot.prev_sibling());
            let is_undone = node_text(node, text) == "setattr"
                && of_fixture.is_some_and(|object| node_text(object, text) == "monkeypatch");
            tells |= !is_undone;
        }
        tells |= node.kind() == "attribute" && node_text(node, text) == "sys.modules";
        !tells
    });
    tells
}

/// Whether a value is made without running anything but what is known.
fn is_plain(node: Node<'_>, text: &[u8]) -> bool {
    let mut plain = true;
    walk(node, |node| {
        match node.kind() {
            "call" | "call_expression" => {
                let function = node.child_by_field_name("function");
                let name = function.map(|name| node_text(name, text)).unwrap_or_default();
                plain &= PLAIN_CALLS.contains(&name.rsplit('.').next().unwrap_or(name));
            }
            "new_expression"
            | "await"
            | "await_expression"
            | "yield"
            | "assignment_expression"
            | "augmented_assignment_expression"
            | "update_expression"
            | "named_expression" => {
                plain = false;
            }
            // Nothing of it runs here.
            "lambda" | "arrow_function" | "function_expression" => return false,
            _ => {}
        }
        plain
    });
    plain
}

fn is_inert_script(node: Node<'_>, text: &[u8], role: Role) -> bool {
    match node.kind() {
        "comment"
        | "import_statement"
        | "empty_statement"
        | "interface_declaration"
        | "type_alias_declaration"
        | "hash_bang_line" => true,
        "function_declaration" | "generator_function_declaration" => role == Role::Hooks,
        "class_declaration" => is_plain(node, text),
        "lexical_declaration" | "variable_declaration" => is_plain(node, text),
        "expression_statement" => {
            children(node).into_iter().filter(Node::is_named).all(|part| match part.kind() {
                "string" => true,
                "call_expression" => {
                    let name = part
                        .child_by_field_name("function")
                        .map(|name| node_text(name, text))
                        .unwrap_or_default();
                    let first = name.split(['.', '(']).next().unwrap_or(name);
                    let arguments = part.child_by_field_name("arguments");
                    TEST_CALLS.contains(&first)
                        && !name.contains('(')
                        && arguments.is_some_and(|arguments| is_plain(arguments, text))
                }
                _ => false,
            })
        }
        _ => false,
    }
}
