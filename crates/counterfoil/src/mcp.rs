//! A server of the Model Context Protocol over standard input and output: an agent hands in its
//! result while it works, and what is wrong with it comes back inside its own turn.
//!
//! `desk` knows what is offered and what a call comes to, `form` how arguments carry a result,
//! `answer` the words; none of them does I/O. `frame` reads a line, `wire` moves lines, `serve`
//! stands between them and the protocol's crate.

mod answer;
mod desk;
mod form;
mod frame;
mod serve;
mod wire;

pub(crate) use desk::Desk;
pub(crate) use serve::{Store, serve};
