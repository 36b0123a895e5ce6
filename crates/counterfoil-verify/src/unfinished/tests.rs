use super::*;

/// The kinds and texts of what is found in a file.
fn found(path: &str, text: &str) -> Vec<String> {
    let places = find(Path::new(path), text.as_bytes()).unwrap();
    places
        .iter()
        .map(|place| format!("{} {} {}", place.line, place.kind.name(), place.text))
        .collect()
}

fn nothing(path: &str, text: &str) {
    assert_eq!(found(path, text), Vec::<String>::new(), "{text}");
}

#[test]
fn placeholders_of_rust() {
    let text = "fn a() -> u8 {\n    todo!()\n}\nfn b() {\n    std::unimplemented!(\"later\")\n}\nfn c() { vec![1, todo!()]; }\nfn d() { panic!(\"not implemented\") }\n";
    assert_eq!(
        found("src/a.rs", text),
        [
            "2 placeholder todo!()",
            "5 placeholder std::unimplemented!(\"later\")",
            "7 placeholder todo",
            "8 placeholder panic!(\"not implemented\")",
        ]
    );
    nothing(
        "src/a.rs",
        "fn a() { let todo = 1; print!(\"todo!() {todo}\"); panic!(\"no such file\") }\n",
    );
}

#[test]
fn placeholders_of_python() {
    assert_eq!(
        found("a.py", "def f(x):\n    \"\"\"Adds.\"\"\"\n    raise NotImplementedError\n"),
        ["3 placeholder raise NotImplementedError"]
    );
    assert_eq!(
        found("a.py", "class A:\n    def f(self):\n        raise NotImplementedError()\n").len(),
        1
    );
    for raised in [
        "NotImplementedError(\"save\")",
        "RuntimeError(\"TODO: save\")",
        "Exception('save: not implemented')",
    ] {
        assert_eq!(found("a.py", &format!("def f(x):\n    raise {raised}\n")).len(), 1, "{raised}");
    }
    assert_eq!(
        found("tool", "#!/usr/bin/env python3\ndef f(x):\n    raise NotImplementedError\n").len(),
        1
    );
    nothing("a.py", "def f(x):\n    raise NotImplementedError(\"Subclasses implement this\")\n");
    nothing("a.py", "def f(x):\n    raise ValueError(\"no such file\")\n");
    // Methods that are to be overridden, and cases that are not supported.
    nothing(
        "a.py",
        "import abc\nclass A(abc.ABC):\n    def f(self):\n        raise NotImplementedError\n",
    );
    nothing(
        "a.py",
        "class A:\n    def f(self):\n        raise NotImplementedError\nclass B(A):\n    def f(self):\n        return 1\n",
    );
    nothing("a.py", "def f(x):\n    if x:\n        raise NotImplementedError\n    return x\n");
    nothing(
        "a.py",
        "def f(x):\n    raise NotImplementedError(f\"{x} is not supported on Windows\")\n",
    );
}

#[test]
fn placeholders_of_javascript_and_go() {
    let thrown = "function f() {\n  throw new Error('Not implemented yet');\n}\n";
    assert_eq!(found("a.js", thrown), ["2 placeholder throw new Error('Not implemented yet');"]);
    assert_eq!(
        found("a.ts", "export const f = (): number => { throw new Error(`TODO: f`); };\n").len(),
        1
    );
    nothing("a.js", "function f(x) {\n  throw new Error('todos are missing');\n}\n");
    let named = "function save() {\n  throw new Error(\"save: not implemented\");\n}\n";
    assert_eq!(found("a.js", named).len(), 1);
    let panics = "package a\n\nfunc f() int {\n\tpanic(\"not implemented\")\n}\n";
    assert_eq!(found("a.go", panics), ["4 placeholder panic(\"not implemented\")"]);
    nothing("a.go", "package a\n\nfunc f() int {\n\tpanic(\"unreachable\")\n}\n");
}

#[test]
fn functions_without_a_body() {
    assert_eq!(
        found("src/a.rs", "pub fn save(path: &str) {}\n"),
        ["1 empty-body pub fn save(path: &str) {}"]
    );
    assert_eq!(found("src/a.rs", "impl A {\n    fn save(&self) {\n    }\n}\n").len(), 1);
    assert_eq!(found("a.py", "def save(path):\n    pass\n").len(), 1);
    assert_eq!(found("a.js", "export function save(path) {\n}\n").len(), 1);
    assert_eq!(found("a.go", "package a\n\nfunc Save(path string) {\n}\n").len(), 1);
    assert_eq!(found("a.js", "export const save = (path) => {};\n").len(), 1);
    assert_eq!(found("a.ts", "const save = async (): Promise<void> => {\n};\n").len(), 1);
    // What is meant to do nothing.
    for text in [
        "impl Drop for A {\n    fn drop(&mut self) {}\n}\n",
        "trait A {\n    fn hook(&self) {}\n}\n",
        "fn ignore(_path: &str) {}\n",
        "fn main() {}\n",
        "fn save() {\n    // Nothing is kept.\n}\n",
        "#[no_mangle]\nfn a() {}\n",
        "#[cfg(test)]\nmod tests {\n    fn a() {}\n}\n",
        "fn outer() { fn inner() {} inner(); }\n",
        "#[cfg(windows)]\nmod counters {\n    pub fn count() {}\n}\n",
    ] {
        nothing("src/a.rs", text);
    }
    nothing("tests/a.rs", "fn helper() {}\n");
    for text in [
        "def save(path):\n    \"\"\"Does nothing here.\"\"\"\n",
        "class A(B):\n    def hook(self):\n        pass\n",
        "@overload\ndef f(x): ...\n",
        "def save(path):\n    pass  # nothing is kept\n",
        "def outer():\n    def inner():\n        pass\n    return inner\n",
        "if TYPE_CHECKING:\n    def f(x: int) -> bool: ...\n",
        "try:\n    import fast\nexcept ImportError:\n    def speed_up(): pass\n",
    ] {
        nothing("a.py", text);
    }
    nothing("a.pyi", "def f(x): ...\n");
    for text in [
        "const noopSave = () => {};\n",
        "const _save = () => {};\n",
        "const f = () => ({});\n",
        "const f = () => { /* nothing is kept */ };\n",
        "function g() { const f = () => {}; return f; }\n",
        "export const A = ({ onClose = () => {} }) => onClose();\n",
        "function noop() {}\n",
        "class A {\n  hook() {}\n}\n",
        "function A() {}\n",
        "export function ignore(_value) {}\n",
    ] {
        nothing("a.js", text);
    }
    nothing("a.go", "package a\n\nfunc (a A) isNode() {}\n\nfunc init() {}\n");
}

#[test]
fn comments_that_put_work_off() {
    for comment in [
        "// TODO: handle errors",
        "// FIXME",
        "/// TODO(someone) document",
        "// todo: later",
        "// todo implement this",
        "// todo",
        "/* This only reads the first page for now. */",
        "// In a real implementation, this would\n// call the service",
    ] {
        assert_eq!(
            found("src/a.rs", &format!("{comment}\nfn a() -> u8 {{ 1 }}\n")).len(),
            1,
            "{comment}"
        );
    }
    for comment in [
        "// Handles mastodon",
        "// the list of todos",
        "// TODOS_PATH names it",
        "// for nowhere",
        "// wait for no one",
        "// todo items are sorted by date",
        "// todos are kept",
    ] {
        nothing("src/a.rs", &format!("{comment}\nfn a() -> u8 {{ 1 }}\n"));
    }
    nothing("src/a.rs", "fn a() -> &'static str { \"TODO: for now\" }\n");
    assert_eq!(
        found("a.py", "x = 1  # just a stub for now\n"),
        ["1 comment # just a stub for now"]
    );
}

#[test]
fn tests_that_do_not_run() {
    assert_eq!(
        found("src/a.rs", "#[test]\n#[ignore]\nfn works() {\n    assert!(f());\n}\n"),
        ["3 skipped-test works"]
    );
    let text = "import pytest\n\n@pytest.mark.skip\ndef test_it():\n    assert f()\n";
    assert_eq!(found("test_a.py", text), ["4 skipped-test test_it"]);
}

#[test]
fn only_what_is_new_counts() {
    let old = "// TODO: one\nfn a() { todo!() }\n";
    let new = "fn b() { todo!() }\n\n// TODO: one\nfn a() { todo!() }\n// FIXME: two\n";
    let path = Path::new("src/a.rs");
    let work = added([(path, Some(old), Some(new))].into_iter());
    let lines: Vec<(u32, &str)> =
        work.places.iter().map(|place| (place.line, place.kind.name())).collect();
    assert_eq!(lines, [(1, "placeholder"), (5, "comment")]);
    // What moves to another file is not new.
    let moved = [(path, Some(old), None), (Path::new("src/b.rs"), None, Some(old))];
    assert_eq!(added(moved.into_iter()), UnfinishedWork::default());
    // A second one of the same kind is.
    let twice = [(path, Some(old), Some("// TODO: one\nfn a() { todo!() }\n// TODO: one\n"))];
    assert_eq!(added(twice.into_iter()).places.len(), 1);
}

#[test]
fn what_cannot_be_parsed_is_noted() {
    let large = vec![b' '; inventory::MAX_BYTES + 1];
    let path = Path::new("src/a.rs");
    let larger = [large.clone(), vec![b' ']].concat();
    let said = |work: UnfinishedWork| -> Vec<String> {
        work.unread.iter().map(ToString::to_string).collect()
    };
    let work = added([(path, None, Some(large.clone()))].into_iter());
    assert_eq!(said(work), ["src/a.rs: it is longer than 2 MiB"]);
    let work = added([(path, Some(large), Some(larger))].into_iter());
    assert_eq!(said(work), ["src/a.rs: it is longer than 2 MiB"], "once");
    let work = added([(path, None, Some("fn ( { \u{0} TODO"))].into_iter());
    assert_eq!(said(work), ["src/a.rs: it is no text in UTF-8"]);
    nothing("README.md", "TODO");
}

#[test]
fn what_is_not_utf8_is_noted() {
    let random: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(151) | 1).collect();
    let texts: [(&str, &[u8]); 5] = [
        ("x.py", b"# \xe9 TODO: x\nx = 1\n"),
        ("x.py", b"def f(x):\n    raise NotImplementedError(\"\xe9\")\n"),
        ("x.js", b"// \xe9 TODO\n"),
        ("src/x.rs", b"// \xe9\nfn f() { todo!() }\n"),
        ("x.py", &random),
    ];
    for (name, text) in texts {
        let work = added([(Path::new(name), None, Some(text))].into_iter());
        let unread: Vec<String> = work.unread.iter().map(ToString::to_string).collect();
        assert_eq!(unread, [format!("{name}: it is no text in UTF-8")], "{text:?}");
    }
    // What was there before is known in any encoding.
    let path = Path::new("x.py");
    let old: &[u8] = b"# \xe9 TODO: x\nx = 1\n";
    for now in [None, Some(old), Some("# \u{e9} TODO: x\nx = 2\n".as_bytes())] {
        let work = added([(path, Some(old), now)].into_iter());
        assert_eq!(work, UnfinishedWork::default(), "{now:?}");
    }
}

#[test]
fn files_in_other_languages_are_named() {
    let files = ["x.c", "deploy.sh", "X.java", "README.md", "data.json", "Cargo.lock", "gone.c"];
    let work = added(files.iter().map(|name| {
        let now = (*name != "gone.c").then_some("int f(void);\n");
        (Path::new(*name), Some("old\n"), now)
    }));
    let unknown: Vec<&str> = work.unknown.iter().filter_map(|path| path.to_str()).collect();
    assert_eq!(unknown, ["x.c", "deploy.sh", "X.java"]);
    assert!(work.places.is_empty() && work.unread.is_empty(), "{work:?}");
    let script = "#!/usr/bin/python3\nprint(1)\n";
    let work = added([(Path::new("tool"), None, Some(script))].into_iter());
    assert_eq!(work, UnfinishedWork::default());
}

#[test]
fn a_skip_under_a_condition_is_no_unfinished_work() {
    let python = |mark: &str| {
        format!("import sys, unittest, pytest\n\n{mark}\ndef test_it():\n    assert f()\n")
    };
    for mark in [
        "@unittest.skipUnless(sys.platform == 'win32', 'windows')",
        "@unittest.skipIf(sys.platform == 'win32', 'windows')",
        "@unittest.skipIf(sys.platform != 'win32', 'windows')",
        "@pytest.mark.skipif(sys.platform != 'win32', reason='windows')",
        "@pytest.mark.skipif('sys.platform != \"win32\"')",
        "@pytest.mark.skipif(sys.version_info < (3, 12), reason='old')",
        "@unittest.skipUnless(HAS_SERVER, 'no server')",
        "@skip_unless_windows",
        "pytestmark = pytest.mark.skipif(sys.platform != 'win32', reason='windows')",
        "skip_here = unittest.skipUnless(sys.platform == 'win32', 'w')\n@skip_here",
        "needs = unittest.skipUnless(sys.platform == 'win32', 'w')\n@needs",
    ] {
        nothing("test_a.py", &python(mark));
    }
    for mark in [
        "@unittest.skip('later')",
        "@unittest.skipIf(True, 'later')",
        "@unittest.skipUnless(False, 'later')",
        "@pytest.mark.skipif(1 == 1, reason='later')",
        "@pytest.mark.skipif('True')",
        "@pytest.mark.xfail",
        "pytestmark = [pytest.mark.skipif(sys.platform == 'win32'), pytest.mark.skip]",
        "later = unittest.skip('later')\n@later",
    ] {
        assert_eq!(found("test_a.py", &python(mark)).len(), 1, "{mark}");
    }
    let rust = |mark: &str| format!("#[test]\n{mark}\nfn works() {{\n    assert!(f());\n}}\n");
    for mark in [
        "#[cfg_attr(windows, ignore)]",
        "#[cfg_attr(not(windows), ignore)]",
        "#[cfg_attr(not(feature = \"slow\"), ignore)]",
    ] {
        nothing("src/a.rs", &rust(mark));
    }
    for mark in ["#[ignore = \"later\"]", "#[cfg_attr(all(), ignore)]", "#[cfg_attr(test, ignore)]"]
    {
        assert_eq!(found("src/a.rs", &rust(mark)).len(), 1, "{mark}");
    }
    let script = |call: &str| format!("{call}('works', () => {{ expect(f()).toBe(1); }});\n");
    nothing("a.test.js", &script("test.skipIf(process.platform !== 'win32')"));
    nothing("a.test.js", &script("test.runIf(process.platform === 'win32')"));
    assert_eq!(found("a.test.js", &script("test.skipIf(true)")).len(), 1);
    assert_eq!(found("a.test.js", &script("test.skip")).len(), 1);
    let go = |tag: &str| {
        format!(
            "//go:build {tag}\n\npackage a\n\nfunc TestA(t *testing.T) {{\n\tif f() {{ t.Fatal() }}\n}}\n"
        )
    };
    nothing("a_test.go", &go("windows"));
    assert_eq!(found("a_test.go", &go("ignore")).len(), 1);
}
