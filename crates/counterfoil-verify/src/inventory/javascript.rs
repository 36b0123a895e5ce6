//! Finds tests in JavaScript and TypeScript: calls of `it`, `test` and `describe` in the forms of
//! the common runners, also by other names.

mod runners;

use super::assertion::{is_function, property};
use super::body::{Body, first_effective, is_inert};
use super::constant::Truth;
use super::parse::{children, line_number, node_bytes, node_text, walk};
use super::scope::{FoundTest, ScopeId, Skip, TestCollector};
use super::source::{Source, Switch};
use runners::{Callee, Runners};
use tree_sitter::Node;

/// The maximum length of a callee that skips.
const MAX_CALLEE: usize = 100;

/// Collects the tests of a file.
pub(super) fn find(root: Node<'_>, source: &Source<'_>, found: &mut TestCollector) {
    let mut runners = Runners::read(root, source);
    let mut open = vec![(root, ScopeId::FILE, Place::default())];
    while let Some((node, scope, mut place)) = open.pop() {
        let mut inner = scope;
        if node.kind() == "variable_declarator" {
            runners.declare(node, source);
        }
        if is_function(node) || node.kind() == "function_declaration" {
            place.in_function |= place.suite != node.id();
        }
        if node.kind() == "call_expression"
            && let Some(call) = Call::read(node, source, &runners)
        {
            match call.kind {
                Kind::Test => {
                    let mut test = call.test(source);
                    test.skipped = test.skipped.max(place.skip());
                    found.add(scope, test);
                    continue;
                }
                Kind::Suite => {
                    inner = found.enter(scope, &call.title, " > ");
                    place.suite = call.callback.map_or(0, |callback| callback.id());
                    found.skip(inner, call.skipped.max(place.skip()));
                    if call.only {
                        found.only(inner);
                    }
                }
            }
        }
        if !place.dead && !place.in_function && skips_scope(node, place, source, &runners) {
            if place.conditional {
                found.condition(scope);
            } else {
                found.skip(scope, Skip::under(place.here));
            }
        }
        found.switches(replaces(node, place, source, &runners));
        children_with_places(node, source, place, |child, place| open.push((child, inner, place)));
    }
}

/// Where a definition stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Never run.
    dead: bool,
    /// Never run on any platform.
    off: bool,
    /// Under a condition.
    conditional: bool,
    /// Under a condition on the platform.
    here: bool,
    /// In a function that is no suite, which may never be called.
    in_function: bool,
    /// The function of the suite around it.
    suite: usize,
    /// Whether it is a statement of its own.
    is_statement: bool,
}

impl Place {
    /// What its place does to a test.
    fn skip(self) -> Skip {
        if self.dead { Skip::under(!self.off) } else { Skip::No }
    }
}

/// Passes the children of a node on, the last first, with their places.
fn children_with_places<'t>(
    node: Node<'t>,
    source: &Source<'_>,
    place: Place,
    mut push: impl FnMut(Node<'t>, Place),
) {
    let truth = match node.kind() {
        "if_statement" => node.child_by_field_name("condition").map(|node| source.truth(node)),
        _ => None,
    };
    let is_block = matches!(node.kind(), "program" | "statement_block");
    let mut place = Place { is_statement: node.kind() == "expression_statement", ..place };
    let mut places = Vec::new();
    for child in children(node).into_iter().filter(Node::is_named) {
        let mut own = place;
        if node.kind() == "if_statement" && child.kind() != "parenthesized_expression" {
            let wanted = child.kind() != "else_clause";
            let truth = truth.unwrap_or(Truth::Unknown);
            own.dead |= truth.is(!wanted);
            own.off |= truth.always() == Some(!wanted);
            own.here |= matches!(truth, Truth::Here(_));
            own.conditional |= truth == Truth::Unknown;
        }
        places.push((child, own));
        let ends = is_block && matches!(child.kind(), "return_statement" | "throw_statement");
        place.dead |= ends;
        place.off |= ends && !place.here;
    }
    // Reversed, so that the first child is visited first.
    for (child, place) in places.into_iter().rev() {
        push(child, place);
    }
}

/// Whether a statement skips everything around it: `process.exit()`, `test.skip()`, or a hook that
/// skips.
fn skips_scope<'s>(
    node: Node<'_>,
    place: Place,
    source: &Source<'s>,
    runners: &Runners<'s>,
) -> bool {
    if node.kind() != "call_expression" {
        return false;
    }
    let callee = node
        .child_by_field_name("function")
        .filter(|callee| callee.byte_range().len() < MAX_CALLEE)
        .map(|callee| runners.path(callee, source.text))
        .unwrap_or_default();
    let first = node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
    match &*callee {
        "process.exit" | "Deno.exit" => place.is_statement,
        "this.skip" | "test.skip" | "test.fixme" | "it.skip" | "test.describe.skip" => {
            place.is_statement
                && first.is_none_or(|first| {
                    !matches!(first.kind(), "string" | "template_string" | "object")
                        && !is_function(first)
                        && !source.truth(first).is(false)
                })
        }
        "before" | "beforeEach" | "beforeAll" | "test.beforeEach" | "test.beforeAll" => first
            .filter(|first| is_function(*first))
            .and_then(|hook| Some((hook, hook.child_by_field_name("body")?)))
            .is_some_and(|(hook, body)| {
                let checks = source.checks_with(hook, body);
                checks.skips.is_some() || checks.conditional_skips > 0
            }),
        _ => false,
    }
}

/// What replaces the functions of the runner: `global.it = …`, `const expect = …`.
fn replaces<'s>(
    node: Node<'_>,
    place: Place,
    source: &Source<'s>,
    runners: &Runners<'s>,
) -> Option<Switch> {
    let is_ours = |name: &str| matches!(name, "it" | "test" | "describe" | "expect" | "specify");
    let (target, value) = match node.kind() {
        "assignment_expression" => {
            (node.child_by_field_name("left")?, node.child_by_field_name("right"))
        }
        "variable_declarator" | "function_declaration" => {
            (node.child_by_field_name("name")?, node.child_by_field_name("value"))
        }
        _ => return None,
    };
    if target.byte_range().len() > MAX_CALLEE {
        return None;
    }
    let path = node_text(target, source.text);
    let (owner, name) = path.rsplit_once('.').unwrap_or_default();
    let is_global = matches!(owner, "global" | "globalThis" | "window" | "self") && is_ours(name);
    let is_part = matches!(owner, "it" | "test" | "describe" | "expect" | "assert")
        || (runners.has(owner) && is_ours(name));
    let replaced = match node.kind() {
        "assignment_expression" if is_global || is_part => true,
        // A name that is not global replaces the runner's in a file with tests only.
        _ if !is_ours(path) || !source.is_collected => false,
        "function_declaration" => !uses_runner(node, path, source, runners),
        _ => value.is_some_and(|value| {
            let ends = |end: &&str| node_bytes(value, source.text).ends_with(end.as_bytes());
            (is_function(value) && !uses_runner(value, path, source, runners))
                || [".skip", ".todo", ".only"].iter().any(ends)
        }),
    };
    replaced.then(|| {
        // Functions may be nested, and each would read all of the inner ones.
        if place.in_function {
            return Switch::new(node, format!("replaces `{path}`"));
        }
        let code = Body::from_node(node, source.text, |_| false).digest;
        Switch::with_code(node, format!("replaces `{path}`"), code)
    })
}

/// Whether a function passes on to the runner, so that it is a helper.
fn uses_runner(function: Node<'_>, own: &str, source: &Source<'_>, runners: &Runners<'_>) -> bool {
    let (mut uses, mut fuel) = (false, 1_000_usize);
    walk(function, |node| {
        fuel = fuel.saturating_sub(1);
        if node.kind() == "identifier" {
            let name = node_text(node, source.text);
            uses |= name != own
                && (matches!(name, "it" | "test" | "describe" | "expect" | "specify" | "assert")
                    || runners.has(name));
        }
        !uses && fuel > 0
    });
    uses
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
    skipped: Skip,
    only: bool,
    /// The function with the body of the test.
    callback: Option<Node<'t>>,
    /// Whether it is called for each row of a table.
    is_table: bool,
    cases: Option<usize>,
}

impl<'t> Call<'t> {
    fn read<'s>(node: Node<'t>, source: &Source<'s>, runners: &Runners<'s>) -> Option<Self> {
        let text = source.text;
        let Callee { base, parts, table, is_guess } =
            runners.callee(node.child_by_field_name("function")?, source)?;
        let (mut kind, is_off, mut only) = match base {
            "it" | "test" | "specify" => (Kind::Test, false, false),
            "describe" | "context" | "suite" => (Kind::Suite, false, false),
            "xit" | "xtest" | "xspecify" => (Kind::Test, true, false),
            "xdescribe" | "xcontext" | "xsuite" => (Kind::Suite, true, false),
            "fit" => (Kind::Test, false, true),
            "fdescribe" => (Kind::Suite, false, true),
            // `Deno.test`, `QUnit.test`, `QUnit.module`.
            "Deno" | "QUnit"
                if matches!(parts.first(), Some(&"test" | &"skip" | &"todo" | &"only")) =>
            {
                (Kind::Test, false, false)
            }
            "QUnit" if parts.first() == Some(&"module") => (Kind::Suite, false, false),
            _ => return None,
        };
        let mut skipped = Skip::from(is_off);
        let (mut is_todo, mut is_table) = (false, false);
        for name in parts {
            is_table |= matches!(name, "each" | "for");
            match name {
                "skipIf" | "runIf" | "if" => {
                    let truth = table
                        .and_then(|list| list.named_child(0))
                        .map_or(Truth::Unknown, |condition| source.truth(condition));
                    if !truth.is(name != "skipIf") {
                        skipped = skipped.max(Skip::under(truth.always().is_none()));
                    }
                }
                "skip" | "fixme" | "failing" | "fails" | "fail" | "ignore" | "expectFailure" => {
                    skipped = Skip::Always;
                }
                "todo" => (skipped, is_todo) = (Skip::Always, true),
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
                let value = property(*options, name, text);
                match value.map(|value| source.truth(value)) {
                    None | Some(Truth::Always(false) | Truth::Here(false)) => Skip::No,
                    Some(truth) => Skip::under(truth.always().is_none()),
                }
            };
            for name in ["skip", "ignore", "todo", "fails", "expectFailure"] {
                skipped = skipped.max(set(name));
            }
            only |= set("only").is_some();
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
        if !real || (is_guess && callback.is_none()) {
            return None;
        }
        skipped = skipped.max((kind == Kind::Test && titled && arguments.len() == 1).into());
        let cases = table.and_then(rows);
        Some(Self { kind, node, title, skipped, only, callback, is_table, cases })
    }

    fn test(self, source: &Source<'_>) -> FoundTest {
        let text = source.text;
        let block = self.callback.and_then(|callback| callback.child_by_field_name("body"));
        let statements: Vec<Node<'_>> = match block {
            Some(block) if block.kind() == "statement_block" => {
                children(block).into_iter().filter(Node::is_named).collect()
            }
            Some(expression) => vec![expression],
            None => Vec::new(),
        };
        let inert = |statement: Node<'_>| {
            statement.kind() != "throw_statement" && is_inert(statement, text, is_inert_name)
        };
        let first = first_effective(statements, inert);
        let body =
            block.or_else(|| self.node.child_by_field_name("arguments")).unwrap_or(self.node);
        let checks = block.map(|block| match self.callback {
            // The parameters of a table are its rows.
            Some(callback) if !self.is_table => source.checks_with(callback, block),
            _ => source.checks(block),
        });
        let checks = checks.unwrap_or_default();
        FoundTest {
            line: line_number(self.node),
            skipped: self.skipped.max(checks.skips).max(Skip::from(
                self.cases == Some(0) || first.is_some_and(|first| is_skip(first, text)),
            )),
            inert: block.is_some() && first.is_none(),
            only: self.only,
            body: Body::from_node(body, text, is_assertion)
                .with_cases(self.cases)
                .with_checks(checks),
            name: self.title,
        }
    }
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
