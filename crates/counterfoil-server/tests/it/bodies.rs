//! Bodies that are too long, too deep or not what is asked for, and the form of errors.

use crate::runs;
use crate::site::Site;
use serde_json::json;

const LIMIT: usize = 2 << 20;
const WRITES: [&str; 5] = [
    "/api/v1/runs",
    "/api/v1/runs/a/cancel",
    "/api/v1/runs/a/resume",
    "/api/v1/runs/a/questions/ok/answer",
    "/api/v1/sign-in-links",
];

#[test]
fn a_body_of_more_than_two_mebibytes_is_refused() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let body = vec![b' '; LIMIT + 1];
    for target in WRITES {
        let answer = site.ask("POST", target).body("application/json", body.clone()).send();
        answer.expect_problem(413, "body");
    }
    // The same without saying so before.
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), body.as_slice()].concat();
    let request = site.ask("POST", "/api/v1/runs").header("transfer-encoding", "chunked");
    request.body("application/json", chunk).send().expect_problem(413, "body");
    assert!(site.control.calls().is_empty());
}

#[test]
fn a_body_of_two_mebibytes_is_read() {
    let site = Site::start();
    let mut body = json!({"workflow": "demo"}).to_string();
    body.push_str(&" ".repeat(LIMIT - body.len()));
    site.ask("POST", "/api/v1/runs").body("application/json", body).send().expect(200);
    assert_eq!(site.control.calls(), ["start state demo"]);
}

#[test]
fn a_body_that_is_nested_deeply_is_refused() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        for body in [deep.clone(), format!("{{\"workflow\":\"demo\",\"inputs\":{{\"x\":{deep}}}}}")]
        {
            for target in WRITES {
                let request = site.ask("POST", target).header("if-match", "\"x\"");
                let answer = request.body("application/json", body.clone()).send();
                answer.expect_problem(400, "request");
            }
        }
    }
    assert!(site.control.calls().is_empty());
    site.api("/runs");
}

#[test]
fn a_body_that_says_something_else_is_refused() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    for (target, body) in [
        (WRITES[0], "{}"),
        (WRITES[0], "{\"workflow\":\"demo\",\"agents\":{\"all\":\"sh -c id\"}}"),
        (WRITES[0], "{\"workflow\":[\"demo\"]}"),
        (WRITES[0], "{\"workflow\":\"demo\",\"workflow\":\"other\"}"),
        (WRITES[1], "{\"force\":true}"),
        (WRITES[1], "null"),
        (WRITES[1], "[1]"),
        (WRITES[2], "{\"repo\":\"/\"}"),
        (WRITES[2], "{\"max_cost\":1}"),
        (WRITES[3], "{}"),
        (WRITES[3], "{\"answer\":\"yes\",\"by\":\"someone\"}"),
        (WRITES[3], "{\"answer\":true}"),
        (WRITES[4], "{\"run\":\"a\"}"),
        (WRITES[0], ""),
        (WRITES[0], "{\"workflow\":\"demo\"} x"),
        (WRITES[0], "workflow=demo"),
    ] {
        let request = site.ask("POST", target).header("if-match", "\"x\"");
        let answer = request.body("application/json", body).send();
        assert_eq!(answer.status, 400, "{target} {body}: {}", answer.text());
        answer.expect_problem(400, "request");
    }
    assert!(site.control.calls().is_empty(), "{:?}", site.control.calls());
}

#[test]
fn every_error_of_the_api_is_a_problem() {
    let site = Site::start();
    let (_journal, _run) = runs::asking(&site.state("state"));
    let answers = [
        (401, site.anonymous("GET", "/api/v1/runs").send()),
        (404, site.get("/api/v1/nowhere").send()),
        (404, site.get("/api/v1/runs/b").send()),
        (404, site.get("/api/v1/runs/a/attempts/Work%232").send()),
        (404, site.get("/api/v1/runs/b/events").send()),
        (404, site.events_of("b").send()),
        (400, site.get("/api/v1/runs?nonsense=1").send()),
        (400, site.get("/api/v1/runs?limit=x").send()),
        (400, site.get("/api/v1/runs/a/events?after=-1").send()),
        (400, site.events_of("a").header("last-event-id", "x").send()),
        (405, site.ask("DELETE", "/api/v1/runs/a").send()),
        (405, site.get("/api/v1/runs/a/cancel").send()),
        (403, {
            let request = site.post("/api/v1/runs/a/cancel", &json!({}));
            request.header("origin", "http://evil.example").send()
        }),
        (415, site.ask("POST", "/api/v1/runs").body("text/plain", "{}").send()),
        (415, site.ask("POST", "/api/v1/sign-in-links").body("text/plain", "{}").send()),
        (404, site.post("/api/v1/runs/b/cancel", &json!({})).send()),
        (403, site.post("/api/v1/runs", &json!({"workflow": "forbidden"})).send()),
        (409, site.post("/api/v1/runs", &json!({"workflow": "broken"})).send()),
    ];
    for (status, answer) in answers {
        assert_eq!(answer.status, status, "{}", answer.text());
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        assert_eq!(kind, "application/problem+json", "{status}: {}", answer.text());
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{problem}");
        for part in ["type", "title", "detail", "code"] {
            assert!(problem[part].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
    }
}
