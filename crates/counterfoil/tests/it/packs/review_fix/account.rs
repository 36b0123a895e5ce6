//! Accounting: fixed + blocked + deferred + open = total, after every event and across a kill.

use super::{
    FIXED, FIXER, REVIEWER, finding, found, found_together, ledger, nothing, one_file, outcomes,
    three_files,
};
use crate::packs::run::ScenarioRun;
use serde_json::Value;
use std::collections::BTreeSet;

/// Reads the journal and adds up: after each event every finding that was ever reported is in the
/// ledger once, in one state. The ledgers, as numbers of open, fixed, blocked and deferred ones.
fn adds_up(ran: &ScenarioRun) -> Vec<[usize; 4]> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut all = Vec::new();
    let mut entries: Vec<Value> = Vec::new();
    for event in ran.events() {
        if event["kind"] == "moved" && event["frame"] == "" {
            // What was reported is noted by the very next event that speaks of the ledger.
            if let Some(findings) = event["set"]["findings"].as_array() {
                entries.clone_from(findings);
            }
        }
        let count = |state: &str| entries.iter().filter(|entry| entry["state"] == state).count();
        let by_state = ["open", "fixed", "blocked", "deferred"].map(count);
        assert_eq!(by_state.iter().sum::<usize>(), entries.len(), "{event}");
        let ids: BTreeSet<String> = entries
            .iter()
            .map(|entry| entry["finding"]["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), entries.len(), "an id stands twice: {event}");
        assert!(ids.is_superset(&seen), "a finding is gone: {event}");
        seen = ids;
        if all.last() != Some(&by_state) {
            all.push(by_state);
        }
    }
    assert_eq!(ran.variables()["findings"].as_array().unwrap(), &entries);
    all
}

#[test]
fn accounting_is_closed_at_every_event() {
    let ran = three_files()
        .says(
            REVIEWER,
            found_together(
                &["F001", "F002", "F003", "F004"].map(|id| finding(id, "src/a.rs", "minor")),
            ),
        )
        // One is fixed, one blocked, one deferred, and one not mentioned.
        .says(
            FIXER,
            outcomes(&[("c1-F001", "fixed"), ("c1-F002", "blocked"), ("c1-F003", "deferred")]),
        )
        .writes("src/a.rs", "pub fn a() { better() }\n")
        // The first is found again, and something new.
        .says(
            REVIEWER,
            found(&[finding("c1-F001", "src/a.rs", "minor"), finding("F009", "src/b.rs", "major")]),
        )
        .says(
            FIXER,
            outcomes(&[("c1-F001", "fixed"), ("c1-F003", "fixed"), ("c1-F004", "deferred")]),
        )
        .when("c1-F001")
        .writes("src/a.rs", "pub fn a() { good() }\n")
        .raw(FIXER, "Done!")
        .when("c2-F009")
        .raw(FIXER, "Done!")
        .when("c2-F009")
        .raw(FIXER, "Done!")
        .when("c2-F009")
        .says(REVIEWER, nothing())
        .says(FIXER, outcomes(&[("c1-F004", "deferred")]))
        .when("c1-F004")
        .says(FIXER, outcomes(&[("c2-F009", "blocked")]))
        .when("c2-F009")
        .run(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(
        ledger(&ran),
        [
            "c1-F001 fixed 2",
            "c1-F002 blocked 1",
            "c1-F003 fixed 2",
            "c1-F004 deferred 3",
            "c2-F009 blocked 2"
        ]
    );
    // open, fixed, blocked, deferred
    assert_eq!(
        adds_up(&ran),
        [[0, 0, 0, 0], [4, 0, 0, 0], [0, 1, 1, 2], [2, 0, 1, 2], [0, 2, 1, 2], [0, 2, 2, 1]]
    );
    let report = ran.json(&super::of_report(&ran, "report.json"));
    assert_eq!(
        report["accounts"],
        serde_json::json!({"total": 5, "open": 0, "fixed": 2, "blocked": 2, "deferred": 1})
    );
}

#[test]
fn a_run_that_is_killed_while_it_fixes_goes_on_with_the_same_accounts() {
    let meet = tempfile::tempdir().unwrap();
    let at = meet.path().display().to_string();
    let stops_once = format!("[ -e {at}/began ] || {{ touch {at}/began; sleep 600; }}");
    let scenario = one_file().file("src/b.rs", "pub fn b() {}\n").says(
        REVIEWER,
        found(&[finding("F001", "src/lib.rs", "major"), finding("F002", "src/b.rs", "major")]),
    );
    let scenario = (0..2).fold(scenario, |scenario, _| {
        scenario
            .says(FIXER, outcomes(&[("c1-F002", "fixed")]))
            .when("c1-F002")
            .exec(&stops_once)
            .writes("src/b.rs", "pub fn b() { good() }\n")
    });
    let scenario = scenario
        .says(FIXER, outcomes(&[("c1-F001", "fixed")]))
        .when("c1-F001")
        .writes("src/lib.rs", FIXED)
        .says(REVIEWER, nothing());
    let mut live = scenario.start(&[]);
    live.wait_until("the second group is at work", |_| meet.path().join("began").exists());
    let ran = ScenarioRun::show(live.kill()).resume(&[]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ledger(&ran), ["c1-F001 fixed 1", "c1-F002 fixed 1"], "{ran:?}");
    assert_eq!(adds_up(&ran), [[0, 0, 0, 0], [2, 0, 0, 0], [0, 2, 0, 0]]);
    assert_eq!(
        (ran.read("src/lib.rs").as_str(), ran.read("src/b.rs").as_str()),
        (FIXED, "pub fn b() { good() }\n")
    );
    let reviews =
        ran.attempts().into_iter().filter(|attempt| attempt.starts_with("review/")).count();
    assert_eq!(reviews, 1, "what was reviewed is not reviewed again: {:?}", ran.attempts());
}
