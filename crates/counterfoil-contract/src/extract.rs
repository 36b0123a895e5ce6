//! Scanners that find candidates for the result in raw text. They do not parse or validate them.

mod blank_run;
pub(crate) mod block;
mod break_extent;
pub(crate) mod closing_quote;
pub(crate) mod doubt;
pub(crate) mod fence;
pub(crate) mod fence_lines;
pub(crate) mod prose;
pub(crate) mod repair;
pub(crate) mod repair_scan;
pub(crate) mod strict_scan;
pub(crate) mod string_edits;
