//! Everything that is printed: human text, and the formats that CI systems read.
//!
//! Rendering makes no decisions and reads no repository. It gets typed reports and returns text.

mod checks;
pub(crate) mod claims;
mod clean;
mod color;
mod contract_list;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
mod event_lines;
pub(crate) mod github;
pub(crate) mod junit;
mod lines;
mod list;
mod overview;
pub(crate) mod pack;
mod pulse;
pub(crate) mod receipt;
pub(crate) mod replay;
mod run_list;
mod run_summary;
pub(crate) mod sarif;
pub(crate) mod scaffold;
pub(crate) mod setup;
pub(crate) mod stats;
mod step;
mod table;
mod text;
mod timeline;
mod undo;

pub(crate) use clean::cleaned;
pub(crate) use contract_list::contract_list;
pub(crate) use event_lines::{EventFormatter, OutputMode};
pub(crate) use overview::Overview;
pub(crate) use pulse::Pulse;
pub(crate) use run_list::run_list;
pub(crate) use run_summary::{
    Ending, PROGRAM, location_flags, question_prompt, questions, trouble, unended_processes,
    without_answer,
};
pub(crate) use step::step;
pub(crate) use text::{duration, shell_quote, time_so_far, usage_suffix};
pub(crate) use timeline::Timeline;
pub(crate) use undo::{left_by_lost_attempts, nothing_to_undo, undo};
