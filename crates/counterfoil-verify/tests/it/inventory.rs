//! Tests of the test inventory: tests in files, changes of tests, reports, and hostile input.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cases;
mod delta;
mod hostile;
mod switched_off;
mod workspace;
