//! What changes runs: answers name their question, and what is repeated is done once.

use crate::client::Request;
use crate::runs::{self, ask};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{Event, Outcome};
use serde_json::{Value, json};

const ANSWER: &str = "/api/v1/runs/a/questions/ok/answer";

fn etag(site: &Site) -> String {
    site.api("/runs/a/questions")["questions"][0]["etag"].as_str().unwrap().to_owned()
}

fn answer(site: &Site, etag: &str) -> Request {
    site.post(ANSWER, &json!({"answer": "yes"})).header("if-match", etag)
}

#[test]
fn an_answer_names_the_question_that_it_is_for() {
    let site = Site::start();
    let (_journal, mut run) = runs::asking(&site.state("state"));
    let first = etag(&site);
    assert!(first.starts_with('"') && first.ends_with('"'), "{first}");
    site.post(ANSWER, &json!({"answer": "yes"})).send().expect_problem(428, "if-match");
    for wrong in ["\"x\"", "*", "", "\"\"", &first[..20], format!("W/{first}").as_str()] {
        answer(&site, wrong).send().expect_problem(412, "changed");
    }
    assert!(site.control.calls().is_empty(), "{:?}", site.control.calls());

    // The same question with other words, as another process asks it.
    run.add(&[answered()]);
    answer(&site, &first).send().expect_problem(410, "not-open");
    ask(&mut run, "ok", "May it go out to everybody?");
    answer(&site, &first).send().expect_problem(412, "changed");
    assert!(site.control.calls().is_empty(), "{:?}", site.control.calls());

    let done = answer(&site, &etag(&site)).send().expect(200);
    assert!(done.json()["message"].is_string());
    assert_eq!(site.control.calls(), ["answer state a ok yes"]);
}

fn answered() -> Event {
    Event::Answered {
        question: "ok".to_owned(),
        answer: "yes".to_owned(),
        by: "somebody".to_owned(),
        from: None,
    }
}

#[test]
fn a_question_that_is_not_open_takes_no_answer() {
    let site = Site::start();
    let (_journal, mut run) = runs::asking(&site.state("state"));
    let named = etag(&site);
    let other = "/api/v1/runs/a/questions/other/answer";
    let request = site.post(other, &json!({"answer": "yes"})).header("if-match", &named);
    request.send().expect_problem(410, "not-open");
    let other = "/api/v1/runs/b/questions/ok/answer";
    let request = site.post(other, &json!({"answer": "yes"})).header("if-match", &named);
    request.send().expect_problem(404, "not-found");
    run.add(&[answered()]);
    run.end(Outcome::Done);
    answer(&site, &named).send().expect_problem(410, "not-open");
    assert!(site.control.calls().is_empty(), "{:?}", site.control.calls());
}

#[test]
fn the_digest_of_a_question_of_one_run_is_none_of_another() {
    let site = Site::start();
    let (journal, _run) = runs::asking(&site.state("state"));
    let named = etag(&site);
    let mut other = runs::Run::start(&journal, "b");
    ask(&mut other, "ok", "May it go out?");
    let target = ANSWER.replace("/a/", "/b/");
    let request = site.post(&target, &json!({"answer": "yes"})).header("if-match", &named);
    request.send().expect_problem(412, "changed");
}

/// A server beside a run that waits for an answer.
fn waiting_for(run: &str) -> Site {
    let site = Site::beside_a_run();
    site.control.wait_for(run);
    site
}

#[test]
fn the_message_of_an_answer_says_whether_the_run_goes_on() {
    let said = |site: &Site| {
        let done = answer(site, &etag(site)).send().expect(200).json();
        done["message"].as_str().unwrap().to_owned()
    };
    // What stands in for the command line records nothing, so the question stays open.
    let site = Site::start();
    let (_journal, run) = runs::asking(&site.state("state"));
    let driven = "the answer is recorded; the process that drives the run goes on with it";
    assert_eq!(said(&site), driven);
    run.rest();
    assert_eq!(said(&site), "the answer is recorded; the run waits for another one");

    // The questions that are still open are optional ones then.
    for (site, expected) in [
        (Site::start(), "; no process drives the run: it goes on when it is resumed"),
        (
            Site::beside_a_run(),
            "; no process drives the run: it goes on with `counterfoil resume a --state",
        ),
        (waiting_for("a"), "; the process that waits for it goes on with the run"),
        (waiting_for("b"), "; no process drives the run: it goes on with `counterfoil resume a"),
    ] {
        let (_journal, mut run) = runs::asking(&site.state("state"));
        run.summary.outcome = Some("answered".to_owned());
        run.summary.questions = 1;
        run.add(&[runs::tick()]);
        run.rest();
        let said = said(&site);
        assert!(said.starts_with(&format!("the answer is recorded{expected}")), "{said}");
    }
}

#[test]
fn what_is_repeated_with_the_same_key_is_done_once() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let named = etag(&site);
    let request = answer(&site, &named).header("idempotency-key", "key-1");
    let first = request.send().expect(200);
    assert_eq!(request.send().expect(200).body, first.body);
    assert_eq!(site.control.calls(), ["answer state a ok yes"]);

    let other = site.post(ANSWER, &json!({"answer": "no"})).header("if-match", &named);
    let other = other.header("idempotency-key", "key-1");
    other.send().expect_problem(422, "idempotency-key");
    let elsewhere = site.post("/api/v1/runs/a/cancel", &json!({"answer": "yes"}));
    let elsewhere = elsewhere.header("idempotency-key", "key-1").send();
    elsewhere.expect_problem(422, "idempotency-key");
    assert_eq!(site.control.calls().len(), 1);

    answer(&site, &named).header("idempotency-key", "key-2").send().expect(200);
    answer(&site, &named).send().expect(200);
    assert_eq!(site.control.calls().len(), 3);
}

#[test]
fn a_request_that_is_repeated_at_the_same_time_is_done_once() {
    let site = Site::start();
    let request = site.post("/api/v1/runs", &json!({"workflow": "demo"}));
    let request = request.header("idempotency-key", "the same");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| drop(request.send().expect(200)));
        }
    });
    assert_eq!(site.control.calls(), ["start state demo"]);
}

#[test]
fn an_answer_that_is_corrected_is_not_taken_for_a_repeated_one() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let wrong = answer(&site, "\"x\"").header("idempotency-key", "key");
    wrong.send().expect_problem(412, "changed");
    let again = answer(&site, &etag(&site)).header("idempotency-key", "key").send();
    assert!(matches!(again.status, 200 | 422), "{}: {}", again.status, again.text());
}

#[test]
fn a_key_must_be_short_and_not_empty() {
    let site = Site::start();
    for key in [String::new(), "x".repeat(201)] {
        let request = site.post("/api/v1/runs", &json!({"workflow": "demo"}));
        let answer = request.header("idempotency-key", &key).send();
        answer.expect_problem(400, "request");
    }
    assert!(site.control.calls().is_empty());
}

#[test]
fn runs_are_started_resumed_and_cancelled() {
    let site = Site::with(&["one", "two"], true);
    let _one = Journal::open(&site.state("one")).unwrap();
    let _run = runs::asking(&site.state("two"));
    let done = |target: &str, body: &Value| {
        site.post(target, body).send().expect(200).json()["message"].as_str().unwrap().to_owned()
    };
    let start = json!({"workflow": "demo", "inputs": {"task": "Fix it"}});
    assert_eq!(done("/api/v1/runs", &start), "started");
    assert_eq!(done("/api/v1/runs/a/cancel", &json!({})), "cancelled");
    assert_eq!(done("/api/v1/runs/a/resume", &json!({"because": "again"})), "resumed");
    let calls = ["start one demo", "cancel two a", "resume two a again"];
    assert_eq!(site.control.calls(), calls, "a run is changed in its own folder");
    let forbidden = site.post("/api/v1/runs", &json!({"workflow": "forbidden"})).send();
    forbidden.expect_problem(403, "not-allowed");
    site.post("/api/v1/runs/b/resume", &json!({})).send().expect_problem(404, "not-found");
}

#[test]
fn a_limit_that_means_nothing_is_an_error_that_names_it() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let detail = |body: &Value| {
        let answer = site.post("/api/v1/runs/a/resume", body).send();
        answer.expect_problem(400, "request");
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    for (field, value, expected) in [
        (
            "max_cost",
            "abc",
            "the maximum of cost (`max_cost`) cannot be 'abc': expected an amount such as 2.50",
        ),
        (
            "max_time",
            "2 bells",
            "the maximum of time (`max_time`) cannot be '2 bells': expected a duration such as 90s, 30m or 8h",
        ),
        (
            "max_attempts",
            "0",
            "the maximum of attempts (`max_attempts`) cannot be '0': expected a whole number of at least 1",
        ),
    ] {
        assert_eq!(detail(&json!({ field: value })), expected);
    }
    assert!(site.control.calls().is_empty(), "{:?}", site.control.calls());
    let right =
        json!({"because": "more", "max_cost": " $2.50 ", "max_time": "2h", "max_tokens": ""});
    site.post("/api/v1/runs/a/resume", &right).send().expect(200);
}

#[test]
fn a_server_that_only_shows_runs_changes_nothing() {
    let site = Site::with(&["state"], false);
    let _run = runs::asking(&site.state("state"));
    for (target, body) in [
        ("/api/v1/runs", json!({"workflow": "demo"})),
        ("/api/v1/runs/a/cancel", json!({})),
        ("/api/v1/runs/a/resume", json!({})),
        (ANSWER, json!({"answer": "yes"})),
    ] {
        let request = site.post(target, &body).header("if-match", &etag(&site));
        request.send().expect_problem(403, "read-only");
    }
    assert_eq!(site.api("/runs/a/questions")["questions"][0]["id"], "ok");
    site.page("/runs/a");
}
