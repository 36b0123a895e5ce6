//! The part of a page that shows what came of checking a text.

use super::{filled, filters};
use crate::checking::Checked;
use crate::excerpt::{self, Excerpt};
use crate::format::{self, Mark};
use crate::problem::Problem;
use askama::Template;
use counterfoil_contract::{LoadError, Report, Status, Violation};

/// The most violations, repairs or other entries of a list that are shown.
const MAX_LISTED: usize = 50;
/// The most characters of a value that are shown.
const MAX_VALUE: usize = 100_000;

/// What came of a check.
#[derive(Template)]
#[template(path = "check-result.html")]
struct CheckResult {
    /// Why nothing was checked; empty if something was.
    problem: String,
    hint: String,
    /// What is wrong with the contract.
    contract_problems: Vec<ContractProblem>,
    report: Option<Shown>,
}

struct ContractProblem {
    code: String,
    place: String,
    line: usize,
    message: String,
    hint: String,
}

/// A report.
struct Shown {
    mark: Mark,
    contract: String,
    stage: &'static str,
    framing: &'static str,
    candidates: usize,
    /// The number of the candidate that decides, from 1; 0 if there is none.
    chosen: usize,
    line: usize,
    passed_over: Vec<usize>,
    violations: Vec<Wrong>,
    more_violations: usize,
    warnings: Vec<Wrong>,
    repairs: Vec<Repaired>,
    more_repairs: usize,
    coercions: Vec<(String, String, String)>,
    more_coercions: usize,
    defaults: Vec<String>,
    filled: Vec<String>,
    unwrapped: Vec<String>,
    value: String,
    value_name: &'static str,
    value_is_cut: bool,
}

/// A violation or a warning, and its place in the text.
struct Wrong {
    code: String,
    pointer: String,
    message: String,
    expected: String,
    received: String,
    hint: String,
    line: usize,
    excerpt: Option<Excerpt>,
}

/// A repair.
struct Repaired {
    kind: &'static str,
    line: usize,
    column: usize,
    from: String,
    to: String,
}

/// Shows what came of a check. The text is the one that was checked.
pub(crate) fn checked(checked: Result<(Checked, String), Problem>) -> Result<String, Problem> {
    let mut result = CheckResult {
        problem: String::new(),
        hint: String::new(),
        contract_problems: Vec::new(),
        report: None,
    };
    match checked {
        Ok((Checked::Report(report), text)) => result.report = Some(shown(&report, &text)),
        Ok((Checked::NoContract(error), _)) => {
            result.contract_problems = contract_problems(&error);
        }
        Err(problem) => {
            result.problem = format::text(problem.detail());
            result.hint = format::text(problem.hint().unwrap_or_default());
        }
    }
    filled(&result)
}

fn contract_problems(error: &LoadError) -> Vec<ContractProblem> {
    let problems = error.problems.iter().take(MAX_LISTED);
    let problem = |problem: &counterfoil_contract::Problem| ContractProblem {
        code: problem.code.to_string(),
        place: format::cell(&problem.place),
        line: problem.line.unwrap_or(0),
        message: format::text(&problem.message),
        hint: format::text(&problem.hint),
    };
    problems.map(problem).collect()
}

fn shown(report: &Report, text: &str) -> Shown {
    let provenance = &report.provenance;
    let (mark_class, sign, word) = match report.status {
        Status::Accepted => ("good", "✓", "accepted"),
        Status::Rejected => ("bad", "✗", "rejected"),
        Status::Absent => ("warn", "?", "absent: the text has no result"),
    };
    let (value, value_name) = match (&report.value, &report.partial, &report.refused_value) {
        (Some(value), ..) => (Some(value), "Value"),
        (None, Some(partial), _) => (Some(partial), "Valid part of the value"),
        (None, None, refused) => (refused.as_ref(), "Value as it was read"),
    };
    let value = value.map(format::pretty).unwrap_or_default();
    let value_shown: String = value.chars().take(MAX_VALUE).collect();
    let left_out = &report.left_out;
    let more = |listed: usize, left_out: usize| listed.saturating_sub(MAX_LISTED) + left_out;
    let cells =
        |list: &[String]| list.iter().take(MAX_LISTED).map(|text| format::cell(text)).collect();
    let repairs = provenance.repairs.iter().take(MAX_LISTED).map(|repair| {
        let (start, end) = (repair.span.start, repair.span.end);
        Repaired {
            kind: repair.kind.name(),
            line: repair.span.line,
            column: repair.span.column,
            from: format::cell(text.get(start..end).unwrap_or_default()),
            to: format::cell(&repair.replacement),
        }
    });
    let coercions = provenance.coercions.iter().take(MAX_LISTED).map(|coercion| {
        let cell = format::cell;
        (cell(&coercion.pointer), cell(&coercion.from), cell(&coercion.to))
    });
    Shown {
        mark: Mark { class: mark_class, sign, word },
        contract: format::cell(&report.contract),
        stage: report.stage.map(counterfoil_contract::Stage::name).unwrap_or_default(),
        framing: provenance.framing.name(),
        candidates: provenance.candidates,
        chosen: provenance.chosen.map_or(0, |chosen| chosen + 1),
        line: provenance.span.map_or(0, |span| span.line),
        passed_over: provenance.passed_over.iter().take(MAX_LISTED).map(|span| span.line).collect(),
        violations: wrongs(&report.violations, text),
        more_violations: more(report.violations.len(), left_out.violations),
        warnings: wrongs(&report.warnings, text),
        repairs: repairs.collect(),
        more_repairs: more(provenance.repairs.len(), left_out.repairs),
        coercions: coercions.collect(),
        more_coercions: more(provenance.coercions.len(), left_out.coercions),
        defaults: cells(&provenance.defaults),
        filled: cells(&provenance.filled),
        unwrapped: cells(&provenance.unwrapped),
        value_is_cut: value_shown.len() < value.len(),
        value: value_shown,
        value_name,
    }
}

fn wrongs(violations: &[Violation], text: &str) -> Vec<Wrong> {
    violations.iter().take(MAX_LISTED).map(|violation| wrong(violation, text)).collect()
}

fn wrong(violation: &Violation, text: &str) -> Wrong {
    let span = violation.span;
    Wrong {
        code: violation.code.to_string(),
        pointer: format::cell(&violation.pointer),
        message: format::text(&violation.message),
        expected: format::text(&violation.expected),
        received: format::text(&violation.received),
        hint: format::text(&violation.hint),
        line: span.map_or(0, |span| span.line),
        excerpt: span.map(|span| excerpt::around(text.as_bytes(), span.start, span.end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_contract::Contract;

    const CONTRACT: &str = "contract: acme/check
version: 1
fields: { ok: boolean, level: low | high }
";

    fn html(text: &str) -> String {
        let report = Contract::from_yaml(CONTRACT).unwrap().check(text);
        checked(Ok((Checked::Report(Box::new(report)), text.to_owned()))).unwrap()
    }

    #[test]
    fn a_violation_is_marked_in_the_text_and_nothing_of_it_is_markup() {
        let html = html("<b>Done</b> {\"ok\": true, \"level\": \"<i>\"}");
        assert!(html.contains("rejected"), "{html}");
        assert!(html.contains("<mark>"), "{html}");
        assert!(!html.contains("<b>") && !html.contains("<i>"), "{html}");
    }

    #[test]
    fn the_three_results_are_told_apart() {
        assert!(html("{\"ok\": true, \"level\": \"low\"}").contains("accepted"));
        assert!(html("nothing").contains("absent"));
    }

    #[test]
    fn a_contract_that_does_not_load_says_why() {
        let error = Contract::from_yaml("contract: nothing").unwrap_err();
        let html = checked(Ok((Checked::NoContract(error), String::new()))).unwrap();
        assert!(html.contains("The contract does not load"), "{html}");
        let html = checked(Err(Problem::bad_request("<why>"))).unwrap();
        assert!(html.contains("why") && !html.contains("<why>"), "{html}");
    }
}
