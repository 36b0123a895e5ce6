//! The list of runs: its pages, its filters, and the folders that it is made of.

use crate::runs::{self, Run, Sample, now};
use crate::site::{Site, encode};
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Verdict};
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{AttemptOutcome, Ended, Event, Outcome, TransitionTaken};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn ids(page: &Value) -> Vec<String> {
    let runs = page["runs"].as_array().unwrap().iter();
    runs.map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

/// All runs that a query lists, page by page.
fn all(site: &Site, query: &str) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page = site.api(&format!("/runs?{query}&after={}", encode(&after)));
        found.extend(ids(&page));
        match page["next"].as_str() {
            None => return found,
            Some(next) => next.clone_into(&mut after),
        }
    }
    panic!("the list does not end: {found:?}");
}

/// Two folders with runs, whose times alternate and are sometimes equal. Their ids in the order in
/// which they were created.
fn two_folders() -> (Site, Vec<String>) {
    let site = Site::with(&["one", "two"], true);
    let journals = ["one", "two"].map(|name| Journal::open(&site.state(name)).unwrap());
    let from = now() - 100_000;
    let mut made = Vec::new();
    for at in 0..23_i64 {
        let id = format!("run-{at:02}");
        // Several runs of both folders in the same millisecond.
        let sample = Sample { at: from + at / 3, ..Sample::default() };
        let journal = if at % 5 < 2 { &journals[0] } else { &journals[1] };
        let mut run = Run::of(journal, &id, &sample);
        run.summary.cost_usd = f64::from(u32::try_from(at % 4).unwrap());
        run.end(if at % 2 == 0 { Outcome::Done } else { Outcome::Failed });
        made.push(id);
    }
    (site, made)
}

#[test]
fn pages_over_two_folders_are_one_list() {
    let (site, made) = two_folders();
    let newest: Vec<String> = made.iter().rev().cloned().collect();
    // Numbers outside of 1 to 200 count as the nearest of these.
    for limit in [0, 1, 2, 3, 7, 22, 23, 24, 200, 999] {
        assert_eq!(all(&site, &format!("limit={limit}")), newest, "{limit}");
        assert_eq!(all(&site, &format!("limit={limit}&ascending=true")), made, "{limit}");
    }
    let folders: BTreeSet<String> = site.api("/runs")["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["folder"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(folders, BTreeSet::from(["one".to_owned(), "two".to_owned()]));
}

#[test]
fn every_order_has_every_run_once() {
    let (site, made) = two_folders();
    let wanted: BTreeSet<String> = made.into_iter().collect();
    for sort in ["newest", "updated", "cost", "duration"] {
        for ascending in [false, true] {
            let query = format!("limit=4&sort={sort}&ascending={ascending}");
            let found = all(&site, &query);
            assert_eq!(found.len(), wanted.len(), "{query}: {found:?}");
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), wanted, "{query}");
        }
    }
    let page = site.api("/runs?sort=cost&limit=200");
    let costs: Vec<f64> = page["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["usage"]["cost_usd"].as_f64().unwrap())
        .collect();
    assert!(costs.is_sorted_by(|one, other| one >= other), "{costs:?}");
}

#[test]
fn a_run_that_begins_meanwhile_hides_no_other() {
    let (site, made) = two_folders();
    let first = site.api("/runs?limit=10");
    Run::start(&Journal::open(&site.state("one")).unwrap(), "later").end(Outcome::Done);
    let after = encode(first["next"].as_str().unwrap());
    let rest = all_after(&site, &after);
    let found: Vec<String> = ids(&first).into_iter().chain(rest).collect();
    assert_eq!(found, made.into_iter().rev().collect::<Vec<_>>());
}

fn all_after(site: &Site, after: &str) -> Vec<String> {
    ids(&site.api(&format!("/runs?limit=200&after={after}")))
}

#[test]
fn the_pages_of_the_dashboard_lead_to_every_run() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    for at in 0..60 {
        Run::start(&journal, &format!("run-{at:02}")).end(Outcome::Done);
    }
    let (mut found, mut target) = (BTreeSet::new(), "/".to_owned());
    for _ in 0..3 {
        let html = site.page(&target);
        let rows = html.split("data-href=\"/runs/").skip(1);
        found.extend(rows.filter_map(|row| row.split_once('"')).map(|(id, _)| id.to_owned()));
        let Some((before, _)) = html.split_once("\" rel=\"next\"") else { break };
        let (_, next) = before.rsplit_once("href=\"").unwrap();
        target = next.replace("&amp;", "&").replace("&#38;", "&");
    }
    assert_eq!(found.len(), 60, "{found:?}");
}

/// The end of an attempt with a claim that is refuted.
fn refuted() -> [Event; 2] {
    let mut ended = Ended::new("Work#1", AttemptOutcome::Claim);
    ended.claims = vec![ClaimReport {
        claim: "tests".to_owned(),
        field: "tests".to_owned(),
        kind: ClaimKind::Command,
        policy: ClaimPolicy::Record,
        verdict: Verdict::Refuted,
        claimed: json!(true),
        observed: json!(false),
        reason: "it exited with 1".to_owned(),
        evidence: Vec::new(),
        tree: None,
    }];
    [runs::attempt(&["Work"]), Event::AttemptEnded(Box::new(ended))]
}

#[test]
fn runs_with_refuted_claims_are_all_listed_where_pages_end_between_two_reads() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut made = BTreeSet::new();
    // The oldest ten are refuted, and of the newest fifty all but five.
    for at in 0..60 {
        let id = format!("run-{at:02}");
        let mut run = Run::start(&journal, &id);
        if !(10..15).contains(&at) {
            run.add(&refuted());
            made.insert(id);
        }
        run.end(Outcome::Done);
    }
    let (mut found, mut target) = (BTreeSet::new(), "/?view=refuted".to_owned());
    for _ in 0..3 {
        let html = site.page(&target);
        found.extend(rows(&html).into_iter().map(str::to_owned));
        let Some((before, _)) = html.split_once("\" rel=\"next\"") else { break };
        let (_, next) = before.rsplit_once("href=\"").unwrap();
        target = next.replace("&amp;", "&").replace("&#38;", "&");
    }
    assert_eq!(found, made);
    for limit in [1, 5, 44, 50, 54, 55, 56] {
        let listed = all(&site, &format!("refuted=true&limit={limit}"));
        assert_eq!(listed.len(), made.len(), "{limit}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), made, "{limit}");
    }
}

#[test]
fn filters_leave_what_they_name() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let sample = |workflow| Sample { workflow, ..Sample::default() };
    Run::of(&journal, "done", &sample("mend")).end(Outcome::Done);
    let mut failed = Run::of(&journal, "failed", &sample("mend"));
    failed.summary.reason = "100% broken".to_owned();
    failed.add(&refuted()).summary.state = "Deploy".to_owned();
    failed.end(Outcome::Failed);
    let mut waiting = Run::of(&journal, "waiting", &sample("other"));
    runs::ask(&mut waiting, "ok", "May it go out?");
    waiting.rest();
    Run::of(&journal, "stopped", &sample("other")).rest();
    let _running = Run::of(&journal, "running", &sample("other"));
    for (query, expected) in [
        ("", &["done", "failed", "running", "stopped", "waiting"][..]),
        ("group=all", &["done", "failed", "running", "stopped", "waiting"]),
        ("group=needs-answer", &["waiting"]),
        ("group=needs-person", &["stopped", "waiting"]),
        ("group=running", &["running"]),
        ("group=interrupted", &["stopped"]),
        ("group=failed", &["failed"]),
        ("workflow=mend", &["done", "failed"]),
        ("workflow=me", &[]),
        ("q=DEPLOY", &["failed"]),
        ("q=100%25", &["failed"]),
        ("q=mend", &["done", "failed"]),
        ("q=fix+the", &["done", "failed", "running", "stopped", "waiting"]),
        ("refuted=true", &["failed"]),
        ("group=failed&workflow=other", &[]),
    ] {
        let mut found = all(&site, query);
        found.sort();
        assert_eq!(found, expected, "{query}");
    }
    let listed = site.api("/runs?q=failed");
    let run = &listed["runs"][0];
    assert_eq!((&run["claims"]["refuted"], &run["task"]), (&json!(1), &json!("Fix the test")));
}

/// The runs that a page of the list has.
fn rows(html: &str) -> BTreeSet<&str> {
    let rows = html.split("data-href=\"/runs/").skip(1);
    rows.filter_map(|row| row.split_once('"')).map(|(id, _)| id).collect()
}

#[test]
fn views_have_the_runs_that_wait_for_a_person_and_those_that_failed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    Run::start(&journal, "done").end(Outcome::Done);
    Run::start(&journal, "failed").end(Outcome::Failed);
    Run::start(&journal, "cancelled").end(Outcome::Cancelled);
    let mut waiting = Run::start(&journal, "waiting");
    runs::ask(&mut waiting, "ok", "May it go out?");
    waiting.rest();
    let mut answered = Run::start(&journal, "answered");
    answered.summary.outcome = Some("answered".to_owned());
    answered.add(&[runs::tick()]);
    answered.rest();
    Run::start(&journal, "stopped").rest();
    let _running = Run::start(&journal, "running");
    let needs_me = site.page("/?view=needs-me");
    assert_eq!(rows(&needs_me), BTreeSet::from(["answered", "stopped", "waiting"]));
    assert!(needs_me.contains("Needs me <span class=\"badge\">3</span>"), "{needs_me}");
    let failed = site.page("/?view=failed");
    assert_eq!(rows(&failed), BTreeSet::from(["failed"]), "one that was cancelled did not fail");
    assert_eq!(rows(&site.page("/?view=running")), BTreeSet::from(["running"]));
    assert_eq!(rows(&site.page("/")).len(), 7);
}

#[test]
fn a_search_looks_into_the_task_and_says_when_nothing_matches() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let sample = |task| Sample { task, ..Sample::default() };
    Run::of(&journal, "one", &sample("Mend the \"login\"\npage")).end(Outcome::Done);
    Run::of(&journal, "two", &sample("Write the manual")).end(Outcome::Done);
    assert_eq!(all(&site, "q=LOGIN"), ["one"]);
    assert_eq!(all(&site, &format!("q={}", encode("\"login\"\npage"))), ["one"]);
    assert!(all(&site, "q=inputs").is_empty(), "only what the run was given");
    let page = site.page("/?q=manual");
    assert!(page.contains("data-href=\"/runs/two\"") && !page.contains("/runs/one"), "{page}");
    assert!(page.contains("Search task, id, workflow, state or reason"), "{page}");
    assert!(page.contains("placeholder=\"Search task, id, state…\""), "{page}");
    let none = site.page("/?view=needs-me&q=login&sort=cost");
    assert!(none.contains("No run matches") && !none.contains("Nothing waits"), "{none}");
    for part in ["of the view Needs me has “login” in its task", "Clear all filters"] {
        assert!(none.contains(part), "{part}: {none}");
    }
    let address = |link: &str| link.replace("&#38;", "&").replace("&amp;", "&");
    for part in [
        "href=\"/?view=needs-me&sort=cost\">Clear the search",
        "href=\"/?q=login&sort=cost\">Search in all runs",
    ] {
        assert!(address(&none).contains(part), "{part}: {none}");
    }
    let none = site.page("/?q=nowhere");
    assert!(none.contains("No run has “nowhere”") && !none.contains("Search in all"), "{none}");
    assert!(site.page("/?view=needs-me").contains("Nothing waits for you"));
}

#[test]
fn a_list_is_filtered_by_workflow_and_folder_and_its_address_says_so() {
    let site = Site::with(&["one", "two"], true);
    let journals = ["one", "two"].map(|name| Journal::open(&site.state(name)).unwrap());
    let sample = |workflow| Sample { workflow, ..Sample::default() };
    Run::of(&journals[0], "a", &sample("mend")).end(Outcome::Done);
    Run::of(&journals[0], "b", &sample("write & test")).end(Outcome::Failed);
    Run::of(&journals[1], "c", &sample("mend")).end(Outcome::Failed);
    for (query, expected) in [
        ("", &["a", "b", "c"][..]),
        ("workflow=&folder=", &["a", "b", "c"]),
        ("workflow=mend", &["a", "c"]),
        ("folder=one", &["a", "b"]),
        ("folder=one&workflow=mend", &["a"]),
        ("view=failed&workflow=mend", &["c"]),
        ("folder=nowhere", &[]),
    ] {
        let page = site.page(&format!("/?{query}"));
        assert_eq!(rows(&page), expected.iter().copied().collect(), "{query}");
    }
    let page = site.page("/?workflow=write+%26+test&folder=one");
    for part in [
        "<option value=\"write &#38; test\" selected>",
        "<option value=\"mend\">",
        "<option value=\"one\" selected>",
        "/?view=failed&#38;workflow=write+%26+test&#38;folder=one",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let none = site.page("/?view=running&workflow=mend");
    assert!(none.contains("No run matches") && none.contains("Look in all views"), "{none}");
    let one = Site::start();
    Run::start(&Journal::open(&one.state("state")).unwrap(), "a").end(Outcome::Done);
    let page = one.page("/");
    assert!(!page.contains("name=\"workflow\"") && !page.contains("name=\"folder\""), "{page}");
}

#[test]
fn a_run_says_how_far_it_has_come() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let flow = "
workflow: flow
start: one
states:
  one: { read: a.txt, go: two }
  two: { read: a.txt, go: three }
  three: { read: a.txt, go: done }
  done: { end: done }
";
    let files = std::collections::BTreeMap::from([("flow.yaml".to_owned(), flow.to_owned())]);
    let registry = counterfoil_contract::Registry::new();
    let checked = counterfoil_flow::check("flow.yaml", &files, &registry).unwrap();
    let bundle = checked.bundle.to_bytes().unwrap();
    let mut run = Run::of(&journal, "a", &Sample { bundle, ..Sample::default() });
    let shown = |text: &str| {
        let page = site.page("/");
        assert!(page.contains(&format!("<span>{text}</span></div>")), "{text}: {page}");
        page
    };
    assert!(shown("1 of 3 states").contains("<progress value=\"33\""));
    let moved = |from: &str, to: &str| {
        Event::TransitionTaken(Box::new(TransitionTaken {
            from: from.to_owned(),
            to: to.to_owned(),
            ..TransitionTaken::default()
        }))
    };
    run.add(&[moved("one", "two")]);
    shown("2 of 3 states");
    let items: Vec<Value> =
        (0..3).map(|key| json!({"key": key.to_string(), "value": 1, "after": []})).collect();
    let fanned = json!({"fanned-out": {"frame": "", "items": items, "parallel": 1,
        "strict": false}});
    let opened = json!({"frame-opened": {"frame": "two/0", "parent": "", "machine": "",
        "item": "0", "state": "two", "inputs": {}, "variables": {}}});
    run.add(&[fanned, opened].map(|event| serde_json::from_value(event).unwrap()));
    shown("2 of 3 states, 0 of 3 items");
    let ended = json!({"frame-ended": {"frame": "two/0", "outcome": "done", "reason": ""}});
    run.add(&[serde_json::from_value(ended).unwrap()]);
    shown("2 of 3 states, 1 of 3 items");
    run.add(&[moved("two", "done")]);
    run.end(Outcome::Done);
    assert!(!shown("2 of 3 states, 1 of 3 items").contains("<progress"));
}

#[test]
fn a_query_that_means_nothing_is_an_error() {
    let site = Site::start();
    for query in [
        "group=nonsense",
        "group=",
        "group=Failed",
        "sort=nonsense",
        "limit=-1",
        "limit=many",
        "refuted=perhaps",
        "after=nonsense",
        "unknown=1",
        "limit=1&limit=2",
    ] {
        let answer = site.get(&format!("/api/v1/runs?{query}")).send();
        answer.expect_problem(400, "request");
    }
    let wrong = site.get("/api/v1/runs?limit=many").send().json();
    assert_eq!(wrong["detail"], "the parameter 'limit' cannot be 'many': expected a whole number");
    let page = site.get("/?view=nonsense").send().expect(400).text();
    assert!(page.contains("nonsense") && page.contains("needs-me"), "{page}");
    let long = "x".repeat(2000);
    site.get(&format!("/api/v1/runs?after={long}")).send().expect_problem(400, "request");
}

#[test]
fn a_run_can_be_named_by_a_part_that_only_it_has() {
    let site = Site::with(&["one", "two"], true);
    let (one, two) = (Journal::open(&site.state("one")), Journal::open(&site.state("two")));
    Run::start(one.as_ref().unwrap(), "abc-1").end(Outcome::Done);
    Run::start(one.as_ref().unwrap(), "abd-1").end(Outcome::Done);
    Run::start(two.as_ref().unwrap(), "abd-2").end(Outcome::Done);
    assert_eq!(site.api("/runs/abc")["run"], "abc-1");
    assert_eq!(site.api("/runs/abd-2")["run"], "abd-2");
    // In one folder, in both, and the last one of each.
    for ambiguous in ["ab", "abd", "last"] {
        let answer = site.get(&format!("/api/v1/runs/{ambiguous}")).send();
        answer.expect_problem(409, "ambiguous");
    }
    site.get("/api/v1/runs/abx").send().expect_problem(404, "not-found");
}

#[test]
fn a_run_has_its_report_its_claims_and_its_attempts() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(&refuted());
    let report = site.api("/runs/a");
    assert_eq!((&report["seq"], &report["driven"]), (&json!(4), &json!(true)));
    assert_eq!((&report["run"], &report["outcome"]), (&json!("a"), &json!("running")));
    assert_eq!(site.api("/runs/a/claims")["claims"][0]["reason"], "it exited with 1");
    let page = site.page("/runs/a/claims");
    assert!(page.contains("<a href=\"/runs/a\">demo a</a> / claims"), "{page}");
    assert_eq!(site.api("/runs/a/attempts/Work%231")["outcome"], "claim");
    assert_eq!(site.api("/runs/a/questions")["questions"], json!([]));
    run.end(Outcome::Failed);
    let report = site.api("/runs/a");
    assert_eq!((&report["outcome"], &report["driven"]), (&json!("failed"), &json!(false)));
}
