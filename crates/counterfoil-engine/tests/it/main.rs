//! The journal, the views of runs, the built-in steps, the simulation, the in-memory driver, and the safety of user
//! files.

mod builtin;
mod dice;
mod journal;
mod memory_driver;
mod questions;
mod simulation;
mod user_files;
mod views;
