use super::*;
use crate::config::CheckCommand;
use std::collections::{BTreeMap, BTreeSet};

fn content(files: &BTreeMap<&str, &str>, path: &Path) -> Option<Vec<u8>> {
    Some(files.get(path.to_str()?)?.as_bytes().to_vec())
}

fn found_in(line: &str, files: &BTreeMap<&str, &str>) -> Scripts {
    let command = CheckCommand::Shell(line.to_owned());
    scripts(&command, Path::new(""), &mut |path| Ok(content(files, path))).unwrap()
}

#[test]
fn the_scripts_of_a_command_are_found_behind_options_and_wrappers() {
    let here = "cd \"$(dirname \"$0\")/..\"\n. \"$(dirname \"$0\")/lib.sh\"\n. $HERE/more.sh\n";
    let files = BTreeMap::from([
        ("t.sh", ""),
        ("a.py", ""),
        ("scripts/test.sh", here),
        ("scripts/lib.sh", ""),
        ("scripts/more.sh", ""),
        ("tools/check.py", ""),
        ("tools/ci.toml", ""),
        ("tests/test_a.py", ""),
        ("test/a.test.js", ""),
        ("setup.js", ""),
        ("run.js", ""),
        ("src/a.py", ""),
        ("web/package.json", r#"{"scripts": {"test": "vitest run"}}"#),
    ]);
    let test = &["scripts/lib.sh", "scripts/more.sh", "scripts/test.sh"][..];
    for (line, expected) in [
        ("bash -euo pipefail scripts/test.sh", test),
        ("bash -o errexit -e scripts/test.sh", test),
        ("bash -ec 'sh t.sh'", &["t.sh"]),
        ("python -W error tools/check.py a.py", &["tools/check.py"]),
        ("python3.12 -u tools/check.py src/a.py", &["tools/check.py"]),
        ("node -r ./setup.js run.js", &["run.js", "setup.js"]),
        ("node --require=./setup.js run.js src/a.js", &["run.js", "setup.js"]),
        ("env -i sh t.sh", &["t.sh"]),
        ("env -u HOME A=1 sh t.sh", &["t.sh"]),
        ("nice -n 5 sh t.sh", &["t.sh"]),
        ("(sh t.sh)", &["t.sh"]),
        ("(cd web && npm test); sh t.sh", &["t.sh"]),
        ("test \"$(sh t.sh)\" = ok", &["t.sh"]),
        ("eval 'sh t.sh'", &["t.sh"]),
        ("uv run tools/check.py", &["tools/check.py"]),
        ("uv run --with x python tools/check.py a.py", &["tools/check.py"]),
        ("poetry run python tools/check.py", &["tools/check.py"]),
        ("npx tsx run.js", &["run.js"]),
        ("pytest -c tools/ci.toml tests/test_a.py", &["tools/ci.toml"]),
        ("ruff check --config tools/ci.toml a.py", &["tools/ci.toml"]),
        // What is checked, and changes together with the code.
        ("pytest tests/test_a.py", &[]),
        ("uv run pytest tests/test_a.py", &[]),
        ("uv run --quiet nose tests/test_a.py", &[]),
        ("python -m unittest tests/test_a.py", &[]),
        ("node --test test/a.test.js", &[]),
        ("wc -c a.py", &[]),
        ("ruff check src/a.py", &[]),
    ] {
        let found = found_in(line, &files);
        let found: Vec<&str> = found.files.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(found, expected, "{line}");
    }
    let found = found_in("find checks -name '*.sh' -exec sh {} ';'", &files);
    assert!(found.contains(Path::new("checks/deep/a.sh")));
    let found = found_in("run-parts checks", &files);
    assert!(found.contains(Path::new("checks/a")));
}

#[test]
fn a_script_that_cannot_be_read_is_an_error() {
    let mut read = |_: &Path| Err("gone".to_owned());
    let command = CheckCommand::Shell("sh t.sh".to_owned());
    let error = scripts(&command, Path::new(""), &mut read).unwrap_err();
    assert!(error.contains("t.sh") && error.contains("gone"), "{error}");
}

#[test]
fn of_tests_that_are_run_as_a_script_only_what_is_no_test_counts() {
    let start = "import unittest\n\nclass Add(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1), 1)\n\nif __name__ == '__main__':\n    unittest.main()\n";
    let files = BTreeMap::from([("tests/test_a.py", start)]);
    let found = found_in("python tests/test_a.py", &files);
    let path = Path::new("tests/test_a.py");
    let version =
        |now: &str| start_version(path, &found, Some(start.as_bytes()), Some(now.as_bytes()));
    assert_eq!(version(&start.replace("add(1)", "add(1, 0)")), StartVersion::Same);
    for now in [
        start.replace("unittest.main()", "pass"),
        format!("raise SystemExit(0)\n{start}"),
        start.replace("class Add", "class Add(object):\n    print(1)\n\nclass Add2"),
    ] {
        assert_eq!(version(&now), StartVersion::Whole, "{now}");
    }
    // A function that is no test may be the check.
    let start = "def main():\n    check()\n\nmain()\n";
    let now = start.replace("check()", "pass");
    let version = start_version(path, &found, Some(start.as_bytes()), Some(now.as_bytes()));
    assert_eq!(version, StartVersion::Whole);
    let found = found_in("node test/a.test.js", &BTreeMap::from([("test/a.test.js", "")]));
    let start = "const test = require('node:test');\ntest('a', () => { assert(f(1)); });\n";
    for (now, expected) in [
        (start.replace("f(1)", "f(1, 2)"), StartVersion::Same),
        (format!("process.exit(0);\n{start}"), StartVersion::Whole),
        (format!("const x = process.exit(0);\n{start}"), StartVersion::Whole),
    ] {
        let path = Path::new("test/a.test.js");
        let version = start_version(path, &found, Some(start.as_bytes()), Some(now.as_bytes()));
        assert_eq!(version, expected, "{now}");
    }
}

#[test]
fn every_statement_of_a_conftest_that_does_something_counts() {
    let start = "import pytest\nROOT = 1\n\ndef helper():\n    return 1\n";
    for added in [
        "raise SystemExit(0)",
        "from tests.hooks import *",
        "from tests.hooks import pytest_configure",
        "import sys; sys.exit(0)",
        "import os\nos._exit(0)",
        "pytest_plugins = ['tests.hooks']",
        "collect_ignore = ['a.py']",
        "helper()",
        "x = helper()",
        "pytest.assert_ = None",
        "for one in []: pass",
        "class A:\n    helper()",
        "@helper\ndef b(): pass",
        "@pytest.fixture\ndef db():\n    pytest.skip('no')",
        "@pytest.fixture(autouse=True)\ndef db():\n    pass",
        "def pytest_runtest_call(item):\n    pass",
        "@pytest.fixture\ndef fake():\n    sys.modules['calc'] = None",
        "def broken(",
    ] {
        let now = format!("{start}\n{added}\n");
        assert_eq!(version("conftest.py", start, &now), StartVersion::Whole, "{added}");
    }
    for added in [
        "from tests.data import users, roles as r",
        "import json",
        "@pytest.fixture(scope='session')\ndef db(tmp_path):\n    return connect(tmp_path)",
        "@pytest.fixture\ndef env(monkeypatch):\n    monkeypatch.setattr(app, 'x', 1)",
        "class User:\n    name: str = 'a'\n    def greet(self):\n        return helper()",
        "@pytest.fixture\ndef server():\n    process = start(re.compile('x'))\n    yield process\n    process.kill()",
        "@pytest.fixture\ndef browser():\n    driver = open_browser()\n    yield driver\n    driver.quit()",
        "DATA = {'a': [1, 2]}\nHERE = Path(__file__).parent",
        "sys.path.insert(0, str(Path(__file__).parent))",
        "if TYPE_CHECKING:\n    from app import App",
        "# a comment",
    ] {
        let now = format!("{start}\n{added}\n");
        assert_eq!(version("conftest.py", start, &now), StartVersion::Same, "{added}");
        // A new file is no different from an empty one.
        let path = Path::new("conftest.py");
        let new = start_version(path, &Scripts::default(), None, Some(now.as_bytes()));
        assert_eq!(new, StartVersion::Same, "{added}");
    }
}

#[test]
fn a_new_module_that_python_takes_for_one_of_the_runner_counts() {
    let found = found_in("cd app && python -m unittest", &BTreeMap::new());
    let new = |path: &str| start_version(Path::new(path), &found, None, Some(b"x = 1\n"));
    for path in ["app/argparse.py", "app/_pytest/__init__.py", "app/pluggy.py", "app/io.pyc"] {
        assert_eq!(new(path), StartVersion::Whole, "{path}");
    }
    for path in ["argparse.py", "app/sub/argparse.py", "app/calc.py", "app/argparse.txt"] {
        assert_eq!(new(path), StartVersion::Same, "{path}");
    }
    // A module of the project that was there before may change.
    let path = Path::new("app/queue.py");
    assert_eq!(start_version(path, &found, Some(b"a = 1"), Some(b"a = 2")), StartVersion::Same);
    let found = found_in("PYTHONPATH=lib pytest", &BTreeMap::new());
    assert!(may_steer(Path::new("lib/types.py"), &found));
    assert!(!may_steer(Path::new("types.py"), &found));
}

#[test]
fn a_new_file_without_which_there_was_no_check_weakens_nothing() {
    let none = BTreeMap::new();
    let make = BTreeMap::from([("Makefile", "test:\n"), ("package.json", "{}")]);
    let new = |line: &str, files: &BTreeMap<&str, &str>, path: &str| {
        start_version(
            Path::new(path),
            &found_in(line, files),
            None,
            Some(b"{\"jest\": {\"a\": 1}}"),
        )
    };
    for (line, path) in [
        ("make test", "Makefile"),
        ("make -C sub test", "sub/GNUmakefile"),
        ("make test", "rules.mk"),
        ("just test", "justfile"),
        ("task test", "Taskfile.yml"),
        ("npm test", "package.json"),
        ("npm --prefix web test", "web/package.json"),
    ] {
        assert_eq!(new(line, &none, path), StartVersion::Same, "{line}: {path}");
    }
    for (line, path) in [
        ("make test", "GNUmakefile"),
        ("make test", "rules.mk"),
        ("cargo test", "Makefile"),
        ("pytest", "pytest.toml"),
    ] {
        assert_eq!(new(line, &make, path), StartVersion::Whole, "{line}: {path}");
    }
    let found = found_in("cargo test --manifest-path app/Cargo.toml", &none);
    let root = b"[workspace]\nexclude = [\"a\"]\n";
    let version = start_version(Path::new("Cargo.toml"), &found, None, Some(root));
    assert_ne!(version, StartVersion::Same);
    // In a folder below, it hides the one that was there.
    let cargo = BTreeMap::from([("Cargo.toml", "[workspace]\n")]);
    let found = found_in("cd sub && cargo test", &cargo);
    let hides = b"[package]\nautotests = false\n";
    let version = start_version(Path::new("sub/Cargo.toml"), &found, None, Some(hides));
    assert_ne!(version, StartVersion::Same);
}

#[test]
fn ordinary_settings_beside_those_that_steer_may_change() {
    let vite = "import { defineConfig } from 'vite';\nexport default defineConfig({\n  test: { environment: 'node' },\n});\n";
    let with = |setting: &str| {
        format!(
            "import path from 'node:path';\n{}",
            vite.replace("  test", &format!("  {setting},\n  test"))
        )
    };
    let alias = with("resolve: { alias: { '@': path.resolve(__dirname, 'src') } }");
    for (path, start, now) in [
        (
            "deno.json",
            "{\"tasks\": {\"a\": \"b\"}}",
            "{\"tasks\": {\"a\": \"b\"}, \"imports\": {\"x\": \"jsr:x\"}}",
        ),
        ("deno.jsonc", "{\n// a\n\"lint\": {},}", "{\"lint\": {}, \"imports\": {}}"),
        (
            "tox.ini",
            "[testenv]\ndeps = a\ncommands = pytest\n",
            "[testenv]\ndeps =\n    a\n    b\ncommands = pytest\n",
        ),
        (
            "setup.cfg",
            "[metadata]\nname = a\n",
            "[metadata]\nname = a\n[options]\ninstall_requires =\n  b\n",
        ),
        (
            "pytest.ini",
            "[pytest]\naddopts = --strict-markers\n",
            "[pytest]\naddopts = --strict-markers\nmarkers =\n    slow: x\n",
        ),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = \"--strict-markers\"\n",
            "[tool.pytest.ini_options]\naddopts = \"--strict-markers\"\nmarkers = [\"slow: x\"]\n",
        ),
        ("pyproject.toml", "", "[tool.hatch.envs.test]\ndependencies = [\"pytest\"]\n"),
        ("vite.config.ts", vite, &alias),
        (
            "tsconfig.json",
            "{\"include\": [\"src\"], \"compilerOptions\": {\"strict\": true}}",
            "{\"include\": [\"src\", \"lib\"], \"compilerOptions\": {\"strict\": true, \"paths\": {\"@/*\": [\"src/*\"]}}}",
        ),
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"a\"]\n",
            "[workspace]\nmembers = [\"a\", \"b\"]\n",
        ),
        (
            "rust-toolchain.toml",
            "[toolchain]\nchannel = \"1.90\"\n",
            "[toolchain]\nchannel = \"1.90\"\ncomponents = [\"clippy\"]\n",
        ),
        (".cargo/config.toml", "", "[net]\nretry = 3\n"),
        ("go.work", "go 1.22\n\nuse ./a\n", "go 1.22\n\nuse (\n\t./a\n\t./b\n)\n"),
    ] {
        assert_eq!(version(path, start, now), StartVersion::Same, "{path}: {now}");
    }
    let evil = with("resolve: { alias: (process.exit(0), {}) }");
    let fake = with("resolve: { alias: { vitest: './fake.js' } }");
    let none = vite.replace("'node'", "'node', exclude: ['**']");
    for (path, start, now) in [
        ("deno.json", "{\"tasks\": {\"a\": \"b\"}}", "{\"tasks\": {\"a\": \"true\"}}"),
        ("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\ncommands = true\n"),
        ("setup.cfg", "", "[tool:pytest]\naddopts = -k no\n"),
        ("vite.config.ts", vite, evil.as_str()),
        ("vite.config.ts", vite, &fake),
        ("vite.config.ts", vite, &none),
        (
            "tsconfig.ci.json",
            "{\"compilerOptions\": {\"strict\": true}}",
            "{\"compilerOptions\": {\"strict\": false}}",
        ),
        ("tsconfig.json", "{\"include\": [\"src\", \"lib\"]}", "{\"include\": [\"src\"]}"),
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"a\", \"b\"]\n",
            "[workspace]\nmembers = [\"a\"]\n",
        ),
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"a\"]\n",
            "[workspace]\nmembers = [\"a\"]\ndefault-members = [\"a\"]\n",
        ),
        ("Cargo.toml", "[workspace]\n", "[workspace]\nexclude = [\"a\"]\n"),
        ("Cargo.toml", "[package]\n", "[package]\n[[test]]\nname = \"a\"\nharness = false\n"),
        (
            "rust-toolchain.toml",
            "[toolchain]\nchannel = \"1.90\"\n",
            "[toolchain]\npath = \"fake\"\n",
        ),
        ("rust-toolchain", "1.90", "fake"),
        (".cargo/config.toml", "", "[target.x86_64-unknown-linux-gnu]\nrunner = \"true\"\n"),
        (".cargo/config.toml", "", "[alias]\nt = \"version\"\n"),
        ("go.work", "go 1.22\nuse ./a\nuse ./b\n", "go 1.22\nuse ./a\n"),
        ("babel.config.js", "a", "b"),
        (".babelrc.json", "a", "b"),
    ] {
        assert_ne!(version(path, start, now), StartVersion::Same, "{path}: {now}");
    }
}

#[test]
fn the_scripts_of_a_command_are_found() {
    let files = BTreeMap::from([
        ("t.sh", "set -e\n. ./lib.sh\nbash more.sh && ./product --selftest\npython3 app.py\n"),
        ("more.sh", "echo more"),
        ("package.json", r#"{"scripts": {"test": "node run.js", "lint": "cd tools; sh lint.sh"}}"#),
        ("web/package.json", r#"{"scripts": {"test": "vitest run"}}"#),
        (
            "loop/package.json",
            r#"{"scripts": {"test": "npm run unit", "unit": "npm test && sh u.sh"}}"#,
        ),
        (
            "mk/Makefile",
            "PY = python3\nall: test\ntest: lint\n\t@$(PY) t.py\nlint:\n\tsh ./lint.sh\nother:\n\tsh other.sh\n",
        ),
        (
            "ci/package.json",
            r#"{"scripts": {"test": "sh ci/test.sh", "lint": "sh tools/lint.sh", "unit": "node unit.js",
                "both": "sh fast.sh && npm run fast", "fast": "node fast.js", "all": "npx run-s lint"}}"#,
        ),
        ("ci/ci/test.sh", "set -e\nnpm run lint; npm run unit\n"),
        ("ci/tools/lint.sh", "sh tools/all.sh\n"),
        ("ci/fast.sh", "npm run fast; run-s all\nnpm --prefix none ci\n"),
        ("inc/Makefile", "-include rules/common.mk\nall: check\n"),
        ("inc/rules/common.mk", "check:\n\tsh check.sh\n"),
        ("tools/__main__.py", ""),
        ("bin/mytest", ""),
    ]);
    for (line, expected) in [
        ("cargo test", &[][..]),
        ("npm --prefix loop test", &["loop/u.sh"]),
        // What a script runs is followed to other scripts of shells.
        ("npm --prefix ci test", &["ci/ci/test.sh", "ci/tools/all.sh", "ci/tools/lint.sh"]),
        (
            "cd ci; npm run both",
            &["ci/fast.js", "ci/fast.sh", "ci/tools/all.sh", "ci/tools/lint.sh"],
        ),
        ("make -C mk test", &["mk/lint.sh", "mk/t.py"]),
        ("make -C mk", &["mk/lint.sh", "mk/t.py"]),
        ("make -C mk other", &["mk/other.sh"]),
        ("make -C inc", &["inc/check.sh", "inc/rules/common.mk"]),
        ("T=more.sh; sh $T", &["more.sh"]),
        ("S=./more.sh && $S", &["more.sh"]),
        ("sh ${X:-more.sh}", &["more.sh"]),
        ("export T=more.sh; bash ${T}", &["more.sh"]),
        ("flock /tmp/lock sh more.sh", &["more.sh"]),
        ("taskset 1 sh more.sh", &["more.sh"]),
        ("unshare sh more.sh", &["more.sh"]),
        ("env -S 'sh more.sh'", &["more.sh"]),
        ("PATH=./bin:$PATH mytest", &["bin/mytest"]),
        ("python3 tools", &["tools", "tools/__main__.py"]),
        ("awk -f more.sh a.txt", &["more.sh"]),
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
        ("npm test", &["run.js"]),
        ("npm run lint", &["tools/lint.sh"]),
        ("npm ci && npm test && npm run lint", &["run.js", "tools/lint.sh"]),
        ("npm --prefix web test", &[]),
        ("make -C sub -f checks.mk", &["sub/checks.mk"]),
    ] {
        let mut read = |path: &Path| Ok(content(&files, path));
        let command = CheckCommand::Shell(line.to_owned());
        let found = scripts(&command, Path::new(""), &mut read).unwrap();
        let found: Vec<&str> = found.files.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(found, expected, "{line}");
    }
    let looped = CheckCommand::Shell("for one in checks/*.sh; do sh $one; done".to_owned());
    let looped = scripts(&looped, Path::new(""), &mut |_| Ok(None)).unwrap();
    assert!(looped.contains(Path::new("checks/new.sh")) && !looped.contains(Path::new("a.sh")));
    let argv = ["bash", "t.sh"].map(str::to_owned).to_vec();
    let found = scripts(&CheckCommand::Argv(argv), Path::new("sub"), &mut |_| Ok(None)).unwrap();
    assert_eq!(found.files, BTreeSet::from(["sub/t.sh".into()]));
    // A file that would run instead of the installed module counts even if it is new.
    let command = CheckCommand::Shell("python -m pytest".to_owned());
    let found = scripts(&command, Path::new(""), &mut |_| Ok(None)).unwrap();
    assert_eq!(found.shadows.len(), 3);
    let shadow = start_version(Path::new("pytest.py"), &found, None, Some(b"exit(0)"));
    assert_eq!(shadow, StartVersion::Whole);
    // Scripts that run each other end.
    let mut endless = |_: &Path| Ok(Some(b"sh a.sh\nsh b.sh\n".to_vec()));
    let command = CheckCommand::Shell("sh a.sh".into());
    assert_eq!(scripts(&command, Path::new(""), &mut endless).unwrap().files.len(), 2);
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
        ("pytest.toml", "a", "b", Whole),
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
    let tox = merged(
        "tox.ini",
        "[testenv]\ndeps = a\ncommands =\n    pytest\n",
        "[testenv]\ndeps =\n    a\n    b\ncommands = true\n[pytest]\naddopts = -k no\n",
    );
    assert_eq!(tox, "[testenv]\ncommands =\n    pytest\ndeps =\n    a\n    b\n");
    let markers = merged(
        "pyproject.toml",
        "[tool.pytest.ini_options]\naddopts = \"--strict-markers\"\n",
        "[tool.pytest.ini_options]\naddopts = \"-k no\"\nmarkers = [\"slow\"]\n",
    );
    assert!(markers.contains("strict") && markers.contains("slow"), "{markers}");
    let types = merged(
        "tsconfig.json",
        r#"{"compilerOptions": {"strict": true}}"#,
        r#"{"compilerOptions": {"strict": false, "paths": {}}}"#,
    );
    let types: serde_json::Value = serde_json::from_str(&types).unwrap();
    let expected = serde_json::json!({"compilerOptions": {"strict": true, "paths": {}}});
    assert_eq!(types, expected);
    let rust = merged(
        "Cargo.toml",
        "[package]\nname = \"a\"\n",
        "[package]\nname = \"a\"\nautotests = false\n",
    );
    assert!(!rust.contains("autotests"), "{rust}");
}

/// A file that a script could do without is no first check.
#[test]
fn a_new_file_that_a_script_runs_if_it_exists_is_not_part_of_the_check() {
    for (script, is_weakened) in [
        (". ./local.sh\n", false),
        ("[ -f local.sh ] && . ./local.sh\nsh t.sh\n", true),
        ("if [ -r ./local.sh ]; then\n  . ./local.sh\nfi\n", true),
        ("test -e local.sh && sh local.sh\n", true),
        (". ./local.sh 2>/dev/null || true\n", true),
        ("source local.sh || :\n", true),
    ] {
        let files = BTreeMap::from([("run.sh", script)]);
        let scripts = found_in("sh run.sh", &files);
        let version = start_version(Path::new("local.sh"), &scripts, None, Some(b"exit 0\n"));
        assert_eq!(version == StartVersion::Whole, is_weakened, "{script}");
    }
}
