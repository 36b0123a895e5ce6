//! Problems that a result reports which is not accepted, and that the next one leaves out. The agent
//! was asked to write its result in another way, not to change its mind.

use super::ask_all;
use crate::code::Code;
use crate::report::{RefusedResult, Report, Violation};
use crate::validate::{bare_violation, excerpt};
use crate::wording::{
    denies_success, lists_problems, reports_failure, reports_rejection, reports_severe,
};
use serde_json::{Value, json};

/// The ways in which a value can report a problem.
const READINGS: [fn(&Value) -> bool; 5] =
    [reports_severe, reports_failure, reports_rejection, denies_success, lists_problems];

/// Shorter texts are names and keywords, which say nothing on their own.
const MIN_PROSE: usize = 10;
/// The maximum number of problems that are remembered. One is enough to refuse a result.
const MAX_PROBLEMS: usize = 50;
/// A problem with more statements than these is recognised by its name only.
const MAX_STATEMENTS: usize = 50;

/// The problems that results which were not accepted reported.
#[derive(Debug, Default)]
pub struct ReportedProblems {
    problems: Vec<Problem>,
}

/// A member of a result that reports a problem.
#[derive(Debug, PartialEq)]
struct Problem {
    /// The names of the field that says it and of those around it, the innermost last.
    names: Vec<String>,
    value: Value,
    kinds: Kinds,
}

type Kinds = [bool; READINGS.len()];

impl ReportedProblems {
    /// Takes note of what a result reports that was not accepted. A placeholder reports nothing.
    pub fn note(&mut self, result: &RefusedResult) {
        let mut value = result.value.clone();
        let left_in = result.violations.iter().filter(|one| one.code == Code::Placeholder);
        for violation in left_in {
            if let Some(placeholder) = value.pointer_mut(&violation.pointer) {
                *placeholder = Value::Null;
            }
        }
        // An unknown field is named on its own, wherever it stands.
        for violation in result.violations.iter().filter(|one| one.code == Code::UnknownField) {
            let (around, name) = violation.pointer.rsplit_once('/').unwrap_or_default();
            let name = name.replace("~1", "/").replace("~0", "~");
            if let Some(Value::Object(members)) = value.pointer_mut(around)
                && let Some(value) = members.shift_remove(&name)
            {
                self.add(name, value);
            }
        }
        if let Value::Object(members) = value {
            members.into_iter().for_each(|(name, value)| self.add(name, value));
        }
    }

    fn add(&mut self, name: String, mut value: Value) {
        let kinds = kinds_of_member(&name, &value);
        if self.problems.len() >= MAX_PROBLEMS || !kinds.contains(&true) {
            return;
        }
        let mut names = vec![name];
        // The member inside that says all of it names it better.
        while let Value::Object(members) = &mut value {
            let mut inner = members.iter();
            let inner = inner.find(|(name, value)| kinds_of_member(name, value) == kinds);
            let Some(inner) = inner.map(|(name, _)| name.clone()) else { break };
            value = members.shift_remove(&inner).unwrap_or_default();
            names.push(inner);
        }
        let problem = Problem { names, value, kinds };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Refuses a result that leaves out one of the problems. The result has it if it reports a
    /// problem of the same kind, quotes it, or names its field between backticks or quotation marks:
    /// then it says why the problem does not count.
    #[must_use]
    pub fn ask_about_left_out(&self, report: Report) -> Report {
        let Some(result) = report.value.as_ref().filter(|_| !self.problems.is_empty()) else {
            return report;
        };
        let in_result = kinds(result);
        let mut texts = Vec::new();
        collect_texts(result, &mut texts);
        let texts = texts.join("\n").to_lowercase();
        let is_left_out = |problem: &&Problem| {
            problem.kinds.iter().zip(in_result).any(|(told, tells)| *told && !tells)
                && !is_mentioned(problem, &texts)
        };
        let mut problems: Vec<&Problem> = self.problems.iter().filter(is_left_out).collect();
        // What has words explains what only counts.
        problems.sort_by_key(|problem| statements(&problem.value).is_empty());
        let violations: Vec<Violation> = problems.into_iter().map(left_out).collect();
        if violations.is_empty() {
            return report;
        }
        // All of it is valid.
        let partial = report.value.clone();
        Report { partial, ..ask_all(report, violations) }
    }
}

/// Which kinds of problems a value reports.
fn kinds(value: &Value) -> Kinds {
    READINGS.map(|reports| reports(value))
}

fn kinds_of_member(name: &str, value: &Value) -> Kinds {
    kinds(&json!({ name: value }))
}

fn left_out(problem: &Problem) -> Violation {
    let Problem { names, value, .. } = problem;
    let name = names.last().map_or("", String::as_str);
    let message = format!(
        "your earlier answer reported a problem in `{name}`, {}, and the result leaves it out",
        excerpt(value)
    );
    let mut violation = bare_violation(Code::ProblemLeftOut, "", message);
    violation.expected = "the problem in a field of the contract".into();
    violation.received = "no word of it".into();
    violation.hint = format!(
        "report it in a field of the contract; if it does not count, say why in one of them and \
         name `{name}`, with the backticks"
    );
    violation
}

/// Whether a text names the field of a problem, or quotes each of its statements. The text is in
/// lower case.
fn is_mentioned(problem: &Problem, text: &str) -> bool {
    let says = |wanted: &str| text.contains(&wanted.to_lowercase());
    let is_named =
        |name: &String| ["`", "\"", "'"].iter().any(|quote| says(&format!("{quote}{name}{quote}")));
    let statements = statements(&problem.value);
    problem.names.iter().any(is_named)
        || ((1..=MAX_STATEMENTS).contains(&statements.len())
            && statements.iter().all(|texts| texts.iter().any(|text| says(text))))
}

fn collect_texts<'v>(value: &'v Value, into: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, into)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, into)),
        _ => {}
    }
}

fn statements(value: &Value) -> Vec<Vec<&str>> {
    let mut statements = Vec::new();
    collect_statements(value, &mut statements);
    statements
}

/// The statements of a value, each with its texts: one for each object and for each text outside of
/// one.
fn collect_statements<'v>(value: &'v Value, into: &mut Vec<Vec<&'v str>>) {
    let is_prose = |text: &str| text.contains(' ') && text.chars().count() >= MIN_PROSE;
    match value {
        Value::String(text) if is_prose(text) => into.push(vec![text.trim()]),
        Value::Array(items) => items.iter().for_each(|item| collect_statements(item, into)),
        Value::Object(fields) => {
            let texts = fields.values().filter_map(Value::as_str).filter(|text| is_prose(text));
            let texts: Vec<&str> = texts.map(str::trim).collect();
            if !texts.is_empty() {
                into.push(texts);
            }
            let inner = fields.values().filter(|value| !value.is_string());
            inner.for_each(|value| collect_statements(value, into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Contract;

    const CONTRACT: &str = "contract: acme/review\nversion: 1\nframing: any-json\n\
        fields:\n  approved: boolean\n  issues: [{ text: string, severity: low | high }]\n  \
        summary?: string\npolicy: { unknown_fields: refuse }\n";

    /// Whether an agent is asked again if it sends this result after one with a field of its own.
    fn is_asked(name: &str, value: &Value, result: &Value) -> bool {
        let contract = Contract::from_yaml(CONTRACT).unwrap();
        let refused =
            contract.check_value(&json!({"approved": true, "issues": [], name: value.clone()}));
        assert_eq!(refused.codes(), [Code::UnknownField], "{name}");
        let mut problems = ReportedProblems::default();
        for result in &contract.salvage_report(&refused).results {
            problems.note(result);
        }
        let report = contract.check_value(result);
        assert!(report.is_accepted(), "{report:?}");
        let asked = problems.ask_about_left_out(report);
        assert!(asked.is_accepted() || asked.codes() == [Code::ProblemLeftOut]);
        !asked.is_accepted()
    }

    #[test]
    fn a_problem_that_the_next_answer_leaves_out_is_asked_about() {
        let clean = json!({"approved": true, "issues": [], "summary": "All is well."});
        for (name, value) in [
            ("security", json!([{"severity": "critical", "text": "the key is in the log"}])),
            ("criticalFindings", json!(["the key is in the log"])),
            ("critical_count", json!(3)),
            ("concerns", json!("There is a critical vulnerability in the parser.")),
            ("tests", json!({"passed": 11, "failed": 1})),
            ("exit_code", json!(1)),
            ("verdict", json!("REQUEST_CHANGES")),
            ("mergeable", json!(false)),
            ("readyToMerge", json!(false)),
            ("blocking", json!(["SQL injection in the login"])),
            ("swallowed_errors", json!(["src/a.rs:3"])),
            ("security_issues", json!([{"file": "src/a.rs", "line": 3}])),
            ("BLOCKER", json!("the login can be avoided")),
        ] {
            assert!(is_asked(name, &value, &clean), "{name}");
        }
    }

    #[test]
    fn a_field_that_reports_no_problem_may_be_left_out() {
        let clean = json!({"approved": true, "issues": []});
        for (name, value) in [
            ("confidence", json!(0.9)),
            ("files_read", json!(["src/critical_path.rs"])),
            ("notes", json!("The error handling is good; no critical issues were found.")),
            ("tests", json!({"passed": 12, "failed": 0})),
            ("counts", json!({"critical": 0, "high": 0})),
            ("verdict", json!("APPROVE")),
            ("blockers", json!("none")),
            ("issues_found", json!(0)),
            ("minor_issues", json!(["a name could be shorter"])),
            ("findings", json!([{"severity": "low", "text": "a name could be shorter"}])),
            ("fixed_bugs", json!(["the parser lost a line"])),
            ("error_handling", json!("every error is returned")),
        ] {
            assert!(!is_asked(name, &value, &clean), "{name}");
        }
    }

    #[test]
    fn a_problem_is_there_if_it_is_reported_quoted_or_named() {
        let field = || json!([{"severity": "critical", "text": "The key is in the log"}]);
        let summary = |text: &str| json!({"approved": true, "issues": [], "summary": text});
        let issue = json!({"text": "a secret is logged", "severity": "high"});
        let cases = [
            ("in other words", json!({"approved": false, "issues": [issue]}), false),
            ("quoted", summary("I had said that the key is in the log; it is a test key."), false),
            ("named", summary("`security` was about a test key."), false),
            ("named as another word", summary("The security is good."), true),
            ("not at all", summary("All is well."), true),
        ];
        for (name, result, asked) in cases {
            assert_eq!(is_asked("security", &field(), &result), asked, "{name}");
        }
        let two = json!(["A critical bug in the parser", "A critical bug in the lexer"]);
        let one = summary("There was a critical bug in the parser, which is gone.");
        assert!(is_asked("bugs", &two, &one), "each statement counts");
    }
}
