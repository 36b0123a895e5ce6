//! The first steps of somebody who has agents and a project: checks that are missing, scaffolds,
//! schemas for editors, and paths on the command line.

mod asked;
mod missing_checks;
mod paths;
mod scaffolds;
mod schemas;
