//! The integration tests of the contract crate, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod api;
mod features;

// The other tests load contracts from YAML, with rules.
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod asked;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod cases;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod claims;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod compat;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod damage;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod explain;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod expressions;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod filled;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod hostile;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod laws;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod mistakes;
#[cfg(all(feature = "diagnostics", feature = "rules", feature = "yaml"))]
mod quotations;
mod recursion;
mod salvage;
