//! Whether a report about tests says that some failed, or that none ran.

mod text;

use super::parts::{
    Part, Text, any_part_outside, leading_number, pattern, says_no, says_yes, snake_case, texts_of,
};
use super::verdict::reports_nothing;
use crate::pattern::Pattern;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;
use text::{
    counts_up, has_fewer_of, is_failing_count, is_failing_text, is_ratio, ran_none, ran_some,
    without_no_failure,
};

/// Whether a report about tests says anywhere that one failed, or that none ran.
pub(crate) fn reports_failure(value: &Value) -> bool {
    value.as_str().is_some_and(|text| WORDS.nothing_ran.is_match(text))
        || any_test(value, &|part| {
            part.members().any(|(name, value)| is_failing_member(name, value))
                || has_failing_text(part)
                || passed_none(part)
                || fewer_passed_than_ran(part)
        })
        // A suite may be empty where another one ran.
        || (any_test(value, &is_empty_suite) && !any_test(value, &has_run))
}

/// Whether a part fulfils a condition. What counts tests that failed or were not to run is read as
/// a whole, with its name.
fn any_test(value: &Value, condition: &impl Fn(&Part<'_>) -> bool) -> bool {
    let is_counted =
        |name: &str| WORDS.failed_name.is_match(name) || WORDS.not_run_name.is_match(name);
    any_part_outside(value, &is_counted, condition)
}

fn is_failing_member(name: &str, value: &Value) -> bool {
    let says = |pattern: &Regex| value.as_str().is_some_and(|text| pattern.is_match(text));
    let is_empty = value.as_array().is_some_and(Vec::is_empty);
    if WORDS.failed_name.is_match(name) {
        return has_some(value);
    }
    if WORDS.exit_name.is_match(name) {
        return has_exit_code(value);
    }
    if WORDS.test_name.is_match(name) && !WORDS.other_test_name.is_match(name) {
        return *value == Value::Bool(false);
    }
    if WORDS.tests_name.is_match(name) && (*value == Value::Bool(false) || has_false_test(value)) {
        return true;
    }
    if WORDS.success_name.is_match(name) && !WORDS.other_success_name.is_match(name) {
        return says_no(value) || value.as_array().is_some_and(|all| all.iter().any(says_no));
    }
    match name {
        "total" | "run" | "ran" | "tests_run" | "executed" | "command" | "commands" => {
            // A count of 0 may be that of an empty suite.
            let is_none = says(&WORDS.none) && whole_number(value).is_none();
            value.is_null() || is_empty || *value == Value::Bool(false) || is_none
        }
        "status" | "result" | "results" | "outcome" | "verdict" | "conclusion" | "state" => {
            value.as_str().is_some_and(|text| {
                WORDS.failed_outcome.is_match(&snake_case(&without_no_failure(text)))
            })
        }
        _ => false,
    }
}

/// Whether a member that counts or lists what failed has something.
fn has_some(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::String(text) => {
            let rest = without_no_failure(text);
            says_yes(value)
                || match leading_number(value) {
                    Some(number) => number > 0.0,
                    None => {
                        !says_no(value)
                            && !reports_nothing(&Value::String(rest))
                            && !WORDS.passed.is_match(text)
                    }
                }
        }
        Value::Number(_) => leading_number(value).is_some_and(|number| number > 0.0),
        Value::Array(items) => items.iter().any(has_some),
        Value::Object(members) => members.values().any(has_some),
    }
}

/// An exit code that is not 0, also in a list or by command.
fn has_exit_code(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_exit_code),
        Value::Object(members) => members.values().any(has_exit_code),
        other => leading_number(other).is_some_and(|code| code != 0.0),
    }
}

/// `{"add": true, "sub": false}` under a name such as `tests`.
fn has_false_test(value: &Value) -> bool {
    value.as_object().is_some_and(|tests| {
        tests.iter().any(|(name, value)| {
            *value == Value::Bool(false) && !WORDS.negative_name.is_match(&snake_case(name))
        })
    })
}

/// Nothing passed, and it is not said that there was nothing to run.
fn passed_none(part: &Part<'_>) -> bool {
    let is_none = |value: &Value| {
        value.is_null()
            || leading_number(value) == Some(0.0)
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_str().is_some_and(|text| WORDS.none.is_match(text))
    };
    part.members().any(|(name, value)| WORDS.passed_name.is_match(name) && is_none(value))
        && !is_empty_suite(part)
}

/// A suite without tests: none ran, or none passed and none failed.
fn is_empty_suite(part: &Part<'_>) -> bool {
    let is_zero = |names: &Regex| {
        let mut found = part.members().filter(|(name, _)| names.is_match(name));
        found.any(|(_, value)| whole_number(value) == Some(0))
    };
    is_zero(&WORDS.ran_name)
        || (is_zero(&WORDS.passed_name) && is_zero(&WORDS.failed_name))
        || part.texts().any(|text| ran_none(text.text))
}

fn has_run(part: &Part<'_>) -> bool {
    part.members().any(|(name, value)| {
        (WORDS.passed_name.is_match(name) || WORDS.ran_name.is_match(name))
            && whole_number(value).is_some_and(|count| count > 0)
    }) || part.texts().any(|text| ran_some(text.text))
}

/// Fewer tests passed than ran, and the skipped ones are not the rest.
fn fewer_passed_than_ran(part: &Part<'_>) -> bool {
    let count = |names: &Regex| {
        let counts = part.members().filter(|(name, _)| names.is_match(name));
        counts.filter_map(|(_, value)| whole_number(value)).collect::<Vec<_>>()
    };
    let not_run: u64 = count(&WORDS.not_run_name).iter().sum();
    let passed = count(&WORDS.passed_name).into_iter().min();
    let ran = count(&WORDS.ran_name).into_iter().max();
    passed.zip(ran).is_some_and(|(passed, ran)| passed.saturating_add(not_run) < ran)
}

/// A count, or a text that is one.
fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse::<u32>().ok().map(u64::from),
        // Larger numbers are no counts of tests.
        other => other.as_u64().filter(|count| u32::try_from(*count).is_ok()),
    }
}

fn has_failing_text(part: &Part<'_>) -> bool {
    let has_passed = part.members().any(|(name, value)| {
        let is_outcome = matches!(name, "status" | "result" | "outcome" | "state" | "conclusion")
            && value.as_str().is_some_and(|text| WORDS.passed.is_match(text));
        is_outcome || (matches!(name, "passed" | "pass" | "ok" | "success") && says_yes(value))
    });
    let is_read = |text: &Text<'_>| {
        // The name of a test that passed, and what belongs to a name that has been read.
        let is_title = has_passed && WORDS.title_name.is_match(text.name);
        !is_title && !WORDS.failed_name.is_match(text.name)
    };
    part.texts().filter(is_read).any(|text| {
        if WORDS.passed_name.is_match(text.name) {
            text.is_member && is_failing_count(text.text)
        } else {
            is_failing_text(text.text, WORDS.share_name.is_match(text.name))
        }
    }) || part.members().any(|(name, value)| {
        let texts = texts_of(value);
        let is_count = WORDS.passed_name.is_match(name)
            || WORDS.tests_name.is_match(name)
            || (matches!(name, "" | "result" | "score" | "outcome" | "status")
                && texts.iter().all(|text| is_ratio(text)));
        !counts_up(&texts) && texts.iter().any(|text| has_fewer_of(text, is_count))
    })
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

struct Words {
    /// The name of a field that counts or lists tests that failed.
    failed_name: Pattern,
    passed_name: Pattern,
    ran_name: Pattern,
    /// The name of a field that counts tests that were not to run or to pass.
    not_run_name: Pattern,
    /// The name of a field that says whether all is well.
    success_name: Pattern,
    /// `passed_before`, `expected_to_pass`.
    other_success_name: Pattern,
    /// The name of a test, and names that only begin like one.
    test_name: Pattern,
    other_test_name: Pattern,
    /// The name of a field that holds tests.
    tests_name: Pattern,
    /// The name of a field that is well when it is false.
    negative_name: Pattern,
    exit_name: Pattern,
    /// The name of a field that holds a share which is not one of tests that passed.
    share_name: Pattern,
    /// The name of a field that names or describes a test.
    title_name: Pattern,
    failed_outcome: Pattern,
    /// A text that is nothing but a success.
    passed: Pattern,
    /// A text that is nothing but this.
    nothing_ran: Pattern,
    none: Pattern,
}

impl Words {
    fn new() -> Self {
        let unit = "(tests?|checks?|cases?|specs?|total|num|number_of|count|unit|e2e)";
        let failed = "(failed|fails?|failures?|errors?|errored|failing|broken|timed_?out|crashed\
                      |not_run)";
        let passed = "(passed|pass|passes|passing|succeeded|successful|ok)";
        let success = "(pass|passed|passes|passing|ok|success|successful|succeeded|green)";
        let negative = "(fail[a-z]*|errors?|errored|skip[a-z]*|flaky|time_?outs?|timed_out\
                        |crash[a-z]*|broken|missing|changed|modified|needed|required|cached\
                        |truncated|mode|dry_run|only)";
        Self {
            failed_name: pattern(&format!("^({unit}_)*{failed}(_{unit})*$")),
            passed_name: pattern(&format!("^({unit}_)*{passed}(_{unit})*$")),
            ran_name: pattern(
                "^((total|num|number_of|all)_)?tests?(_(total|count|run|ran|executed|number))*$\
                 |^((total|num|number_of)_)?(total|ran|run|count|cases|executed|all|collected)$",
            ),
            not_run_name: pattern(&format!(
                "^({unit}_)*(skipped|ignored|xfailed|xfail|todo|pending|disabled|deselected\
                 |filtered|filtered_out|failed_before)$"
            )),
            success_name: pattern(&format!("(^|_){success}(_|$)")),
            other_success_name: pattern(
                "(^|_)(before|previously|earlier|baseline|expected|required|min|minimum|threshold\
                 |if|not|no|fail|failed)(_|$)",
            ),
            test_name: pattern("^test_[a-z0-9_]+$|_(test|spec)$"),
            other_test_name: pattern(&format!(
                "^tests?_{negative}$|(^|_){success}(_|$)|^tests?_(results?|run|ran|total|count\
                 |command)"
            )),
            tests_name: pattern(
                "^(([a-z]+_)?(tests|results|checks|cases|specs)|unit|e2e|test_results?)$",
            ),
            negative_name: pattern(&format!("(^|_){negative}(_|$)")),
            exit_name: pattern("^([a-z]+_)*(exit|exit_?(codes?|status(es)?)|return_?codes?|rcs?)$"),
            share_name: pattern("cover|progress|usage|cpu|memory"),
            title_name: pattern(
                "^(name|title|test|test_name|case|description|what|id|spec|scenario)$",
            ),
            failed_outcome: pattern(
                "^[^a-z]*(fail|error|red([^a-z]|$)|broken|not_|none|nothing|unknown|could_not\
                 |couldn['’]t|partial|skipped|pending|timed_?out|timeout|crash|abort|cancel\
                 |interrupt|incomplete|blocked|killed)",
            ),
            passed: pattern(
                "^[^a-z0-9]*((all|tests?|everything)[^a-z]+)*(pass|passed|passes|ok|okay|success\
                 |successful|succeeded|green)[^a-z0-9]*$",
            ),
            nothing_ran: pattern(
                "^[^a-z0-9]*(nothing|none|n/a|not[ _-]run|not[ _-]tested|untested|skipped\
                 |no tests?( (were )?(run|ran|executed))?)?[^a-z0-9]*$",
            ),
            none: pattern(
                "^[^a-z0-9]*(0|nothing|none|no|no tests?|not run|not executed|n/a|nil)?[^a-z0-9]*$",
            ),
        }
    }
}
