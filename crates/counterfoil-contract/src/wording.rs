//! What values of free form say in the words that agents use: whether something high or critical is
//! open, whether tests failed, whether a verdict rejects, whether there is nothing.
//!
//! A contract that leaves a field open gets texts, numbers and objects of any form there. These
//! functions read all of them in the same way. In doubt they report a problem: an agent that is
//! asked again can say it more clearly.

mod left_out;
mod parts;
mod problem;
mod severity;
mod test_results;
mod verdict;

pub(crate) use left_out::leaves_out_severe;
pub use problem::names_success;
pub(crate) use problem::{denies_success, lists_problems};
pub(crate) use severity::reports_severe;
pub(crate) use test_results::reports_failure;
pub(crate) use verdict::{reports_nothing, reports_rejection};

#[cfg(test)]
mod tests;
