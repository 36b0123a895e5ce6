//! Whether tests passed in what a check printed, also where it called several test runners, of which
//! only one is counted. Pure.

use super::figures::{counts, strip_ansi};
use super::unittest;

/// Whether a text shows that a test passed.
pub(super) fn are_in(text: &str) -> bool {
    text.split(['\n', '\r']).any(|line| is_pass(strip_ansi(line).trim()))
        || unittest::summaries(text)
            .iter()
            .any(|summary| summary.figures.total != Some(0) && summary.figures.passed != Some(0))
}

fn is_pass(line: &str) -> bool {
    // A file without a test that ran may pass.
    if line.starts_with("Test Suites") || line.starts_with("Test Files") {
        return false;
    }
    let of_node = ["# pass ", "\u{2139} pass "].iter().find_map(|start| line.strip_prefix(*start));
    let is_counted = |(count, what): &(u64, String)| {
        let passes = ["passed", "passing", "xpassed", "succeeded", "measured"];
        *count > 0 && passes.contains(&what.as_str())
    };
    line.starts_with("--- PASS: ")
        || of_node.is_some_and(|count| count.trim().parse::<u64>().is_ok_and(|count| count > 0))
        || counts(line).iter().any(is_counted)
}

/// Whether cargo ran a program with tests that printed no counts: one with a harness of its own.
pub(super) fn has_other_program(stdout: &str, stderr: &str) -> bool {
    let is_program = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("Doc-tests ") || line.starts_with("Running ") && line.ends_with(')')
    };
    let is_result = |line: &&str| line.trim_start().starts_with("test result:");
    let programs = stderr.lines().filter(is_program).count();
    let results = stdout.lines().filter(is_result).count();
    results > 0 && programs > results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_of_any_runner_are_found() {
        for text in [
            "test result: ok. 1 passed; 0 failed\ntest result: ok. 0 passed; 0 failed\n",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 5 measured; 0 filtered out\n",
            "3 passed in 0.10s\n1 skipped in 0.01s\n",
            "Tests:       3 passed, 3 total\n",
            "\u{1b}[32m  Tests  2 passed (2)\u{1b}[39m\n",
            "    --- PASS: TestA/sub (0.00s)\n",
            "# tests 2\n# pass 2\n",
            "\u{2139} pass 2\n",
            "  12 passing (40ms)\n",
            "..\n----------\nRan 2 tests in 0.001s\n\nOK\n",
        ] {
            assert!(are_in(text), "{text}");
        }
        for text in [
            "",
            "test result: ok. 0 passed; 0 failed; 3 ignored; 0 measured; 9 filtered out\n",
            "2 skipped in 0.01s\n",
            "Test Suites: 1 passed, 1 total\nTests:       2 todo, 2 total\n",
            "--- SKIP: TestA (0.00s)\n",
            "# tests 2\n# pass 0\n# skipped 2\n",
            "ss\n----------\nRan 2 tests in 0.001s\n\nOK (skipped=2)\n",
            "----------\nRan 0 tests in 0.000s\n\nOK\n",
            "All checks passed!\n",
        ] {
            assert!(!are_in(text), "{text}");
        }
    }

    #[test]
    fn programs_with_a_harness_of_their_own_are_found() {
        let empty = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed\n";
        let unit = "     Running unittests src/lib.rs (target/debug/deps/a-1)\n";
        let own = "     Running tests/own.rs (target/debug/deps/own-2)\n   Doc-tests a\n";
        assert!(has_other_program(empty, &format!("{unit}{own}")));
        assert!(!has_other_program(empty, unit));
        assert!(!has_other_program(empty, ""));
        assert!(!has_other_program("", unit));
    }
}
