//! Whether a value reports something severe that no finding of a list says.

use super::severity::reports_severe;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Words that findings have in common, so that they recognise none.
const COMMON: &str = "critical high severe severity blocker blockers blocking fatal major minor medium \
    low risk impact priority issue issues finding findings problem problems concern concerns bug bugs \
    defect vulnerability vulnerabilities security found one two three the and but for with this that \
    there are was has have not none can must should fix fixed open new remaining total count please \
    before merge code review reviewed change changes file files line lines user input data value \
    function all any see below still been will into from its you use used very src lib true false null \
    level type yes reject request approve verdict unresolved";

/// The names of members that grade the object around them.
const GRADES: [&str; 6] = ["severity", "sev", "criticality", "level", "risk", "priority"];

/// So many letters of a word are compared: `concatenates` and `concatenated` are the same.
const STEM: usize = 6;
/// A statement with more words than these shares two with its finding.
const FEW_WORDS: usize = 4;

/// Whether `value` reports something severe that none of these findings says. A finding is an object
/// with a `severity`; those that are minor say nothing severe.
pub(crate) fn leaves_out_severe(value: &Value, findings: &Value) -> bool {
    let findings = findings.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_major = |one: &&Value| one["severity"] == "major";
    let severe: Vec<&Value> =
        findings.iter().filter(|one| reports_severe(one) && !is_major(one)).collect();
    let told = severe.iter().copied().chain(findings.iter().filter(is_major));
    let told: Vec<HashSet<String>> = told.map(|one| words(&texts(one))).collect();
    let mut statements = Vec::new();
    collect(value, &mut statements);
    statements.iter().any(|statement| match statement {
        Statement::Count(count) => *count > severe.len() as u64,
        Statement::Words(text) => {
            let words = words(text);
            let needed = if words.len() > FEW_WORDS { 2 } else { 1 };
            !words.is_empty()
                && !told.iter().any(|told| told.intersection(&words).count() >= needed)
        }
    })
}

/// Something severe that a value reports.
enum Statement {
    Words(String),
    /// So many, and no words.
    Count(u64),
}

fn collect(value: &Value, into: &mut Vec<Statement>) {
    match value {
        Value::String(text) => collect_sentences(text, into),
        Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        Value::Object(members) => {
            // What grades itself is one statement.
            let grades = members.iter().any(|(name, value)| {
                GRADES.contains(&name.to_lowercase().as_str())
                    && reports_severe(&json!({ name: value }))
            });
            let texts = texts(value);
            if grades && !words(&texts).is_empty() {
                into.push(Statement::Words(texts));
                return;
            }
            members.iter().for_each(|(name, value)| collect_member(name, value, into));
        }
        _ => {}
    }
}

fn collect_member(name: &str, value: &Value, into: &mut Vec<Statement>) {
    let is_severe_name = reports_severe(&json!({ name: 1 }));
    match value {
        Value::Number(count) if is_severe_name => {
            into.extend(count.as_u64().map(Statement::Count));
        }
        Value::String(_) | Value::Array(_) | Value::Object(_) if is_severe_name => {
            if reports_severe(&json!({ name: value })) {
                collect_named(value, into);
            }
        }
        other => collect(other, into),
    }
}

/// What stands under a name such as `critical`: each text and each object is a statement.
fn collect_named(value: &Value, into: &mut Vec<Statement>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_named(item, into)),
        Value::String(text) => match text.trim().parse() {
            Ok(count) => into.push(Statement::Count(count)),
            Err(_) => into.push(Statement::Words(text.clone())),
        },
        Value::Object(_) => into.push(Statement::Words(texts(value))),
        _ => {}
    }
}

/// The sentences of a text that report something severe. One that only counts or is a heading
/// stands for the line below it.
fn collect_sentences(text: &str, into: &mut Vec<Statement>) {
    let text = text.replace(". ", "\n").replace("; ", "\n");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    for (at, line) in lines.iter().enumerate() {
        if !reports_severe(&json!(line)) {
            continue;
        }
        if !words(line).is_empty() {
            into.push(Statement::Words((*line).to_owned()));
        } else if let Some(count) = count(line) {
            into.push(Statement::Count(count));
        } else if let Some(next) = lines.get(at + 1) {
            into.push(Statement::Words((*next).to_owned()));
        }
    }
}

/// The first number of a line.
fn count(line: &str) -> Option<u64> {
    let mut numbers = line.split(|character: char| !character.is_ascii_digit());
    numbers.find_map(|digits| digits.parse().ok())
}

/// The texts of a value, joined.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect::<Vec<_>>().join(" "),
        Value::Object(members) => members.values().map(texts).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// The beginnings of the words that say something, and pairs of characters in scripts without blanks.
fn words(text: &str) -> HashSet<String> {
    let common: HashSet<&str> = COMMON.split_whitespace().collect();
    let lower = text.to_lowercase();
    let mut words = HashSet::new();
    for word in lower.split(|character: char| !character.is_alphanumeric()) {
        if word.is_ascii() {
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
            if word.len() >= 3 && !is_number && !common.contains(word) {
                words.insert(word.chars().take(STEM).collect());
            }
        } else {
            let characters: Vec<char> = word.chars().collect();
            words.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: &str, message: &str) -> Value {
        json!({"severity": severity, "file": "src/lib.rs", "line": 2, "message": message})
    }

    #[test]
    fn something_severe_that_no_finding_says_is_left_out() {
        let naming = json!([finding("major", "The name `one` says nothing")]);
        for value in [
            json!({"critical": ["eval on input"]}),
            json!({"critical": "eval on input"}),
            json!({"base": "main", "blocking": [{"severity": "critical", "message": "SQL injection in the login"}]}),
            json!({"critical": 1}),
            json!({"counts": {"critical_findings": 2}}),
            json!({"critical": ["the name says nothing", "eval on input"]}),
            json!({"severity": "critical", "message": "eval on input"}),
            json!("Fine.\nCRITICAL: eval on input"),
            json!("## Critical\n- eval on input"),
            json!("The name says nothing. CRITICAL: eval on input"),
            json!("The name is bad; 1 critical finding"),
            json!("There is a critical vulnerability in the parser"),
            json!("严重：CRITICAL: 用户输入会到达求值函数"),
        ] {
            assert!(leaves_out_severe(&value, &naming), "{value}");
            assert!(leaves_out_severe(&value, &json!([])), "{value}");
        }
    }

    #[test]
    fn something_severe_that_a_finding_says_is_not() {
        let eval = || finding("critical", "User input reaches `eval`");
        let login = || finding("critical", "SQL injection: the login builds its query from a name");
        for (findings, value) in [
            (json!([eval()]), json!({"critical": ["eval on input"], "base": "main"})),
            (json!([eval()]), json!({"critical": 1, "high": 0, "tool": "a linter"})),
            (json!([eval()]), json!("Found 1 critical issue")),
            (json!([eval()]), json!("There is a critical vulnerability: eval of the input.")),
            (json!([eval()]), json!("## Critical\n- `eval` is called with the input\n")),
            (json!([login()]), json!("CRITICAL: the login concatenates user input into SQL")),
            (json!([login(), eval()]), json!({"critical": ["SQL injection", "eval"]})),
            (json!([finding("minor", "A bad name")]), json!("No critical issues; a name is bad")),
            (json!([]), json!({"critical": 0, "high": [], "notes": "no critical issues"})),
        ] {
            assert!(!leaves_out_severe(&value, &findings), "{value}");
        }
    }
}
