//! Changes of tests between two versions of files.

use counterfoil_contract::claim::{ClaimPolicy, Verdict};
use counterfoil_verify::inventory::{TestDelta, TestName, compare, report};
use std::path::Path;

/// A path with the contents before and after.
type File<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

fn between(files: &[File<'_>]) -> TestDelta {
    compare(files.iter().map(|(path, before, after)| {
        (Path::new(*path), before.map(str::as_bytes), after.map(str::as_bytes))
    }))
}

/// The changes of tests, one per line.
pub(super) fn render(delta: &TestDelta) -> String {
    let mut lines = Vec::new();
    let mut list = |what: &str, tests: &[TestName]| {
        lines.extend(tests.iter().map(|test| format!("{what} {test}")));
    };
    list("+", &delta.added);
    list("-", &delta.removed);
    list("skipped", &delta.skipped);
    list("emptied", &delta.emptied);
    lines.extend(delta.moved.iter().map(|pair| format!("moved {} to {}", pair.from, pair.to)));
    lines.extend(delta.renamed.iter().map(|pair| format!("renamed {} to {}", pair.from, pair.to)));
    for weak in &delta.weakened {
        lines.push(format!("{} {}s {} to {}", weak.test, weak.what, weak.before, weak.after));
    }
    lines.extend(delta.notes.iter().map(|note| format!("note {note}")));
    lines.join("\n")
}

const TWO: &str = "#[test]\nfn a() { check(1); }\n#[test]\nfn b() { check(2); }\n";

#[test]
fn one_file() {
    let py = "def test_a():\n    check(1)\n";
    let long = "#[test] fn a() { let x = make(1, 2); let y = make(3, 4); assert_eq!(x.sum(), 3); assert_eq!(y.sum(), 7); }";
    for (path, before, after, expected) in [
        ("a.rs", TWO, TWO, ""),
        ("a.rs", TWO, "#[test]\nfn a() { check(1); }\n", "- b (a.rs:4)"),
        ("a.rs", "", TWO, "+ a (a.rs:2)\n+ b (a.rs:4)"),
        ("a.rs", TWO, "", "- a (a.rs:2)\n- b (a.rs:4)"),
        // Layout and comments do not count.
        ("a.rs", TWO, "#[test] fn b() {\n// why\ncheck(2); }\n#[test] fn a() { check( 1 ); }", ""),
        (
            "a.rs",
            TWO,
            "#[test] fn a() { check(1); }\n// #[test] fn b() { check(2); }",
            "- b (a.rs:4)",
        ),
        (
            "a.rs",
            TWO,
            "#[test] fn a() { check(1); }\n#[ignore] #[test] fn b() { check(2); }",
            "skipped b (a.rs:2)",
        ),
        ("a.rs", TWO, "#[test] fn a() { check(1); }\nfn b() { check(2); }", "- b (a.rs:4)"),
        ("a.rs", TWO, "#[test] fn a() {}\n#[test] fn b() { check(2); }", "emptied a (a.rs:1)"),
        (
            "a.rs",
            TWO,
            "#[test] #[ignore] fn a() {}\n#[test] fn b() { check(2); }",
            "emptied a (a.rs:1)",
        ),
        (
            "a.rs",
            TWO,
            "#[cfg(any())] mod x {}\n#[test] fn a() { check(1); } #[test] fn b() { check(2); }",
            "",
        ),
        // Another name, the same body.
        (
            "a.rs",
            TWO,
            "#[test] fn a() { check(1); }\n#[test] fn better() { check(2); }",
            "renamed b (a.rs:4) to better (a.rs:2)",
        ),
        (
            "a.rs",
            TWO,
            "mod t { #[test] fn a() { check(1); }\n#[test] fn b() { check(2); } }",
            "renamed a (a.rs:2) to t::a (a.rs:1)\nrenamed b (a.rs:4) to t::b (a.rs:2)",
        ),
        (
            "a.rs",
            TWO,
            "#[test] fn a() { check(1); }\n#[ignore] #[test] fn better() { check(2); }",
            "skipped better (a.rs:2)",
        ),
        // Another name and another body: one removed, one added.
        (
            "a.rs",
            TWO,
            "#[test] fn a() { check(1); }\n#[test] fn c() { assert!(true); }",
            "+ c (a.rs:2)\n- b (a.rs:4)",
        ),
        (
            "a.rs",
            TWO,
            "#[test] fn a() { check(1); }\n#[test] fn c() { other(); }",
            "+ c (a.rs:2)\n- b (a.rs:4)",
        ),
        // Another name and a similar body.
        (
            "a.rs",
            long,
            &long.replace("fn a()", "fn sums()").replace('7', "8"),
            "renamed a (a.rs:1) to sums (a.rs:1)",
        ),
        // A similar body that calls something else is another test.
        (
            "a.rs",
            long,
            &long.replace("fn a()", "fn b()").replace("sum", "product"),
            "+ b (a.rs:1)\n- a (a.rs:1)",
        ),
        // The test checks less.
        (
            "a.rs",
            long,
            &long.replace("assert_eq!(y.sum(), 7);", ""),
            "a (a.rs:1) assertions 2 to 1",
        ),
        (
            "a.rs",
            "#[rstest] #[case(1)] #[case(2)] fn a() { go(); }",
            "#[rstest] #[case(1)] fn a() { go(); }",
            "a (a.rs:1) cases 2 to 1",
        ),
        // A test that was skipped or empty before is not lost.
        ("a.rs", "#[test] #[ignore] fn a() { go(); }", "#[test] fn a() { go(); }", ""),
        ("a.rs", "#[test] fn a() {}", "#[test] #[ignore] fn a() { go(); }", ""),
        ("a.rs", "#[test] fn a() {}", "", "- a (a.rs:1)"),
        // Duplicate names count separately.
        (
            "a.js",
            "it('a', () => { x(1); }); it('a', () => { x(2); });",
            "it('a', () => { x(2); });",
            "- a (a.js:1)",
        ),
        (
            "a.js",
            "it('a', () => { x(1); });",
            "it('a', () => { x(1); });\nit('a', () => { x(2); });",
            "+ a (a.js:2)",
        ),
        // Containers count.
        (
            "a.py",
            py,
            "import pytest\npytestmark = pytest.mark.skip\ndef test_a():\n    check(1)\n",
            "skipped test_a (a.py:3)",
        ),
        ("a.py", py, "def test_a():\n    pass\n", "emptied test_a (a.py:1)"),
        ("a.py", py, "def _test_a():\n    check(1)\n", "- test_a (a.py:1)"),
        (
            "a.ts",
            "describe('d', () => { it('a', () => { x(); }) })",
            "describe.skip('d', () => { it('a', () => { x(); }) })",
            "skipped d > a (a.ts:1)",
        ),
        (
            "a.ts",
            "it('a', () => { x(); });\nit('b', () => { y(); });",
            "it('a', () => { x(); });\nit.only('b', () => { y(); });",
            "skipped a (a.ts:1)\nnote a.ts:2: `only` excludes 1 test of the file",
        ),
        (
            "a_test.go",
            "func TestA(t *testing.T) { x() }",
            "func TestA(t *testing.T) { t.Skip(); x() }",
            "skipped TestA (a_test.go:1)",
        ),
        (
            "a_test.go",
            "func TestA(t *testing.T) { x() }",
            "func testA(t *testing.T) { x() }",
            "- TestA (a_test.go:1)",
        ),
    ] {
        let delta = between(&[(path, Some(before), Some(after))]);
        assert_eq!(render(&delta), expected, "{before}\nbecame\n{after}");
    }
}

#[test]
fn several_files() {
    let a = "it('a', () => { x(1); });";
    let b = "it('b', () => { y(2); });";
    for (files, expected) in [
        (&[("a.rs", Some(TWO), None)][..], "- a (a.rs:2)\n- b (a.rs:4)"),
        (&[("a.rs", None, Some(TWO))], "+ a (a.rs:2)\n+ b (a.rs:4)"),
        (
            &[("a.rs", Some(TWO), None), ("b.rs", None, Some(TWO))],
            "moved a (a.rs:2) to a (b.rs:2)\nmoved b (a.rs:4) to b (b.rs:4)",
        ),
        // From one language to a related one.
        (
            &[("a.test.js", Some(a), None), ("a.test.ts", None, Some(a))],
            "moved a (a.test.js:1) to a (a.test.ts:1)",
        ),
        // Moved to a file that test runners do not collect.
        (
            &[
                ("test_a.py", Some("def test_a():\n    x()\n"), None),
                ("a.py", None, Some("def test_a():\n    x()\n")),
            ],
            "- test_a (test_a.py:1)\n\
             note a.py: contains tests from test_a.py, but test runners do not collect files with this name",
        ),
        // Go would not build it.
        (
            &[
                ("a_test.go", Some("func TestA(t *testing.T) { x() }"), None),
                ("a.go", None, Some("func TestA(t *testing.T) { x() }")),
            ],
            "- TestA (a_test.go:1)",
        ),
        // Moved and skipped counts as skipped.
        (
            &[
                ("a.js", Some(a), Some("")),
                (
                    "b.js",
                    Some(b),
                    Some("it('b', () => { y(2); });\nit.skip('a', () => { x(1); });"),
                ),
            ],
            "skipped a (b.js:2)",
        ),
        // Renamed and moved.
        (
            &[("a.js", Some(a), None), ("b.js", None, Some("it('new', () => { x(1); });"))],
            "renamed a (a.js:1) to new (b.js:1)",
        ),
        // One of two tests with the same body was removed.
        (
            &[(
                "a.js",
                Some("it('a', () => { x(1); });\nit('b', () => { x(1); });"),
                Some("it('c', () => { x(1); });"),
            )],
            "renamed a (a.js:1) to c (a.js:1)\n- b (a.js:2)",
        ),
        (&[("a.txt", Some("#[test] fn a() {}"), None)], ""),
        (&[("a.rs", None, None)], ""),
    ] {
        let delta = between(files);
        let (mut lines, mut wanted): (Vec<_>, Vec<_>) =
            (render(&delta).lines().map(str::to_owned).collect(), expected.lines().collect());
        lines.sort();
        wanted.sort_unstable();
        assert_eq!(lines, wanted, "{files:?}");
    }
}

#[test]
fn a_file_that_does_not_parse_is_no_proof() {
    // The braces of the first test are missing, so the position of the second is unknown.
    let broken = "#[test]\nfn a() { check(1 [[ \n}}}} #[test] fn\nfn b() ( check(2); ]\n";
    let delta = between(&[("a.rs", Some(TWO), Some(broken))]);
    assert!(delta.removed.is_empty(), "{}", render(&delta));
    // A name that occurs nowhere, or only in a comment, is removed.
    let delta = between(&[("a.rs", Some(TWO), Some("fn x( {{{ \n // fn b() { check(2); }\n"))]);
    assert_eq!(delta.removed.len(), 2, "{}", render(&delta));
}

#[test]
fn a_file_that_cannot_be_read_is_noted() {
    let large = format!("{TWO}// {}", "x".repeat(3 << 20));
    let delta = between(&[("a.rs", Some(TWO), Some(&large))]);
    assert_eq!(render(&delta), "note a.rs: its tests were not read: it is longer than 2 MiB");
    assert_eq!(report(&delta, ClaimPolicy::Require).verdict, Verdict::Unverifiable);
    // A file that was too large before may have lost tests: unknown, and no mismatch.
    let larger = format!("{large}y");
    let delta = between(&[("a.rs", Some(&large), Some(&larger))]);
    assert_eq!(report(&delta, ClaimPolicy::Require).verdict, Verdict::Unverifiable);
    assert_eq!(delta.notes.len(), 1);
}

#[test]
fn a_file_that_is_not_utf8_any_more_is_noted() {
    let between = |before: &[u8], after: &[u8]| {
        compare([(Path::new("test_a.py"), Some(before), Some(after))].into_iter())
    };
    let verdict = |delta: &TestDelta| report(delta, ClaimPolicy::Require).verdict;
    let old = b"def test_a():\n    assert f()\n";
    let latin = b"# coding: latin-1\nimport pytest\ndef test_a():\n    assert f(\"\xe9\")\n";
    let delta = between(old, latin);
    assert_eq!(render(&delta), "note test_a.py: its tests were not read: it is no text in UTF-8");
    assert_eq!(verdict(&delta), Verdict::Unverifiable);
    // What was so before is read.
    let other = b"# coding: latin-1\nimport pytest\ndef test_a():\n    assert f(\"\xe8\")\n";
    let delta = between(latin, other);
    assert_eq!((render(&delta), verdict(&delta)), (String::new(), Verdict::Verified));
    let skipped = b"# coding: latin-1\nimport pytest\n@pytest.mark.skip(\"\xe9\")\ndef test_a():\n    assert f(\"\xe9\")\n";
    let delta = between(latin, skipped);
    assert_eq!(verdict(&delta), Verdict::Refuted, "{}", render(&delta));
}

#[test]
fn what_people_read() {
    let record = ClaimPolicy::Record;
    let none = between(&[]);
    let more = between(&[("a.rs", Some(""), Some(TWO))]);
    let js = "it('a\\n', () => { x(1); });\nit('b', () => { expect(y(2)); expect(z); });\nit('c', () => { z(3); });\nit('d', () => { w(3); });";
    let fewer = between(&[
        ("src/a.rs", Some(TWO), None),
        (
            "web/a.test.js",
            Some(js),
            Some(
                "it.skip('a\\n', () => { x(1); });\nit('b', () => { expect(y(2)); });\nit('c', () => {});\nit('new', () => { w(3); });",
            ),
        ),
    ]);
    let mut many = String::new();
    for n in 0..30 {
        many.push_str(&format!("def test_{n:02}():\n    check({n})\n"));
    }
    let many = between(&[("tests/test_all.py", Some(&many), None)]);
    let reports = [
        report(&none, record),
        report(&more, record),
        report(&fewer, ClaimPolicy::Require),
        report(&many, record),
    ];
    insta::assert_snapshot!(serde_json::to_string_pretty(&reports).unwrap());
}
