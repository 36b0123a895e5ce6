//! Hostile text: parsing does not panic, take long or overflow the stack.

use counterfoil_verify::inventory::{compare, tests};
use proptest::prelude::*;
use std::path::Path;

const FILES: [&str; 6] = ["a.rs", "a.py", "a.js", "a.ts", "a.tsx", "a_test.go"];

/// Parses a text in every language, alone and compared with an older one.
fn read(text: &[u8]) {
    for file in FILES {
        let path = Path::new(file);
        let found = tests(path, text);
        assert!(found.iter().all(|test| test.line > 0 && test.name.len() < 700), "{file}");
        let gone = compare([(path, Some(text), None)].into_iter());
        let listed = gone.removed.len() + gone.notes.len();
        assert!(listed >= found.len().min(1), "{file}: {} tests, {listed} reported", found.len());
        let same = compare([(path, Some(text), Some(text))].into_iter());
        assert_eq!(same, compare(std::iter::empty::<(&Path, Option<&[u8]>, Option<&[u8]>)>()));
    }
}

#[test]
fn deep_nesting() {
    let deep = "{".repeat(30_000);
    for file in FILES {
        tests(Path::new(file), format!("test it func {deep}").as_bytes());
    }
    for (file, open, close) in [
        ("a.rs", "mod a {", "}"),
        ("a.rs", "proptest! {", "}"),
        ("a.rs", "#[test] fn a() {", "}"),
        ("a.js", "describe('a', () => {", "});"),
        ("a.ts", "describe('a', (): void => {", "});"),
        ("a.tsx", "<a>", "</a>"),
        ("a.js", "`${", "}`"),
        ("a_test.go", "func() {", "}"),
        ("a.py", "test(", ")"),
        ("a.rs", "mod tests {", "}"),
        ("a.test.js", "describe('it', () => {", "});"),
        ("a.test.js", "beforeEach(() => { it('a', f);", "});"),
        ("a.test.js", "const it = () => {", "};"),
        ("a.test.js", "global.it = () => {", "};"),
        ("a.test.js", "it('a', () => { expect(", ")});"),
        ("a.py", "test_a = ", "None"),
    ] {
        let whole = format!("{}{}", open.repeat(8_000), close.repeat(8_000));
        tests(Path::new(file), whole.as_bytes());
    }
}

#[test]
fn long_bodies() {
    for (file, start, part, end) in [
        ("a.test.js", "it('a', () => { x", ".b()", "; });"),
        ("a.test.js", "it('a', () => { ", "expect(", ""),
        ("a.test.js", "it('a', () => { ", "try { expect(a).toBe(1); ", ""),
        ("a.test.js", "it('a', () => { expect(a ", "|| b", ").toBe(true); });"),
        ("test_a.py", "def test_a():\n    x", ".b()", "\n"),
        ("test_a.py", "def test_a():\n    x = ", "f(", "1"),
        ("test_a.py", "x = y", ".b()", "\n\ndef test_a():\n    x()\n"),
        ("test_a.py", "", "a, ", "a = test_a = b\n"),
        ("test_a.py", "def test_a():\n    x()\n", "test_a = ", "None\n"),
        ("a.rs", "#[test] fn a() { x", ".b()", "; }"),
        ("a.rs", "#[test] fn a() { assert!(", "a || ", "true); }"),
        ("a.rs", "#[test] fn a() { ", "if a { ", "}"),
        ("a.rs", "#[test] fn a() { assert_eq!(1", " + 1", ", 2); }"),
        ("a.rs", "proptest! { #[test] fn a() { ", "assert!(1 == ", ""),
        ("test_a.py", "def test_a():\n    assert 1", " + 1", " == 2\n"),
        ("a.test.js", "const a = ", "(", "it"),
        ("a.test.js", "const a = it", ".b", "; a('c', () => { x(); });"),
        ("a.test.js", "const ", "{ a: ", "b } = it;"),
        ("a.test.js", "it('a', (t) => { ", "t.test('b', (t) => { t.todo(); ", ""),
        ("a_test.go", "func TestA(t *testing.T) { x", ".B()", " }"),
        ("a_test.go", "func TestA(t *testing.T) { ", "if a { ", "}"),
        ("jest.config.js", "x = ", "{ exclude: ", ""),
        ("package.json", "{\"scripts\": {\"test\": \"", "jest; ", "\"}}"),
        ("pytest.ini", "[pytest]\naddopts = ", "-k a ", "\n"),
    ] {
        let whole = format!("{start}{}{end}", part.repeat(8_000));
        compare([(Path::new(file), Some(b"".as_slice()), Some(whole.as_bytes()))].into_iter());
    }
}

#[test]
fn many_results_that_are_kept() {
    let keep = |n: usize| format!("let a{n:05} = spawn(f);\n");
    let ask = |n: usize| format!("let a = spawn(f); a.is_err(); let b{n} = 1;\n");
    let catch =
        |n: usize| format!("let a{n} = catch_unwind(|| assert!(f()));\n assert!(a{n}.is_err());\n");
    for (times, line) in
        [(20_000, &keep as &dyn Fn(usize) -> String), (10_000, &ask), (5_000, &catch)]
    {
        let lines: String = (0..times).map(line).collect();
        let whole = format!("#[test] fn a() {{\n{lines}}}\n");
        assert_eq!(tests(Path::new("a.rs"), whole.as_bytes()).len(), 1);
    }
}

#[test]
fn nesting_in_the_wrong_language() {
    // Each is opened often and never closed, or closed at the end.
    for (open, close) in [
        ("mod a {", "}"),
        ("#[test] fn a() {", "}"),
        ("describe('a', () => {", "});"),
        ("if x:\n ", ""),
        ("<a>", "</a>"),
        ("`${", "}`"),
        ("/*", "*/"),
        ("f(async () => ", ")"),
        ("a<", ">"),
        ("!", ""),
        ("\"", "\""),
        ("it('a', () => { x(); });\n", ""),
        ("def test_a():\n    x()\n", ""),
        ("func TestA(t *testing.T) { x() }\n", ""),
        ("@a\n", ""),
    ] {
        read(format!("test it func {}{}", open.repeat(40), close.repeat(40)).as_bytes());
        read(format!("test it func {}", open.repeat(40)).as_bytes());
    }
}

#[test]
fn many_tests() {
    for (file, part) in [
        ("a.rs", "#[test] fn a() { x(); }\n"),
        ("a.js", "it('a', () => { x(); });\n"),
        ("a.py", "def test_a():\n    x()\n"),
        ("a_test.go", "func TestA(t *testing.T) { x() }\n"),
    ] {
        let text = part.repeat(2_000);
        assert_eq!(tests(Path::new(file), text.as_bytes()).len(), 2_000);
        let gone = compare([(Path::new(file), Some(text.as_bytes()), None)].into_iter());
        assert_eq!(gone.removed.len(), 2_000);
    }
}

#[test]
fn names_do_not_grow_with_depth() {
    let times = 2_000;
    let text = format!("{}{}", "mod a { #[test] fn t() { x(); }".repeat(times), "}".repeat(times));
    let found = tests(Path::new("a.rs"), text.as_bytes());
    assert_eq!(found.len(), times);
    assert!(found.iter().all(|test| test.name.len() < 300));
}

#[test]
fn many_tests_under_new_names_are_compared_within_bounds() {
    let body = |n: usize| {
        format!("let a = make({n}); let b = other({n}, a); assert_eq!(a, b); assert_ne!(b, {n});")
    };
    let write = |name: &str, shift: usize| {
        let tests =
            (0..2_000).map(|n| format!("#[test] fn {name}{n}() {{ {} }}\n", body(n + shift)));
        tests.collect::<Vec<_>>().concat()
    };
    let (before, after) = (write("a", 0), write("b", 2_000));
    let delta =
        compare([(Path::new("a.rs"), Some(before.as_bytes()), Some(after.as_bytes()))].into_iter());
    assert_eq!(delta.removed.len() + delta.renamed.len(), 2_000);
}

#[test]
fn what_is_no_text_has_no_tests() {
    assert!(tests(Path::new("a.rs"), b"#[test] fn a() { x(); }\0").is_empty());
    assert!(tests(Path::new("a.rs"), &vec![b'x'; 3 << 20]).is_empty());
    let odd = b"#[test] fn a() { x(\"\xff\xfe\"); }\n#[test] fn b() { y(); }";
    assert_eq!(tests(Path::new("a.rs"), odd).len(), 2);
    let marked = "\u{feff}def test_a():\r\n    x()\r\n";
    assert_eq!(tests(Path::new("a.py"), marked.as_bytes()).len(), 1);
}

/// The case files, to be damaged.
fn sources() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/inventory/cases");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// The source of a test with this number in a language.
type Form = (&'static str, fn(usize) -> String);

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        read(&text);
        read(&[b"test it func ".as_slice(), &text].concat());
    }

    #[test]
    fn broken_sources(
        which in 0_usize..11,
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..40, "[{}()\\[\\]#'\"`/*!,;:=a-z\n]{0,6}"), 1..6),
    ) {
        let sources = sources();
        let whole = &sources[which % sources.len()];
        let mut text = whole.clone();
        for (at, length, with) in cuts {
            let from = at.index(text.len().max(1)).min(text.len());
            let to = (from + length).min(text.len());
            text.splice(from..to, with.bytes());
        }
        read(&text);
        for file in FILES {
            compare([(Path::new(file), Some(whole.as_slice()), Some(text.as_slice()))].into_iter());
        }
    }

    /// A test that is removed completely is reported, and nothing else is.
    #[test]
    fn what_is_taken_out_is_told(count in 1_usize..8, gone in any::<prop::sample::Index>()) {
        let gone = gone.index(count);
        let forms: [Form; 4] = [
            ("a.rs", |n| format!("#[test]\nfn t{n}() {{ check({n}); }}\n")),
            ("a.py", |n| format!("def test_t{n}():\n    check({n})\n")),
            ("a.ts", |n| format!("it('t{n}', (): void => {{ check({n}); }});\n")),
            ("a_test.go", |n| format!("func TestT{n}(t *testing.T) {{\n\tCheck(t, {n})\n}}\n")),
        ];
        for (file, form) in forms {
            let before: String = (0..count).map(form).collect();
            let after: String = (0..count).filter(|n| *n != gone).map(form).collect();
            let delta = compare([(Path::new(file), Some(before.as_bytes()), Some(after.as_bytes()))].into_iter());
            prop_assert_eq!(delta.removed.len(), 1);
            prop_assert!(delta.removed[0].name.ends_with(&format!("{gone}")), "{:?}", delta);
            prop_assert!(delta.added.is_empty() && delta.skipped.is_empty() && delta.emptied.is_empty());
        }
    }
}
