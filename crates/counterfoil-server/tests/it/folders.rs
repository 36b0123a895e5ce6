//! State folders that have no journal yet, get one later, or get another one.

use crate::runs::{self, Run};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::Outcome;
use serde_json::json;

#[test]
fn a_folder_without_a_journal_is_empty_until_a_run_begins() {
    let site = Site::start();
    assert!(site.page("/").contains("No runs yet"));
    assert_eq!(site.api("/runs"), json!({"runs": [], "next": null}));
    site.page("/inbox");
    site.get("/runs/a").send().expect(404);
    assert!(!site.state("state").exists(), "looking at a folder does not create it");
    let mut stream = site.get("/live/").follow();
    assert!(stream.next().data.contains("No runs yet"));

    let journal = Journal::open(&site.state("state")).unwrap();
    let _run = Run::start(&journal, "a");
    assert!(stream.next().data.contains("/runs/a"));
    assert!(site.page("/").contains("/runs/a"));
    site.page("/runs/a");
}

#[test]
fn a_folder_without_a_journal_hides_no_other() {
    let site = Site::with(&["none", "state"], true);
    let _run = runs::asking(&site.state("state"));
    assert_eq!(site.api("/runs")["runs"][0]["run"], "a");
    assert!(site.page("/inbox").contains("May it go out?"));
    site.page("/runs/a");
}

#[test]
fn a_folder_that_cannot_be_read_hides_no_other() {
    let site = Site::with(&["state", "broken"], true);
    let _run = runs::asking(&site.state("state"));
    runs::write(&site.state("broken"), "journal.db", "this is no journal");
    site.page("/runs/a");
    let html = site.page("/");
    assert!(html.contains("/runs/a") && html.contains("broken"), "{html}");
}

#[test]
fn a_journal_that_was_replaced_is_opened_again() {
    let site = Site::start();
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    Run::start(&journal, "old").end(Outcome::Done);
    drop(journal);
    assert!(site.page("/").contains("/runs/old"));
    site.page("/runs/old");

    std::fs::rename(&state, site.folder().join("away")).unwrap();
    for target in ["/", "/inbox", "/claims", "/health", "/runs/old"] {
        let page = site.get(target).send().expect(404).text();
        assert!(page.contains("state is gone") && !page.contains("No runs yet"), "{page}");
    }
    site.get("/live/runs/old").send().expect_problem(404, "state-folder-gone");
    let journal = Journal::open(&state).unwrap();
    Run::start(&journal, "new").end(Outcome::Done);
    let html = site.page("/");
    assert!(html.contains("/runs/new") && !html.contains("/runs/old"), "{html}");
    assert_eq!(site.api("/runs/new")["outcome"], "done");
    site.get("/api/v1/runs/old").send().expect_problem(404, "not-found");
}

#[test]
fn a_run_of_a_journal_that_was_replaced_is_read_again() {
    let site = Site::start();
    let state = site.state("state");
    let make = |outcome| {
        let journal = Journal::open(&state).unwrap();
        Run::start(&journal, "a").end(outcome);
    };
    make(Outcome::Done);
    assert_eq!(site.api("/runs/a")["outcome"], "done");
    std::fs::rename(&state, site.folder().join("away")).unwrap();
    make(Outcome::Failed);
    assert_eq!(site.api("/runs/a")["outcome"], "failed");
    assert!(site.page("/runs/a").contains("failed"));
}

#[test]
fn two_folders_with_the_same_run_do_not_mix_them() {
    let site = Site::with(&["one", "two"], true);
    for name in ["one", "two"] {
        Run::start(&Journal::open(&site.state(name)).unwrap(), "a").end(Outcome::Done);
    }
    assert_eq!(site.api("/runs")["runs"].as_array().unwrap().len(), 2);
    site.get("/api/v1/runs/a").send().expect(409);
    site.get("/runs/a").send().expect(409);
}
