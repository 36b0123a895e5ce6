//! The workflow language: state machines as data, checked against contracts before they run.

pub mod template;
