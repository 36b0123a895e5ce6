//! Setting a project up: what is there, what would be added to which file, and how it is taken out
//! again.

mod bind;
mod change;
pub(crate) mod frontmatter;
pub(crate) mod json;
mod plan;
mod survey;
mod toml;
mod write;

pub(crate) use change::{Change, Record, Undone};
pub(crate) use plan::{Plan, plan};
pub(crate) use survey::{Subagents, Survey, on_path, subagents, survey};
pub(crate) use write::{Standing, discard, put, standing};
