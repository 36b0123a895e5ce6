//! The inventory of tests: what is found in files, what becomes of it, what people read, and what
//! hostile text does.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cases;
mod delta;
mod hostile;
