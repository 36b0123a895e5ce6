//! The names that are defined at a point of a template, and the facts that enclosing conditions
//! establish about them.

use minijinja::machinery::ast::{BinOpKind, Expr, Test, UnaryOpKind};
use minijinja::value::ValueKind;
use std::collections::{BTreeMap, BTreeSet};

use super::shape::Shape;

/// Whether a condition is true or false at a point of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum When {
    /// The condition is true.
    Holds,
    /// The condition is false.
    Fails,
}

impl When {
    fn opposite(self) -> Self {
        match self {
            Self::Holds => Self::Fails,
            Self::Fails => Self::Holds,
        }
    }
}

/// What a condition establishes about the value at a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fact {
    path: String,
    /// A test such as `mapping` and its outcome; `None` if the value is known to be present.
    is: Option<(&'static str, When)>,
}

#[derive(Debug, Default)]
struct Level {
    names: BTreeMap<String, Shape>,
    facts: BTreeSet<Fact>,
}

/// Names and facts, from the outermost level to the innermost.
#[derive(Debug, Default)]
pub(super) struct Scope {
    levels: Vec<Level>,
}

impl Scope {
    pub(super) fn enter(&mut self, facts: Vec<Fact>) {
        self.levels.push(Level { names: BTreeMap::new(), facts: facts.into_iter().collect() });
    }

    /// Leaves the innermost level and returns the names it bound.
    pub(super) fn leave(&mut self) -> BTreeMap<String, Shape> {
        self.levels.pop().map(|level| level.names).unwrap_or_default()
    }

    pub(super) fn bind(&mut self, name: &str, shape: Shape) {
        if let Some(level) = self.levels.last_mut() {
            level.facts.retain(|fact| root(&fact.path) != name);
            level.names.insert(name.to_owned(), shape);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Shape> {
        let shape = self.levels.iter().rev().find_map(|level| level.names.get(name))?.clone();
        Some(self.refine(name, shape))
    }

    /// Every name that is defined here.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.levels.iter().flat_map(|level| level.names.keys().map(String::as_str)).collect()
    }

    /// Narrows a shape by the facts about the value at its path.
    pub(super) fn refine(&self, path: &str, mut shape: Shape) -> Shape {
        for level in self.levels.iter().rev() {
            for fact in level.facts.iter().filter(|fact| fact.path == path) {
                shape = match fact.is {
                    None => shape.present(),
                    Some((test, when)) => shape.narrowed(test, when),
                };
            }
            if level.names.contains_key(root(path)) {
                break;
            }
        }
        shape
    }
}

fn root(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// The path that an expression consists of, such as `result.error.code`.
pub(super) fn expression_path(expr: &Expr<'_>) -> Option<String> {
    match expr {
        Expr::Var(var) => Some(var.id.to_owned()),
        Expr::GetAttr(attr) => Some(format!("{}.{}", expression_path(&attr.expr)?, attr.name)),
        Expr::GetItem(item) => {
            let Expr::Const(key) = &item.subscript_expr else { return None };
            let base = expression_path(&item.expr)?;
            match key.value.as_str() {
                Some(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                    Some(format!("{base}.{name}"))
                }
                Some(name) => Some(format!("{base}[{name:?}]")),
                None => Some(format!("{base}[{}]", key.value)),
            }
        }
        _ => None,
    }
}

/// The facts that follow from a condition being true or false.
pub(super) fn facts(condition: &Expr<'_>, when: When) -> Vec<Fact> {
    match condition {
        Expr::UnaryOp(op) if matches!(op.op, UnaryOpKind::Not) => facts(&op.expr, when.opposite()),
        Expr::BinOp(op) => match (op.op, when) {
            (BinOpKind::ScAnd, When::Holds) | (BinOpKind::ScOr, When::Fails) => {
                let mut all = facts(&op.left, when);
                all.extend(facts(&op.right, when));
                all
            }
            (BinOpKind::ScAnd, When::Fails) | (BinOpKind::ScOr, When::Holds) => {
                let right = facts(&op.right, when);
                facts(&op.left, when).into_iter().filter(|fact| right.contains(fact)).collect()
            }
            (BinOpKind::Eq | BinOpKind::Ne, _) => {
                let equal = matches!(op.op, BinOpKind::Eq) == (when == When::Holds);
                let sides = [(&op.left, &op.right), (&op.right, &op.left)];
                sides
                    .into_iter()
                    .filter(|(_, other)| {
                        is_constant(other, |kind| (kind == ValueKind::None) != equal)
                    })
                    .flat_map(|(side, _)| presence_facts(side))
                    .collect()
            }
            _ => Vec::new(),
        },
        Expr::Test(test) => test_facts(test, when),
        expr if when == When::Holds => presence_facts(expr),
        _ => Vec::new(),
    }
}

fn is_constant(expr: &Expr<'_>, passes: impl Fn(ValueKind) -> bool) -> bool {
    matches!(expr, Expr::Const(constant) if passes(constant.value.kind()))
}

fn test_facts(test: &Test<'_>, when: When) -> Vec<Fact> {
    let mut known = Vec::new();
    match (test.name, when) {
        ("defined", When::Holds) | ("none" | "undefined", When::Fails) => {
            known.extend(presence_facts(&test.expr));
        }
        ("mapping" | "string" | "number" | "boolean" | "sequence", _) => {
            // A missing value passes the test `sequence`, and no other of these tests.
            if when == When::Holds && test.name != "sequence" {
                known.extend(presence_facts(&test.expr));
            }
            let is = ["mapping", "string", "number", "boolean", "sequence"]
                .into_iter()
                .find(|name| *name == test.name)
                .map(|name| (name, when));
            known.extend(expression_path(&test.expr).map(|path| Fact { path, is }));
        }
        ("true" | "integer" | "int" | "float", When::Holds) => {
            known.extend(presence_facts(&test.expr));
        }
        _ => {}
    }
    known
}

/// The facts that a value and every value on the path to it are present.
fn presence_facts(expr: &Expr<'_>) -> Vec<Fact> {
    let mut known = Vec::new();
    let mut whole = Some(expr);
    while let Some(expr) = whole {
        known.extend(expression_path(expr).map(|path| Fact { path, is: None }));
        whole = match expr {
            Expr::GetAttr(attr) => Some(&attr.expr),
            Expr::GetItem(item) => Some(&item.expr),
            _ => None,
        };
    }
    known
}
