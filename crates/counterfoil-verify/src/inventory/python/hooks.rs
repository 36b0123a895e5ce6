//! Hooks of pytest that decide which tests are collected and how they end.

use super::super::body::Body;
use super::super::parse::{children, walk};
use super::super::source::{Source, Switch};
use tree_sitter::Node;

/// Hooks that decide about tests whatever they do.
const DECIDING: [&str; 15] = [
    "pytest_collection_modifyitems",
    "pytest_ignore_collect",
    "pytest_collect_file",
    "pytest_collect_directory",
    "pytest_pycollect_makeitem",
    "pytest_pycollect_makemodule",
    "pytest_make_collect_report",
    "pytest_collection",
    "pytest_runtestloop",
    "pytest_pyfunc_call",
    "pytest_cmdline_main",
    "pytest_cmdline_preparse",
    "pytest_load_initial_conftests",
    "pytest_report_teststatus",
    "load_tests",
];

/// Names by which any other hook decides about tests.
const TELLING: [&str; 22] = [
    "exit",
    "_exit",
    "exitstatus",
    "skip",
    "xfail",
    "skipTest",
    "SkipTest",
    "deselect",
    "outcome",
    "force_result",
    "force_exception",
    "testsfailed",
    "testscollected",
    "excinfo",
    "keyword",
    "markexpr",
    "ignore",
    "deselected",
    "ignore_glob",
    "args",
    "TestCase",
    "setattr",
];

/// Whether a hook decides about tests whatever it does.
pub(super) fn is_deciding(name: &str) -> bool {
    DECIDING.contains(&name)
}

/// The switch that a function is, if it is a hook that decides about tests.
pub(super) fn hook(
    node: Node<'_>,
    name: &str,
    body: Node<'_>,
    source: &Source<'_>,
) -> Option<Switch> {
    let decides = is_deciding(name)
        || (name.starts_with("pytest_runtest_") && !is_empty(body))
        || (name.starts_with("pytest_") && name != "pytest_addoption" && tells(body, source));
    decides.then(|| {
        let code = Body::from_node(body, source.text, |_| false).digest;
        Switch::with_code(node, format!("the hook `{name}` decides about tests"), code)
    })
}

fn is_empty(body: Node<'_>) -> bool {
    children(body).into_iter().filter(Node::is_named).all(|statement| {
        matches!(statement.kind(), "pass_statement" | "comment")
            || statement.named_child(0).is_some_and(|inner| inner.kind() == "string")
    })
}

fn tells(body: Node<'_>, source: &Source<'_>) -> bool {
    let mut tells = false;
    walk(body, |node| {
        tells = tells || (node.kind() == "identifier" && TELLING.contains(&source.node_text(node)));
        !tells
    });
    tells
}

/// The entries of `collect_ignore` and `collect_ignore_glob`.
pub(super) fn ignored(value: Node<'_>, source: &Source<'_>) -> Vec<Switch> {
    let mut switches = Vec::new();
    let what = |entry: Node<'_>| format!("does not collect {}", source.quote(entry));
    walk(value, |node| {
        if node.kind() == "string" {
            switches.push(Switch::new(node, what(node)));
        }
        node.kind() != "string"
    });
    let is_list = matches!(value.kind(), "list" | "tuple" | "argument_list");
    if switches.is_empty() && !(is_list && value.named_child_count() == 0) {
        switches.push(Switch::new(value, what(value)));
    }
    switches
}
