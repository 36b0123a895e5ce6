//! Expressions over results: CEL's grammar and evaluation from the `cel` crate, and our own type
//! checker over its syntax tree, against the types that a JSON Schema gives.

mod assign;
mod branches;
mod calls;
mod cells;
mod check;
mod depth;
mod eval;
mod expression;
mod formula;
mod functions;
mod library;
mod loops;
mod lower;
mod members;
mod meter;
mod path;
mod render;
mod scope;
mod types;

pub use assign::assignable;
pub use branches::{Branches, branches};
pub use check::{Checked, ExprProblem, check};
pub(crate) use eval::{Evaluated, Expr, to_cel};
pub use expression::Expression;
pub use scope::{Facts, Proof, Scope};
pub use types::{Field, ObjectType, Type};
