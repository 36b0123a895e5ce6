//! The final report: the recommendation, and findings that are not fixed.

use super::{
    FIXED, FIXER, REVIEWER, finding, fixed_at_once, found, ledger, nothing, of_report, one_file,
    outcomes,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// One finding of this severity that a fixer cannot fix.
fn not_fixed(severity: &str) -> Scenario {
    one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", severity)]))
        .says(FIXER, outcomes(&[("c1-F001", "blocked")]))
}

/// The files of tech-debt records, sorted.
fn records(ran: &ScenarioRun) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(ran.path(&of_report(ran, "tech-debt"))) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn approve_when_nothing_is_open() {
    for scenario in [one_file().says(REVIEWER, nothing()), fixed_at_once("critical")] {
        let ran = scenario.run(&[]);
        assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
        assert_eq!(ran.variables()["recommendation"], "approve");
        assert!(ran.reason().starts_with("approve: "), "{}", ran.reason());
    }
}

#[test]
fn approve_when_only_minor_is_open() {
    let ran = not_fixed("minor").run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.variables()["recommendation"], "approve");
}

#[test]
fn comment_for_major() {
    let ran = not_fixed("major").run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.variables()["recommendation"], "comment");
    assert_eq!(ran.reason(), "comment: 1 findings, 0 fixed, 1 blocked, 0 deferred, 0 open");
}

#[test]
fn request_changes_for_critical() {
    let ran = not_fixed("critical").run(&[]);
    assert_eq!(ran.ended(), ("failed", None, 8), "{ran:?}");
    assert_eq!(ran.variables()["recommendation"], "request-changes");
    assert_eq!(ran.reason(), "request-changes: 1 findings, 0 fixed, 1 blocked, 0 deferred, 0 open");
    assert_eq!(ran.report["exit"], 8);
}

#[test]
fn the_severity_that_fails_can_be_chosen() {
    for (severity, arguments, code) in [
        ("critical", ["--fail-on", "never"], 0),
        ("critical", ["--fail-on", "major"], 8),
        ("major", ["--fail-on", "major"], 8),
        ("major", ["--input", "fail_on=critical"], 0),
        ("minor", ["--input", "fail_on=major"], 0),
    ] {
        let ran = not_fixed(severity).built_in_only().run(&arguments);
        assert_eq!(ran.ended().2, code, "{severity} {arguments:?}: {ran:?}");
    }
    let ran = not_fixed("minor").built_in_only().run(&[]);
    let said = ran.run_command(&["run", "review-fix", "--fail-on", "trivial"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("critical"), "{said:?}");
}

#[test]
fn what_is_not_fixed_becomes_a_tech_debt_record_each() {
    let ran = one_file()
        .says(
            REVIEWER,
            found(&["F001", "F002", "F003"].map(|id| finding(id, "src/lib.rs", "major"))),
        )
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .when("c1-F001")
        .writes("src/lib.rs", FIXED)
        .says(FIXER, outcomes(&[("c1-F002", "blocked")]))
        .when("c1-F002")
        .says(FIXER, outcomes(&[("c1-F003", "deferred")]))
        .when("c1-F003")
        .says(REVIEWER, nothing())
        .says(FIXER, outcomes(&[("c1-F003", "blocked")]))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-F002 blocked 1", "c1-F003 blocked 2"]);
    assert_eq!(records(&ran), ["1-c1-f002.md", "2-c1-f003.md"]);
    let record = ran.read(&of_report(&ran, "tech-debt/2-c1-f003.md"));
    for part in [
        "F003 is wrong in src/lib.rs",
        "src/lib.rs:1",
        "blocked, after 2 attempts",
        "1. c1-F003 is deferred\n2. c1-F003 is blocked",
    ] {
        assert!(record.contains(part), "{part}: {record}");
    }
}

#[test]
fn nothing_is_recorded_where_all_is_fixed() {
    let ran = fixed_at_once("critical").run(&[]);
    assert_eq!((records(&ran), &ran.variables()["records"]), (vec![], &json!([])), "{ran:?}");
}

#[test]
fn the_report_says_how_everything_stands() {
    let ran = not_fixed("critical").run(&[]);
    let report = ran.json(&of_report(&ran, "report.json"));
    assert_eq!(
        (&report["outcome"], &report["recommendation"]),
        (&json!("failed"), &json!("request-changes"))
    );
    assert_eq!(
        report["accounts"],
        json!({"total": 1, "open": 0, "fixed": 0, "blocked": 1, "deferred": 0})
    );
    assert_eq!(report["since"], ran.git(&["rev-parse", "HEAD"]).trim());
    assert_eq!(report["findings"][0]["finding"]["id"], "c1-F001");
    let page = ran.read(&of_report(&ran, "report.md"));
    assert!(
        page.contains("**Recommendation: request-changes**")
            && page.contains("## c1-F001: blocked"),
        "{page}"
    );
}

#[test]
fn what_agents_write_does_not_break_the_report() {
    let mut odd = finding("F/../../\"1\" |", "src/lib.rs", "minor");
    odd["issue"] = json!("a | \"quoted\" {{ brace }} \\ and\nanother line");
    let ran = one_file()
        .says(REVIEWER, found(&[odd]))
        .says(FIXER, json!({"outcomes": []}))
        .says(FIXER, json!({"outcomes": []}))
        .says(FIXER, json!({"outcomes": []}))
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(records(&ran), ["1-c1-f-1.md"]);
    let report = ran.json(&of_report(&ran, "report.json"));
    assert_eq!(
        report["findings"][0]["finding"]["issue"],
        "a | \"quoted\" {{ brace }} \\ and\nanother line"
    );
}

#[test]
fn a_tracker_gets_each_record_as_json() {
    let tracker =
        "cat >> ../tracked.jsonl; echo >> ../tracked.jsonl; echo https://example.org/issues/7";
    let ran = not_fixed("major").run(&["--input", &format!("tracker={tracker}")]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let lines = ran.read("../tracked.jsonl");
    let record: Value = serde_json::from_str(lines.trim()).unwrap();
    assert_eq!(record["key"], format!("{}/c1-F001", ran.run_id()));
    assert_eq!(record["title"], "major in src/lib.rs:1: F001 is wrong in src/lib.rs");
    assert_eq!(
        (&record["state"], &record["excuses"]),
        (&json!("blocked"), &json!(["c1-F001 is blocked"]))
    );
    assert_eq!(record["base"], ran.git(&["rev-parse", "HEAD"]).trim());
    let file = ran.read(&of_report(&ran, "tech-debt/1-c1-f001.md"));
    assert!(file.contains("| filed as | https://example.org/issues/7 |"), "{file}");
}

#[test]
fn a_tracker_that_fails_is_said_and_the_record_is_there() {
    let ran = not_fixed("minor").run(&["--input", "tracker=echo no such project; exit 3"]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains("c1-F001 (exit code 3: no such project)"), "{}", ran.reason());
    assert_eq!(records(&ran), ["1-c1-f001.md"]);
}

#[test]
fn without_a_tracker_no_command_is_run() {
    assert!(
        !not_fixed("major")
            .run(&[])
            .commands()
            .iter()
            .any(|command| command.starts_with("report/"))
    );
}

#[test]
fn a_report_is_no_part_of_the_next_change() {
    let first = not_fixed("minor").run(&[]);
    let second = one_file().says(REVIEWER, nothing()).run_after(&first, &[]);
    assert_eq!(second.ended(), ("done", None, 0), "{second:?}");
    let prompt = second.prompt("review/1/unified-reviewer#1", 1);
    assert!(!prompt.contains("review-fix"), "{prompt}");
    assert_ne!(first.run_id(), second.run_id());
    assert_eq!(records(&first), ["1-c1-f001.md"], "the first one's record is there still");
    assert!(!second.git(&["status", "--porcelain"]).contains("review-fix"));
}
