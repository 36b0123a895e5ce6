//! Extract the result from the output of an agent and validate it against a contract.
//!
//! A [`Contract`] says what an agent must return. It comes from a Rust type ([`AgentOutput`]), from
//! a JSON Schema ([`Contract::from_schema`]) or from a file ([`Contract::from_file`]).
//! [`Contract::check`] extracts the result from a text and validates it. The [`Report`] has one of
//! three statuses: the result is accepted, rejected (there is one, and it breaks the contract) or
//! absent (there is none). Every [`Violation`] has a stable code, the place in the text, and a
//! hint.
//!
#![cfg_attr(feature = "yaml", doc = "```")]
#![cfg_attr(not(feature = "yaml"), doc = "```ignore")]
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
//! [`Contract::prompt`] gives the instructions for the agent's prompt, and [`Contract::repair`] the
//! prompt that asks for the result again. The example `repair_loop` shows the whole loop. A text
//! that arrives in pieces goes through [`Contract::stream`] and gives the same report.
//!
//! The modules hold what fewer programs need: [`render`] (prompts, schemas for vendors, reference
//! pages), [`compat`] (comparing versions of a contract), `diagnostic` (reports for people),
//! [`claim`] (statements of a result that can be verified), [`expr`] (types and expressions),
//! [`question`] (results that must be confirmed), [`nothing`] (empty values), [`shown`] (what an
//! agent was shown, which is not an answer when it is repeated).
//!
//! Every report that is not accepted emits one `tracing` event with the target
//! `counterfoil::rejected`: contract, agent, stage, codes.
//!
//! # Features
//!
//! All are on by default.
//!
//! - `yaml`: contract files in YAML. Without it, contract files are JSON.
//! - `rules`: rules and other expressions. Without it, a contract that has rules does not load.
//! - `diagnostics`: the module `diagnostic`, which renders reports with the line of the text.
//!
//! The crate does no I/O except to read contract files. It builds for `wasm32-unknown-unknown`.

#![warn(clippy::missing_errors_doc)]

mod attempt;
mod capped;
mod check;
pub mod claim;
pub mod code;
pub mod compat;
mod compile;
mod context;
mod contract;
pub mod definition;
#[cfg(feature = "diagnostics")]
pub mod diagnostic;
mod display;
pub mod edit;
// Without rules only the types are used; the checker's helpers on them are not.
#[cfg_attr(not(feature = "rules"), allow(dead_code))]
pub mod expr;
mod extract;
mod extractor;
pub mod fields;
mod json;
mod lint;
pub mod load;
pub mod nothing;
mod own_words;
#[cfg(feature = "rules")]
mod pattern;
mod placeholder;
pub mod policy;
mod problem;
pub mod question;
mod read;
pub mod registry;
pub mod render;
pub mod report;
mod reporting;
mod schema;
pub mod shown;
pub mod source;
mod stream;
pub mod suggest;
#[cfg(feature = "rules")]
mod task_list;
pub mod text;
pub mod typed;
mod validate;
#[cfg(feature = "rules")]
mod wording;
pub mod work;

pub use check::Rejection;
pub use code::Code;
pub use context::Context;
pub use contract::Contract;
pub use definition::{Definition, Rule};
pub use extractor::Progress;
pub use policy::{Framing, Policy};
pub use problem::{LoadError, Problem};
pub use registry::{Registry, ResolveError};
pub use report::{Report, Stage, Status, Violation};
pub use source::Span;
pub use stream::Stream;
pub use typed::{AgentOutput, ParseError, RepoPath, Timestamp, contract_of, parse, parse_as};
