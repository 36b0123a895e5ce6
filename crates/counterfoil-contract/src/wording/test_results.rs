//! Whether a report about tests says that some failed, or that none ran.

use super::parts::{Part, Text, any_part, leading_number, lines, pattern, says_no, says_yes};
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// Whether a report about tests says anywhere that one failed, or that none ran.
pub(crate) fn reports_failure(value: &Value) -> bool {
    value.as_str().is_some_and(|text| WORDS.nothing_ran.is_match(text))
        || any_part(value, &|part| {
            part.members().any(|(name, value)| is_failing_member(name, value))
                || part.texts().any(|text| is_failing_text(&text))
                || fewer_passed_than_ran(part)
        })
}

fn is_failing_member(name: &str, value: &Value) -> bool {
    let says = |pattern: &Regex| value.as_str().is_some_and(|text| pattern.is_match(text));
    let is_empty = value.as_array().is_some_and(Vec::is_empty);
    let is_zero = value.as_f64() == Some(0.0);
    if WORDS.failed_name.is_match(name) {
        return match value {
            Value::Array(items) => !items.is_empty(),
            other => says_yes(other) || leading_number(other).is_some_and(|number| number > 0.0),
        };
    }
    match name {
        "passed" | "pass" | "passes" | "ok" | "success" | "successful" | "succeeded"
        | "passing" | "all_passed" | "all_pass" | "green" => {
            value.is_null() || is_zero || is_empty || says_no(value) || says(&WORDS.zero)
        }
        "total" | "run" | "ran" | "tests_run" | "executed" | "command" | "commands" => {
            value.is_null()
                || is_zero
                || is_empty
                || *value == Value::Bool(false)
                || says(&WORDS.none)
        }
        "exit_code" | "exitcode" | "exit_status" | "exitstatus" | "return_code" | "returncode"
        | "rc" => leading_number(value).is_some_and(|code| code != 0.0),
        "status" | "result" | "results" | "outcome" | "verdict" | "conclusion" | "state" => {
            says(&WORDS.failed_outcome)
        }
        _ => false,
    }
}

/// Fewer tests passed than ran, and the skipped ones are not the rest.
fn fewer_passed_than_ran(part: &Part<'_>) -> bool {
    let count = |names: &Regex| {
        let counts = part.members().filter(|(name, _)| names.is_match(name));
        counts.filter_map(|(_, value)| whole_number(value)).collect::<Vec<_>>()
    };
    let not_run: u64 = count(&WORDS.not_run_name).iter().sum();
    let passed = count(&WORDS.passed_name);
    let ran = count(&WORDS.ran_name);
    passed.iter().any(|passed| ran.iter().any(|ran| passed.saturating_add(not_run) < *ran))
}

/// A count, or a text that is one.
fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse::<u32>().ok().map(u64::from),
        // Larger numbers are no counts of tests.
        other => other.as_u64().filter(|count| u32::try_from(*count).is_ok()),
    }
}

fn is_failing_text(text: &Text<'_>) -> bool {
    let belongs = text.is_member && WORDS.label_name.is_match(text.name);
    lines(text.text).enumerate().any(|(index, line)| {
        let line = if index == 0 && belongs { format!("{}: {line}", text.name) } else { line };
        (WORDS.failing.is_match(&line) && !WORDS.not_failing.is_match(&line)) || has_fewer_of(&line)
    })
}

/// "2 of 3 pass", "2/3 passed", "passed: 2 / 3".
fn has_fewer_of(line: &str) -> bool {
    WORDS.ratio.captures_iter(line).any(|found| {
        let number = |name: &str| found.name(name)?.as_str().parse::<u32>().ok();
        let is_about_passing = found.name("after").is_some() || found.name("before").is_some();
        is_about_passing && number("some").zip(number("all")).is_some_and(|(some, all)| some < all)
    })
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

struct Words {
    /// The name of a field that counts or lists tests that failed.
    failed_name: Regex,
    passed_name: Regex,
    ran_name: Regex,
    /// The name of a field that counts tests that were not to run or to pass.
    not_run_name: Regex,
    /// The name of a field that belongs to its text: `{"failed": "test_sub"}`.
    label_name: Regex,
    failed_outcome: Regex,
    /// A text that is nothing but this.
    nothing_ran: Regex,
    none: Regex,
    zero: Regex,
    failing: Regex,
    /// "failed: none" and "passed: …".
    not_failing: Regex,
    ratio: Regex,
}

impl Words {
    fn new() -> Self {
        let failed_name = "((tests?|checks?|cases?|total|num|count|unit)_)?(failed|fails?|failures?|errors?\
             |errored|failing|broken|timed_?out|crashed|not_run)(_(tests?|checks?|cases?|count\
             |total))?";
        let cross = "❌✗✘✖";
        let failing = [
            // "FAILED (failures=1)", "not ok".
            format!(
                "^[^a-z0-9{cross}]*(fail|failed|fails|failing|failure|error|errors|errored|broken\
                 |red|not ok|not run|timeout|timed out|crashed|[{cross}])[^a-z0-9]*\
                 ($|[:(\\[,;.!=])"
            ),
            "^[^a-z0-9]*(failed|failures?|errors?|failing|broken)( tests?)?[^a-z0-9]+[a-z1-9]"
                .to_owned(),
            // "test_sub: FAIL", "test_sub ... FAILED".
            format!(
                "([:=|]|[.][.][.]) *(fail|failed|failing|failure|[{cross}])[^a-z0-9]*($|[.,;:(])"
            ),
            format!("[{cross}]"),
            "[:|] *(?-i:ERROR)([^a-z]|$)".to_owned(),
            // "1 failed", "failures=2".
            "(^|[^0-9a-z.])[1-9][0-9]* ([a-z]+ )?(failed|fail|failing|failures?|errors?|broken)\
             ([^a-z]|$)"
                .to_owned(),
            "(failures?|errors?|failed|failing) *[=:] *[1-9]".to_owned(),
            "not run|not executed|could not|did not run|do not pass|does not pass|did not pass\
             |not all (tests )?pass|were skipped: all"
                .to_owned(),
            // "66% pass", "passing: 66%".
            "(^|[^0-9.])[0-9]{1,2}([.][0-9]+)?% ([a-z]+ ){0,3}(pass|green|ok|succe)".to_owned(),
            "(pass|succe)[a-z_]*[^a-z0-9]+[0-9]{1,2}([.][0-9]+)?%".to_owned(),
        ]
        .join("|");
        let not_failing = format!(
            "^[^a-z0-9]*(pass|success)[a-z_]*: [^%{cross}]*$|^[^a-z0-9]*(not |none )?[a-z_]*\
             [^a-z0-9]+(none|nil|no|nothing|n/a|0|zero|false|\\[\\])([^a-z0-9]+(found|at all))?\
             [^a-z0-9]*$"
        );
        Self {
            failed_name: pattern(&format!("^{failed_name}$")),
            passed_name: pattern("^(passed|pass|passes|passing|succeeded|successful|ok)$"),
            ran_name: pattern("^(total|tests|ran|run|tests_run|count|cases|executed|all)$"),
            not_run_name: pattern(
                "^(skipped|ignored|xfailed|xfail|todo|pending|disabled|deselected|filtered\
                 |filtered_out|failed_before)$",
            ),
            label_name: pattern(&format!("^({failed_name}|pass[a-z_]*|success[a-z_]*)$")),
            failed_outcome: pattern(
                "^[^a-z]*(fail|error|red([^a-z]|$)|broken|not |none|nothing|unknown|could not\
                 |partial|skipped|pending|timed out|timeout|crash)",
            ),
            nothing_ran: pattern(
                "^[^a-z0-9]*(nothing|none|n/a|not run|not tested|untested|skipped\
                 |no tests?( (were )?(run|ran|executed))?)?[^a-z0-9]*$",
            ),
            none: pattern(
                "^[^a-z0-9]*(0|nothing|none|no|no tests?|not run|not executed|n/a|nil)?[^a-z0-9]*$",
            ),
            zero: pattern("^ *(none|0) *$"),
            failing: pattern(&format!("({failing})")),
            not_failing: pattern(&format!("({not_failing})")),
            ratio: pattern(
                "(?P<before>(pass|ok|green|succe)[a-z]*[:.,]? +)?\\b(?P<some>[0-9]{1,9})\
                 ( of | ?/ ?)(?P<all>[0-9]{1,9})\\b(?P<after>[:.,]?( +[a-z]+)?[:.,]? +(pass|ok|green|succe))?",
            ),
        }
    }
}
