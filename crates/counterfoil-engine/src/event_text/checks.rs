//! The outcomes of the project's checks as one line.

use super::pieces::one_line;
use counterfoil_contract::text::pluralize;
use counterfoil_flow::{BuiltinStep, CheckReport, CheckStatus};
use std::collections::BTreeMap;

/// What came of the checks of a step.
pub(super) fn checks_line(
    step: &BuiltinStep,
    label: &str,
    reports: &BTreeMap<String, CheckReport>,
) -> String {
    let (names, is_base) = match step {
        BuiltinStep::Checks(names) => (names, false),
        BuiltinStep::BaseChecks(names) => (names, true),
        _ => return format!("✓ {label}"),
    };
    let known = names.iter().filter_map(|name| Some((name, reports.get(name)?)));
    let outcomes: Vec<String> = known.map(|(name, report)| outcome(name, report)).collect();
    let failed = reports.values().any(|report| report.status == CheckStatus::Failed);
    let none = reports.values().all(|report| report.status == CheckStatus::NotConfigured);
    let mark = match (failed, none) {
        (true, _) => "✗",
        (false, true) => "·",
        (false, false) => "✓",
    };
    let base = if is_base && failed { "; nothing is spent yet" } else { "" };
    format!("{mark} {label}: {}{base}", outcomes.join("; "))
}

/// The checks that failed, with why; none if none did.
pub(super) fn failed_checks(reports: &BTreeMap<String, CheckReport>) -> Option<String> {
    let failed = reports.iter().filter(|(_, report)| report.status == CheckStatus::Failed);
    let failed: Vec<String> = failed.map(|(name, report)| outcome(name, report)).collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}

fn outcome(name: &str, report: &CheckReport) -> String {
    let counts = counts(report);
    let took =
        if report.reused { " (run before on the same tree)".to_owned() } else { String::new() };
    let notes: String = report.notes.iter().map(|note| format!(", {}", one_line(note))).collect();
    match report.status {
        CheckStatus::Passed => format!("{name} passed{counts}{took}{notes}"),
        CheckStatus::Failed => {
            format!("{name} failed: {}{counts}{took}{notes}", one_line(&report.reason))
        }
        CheckStatus::NotConfigured => format!("{name} is not configured"),
    }
}

fn counts(report: &CheckReport) -> String {
    match (report.total, report.failed) {
        (Some(total), Some(failed)) if failed > 0 => {
            format!(", {failed} of {} failed", test_count(total))
        }
        (Some(total), _) => format!(", {}", test_count(total)),
        (None, _) => String::new(),
    }
}

fn test_count(total: u64) -> String {
    pluralize(usize::try_from(total).unwrap_or(usize::MAX), "test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_its_outcome() {
        let names = vec!["test".to_owned(), "lint".to_owned(), "e2e".to_owned()];
        let report = |status, reason: &str| CheckReport {
            status,
            reason: reason.to_owned(),
            ..CheckReport::default()
        };
        let mut reports = BTreeMap::from([
            ("test".to_owned(), report(CheckStatus::Failed, "`cargo test` exited with 101")),
            ("lint".to_owned(), report(CheckStatus::Passed, "")),
            ("e2e".to_owned(), report(CheckStatus::NotConfigured, "")),
        ]);
        if let Some(test) = reports.get_mut("test") {
            (test.total, test.failed) = (Some(7), Some(2));
        }
        assert_eq!(
            checks_line(&BuiltinStep::BaseChecks(names.clone()), "base/checks", &reports),
            "✗ base/checks: test failed: `cargo test` exited with 101, 2 of 7 tests failed; lint passed; \
             e2e is not configured; nothing is spent yet"
        );
        if let Some(test) = reports.get_mut("test") {
            (test.total, test.failed) = (Some(1), Some(1));
        }
        let line = checks_line(&BuiltinStep::Checks(names.clone()), "fix/checks", &reports);
        assert!(line.contains("exited with 101, 1 of 1 test failed;"), "{line}");
        reports.retain(|name, _| name != "test");
        assert_eq!(
            checks_line(&BuiltinStep::Checks(names.clone()), "fix/checks", &reports),
            "✓ fix/checks: lint passed; e2e is not configured"
        );
        reports.retain(|name, _| name != "lint");
        assert_eq!(
            checks_line(&BuiltinStep::Checks(names), "fix/checks", &reports),
            "· fix/checks: e2e is not configured"
        );
    }
}
