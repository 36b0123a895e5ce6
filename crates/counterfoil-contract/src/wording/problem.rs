//! Whether a member that is named after problems has some, and whether one that is named after a
//! success says no.

use super::parts::{any_part, pattern, says_no, snake_case};
use super::severity::reports_severe;
use super::verdict::reports_nothing;
use crate::pattern::Pattern;
use serde_json::Value;
use std::sync::LazyLock;

static PROBLEMS: LazyLock<Pattern> = LazyLock::new(|| {
    pattern(
        "(^|_)(blocking|blocks?|blockers?|must_fix|findings?|issues?|problems?|errors?|failures?\
         |failed|failing|bugs?|defects?|regressions?|vulnerabilit(y|ies)|vulns?|critical|severe|concerns?\
         |violations?|remaining|outstanding|unfinished|unmet|unresolved|missing)(_|$)",
    )
});

/// Names of problems that are small or gone, and of totals, which other members explain.
static HARMLESS: LazyLock<Pattern> = LazyLock::new(|| {
    pattern(
        "(^|_)(minor|low|info|informational|trivial|nits?|nitpicks?|style|cosmetic|fixed|resolved|closed\
         |solved|addressed|handled|non|not|no|without|previous|earlier|old|handling|checked\
         |reviewed|codes?|totals?|counts?)(_|$)",
    )
});

static SUCCESS: LazyLock<Pattern> = LazyLock::new(|| {
    pattern(
        "(^|_)(approved?|accept(ed|able)?|pass|passed|passes|passing|achieved|completed?|ready|ok|valid\
         |success|successful|succeeded|mergeable|merge|met|meets|green|clean|done|satisfied|safe)(_|$)",
    )
});

/// What a flag that is named after a success says otherwise: that it is denied, is one among others,
/// or is asked for.
static NO_SUCCESS: LazyLock<Pattern> = LazyLock::new(|| {
    pattern(
        "(^|_)(not|no|non|without|never|needs?|needed|requires?|required|partly|partially|previous\
         |previously|earlier|skip|skipped|abort|aborted|stop|stopped|conflicts?|mode|if|cannot)(_|$)",
    )
});

/// Whether a flag with this name says of the work, by the words that agents use, that it succeeded:
/// `done`, `tests_passing`, `isApproved`. `not_done` and `passed_with_errors` do not.
pub fn names_success(name: &str) -> bool {
    let name = snake_case(name);
    SUCCESS.is_match(&name) && !PROBLEMS.is_match(&name) && !NO_SUCCESS.is_match(&name)
}

/// Whether a member of a value, at any depth, is named after a success and says no.
pub(crate) fn denies_success(value: &Value) -> bool {
    any_part(value, &|part| {
        part.members().any(|(name, value)| SUCCESS.is_match(name) && says_no(value))
    })
}

/// Whether a member of a value, at any depth, is named after problems and is not empty.
pub(crate) fn lists_problems(value: &Value) -> bool {
    any_part(value, &|part| {
        part.members().any(|(name, value)| {
            PROBLEMS.is_match(name) && !HARMLESS.is_match(name) && has_some(value)
        })
    })
}

fn has_some(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => {
            !matches!(text.trim(), "" | "0" | "false") && !reports_nothing(value)
        }
        Value::Array(items) => items.iter().any(has_some),
        Value::Object(members) if members.contains_key("severity") => reports_severe(value),
        Value::Object(members) => members.values().any(has_some),
    }
}
