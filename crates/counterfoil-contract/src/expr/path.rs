//! Paths to values that an expression refers to: `result.checks`, `result["a-b"]`,
//! `result.checks[0].name`.

use cel::common::ast::{Expr as Ast, IdedExpr, LiteralValue, operators as op};
use std::fmt;

/// A variable and the steps from it to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path {
    pub(crate) root: String,
    pub(crate) steps: Vec<Step>,
}

/// One step of a path: a field of an object or an item of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Field(String),
    Item(i64),
}

impl Path {
    /// The path that an expression denotes; `None` if the expression computes a value.
    pub(crate) fn from_expr(expr: &IdedExpr) -> Option<Self> {
        match &expr.expr {
            Ast::Ident(name) => Some(Self { root: name.clone(), steps: Vec::new() }),
            Ast::Select(select) if !select.test => {
                Some(Self::from_expr(&select.operand)?.child(Step::Field(select.field.clone())))
            }
            Ast::Call(call) if call.func_name == op::INDEX => match call.args.as_slice() {
                [target, index] => match &index.expr {
                    Ast::Literal(LiteralValue::String(key)) => {
                        Some(Self::from_expr(target)?.child(Step::Field(key.inner().to_owned())))
                    }
                    Ast::Literal(LiteralValue::Int(at)) => {
                        Some(Self::from_expr(target)?.child(Step::Item(*at.inner())))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// The path extended by one step.
    pub(crate) fn child(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The names of the leading field steps, up to the first list item.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map_while(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Item(_) => None,
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        for step in &self.steps {
            match step {
                Step::Field(name) if is_identifier(name) => write!(f, ".{name}")?,
                Step::Field(name) => write!(f, "[{}]", quoted(name))?,
                Step::Item(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A string as a quoted literal.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
