//! The demo of the pack: what everybody sees first.
