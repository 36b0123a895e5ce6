//! The first steps of somebody who has agents and a project: checks that are missing, and paths on the
//! command line.

mod missing_checks;
mod paths;
