//! Comparing what a command prints with the lines in a page. Pure.
//!
//! A line `...` stands for any lines, and `[..]` within a line for any text.

use crate::trial;
use libtest_mimic::Trial;
use regex::Regex;

/// Says where the output differs from what is expected. White space at the end of lines, and empty
/// lines at the end, do not count.
pub(crate) fn difference(expected: &str, actual: &str) -> Option<String> {
    let expected = trimmed(expected);
    let actual = trimmed(actual);
    let lines: Vec<&str> = expected.lines().collect();
    if pattern(&lines, "").is_match(&actual) {
        return None;
    }
    // The first line with which nothing that the command prints agrees any more.
    let first =
        (1..=lines.len()).find(|count| !pattern(&lines[..*count], "(?s:.*)").is_match(&actual));
    Some(match first {
        Some(count) => format!("not printed, or not there: {}", lines[count - 1]),
        None => "more is printed than that".to_owned(),
    })
}

/// The lines as a pattern for the beginning of a text, then a pattern for its end.
fn pattern(lines: &[&str], end: &str) -> Regex {
    let mut pattern = r"\A".to_owned();
    for line in lines {
        if *line == "..." {
            pattern.push_str(r"(?:.*\n)*");
        } else {
            let parts: Vec<String> = line.split("[..]").map(regex::escape).collect();
            pattern.push_str(&parts.join(".*"));
            pattern.push_str(r"\n");
        }
    }
    Regex::new(&format!(r"{pattern}{end}\z")).unwrap()
}

fn trimmed(text: &str) -> String {
    let text = text.trim_end();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("expected", "lines_and_texts_may_be_left_out", lines_and_texts_may_be_left_out)]
}

fn lines_and_texts_may_be_left_out() {
    for (expected, actual) in [
        ("", ""),
        ("", "\n"),
        ("a\n", "a\n\n"),
        ("a  \nb\n", "a\nb \n"),
        ("...\n", ""),
        ("...\n", "a\nb\n"),
        ("a\n...\nb\n", "a\nb\n"),
        ("a\n...\nb\n", "a\nb\nx\nb\n"),
        ("run [..] of x\n", "run 12 of y of x\n"),
        ("[..]: b.*\n", "1: b.*\n"),
    ] {
        assert_eq!(difference(expected, actual), None, "{expected:?} {actual:?}");
    }
    for (expected, actual, line) in [
        ("", "a\n", "more is printed"),
        ("a\n", "", ": a"),
        ("a\n", "a\nb\n", "more is printed"),
        ("a\n...\nc\n", "a\nb\n", ": c"),
        ("a\nb.\nc\n", "a\nbx\nc\n", ": b."),
        ("[..] b\n", "x\nb\n", ": [..] b"),
    ] {
        let found = difference(expected, actual).expect(expected);
        assert!(found.contains(line), "{expected:?} {actual:?}: {found}");
    }
}
