//! Expressions over results: CEL's grammar and evaluation from the `cel` crate, and our own type checker over its
//! syntax tree, against the types that a JSON Schema gives.

mod check;
mod eval;
mod types;

pub use check::{Checked, ExprProblem, Scope, check};
pub(crate) use eval::{Evaluated, Expr, to_cel};
pub use types::{Field, ObjectType, Type};
