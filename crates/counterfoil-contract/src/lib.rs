//! Find the result in what an agent wrote, hold it to its contract, say exactly what is wrong and
//! where.
//!
//! A [`Contract`] says what one agent must hand back. It comes from a Rust type ([`AgentOutput`])
//! or from a file ([`Contract::from_yaml`]), and [`Contract::check`] holds a text to it. There are
//! three answers, never two: the text is accepted, rejected (a result was found and is wrong) or
//! absent (none was found).
//!
//! ```
//! use counterfoil_contract::{Contract, Status};
//!
//! let contract = Contract::from_yaml(
//!     "contract: acme/check
//! version: 1
//! fields: { ok: boolean, level: low | high, fix_info?: string }
//! rules: [{ id: fix-info-when-failed, when: '!result.ok', require: [fix_info] }]",
//! )?;
//!
//! let report = contract.check(r#"All done! {"ok": true, "level": "low"}"#);
//! assert_eq!(report.status, Status::Accepted);
//!
//! let report = contract.check(r#"Sorry. {"ok": false, "level": "LOW"}"#);
//! let found: Vec<_> = report.violations.iter().map(|v| (v.code.as_str(), v.pointer.as_str())).collect();
//! assert_eq!(found, [("C0301", "/fix_info"), ("C0203", "/level")]);
//! assert_eq!(report.violations[1].hint, "did you mean \"low\"?");
//! # Ok::<(), counterfoil_contract::LoadError>(())
//! ```
//!
//! A text that arrives in pieces goes through [`Contract::stream`] and gives the same answer.
//! [`render`] holds what else a contract yields (prompts, vendor schemas, pages), [`compat`]
//! compares versions, [`diagnostic`] writes reports for people.
//!
//! Every rejection emits one `tracing` event with the target `counterfoil::rejected`: contract,
//! agent, stage, codes.

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
mod schema;
mod session;
mod source;
mod stream;
mod suggest;
mod typed;
mod validate;
mod verdict;

pub use claim::{Claim, ClaimKind, ClaimMatch, ClaimPolicy, Figure, HeldClaim};
pub use code::{Code, UnknownCode};
pub use contract::{Contract, Rejection};
pub use definition::{CounterExample, Definition, Rule};
pub use edit::{Edit, RepairKind, apply as apply_edits};
pub use expr::{
    Branches, Checked, ExprProblem, Expression, Facts, Field, ObjectType, Proof, Scope, Type,
    assignable, branches, check as check_expression,
};
pub use fields::short_type;
pub use policy::{Coerce, DEEPEST, Framing, Policy, Rename, RepairPolicy, Unwrap};
pub use problem::{LoadError, Problem};
pub use registry::{Entry, NotFound, Registry, ResolveError};
pub use report::{Coercion, Provenance, RejectedItem, Repair, Report, Stage, Status, Violation};
pub use source::{Origin, Source, Span};
pub use stream::{Progress, Stream};
pub use suggest::{did_you_mean, nearest};
pub use typed::{
    AgentOutput, ParseError, RepoPath, Timestamp, contract_of, parse, parse_as, schema_of,
    validate_output,
};
pub use verdict::{ClaimReport, Evidence, Verdict};
