//! The traceability matrix of the packs: the tests that it names exist, and its links lead
//! somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PACKS: [&str; 5] =
    ["execution-loop", "review-fix", "feature-pipeline", "spec-pipeline", "gated-team"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The tests that a document names: `path/of/file.rs::name_of_the_test`.
fn named(text: &str) -> BTreeSet<(&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|one| one.split_once(".rs::")).collect()
}

/// Whether a file has a test of this name.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &str| {
        let rest = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "));
        rest.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| rest.starts_with('('))
    };
    let at = lines.iter().position(|line| is_it(line));
    let before =
        at.into_iter().flat_map(|at| lines[..at].iter().rev().take_while(|line| !line.is_empty()));
    let mut before = before.take(8);
    before.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
        // Case files are tests of their own, named by a test that reads them all.
        || (text.contains("Trial::test") && text.contains(&format!("\"{name}\"")))
        || (text.contains("case_files! {") && lines.iter().any(|line| line.starts_with(&format!("{name} = "))))
        // So are the rows of the macro for ways to a false done.
        || (text.contains("ways! {") && lines.iter().any(|line| line.starts_with(&format!("{name}:"))))
}

#[test]
fn every_test_named_in_the_traceability_matrix_exists() {
    let text = read("crates/counterfoil/tests/it/origin.md");
    let named = named(&text);
    assert!(named.len() > 100, "only {} tests are named", named.len());
    let missing: Vec<String> = named
        .into_iter()
        .filter(|(path, name)| {
            let file = root().join(format!("{path}.rs"));
            !std::fs::read_to_string(file).is_ok_and(|text| has_test(&text, name))
        })
        .map(|(path, name)| format!("{path}.rs::{name}"))
        .collect();
    assert!(
        missing.is_empty(),
        "named in crates/counterfoil/tests/it/origin.md but missing:\n{}",
        missing.join("\n")
    );
}

#[test]
fn every_link_of_the_traceability_matrix_leads_somewhere() {
    let page = "crates/counterfoil/tests/it/origin.md";
    let text = read(page);
    let folder = root().join(page).parent().unwrap().to_owned();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files =
        links.filter_map(|(link, _)| link.split('#').next().filter(|file| !file.is_empty()));
    let files: BTreeSet<&str> = files.collect();
    assert!(files.len() >= PACKS.len(), "only {files:?}");
    let missing: Vec<&&str> = files.iter().filter(|file| !folder.join(file).exists()).collect();
    assert!(missing.is_empty(), "links of {page} that lead nowhere: {missing:?}");
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let text =
        "#[test]\nfn one() {}\n\nfn two() {}\n\n/// Words.\n#[test]\n#[ignore]\nfn three() {}\n";
    let there: Vec<bool> =
        ["one", "two", "three", "on", "four"].map(|name| has_test(text, name)).to_vec();
    assert_eq!(there, [true, false, true, false, false]);
}

#[test]
fn every_requirement_of_the_origin_documents_has_a_row() {
    let text = read("crates/counterfoil/tests/it/origin.md");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    let numbered = (1..=12).map(|number| format!("FR-{number:03}"));
    let measured = (1..=5).map(|number| format!("SC-{number:03}"));
    let contracts = counterfoil_packs::registry();
    let contracts: Vec<String> =
        contracts.iter().map(|entry| entry.definition().contract.clone()).collect();
    for wanted in numbered.chain(measured).chain(contracts) {
        assert!(
            rows.iter().any(|row| row.contains(&wanted)),
            "no row of crates/counterfoil/tests/it/origin.md is about {wanted}"
        );
    }
    for row in
        rows.iter().filter(|row| !row.starts_with("|--") && !row.starts_with("| requirement"))
    {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(
            cells.len() >= 2 && cells.iter().all(|cell| !cell.is_empty()),
            "nothing shows: {row}"
        );
    }
}
