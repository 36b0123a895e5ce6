//! The part of a page that shows what came of checking a text.

use super::{filled, filters};
use crate::checking::{Alone, Checked};
use crate::excerpt::{self, Excerpt};
use crate::format::{self, Mark};
use crate::problem::Problem;
use askama::Template;
use counterfoil_contract::{LoadError, Report, Span, Status, Violation};

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
    /// The candidates that are known by their places, in the order of the text.
    listed: Vec<Candidate>,
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

/// A place where a result may be.
struct Candidate {
    line: usize,
    column: usize,
    /// Its beginning.
    excerpt: String,
    is_chosen: bool,
    mark: Mark,
    /// Why it decides, or does not.
    why: String,
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
        Ok((Checked::Report(report, alone), text)) => {
            result.report = Some(shown(&report, &alone, &text));
        }
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

fn shown(report: &Report, alone: &[Alone], text: &str) -> Shown {
    let provenance = &report.provenance;
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
        mark: mark(report.status),
        contract: format::cell(&report.contract),
        stage: report.stage.map(counterfoil_contract::Stage::name).unwrap_or_default(),
        framing: provenance.framing.name(),
        candidates: provenance.candidates,
        listed: candidates(report, alone, text),
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

fn mark(status: Status) -> Mark {
    let (class, sign, word) = match status {
        Status::Accepted => ("good", "✓", "accepted"),
        Status::Rejected => ("bad", "✗", "rejected"),
        Status::Absent => ("warn", "?", "absent: the text has no result"),
    };
    Mark { class, sign, word }
}

/// The candidates in the order of the text: the one that decides, and those that were passed over.
fn candidates(report: &Report, alone: &[Alone], text: &str) -> Vec<Candidate> {
    let candidate = |span: Span, is_chosen, mark, why| Candidate {
        line: span.line,
        column: span.column,
        excerpt: format::cell(text.get(span.start..span.end).unwrap_or_default()),
        is_chosen,
        mark,
        why,
    };
    let Some(chosen) = report.provenance.span else { return Vec::new() };
    let mut found =
        vec![(chosen.start, candidate(chosen, true, mark(report.status), String::new()))];
    found.extend(alone.iter().map(|other| {
        let place = if other.span.start < chosen.start {
            "it comes before the one that decides"
        } else {
            "it is no attempt at a result"
        };
        let own = match (&other.violation, other.status) {
            (Some(violation), Status::Rejected) => {
                format!("; by itself, it is rejected: {}", violation.message)
            }
            (_, Status::Accepted) => "; by itself, it would be accepted".to_owned(),
            _ => String::new(),
        };
        let passed_over = Mark { class: "mute", sign: "–", word: "passed over" };
        let why = format!("{place}{own}");
        (other.span.start, candidate(other.span, false, passed_over, format::cell(&why)))
    }));
    found.sort_by_key(|(start, _)| *start);
    found.into_iter().map(|(_, candidate)| candidate).collect()
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
    use crate::checking::{CheckRequest, perform};
    use crate::contracts::KnownContracts;
    use crate::folders::Folders;
    use counterfoil_contract::Contract;
    use std::sync::Arc;

    const CONTRACT: &str = "contract: acme/check
version: 1
fields: { ok: boolean, level: low | high }
";

    fn html(text: &str) -> String {
        let request = CheckRequest {
            contract: None,
            definition: Some(CONTRACT.to_owned()),
            text: text.to_owned(),
        };
        let (contracts, folders) = (KnownContracts::default(), Folders::new(Vec::new()));
        let found = perform(&contracts, &folders, request, Arc::default()).unwrap();
        checked(Ok(found)).unwrap()
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

    #[test]
    fn every_candidate_is_shown_with_its_place_and_why_it_does_not_decide() {
        let html = html(
            "First {\"ok\": true, \"level\": \"low\"}\nthen {\"ok\": 7, \"level\": \"x\"}\n\
             and {\"level\": \"high\", \"ok\": false}",
        );
        let (_, list) = html.split_once("<ol class=\"candidates\"").unwrap();
        let (list, _) = list.split_once("</ol>").unwrap();
        let rows: Vec<&str> = list.split("<li").skip(1).collect();
        assert_eq!(rows.len(), 3, "{html}");
        for part in ["line 1", "passed over", "before the one that decides", "would be accepted"] {
            assert!(rows[0].contains(part), "{part}: {}", rows[0]);
        }
        assert!(rows[1].contains("by itself, it is rejected"), "{}", rows[1]);
        assert!(rows[2].contains("decides") && rows[2].contains("high"), "{}", rows[2]);
        assert!(!rows[2].contains("passed over"), "{}", rows[2]);
    }
}
