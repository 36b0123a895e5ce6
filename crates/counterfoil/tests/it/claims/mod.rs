//! Claims: in the report of a run, in a table, over all runs, and without a run.

mod journal;

mod help;
mod not_known;
mod places;
mod same_name;
mod shown;
mod stats;
mod undo;
mod verify;
