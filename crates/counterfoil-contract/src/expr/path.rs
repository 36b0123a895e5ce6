//! The places that an expression names: `result.checks`, `result["a-b"]`, `result.checks[0].name`.

use cel::common::ast::{Expr as Ast, IdedExpr, LiteralValue, operators as op};
use std::fmt;

/// A variable and the way from it to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path {
    pub(crate) root: String,
    pub(crate) steps: Vec<Step>,
}

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Field(String),
    Item(i64),
}

impl Path {
    /// The path that an expression is; `None` if it computes something.
    pub(crate) fn of(expr: &IdedExpr) -> Option<Self> {
        match &expr.expr {
            Ast::Ident(name) => Some(Self { root: name.clone(), steps: Vec::new() }),
            Ast::Select(select) if !select.test => {
                Some(Self::of(&select.operand)?.then(Step::Field(select.field.clone())))
            }
            Ast::Call(call) if call.func_name == op::INDEX => match call.args.as_slice() {
                [target, index] => match &index.expr {
                    Ast::Literal(LiteralValue::String(key)) => {
                        Some(Self::of(target)?.then(Step::Field(key.inner().to_owned())))
                    }
                    Ast::Literal(LiteralValue::Int(at)) => {
                        Some(Self::of(target)?.then(Step::Item(*at.inner())))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// The path one step further.
    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The fields up to the first item of a list.
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

/// A text as a literal.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
