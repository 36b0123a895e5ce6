//! Makes cargo rebuild the crate when a file of a pack is added or removed. Cargo does not track the
//! files that `include_dir!` embeds.
#![allow(clippy::print_stdout)] // Build scripts talk to cargo on stdout.

fn main() {
    println!("cargo:rerun-if-changed=packs");
    println!("cargo:rerun-if-changed=build.rs");
}
