//! The pack review-fix.

mod account;
mod base;
mod beside;
mod checks;
mod code_reviewer;
mod false_done;
mod false_done_small;
mod fields;
mod fix;
mod older;
mod report;
mod rereview;
mod review;
mod small;
mod task_ids;

use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const REVIEWER: &str = "unified-reviewer";
const FIXER: &str = "simple-fixer";
/// What `src/lib.rs` is after it was fixed.
const FIXED: &str = "pub fn one() -> u32 {\n    1 // as it should be\n}\n";
/// Neither prose with JSON in it nor anything else: no fence at all.
const GARBAGE: &str = "I looked at everything, and it is fine. Approved!";

/// What an honest reviewer read, whatever the chunk is.
const READ: [&str; 6] =
    ["src/lib.rs", "src/a.rs", "src/b.rs", "src/c.rs", "src/new.rs", "README.md"];

/// A repository with a change in one file, `src/lib.rs`.
fn one_file() -> Scenario {
    Scenario::new("review-fix").file("src/lib.rs", "pub fn one() -> u32 {\n    2\n}\n")
}

/// A repository with a change in three files; with `SMALL` chunks each is one of its own.
fn three_files() -> Scenario {
    let files = ["a", "b", "c"];
    let scenario = files.iter().fold(Scenario::new("review-fix"), |scenario, name| {
        scenario.file(&format!("src/{name}.rs"), &format!("pub fn {name}() {{}}\n"))
    });
    files.iter().fold(scenario.commit(), |scenario, name| {
        scenario.file(&format!("src/{name}.rs"), &format!("pub fn {name}() {{ changed() }}\n"))
    })
}

/// A budget that no file fits into.
const SMALL: [&str; 2] = ["--input", "chunk_tokens=1"];

fn finding(id: &str, file: &str, severity: &str) -> Value {
    json!({
        "id": id, "file": file, "line": 1, "issue": format!("{id} is wrong in {file}"), "severity": severity,
        "category": "correctness"
    })
}

/// A review that found this, one group for each.
fn found(findings: &[Value]) -> Value {
    let group = |finding: &Value| json!({"description": "belongs together", "findings": [finding]});
    json!({"groups": findings.iter().map(group).collect::<Vec<_>>(), "files_reviewed": READ})
}

/// A review that found this, all in one group.
fn found_together(findings: &[Value]) -> Value {
    json!({"groups": [{"description": "belongs together", "findings": findings}], "files_reviewed": READ})
}

fn nothing() -> Value {
    json!({"groups": [], "files_reviewed": READ})
}

/// What a fixer says of findings: id and outcome.
fn outcomes(pairs: &[(&str, &str)]) -> Value {
    let one = |(id, outcome): &(&str, &str)| json!({"id": id, "outcome": outcome, "explanation": format!("{id} is {outcome}")});
    json!({"outcomes": pairs.iter().map(one).collect::<Vec<_>>()})
}

/// One finding in `src/lib.rs` of this severity, fixed at once.
fn fixed_at_once(severity: &str) -> Scenario {
    one_file()
        .says(REVIEWER, found(&[finding("F001", "src/lib.rs", severity)]))
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing())
}

/// Each finding of the ledger as `id state attempts`.
fn ledger(ran: &ScenarioRun) -> Vec<String> {
    let entries = ran.variables()["findings"].as_array().unwrap();
    let one = |entry: &Value| {
        let id = entry["finding"]["id"].as_str().unwrap();
        format!("{id} {} {}", entry["state"].as_str().unwrap(), entry["attempts"])
    };
    entries.iter().map(one).collect()
}

/// What was said of a finding.
fn excuses(ran: &ScenarioRun, id: &str) -> Vec<String> {
    let entries = ran.variables()["findings"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["finding"]["id"] == id);
    let entry = entry.unwrap_or_else(|| panic!("there is no finding {id}: {ran:?}"));
    entry["excuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|excuse| excuse.as_str().unwrap().to_owned())
        .collect()
}

/// A file of a run's report.
fn of_report(ran: &ScenarioRun, file: &str) -> String {
    format!(".review-fix/{}/{file}", ran.run_id())
}
