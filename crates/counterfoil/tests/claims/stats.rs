//! Over all runs: which agent to trust with what.

use crate::house::{House, MORNING, asked, began, ended, files, opened, over, started, tests};
use counterfoil::Verdict;
use counterfoil_flow::{AttemptOutcome, Cause, Event, Outcome};
use serde_json::json;

const DAY: i64 = 86_400_000;

fn run(n: i64, workflow: &str, model: &str, events: Vec<Event>) -> (String, i64, Vec<Event>) {
    let id = format!("run-{n}");
    let mut all =
        vec![began(&id, workflow, "command:/opt/bin/agent -p", Some(model)), opened("fix")];
    all.extend(events);
    all.push(over(Outcome::Done, None));
    (id, MORNING + n * DAY, all)
}

/// Two models on four days: the small one is refuted, and corrects itself once.
fn four_days() -> House {
    let wrong =
        || files(&["a.rs", "b.rs"], &["a.rs"], "claimed 2 files, 1 of them did not change: b.rs");
    let right = || files(&["a.rs"], &["a.rs"], "");
    let good = || {
        let claims = vec![right(), tests(Verdict::Verified)];
        vec![started("fix", 1), ended("fix", 1, AttemptOutcome::Accepted, claims, &["a.rs"])]
    };
    let corrected = vec![
        started("fix", 1),
        asked("fix", 1, vec![]),
        asked("fix", 1, vec![wrong(), tests(Verdict::Verified)]),
        ended(
            "fix",
            1,
            AttemptOutcome::Accepted,
            vec![right(), tests(Verdict::Refuted)],
            &["a.rs"],
        ),
    ];
    let lost = vec![
        started("fix", 1),
        ended("fix", 1, AttemptOutcome::Claim, vec![wrong(), tests(Verdict::Unverifiable)], &[]),
    ];
    let house = House::new();
    house.runs([
        run(0, "nightly", "large", good()),
        run(1, "nightly", "small", corrected),
        run(2, "nightly", "small", lost),
        run(3, "weekly", "large", good()),
    ]);
    house
}

#[test]
fn the_tables_say_who_to_trust_with_what() {
    let house = four_days();
    insta::assert_snapshot!("stats", house.shown(&["claims", "stats"]));
    insta::assert_snapshot!(
        "stats_by_model",
        house.shown(&["claims", "stats", "--by", "player,model"])
    );
}

#[test]
fn spreadsheets_get_a_line_for_each_group() {
    let house = four_days();
    insta::assert_snapshot!(
        "stats_csv",
        house.shown(&["claims", "stats", "--format", "csv", "--by", "field,model"])
    );
}

#[test]
fn programs_get_counts_and_rates() {
    let house = four_days();
    let (code, all) = house.json(&["claims", "stats", "--by", "model", "--format", "json"]);
    assert_eq!((code, &all["runs"], &all["by"]), (0, &json!(4), &json!(["model"])));
    let groups = all["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    // Those who are refuted most come first.
    let expected = json!({
        "model": "small", "attempts": 2, "accepted": 1, "lost_to_claim": 1, "replies": 4, "violations": 1,
        "violation_rate": 0.25, "repairs": 2, "repairs_per_accepted": 2.0, "claims": 6, "verified": 2, "refuted": 3,
        "stale": 0, "unverifiable": 1, "refutation_rate": 0.6, "corrected": 1, "codes": {"C0301": 1},
    });
    assert_eq!(groups[0], expected);
    assert_eq!(
        (&groups[1]["model"], &groups[1]["refutation_rate"]),
        (&json!("large"), &json!(0.0))
    );
}

#[test]
fn runs_are_chosen_by_workflow_and_time() {
    let house = four_days();
    for (arguments, runs) in [
        (&["--workflow", "weekly"][..], 1),
        (&["--since", "2026-01-04"], 2),
        (&["--since", "2026-01-04T04:00Z"], 1),
        (&["--since", "2026-01-03", "--workflow", "nightly"], 2),
        (&["--since", "2030-01-01"], 0),
        (&["--workflow", "other"], 0),
    ] {
        let (code, all) =
            house.json(&[&["claims", "stats", "--format", "json"], arguments].concat());
        assert_eq!((code, &all["runs"]), (0, &json!(runs)), "{arguments:?}");
    }
    let output = house.command(&["claims", "stats", "--since", "yesterday"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a date such as"));
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let empty = House::new();
    let none = empty.shown(&["claims", "stats"]);
    assert!(none.contains("exit 0") && none.contains("there are no runs in"), "{none}");
    assert!(!empty.path(".counterfoil/journal.db").exists(), "looking makes no journal");
    let csv = empty.shown(&["claims", "stats", "--format", "csv"]);
    assert!(csv.contains("contract,field,agent,player,attempts"), "{csv}");
    let house = four_days();
    let other = house.shown(&["claims", "stats", "--workflow", "other"]);
    assert!(other.contains("there are no runs of 'other'; available: nightly, weekly"), "{other}");
    let later = house.shown(&["claims", "stats", "--since", "2030-01-01"]);
    assert!(later.contains("no run has started since then"), "{later}");
}

#[test]
fn a_damaged_run_does_not_take_the_others_away() {
    let house = four_days();
    let unreadable = vec![
        began("odd", "nightly", "command:agent", None),
        Event::AttemptLost { attempt: "x".to_owned(), changed: Vec::new() },
        over(Outcome::Failed, Some(Cause::Claim)),
    ];
    house.runs([("odd".to_owned(), MORNING, unreadable)]);
    let journal = std::fs::read(house.path(".counterfoil/journal.db")).unwrap();
    let broken = replaced(&journal, b"{\"attempt-lost\":", b"{\"attempt-lust\":");
    assert_ne!(broken, journal, "the event stands in the file");
    std::fs::write(house.path(".counterfoil/journal.db"), broken).unwrap();
    let output =
        house.command(&["claims", "stats", "--by", "model", "--format", "json"]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{words}");
    assert!(words.contains("run odd is only counted in part"), "{words}");
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["groups"].as_array().unwrap().len(), 2);
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    while let Some(at) = out.windows(from.len()).position(|window| window == from) {
        out[at..at + from.len()].copy_from_slice(to);
    }
    out
}

/// Prints how long it takes: `cargo test --release -p counterfoil --test claims -- --ignored
/// --nocapture ten_thousand`.
#[test]
#[ignore = "measures"]
fn ten_thousand_runs() {
    let house = House::new();
    let events = |n: i64| {
        let claims = || vec![files(&["a.rs"], &["a.rs"], ""), tests(Verdict::Verified)];
        let rounds = (1..=3).flat_map(|round| {
            [
                started("fix", round),
                ended("fix", round, AttemptOutcome::Accepted, claims(), &["a.rs"]),
            ]
        });
        run(n % 300, "nightly", "large", rounds.collect())
    };
    house.runs((0..10_000).map(|n| (format!("run-{n}"), MORNING, events(n).2)));
    let began = std::time::Instant::now();
    let (_, all) = house.json(&["claims", "stats", "--format", "json"]);
    println!("10,000 runs of 9 events in {:?}", began.elapsed());
    assert_eq!((&all["runs"], &all["groups"][0]["attempts"]), (&json!(10_000), &json!(30_000)));
}

/// What the commands say of themselves.
#[test]
fn help() {
    let house = House::new();
    for (name, arguments) in
        [("help_stats", &["claims", "stats", "--help"][..]), ("help_verify", &["verify", "--help"])]
    {
        insta::assert_snapshot!(name, house.shown(arguments));
    }
}
