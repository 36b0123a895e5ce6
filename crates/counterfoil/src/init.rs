//! Project setup: survey the project, plan edits of its configuration files, undo them.
//!
//! `survey` reads the project, `plan` decides what to add, `change` records an edit so that it can
//! be undone, and `project_file` writes.

mod change;
mod checks;
pub(crate) mod frontmatter;
pub(crate) mod json;
mod plan;
pub(crate) mod project_file;
mod suggest;
mod survey;
mod toml;
mod trust;

pub(crate) use change::{FileChange, InitRecord, UndoResult};
pub(crate) use plan::{Bindings, Plan, current_binding, plan, unasked_bindings};
pub(crate) use project_file::{FileState, file_state};
pub(crate) use survey::{
    CONFIG_SCHEMA, SUBAGENTS, Subagents, Survey, find_on_path, proposed_commands, subagents, survey,
};
