//! Open pages: what has changed is sent, and nothing else.

use crate::client::{Message, Messages};
use crate::runs::{self, Run, attempt, replied, reply, tick};
use crate::site::{Site, encode};
use counterfoil_engine::journal::Journal;
use counterfoil_flow::Outcome;

/// The address of the changes of a page, as the page has it.
fn live(site: &Site, target: &str) -> String {
    let html = site.page(target);
    let (_, rest) = html.split_once("hx-sse:connect=\"").unwrap();
    let (address, _) = rest.split_once('"').unwrap();
    address.replace("&amp;", "&").replace("&#38;", "&")
}

fn follow(site: &Site, target: &str) -> Messages {
    site.get(&live(site, target)).follow()
}

/// The ids of the sections of a message, in order.
#[track_caller]
fn sections(message: &Message) -> Vec<&str> {
    assert!(!message.id.is_empty(), "{message:?}");
    assert!(message.data.starts_with("<hx-partial "), "{message:?}");
    let parts = message.data.split("<hx-partial hx-target=\"#").skip(1);
    parts.map(|part| part.split_once('"').unwrap().0).collect()
}

#[test]
fn a_page_that_is_current_gets_nothing() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    for target in [
        "/",
        "/?view=needs-me&sort=cost",
        "/inbox",
        "/runs/a",
        "/runs/a?show=failed",
        "/runs/a/claims?q=x",
        "/runs/a/attempts/Work%231?reply=1",
    ] {
        follow(&site, target).stays_silent();
    }
}

#[test]
fn a_page_gets_the_sections_that_have_changed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(&[attempt(&["Work"])]);
    let target = "/runs/a/attempts/Work%231";
    let mut stream = follow(&site, target);
    stream.stays_silent();
    runs::write(&site.state("state"), "transcripts/a/one.text", "It works.");
    let said = reply("transcripts/a/one", "transcripts/a/one.text");
    run.add(&[replied(&["Work"], said)]);
    let message = stream.next();
    assert_eq!(
        sections(&message),
        ["attempt-head", "attempt-calls", "attempt-replies", "attempt-result", "attempt-diff"]
    );
    assert!(message.data.contains("It works."), "{message:?}");
    assert!(live(&site, target).contains(&message.id), "the id is the version of the page");
    stream.stays_silent();
}

#[test]
fn an_event_that_shows_nothing_new_sends_nothing_twice() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    let mut stream = follow(&site, "/runs/a/claims");
    run.add(&[tick()]);
    stream.stays_silent();
    run.add(&[attempt(&["Work"])]);
    stream.stays_silent();
}

#[test]
fn pages_of_other_runs_are_left_alone() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let (mut one, _other) = (Run::start(&journal, "one"), Run::start(&journal, "other"));
    let mut streams = [follow(&site, "/runs/one"), follow(&site, "/runs/other")];
    one.add(&[attempt(&["Work"])]);
    let message = streams[0].next();
    assert!(sections(&message).contains(&"run-timeline"), "{message:?}");
    streams[1].stays_silent();
}

#[test]
fn after_a_lost_connection_the_page_is_sent_if_it_is_another_one() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    let address = live(&site, "/runs/a");
    let (_, current) = address.split_once("have=").unwrap();
    // The browser has a newer version than the address by which it began.
    let request = site.get(&address);
    run.add(&[attempt(&["Work"])]);
    let first = request.follow().next();
    assert_ne!(first.id, current);
    assert_eq!(sections(&first), ["run-now", "run-timeline", "page-title"]);
    request.clone().header("last-event-id", &first.id).follow().stays_silent();
    for stale in [current, "0000000000000000", "nonsense"] {
        let message = request.clone().header("last-event-id", stale).follow().next();
        assert_eq!(message, first, "after {stale}");
    }
    assert_eq!(request.header("last-event-id", "").follow().next(), first);
}

#[test]
fn many_browsers_see_the_same() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    let mut streams: Vec<Messages> = (0..5).map(|_| follow(&site, "/runs/a")).collect();
    for stream in &mut streams {
        stream.stays_silent();
    }
    run.add(&[attempt(&["Work"])]);
    let seen: Vec<Message> = streams.iter_mut().map(Messages::next).collect();
    assert!(seen.iter().all(|message| *message == seen[0]), "{seen:?}");
}

#[test]
fn lists_show_runs_that_begin_and_end() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut stream = follow(&site, "/");
    let mut run = Run::start(&journal, "a");
    let message = stream.next();
    assert!(sections(&message).contains(&"runs-list"), "{message:?}");
    assert!(message.data.contains("/runs/a"), "{message:?}");
    let mut inbox = follow(&site, "/inbox");
    runs::ask(&mut run, "ok", "May it go out?");
    assert!(inbox.next().data.contains("May it go out?"));
    run.end(Outcome::Done);
    assert!(!inbox.next().data.contains("May it go out?"));
}

#[test]
fn a_page_whose_address_has_encoded_signs_is_followed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    let path = ["Build", "src/a%2Fb?x=1 &y", "Work"];
    run.add(&[attempt(&path)]);
    let target = format!("/runs/a/attempts/{}", encode(&format!("{}#1", path.join("/"))));
    let mut stream = follow(&site, &target);
    stream.stays_silent();
    run.add(&[replied(&path, reply("transcripts/a/x", "transcripts/a/x.text"))]);
    assert!(sections(&stream.next()).contains(&"attempt-head"));
}

#[test]
fn the_stream_of_a_page_that_cannot_be_made_any_more_ends() {
    let site = Site::start();
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let mut run = Run::start(&journal, "a");
    let other = Run::start(&journal, "other");
    let pages = ["/runs/a", "/runs/a/claims", "/runs/a/events"];
    let addresses = pages.map(|page| live(&site, page));
    let mut streams = addresses.clone().map(|address| site.get(&address).follow());
    let mut beside = follow(&site, "/runs/other");
    let connection = rusqlite::Connection::open(state.join("journal.db")).unwrap();
    let damage = "UPDATE events SET digest = zeroblob(32) \
                  WHERE run = (SELECT number FROM runs WHERE id = 'a') AND seq = 2";
    assert_eq!(connection.execute(damage, ()).unwrap(), 1);
    run.add(&[attempt(&["Work"])]);
    for (stream, address) in streams.iter_mut().zip(&addresses) {
        stream.ends();
        site.get(address).send().expect_problem(500, "damaged");
    }
    beside.stays_silent();
    // The journal is removed.
    run.rest();
    other.rest();
    drop((journal, connection));
    std::fs::remove_dir_all(&state).unwrap();
    beside.ends();
}

#[test]
fn what_is_no_page_cannot_be_followed() {
    let site = Site::start();
    for target in ["/live/nowhere", "/live/runs/a/b/c/d", "/live/?view=nonsense", "/live/runs/%ff"]
    {
        let answer = site.get(target).send();
        assert!(matches!(answer.status, 400 | 404), "{target}: {}", answer.status);
    }
}
