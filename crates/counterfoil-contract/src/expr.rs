//! Expressions over results: CEL's grammar and evaluation from the `cel` crate, and our own type
//! checker over its syntax tree, against the types that a JSON Schema gives.

#[cfg(feature = "rules")]
mod assign;
#[cfg(feature = "rules")]
mod branches;
#[cfg(feature = "rules")]
mod calls;
#[cfg(feature = "rules")]
mod cells;
#[cfg(feature = "rules")]
mod check;
#[cfg(feature = "rules")]
mod depth;
#[cfg(feature = "rules")]
mod eval;
#[cfg(feature = "rules")]
mod expression;
#[cfg(feature = "rules")]
mod formula;
#[cfg(feature = "rules")]
mod functions;
#[cfg(feature = "rules")]
mod library;
#[cfg(feature = "rules")]
mod loops;
#[cfg(feature = "rules")]
mod lower;
#[cfg(feature = "rules")]
mod members;
#[cfg(feature = "rules")]
mod meter;
#[cfg(feature = "rules")]
mod path;
#[cfg(feature = "rules")]
mod render;
#[cfg(feature = "rules")]
mod scope;
mod types;

#[cfg(feature = "rules")]
pub use assign::assignable;
#[cfg(feature = "rules")]
pub use branches::{Branches, branches};
#[cfg(feature = "rules")]
pub use check::{Checked, ExprProblem, check};
#[cfg(feature = "rules")]
pub(crate) use eval::{Evaluated, Expr, to_cel};
#[cfg(feature = "rules")]
pub use expression::Expression;
#[cfg(feature = "rules")]
pub use scope::{Facts, Proof, Scope};
pub use types::{Field, ObjectType, Type};
