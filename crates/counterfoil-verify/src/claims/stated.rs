//! What the words of a result say about a command. Pure.
//!
//! A text that is not understood makes a claim as well, and one that cannot be verified: otherwise a
//! claim could be left out by wording it freely. Only what plainly says that nothing is claimed, such
//! as `not run`, makes none.

use super::claimed_counts::ClaimedNumber;
use super::extract::CommandClaim;
use counterfoil_contract::claim::Figure;

/// Words that say that something passed.
const PASSES: [&str; 21] = [
    "pass",
    "passed",
    "passes",
    "passing",
    "success",
    "successful",
    "successfully",
    "succeeded",
    "succeeds",
    "ok",
    "okay",
    "green",
    "good",
    "clean",
    "fine",
    "works",
    "valid",
    "done",
    "complete",
    "completed",
    "finished",
];
/// Words that say that something failed.
const FAILS: [&str; 12] = [
    "fail", "failed", "fails", "failing", "failure", "failures", "error", "errors", "red",
    "broken", "invalid", "crashed",
];
/// Words that change nothing about what others say.
const FILLERS: [&str; 22] = [
    "a",
    "all",
    "and",
    "are",
    "check",
    "checks",
    "everything",
    "has",
    "have",
    "is",
    "it",
    "now",
    "of",
    "run",
    "suite",
    "test",
    "tests",
    "the",
    "total",
    "unit",
    "were",
    "was",
];
/// What is said not to be there: `0 failed`, `no errors`.
const ABSENT: [&str; 5] = ["skipped", "ignored", "warnings", "warning", "todo"];
/// Words of a text that says that nothing is claimed.
const NOTHING: [&str; 34] = [
    "n a",
    "na",
    "none",
    "null",
    "nil",
    "nothing",
    "unknown",
    "untested",
    "unavailable",
    "skip",
    "skipped",
    "pending",
    "deferred",
    "blocked",
    "tbd",
    "not run",
    "not ran",
    "not executed",
    "not tested",
    "not checked",
    "not applicable",
    "not available",
    "not attempted",
    "not verified",
    "not started",
    "not configured",
    "did not run",
    "could not run",
    "cannot run",
    "can t run",
    "was not run",
    "were not run",
    "tests not run",
    "unable to run",
];
/// Other texts that say that something passed.
const PASSING_TEXTS: [&str; 5] = ["true", "yes", "exit 0", "exit code 0", "exited with 0"];
/// Other texts that say that something failed.
const FAILING_TEXTS: [&str; 13] = [
    "false",
    "no",
    "incomplete",
    "unfinished",
    "not done",
    "not complete",
    "not passing",
    "some fail",
    "some failed",
    "some failing",
    "all fail",
    "all failed",
    "tests fail",
];

/// The claim that a text makes about a command.
pub(super) fn claim_from_word(text: &str) -> CommandClaim {
    read(text).0
}

/// The counts that a text states beside the claim that a command succeeds: `2/2 passed`.
pub(super) fn counts(text: &str) -> Vec<(Figure, ClaimedNumber)> {
    match read(text) {
        (CommandClaim::Succeeds, numbers) => {
            let figures = [Figure::Passed, Figure::Total].into_iter();
            figures.zip(numbers.into_iter().map(ClaimedNumber::Count)).collect()
        }
        _ => Vec::new(),
    }
}

/// The claim of a text, and its numbers.
fn read(text: &str) -> (CommandClaim, Vec<u64>) {
    let all = words(text);
    let plain = all.join(" ");
    let is = |claim| (claim, Vec::new());
    match all.as_slice() {
        // Nothing but marks says something, but not what.
        [] if text.chars().any(|c| !c.is_whitespace() && !c.is_ascii_punctuation()) => {
            return is(CommandClaim::Unclear);
        }
        [] => return is(CommandClaim::Unstated),
        [one] if FAILS.contains(&one.as_str()) => return is(CommandClaim::Fails),
        [first, second] if first == "tests" && FAILS.contains(&second.as_str()) => {
            return is(CommandClaim::Fails);
        }
        _ => {}
    }
    if PASSING_TEXTS.contains(&plain.as_str()) {
        return is(CommandClaim::Succeeds);
    }
    if FAILING_TEXTS.contains(&plain.as_str()) {
        return is(CommandClaim::Fails);
    }
    let says = |word: &String| PASSES.contains(&word.as_str()) || FAILS.contains(&word.as_str());
    let begins = |phrase: &&str| {
        plain.strip_prefix(*phrase).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    if NOTHING.iter().any(begins) && !all.iter().any(says) {
        return is(CommandClaim::Unstated);
    }
    let left = without_absent(without_time(&all));
    let mut numbers = Vec::new();
    let mut passes = false;
    for word in left {
        if PASSES.contains(&word.as_str()) {
            passes = true;
        } else if let Ok(number) = word.parse::<u64>() {
            numbers.push(number);
        } else if !FILLERS.contains(&word.as_str()) {
            return is(CommandClaim::Unclear);
        }
    }
    let agree = match numbers.as_slice() {
        [] => true,
        [one] => *one > 0,
        [one, other] => *one > 0 && one == other,
        _ => false,
    };
    if passes && agree { (CommandClaim::Succeeds, numbers) } else { is(CommandClaim::Unclear) }
}

/// The words and numbers of a text, in lower case. A sign that stands for a word is that word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
            continue;
        }
        let sign = match c {
            '\u{2705}' | '\u{2714}' | '\u{2713}' | '\u{2611}' => Some("ok"),
            '\u{1f7e2}' => Some("green"),
            '\u{274c}' | '\u{2717}' | '\u{2718}' | '\u{2716}' => Some("failed"),
            '\u{1f534}' => Some("red"),
            _ => None,
        };
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        words.extend(sign.map(str::to_owned));
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The words before a time at the end: `in 0.12s`.
fn without_time(words: &[String]) -> &[String] {
    let is_time = |word: &String| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
        matches!(unit, "" | "s" | "ms" | "sec" | "second" | "seconds" | "m")
    };
    match words.iter().rposition(|word| word == "in") {
        Some(at) if at + 1 < words.len() && words[at + 1..].iter().all(is_time) => &words[..at],
        _ => words,
    }
}

/// The words without those that say that there is none of something: `0 failed`, `no errors`.
fn without_absent(words: &[String]) -> Vec<&String> {
    let mut left = Vec::new();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let is_absent =
            |next: &&String| FAILS.contains(&next.as_str()) || ABSENT.contains(&next.as_str());
        if matches!(word.as_str(), "0" | "no") && rest.next_if(is_absent).is_some() {
            continue;
        }
        left.push(word);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_claim(texts: &[&str], claim: CommandClaim) {
        for text in texts {
            assert_eq!(claim_from_word(text), claim, "{text}");
        }
    }

    #[test]
    fn plain_words_and_sentences_are_understood() {
        all_claim(
            &[
                "PASS",
                "all_pass",
                "all-tests-passing",
                "All 2 tests pass.",
                "All tests pass",
                "2/2 passed",
                "passed (2)",
                "2 of 2 passed",
                "GREEN ✅ all tests pass",
                "✅",
                "✔️",
                "2 passed, 0 failed",
                "2 passed in 0.01s",
                "no failures, all green",
                "yes",
                "successful",
                "exit code 0",
            ],
            CommandClaim::Succeeds,
        );
        all_claim(
            &["FAILED", "some_fail", "tests-failed", "❌", "red", "incomplete", "not-passing"],
            CommandClaim::Fails,
        );
    }

    #[test]
    fn what_says_that_nothing_was_run_claims_nothing() {
        all_claim(
            &[
                "",
                "  ",
                "-",
                "n/a",
                "N/A",
                "none",
                "not run",
                "not-run",
                "NOT_RUN",
                "skipped",
                "unknown",
                "not run: pytest is not installed",
                "skipped (no network)",
                "could not run the tests",
            ],
            CommandClaim::Unstated,
        );
    }

    #[test]
    fn what_is_not_understood_is_a_claim() {
        all_claim(
            &[
                "1/2 passed",
                "0 passed",
                "tests should pass",
                "all tests pass except one",
                "not run, but all tests pass",
                "looks right to me",
                "👍",
                "not green",
                "2",
                "none failed",
                "2 passed, 1 failed",
                "see the log",
            ],
            CommandClaim::Unclear,
        );
    }

    #[test]
    fn numbers_in_a_text_are_counts() {
        let passed = (Figure::Passed, ClaimedNumber::Count(2));
        assert_eq!(counts("All 2 tests pass."), std::slice::from_ref(&passed));
        assert_eq!(counts("2/2 passed"), [passed, (Figure::Total, ClaimedNumber::Count(2))]);
        assert_eq!(counts("all green"), []);
        assert_eq!(counts("1/2 passed"), []);
    }
}
