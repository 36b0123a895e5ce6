//! The events of a run, at once and as they are recorded.

use crate::client::Messages;
use crate::runs::{self, Run, Sample, now, tick};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::Outcome;
use serde_json::Value;
use std::time::Duration;

/// The next messages, whose ids must be these numbers.
#[track_caller]
fn expect(stream: &mut Messages, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let message = stream.next();
        assert_eq!((message.id, message.event.as_str()), (number.to_string(), "event"));
        let event: Value = serde_json::from_str(&message.data).unwrap();
        assert_eq!(event["seq"], number);
    }
}

#[track_caller]
fn expect_end(stream: &mut Messages, last: u64) {
    let message = stream.next();
    assert_eq!((message.event.as_str(), message.data), ("end", last.to_string()));
    stream.ends();
}

/// A run with this number of events, at least 2.
fn run_with(journal: &Journal, id: &str, events: usize) -> Run {
    let mut run = Run::start(journal, id);
    run.add(&vec![tick(); events - 2]);
    run
}

#[test]
fn events_are_read_in_pages() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let _run = run_with(&journal, "a", 1005);
    let numbers = |query: &str| -> (Vec<u64>, u64) {
        let answer = site.api(&format!("/runs/a/events{query}"));
        let events = answer["events"].as_array().unwrap().iter();
        let numbers = events.map(|event| event["seq"].as_u64().unwrap()).collect();
        (numbers, answer["last"].as_u64().unwrap())
    };
    assert_eq!(numbers(""), ((1..=1000).collect(), 1005));
    assert_eq!(numbers("?after=1000"), ((1001..=1005).collect(), 1005));
    assert_eq!(numbers("?after=3&limit=2"), (vec![4, 5], 1005));
    assert_eq!(numbers("?limit=0"), (vec![1], 1005));
    assert_eq!(numbers("?limit=5000").0.len(), 1000);
    for after in ["1005", "1006", "18446744073709551615"] {
        assert_eq!(numbers(&format!("?after={after}")), (Vec::new(), 1005));
    }
    let first = site.api("/runs/a/events?limit=1");
    assert_eq!(first["events"][0]["kind"], "run-started");
    assert_eq!(first["events"][0]["run"], "a", "the fields are flat");
}

#[test]
fn a_stream_of_a_run_that_ended_has_all_events_and_ends() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    run_with(&journal, "a", 1004).end(Outcome::Done);
    let mut stream = site.events_of("a").follow();
    expect(&mut stream, 1..=1005);
    expect_end(&mut stream, 1005);
}

#[test]
fn a_stream_goes_on_exactly_where_it_was_lost() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    run_with(&journal, "a", 9).end(Outcome::Done);
    for last in 0..=10_u64 {
        let request = site.events_of("a").header("last-event-id", &last.to_string());
        let mut stream = request.follow();
        expect(&mut stream, last + 1..=10);
        expect_end(&mut stream, 10);
    }
    // What the browser has is newer than the address.
    let request = site.get("/api/v1/runs/a/events?after=2").header("accept", "text/event-stream");
    let mut stream = request.clone().header("last-event-id", "7").follow();
    expect(&mut stream, 8..=10);
    let mut stream = request.clone().header("last-event-id", "").follow();
    expect(&mut stream, 3..=10);
    for wrong in ["x", "-1", "1.5", "18446744073709551616"] {
        let answer = request.clone().header("last-event-id", wrong).send();
        answer.expect_problem(400, "request");
    }
}

#[test]
fn what_another_process_records_arrives_within_a_second() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = run_with(&journal, "a", 3);
    let mut streams = [site.events_of("a").follow(), site.events_of("a").follow()];
    for stream in &mut streams {
        expect(stream, 1..=3);
        stream.stays_silent();
    }
    for number in 4..=8_u64 {
        run.add(&[tick()]);
        for stream in &mut streams {
            let message = stream.next_within(Duration::from_secs(1));
            assert_eq!(message.id, number.to_string());
        }
    }
    run.end(Outcome::Done);
    for stream in &mut streams {
        expect(stream, [9]);
        expect_end(stream, 9);
    }
}

#[test]
fn a_run_that_nobody_drives_for_a_while_is_still_followed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let run = run_with(&journal, "a", 3);
    let mut stream = site.events_of("a").follow();
    expect(&mut stream, 1..=3);
    run.rest();
    stream.stays_silent();
    let (lease, _) = journal.acquire("a").unwrap();
    lease.append_blocking(runs::batch(&tick())).unwrap();
    expect(&mut stream, [4]);
}

#[test]
fn a_run_that_waits_for_an_answer_is_still_followed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = run_with(&journal, "a", 3);
    runs::ask(&mut run, "ok", "May it go out?");
    run.rest();
    let mut stream = site.events_of("a").follow();
    expect(&mut stream, 1..=4);
    stream.stays_silent();
    let (lease, _) = journal.acquire("a").unwrap();
    lease.append_blocking(runs::batch(&tick())).unwrap();
    expect(&mut stream, [5]);
}

#[test]
fn a_stream_stays_with_its_run_when_a_newer_one_begins() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let run = run_with(&journal, "a", 3);
    let mut streams = [site.events_of("last").follow(), site.events_of("a").follow()];
    for stream in &mut streams {
        expect(stream, 1..=3);
    }
    let later = Sample { at: now() + 1000, ..Sample::default() };
    let mut other = Run::of(&journal, "ab", &later);
    other.add(&[tick(), tick(), tick()]);
    for stream in &mut streams {
        stream.stays_silent();
    }
    run.end(Outcome::Done);
    for stream in &mut streams {
        let message = stream.next();
        assert!(message.data.contains("run-ended"), "{message:?}");
        expect_end(stream, 4);
    }
}

#[test]
fn streams_end_when_the_server_stops() {
    let mut site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let _run = run_with(&journal, "a", 3);
    let mut events = site.events_of("a").follow();
    expect(&mut events, 1..=3);
    let mut page = site.get("/live/runs/a").follow();
    page.next();
    let thread = site.stop();
    events.ends();
    page.ends();
    counterfoil_testkit::wait_until(Duration::from_secs(20), "the server has stopped", || {
        thread.is_finished().then_some(())
    });
    thread.join().unwrap();
}
