//! The journal, built-in steps, the simulation, users' trees.

mod deeds;
mod journal;
mod simulation;
mod untouched;
