//! The tests that are found in each case file.

use counterfoil_verify::inventory::{TestState, is_test_file, tests};
use std::path::{Path, PathBuf};

fn listing(path: &Path, text: &[u8]) -> String {
    let line = |test: &counterfoil_verify::inventory::Test| {
        let state = match test.state {
            TestState::Active => "active ",
            TestState::Skipped => "skipped",
            TestState::Empty => "empty  ",
        };
        format!("{:>4} {state} {}", test.line, test.name)
    };
    tests(path, text).iter().map(line).collect::<Vec<_>>().join("\n")
}

fn case(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/inventory/cases");
    let text = std::fs::read(folder.join(name)).unwrap();
    // With the extension `.rs`, the case files would be formatted and linted.
    let path = PathBuf::from(name.trim_end_matches(".txt"));
    assert!(is_test_file(&path), "{name}");
    insta::assert_snapshot!(name.replace('.', "_"), listing(&path, &text));
}

#[test]
fn rust() {
    case("items.rs.txt");
    case("macros.rs.txt");
}

#[test]
fn python() {
    case("collected.py");
    case("module_skip.py");
}

#[test]
fn javascript() {
    case("runners.js");
    case("only.js");
    case("names.test.js");
}

#[test]
fn typescript() {
    case("component.test.tsx");
    case("typed.ts");
}

#[test]
fn go() {
    case("things_test.go");
    case("ignored_test.go");
}

#[test]
fn files_are_chosen_by_name() {
    for (path, expected) in [
        ("src/lib.rs", true),
        ("a.py", true),
        ("a.test.ts", true),
        ("a.jsx", true),
        ("a.mts", true),
        ("a_test.go", true),
        ("a.go", false),
        ("Cargo.toml", true),
        ("conftest.py", true),
        ("pytest.ini", true),
        ("web/package.json", true),
        (".config/nextest.toml", true),
        ("nextest.toml", false),
        ("other.toml", false),
        ("README", false),
        (".rs", false),
        ("a.RS", false),
    ] {
        assert_eq!(is_test_file(Path::new(path)), expected, "{path}");
    }
}
