//! Integration tests of the packs: their contracts, their embedded files and their reference pages.
//!
//! `UPDATE=1 cargo test -p counterfoil-packs --test it` publishes new contracts and writes the
//! reference pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod blocks;
mod catalogue;
mod fields;
mod folders;
mod minimal;
mod mutants;
mod origin;
mod published;
mod reference;
mod rules;
