//! Faults around a run: each has a clear outcome and a message that says how to continue, and no
//! journaled event is lost.

mod abandoned;
mod agents;
mod artifacts;
mod budgets;
mod file_limit;
mod files;
mod guards;
mod leftovers;
mod progress;
mod room;
mod sharing;
mod signals;
mod special_files;
mod state;
mod unended;
