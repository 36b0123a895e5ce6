//! A run whose events were damaged hides no other, and says what is wrong.

use crate::runs;
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::Outcome;
use rusqlite::Connection;
use serde_json::Value;
use std::path::Path;

/// Changes an event of a run behind the back of the journal.
fn damage(state: &Path, run: &str, seq: u64) {
    let connection = Connection::open(state.join("journal.db")).unwrap();
    let changed = connection.execute(
        "UPDATE events SET body = x'7b7d' \
         WHERE run = (SELECT number FROM runs WHERE id = ?1) AND seq = ?2",
        (run, i64::try_from(seq).unwrap()),
    );
    assert_eq!(changed.unwrap(), 1);
}

/// The run `bad`, which waits for an answer and is damaged, and the run `a`, which waits for one.
fn damaged() -> (Site, Journal) {
    let site = Site::start();
    let state = site.state("state");
    let (journal, run) = runs::asking(&state);
    run.rest();
    let mut bad = runs::Run::start(&journal, "bad");
    runs::ask(&mut bad, "ok", "Is it broken?");
    bad.rest();
    runs::Run::start(&journal, "c").end(Outcome::Done);
    damage(&state, "bad", 2);
    (site, journal)
}

#[test]
fn a_damaged_run_hides_no_other_in_the_list() {
    let (site, _journal) = damaged();
    let listed = site.api("/runs");
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3, "{listed}");
    for run in runs {
        let damage = run.get("damage").and_then(Value::as_str).unwrap_or_default();
        assert_eq!(!damage.is_empty(), run["run"] == "bad", "{run}");
    }
    let html = site.page("/");
    for run in ["a", "bad", "c"] {
        assert!(html.contains(&format!("href=\"/runs/{run}\"")), "{run}: {html}");
    }
}

#[test]
fn a_damaged_run_hides_no_question() {
    let (site, _journal) = damaged();
    let html = site.page("/inbox");
    assert!(html.contains("May it go out?"), "{html}");
    assert!(html.contains("/runs/bad") && !html.contains("Is it broken?"), "{html}");
}

#[test]
fn the_page_of_a_damaged_run_says_so() {
    let (site, _journal) = damaged();
    for target in ["/runs/bad", "/runs/bad/claims", "/runs/bad/attempts/Work%231"] {
        let answer = site.get(target).send().expect(500);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        let html = answer.text();
        assert!(html.contains("bad") && html.contains("event 2"), "{html}");
        assert!(!html.contains("Is it broken?"), "{html}");
    }
    for target in ["/runs/bad", "/runs/bad/claims", "/runs/bad/questions", "/runs/bad/events"] {
        site.get(&format!("/api/v1{target}")).send().expect_problem(500, "damaged");
    }
    site.page("/runs/a");
}

#[test]
fn a_stream_of_a_damaged_run_ends_with_the_problem() {
    let (site, _journal) = damaged();
    let mut stream = site.events_of("bad").follow();
    let message = stream.next();
    assert_eq!(message.event, "problem");
    let problem: Value = serde_json::from_str(&message.data).unwrap();
    assert_eq!(problem["code"], "damaged");
    stream.ends();
}
