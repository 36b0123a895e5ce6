//! The figures of a test run, read from a report or from the output of a test runner. Pure.

use super::{junit, unittest};
use counterfoil_contract::claim::Figure;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The number of tests, in total and by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// All tests, including skipped ones.
    pub total: Option<u64>,
    /// Tests that passed.
    pub passed: Option<u64>,
    /// Tests that failed or ended with an error.
    pub failed: Option<u64>,
    /// Tests that did not run.
    pub skipped: Option<u64>,
}

/// A report contains no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FiguresError {
    /// The report is in no known format.
    #[error(
        "it has no figures: it is neither JUnit XML nor a summary of cargo test, nextest, pytest, unittest, go test or jest"
    )]
    UnknownFormat,
    /// The XML is not well-formed.
    #[error("it is not well-formed XML: line {line}: {message}")]
    MalformedXml {
        /// The line of the error, counted from 1.
        line: usize,
        /// The message of the XML parser.
        message: String,
    },
    /// The root element is not one of a `JUnit` report.
    #[error("it is not a JUnit report: its root element is `{root}`")]
    NotJunit {
        /// The name of the root element.
        root: String,
    },
    /// The report has no element.
    #[error("it is empty")]
    Empty,
    /// The elements are nested too deeply.
    #[error("its elements are nested more than {max} deep")]
    TooDeep {
        /// The maximum depth.
        max: usize,
    },
}

impl Figures {
    /// Reads the figures of a report file: `JUnit` XML, or the output of a test runner.
    ///
    /// # Errors
    ///
    /// The report is malformed or contains no figures.
    pub fn from_report(bytes: &[u8]) -> Result<Self, FiguresError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if bytes.trim_ascii_start().starts_with(b"<") {
            return junit::parse(bytes);
        }
        let summary = unittest::at_end(&String::from_utf8_lossy(bytes));
        let figures = summary.map(|summary| summary.figures);
        figures.or_else(|| Self::from_output(bytes)).ok_or(FiguresError::UnknownFormat)
    }

    /// Reads the figures that a test runner printed: cargo test (summed over test binaries),
    /// nextest, pytest, jest, `go test -v`.
    pub fn from_output(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut summed = Totals::default();
        let mut last = None;
        let mut go = Totals::default();
        for line in text.split(['\n', '\r']) {
            let line = strip_ansi(line);
            if let Some(rest) = line.trim_start().strip_prefix("test result:") {
                summed.add(&counts(rest));
            } else if let Some(figures) =
                nextest(&line).or_else(|| jest(&line)).or_else(|| pytest(&line))
            {
                // The runner prints its summary once, after the output of all tests.
                last = Some(figures);
            } else if let Some(rest) = line.strip_prefix("--- ") {
                go.add(&match rest.split(':').next() {
                    Some("PASS") => vec![(1, "passed".to_owned())],
                    Some("FAIL") => vec![(1, "failed".to_owned())],
                    Some("SKIP") => vec![(1, "skipped".to_owned())],
                    _ => Vec::new(),
                });
            }
        }
        last.or_else(|| summed.figures()).or_else(|| go.figures())
    }

    /// One of the figures.
    pub fn get(&self, figure: Figure) -> Option<u64> {
        match figure {
            Figure::Total => self.total,
            Figure::Passed => self.passed,
            Figure::Failed => self.failed,
            Figure::Skipped => self.skipped,
            _ => None,
        }
    }

    /// The number of tests that ran. Some runners report it as the total.
    pub(super) fn ran(&self) -> Option<u64> {
        Some(self.total?.saturating_sub(self.skipped.unwrap_or(0)))
    }

    /// Why figures of a success say nothing of the tests, as text after "but"; none if a test passed or
    /// failed, or may have passed.
    pub(super) fn without_pass(&self) -> Option<String> {
        let (total, skipped) = (self.total?, self.skipped.unwrap_or(0));
        if self.failed.unwrap_or(0) > 0 || self.passed.unwrap_or(total) > 0 {
            return None;
        }
        Some(match (total, skipped) {
            (0, 0) => "it ran no test".to_owned(),
            (_, 0) => "no test passed".to_owned(),
            _ if skipped > total => format!("no test passed: {skipped} skipped"),
            _ => format!("no test passed: {skipped} skipped of {total}"),
        })
    }

    /// The figures as text for people.
    pub(super) fn to_text(self) -> String {
        let parts = [
            (self.total, "in total"),
            (self.passed, "passed"),
            (self.failed, "failed"),
            (self.skipped, "skipped"),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter_map(|(count, what)| Some(format!("{} {what}", count?)))
            .collect();
        parts.join(", ")
    }
}

#[derive(Default)]
struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
    any: bool,
}

impl Totals {
    fn add(&mut self, counts: &[(u64, String)]) {
        for (count, what) in counts {
            let sum = match what.as_str() {
                "passed" | "xpassed" => &mut self.passed,
                "failed" | "error" | "errors" | "timed" | "exec" => &mut self.failed,
                "ignored" | "skipped" | "xfailed" | "todo" | "pending" | "disabled" => {
                    &mut self.skipped
                }
                _ => continue,
            };
            *sum = sum.saturating_add(*count);
            self.any = true;
        }
    }

    fn figures(&self) -> Option<Figures> {
        let total = self.passed.saturating_add(self.failed).saturating_add(self.skipped);
        self.any.then_some(Figures {
            total: Some(total),
            passed: Some(self.passed),
            failed: Some(self.failed),
            skipped: Some(self.skipped),
        })
    }
}

/// Parses `3 passed; 1 failed` or `3 passed, 1 failed` into pairs. Text in parentheses is skipped.
pub(super) fn counts(text: &str) -> Vec<(u64, String)> {
    let mut counts = Vec::new();
    let mut number = None;
    let mut depth = 0_u32;
    for word in text.split_whitespace() {
        let opens = word.starts_with('(');
        depth += u32::from(opens);
        if depth == 0 {
            let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            match (bare.parse::<u64>(), number.take()) {
                (Ok(count), _) => number = Some(count),
                (Err(_), Some(count)) => counts.push((count, bare.to_ascii_lowercase())),
                (Err(_), None) => {}
            }
        }
        if depth > 0 && word.trim_end_matches([',', ';', '.']).ends_with(')') {
            depth -= 1;
        }
    }
    counts
}

/// Parses `Summary [   0.05s] 10 tests run: 9 passed (1 slow), 1 failed, 2 skipped`.
fn nextest(line: &str) -> Option<Figures> {
    let rest = line.trim_start().strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once(']')?;
    let (head, rest) = rest.split_once("run:")?;
    if !head.trim_end().ends_with("tests") && !head.trim_end().ends_with("test") {
        return None;
    }
    let mut totals = Totals::default();
    totals.add(&counts(rest));
    totals.figures()
}

/// Parses `Tests:       1 failed, 2 skipped, 3 passed, 6 total`.
fn jest(line: &str) -> Option<Figures> {
    let counts = counts(line.trim_start().strip_prefix("Tests:")?);
    let mut totals = Totals::default();
    totals.add(&counts);
    let total = counts.iter().find(|(_, what)| what == "total").map(|(count, _)| *count)?;
    let figures = Totals { any: true, ..totals }.figures()?;
    Some(Figures { total: Some(total), ..figures })
}

/// Parses `==== 3 passed, 1 failed in 0.12s ====`, with or without the bars.
pub(super) fn pytest(line: &str) -> Option<Figures> {
    let line = line.trim().trim_matches('=').trim();
    let (head, time) = line.rsplit_once(" in ")?;
    let seconds = time.split_whitespace().next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    let counts = counts(head);
    // Prose may also end in a duration. In a summary, every part is a count.
    let parts = head.split(',').count();
    if counts.len() != parts || !head.starts_with(|c: char| c.is_ascii_digit()) {
        return head.starts_with("no tests ran").then_some(Figures {
            total: Some(0),
            passed: Some(0),
            failed: Some(0),
            skipped: Some(0),
        });
    }
    let mut totals = Totals::default();
    totals.add(&counts);
    // pytest names no count of zero. Linters do: `0 errors, 0 warnings in 0.5s`.
    totals.figures().filter(|figures| figures.total > Some(0))
}

/// Removes ANSI escape sequences from a line.
pub(super) fn strip_ansi(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            text.push(c);
            continue;
        }
        match rest.next() {
            // A control sequence ends with its first letter.
            Some('[') => {
                for c in rest.by_ref() {
                    if ('\u{40}'..='\u{7e}').contains(&c) {
                        break;
                    }
                }
            }
            // A title sequence ends with a bell, or with an escape and a backslash.
            Some(']') => {
                while let Some(c) = rest.next() {
                    if c == '\u{7}' || (c == '\u{1b}' && rest.next_if_eq(&'\\').is_some()) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[allow(clippy::unnecessary_wraps)] // The same type as the value it is compared with.
    fn figures(total: u64, passed: u64, failed: u64, skipped: u64) -> Option<Figures> {
        Some(Figures {
            total: Some(total),
            passed: Some(passed),
            failed: Some(failed),
            skipped: Some(skipped),
        })
    }

    #[test]
    fn every_runner_is_read() {
        for (name, text, expected) in [
            (
                "cargo test, several binaries add up",
                "running 3 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
                 test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.01s\n",
                figures(7, 4, 2, 1),
            ),
            (
                "nextest",
                "────────────\n     Summary [   0.053s] 10 tests run: 9 passed (1 slow, 2 flaky), 1 failed, 2 skipped\n",
                figures(12, 9, 1, 2),
            ),
            (
                "nextest, one",
                "     Summary [   0.053s] 1 test run: 1 passed, 0 skipped",
                figures(1, 1, 0, 0),
            ),
            (
                "nextest in colour",
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.053s] \u{1b}[1m4\u{1b}[0m tests run: \u{1b}[1m4\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped",
                figures(4, 4, 0, 0),
            ),
            (
                "nextest, timed out",
                "     Summary [  60.053s] 3 tests run: 1 passed, 1 failed, 1 timed out, 2 skipped",
                figures(5, 1, 2, 2),
            ),
            (
                "pytest",
                "======= 1 failed, 3 passed, 2 skipped, 1 xfailed, 1 error, 2 warnings in 0.12s =======",
                figures(8, 3, 2, 3),
            ),
            ("pytest, long", "==== 12 passed in 63.20s (0:01:03) ====", figures(12, 12, 0, 0)),
            ("pytest -q", "....\n4 passed in 0.01s\n", figures(4, 4, 0, 0)),
            ("pytest, none", "==== no tests ran in 0.01s ====", figures(0, 0, 0, 0)),
            ("no pytest", "0 errors, 0 warnings in 0.53s", None),
            ("pytest, deselected", "1 passed, 4 deselected in 0.01s", figures(1, 1, 0, 0)),
            (
                "jest",
                "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 2 skipped, 3 passed, 6 total\nSnapshots:   0 total\n",
                figures(6, 3, 1, 2),
            ),
            (
                "go test -v",
                "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n--- FAIL: TestB (0.01s)\n--- SKIP: TestC (0.00s)\nFAIL\n",
                figures(3, 1, 1, 1),
            ),
            ("go test", "ok  \texample.org/pkg\t0.012s\n", None),
            ("nothing", "", None),
            ("prose", "All 12 tests passed in 0.1s!\nI fixed 3 files in 2s\n", None),
            (
                "a number too large",
                "test result: ok. 99999999999999999999999 passed; 0 failed",
                figures(0, 0, 0, 0),
            ),
        ] {
            assert_eq!(Figures::from_output(text.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn figures_without_a_test_that_passed_say_so() {
        for (read, why) in [
            (figures(2, 0, 0, 2), Some("no test passed: 2 skipped of 2")),
            (figures(0, 0, 0, 0), Some("it ran no test")),
            (figures(3, 0, 0, 0), Some("no test passed")),
            (figures(3, 1, 0, 2), None),
            (figures(3, 0, 1, 2), None),
            (
                Some(Figures { total: Some(0), skipped: Some(1), ..Figures::default() }),
                Some("no test passed: 1 skipped"),
            ),
            (Some(Figures { total: Some(2), skipped: Some(3), ..Figures::default() }), None),
            (Some(Figures::default()), None),
        ] {
            let said = read.and_then(|read| read.without_pass());
            assert_eq!(said.as_deref(), why, "{read:?}");
        }
    }

    #[test]
    fn a_report_that_is_none_says_so() {
        assert!(
            Figures::from_report(b"hello").unwrap_err().to_string().contains("neither JUnit XML")
        );
        assert!(Figures::from_report(&[0xff; 64]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_that_is_printed_is_too_much(text in "[ -~\\n\u{1b}=:;,]{0,300}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Figures::from_output(text.as_bytes());
            let _ = Figures::from_report(&bytes);
            let displayed = strip_ansi(&text);
            prop_assert!(displayed.chars().all(|c| c != 27 as char));
        }

        #[test]
        fn what_cargo_prints_adds_up(runs in prop::collection::vec((0u64..99, 0u64..99, 0u64..99), 1..6)) {
            let mut text = String::new();
            for (passed, failed, ignored) in &runs {
                text.push_str(&format!("noise\ntest result: ok. {passed} passed; {failed} failed; {ignored} ignored\n"));
            }
            let sum = |of: fn(&(u64, u64, u64)) -> u64| runs.iter().map(of).sum::<u64>();
            let (passed, failed, skipped) = (sum(|r| r.0), sum(|r| r.1), sum(|r| r.2));
            prop_assert_eq!(Figures::from_output(text.as_bytes()), figures(passed + failed + skipped, passed, failed, skipped));
        }
    }
}
