//! A second driver, in memory. It proves that `turn` and `perform` are enough to drive a run: it
//! uses only public items of the workflow crate and the worker crate, and neither the journal nor
//! the engine. Events are kept in a `Vec`, transcripts in a map.
//!
//! - [`core`] is the part that decides and records. The simulation runs it as well.
//! - [`context`] is what attempts need from their driver.
//! - [`driver`] is the loop with real attempts.
//! - `compare` runs the same workflows with this driver and with the engine.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod compare;
mod context;
pub(crate) mod core;
mod driver;
