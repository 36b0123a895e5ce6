//! Reports of commands that have no report type in a library: a command fills them, `render`
//! prints them, and most are also the JSON output.

pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod contract;
pub(crate) mod demo;
pub(crate) mod lint;
pub(crate) mod overview;
pub(crate) mod pack;
pub(crate) mod project_checks;
pub(crate) mod receipt;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod step;
