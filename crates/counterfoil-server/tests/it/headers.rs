//! Every answer tells the browser to do nothing with it but what it is for.

use crate::client::Answer;
use crate::runs;
use crate::site::{OPEN_TARGETS, Site, TARGETS};
use serde_json::json;

#[track_caller]
fn is_guarded(answer: &Answer, what: &str) {
    let policy = answer.header("content-security-policy").unwrap_or_else(|| panic!("{what}"));
    for part in ["default-src 'self'", "frame-ancestors 'none'", "object-src 'none'"] {
        assert!(policy.contains(part), "{what}: {policy}");
    }
    for part in ["unsafe-inline", "unsafe-eval", "http:", "https:", "*"] {
        assert!(!policy.contains(part), "{what}: {policy}");
    }
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{what}");
    assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{what}");
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{what}");
    assert_eq!(answer.header("access-control-allow-origin"), None, "{what}");
}

#[track_caller]
fn is_not_kept(answer: &Answer, what: &str) {
    is_guarded(answer, what);
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{what}");
}

#[test]
fn every_answer_has_the_headers() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    for (method, target) in TARGETS.into_iter().chain(OPEN_TARGETS) {
        let refused = site.anonymous(method, target).send();
        let misdirected = site.ask(method, target).without("host").send();
        is_not_kept(&misdirected, target);
        if target.starts_with("/assets") && refused.status == 200 {
            is_guarded(&refused, target);
        } else {
            is_not_kept(&refused, target);
        }
        if !target.starts_with("/live") || method != "GET" {
            is_guarded(&site.ask(method, target).send(), target);
        }
    }
}

#[test]
fn streams_have_the_headers() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    for request in [site.events_of("a"), site.get("/live/"), site.get("/live/runs/a")] {
        let answer = request.follow().answer;
        is_guarded(&answer, &format!("{request:?}"));
        let kept = answer.header("cache-control").unwrap();
        assert!(matches!(kept, "no-store" | "no-cache"), "{kept}");
    }
}

#[test]
fn errors_have_the_headers() {
    let site = Site::start();
    let long = "x".repeat((2 << 20) + 1);
    let start = json!({"workflow": "demo"});
    let answers = [
        (403, site.post("/api/v1/runs", &start).header("sec-fetch-site", "cross-site").send()),
        (403, site.post("/api/v1/runs", &json!({"workflow": "forbidden"})).send()),
        (409, site.post("/api/v1/runs", &json!({"workflow": "broken"})).send()),
        (413, site.ask("POST", "/api/v1/runs").body("application/json", long).send()),
        (415, site.ask("POST", "/api/v1/runs").body("text/plain", "{}").send()),
        (400, site.get("/?view=nonsense").send()),
        (400, site.get("/runs/%ff").send()),
        (404, site.get("/runs/none").send()),
        (404, site.get("/assets/x/nothing").send()),
        (401, site.get("/sign-in?code=wrong").send()),
        (405, site.ask("POST", "/sign-in").send()),
        (405, site.ask("DELETE", "/assets/x/app.css").send()),
        (405, site.ask("PUT", "/api/v1/runs").send()),
    ];
    for (status, answer) in answers {
        assert_eq!(answer.status, status, "{}", answer.text());
        is_not_kept(&answer, &status.to_string());
    }
}

#[test]
fn a_session_is_given_in_an_answer_that_is_not_kept() {
    let site = Site::start();
    is_not_kept(&site.anonymous("GET", &site.link()).send().expect(200), "signing in");
}

#[test]
fn assets_are_kept_and_have_their_types() {
    let site = Site::start();
    let page = site.page("/");
    for (file, kind) in [
        ("app.css", "text/css; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let at = page.find(&format!("/{file}\"")).unwrap();
        let from = page[..at].rfind('"').unwrap() + 1;
        let answer = site.anonymous("GET", &page[from..=at + file.len()]).send().expect(200);
        assert_eq!(answer.header("content-type"), Some(kind));
        assert!(answer.header("cache-control").unwrap().contains("immutable"), "{file}");
        is_guarded(&answer, file);
    }
}

#[test]
fn pages_have_nothing_that_the_policy_forbids() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let sign_in = site.anonymous("GET", "/").header("accept", "text/html").send().text();
    let pages = ["/", "/inbox", "/runs/a", "/runs/a/claims", "/runs/a/attempts/Work%231"];
    for page in pages.map(|page| site.page(page)).into_iter().chain([sign_in]) {
        assert!(!page.contains("<style") && !page.contains(" style="), "{page}");
        assert!(!page.contains("javascript:") && !page.contains(" onclick="), "{page}");
        for script in page.split("<script").skip(1) {
            assert!(script.starts_with(" src=\"/assets/"), "{script}");
        }
    }
}
