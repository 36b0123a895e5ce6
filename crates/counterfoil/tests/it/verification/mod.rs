//! Verification under faults: impossible claims, misbehaving checks, repositories in unusual
//! states, kills. Each has a clear outcome, and no file of the user is lost.

pub(crate) mod project;

mod checks;
mod conflicts;
mod crashes;
mod observed_folder;
mod own_output;
mod paths;
mod protection;
mod repairs;
mod repositories;
mod retries;
mod step_checks;
mod together;
mod unobservable;
