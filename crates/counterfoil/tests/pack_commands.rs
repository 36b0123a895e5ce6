//! Packs as their users meet them: listed, shown, run by name, ejected, and seen in a demo.
#![allow(clippy::unwrap_used)]

#[path = "common/git.rs"]
mod git;
#[path = "common/steady.rs"]
#[allow(dead_code, reason = "shared with the tests of runs")]
mod steady;

#[path = "pack_commands/demo.rs"]
mod demo;
#[path = "pack_commands/eject.rs"]
mod eject;
#[path = "pack_commands/names.rs"]
mod names;
#[path = "pack_commands/place.rs"]
mod place;
