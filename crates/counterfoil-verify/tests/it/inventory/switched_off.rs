//! Ways to switch tests off, one row each, and the honest change that looks like it.
//!
//! A case file has blocks of the form `=== verdict: title`, then for each file `--- path` with the
//! text before, `+++ path` with the text after. A file without one of them is not there, and the
//! text `(as above)` stands for the last text before of that path.

use super::delta::render;
use counterfoil_contract::claim::{ClaimPolicy, Verdict};
use counterfoil_verify::inventory::{compare, report};
use std::collections::BTreeMap;
use std::path::Path;

/// The text of a file before and after.
type Texts = (Option<String>, Option<String>);

fn check(cases: &str) {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for block in cases.split("\n=== ").skip(1) {
        count += 1;
        let (head, rest) = block.split_once('\n').unwrap();
        let (verdict, title) = head.split_once(": ").unwrap();
        let mut files: BTreeMap<String, Texts> = BTreeMap::new();
        let mut open: Option<&mut String> = None;
        for line in rest.lines() {
            let part = |mark| line.strip_prefix(mark).map(str::to_owned);
            if let Some(path) = part("--- ") {
                open = Some(files.entry(path).or_default().0.insert(String::new()));
            } else if let Some(path) = part("+++ ") {
                open = Some(files.entry(path).or_default().1.insert(String::new()));
            } else if let Some(text) = &mut open {
                text.push_str(line);
                text.push('\n');
            }
        }
        for (path, (before, _)) in &mut files {
            if let Some(before) = before {
                if before.trim() == "(as above)" {
                    before.clone_from(&last[path]);
                }
                last.insert(path.clone(), before.clone());
            }
        }
        let delta = compare(
            files
                .iter()
                .map(|(path, (before, after))| {
                    let bytes = |text: &'_ Option<String>| {
                        text.as_ref().map(|text| text.as_bytes().to_vec())
                    };
                    (path, bytes(before), bytes(after))
                })
                .collect::<Vec<_>>()
                .iter()
                .map(|(path, before, after)| {
                    (Path::new(path.as_str()), before.as_deref(), after.as_deref())
                }),
        );
        let expected = match verdict {
            "refuted" => Verdict::Refuted,
            "verified" => Verdict::Verified,
            "unverifiable" => Verdict::Unverifiable,
            other => panic!("{other}"),
        };
        let observed = report(&delta, ClaimPolicy::Record).verdict;
        if observed != expected {
            wrong.push(format!(
                "{title}: expected {expected:?}, is {observed:?}: {}",
                render(&delta)
            ));
        }
    }
    assert!(count > 3);
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn python() {
    check(include_str!("switched_off/python.txt"));
}

#[test]
fn python_marks() {
    check(include_str!("switched_off/python_marks.txt"));
}

#[test]
fn wrapped_python() {
    check(include_str!("switched_off/wrapped_python.txt"));
}

#[test]
fn wrapped_javascript() {
    check(include_str!("switched_off/wrapped_javascript.txt"));
}

#[test]
fn wrapped_rust() {
    check(include_str!("switched_off/wrapped_rust.txt"));
}

#[test]
fn moved() {
    check(include_str!("switched_off/moved.txt"));
}

#[test]
fn examples() {
    check(include_str!("switched_off/examples.txt"));
}

#[test]
fn helpers() {
    check(include_str!("switched_off/helpers.txt"));
}

#[test]
fn javascript() {
    check(include_str!("switched_off/javascript.txt"));
}

#[test]
fn rust() {
    check(include_str!("switched_off/rust.txt"));
}

#[test]
fn go() {
    check(include_str!("switched_off/go.txt"));
}

#[test]
fn settings() {
    check(include_str!("switched_off/settings.txt"));
}
