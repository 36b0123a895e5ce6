//! Everything that is printed: human text, and the formats that CI systems read.
//!
//! Rendering makes no decisions and reads no repository. It gets typed reports and returns text.

mod checks;
pub(crate) mod claims;
mod color;
pub(crate) mod demo;
pub(crate) mod doctor;
mod event_lines;
pub(crate) mod github;
pub(crate) mod junit;
pub(crate) mod pack;
mod pulse;
pub(crate) mod replay;
mod run_list;
mod run_summary;
pub(crate) mod sarif;
pub(crate) mod scaffold;
pub(crate) mod setup;
pub(crate) mod stats;
mod table;
mod text;
mod timeline;
mod undo;

pub(crate) use event_lines::{EventFormatter, attempt_title};
pub(crate) use pulse::Pulse;
pub(crate) use run_list::{run_list, run_outcome};
pub(crate) use run_summary::{location_flags, run_summary, unended_processes};
pub(crate) use text::{duration, usage_suffix};
pub(crate) use timeline::Timeline;
pub(crate) use undo::undo;
