//! Supervised processes.

mod process;
