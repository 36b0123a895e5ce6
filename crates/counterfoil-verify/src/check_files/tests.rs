use super::*;
use crate::config::CheckCommand;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn the_scripts_of_a_command_are_found() {
    let files = BTreeMap::from([
        ("t.sh", "set -e\n. ./lib.sh\nbash more.sh && ./product --selftest\npython3 app.py\n"),
        ("more.sh", "echo more"),
        ("package.json", r#"{"scripts": {"test": "node run.js", "lint": "cd tools; sh lint.sh"}}"#),
        ("web/package.json", r#"{"scripts": {"test": "vitest run"}}"#),
    ]);
    for (line, expected) in [
        ("cargo test", &[][..]),
        ("sh t.sh", &["lib.sh", "more.sh", "t.sh"]),
        ("FAST=1 timeout 5m bash -e ./t.sh --all", &["lib.sh", "more.sh", "t.sh"]),
        ("./run-tests", &["run-tests"]),
        ("cd sub && ./run-tests || exit 1", &["sub/run-tests"]),
        ("cd ../../etc && ./x", &[]),
        ("python -m pytest -q", &[]),
        ("python3 tools/check.py a.py", &["tools/check.py"]),
        ("python3 -c 'print(1)'", &[]),
        ("sh -c 'sh more.sh; ./x'", &["more.sh", "x"]),
        ("sh -e <more.sh", &["more.sh"]),
        ("sh < more.sh 2>&1", &["more.sh"]),
        ("sh \"$PWD/more.sh\"", &["more.sh"]),
        ("cat more.sh | sh", &["more.sh"]),
        ("VERBOSE=1 sh more.sh | cat", &["more.sh"]),
        ("for one in more.sh checks/x.sh; do sh $one || exit 1; done", &["checks/x.sh", "more.sh"]),
        ("shellcheck more.sh", &[]),
        ("cat notes.txt | grep x", &[]),
        ("npm test", &["run.js", "tools/lint.sh"]),
        ("npm --prefix web test", &[]),
        ("make -C sub -f checks.mk", &["sub/checks.mk"]),
    ] {
        let mut read = |path: &Path| Some(files.get(path.to_str()?)?.as_bytes().to_vec());
        let command = CheckCommand::Shell(line.to_owned());
        let found = scripts(&command, Path::new(""), &mut read);
        let found: Vec<&str> = found.files.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(found, expected, "{line}");
    }
    let looped = CheckCommand::Shell("for one in checks/*.sh; do sh $one; done".to_owned());
    let looped = scripts(&looped, Path::new(""), &mut |_| None);
    assert!(looped.contains(Path::new("checks/new.sh")) && !looped.contains(Path::new("a.sh")));
    let argv = ["bash", "t.sh"].map(str::to_owned).to_vec();
    let found = scripts(&CheckCommand::Argv(argv), Path::new("sub"), &mut |_| None);
    assert_eq!(found.files, BTreeSet::from(["sub/t.sh".into()]));
    // A file that would run instead of the installed module counts even if it is new.
    let command = CheckCommand::Shell("python -m pytest".to_owned());
    let found = scripts(&command, Path::new(""), &mut |_| None);
    assert_eq!(found.shadows.len(), 3);
    let shadow = start_version(Path::new("pytest.py"), &found, None, Some(b"exit(0)"));
    assert_eq!(shadow, StartVersion::Whole);
    // Scripts that run each other end.
    let mut endless = |_: &Path| Some(b"sh a.sh\nsh b.sh\n".to_vec());
    assert_eq!(
        scripts(&CheckCommand::Shell("sh a.sh".into()), Path::new(""), &mut endless).files.len(),
        2
    );
}

fn version(path: &str, start: &str, now: &str) -> StartVersion {
    start_version(
        Path::new(path),
        &Scripts::default(),
        Some(start.as_bytes()),
        Some(now.as_bytes()),
    )
}

#[test]
fn only_the_parts_that_steer_a_check_count() {
    use StartVersion::{Same, Whole};
    for (path, start, now, expected) in [
        ("src/main.rs", "a", "b", Same),
        ("docs/pytest.ini.md", "a", "b", Same),
        ("pytest.ini", "a", "b", Whole),
        ("deep/down/.eslintignore", "a", "b", Whole),
        (
            "package.json",
            r#"{"scripts": {"test": "a"}}"#,
            r#"{"scripts": {"test": "a"}, "dependencies": {"x": "1"}}"#,
            Same,
        ),
        (
            "package.json",
            r#"{"scripts": {"test": "a"}}"#,
            r#"{"scripts": {"test": "a", "docs": "b"}}"#,
            Same,
        ),
        ("package.json", r#"{"scripts": {"test": "a"}}"#, "not json", Whole),
        ("pyproject.toml", "[project]\nname = \"a\"\n", "[project]\nname = \"b\"\n", Same),
        ("pyproject.toml", "[tool.pytest]\n", "[tool", Whole),
        ("Cargo.toml", "[dependencies]\n", "[dependencies]\nserde = \"1\"\n", Same),
        (
            "conftest.py",
            "import pytest\n",
            "import pytest\n\n@pytest.fixture\ndef db():\n    return 1\n",
            Same,
        ),
        (
            "conftest.py",
            "import pytest\n",
            "import pytest\n\ndef pytest_ignore_collect():\n    return True\n",
            Whole,
        ),
        (
            "conftest.py",
            "def pytest_configure():\n    pass\n",
            "def pytest_configure():\n    import os; os._exit(0)\n",
            Whole,
        ),
        (
            "conftest.py",
            "def pytest_configure():\n    pass\n",
            "def helper():\n    return 2\n\ndef pytest_configure():\n    pass\n",
            Same,
        ),
    ] {
        assert_eq!(version(path, start, now), expected, "{path}: {now}");
    }
}

#[test]
fn other_parts_stay_as_they_are() {
    let merged = |path: &str, start: &str, now: &str| match version(path, start, now) {
        StartVersion::Merged(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{path}: {other:?}"),
    };
    let package = merged(
        "package.json",
        r#"{"scripts": {"test": "jest"}}"#,
        r#"{"scripts": {"test": "true", "pretest": "x"}, "dependencies": {"left-pad": "1"}, "jest": {}}"#,
    );
    let package: serde_json::Value = serde_json::from_str(&package).unwrap();
    assert_eq!(
        package,
        serde_json::json!({"scripts": {"test": "jest"}, "dependencies": {"left-pad": "1"}})
    );
    // A script that runs before another one weakens it.
    merged(
        "package.json",
        r#"{"scripts": {"test": "a"}}"#,
        r#"{"scripts": {"test": "a", "pretest": "b"}}"#,
    );
    let python = merged(
        "pyproject.toml",
        "[project]\nname = \"a\"\n[tool.ruff]\nline-length = 90\n",
        "[project]\nname = \"b\"\n[tool.ruff]\nignore = [\"ALL\"]\n[tool.pytest.ini_options]\naddopts = \"-k no\"\n",
    );
    assert!(python.contains("name = \"b\"") && python.contains("line-length = 90"), "{python}");
    assert!(!python.contains("ALL") && !python.contains("addopts"), "{python}");
    let rust = merged(
        "Cargo.toml",
        "[package]\nname = \"a\"\n",
        "[package]\nname = \"a\"\nautotests = false\n",
    );
    assert!(!rust.contains("autotests"), "{rust}");
}
