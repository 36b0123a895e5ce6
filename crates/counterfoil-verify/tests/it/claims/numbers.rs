//! Numbers that are no counts, counts that cannot be compared, and claims that contradict themselves.

use crate::claims::kinds::{REFUTED, UNVERIFIABLE, VERIFIED};
use crate::claims::{TestWorkspace, notes, short};
use counterfoil_contract::claim::{Claim, ClaimKind};
use serde_json::{Value, json};

/// A check that passes with 3 tests.
const THREE: &str = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'";

fn run(line: &str) -> Claim {
    Claim { run: Some(line.to_owned()), ..Claim::new(ClaimKind::Command) }
}

/// Numbers as the answer of an agent has them.
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_number_that_is_no_count_differs_from_every_count() {
    let workspace = TestWorkspace::with(&[]);
    let verify = |n: &str| {
        let value = parse(&format!(r#"{{"n": {n}, "list": [1, 2, 3]}}"#));
        short(workspace.verify_claim("n", Claim::count_of("/list"), &value))
    };
    for n in ["18446744073709551616", "-1", "0.5", "-3", "3.5", r#""3.5""#] {
        let reason = format!("claimed {}, `list` has 3", n.trim_matches('"'));
        assert_eq!(verify(n), (REFUTED, reason), "{n}");
    }
    assert_eq!(verify("1e30").0, REFUTED);
    for n in ["3", "3.0", "3e0", r#""3""#] {
        assert_eq!(verify(n), (VERIFIED, String::new()), "{n}");
    }
    for n in [r#""3 items""#, r#""1,003""#, "true", "{}"] {
        assert_eq!(verify(n), (UNVERIFIABLE, "it is not a number".to_owned()), "{n}");
    }
    assert_eq!(verify("null"), (None, String::new()));
    let many = parse(r#"{"n": [18446744073709551615, 18446744073709551615], "list": []}"#);
    let report = workspace.verify_claim("n/*", Claim::count_of("/list"), &many);
    assert_eq!(short(report).0, REFUTED);
}

#[test]
fn every_count_of_a_command_is_compared() {
    let workspace = TestWorkspace::with(&[]);
    let observed = "passed, observed 3";
    for (tests, verdict, reason) in [
        (r#"{"passed": 3}"#, VERIFIED, ""),
        (r#"{"passed": 3.0}"#, VERIFIED, ""),
        (r#"{"total": 3}"#, VERIFIED, ""),
        (r#"{"status": "pass", "passed": 3, "total": null}"#, VERIFIED, ""),
        (r#"{"passed": 9999}"#, REFUTED, observed),
        (r#"{"total": 9999}"#, REFUTED, "claimed 9999 tests in total, observed 3"),
        (r#"{"failed": 0, "passed": 0, "total": 9999}"#, REFUTED, "claimed 9999 tests in total"),
        (r#"{"status": "not-run", "passed": 9999}"#, REFUTED, observed),
        (r#"{"status": "pass", "passed": 18446744073709551616}"#, REFUTED, observed),
        (r#"{"status": "pass", "passed": 9999.5}"#, REFUTED, "claimed 9999.5 passed, observed 3"),
        (r#"{"status": "pass", "passed": -5}"#, REFUTED, "claimed -5 passed, observed 3"),
        (r#"{"status": "pass", "passed": 1e30}"#, REFUTED, observed),
        (r#"{"status": "pass", "total": 3, "details": {"passed": 9999}}"#, REFUTED, observed),
        (r#"{"failed": 7.5}"#, REFUTED, "claimed to fail, but"),
        (
            r#"{"status": "pass", "passed": "9,999"}"#,
            UNVERIFIABLE,
            r#"`passed` is not a number: "9,999""#,
        ),
        (
            r#"{"status": "pass", "passed": "9999 tests"}"#,
            UNVERIFIABLE,
            r#"`passed` is not a number: "9999 tests""#,
        ),
        (r#"{"passed": "9,999"}"#, UNVERIFIABLE, "`passed` is not a number"),
    ] {
        let value = parse(&format!(r#"{{"tests": {tests}}}"#));
        let (found, why) = short(workspace.verify_claim("tests", run(THREE), &value));
        assert_eq!(found, verdict, "{tests}: {why}");
        assert!(why.contains(reason), "{tests}: {why}");
        assert_eq!(why.is_empty(), reason.is_empty(), "{tests}: {why}");
    }
}

#[test]
fn counts_are_not_verified_without_figures() {
    let workspace = TestWorkspace::with(&[]);
    let no_figures = "prints no figures in a known format to compare the counts with";
    for (tests, line, verdict, reason) in [
        (json!({"status": "pass", "passed": 3}), "true", UNVERIFIABLE, no_figures),
        (json!({"passed": 3}), "true", UNVERIFIABLE, no_figures),
        (json!({"status": "fail", "failed": 3}), "false", UNVERIFIABLE, no_figures),
        (json!({"status": "pass", "failed": 0}), "true", VERIFIED, ""),
        (json!({"status": "pass", "passed": 3}), "false", REFUTED, "claimed to succeed"),
        (json!({"status": "pass", "passed": 9999.5}), "true", REFUTED, "no possible number"),
        // A stale claim would be one that agreed.
        (json!({"status": "pass", "passed": 3}), "touch new", UNVERIFIABLE, no_figures),
    ] {
        let report = workspace.verify_claim("tests", run(line), &json!({ "tests": tests }));
        let (found, why) = short(report);
        assert_eq!(found, verdict, "{tests}: {why}");
        assert!(why.contains(reason), "{tests}: {why}");
    }
    let several = json!({"suites": [{"status": "pass", "passed": 9999}, {"status": "pass"}]});
    let (found, why) = short(workspace.verify_claim("suites/*", run(THREE), &several));
    assert_eq!(found, UNVERIFIABLE);
    assert!(why.contains("the counts are in several values"), "{why}");
}

#[test]
fn a_claim_that_contradicts_itself_is_refuted_whatever_is_observed() {
    let workspace = TestWorkspace::with(&[]);
    let tolerated = "echo 'test result: ok. 3 passed; 2 failed; 0 ignored'";
    for (tests, why) in [
        (json!({"status": "pass", "failed": 2}), "claimed to succeed with 2 failed"),
        (json!({"status": "pass", "details": {"failed": 2}}), "claimed to succeed with 2 failed"),
        (
            json!({"status": "pass", "success": false}),
            "`status` says that it succeeds, `success` that it fails",
        ),
        (
            json!({"status": "fail", "ok": true}),
            "`ok` says that it succeeds, `status` that it fails",
        ),
        (
            json!({"success": true, "failed": true}),
            "`success` says that it succeeds, `failed` that it fails",
        ),
    ] {
        let value = json!({ "tests": tests });
        let reason = format!("the claim contradicts itself: {why}");
        for line in ["true", "false", tolerated] {
            let report = workspace.verify_claim("tests", run(line), &value);
            assert_eq!(short(report), (REFUTED, reason.clone()), "{line}");
        }
        let report = workspace.verify_claim("tests", Claim::check("missing"), &value);
        assert_eq!(short(report), (REFUTED, reason), "no check");
    }
}

#[test]
fn commands_beyond_the_limit_are_not_passed_over() {
    let workspace = TestWorkspace::with(&[]);
    let claim = || Claim::new(ClaimKind::Commands).allowing("true*").allowing("false");
    let commands = |count: usize| (0..count).map(|n| format!("cmd: true {n}")).collect::<Vec<_>>();
    let verify = |mut each: Vec<String>, last: &str| {
        each.push(last.to_owned());
        workspace.verify_claim("c", claim(), &json!({ "c": each })).unwrap()
    };
    let beyond = "at most 100 commands of a field are run, so 1 more was not run: `false`";
    let report = verify(commands(100), "cmd: false");
    assert_eq!(short(Some(report)), (UNVERIFIABLE, beyond.to_owned()));
    let mut failing = commands(99);
    failing.insert(0, "cmd: false".to_owned());
    let report = verify(failing, "cmd: true");
    assert_eq!(notes(&report), [beyond.replace("`false`", "`true`")]);
    let reason = "1 of 100 commands fails: `false` (exit code 1)".to_owned();
    assert_eq!(short(Some(report)), (REFUTED, reason));
    // Tasks for a person are not counted.
    let tasks = (0..100).map(|n| format!("manual: look at {n}")).collect();
    assert_eq!(short(Some(verify(tasks, "cmd: false"))).0, REFUTED);
    assert_eq!(short(Some(verify(commands(99), "cmd: true"))).0, VERIFIED);
}

#[test]
fn counts_of_unittest_are_read_from_its_summary_alone() {
    let test = "import sys, unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        print('9 passed in 0.1s')\n    @unittest.skip('later')\n    def test_b(self): pass\n    @unittest.expectedFailure\n    def test_c(self): self.fail()\n";
    let bar = "-".repeat(70);
    let fake = format!("{bar}\\nRan 9 tests in 0.1s\\n\\nOK");
    let forged = format!(
        "{test}import atexit\natexit.register(lambda: print('{fake}', file=sys.stderr, flush=True))\n"
    );
    let failing = format!("{test}    def test_d(self): self.fail()\n");
    let line = "python3 -B -m unittest";
    let script = "sh -c 'python3 -B -m unittest || exit 1'";
    let honest = json!({"status": "pass", "total": 3, "passed": 1, "skipped": 2});
    let nine = json!({"status": "pass", "passed": 9});
    for (test, line, tests, verdict) in [
        (test, line, &honest, VERIFIED),
        (test, "python3 -B -m unittest -q test_a", &honest, VERIFIED),
        (test, line, &nine, REFUTED),
        // In a script, it is not known which summary is the runner's.
        (test, script, &nine, UNVERIFIABLE),
        (forged.as_str(), line, &nine, UNVERIFIABLE),
        (
            failing.as_str(),
            line,
            &json!({"status": "fail", "total": 4, "passed": 1, "failed": 1}),
            VERIFIED,
        ),
        (failing.as_str(), line, &json!({"status": "fail", "failed": 2}), REFUTED),
    ] {
        let workspace = TestWorkspace::with(&[("test_a.py", test)]);
        let report = workspace.verify_claim("tests", run(line), &json!({ "tests": tests }));
        let (found, why) = short(report);
        assert_eq!(found, verdict, "{line}: {tests}: {why}");
    }
}

#[test]
fn a_success_without_a_test_that_passed_is_not_verified() {
    let skips = "import unittest\nfrom product import add\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1, 2), 3)\n    def test_b(self):\n        self.assertEqual(add(2, 2), 4)\n";
    let product = "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('no')\n";
    let class = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): self.assertTrue(True)\nclass B(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls): raise unittest.SkipTest('no server')\n    def test_b(self): self.fail()\n";
    let workspace =
        TestWorkspace::with(&[("test_a.py", skips), ("test_b.py", class), ("product.py", product)]);
    let empty = "echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured'";
    let one = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured'";
    let none = "exited with 0, but it ran no test";
    for (line, verdict, why) in [
        (
            "python3 -B -m unittest test_a".to_owned(),
            UNVERIFIABLE,
            "`python3 -B -m unittest test_a` exited with 0, but no test passed: 2 skipped of 2",
        ),
        ("sh -c 'python3 -B -m unittest test_a'".to_owned(), UNVERIFIABLE, "no test passed"),
        // One test passed, and a class counts as skipped.
        ("python3 -B -m unittest test_b".to_owned(), VERIFIED, ""),
        (empty.to_owned(), UNVERIFIABLE, none),
        (format!("{empty}; {one}; {empty}"), VERIFIED, ""),
        // Of several runs, only the last is counted.
        ("echo '3 passed in 0.10s'; echo '1 skipped in 0.01s'".to_owned(), VERIFIED, ""),
        ("echo '0 errors, 0 warnings in 0.5s'".to_owned(), VERIFIED, ""),
        ("true".to_owned(), VERIFIED, ""),
    ] {
        let report = workspace.verify_claim("tests", run(&line), &json!({"tests": true}));
        let (found, reason) = short(report);
        assert_eq!(found, verdict, "{line}: {reason}");
        assert!(reason.contains(why), "{line}: {reason}");
    }
}

#[test]
fn a_check_that_is_run_by_itself_does_not_pass_without_a_test_that_passed() {
    let line = |counts: &str| format!("test = \"echo 'test result: ok. {counts}'\"\n");
    for (checks, exit_code, reason) in [
        (line("2 passed; 0 failed; 0 ignored"), Some(0), ""),
        (
            line("0 passed; 0 failed; 3 ignored"),
            None,
            "exited with 0, but no test passed: 3 skipped",
        ),
        (line("0 passed; 0 failed; 0 ignored"), None, "exited with 0, but it ran no test"),
        ("test = \"true\"\n".to_owned(), Some(0), ""),
    ] {
        let workspace = TestWorkspace::with(&[]).check(&format!("[checks]\n{checks}"));
        // The second time, the outcome comes from the cache.
        for _ in 0..2 {
            let run = workspace.run_check("test");
            assert_eq!((run.exit_code, run.passed()), (exit_code, exit_code.is_some()));
            assert!(run.reason.contains(reason), "{}", run.reason);
        }
    }
}
