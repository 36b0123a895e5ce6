//! Contracts for coding agents.

mod claim;
mod code;
pub mod compat;
mod compile;
mod contract;
mod definition;
pub mod diagnostic;
mod display;
mod edit;
mod expr;
mod extract;
mod fields;
mod json;
mod load;
mod plain;
mod policy;
mod problem;
mod read;
mod registry;
pub mod render;
mod report;
mod session;
mod source;
mod stream;
mod suggest;
mod typed;
mod validate;

pub use claim::{Claim, ClaimKind, ClaimMatch, ClaimPolicy};
pub use code::{Code, UnknownCode};
pub use contract::{Contract, Rejection};
pub use definition::{CounterExample, Definition, Rule};
pub use edit::{Edit, RepairKind, apply as apply_edits};
pub use expr::{Checked, ExprProblem, Field, ObjectType, Scope, Type, check as check_expression};
pub use policy::{Coerce, DEEPEST, Framing, Policy, Rename, RepairPolicy, Unwrap};
pub use problem::{LoadError, Problem};
pub use registry::{Entry, NotFound, Registry, ResolveError};
pub use report::{Coercion, Provenance, RejectedItem, Repair, Report, Stage, Status, Violation};
pub use source::{Origin, Source, Span};
pub use stream::{Progress, Stream};
pub use typed::{
    AgentOutput, ParseError, RepoPath, Timestamp, contract_of, parse, parse_as, schema_of, validate_output,
};
