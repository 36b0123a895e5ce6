//! Counts what is reported as unfinished in the source files of folders, by language and kind.
//! `testing/measure-unfinished` runs it on released code. With `--list`, it prints every place.
#![allow(clippy::print_stdout)]

use counterfoil_verify::unfinished::{UnfinishedKind, find, is_source_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Counts {
    files: usize,
    lines: usize,
    failed: usize,
    /// The number of places and of files with one, by kind.
    places: BTreeMap<UnfinishedKind, (usize, usize)>,
}

fn main() {
    let mut arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let is_list = arguments.first().is_some_and(|first| first.as_os_str() == "--list");
    if is_list {
        arguments.remove(0);
    }
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    let mut open = arguments;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()),
            );
        } else if is_source_file(&path) && !is_generated(&path) {
            count(&path, is_list, &mut counts);
        }
    }
    println!(
        "| language | files | lines | placeholders | empty bodies | comments | skipped tests |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (language, counts) in &counts {
        print!("| {language} | {} | {} |", counts.files, counts.lines);
        for kind in UnfinishedKind::ALL {
            let (places, files) = counts.places.get(&kind).copied().unwrap_or_default();
            print!(" {places} in {files} files |");
        }
        println!();
    }
    let failed: usize = counts.values().map(|counts| counts.failed).sum();
    println!("\ncould not be parsed in time: {failed}");
}

/// Whether a file was written by a program, such as a bundle.
fn is_generated(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.contains(".min.")
        || path.iter().any(|part| matches!(part.to_str(), Some("dist" | "build" | "bundles")))
}

fn count(path: &Path, is_list: bool, counts: &mut BTreeMap<String, Counts>) {
    let Ok(text) = std::fs::read(path) else { return };
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    let language = match extension.as_deref().unwrap_or_default() {
        "rs" => "Rust",
        "py" => "Python",
        "go" => "Go",
        _ => "JavaScript, TypeScript",
    };
    let counts = counts.entry(language.to_owned()).or_default();
    counts.files += 1;
    counts.lines += text.split(|byte| *byte == b'\n').count();
    let Ok(places) = find(path, &text) else {
        counts.failed += 1;
        return;
    };
    let mut kinds: BTreeMap<UnfinishedKind, usize> = BTreeMap::new();
    for place in places {
        *kinds.entry(place.kind).or_default() += 1;
        if is_list {
            println!(
                "{}:{}: {}: {}",
                place.file.display(),
                place.line,
                place.kind.name(),
                place.text
            );
        }
    }
    for (kind, number) in kinds {
        let (places, files) = counts.places.entry(kind).or_default();
        *places += number;
        *files += 1;
    }
}
