//! Who may ask: programs with the token, and browsers that signed in with a link.

use crate::client::Request;
use crate::runs;
use crate::site::{OPEN_TARGETS, Site, TARGETS, TOKEN};
use counterfoil_server::Token;

fn request(site: &Site, method: &str, target: &str) -> Request {
    let request = site.anonymous(method, target);
    if method == "POST" { request.body("application/json", "{}") } else { request }
}

#[test]
fn without_a_token_or_a_session_everything_is_refused() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let cookie = format!("counterfoil-{}", site.address.port());
    for (method, target) in TARGETS {
        let request = request(&site, method, target);
        for request in [
            request.clone(),
            request.clone().header("authorization", "Bearer wrong"),
            request.clone().header("authorization", "Bearer "),
            request.clone().header("authorization", TOKEN),
            request.clone().header("authorization", &format!("Basic {TOKEN}")),
            request.clone().header("cookie", &format!("{cookie}=wrong")),
            request.clone().header("cookie", &format!("{cookie}={TOKEN}")),
            request.clone().header("cookie", &format!("{cookie}=")),
        ] {
            let answer = request.send();
            assert_eq!(answer.status, 401, "{request:?}");
            if method != "HEAD" {
                answer.expect_problem(401, "sign-in");
            }
        }
    }
    assert!(site.control.calls().is_empty());
}

#[test]
fn the_token_is_not_taken_from_the_address() {
    let site = Site::start();
    for target in [format!("/?token={TOKEN}"), format!("/api/v1/runs?access_token={TOKEN}")] {
        site.anonymous("GET", &target).send().expect(401);
    }
}

#[test]
fn a_wrong_token_is_not_made_good_by_a_session() {
    let site = Site::start();
    let cookie = site.sign_in();
    let request = site.anonymous("GET", "/api/v1/runs").header("cookie", &cookie);
    request.send().expect(200);
    request.header("authorization", "Bearer wrong").send().expect(401);
}

#[test]
fn a_browser_gets_the_page_that_says_how_to_sign_in() {
    let site = Site::start();
    for (method, target) in TARGETS.into_iter().filter(|(method, _)| *method == "GET") {
        let request = site.anonymous(method, target).header("accept", "text/html,*/*;q=0.8");
        let answer = request.send().expect(401);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{target}");
        assert!(answer.text().contains("not signed in"), "{target}: {}", answer.text());
    }
}

#[test]
fn what_everybody_may_have_says_nothing_of_the_runs() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let statuses = OPEN_TARGETS.map(|(method, target)| {
        let answer = site.anonymous(method, target).send();
        assert!(!answer.text().contains("May it go out?"), "{target}");
        assert_eq!(answer.header("set-cookie"), None, "{target}");
        answer.status
    });
    assert_eq!(statuses, [401, 401, 200, 404]);
}

#[test]
fn a_link_works_once() {
    let site = Site::start();
    let (first, second) = (site.link(), site.link());
    assert_ne!(first, second);
    let port = site.address.port();
    let answer = site.anonymous("GET", &first).send().expect(200);
    let set = answer.header("set-cookie").unwrap();
    let mut parts = set.split("; ");
    let (name, session) = parts.next().unwrap().split_once('=').unwrap();
    assert_eq!(name, format!("counterfoil-{port}"));
    assert!(session.len() >= 32 && !first.contains(session), "{set}");
    let mut attributes: Vec<&str> = parts.collect();
    attributes.sort_unstable();
    assert_eq!(attributes, ["HttpOnly", "Path=/", "SameSite=Strict"], "of this host only");

    let again = site.anonymous("GET", &first).send().expect(401);
    assert_eq!(again.header("set-cookie"), None);
    let cookie = format!("{name}={session}");
    site.anonymous("GET", "/").header("cookie", &cookie).send().expect(200);
    site.anonymous("GET", &second).send().expect(200);
    site.anonymous("GET", "/").header("cookie", &cookie).send().expect(200);
}

#[test]
fn a_link_that_is_only_looked_at_still_works() {
    let site = Site::start();
    let link = site.link();
    site.anonymous("HEAD", &link).send();
    site.anonymous("POST", &link).send();
    site.anonymous("GET", &link).send().expect(200);
}

#[test]
fn two_cookies_of_the_name_are_refused() {
    let site = Site::start();
    let cookie = site.sign_in();
    let (name, _) = cookie.split_once('=').unwrap();
    let request = site.anonymous("GET", "/");
    for cookies in [
        vec![format!("{cookie}; {cookie}")],
        vec![format!("{cookie}; {name}=other")],
        vec![format!("{name}=other"), cookie.clone()],
    ] {
        let request = cookies
            .iter()
            .fold(request.clone(), |request, cookie| request.header("cookie", cookie));
        request.send().expect(401);
    }
    request.header("cookie", &format!("other=x; {cookie}")).send().expect(200);
}

#[test]
fn a_session_of_one_server_is_none_of_another() {
    let (one, other) = (Site::start(), Site::start());
    let cookie = one.sign_in();
    let (_, session) = cookie.split_once('=').unwrap();
    let renamed = format!("counterfoil-{}={session}", other.address.port());
    for cookie in [&cookie, &renamed] {
        other.anonymous("GET", "/").header("cookie", cookie).send().expect(401);
    }
    let link = one.link();
    other.anonymous("GET", &link).send().expect(401);
    one.anonymous("GET", &link).send().expect(200);
}

#[test]
fn no_answer_tells_the_token() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    for (method, target) in TARGETS.into_iter().chain(OPEN_TARGETS) {
        let known = site.ask(method, target);
        for request in [known.clone(), known.header("accept", "text/html"), {
            site.anonymous(method, target).header("authorization", &format!("Basic {TOKEN}"))
        }] {
            // Streams are not read here: they are pages, and events.
            if target.starts_with("/live") {
                continue;
            }
            let answer = request.send();
            assert!(!answer.text().contains(TOKEN), "{request:?}");
            assert!(answer.headers.iter().all(|(_, value)| !value.contains(TOKEN)), "{request:?}");
        }
    }
}

#[test]
fn the_token_is_not_printed() {
    let token = Token::from_text(TOKEN);
    for shown in [format!("{token:?}"), format!("{token:#?}"), format!("{:?}", Some(&token))] {
        assert!(!shown.contains(TOKEN) && !shown.contains("f00d"), "{shown}");
    }
    assert_ne!(Token::random().unwrap(), Token::random().unwrap());
}
