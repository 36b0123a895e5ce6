//! A page of another site cannot call the server by a name of its own (DNS rebinding).

use crate::client::Request;
use crate::runs;
use crate::site::{OPEN_TARGETS, Site, TARGETS};

/// A request as somebody sends it who has the token, so that only the host is wrong.
fn request(site: &Site, method: &str, target: &str) -> Request {
    let request = site.ask(method, target).header("accept", "text/event-stream, text/html");
    if method == "POST" { request.body("application/json", "{}") } else { request }
}

#[track_caller]
fn is_misdirected(request: &Request, is_head: bool) {
    let answer = request.send();
    if is_head {
        assert_eq!(answer.status, 421, "{request:?}");
    } else {
        answer.expect_problem(421, "host");
    }
}

#[test]
fn every_route_refuses_every_other_host() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let port = site.address.port();
    let foreign = [
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
        format!("127.0.0.1:{port}.evil.example"),
        format!("localhost.:{port}"),
        format!("x@127.0.0.1:{port}"),
        format!("2130706433:{port}"),
        format!("0.0.0.0:{port}"),
    ];
    for (method, target) in TARGETS.into_iter().chain(OPEN_TARGETS) {
        let is_head = method == "HEAD";
        let request = request(&site, method, target);
        for host in &foreign {
            is_misdirected(&request.clone().without("host").header("host", host), is_head);
        }
        is_misdirected(&request.clone().without("host"), is_head);
        is_misdirected(&request.header("host", &site.address.to_string()), is_head);
    }
    assert!(site.control.calls().is_empty());
}

#[test]
fn the_names_of_this_machine_and_those_that_were_allowed_are_answered() {
    let site = Site::start();
    for name in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "build.example"] {
        let host = format!("{name}:{}", site.address.port());
        site.get("/").without("host").header("host", &host).send().expect(200);
    }
}

#[test]
fn a_target_that_names_another_host_is_refused() {
    let site = Site::start();
    let port = site.address.port();
    let target = format!("http://evil.example:{port}/api/v1/runs");
    site.get(&target).send().expect_problem(421, "host");
    site.get(&format!("http://{}/api/v1/runs", site.address)).send().expect(200);
}

#[test]
fn a_link_that_another_host_tried_still_works() {
    let site = Site::start();
    let link = site.link();
    let host = format!("evil.example:{}", site.address.port());
    let foreign = site.anonymous("GET", &link).without("host").header("host", &host).send();
    foreign.expect_problem(421, "host");
    assert_eq!(foreign.header("set-cookie"), None);
    let own = site.anonymous("GET", &link).send().expect(200);
    assert!(own.header("set-cookie").is_some());
}
