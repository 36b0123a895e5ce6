//! Recordings: exporting a run, the exported files, and replaying them.

mod bad;
mod runs;
mod secrets;
mod streams;
