//! Another site cannot make a browser change anything (CSRF).

use crate::client::Request;
use crate::runs;
use crate::site::Site;
use serde_json::{Value, json};

/// Everything that changes something, with a body that is accepted.
fn writes() -> [(&'static str, Value); 4] {
    [
        ("/api/v1/runs", json!({"workflow": "demo"})),
        ("/api/v1/runs/a/cancel", json!({})),
        ("/api/v1/runs/a/resume", json!({})),
        ("/api/v1/runs/a/questions/ok/answer", json!({"answer": "yes"})),
    ]
}

/// A server with the run `a`, the cookie of a session, and what an answer has to name.
struct Signed {
    site: Site,
    cookie: String,
    etag: String,
}

impl Signed {
    fn new() -> Self {
        let site = Site::start();
        let (_journal, run) = runs::asking(&site.state("state"));
        run.rest();
        let cookie = site.sign_in();
        let questions = site.api("/runs/a/questions");
        let etag = questions["questions"][0]["etag"].as_str().unwrap().to_owned();
        Self { site, cookie, etag }
    }

    /// A request as the browser sends it: with the cookie, whichever site asks for it.
    fn post(&self, target: &str) -> Request {
        let request = self.site.anonymous("POST", target).header("cookie", &self.cookie);
        request.header("if-match", &self.etag)
    }
}

#[test]
fn a_request_of_another_site_is_refused() {
    let signed = Signed::new();
    let port = signed.site.address.port();
    let other_port = format!("http://127.0.0.1:{}", port ^ 1);
    let foreign = [
        ("sec-fetch-site", "cross-site"),
        // Other ports of this machine are the same site.
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "nonsense"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "file://"),
        ("origin", other_port.as_str()),
    ];
    for (target, body) in writes() {
        for (name, value) in foreign {
            let answer = signed.post(target).json(&body).header(name, value).send();
            assert_eq!(answer.status, 403, "{target} {name}: {value}: {}", answer.text());
        }
        let both = signed.post(target).json(&body);
        let both = both.header("origin", &format!("http://{}", signed.site.address));
        assert_eq!(both.header("sec-fetch-site", "cross-site").send().status, 403);
    }
    assert!(signed.site.control.calls().is_empty(), "{:?}", signed.site.control.calls());
}

#[test]
fn what_a_form_can_send_is_refused() {
    let signed = Signed::new();
    for (target, body) in writes() {
        for kind in [
            "",
            "text/plain",
            "text/plain; application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
        ] {
            let request = signed.post(target).body(kind, body.to_string());
            request.send().expect_problem(415, "media-type");
        }
    }
    assert!(signed.site.control.calls().is_empty(), "{:?}", signed.site.control.calls());
}

#[test]
fn the_pages_of_the_server_change_what_they_are_for() {
    let signed = Signed::new();
    let origin = format!("http://{}", signed.site.address);
    for (target, body) in writes() {
        let request = signed.post(target).body("application/json; charset=utf-8", body.to_string());
        let request = request.header("origin", &origin).header("sec-fetch-site", "same-origin");
        request.send().expect(200);
    }
    let expected =
        ["start state demo", "cancel state a", "resume state a ", "answer state a ok yes"];
    assert_eq!(signed.site.control.calls(), expected);
}

#[test]
fn nothing_is_changed_by_reading() {
    let signed = Signed::new();
    for (target, _) in writes().into_iter().skip(1) {
        let answer = signed.site.get(target).send();
        assert!(matches!(answer.status, 404 | 405), "{target}: {}", answer.status);
    }
    assert!(signed.site.control.calls().is_empty());
}
