//! A file that is added to a pack, or taken out of one, is seen by nobody else: the macro that
//! embeds them is only expanded again when this says so.
#![allow(clippy::print_stdout)] // It is how a build script speaks.

fn main() {
    println!("cargo:rerun-if-changed=packs");
    println!("cargo:rerun-if-changed=build.rs");
}
