//! The decorators of a definition, and the names that stand for a skip.

use super::super::constant::Truth;
use super::super::parse::{children, walk};
use super::super::scope::Skip;
use super::super::source::Source;
use super::last;
use super::marks::is_mark_of_unittest;
use std::collections::HashMap;
use tree_sitter::Node;

/// The maximum number of nodes that are read to find a skip.
const MAX_NODES: usize = 20_000;

/// The names of a file that skip what they decorate.
#[derive(Default)]
pub(super) struct Aliases<'s>(HashMap<&'s str, Skip>);

impl<'s> Aliases<'s> {
    /// Reads `off = pytest.mark.skip`, `from unittest import skip as off`, and decorators that do
    /// not call what they decorate.
    pub(super) fn read(root: Node<'_>, source: &Source<'s>) -> Self {
        let mut aliases = Self::default();
        for child in children(root) {
            let inner = child.named_child(0).unwrap_or(child);
            match (child.kind(), inner.kind()) {
                ("expression_statement", "assignment") => {
                    let left = inner.child_by_field_name("left").map(|left| source.node_text(left));
                    let skip = inner
                        .child_by_field_name("right")
                        .map_or(Skip::No, |right| aliases.skip_in(right, source));
                    // The name of one whose condition is false here may say that it skips.
                    let is_named = left.is_some_and(is_skip_mark)
                        && inner.child_by_field_name("right").is_some_and(is_call);
                    let skip = if is_named { Skip::Conditional.max(skip) } else { skip };
                    let left = left.filter(|left| skip.is_some() && *left != "pytestmark");
                    aliases.0.extend(left.map(|left| (left, skip)));
                }
                ("import_from_statement", _) => {
                    for import in
                        children(child).into_iter().filter(|child| child.kind() == "aliased_import")
                    {
                        let part = |name| {
                            import.child_by_field_name(name).map(|node| source.node_text(node))
                        };
                        let skips = part("name").is_some_and(|name| is_skip_mark(last(name)));
                        let alias = part("alias").filter(|_| skips);
                        aliases.0.extend(alias.map(|alias| (alias, Skip::Always)));
                    }
                }
                ("function_definition", _) => {
                    let name = child.child_by_field_name("name").map(|name| source.node_text(name));
                    if drops_its_argument(child, source) {
                        aliases.0.extend(name.map(|name| (name, Skip::Always)));
                    }
                }
                _ => {}
            }
        }
        aliases
    }

    /// Whether a name stands for a skip.
    fn is_skip(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    /// What a name stands for.
    fn named(&self, name: &str) -> Skip {
        self.0.get(name).copied().unwrap_or_else(|| {
            if is_skip_mark(name) { Skip::under(says_condition(name)) } else { Skip::No }
        })
    }

    /// What a call of a name stands for.
    fn called(&self, call: Node<'_>, name: &str, source: &Source<'_>) -> Skip {
        applied(call, name, source).min(self.named(name))
    }

    /// Whether what is called applies a skip to its argument: `unittest.expectedFailure`,
    /// `pytest.mark.skip(reason="…")`.
    pub(super) fn is_applied(&self, callee: Node<'_>, source: &Source<'_>) -> bool {
        let Some(inner) = callee.child_by_field_name("function") else {
            return self.is_skip(source.last_name(callee));
        };
        let name = source.last_name(inner);
        self.called(callee, name, source).is_some()
    }

    /// Whether an expression has a mark that skips and whose condition may hold.
    pub(super) fn skip_in(&self, node: Node<'_>, source: &Source<'_>) -> Skip {
        let (mut skip, mut fuel) = (Skip::No, MAX_NODES);
        walk(node, |node| {
            fuel = fuel.saturating_sub(1);
            if skip == Skip::Always || fuel == 0 {
                return false;
            }
            if node.kind() == "call"
                && let Some(callee) = node.child_by_field_name("function")
                && let name = source.last_name(callee)
                && self.is_skip(name)
            {
                skip = skip.max(self.called(node, name, source));
                return false;
            }
            if node.kind() == "identifier" {
                skip = skip.max(self.named(source.node_text(node)));
            }
            true
        });
        skip
    }
}

fn is_call(node: Node<'_>) -> bool {
    node.kind() == "call"
}

/// A decorator that returns something else than what it decorates: its parameter is not used.
fn drops_its_argument(function: Node<'_>, source: &Source<'_>) -> bool {
    let (Some(parameters), Some(body)) =
        (function.child_by_field_name("parameters"), function.child_by_field_name("body"))
    else {
        return false;
    };
    let names = super::identifiers(parameters, source);
    let [name] = names.as_slice() else { return false };
    let mut returns = false;
    walk(body, |node| {
        returns |= node.kind() == "return_statement";
        !returns
    });
    let has_skip = || Aliases::default().skip_in(body, source).is_some();
    returns && (!super::mentions(body, name, source) || has_skip())
}

/// Whether a mark with this name skips.
pub(super) fn is_skip_mark(name: &str) -> bool {
    matches!(name, "xfail" | "expectedFailure" | "SkipTest")
        || is_mark_of_unittest(name)
        || name.to_ascii_lowercase().starts_with("skip")
}

/// Whether the name of a mark of a project says that it has a condition: `skip_unless_linux`.
fn says_condition(name: &str) -> bool {
    let plain = name.to_ascii_lowercase().replace('_', "");
    let rest = plain.strip_prefix("skipif").or_else(|| plain.strip_prefix("skipunless"));
    rest.is_some_and(|rest| !rest.is_empty())
}

/// Whether the condition of a mark may hold. A condition counts unless it is known to be false.
fn applied(call: Node<'_>, name: &str, source: &Source<'_>) -> Skip {
    let unless = name == "skipUnless";
    if !unless && !matches!(name, "skipif" | "skipIf" | "xfail") {
        return Skip::Always;
    }
    let Some(arguments) = call.child_by_field_name("arguments") else { return Skip::Always };
    let condition = children(arguments).into_iter().find_map(|argument| {
        if argument.kind() != "keyword_argument" {
            return argument.is_named().then_some(argument);
        }
        let name = argument.child_by_field_name("name").map(|name| source.node_text(name));
        argument.child_by_field_name("value").filter(|_| name == Some("condition"))
    });
    // pytest evaluates a text.
    let is_text = condition.is_some_and(|condition| {
        let parts = ["sys.", "os.", "platform."];
        let text = source.node_text(condition);
        condition.kind() == "string" && parts.iter().any(|part| text.contains(*part))
    });
    match condition.map_or(Truth::Always(true), |condition| source.truth(condition)) {
        Truth::Always(_) if is_text => Skip::Conditional,
        Truth::Always(value) => Skip::from(value != unless),
        Truth::Here(value) if value == unless => Skip::No,
        Truth::Here(_) | Truth::Unknown => Skip::Conditional,
    }
}

/// What the decorators of a definition say about it.
#[derive(Default)]
pub(super) struct Decorators {
    pub(super) skipped: Skip,
    /// Whether its failures are discarded.
    pub(super) discards: bool,
    /// Whether it is no test: a fixture or a property.
    pub(super) fixture: bool,
    pub(super) autouse: bool,
    pub(super) cases: Option<usize>,
    /// The fixtures that it names.
    pub(super) fixtures: Vec<String>,
}

impl Decorators {
    pub(super) fn read<'t>(
        nodes: impl Iterator<Item = Node<'t>>,
        source: &Source<'_>,
        aliases: &Aliases<'_>,
    ) -> Self {
        let mut decorators = Self::default();
        for decorator in nodes {
            let Some(expression) = decorator.named_child(0) else { continue };
            let callee = expression.child_by_field_name("function").unwrap_or(expression);
            let name = last(source.node_text(callee));
            let skip = match expression.kind() {
                "call" => aliases.called(expression, name, source),
                _ => aliases.named(name),
            };
            decorators.skipped = decorators.skipped.max(skip);
            decorators.discards |= source.is_guard(callee, name);
            decorators.fixture |= matches!(name, "fixture" | "property" | "cached_property");
            decorators.autouse |= name == "fixture" && has_true(expression, "autouse", source);
            match name {
                "parametrize" => {
                    decorators.cases =
                        rows(expression).map(|rows| rows * decorators.cases.unwrap_or(1));
                    let rows = skip_of_rows(expression, source, aliases);
                    decorators.skipped = decorators.skipped.max(rows);
                }
                "usefixtures" => decorators.fixtures.extend(strings(expression, source)),
                _ => {}
            }
        }
        decorators
    }
}

fn has_true(call: Node<'_>, keyword: &str, source: &Source<'_>) -> bool {
    call.child_by_field_name("arguments").map(children).unwrap_or_default().into_iter().any(
        |argument| {
            let part = |name| argument.child_by_field_name(name).map(|node| source.node_text(node));
            argument.kind() == "keyword_argument"
                && part("name") == Some(keyword)
                && part("value") != Some("False")
        },
    )
}

fn strings(call: Node<'_>, source: &Source<'_>) -> Vec<String> {
    call.child_by_field_name("arguments")
        .map(children)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|argument| super::unquoted(source.node_text(argument)))
        .map(str::to_owned)
        .collect()
}

/// The rows of a parametrized test, where they are a list or tuple literal.
fn row_nodes(call: Node<'_>) -> Option<Vec<Node<'_>>> {
    let arguments = call.child_by_field_name("arguments")?;
    let list = arguments.named_children(&mut arguments.walk()).nth(1)?;
    if !matches!(list.kind(), "list" | "tuple") {
        return None;
    }
    let rows: Vec<_> = children(list)
        .into_iter()
        .filter(|node| node.is_named() && node.kind() != "comment")
        .collect();
    (!rows.iter().any(|row| row.kind() == "list_splat")).then_some(rows)
}

fn rows(call: Node<'_>) -> Option<usize> {
    row_nodes(call).map(|rows| rows.len())
}

/// What the rows are all skipped by.
fn skip_of_rows(call: Node<'_>, source: &Source<'_>, aliases: &Aliases<'_>) -> Skip {
    let skip = |row: Node<'_>| {
        if row.kind() == "call" { aliases.skip_in(row, source) } else { Skip::No }
    };
    row_nodes(call).unwrap_or_default().into_iter().map(skip).min().unwrap_or_default()
}
