//! The Rust blocks of the documentation, as doc tests. They are here because this crate depends on
//! everything that they use, and a test of the command line checks that no page is missing.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;
