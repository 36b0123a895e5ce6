//! Whether something high or critical is open.

use super::parts::{Part, any_part, leading_number, lines, pattern, says_yes};
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// The score of CVSS from which a finding is high.
const HIGH_SCORE: f64 = 7.0;

/// Whether a value says anywhere that something high or critical is open: in a field, a count, a
/// score, or a text.
pub(crate) fn reports_severe(value: &Value) -> bool {
    any_part(value, &|part| !is_settled(part) && (has_severe_member(part) || has_severe_text(part)))
}

/// An object with a severity that is fixed or was none.
fn is_settled(part: &Part<'_>) -> bool {
    part.member("severity").is_some()
        && part.members().any(|(name, value)| match name {
            "status" | "state" | "resolution" => {
                value.as_str().is_some_and(|text| WORDS.settled.is_match(text))
            }
            "fixed" | "resolved" | "is_fixed" | "is_resolved" => says_yes(value),
            _ => false,
        })
}

fn has_severe_member(part: &Part<'_>) -> bool {
    let has_severity = part.member("severity").is_some();
    part.members().any(|(name, value)| {
        let says = |pattern: &Regex| any_text(value, |text| pattern.is_match(text));
        (name == "severity" && !is_mild(value))
            || (WORDS.grade_name.is_match(name) && says(&WORDS.grade))
            || (WORDS.count_name.is_match(name) && counts_some(value))
            || (WORDS.score_name.is_match(name) && leading_number(value).is_some_and(is_high_score))
            || match name {
                "blocking" | "blocks" | "must_fix" | "is_blocker" | "is_critical" => {
                    says_yes(value)
                }
                "priority" => says(&WORDS.top_priority),
                // These may describe something else, so they count where nothing else grades.
                "label" | "category" | "class" | "classification" | "type" | "kind" | "grade"
                | "importance" | "impact" => !has_severity && says(&WORDS.grade_alone),
                _ => false,
            }
    })
}

fn is_high_score(score: f64) -> bool {
    (HIGH_SCORE..=10.0).contains(&score)
}

/// A severity that is lower than high. A word that nobody knows is not one.
fn is_mild(severity: &Value) -> bool {
    match severity {
        // The members of an object are read as a part of their own.
        Value::Null | Value::Object(_) => true,
        Value::Bool(_) => false,
        Value::Number(number) => {
            number.as_f64().is_some_and(|number| (0.0..HIGH_SCORE).contains(&number))
        }
        Value::String(text) => {
            text.is_empty()
                || WORDS.mild.is_match(text)
                || leading_number(severity)
                    .is_some_and(|number| (0.0..HIGH_SCORE).contains(&number))
        }
        Value::Array(items) => items.iter().all(is_mild),
    }
}

/// A count that is not 0, or a list that is not empty.
fn counts_some(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Array(items) => !items.is_empty(),
        other => leading_number(other).is_some_and(|number| number > 0.0),
    }
}

fn any_text(value: &Value, condition: impl Fn(&str) -> bool + Copy) -> bool {
    match value {
        Value::String(text) => condition(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, condition)),
        _ => false,
    }
}

fn has_severe_text(part: &Part<'_>) -> bool {
    part.texts().any(|text| {
        if text.is_member && WORDS.severe_name.is_match(text.name) {
            return is_severe_text(&format!("{}: {}", text.name, text.text));
        }
        // One word in a member is a value of that member, which has been read.
        let is_word = text.text.chars().all(|character| character.is_ascii_alphanumeric());
        !(text.is_member && !text.name.is_empty() && is_word) && is_severe_text(text.text)
    })
}

/// A text in which a line says that something severe is open. The word in prose ("High test
/// coverage") does not say so: it has to be a label, behind a place too, a count, or the grade of a
/// finding ("a critical vulnerability").
fn is_severe_text(text: &str) -> bool {
    lines(text).any(|line| {
        WORDS.none_but.is_match(&line)
            || (!WORDS.none.is_match(&line)
                && line.replace(". ", ", ").replace("; ", ", ").split(", ").any(|clause| {
                    (WORDS.label.is_match(clause)
                        && !WORDS.none.is_match(clause)
                        && !WORDS.other_meaning.is_match(clause))
                        || (WORDS.statement.is_match(clause) && !WORDS.negation.is_match(clause))
                }))
    })
}

static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

struct Words {
    /// The name of a field that holds a grade.
    grade_name: Regex,
    /// A text that begins with a severe grade.
    grade: Regex,
    /// A text that is nothing but a severe grade.
    grade_alone: Regex,
    /// The name of a field that counts or lists severe findings.
    count_name: Regex,
    score_name: Regex,
    top_priority: Regex,
    mild: Regex,
    settled: Regex,
    /// The name of a field that is the label of its text: `{"HIGH": "…"}`.
    severe_name: Regex,
    /// A severe word as the label of a clause, or a count of severe findings.
    label: Regex,
    /// "a critical vulnerability", "one high severity issue".
    statement: Regex,
    /// What makes a statement speak of something that is not there.
    negation: Regex,
    /// "HIGH: none", "Critical: 0", "HIGH, CRITICAL: none".
    none: Regex,
    /// "no HIGH issues except …", "HIGH: none, but …".
    none_but: Regex,
    /// "High-level names", "[HIGH] … (fixed)".
    other_meaning: Regex,
}

impl Words {
    fn new() -> Self {
        let severe = "(high|critical|severe|blocker|fatal|p0|sev[- ]?[01])";
        let shouted = "(?-i:HIGH|CRITICAL|SEVERE|BLOCKER|FATAL)";
        let grade = "(high|critical|severe|blocker|blocking|fatal|catastrophic|urgent|p0|s[01]\
                     |sev[- ]?[01])";
        let thing = "( (issues?|findings?|vulnerabilit(y|ies)|problems?|concerns?|bugs?|defects?))";
        let kind = "([ -](severity|risk|impact|priority))";
        // What stands before the first word: marks of lists, numbers, brackets.
        let lead = "([^a-z0-9]|[0-9]+[.)] )*";
        let scale = "((severity|risk|priority|impact|level)[^a-z0-9]*)?";
        let nothing = "(none|nil|nothing|n/a|0|zero\
                       |no (more )?(issues?|findings?|problems?|concerns?|vulnerabilit(y|ies)))";
        let found = "( (found|identified|open|remaining|left|detected|reported|to report|to fix\
                     |so far))?";
        let but = "(except|apart from|other than|besides|aside from|but)([^a-z]|$)";
        let label = [
            // "HIGH: …", "1. [Critical] …", "Severity: high", "high severity issue: …".
            format!("^{lead}{scale}{severe}{kind}?{thing}?[^a-z0-9: |!–—-]* *(:|[|!]|[-–—] |$)"),
            format!("^{lead}({severe}[ -]severity|{shouted})([^a-z]|$)"),
            format!(r"\[{lead}{severe}[^a-z0-9]*\]"),
            // "a.py:3: HIGH: …", "F1 | HIGH | …".
            format!("[:|] *[*_`]*{severe}[*_`]* *[:|]"),
            format!("[-–—] {shouted} *([-–—] |:)"),
            // "(severity: high)".
            format!("severity[^a-z0-9]{{0,5}}(is )?(very )?{severe}([^a-z]|$)"),
            // "2 open critical findings".
            format!(
                "(^|(found|has|have|are|is|with|[:(]) *){lead}[1-9][0-9]* \
                 (open |new |unresolved |remaining )?{severe}{kind}?{thing}?[^a-z0-9]*$"
            ),
        ]
        .join("|");
        let none = format!(
            "^([a-z ]+[:|-] *)?{lead}{scale}{severe}([^a-z0-9]+(and |or )?{severe})*{kind}?{thing}?\
             [^a-z0-9]+{nothing}{found}[^a-z0-9]*$"
        );
        let none_but = [
            format!("(^|[^a-z0-9])(no|zero|0|without|any) {severe}[a-z -]*[^a-z0-9]+{but}"),
            format!("(^|[^a-z]){severe}[a-z -]*[^a-z0-9]+{nothing}{found}[^a-z0-9]+{but}"),
        ]
        .join("|");
        let other_meaning = [
            format!(
                "^{lead}(high[ -](level|quality|coverage|confidence|cohesion|standards?\
                 |readability|performance|availability|throughput|contrast|end|order|resolution)\
                 |critical[ -](paths?|sections?))([^a-z]|$)"
            ),
            r"[(\[](now |already )?(fixed|resolved)( in [^)\]]*)?[)\]]".to_owned(),
            format!(r"^{lead}(fixed|resolved)[^a-z0-9]*[:\])]"),
        ]
        .join("|");
        Self {
            grade_name: pattern(
                "^([a-z_]*(severity|criticality)[a-z_]*|risk|risk_level|rating|level)$",
            ),
            grade: pattern(&format!("^[^a-z]*(very |extremely )?{grade}([^a-z]|$)")),
            grade_alone: pattern(&format!("^[^a-z]*{grade}[^a-z]*$")),
            count_name: pattern(
                "^((num|total|open|count|remaining)_)?(high|critical|blockers?|fatal|severe)\
                 (_?(severity|risk|issues?|findings?|vulnerabilit(y|ies)|problems?|bugs?|counts?\
                 |open|total|remaining))*$",
            ),
            score_name: pattern("^(cvss[a-z0-9_]*|severity|severity_score)$"),
            top_priority: pattern("^[^a-z]*(p0|critical|blocker|fatal)([^a-z]|$)"),
            mild: pattern(
                "^[^a-z0-9]*(very |extremely )?(low|lowest|medium|moderate|mid|minor|info\
                 |informational|information|none|nil|trivial|notes?|nit|nitpick|warning|warn\
                 |negligible|suggestion|cosmetic|style|optional|normal|n/a|s[2-9]|p[2-9]\
                 |sev[- ]?[2-9])([^a-z]|$)",
            ),
            settled: pattern("^[^a-z]*(fixed|resolved|closed|false[ _-]positive)[^a-z]*$"),
            severe_name: pattern("^(high|critical|blocker|fatal|severe)$"),
            label: pattern(&format!("({label})")),
            statement: pattern(&format!(
                "(^|[^a-z])(an?|one|this|that|another|following) {severe}([ -](severity|risk|impact))?\
                 ( [a-z-]+){{0,2}} (issue|finding|vulnerability|problem|bug|defect|flaw|hole|injection\
                 |weakness|leak|bypass)([^a-z]|$)"
            )),
            negation: pattern(
                "(^|[^a-z])(no|not|none|never|nothing|without|cannot|[a-z]+n['’]t|if|unless|would|could\
                 |might|may|was|were|had|been|fixed|resolved|closed|avoids?|prevents?)([^a-z]|$)",
            ),
            none: pattern(&none),
            none_but: pattern(&format!("({none_but})")),
            other_meaning: pattern(&format!("({other_meaning})")),
        }
    }
}
