//! Assignments to the names of a module and its classes, by which tests are replaced or removed.

use super::super::body::Body;
use super::super::parse::{children, walk};
use super::super::scope::{ScopeId, Skip};
use super::super::source::{Source, Switch};
use super::decorators::Aliases;
use super::marks::is_mark;
use super::{Container, Reader, hooks, is_assertion_method, of_module, unquoted};
use std::collections::HashSet;
use tree_sitter::Node;

impl<'s, 't> Reader<'_, 's, 't> {
    /// Names that are changed by a key that is computed.
    pub(super) fn computed(&mut self, at: Container<'t>) {
        if !at.dead {
            let code = Body::from_node(at.node, self.source.text, |_| false).digest;
            let what = format!("changes names of the module: `{}`", self.source.quote(at.node));
            self.found.switches([Switch::with_code(at.node, what, code)]);
        }
    }

    /// The targets of an assignment or `del`.
    pub(super) fn targets(
        &mut self,
        at: Container<'t>,
        target: Node<'t>,
        value: Option<&Value<'s, 't>>,
    ) {
        let mut open = vec![target];
        while let Some(target) = open.pop() {
            match target.kind() {
                "pattern_list"
                | "tuple_pattern"
                | "list_pattern"
                | "expression_list"
                | "tuple"
                | "parenthesized_expression" => {
                    open.extend(children(target).into_iter().filter(Node::is_named));
                }
                "identifier" | "attribute" => {
                    let text = of_module(self.source.node_text(target));
                    let path: Vec<&str> = text.split('.').map(str::trim).collect();
                    self.target(at, &path, value);
                }
                "subscript" => {
                    let object = target
                        .child_by_field_name("value")
                        .map(|value| self.source.node_text(value))
                        .unwrap_or_default();
                    let key = target
                        .child_by_field_name("subscript")
                        .and_then(|key| unquoted(self.source.node_text(key)));
                    if let Some(path) = changed_by_key(object, key) {
                        self.target(at, &path, value);
                        continue;
                    }
                    if !matches!(object, "globals()" | "vars()" | "locals()") {
                        continue;
                    }
                    match key {
                        Some(key) => self.target(at, &[key], value),
                        None => self.computed(Container { node: target, ..at }),
                    }
                }
                _ => {}
            }
        }
    }

    /// The names that an import binds: a test of that name is replaced, and a hook is there.
    pub(super) fn imports(&mut self, at: Container<'t>) {
        let from = at.node.child_by_field_name("module_name");
        for child in children(at.node).into_iter().filter(|child| Some(*child) != from) {
            let name = match child.kind() {
                "aliased_import" => child.child_by_field_name("alias"),
                "dotted_name" => Some(child),
                _ => None,
            };
            let Some(name) = name.map(|name| self.source.node_text(name)) else { continue };
            self.bindings.import(name.split('.').next().unwrap_or(name));
            if hooks::is_deciding(name) && at.scope == ScopeId::FILE && !at.dead {
                let what = format!("the hook `{name}` decides about tests");
                self.found.switches([Switch::new(at.node, what)]);
            }
            if name.starts_with("test") || name.starts_with("Test") {
                self.target(at, &[name], None);
            }
        }
    }

    /// One target, as the names that lead to it.
    pub(super) fn target(
        &mut self,
        at: Container<'t>,
        path: &[&str],
        value: Option<&Value<'s, 't>>,
    ) {
        let Some((name, owners)) = path.split_last() else { return };
        if at.dead {
            return;
        }
        let has_skip = value.is_some_and(|value| value.skip.is_some());
        if matches!(*name, "collect_ignore" | "collect_ignore_glob") {
            if let Some(value) = value {
                self.found.switches(hooks::ignored(value.node, self.source));
            }
            return;
        }
        if is_mark(name) {
            if let Some(value) = value {
                self.mark(at, name, owners, value);
            }
            return;
        }
        if owners.is_empty() && at.scope == ScopeId::FILE && hooks::is_deciding(name) {
            let what = format!("the hook `{name}` decides about tests");
            self.found.switches([Switch::new(at.node, what)]);
            return;
        }
        let library = owners.iter().any(|owner| {
            matches!(*owner, "unittest" | "pytest" | "_pytest" | "builtins" | "TestCase")
                || owner.ends_with("TestCase")
        });
        let replaces = match value {
            Some(value) if is_assertion_method(name) => {
                !owners.is_empty() || value.is_without_assertion()
            }
            _ => library && is_library_part(name),
        };
        if replaces {
            let what = format!("replaces `{}`", path.join("."));
            self.found.switches([Switch::new(at.node, what)]);
            return;
        }
        // `run = lambda self, result=None: result`.
        let runs_nothing = matches!(*name, "run" | "debug" | "__call__" | "_callTestMethod")
            && value.is_some_and(|value| {
                value.node.kind() == "lambda" && !value.names.contains("super")
            });
        match owners {
            [] if runs_nothing && at.collects && at.scope != ScopeId::FILE => self.skip(at),
            [_, ..] if runs_nothing => {
                self.bindings.off(at.scope, owners, at.conditions, None);
            }
            _ => {}
        }
        // `test_a = retry(test_a)` keeps it.
        let keeps = value.is_some_and(|value| value.names.contains(name)) && !has_skip;
        if !keeps {
            self.bindings.replace(at.scope, owners, name, at.node.start_byte(), at.conditions);
        }
    }
}

/// The names that lead to what an assignment to an element of `object` changes: `pytestmark[0]`,
/// `TestA.test_b.__dict__["name"]`.
fn changed_by_key<'p>(object: &'p str, key: Option<&'p str>) -> Option<Vec<&'p str>> {
    let object = of_module(object);
    let names = |path: &'p str| path.split('.').map(str::trim);
    if object.rsplit('.').next() == Some("pytestmark") {
        return Some(names(object).collect());
    }
    let of_vars = || object.strip_prefix("vars(")?.strip_suffix(')');
    let owner = object.strip_suffix(".__dict__").or_else(of_vars)?;
    (!owner.is_empty()).then(|| names(owner).chain(key).collect()).filter(|_| key.is_some())
}

/// What is assigned.
pub(super) struct Value<'s, 't> {
    pub(super) node: Node<'t>,
    /// The names that it mentions.
    names: HashSet<&'s str>,
    /// Whether it has a mark that skips.
    pub(super) skip: Skip,
}

impl<'s, 't> Value<'s, 't> {
    /// Reads an expression.
    pub(super) fn read(node: Node<'t>, source: &Source<'s>, aliases: &Aliases<'s>) -> Self {
        let mut names = HashSet::new();
        walk(node, |node| {
            if node.kind() == "identifier" {
                names.insert(source.node_text(node));
            }
            true
        });
        Self { node, names, skip: aliases.skip_in(node, source) }
    }

    /// Whether it is a function without an assertion, or nothing.
    fn is_without_assertion(&self) -> bool {
        matches!(self.node.kind(), "lambda" | "none")
            && !self.names.iter().any(|name| name.starts_with("assert") || *name == "fail")
    }
}

/// Whether a library for tests does not work without the part with this name. Others are settings,
/// such as `maxDiff`.
fn is_library_part(name: &str) -> bool {
    is_assertion_method(name)
        || matches!(
            name,
            "run"
                | "debug"
                | "__call__"
                | "TestCase"
                | "AssertionError"
                | "failureException"
                | "raises"
                | "warns"
                | "mark"
                | "main"
                | "approx"
                | "exit"
                | "skip"
        )
}
