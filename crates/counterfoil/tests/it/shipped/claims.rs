//! `examples/claims`: every kind of claim with every possible verdict, and how they are displayed.

use crate::shipped::{run_example_in, run_in};
use counterfoil::claim::{ClaimKind, Verdict};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use Verdict::{Refuted, Stale, Unverifiable, Verified};

/// What a claim on files says is held against two looks at the tree, the second one after the
/// reply.
const NOT_STALE: &str = "it speaks of the step, which nothing later changes";

/// The verdicts that each kind is shown with, when it is made or at the end of the run; and why not
/// with the others.
const SHOWN: [(ClaimKind, &[Verdict], &str); 14] = [
    (ClaimKind::FilesModified, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (ClaimKind::FilesAdded, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (ClaimKind::FilesDeleted, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (ClaimKind::FilesRenamed, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (ClaimKind::FilesChanged, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (ClaimKind::Command, &Verdict::ALL, ""),
    (ClaimKind::Commands, &Verdict::ALL, ""),
    (ClaimKind::Count, &Verdict::ALL, ""),
    (ClaimKind::Artifact, &Verdict::ALL, ""),
    (ClaimKind::Commit, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (ClaimKind::Location, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (ClaimKind::Fixed, &[Verified, Refuted, Unverifiable], NOT_STALE),
    (
        ClaimKind::Protected,
        &[Verified, Refuted],
        "it speaks of the step, and is only unverifiable in a folder that is too large to look at",
    ),
    (ClaimKind::TestsKept, &[Verified, Refuted, Unverifiable], NOT_STALE),
];

/// What becomes of all claims of a state's reply when they are made; and the claims of the engine
/// itself that are among them.
const STATES: [(&str, u64, Verdict, &[&str]); 5] = [
    ("honest", 1, Verified, &[]),
    ("careless", 1, Refuted, &["protected", "tests"]),
    ("late", 1, Stale, &[]),
    ("unknowable", 1, Unverifiable, &["tests"]),
    ("corrected", 2, Verified, &[]),
];

fn verdict(value: &Value) -> Verdict {
    serde_json::from_value(value.clone()).unwrap()
}

fn entries(shown: &Value) -> &[Value] {
    shown["claims"].as_array().unwrap()
}

fn ledger(repo: &Path) -> Value {
    let output = run_in(repo, &["show", "last", "--claims", "--format", "json"]);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Every claim as it was judged, also those that the ledger passes over since they go without
/// saying.
fn judged(repo: &Path) -> Vec<Value> {
    let output = run_in(repo, &["show", "last", "--events"]);
    let events = output.stdout;
    let claims = events.lines().flat_map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["claims"].as_array().cloned().unwrap_or_default()
    });
    claims.collect()
}

#[test]
fn every_kind_gets_every_verdict_that_it_can() {
    let repo = tempfile::tempdir().unwrap();
    let run = run_example_in(repo.path(), "claims", &[]);
    assert_eq!((&run["outcome"], &run["state"]), (&"done".into(), &"done".into()), "{run:#}");
    let mut reached: BTreeMap<String, BTreeSet<Verdict>> = BTreeMap::new();
    let mut reach = |claim: &Value, verdict: &Value| {
        let verdicts = reached.entry(claim["kind"].as_str().unwrap().to_owned()).or_default();
        verdicts.insert(serde_json::from_value(verdict.clone()).unwrap());
    };
    for claim in judged(repo.path()) {
        reach(&claim, &claim["verdict"]);
    }
    for entry in entries(&ledger(repo.path())) {
        reach(entry, &entry["standing"]);
    }
    for (kind, expected, why_not) in SHOWN {
        let name = serde_json::to_value(kind).unwrap();
        let expected: BTreeSet<Verdict> = expected.iter().copied().collect();
        assert_eq!(reached.remove(name.as_str().unwrap()), Some(expected.clone()), "{name}");
        assert!(expected.is_superset(&BTreeSet::from([Verified, Refuted])), "{name}");
        assert_eq!(expected.len() == Verdict::ALL.len(), why_not.is_empty(), "{name}");
    }
    assert!(reached.is_empty(), "kinds that the table does not have: {reached:?}");
}

#[test]
fn each_state_is_what_it_is_called() {
    let repo = tempfile::tempdir().unwrap();
    run_example_in(repo.path(), "claims", &[]);
    let shown = ledger(repo.path());
    for (state, reply, expected, own) in STATES {
        let claims: Vec<&Value> = entries(&shown)
            .iter()
            .filter(|entry| entry["path"][0] == state && entry["reply"] == reply)
            .collect();
        assert!(claims.len() > 2, "{state}");
        for claim in &claims {
            let name = claim["claim"].as_str().unwrap();
            assert_eq!(
                verdict(&claim["verdict"]),
                expected,
                "{state}: {name}: {}",
                claim["reason"]
            );
            assert_eq!(claim["reason"].is_null(), expected == Verified, "{state}: {name}");
        }
        let is_own =
            |claim: &&&Value| ["protected", "tests"].contains(&claim["claim"].as_str().unwrap());
        let shown: Vec<&Value> =
            claims.iter().filter(is_own).map(|claim| &claim["claim"]).collect();
        assert_eq!(shown, own, "{state}");
    }
    let corrected: Vec<&str> = entries(&shown)
        .iter()
        .filter(|entry| entry["corrected"] == true)
        .map(|entry| entry["claim"].as_str().unwrap())
        .collect();
    assert_eq!(corrected, ["modified", "tests_passing"]);
    assert_eq!(shown["summary"]["corrected"], 2);
}

#[test]
fn the_check_that_was_silenced_stands_again_and_found_the_failure() {
    let repo = tempfile::tempdir().unwrap();
    run_example_in(repo.path(), "claims", &[]);
    let check = std::fs::read_to_string(repo.path().join("checks/test.sh")).unwrap();
    assert!(check.contains("Plays a test runner"), "{check}");
    let story = run_in(repo.path(), &["show", "last", "--timeline"]);
    let story = story.stdout;
    assert!(
        story.contains("protected refuted: 1 protected file changed: checks/test.sh; restored")
    );
    assert!(story.contains("tests_passing refuted: claimed to succeed"), "{story}");
}

#[test]
fn the_figures_count_every_reply_and_every_claim() {
    let repo = tempfile::tempdir().unwrap();
    run_example_in(repo.path(), "claims", &[]);
    let output = run_in(repo.path(), &["claims", "stats", "--by", "agent", "--format", "json"]);
    let stats: Value = serde_json::from_str(&output.stdout).unwrap();
    let group = &stats["groups"][0];
    let claims = judged(repo.path()).len();
    assert_eq!(
        (&group["attempts"], &group["replies"], &group["repairs"]),
        (&5.into(), &6.into(), &1.into())
    );
    assert_eq!((&group["claims"], &group["corrected"]), (&claims.into(), &2.into()), "{group:#}");
}

#[test]
fn what_the_run_changed_can_be_undone() {
    let repo = tempfile::tempdir().unwrap();
    run_example_in(repo.path(), "claims", &[]);
    let greeting = || std::fs::read_to_string(repo.path().join("src/greet.py")).unwrap();
    assert!(greeting().contains("Greets somebody"));
    let undone = run_in(repo.path(), &["undo", "last"]);
    // Without a folder for keys, a note says that the journal has none.
    assert!(undone.stderr.ends_with("undone: restored 8 files\n"), "{undone:?}");
    assert!(!greeting().contains("Greets somebody"));
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let repo = tempfile::tempdir().unwrap();
    std::fs::write(repo.path().join("mine.txt"), "mine").unwrap();
    let run = run_example_in(repo.path(), "claims", &[]);
    assert_eq!(run["outcome"], "blocked", "{run:#}");
    assert!(
        run["reason"].as_str().unwrap().contains("there is mine.txt: give it an empty one"),
        "{run:#}"
    );
    let mut left: Vec<_> =
        std::fs::read_dir(repo.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".counterfoil", "mine.txt"]);
}

/// A line without what differs from run to run: where it is, how long a check took.
fn steady(text: &str, repo: &Path) -> String {
    let text = text.replace(&repo.display().to_string(), "FOLDER");
    let mut steady = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..]
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .map_or(rest.len(), |end| at + end);
        let (number, after) = (&rest[at..end], &rest[end..]);
        steady.push_str(&rest[..at]);
        let is_time = rest[..at].ends_with(" after ");
        let unit = [" ms", " s"].into_iter().find(|unit| is_time && after.starts_with(unit));
        steady.push_str(if unit.is_some() { "T s" } else { number });
        rest = &after[unit.map_or(0, str::len)..];
    }
    steady + rest
}

#[test]
fn the_table_of_its_claims() {
    let folder = tempfile::tempdir().unwrap();
    // A name of the same length wherever it is played: cells are wrapped by it.
    let repo = folder.path().join("project");
    std::fs::create_dir(&repo).unwrap();
    run_example_in(&repo, "claims", &[]);
    let shown = ledger(&repo);
    let mut lines = String::new();
    let mut place = String::new();
    for entry in entries(&shown) {
        let here = format!("{}, reply {}\n", entry["path"][0].as_str().unwrap(), entry["reply"]);
        if here != place {
            lines.push_str(&here);
            place = here;
        }
        let words = |key: &str| entry[key].as_str().unwrap_or_default().replace('\n', " ");
        let now = if entry["standing"] == entry["verdict"] {
            String::new()
        } else {
            format!(", now {}", words("standing"))
        };
        let since = if words("since").is_empty() {
            String::new()
        } else {
            format!(" ({})", words("since"))
        };
        let why = if words("reason").is_empty() {
            String::new()
        } else {
            format!(": {}", words("reason"))
        };
        lines.push_str(&format!("  {} {}{now}{since}{why}\n", words("claim"), words("verdict")));
    }
    insta::assert_snapshot!("claims", steady(&lines, &repo));
    let table = run_in(&repo, &["show", "last", "--claims"]);
    let table = table.stdout;
    let end = table.find("late: worker").unwrap();
    let table = steady(&table[..end], &repo);
    // The folder has the name of the run, and a hash of it.
    let table = regex::Regex::new(r"set-aside/\S+").unwrap().replace_all(&table, "set-aside/COPY");
    insta::assert_snapshot!("claims_table", table);
}
