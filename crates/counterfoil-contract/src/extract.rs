//! Finding the result in raw text.
pub(crate) mod block;
pub(crate) mod closer;
pub(crate) mod fence;
pub(crate) mod fence_lines;
pub(crate) mod mend;
pub(crate) mod mend_scan;
pub(crate) mod prose;
pub(crate) mod scan;
pub(crate) mod tier;
pub(crate) mod unquote;
