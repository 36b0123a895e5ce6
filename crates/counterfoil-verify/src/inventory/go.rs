//! Finds tests in Go: functions that `go test` runs, and methods of suites.

use super::body::{Body, first_effective, is_inert};
use super::parse::{children, is_comment, line_number, node_bytes, node_text};
use super::scope::{FoundTest, ScopeId, Skip, TestCollector};
use super::source::{Source, Switch};
use tree_sitter::Node;

/// Collects the tests of a file.
pub(super) fn find(root: Node<'_>, source: &Source<'_>, found: &mut TestCollector) {
    let text = source.text;
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        for child in children(node) {
            match child.kind() {
                "comment" if is_never_built(node_bytes(child, text)) => {
                    found.skip(
                        ScopeId::FILE,
                        Skip::under(!is_switched_off(node_bytes(child, text))),
                    );
                }
                "function_declaration" | "method_declaration" => declaration(child, source, found),
                "ERROR" => open.push(child),
                _ => {}
            }
        }
    }
}

fn declaration(node: Node<'_>, source: &Source<'_>, found: &mut TestCollector) {
    let text = source.text;
    let Some(name) = node.child_by_field_name("name").map(|name| node_text(name, text)) else {
        return;
    };
    let parameters = node
        .child_by_field_name("parameters")
        .map(|list| node_bytes(list, text))
        .unwrap_or_default();
    let receiver = node.child_by_field_name("receiver").map(|list| node_text(list, text));
    if receiver.is_none() && matches!(name, "TestMain" | "init") {
        found.switches(process(node, name, text));
    }
    let Some(kind) = kind(name, parameters, receiver.is_some()) else { return };
    let name = match receiver.and_then(receiver_type) {
        Some(suite) => format!("{suite}.{name}"),
        None => name.to_owned(),
    };
    let block = node.child_by_field_name("body");
    let statements = block.map(statements).unwrap_or_default();
    let first = first_effective(statements, |statement| is_inert(statement, text, is_inert_name));
    let unchecked = kind == Kind::Example && !block.is_some_and(|block| has_output(block, text));
    let mut checks = block.map(|block| source.checks(block)).unwrap_or_default();
    checks.escapes = block.is_some_and(|block| escapes(block, text));
    found.add(
        ScopeId::FILE,
        FoundTest {
            name,
            line: line_number(node),
            skipped: checks
                .skips
                .max(Skip::from(unchecked || first.is_some_and(|first| is_skip(first, text)))),
            inert: first.is_none(),
            only: false,
            body: block
                .map(|block| Body::from_node(block, text, is_assertion))
                .unwrap_or_default()
                .with_checks(checks),
        },
    );
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Test,
    Example,
}

fn kind(name: &str, parameters: &[u8], method: bool) -> Option<Kind> {
    let is = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        (!rest.starts_with(char::is_lowercase)).then_some(())
    };
    let none = parameters.iter().all(|byte| b"() \t\r\n".contains(byte));
    let takes = |what: &[u8]| memchr::memmem::find(parameters, what).is_some();
    if method {
        // Methods of a suite take no parameter, or one in older libraries.
        return (is("Test").is_some() && memchr::memchr(b',', parameters).is_none())
            .then_some(Kind::Test);
    }
    if is("Example").is_some() && none {
        return Some(Kind::Example);
    }
    let runs = (is("Test").is_some() && takes(b".T"))
        || (is("Benchmark").is_some() && takes(b".B"))
        || (is("Fuzz").is_some() && takes(b".F"));
    runs.then_some(Kind::Test)
}

/// The type of a receiver: `Suite` for `(s *Suite)`.
fn receiver_type(list: &str) -> Option<&str> {
    let inner = list.trim_matches(['(', ')']).split_whitespace().next_back()?;
    let name = inner.trim_start_matches('*');
    name.split('[').next().filter(|name| !name.is_empty())
}

fn statements(block: Node<'_>) -> Vec<Node<'_>> {
    let mut list = Vec::new();
    for child in children(block) {
        if child.kind() == "statement_list" {
            list.extend(children(child).into_iter().filter(Node::is_named));
        } else if child.is_named() {
            list.push(child);
        }
    }
    list
}

/// Whether an example has an output comment. Only then is it run.
fn has_output(block: Node<'_>, text: &[u8]) -> bool {
    let says = |comment: Node<'_>| {
        let comment_text = node_bytes(comment, text).to_ascii_lowercase();
        let comment_text = comment_text
            .strip_prefix(b"//")
            .or(comment_text.strip_prefix(b"/*"))
            .unwrap_or(&comment_text)
            .trim_ascii_start();
        comment_text.starts_with(b"output:") || comment_text.starts_with(b"unordered output:")
    };
    let mut found = false;
    super::parse::walk(block, |node| {
        found = found || (is_comment(node) && says(node));
        !found
    });
    found
}

/// The texts of the calls in a node, without whitespace.
fn calls(node: Node<'_>, text: &[u8]) -> Vec<String> {
    let (mut calls, mut fuel) = (Vec::new(), 2_000_usize);
    super::parse::walk(node, |node| {
        fuel = fuel.saturating_sub(1);
        if node.kind() == "call_expression" && node.byte_range().len() < 200 {
            calls.push(node_text(node, text).split_whitespace().collect());
        }
        fuel > 0
    });
    calls
}

/// What a function that runs before all tests does to them.
fn process(node: Node<'_>, name: &str, text: &[u8]) -> Option<Switch> {
    let block = node.child_by_field_name("body")?;
    let calls = calls(block, text);
    let has = |what: &str| calls.iter().any(|call| call.contains(what));
    let what = match () {
        () if has("os.Exit(0)") => format!("`{name}` ends with success whatever the tests do"),
        () if name == "TestMain" && !has(".Run()") => {
            "`TestMain` does not run the tests".to_owned()
        }
        () if has("flag.Set(\"test.") => format!("`{name}` changes which tests run"),
        () => return None,
    };
    Some(Switch::new(node, what))
}

/// Whether a test hides its failures: a deferred `recover` that reports nothing, or another
/// `testing.T`.
fn escapes(block: Node<'_>, text: &[u8]) -> bool {
    statements(block).into_iter().any(|statement| match statement.kind() {
        "defer_statement" => {
            let calls = calls(statement, text);
            let reports = |call: &String| {
                call.starts_with("panic(")
                    || [".Error", ".Fatal", ".Fail", "require.", "assert."]
                        .iter()
                        .any(|what| call.contains(what) && !call.contains("recover()"))
            };
            calls.iter().any(|call| call == "recover()") && !calls.iter().any(reports)
        }
        "short_var_declaration" | "assignment_statement" => {
            let raw: String = node_text(statement, text).split_whitespace().collect();
            ["=&testing.T{}", "=new(testing.T)"].iter().any(|what| raw.ends_with(what))
        }
        _ => false,
    })
}

/// Whether a build constraint is false unless somebody sets its tags.
fn is_never_built(comment: &[u8]) -> bool {
    let line = String::from_utf8_lossy(comment.trim_ascii());
    let tags = line.strip_prefix("//go:build ").or(line.strip_prefix("// +build "));
    let known = |tag: &str| {
        let os = if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS };
        tag == os
            || tag.starts_with("go1")
            || matches!(tag, "cgo" | "gc" | "amd64" | "arm64" | "true")
            || (tag == "unix" && cfg!(unix))
    };
    // A tag is set, or it is not; constraints with several are true if one of their parts is.
    tags.is_some_and(|tags| {
        !tags.replace("||", " ").split_whitespace().any(|part| {
            part != "&&"
                && match part.trim_matches(['(', ')']).strip_prefix('!') {
                    Some(tag) => !known(tag),
                    None => known(part.trim_matches(['(', ')'])),
                }
        }) || tags
            .split("&&")
            .any(|part| tags.contains("&&") && matches!(part.trim(), "ignore" | "never" | "false"))
    })
}

/// Whether a build constraint has a tag that nobody sets. Others are about the platform, the version or
/// a kind of test.
fn is_switched_off(comment: &[u8]) -> bool {
    let words = String::from_utf8_lossy(comment);
    let mut words = words.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '!'));
    let tags =
        ["ignore", "ignored", "never", "none", "false", "disabled", "skip", "broken", "todo"];
    words.any(|word| tags.contains(&word))
}

/// Whether a statement is `t.Skip(…)` or one of its variants.
fn is_skip(statement: Node<'_>, text: &[u8]) -> bool {
    let call = if statement.kind() == "expression_statement" {
        statement.named_child(0)
    } else {
        Some(statement)
    };
    let Some(call) = call.filter(|call| call.kind() == "call_expression") else { return false };
    let field =
        call.child_by_field_name("function").and_then(|callee| callee.child_by_field_name("field"));
    field.is_some_and(|field| matches!(node_text(field, text), "Skip" | "Skipf" | "SkipNow"))
}

fn is_inert_name(node: Node<'_>, name: &str) -> bool {
    if node.kind() == "field_identifier" {
        return matches!(
            name,
            "Log" | "Logf" | "Parallel" | "Helper" | "ReportAllocs" | "ResetTimer"
        );
    }
    matches!(name, "t" | "b" | "f" | "s" | "c" | "tb" | "_" | "true" | "false" | "nil")
}

fn is_assertion(name: &str) -> bool {
    matches!(
        name,
        "Error"
            | "Errorf"
            | "Fatal"
            | "Fatalf"
            | "Fail"
            | "FailNow"
            | "require"
            | "assert"
            | "Check"
            | "Assert"
    )
}
