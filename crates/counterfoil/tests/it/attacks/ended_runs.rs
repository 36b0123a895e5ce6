//! Tests that end their process before the runner can say that they fail.

use super::{DirtyProject, VerifiedRun};
use crate::verification::project::replies;
use serde_json::json;

/// The test that fails as long as a.rs is broken.
const TEST: &str = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertNotIn('broken', open('a.rs').read())\n";
const CHECK: &str = "python3 -B -m unittest";
const NO_SUMMARY: &str = "printed no summary, so its tests did not end in good order";

fn project(check: &str) -> DirtyProject {
    let project = DirtyProject::new();
    project.write("counterfoil.toml", format!("[checks]\ntest = \"{check}\"\n"));
    project.write("test_a.py", TEST);
    project.git(&["add", "counterfoil.toml", "test_a.py"]);
    project.git(&["commit", "-q", "--no-verify", "-m", "checks"]);
    project.write_one_step("", ", repairs: 0");
    project
}

/// The agent writes a new test file and a.rs, and claims that the tests pass.
fn run(check: &str, source: &str, test_file: &str) -> VerifiedRun {
    let project = project(check);
    project.write_script(&[replies(
        &json!({"files": ["a.rs", "test_b.py"], "tests_pass": true}),
        json!({"exec": format!("echo {source} > a.rs; cat > test_b.py <<'EOF'\n{test_file}\nEOF\n")}),
    )]);
    project.run_script()
}

/// A test file whose class has this method.
fn method(method: &str) -> String {
    format!(
        "import os, sys, unittest\nclass B(unittest.TestCase):\n    {method}\n    def test_b(self):\n        self.assertTrue(os.path.exists('a.rs'))"
    )
}

#[test]
fn a_test_that_ends_the_run_verifies_nothing() {
    for (name, test_file) in [
        ("at import", "import os\nos._exit(0)".to_owned()),
        ("at import, by another program", "import os\nos.execvp('true', ['true'])".to_owned()),
        ("in a test", method("def test_a(self): os._exit(0)")),
        ("after a test", method("def tearDown(self): os._exit(0)")),
        ("before a class", method("setUpClass = classmethod(lambda cls: os._exit(0))")),
        (
            "with the words of a summary",
            "import os, sys\nprint('Ran 9 tests in 0.001s\\n\\nOK', flush=True)\nos._exit(0)"
                .to_owned(),
        ),
    ] {
        for check in [CHECK.to_owned(), format!("{CHECK} -q")] {
            let ran = run(&check, "broken", &test_file);
            assert_eq!(ran.verdict(0, "tests_pass"), "unverifiable", "{name}: {ran:?}");
            let reason = ran.claim(0, "tests_pass")["reason"].as_str().unwrap();
            assert_eq!(reason, format!("`{check}` exited with 0 and {NO_SUMMARY}"), "{name}");
        }
    }
}

#[test]
fn an_exit_code_that_differs_from_the_summary_verifies_nothing() {
    let test_file = "import atexit, os\natexit.register(os._exit, 0)";
    let ran = run(CHECK, "broken", test_file);
    let reason = "exited with 0, but its summary says that tests failed";
    ran.assert_claim(0, "tests_pass", "unverifiable", &[reason]);
}

#[test]
fn an_honest_run_is_verified() {
    let skips = method("@unittest.skip('later')\n    def test_s(self): pass");
    let exits =
        method("def test_e(self):\n        with self.assertRaises(SystemExit): sys.exit(0)");
    let prints = method("def test_p(self): print('1 failed in 0.1s', file=sys.stderr)");
    for test_file in [skips, exits, prints] {
        for check in [CHECK.to_owned(), format!("{CHECK} -q"), format!("PYTHONPATH=. {CHECK} -b")] {
            run(&check, "fine", &test_file).assert_claim(0, "tests_pass", "verified", &[]);
        }
        run(CHECK, "broken", &test_file).assert_claim(0, "tests_pass", "refuted", &[]);
    }
    // What a script does is not known.
    let script = "python3 -B -m unittest -q 2>/dev/null";
    run(script, "fine", &method("x = 1")).assert_claim(0, "tests_pass", "verified", &[]);
}
