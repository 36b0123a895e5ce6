//! The names a template knows at a place, and what conditions around that place say about them.

use minijinja::machinery::ast::{BinOpKind, Expr, Test, UnaryOpKind};
use minijinja::value::ValueKind;
use std::collections::{BTreeMap, BTreeSet};

use super::shape::Shape;

/// On which side of a condition a place lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum When {
    /// Where it holds.
    Holds,
    /// Where it does not.
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

/// What a condition says about the value at a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fact {
    path: String,
    /// The test that holds or does not, as `mapping`; none if the value is just there.
    is: Option<(&'static str, When)>,
}

#[derive(Debug, Default)]
struct Frame {
    names: BTreeMap<String, Shape>,
    facts: BTreeSet<Fact>,
}

/// Names and facts, innermost last.
#[derive(Debug, Default)]
pub(super) struct Scope {
    frames: Vec<Frame>,
}

impl Scope {
    pub(super) fn enter(&mut self, facts: Vec<Fact>) {
        self.frames.push(Frame { names: BTreeMap::new(), facts: facts.into_iter().collect() });
    }

    /// Leaves the innermost frame and hands back the names it bound.
    pub(super) fn leave(&mut self) -> BTreeMap<String, Shape> {
        self.frames.pop().map(|frame| frame.names).unwrap_or_default()
    }

    pub(super) fn bind(&mut self, name: &str, shape: Shape) {
        if let Some(frame) = self.frames.last_mut() {
            frame.facts.retain(|fact| root(&fact.path) != name);
            frame.names.insert(name.to_owned(), shape);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Shape> {
        let shape = self.frames.iter().rev().find_map(|frame| frame.names.get(name))?.clone();
        Some(self.refine(name, shape))
    }

    /// Every name that is known here.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.frames.iter().flat_map(|frame| frame.names.keys().map(String::as_str)).collect()
    }

    /// A shape together with what the conditions around say of the value at its path.
    pub(super) fn refine(&self, path: &str, mut shape: Shape) -> Shape {
        for frame in self.frames.iter().rev() {
            for fact in frame.facts.iter().filter(|fact| fact.path == path) {
                shape = match fact.is {
                    None => shape.present(),
                    Some((test, when)) => shape.narrowed(test, when),
                };
            }
            if frame.names.contains_key(root(path)) {
                break;
            }
        }
        shape
    }
}

fn root(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// The path of names that an expression spells, as `result.error.code`.
pub(super) fn path(expr: &Expr<'_>) -> Option<String> {
    match expr {
        Expr::Var(var) => Some(var.id.to_owned()),
        Expr::GetAttr(attr) => Some(format!("{}.{}", path(&attr.expr)?, attr.name)),
        Expr::GetItem(item) => {
            let Expr::Const(key) = &item.subscript_expr else { return None };
            let base = path(&item.expr)?;
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

/// What is known where a condition holds, or where it does not.
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
                    .flat_map(|(side, _)| there(side))
                    .collect()
            }
            _ => Vec::new(),
        },
        Expr::Test(test) => tested(test, when),
        expr if when == When::Holds => there(expr),
        _ => Vec::new(),
    }
}

fn is_constant(expr: &Expr<'_>, passes: impl Fn(ValueKind) -> bool) -> bool {
    matches!(expr, Expr::Const(constant) if passes(constant.value.kind()))
}

fn tested(test: &Test<'_>, when: When) -> Vec<Fact> {
    let mut known = Vec::new();
    match (test.name, when) {
        ("defined", When::Holds) | ("none" | "undefined", When::Fails) => {
            known.extend(there(&test.expr))
        }
        ("mapping" | "string" | "number" | "boolean" | "sequence", _) => {
            // What is missing passes as a sequence, and as nothing else.
            if when == When::Holds && test.name != "sequence" {
                known.extend(there(&test.expr));
            }
            let is = ["mapping", "string", "number", "boolean", "sequence"]
                .into_iter()
                .find(|name| *name == test.name)
                .map(|name| (name, when));
            known.extend(path(&test.expr).map(|path| Fact { path, is }));
        }
        ("true" | "integer" | "int" | "float", When::Holds) => known.extend(there(&test.expr)),
        _ => {}
    }
    known
}

/// A value that is there is so together with all that it is part of.
fn there(expr: &Expr<'_>) -> Vec<Fact> {
    let mut known = Vec::new();
    let mut whole = Some(expr);
    while let Some(expr) = whole {
        known.extend(path(expr).map(|path| Fact { path, is: None }));
        whole = match expr {
            Expr::GetAttr(attr) => Some(&attr.expr),
            Expr::GetItem(item) => Some(&item.expr),
            _ => None,
        };
    }
    known
}
