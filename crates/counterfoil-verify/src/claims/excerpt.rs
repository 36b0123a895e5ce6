//! The part of a check's output that people and agents are shown: all of it if it is short,
//! otherwise what failed and then the end.

use std::borrow::Cow;

/// The maximum length of an excerpt in bytes.
pub(super) const MAX_EXCERPT_BYTES: usize = 6 << 10;
/// The lines that are shown before and after a line that reports a failure.
const CONTEXT: (usize, usize) = (1, 6);
/// Longer lines are cut.
const MAX_LINE_BYTES: usize = 500;
/// Stands for lines that are left out.
const LEFT_OUT: &str = "[…]";

/// Words that mark a line as the report of a failure. They are compared in lower case.
const FAILURE_WORDS: [&str; 12] = [
    "fail",
    "error",
    "panic",
    "assert",
    "exception",
    "traceback",
    "not ok",
    "fatal",
    "✗",
    "✕",
    "×",
    "●",
];
/// Words that take the mark away: nothing failed.
const SUCCESS_WORDS: [&str; 6] =
    ["0 failed", "0 failures", "0 errors", "no errors", "failures: 0", "errors: 0"];

/// Which part of a long output matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// What failed, and the end.
    Failures,
    /// Only the end.
    End,
}

/// An excerpt of at most `max` bytes. Lines that are left out are marked.
pub(super) fn excerpt(output: &str, focus: Focus, max: usize) -> String {
    let output = output.trim_end();
    if output.len() <= max {
        return output.to_owned();
    }
    let lines: Vec<&str> = output.lines().collect();
    // The marks of two gaps are part of the length.
    let room = max.saturating_sub(2 * (LEFT_OUT.len() + 1));
    let failing = match focus {
        Focus::Failures => failing_lines(&lines, room / 3 * 2),
        Focus::End => Vec::new(),
    };
    let used: usize = failing.iter().map(|at| cut(lines[*at]).len() + 1).sum();
    let gaps = failing.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let mut left = room.saturating_sub(used + gaps * (LEFT_OUT.len() + 1));
    let mut tail = Vec::new();
    for (at, line) in lines.iter().enumerate().rev() {
        let length = cut(line).len() + 1;
        if length > left || failing.last() == Some(&at) {
            break;
        }
        left -= length;
        tail.push(at);
    }
    tail.reverse();
    let mut text = String::with_capacity(max);
    let mut next = 0;
    for at in failing.into_iter().chain(tail) {
        if at != next {
            text.push_str(LEFT_OUT);
            text.push('\n');
        }
        text.push_str(&cut(lines[at]));
        text.push('\n');
        next = at + 1;
    }
    text.truncate(text.trim_end().len());
    text
}

/// The lines that report failures, each with its context, from the first one on until the room is
/// used.
fn failing_lines(lines: &[&str], room: usize) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut used = 0;
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| reports_failure(line)) {
        let from = at.saturating_sub(CONTEXT.0).max(chosen.last().map_or(0, |last| last + 1));
        let to = (at + CONTEXT.1 + 1).min(lines.len());
        for (index, line) in lines.iter().enumerate().take(to).skip(from) {
            // A gap costs a mark.
            let gap = if chosen.last().is_some_and(|last| last + 1 != index) {
                LEFT_OUT.len() + 1
            } else {
                0
            };
            used += cut(line).len() + 1 + gap;
            if used > room {
                return chosen;
            }
            chosen.push(index);
        }
    }
    chosen
}

fn reports_failure(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let passed = line.ends_with(" ok") || line.ends_with("passed") || line.ends_with("... ok");
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    !passed && has(&FAILURE_WORDS) && !counts_nothing(&line)
}

/// Whether a line says that nothing failed: "0 failed", but not "10 failed".
fn counts_nothing(line: &str) -> bool {
    SUCCESS_WORDS.iter().any(|word| {
        line.match_indices(word).any(|(at, _)| {
            !line[..at].ends_with(|before: char| before.is_alphanumeric())
                && !line[at + word.len()..].starts_with(|after: char| after.is_ascii_digit())
        })
    })
}

/// A line, or the beginning of a long one with a mark: who redacts it has to know that a secret may
/// be cut off there.
fn cut(line: &str) -> Cow<'_, str> {
    if line.len() <= MAX_LINE_BYTES {
        return Cow::Borrowed(line);
    }
    let end = line.floor_char_boundary(MAX_LINE_BYTES - '…'.len_utf8());
    Cow::Owned(format!("{}…", &line[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("test number_{at:05} ... ok")).collect()
    }

    #[test]
    fn a_short_output_is_shown_whole() {
        let output = "one\nFAILED two\nthree\n";
        assert_eq!(excerpt(output, Focus::Failures, 100), output.trim_end());
        assert_eq!(excerpt("", Focus::Failures, 100), "");
    }

    #[test]
    fn what_failed_comes_first_and_the_end_after_it() {
        let mut lines = numbered(2000);
        lines[700] = "thread 'adds' panicked at src/lib.rs:3".to_owned();
        lines[701] = "left: 1, right: 2".to_owned();
        lines.push("test result: FAILED. 1999 passed; 1 failed".to_owned());
        let output = lines.join("\n");
        let shown = excerpt(&output, Focus::Failures, 2000);
        assert!(shown.len() <= 2000, "{}", shown.len());
        assert!(shown.starts_with("[…]\ntest number_00699 ... ok\nthread 'adds' panicked"));
        assert!(shown.contains("left: 1, right: 2\n"));
        assert!(shown.ends_with("1999 passed; 1 failed"), "{shown}");
    }

    #[test]
    fn a_line_that_is_cut_off_has_a_mark() {
        let output = format!("error: {}\n{}", "é".repeat(500), numbered(100).join("\n"));
        let shown = excerpt(&output, Focus::Failures, 2000);
        let line = shown.lines().next().unwrap();
        assert!(line.len() <= MAX_LINE_BYTES && line.ends_with("é…"), "{shown}");
        assert_eq!(cut(&"x".repeat(MAX_LINE_BYTES)), "x".repeat(MAX_LINE_BYTES));
    }

    #[test]
    fn the_end_alone_is_shown_of_what_passed() {
        let output = numbered(2000).join("\n");
        let shown = excerpt(&output, Focus::End, 500);
        assert!(shown.len() <= 500 && shown.starts_with("[…]\n"), "{shown}");
        assert!(shown.ends_with("number_01999 ... ok"));
    }

    #[test]
    fn any_output_stays_within_the_bound() {
        let failing = vec!["error: ä".repeat(90); 500].join("\n");
        let long = "é".repeat(50_000);
        let mixed = vec!["error[E0308]: mismatched types\n  --> src/lib.rs\n\n\n\n\n\n\n\n\n"; 400]
            .join("x\n");
        for output in [failing.as_str(), long.as_str(), mixed.as_str()] {
            for max in [50, 200, 1000, MAX_EXCERPT_BYTES] {
                for focus in [Focus::Failures, Focus::End] {
                    let shown = excerpt(output, focus, max);
                    assert!(shown.len() <= max, "{} of {max}", shown.len());
                }
            }
        }
    }

    #[test]
    fn lines_about_success_do_not_count_as_failures() {
        for line in ["test error_paths ... ok", "0 failed, 3 passed", "tests/test_error.py passed"]
        {
            assert!(!reports_failure(line), "{line}");
        }
        for line in [
            "FAILED tests/a.py::test_b",
            "error[E0308]: mismatched types",
            "--- FAIL: TestAdd (0.00s)",
            "  ● adds numbers",
            "test adds ... FAILED",
            "not ok 3 - adds",
            "10 failed, 3 passed in 1 s",
        ] {
            assert!(reports_failure(line), "{line}");
        }
    }
}
