//! Expressions over results. Parsing and evaluation come from the `cel` crate; the type checker is
//! our own and checks the syntax tree against types derived from a JSON Schema.

#[cfg(feature = "rules")]
mod assign;
#[cfg(feature = "rules")]
mod branches;
#[cfg(feature = "rules")]
mod calls;
#[cfg(feature = "rules")]
mod cases;
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
pub use assign::{NotAssignable, assignable};
#[cfg(feature = "rules")]
pub use branches::{Branches, branches};
#[cfg(feature = "rules")]
pub use check::{Checked, ExprProblem, check};
#[cfg(feature = "rules")]
pub(crate) use eval::{Evaluated, Expr, Variables, to_cel};
#[cfg(feature = "rules")]
pub use expression::{EvaluationError, Expression};
#[cfg(feature = "rules")]
pub(crate) use meter::SharedMeter;
#[cfg(feature = "rules")]
pub use scope::{Facts, Proof, Scope};
pub(crate) use types::MAX_SCHEMA_PARTS;
pub use types::{Field, ObjectType, Type};
