//! The documentation, tested: its blocks are executed, and its links lead somewhere.
//!
//! Pages are found in the source tree, so a new page is a new test. The tests only run the program, so
//! they are a binary of their own, which does not link the engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::print_stderr)]

mod blocks;
mod expected;
mod links;
mod picture;
mod plan;
mod sandbox;

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_counterfoil");

fn main() {
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = [
        blocks::trials(),
        expected::trials(),
        links::trials(),
        picture::trials(),
        plan::trials(),
        sandbox::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// The folder of the source tree.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The Markdown files in a folder of the source tree, sorted, with their paths in the tree.
fn markdown_files(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "md"));
    let mut pages: Vec<String> = pages.map(|name| format!("{folder}/{name}")).collect();
    pages.sort();
    pages
}

/// Every Markdown file below a folder of the source tree, with its path in the tree.
fn markdown_below(folder: &str) -> Vec<String> {
    let mut pages = markdown_files(folder);
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            pages.extend(markdown_below(&format!("{folder}/{}", entry.file_name().display())));
        }
    }
    pages.sort();
    pages
}

/// A test of the module `docs::<module>`.
fn trial(module: &str, name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(format!("docs::{module}::{name}"), move || {
        test();
        Ok(())
    })
}
