//! The layout of the code is the one that ARCHITECTURE.md draws: crates depend on each other as
//! listed there, and no module directly below a crate's root imports one that imports it back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The crates of the workspace, by name, with their folders.
fn crates() -> BTreeMap<String, PathBuf> {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    folders
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .collect()
}

/// The crates of ours that a manifest's `[dependencies]` name.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let table = text.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let table = table.split("\n[").next().unwrap_or_default();
    table
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| name.starts_with("counterfoil"))
        .map(str::to_owned)
        .collect()
}

/// The lines `crate -> dependencies` of the layout in ARCHITECTURE.md.
fn drawn() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let block = text.split("```layout\n").nth(1).expect("ARCHITECTURE.md has a block ```layout");
    let block = block.split("```").next().unwrap();
    let mut drawn = BTreeMap::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (name, names) = line.split_once("->").unwrap_or((line, ""));
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "-");
        let full = |name: &str| match name {
            "counterfoil" => name.to_owned(),
            short => format!("counterfoil-{short}"),
        };
        drawn.insert(full(name.trim()), names.map(full).collect());
    }
    drawn
}

#[test]
fn crates_depend_on_each_other_as_the_architecture_draws_them() {
    let found: BTreeMap<_, _> = crates()
        .into_iter()
        .map(|(name, path)| (name, dependencies(&path.join("Cargo.toml"))))
        .collect();
    assert_eq!(found, drawn(), "Cargo.toml files (left) and ARCHITECTURE.md (right) differ");
    assert_eq!(cycle(&found), None, "crates depend on each other in a cycle");
}

#[test]
fn no_top_level_module_imports_one_that_imports_it_back() {
    let mut cycles = Vec::new();
    for (name, path) in crates() {
        let graph = modules(&path.join("src"));
        if let Some(cycle) = cycle(&graph) {
            cycles.push(format!("{name}: {}", cycle.join(" -> ")));
        }
    }
    assert!(cycles.is_empty(), "module cycles:\n{}", cycles.join("\n"));
}

/// The modules directly below a crate's root, each with those that it names by `crate::`.
fn modules(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files(src) {
        let relative = file.strip_prefix(src).unwrap();
        let first = relative.components().next().unwrap().as_os_str().to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        if matches!(module.as_str(), "lib" | "main") || is_test(relative) {
            continue;
        }
        let text = code(&fs::read_to_string(&file).unwrap());
        let edges = graph.entry(module.clone()).or_default();
        edges.extend(imported(&text).into_iter().filter(|name| *name != module));
    }
    let known: BTreeSet<String> = graph.keys().cloned().collect();
    for edges in graph.values_mut() {
        edges.retain(|name| known.contains(name));
    }
    graph
}

fn is_test(relative: &Path) -> bool {
    relative.components().any(|part| {
        let part = part.as_os_str().to_string_lossy();
        part == "tests" || part == "tests.rs"
    })
}

/// The text without line comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The names that follow `crate::`, alone or in braces.
fn imported(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        names.insert(head(&word));
                        word.clear();
                        continue;
                    }
                    _ => {}
                }
                if depth == 0 {
                    word.push(c);
                }
            }
            names.insert(head(&word));
        } else {
            names.insert(head(rest));
        }
    }
    names.remove("");
    names
}

/// The first identifier of a path.
fn head(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// A cycle of the graph, if it has one: its names, the first one again at the end.
fn cycle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit<'g>(
        graph: &'g BTreeMap<String, BTreeSet<String>>,
        name: &'g str,
        path: &mut Vec<&'g str>,
        done: &mut BTreeSet<&'g str>,
    ) -> Option<Vec<String>> {
        if let Some(at) = path.iter().position(|other| *other == name) {
            let cycle = path[at..].iter().chain([&name]);
            return Some(cycle.map(|name| (*name).to_owned()).collect());
        }
        if done.contains(name) {
            return None;
        }
        path.push(name);
        for next in graph.get(name).into_iter().flatten() {
            if let Some(cycle) = visit(graph, next, path, done) {
                return Some(cycle);
            }
        }
        path.pop();
        done.insert(name);
        None
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|name| visit(graph, name, &mut Vec::new(), &mut done))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_back_edge_is_found() {
    let graph = |edges: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(from, to)| ((*from).to_owned(), names(to))).collect()
    };
    assert_eq!(cycle(&graph(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])), None);
    let found = cycle(&graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])])).unwrap();
    assert_eq!(found, ["b", "c", "b"]);
    let names = imported("use crate::{a, b::{c, d}, e::f};\nfn x() { crate::g::h() }");
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b", "e", "g"]);
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.split("## Where to add").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut missing = Vec::new();
    for word in table.split('`').skip(1).step_by(2) {
        // `contract/src/edit.rs` is in crates/counterfoil-contract.
        let Some((first, rest)) = word.split_once('/') else { continue };
        let folder = match first {
            "counterfoil" => root().join("crates/counterfoil"),
            other => root().join(format!("crates/counterfoil-{other}")),
        };
        let is_path =
            rest.starts_with("src/") || rest.starts_with("tests/") || rest.starts_with("packs/");
        if is_path && !rest.contains('<') && !folder.join(rest).exists() {
            missing.push(word);
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md names what does not exist: {missing:#?}");
}
