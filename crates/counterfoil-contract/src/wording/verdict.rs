//! Whether a verdict rejects, and whether a text says that there is nothing.

use super::parts::{any_part, pattern, says_no, says_yes, snake_case};
use crate::pattern::Pattern;
use serde_json::Value;
use std::sync::LazyLock;

/// What a text counts when it says that there is none of it.
const THING: &str = "(concerns?|issues?|risks?|findings?|problems?|blockers?|bugs?|defects?\
                     |vulnerabilit(y|ies)|violations?|errors?|failures?|warnings?|conflicts?\
                     |regressions?|threats?)";

/// Whether a field of its own holds a verdict that is not an approval, anywhere in a value.
pub(crate) fn reports_rejection(value: &Value) -> bool {
    any_part(value, &|part| part.members().any(|(name, value)| is_rejection(name, value)))
}

fn is_rejection(name: &str, value: &Value) -> bool {
    if WORDS.approval_name.is_match(name) || WORDS.verdict_name.is_match(name) {
        // "No." as a recommendation may say that there is none.
        let is_advice = name.ends_with("recommendation");
        let advises_against = value.as_str().is_some_and(|text| WORDS.against.is_match(text));
        return (rejects(value) && !(is_advice && says_no(value)))
            || (is_advice && advises_against);
    }
    match name {
        "rejected" | "is_rejected" | "blocked" | "is_blocked" | "changes_requested" => {
            says_yes(value)
        }
        // A finding that is rejected is none, so only what is said of a change counts here.
        "status" | "state" | "result" | "outcome" => {
            value.as_str().is_some_and(|text| WORDS.rejected_change.is_match(&plain(text)))
        }
        _ => false,
    }
}

/// Whether the value of a verdict, or the one inside it, rejects.
fn rejects(value: &Value) -> bool {
    match value {
        Value::String(text) => says_no(value) || WORDS.rejection.is_match(&plain(text)),
        Value::Array(items) => items.iter().any(rejects),
        Value::Object(members) => {
            members.iter().any(|(name, value)| WORDS.value_name.is_match(name) && rejects(value))
        }
        other => says_no(other),
    }
}

/// `CHANGES_REQUESTED` is "CHANGES REQUESTED".
fn plain(text: &str) -> String {
    text.replace('_', " ")
}

/// Whether a value says that there is nothing: "none", "No concerns found.", or an object whose
/// severity is none and that has no other member.
pub(crate) fn reports_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => WORDS.nothing.is_match(text),
        Value::Array(items) => items.iter().all(reports_nothing),
        Value::Object(members) => members.iter().all(|(name, value)| {
            matches!(snake_case(name).as_str(), "severity" | "level")
                && value.as_str().is_some_and(|text| {
                    matches!(text.trim().to_lowercase().as_str(), "none" | "n/a")
                })
        }),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

struct Words {
    approval_name: Pattern,
    verdict_name: Pattern,
    /// The name of the member that is the verdict where the verdict is an object.
    value_name: Pattern,
    /// A text that rejects and says no more, or gives the reason.
    rejection: Pattern,
    rejected_change: Pattern,
    /// Advice not to go on, or that something is not ready.
    against: Pattern,
    nothing: Pattern,
}

impl Words {
    fn new() -> Self {
        let change = "(request(s|ed|ing)? changes|changes (are )?(requested|required|needed))";
        let refused = "(approved?|ok|accept(ed|able)?|ready( (to|for) (be )?merged?)?|merge(able\
                       |d)?|pass(ed)?|ship)";
        let rejection = format!(
            "(reject(s|ed|ion)?|{change}|needs? (more )?(work|changes|fixes|rework|revision)\
             |(not|can ?not|do not|does not|don['’]t|can['’]t)( yet| be)? {refused}|not yet|no go\
             |nack\
             |block(s|ed|ing)?|fail(s|ed|ure)?|den(y|ied)|declined?|disapproved?|unacceptable)"
        )
        .replace(' ', "[ -]");
        let end = "([^a-z0-9]*$| *[^a-z0-9 ]| (because|since|due|until|as|for now|merging|merge\
                   |(this|the) (change|pr|patch|commit|merge)|(this|it)[^a-z0-9]*$)([^a-z]|$))";
        // "there are", "I found".
        let lead = "((there (is|are|was|were)|(i|we)( have)? (found|see|saw|have)|found) )?";
        let adjectives = "( (new|other|further|additional|more|known|open|remaining|outstanding\
                          |major|serious|significant|relevant|obvious|unresolved|such|real|high\
                          |critical|severe|severity|blocking))*";
        let found = "( (is|are|was|were|have been|has been|remain|found|identified|known|open\
                     |remaining|left|detected|noted|reported|observed|introduced|so far|at all\
                     |here|at this time|for now|to report|in (this|the) (change|code|diff\
                     |review)))*";
        let needed = "( (is|are|was|were))? (needed|required|necessary)( here| at this time)?";
        let nothing = [
            format!("{lead}(none|nil|null|nothing|n/?a){found}"),
            "no|not (blocked|applicable|needed|required|necessary)".to_owned(),
            format!("{lead}nothing to (report|fix|change|do|add|note|flag)"),
            // One word may say of which kind: "no security concerns".
            format!(
                "{lead}(no|none|nothing|zero|0){adjectives}( [a-z]+( (or|and) [a-z]+)?)? {THING}\
                 ( (or|and) {THING})?{found}"
            ),
            format!(
                "(none|nothing|no{adjectives}( code)? \
                 (fix(es)?|changes?|actions?|work|mitigations?)){needed}"
            ),
        ]
        .join("|");
        Self {
            approval_name: pattern(
                "^((is|was|are|can_be)_)?(approved?|approves|approval|mergeable|can_merge\
                 |merge_ready|ready_to_merge|ok_to_merge|safe_to_merge|should_merge|lgtm)$",
            ),
            verdict_name: pattern(
                "^([a-z]+_)*(verdict|decision|recommendation|review_result|approval_status\
                 |review_status)$",
            ),
            value_name: pattern("^(value|status|state|result|outcome|label|name|text|answer)$"),
            rejection: pattern(&format!(
                "^[^a-z]*((verdict|decision|recommendation|result|i|we|must|overall)[^a-z]+)*\
                 ({rejection}{end}|(?-i:REJECT|REJECTED|REQUEST CHANGES|CHANGES REQUESTED) )"
            )),
            rejected_change: pattern(
                &format!("^[^a-z]*({change}|not approved)[^a-z]*$").replace(' ', "[ -]"),
            ),
            against: pattern(
                "^[^a-z]*(please )?(do not|don['’]t|never|must not|should not|can ?not|can['’]t) (be )?\
                 (ship|merge|release|deploy|deliver|publish|hand|accept|approve|use)\
                 |(^|[^a-z])not (yet )?\
                 (ready|complete|done|finished|safe|shippable|mergeable|acceptable)([^a-z]|$)",
            ),
            nothing: pattern(&format!("^[^a-z0-9]*({nothing})?[^a-z0-9]*$")),
        }
    }
}
