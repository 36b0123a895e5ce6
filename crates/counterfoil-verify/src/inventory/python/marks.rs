//! Attributes that switch off the test or class that has them: `__test__`, `pytestmark`, and those
//! that the decorators of unittest set. They can be set without a decorator.

use super::super::constant::Truth;
use super::super::parse::{arguments_of, walk};
use super::super::scope::{ScopeId, Skip};
use super::super::source::Switch;
use super::assignments::Value;
use super::{Container, Reader, last};
use tree_sitter::Node;

/// Whether an attribute may switch off what has it, by its name.
pub(super) fn is_mark(name: &str) -> bool {
    matches!(name, "pytestmark" | "__test__") || is_mark_of_unittest(name)
}

/// Whether a decorator of unittest sets an attribute of this name.
pub(super) fn is_mark_of_unittest(name: &str) -> bool {
    matches!(name, "__unittest_skip__" | "__unittest_expecting_failure__")
}

impl<'s, 't> Reader<'_, 's, 't> {
    /// Skips everything in a container.
    pub(super) fn skip(&mut self, at: Container<'t>) {
        self.skip_as(at, Skip::under(at.here));
    }

    fn skip_as(&mut self, at: Container<'t>, skip: Skip) {
        if at.scope == ScopeId::FILE && self.source.is_package_of_tests && !at.dead {
            let what = "skips the tests of its folder".to_owned();
            self.found.switches([Switch::new(at.node, what)]);
        }
        match at {
            Container { dead: true, .. } => {}
            Container { conditions: 0, .. } => self.found.skip(at.scope, skip),
            _ => self.found.condition(at.scope),
        }
    }

    pub(super) fn raises_skip(&self, node: Node<'_>) -> bool {
        let Some(raised) = node.named_child(0) else { return false };
        let raised = raised.child_by_field_name("function").unwrap_or(raised);
        let name = self.source.node_text(raised);
        matches!(last(name), "SkipTest" | "Skipped" | "SystemExit")
            || name == "pytest.skip.Exception"
    }

    /// An attribute that is set on what `owners` lead to, or on what is around it.
    pub(super) fn mark(
        &mut self,
        at: Container<'t>,
        name: &str,
        owners: &[&str],
        value: &Value<'s, 't>,
    ) {
        let mut skip = Skip::under(at.here);
        let conditions = match name {
            "pytestmark" if value.skip.is_some() => {
                skip = skip.min(value.skip);
                0
            }
            "pytestmark" => return,
            _ => match self.source.truth(value.node) {
                Truth::Always(is) | Truth::Here(is) if is == (name == "__test__") => return,
                Truth::Always(_) => 0,
                Truth::Here(_) => {
                    skip = Skip::Conditional;
                    0
                }
                Truth::Unknown => 1,
            },
        };
        let conditions = at.conditions.saturating_add(conditions);
        if owners.is_empty() {
            return self.skip_as(Container { conditions, ..at }, skip);
        }
        // Classes of the product have names like tests as well: `TestBed.__test__ = False`.
        let is_foreign = name == "__test__" && self.bindings.is_imported(owners[0]);
        let switch = (!is_foreign)
            .then(|| Switch::new(at.node, format!("sets `{}.{name}`", owners.join("."))));
        self.bindings.off(at.scope, owners, conditions, switch);
    }

    /// Marks that are applied by a call, `unittest.expectedFailure(TestA.test_b)`: they change what
    /// they are given, whatever becomes of their value.
    pub(super) fn marks_by_call(&mut self, at: Container<'t>) {
        if at.dead {
            return;
        }
        let mut marked: Vec<Node<'t>> = Vec::new();
        walk(at.node, |node| {
            if node.kind() == "call"
                && let Some(callee) = node.child_by_field_name("function")
                && self.aliases.is_applied(callee, self.source)
            {
                let targets = arguments_of(node);
                marked.extend(
                    targets
                        .first()
                        .filter(|first| matches!(first.kind(), "identifier" | "attribute")),
                );
            }
            !matches!(node.kind(), "lambda" | "string")
        });
        for target in marked {
            let path: Vec<&str> = self.source.node_text(target).split('.').map(str::trim).collect();
            self.bindings.off(at.scope, &path, at.conditions, None);
        }
    }
}
