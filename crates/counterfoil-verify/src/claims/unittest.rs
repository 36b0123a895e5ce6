//! The summary that Python's unittest prints at the end of standard error. Pure.

use super::figures::{Figures, strip_ansi};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The summary of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) figures: Figures,
    /// Whether it says that the run failed.
    pub(super) has_failed: bool,
}

/// All complete summaries of a text.
pub(super) fn summaries(text: &str) -> Vec<Summary> {
    let lines = lines(text);
    (0..lines.len()).filter_map(|last| summary(&lines[..=last])).collect()
}

/// The summary that a text ends with. Only messages of make may follow it: what a test prints while
/// it runs comes before the summary.
pub(super) fn at_end(text: &str) -> Option<Summary> {
    let mut lines = lines(text);
    while lines.last().is_some_and(|line| is_from_make(line)) {
        lines.pop();
    }
    summary(&lines)
}

/// The lines of a text that are not empty.
fn lines(text: &str) -> Vec<Cow<'_, str>> {
    let lines = text.split(['\n', '\r']).map(strip_ansi);
    lines.filter(|line| !line.trim().is_empty()).collect()
}

/// Whether make said that a recipe failed: `make[1]: *** [Makefile:2: test] Error 1`.
fn is_from_make(line: &str) -> bool {
    let program = line.split_once(": *** ").map(|(program, _)| program);
    program.and_then(|program| program.split('[').next()).is_some_and(|program| {
        matches!(program.rsplit('/').next(), Some("make" | "gmake" | "bmake"))
    })
}

/// The summary in the last three of these lines.
fn summary(lines: &[Cow<'_, str>]) -> Option<Summary> {
    let [report @ .., bar, ran, result] = lines else { return None };
    // A test may have printed something without a line break before it.
    if !bar.ends_with("----------") {
        return None;
    }
    let ran = ran_count(ran)?;
    let (word, details) = match result.trim_end().split_once(" (") {
        Some((word, details)) => (word, Some(details.strip_suffix(')')?)),
        None => (result.trim_end(), None),
    };
    if !matches!(word, "OK" | "FAILED" | "NO TESTS RAN") {
        return None;
    }
    let (mut failed, mut unexpected, mut skipped) = (0_u64, 0_u64, 0_u64);
    for detail in details.into_iter().flat_map(|details| details.split(", ")) {
        let (what, count) = detail.split_once('=')?;
        let sum = match what {
            "failures" | "errors" => &mut failed,
            "unexpected successes" => &mut unexpected,
            // As in the figures of pytest.
            "skipped" | "expected failures" => &mut skipped,
            _ => return None,
        };
        *sum = sum.saturating_add(count.parse().ok()?);
    }
    // A test with several failures counts several times, and what fails outside of tests as well.
    let is_exact = failed == 0 || failed_tests(report) == Some(failed);
    let failed = failed.saturating_add(unexpected);
    let passed = ran.checked_sub(failed).and_then(|rest| rest.checked_sub(skipped));
    // A class that its `setUpClass` skips counts as skipped, and not as a test that ran.
    let is_exact = is_exact && (skipped == 0 || passed != Some(0) || !shows_pass(report));
    let figures = Figures {
        total: Some(ran),
        passed: passed.filter(|_| is_exact),
        failed: Some(failed),
        skipped: Some(skipped),
    };
    Some(Summary { figures, has_failed: word == "FAILED" })
}

/// Parses `Ran 3 tests in 0.001s`.
fn ran_count(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split(' ').map(str::trim_end).collect();
    let ["Ran", count, "test" | "tests", "in", time] = words[..] else { return None };
    time.strip_suffix('s')?.parse::<f64>().ok()?;
    count.parse().ok()
}

/// Whether the progress of a run shows a test that passed: `.s`, `test_a (t.A.test_a) ... ok`.
fn shows_pass(report: &[Cow<'_, str>]) -> bool {
    run_of(report).iter().map(|line| line.trim_end()).any(|line| {
        line.ends_with(" ... ok")
            || line.contains('.') && line.chars().all(|c| ".sFExu".contains(c))
    })
}

/// The lines of the last run. An earlier run has headings and a progress of its own.
fn run_of<'a, 'b>(report: &'a [Cow<'b, str>]) -> &'a [Cow<'b, str>] {
    let start = report.iter().rposition(|line| ran_count(line).is_some()).unwrap_or(0);
    &report[start..]
}

/// How many tests failed, by the headings of the failures. None if one of them is no test of its
/// own, or if a test failed several times.
fn failed_tests(report: &[Cow<'_, str>]) -> Option<u64> {
    let mut tests = BTreeSet::new();
    for pair in run_of(report).windows(2) {
        let [bar, heading] = pair else { continue };
        if !bar.ends_with("==========") {
            continue;
        }
        let name = heading.strip_prefix("FAIL: ").or_else(|| heading.strip_prefix("ERROR: "));
        let Some(name) = name else { continue };
        // A part of a test is named behind it: `test_a (tests.A.test_a) (i=0)`.
        let is_part = name.matches(" (").count() > 1 || name.contains(" [");
        let is_fixture = ["setUpClass", "tearDownClass", "setUpModule", "tearDownModule"]
            .iter()
            .any(|fixture| name.starts_with(fixture));
        if is_part || is_fixture || !tests.insert(name) {
            return None;
        }
    }
    u64::try_from(tests.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BAR: &str = "----------------------------------------------------------------------";

    fn text(ran: &str, result: &str) -> String {
        format!("...\n{BAR}\n{ran}\n\n{result}\n")
    }

    fn figures(total: u64, passed: Option<u64>, failed: u64, skipped: u64) -> Figures {
        Figures { total: Some(total), passed, failed: Some(failed), skipped: Some(skipped) }
    }

    #[test]
    fn a_summary_is_read() {
        for (ran, result, expected) in [
            ("Ran 2 tests in 0.001s", "OK", figures(2, Some(2), 0, 0)),
            ("Ran 1 test in 61.5s", "OK", figures(1, Some(1), 0, 0)),
            ("Ran 0 tests in 0.000s", "NO TESTS RAN", figures(0, Some(0), 0, 0)),
            (
                "Ran 5 tests in 0.001s",
                "OK (skipped=1, expected failures=1)",
                figures(5, Some(3), 0, 2),
            ),
            // Without headings it is not known how many tests failed.
            (
                "Ran 9 tests in 0.001s",
                "FAILED (failures=1, errors=1, unexpected successes=1)",
                figures(9, None, 3, 0),
            ),
            ("Ran 9 tests in 0.001s", "FAILED (unexpected successes=1)", figures(9, Some(8), 1, 0)),
            // A class that is skipped as a whole may count as skipped without its tests.
            ("Ran 0 tests in 0.000s", "OK (skipped=1)", figures(0, None, 0, 1)),
        ] {
            let summary = at_end(&text(ran, result)).unwrap();
            assert_eq!(summary.figures, expected, "{result}");
            assert_eq!(summary.has_failed, result.starts_with("FAILED"), "{result}");
        }
    }

    #[test]
    fn a_class_that_is_skipped_is_no_test_that_was() {
        for (progress, passed) in [
            ("ss", Some(0)),
            (".s", None),
            ("test_a (t.A.test_a) ... ok", None),
            ("test_a (t.A.test_a) ... skipped 'later'", Some(0)),
            ("", Some(0)),
            ("1.5 s", Some(0)),
        ] {
            let text = format!("{progress}\n{BAR}\nRan 1 test in 0.001s\n\nOK (skipped=1)\n");
            assert_eq!(at_end(&text).unwrap().figures, figures(1, passed, 0, 1), "{progress}");
        }
    }

    #[test]
    fn the_tests_that_passed_are_known_if_each_failure_is_a_test() {
        let bar = "=".repeat(70);
        for (headings, passed) in [
            (["FAIL: test_a (t.A.test_a)", "ERROR: test_b (t.A.test_b)"], Some(3)),
            // It failed, and cleaning up after it did as well.
            (["FAIL: test_a (t.A.test_a)", "ERROR: test_a (t.A.test_a)"], None),
            (["FAIL: test_a (t.A.test_a) (i=0)", "FAIL: test_a (t.A.test_a) (i=1)"], None),
            (["FAIL: test_a (t.A.test_a) [name]", "FAIL: test_b (t.A.test_b)"], None),
            (["ERROR: setUpClass (t.A)", "FAIL: test_b (t.A.test_b)"], None),
            (["FAIL: test_a (t.A.test_a)", "something else"], None),
        ] {
            let failures = headings.map(|heading| format!("{bar}\n{heading}\n{BAR}\nwhy\n"));
            let ran = text("Ran 5 tests in 0.001s", "FAILED (failures=1, errors=1)");
            let summary = at_end(&format!("{}{ran}", failures.concat())).unwrap();
            assert_eq!(summary.figures, figures(5, passed, 2, 0), "{headings:?}");
        }
    }

    #[test]
    fn only_a_whole_summary_at_the_end_counts() {
        let whole = text("Ran 2 tests in 0.001s", "OK");
        let other = text("Ran 3 tests in 0.001s", "OK");
        let last = at_end(&format!("{whole}{other}")).unwrap();
        assert_eq!(last.figures.total, Some(3));
        assert_eq!(summaries(&format!("{whole}{other}more\n")).len(), 2);
        let make = format!("{whole}make[1]: *** [Makefile:2: test] Error 1\n\n");
        assert!(at_end(&make).is_some());
        assert!(at_end(&whole.replace("...\n", "printed by a test")).is_some());
        for none in [
            format!("{whole}more\n"),
            format!("{whole}fake: *** Error 1\n"),
            whole.replace("OK\n", ""),
            whole.replace(BAR, ""),
            whole.replace("OK", "OK."),
            whole.replace("OK", "OK (skipped)"),
            whole.replace("OK", "OK (passed=9)"),
            whole.replace("OK", "OK (skipped=1"),
            whole.replace("0.001s", "no time"),
            whole.replace("Ran 2", "Ran -2"),
            String::new(),
        ] {
            assert_eq!(at_end(&none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_printed_is_too_much(
            text in "[ -~\\n\u{1b}=:;,]{0,300}",
            (ran, count) in (any::<u64>(), any::<u64>()),
        ) {
            let summary = format!(
                "{text}\n{BAR}\nRan {ran} tests in 1s\n\nFAILED (failures={count}, errors={count}, skipped={count})\n"
            );
            prop_assert!(at_end(&summary).is_some());
            let _ = (at_end(&text), summaries(&text));
        }
    }
}
