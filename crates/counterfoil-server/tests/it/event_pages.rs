//! The events of a run as pages: in words, from the first to the last, with what went wrong alone.

use crate::runs::{self, Run, tick};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{AttemptOutcome, Ended, Event, TransitionTaken};

/// The numbers of the events on a page or in its rows.
fn numbers(html: &str) -> Vec<u64> {
    let parts = html.split("data-seq=\"").skip(1);
    parts.map(|part| part.split('"').next().unwrap().parse().unwrap()).collect()
}

/// The address of a link, by its text.
fn link(html: &str, text: &str) -> Option<String> {
    let before = html.split(&format!(">{text}</a>")).next().filter(|before| *before != html)?;
    let address = before.rsplit("href=\"").next()?.split('"').next()?;
    Some(address.replace("&amp;", "&").replace("&#38;", "&"))
}

fn failed(path: &str) -> Event {
    let mut ended = Ended::new(format!("{path}#1"), AttemptOutcome::Timeout);
    ended.reason = "no answer".into();
    Event::AttemptEnded(Box::new(ended))
}

fn moved(from: &str, to: &str) -> Event {
    Event::TransitionTaken(Box::new(TransitionTaken {
        from: from.to_owned(),
        to: to.to_owned(),
        ..TransitionTaken::default()
    }))
}

/// The run `a` with this number of events, at least 2.
fn run_with(site: &Site, events: usize) -> (Journal, Run) {
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    if events > 2 {
        run.add(&vec![tick(); events - 2]);
    }
    (journal, run)
}

#[test]
fn events_are_shown_in_words() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(&[runs::attempt(&["work"]), failed("work"), moved("work", "check")]);
    let html = site.page("/runs/a/events");
    assert_eq!(numbers(&html), [1, 2, 3, 4, 5]);
    for text in ["run a of demo", "work: coder", "work: timeout: no answer", "work to check"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    for part in ["class=\"mark bad\"", "trouble", "href=\"/runs/a/attempts/work%231\""] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(html.contains("/live/runs/a/events?have="), "{html}");
    assert!(site.page("/runs/a").contains("href=\"/runs/a/events\""));
}

#[test]
fn pages_lead_from_one_end_to_the_other() {
    let site = Site::start();
    let (_journal, _run) = run_with(&site, 250);
    let last = site.page("/runs/a/events");
    assert_eq!(numbers(&last), (151..=250).collect::<Vec<u64>>());
    assert_eq!((link(&last, "next ›"), link(&last, "last »")), (None, None));
    let mut html = site.page(&link(&last, "« first").unwrap());
    assert_eq!((link(&html, "« first"), link(&html, "‹ previous")), (None, None));
    let mut seen = numbers(&html);
    while let Some(next) = link(&html, "next ›") {
        html = site.page(&next);
        seen.extend(numbers(&html));
    }
    assert_eq!(seen, (1..=250).collect::<Vec<u64>>());
    let mut seen = numbers(&last);
    html = last;
    while let Some(previous) = link(&html, "‹ previous") {
        html = site.page(&previous);
        seen.splice(0..0, numbers(&html));
    }
    assert_eq!(seen, (1..=250).collect::<Vec<u64>>());
    for (query, expected) in [
        ("from=0", 1..=100),
        ("from=249", 249..=250),
        ("from=251", 250..=250),
        ("from=18446744073709551615", 250..=250),
        ("before=3", 1..=2),
        ("before=18446744073709551615", 151..=250),
    ] {
        let html = site.page(&format!("/runs/a/events?{query}"));
        assert_eq!(numbers(&html), expected.collect::<Vec<u64>>(), "{query}");
    }
    assert!(site.page("/runs/a/events?before=0").contains("No event is recorded"));
}

#[test]
fn rows_alone_are_those_of_the_pages() {
    let site = Site::start();
    let (_journal, _run) = run_with(&site, 250);
    for from in [1_u64, 101, 201] {
        let answer = site.get(&format!("/runs/a/events/rows?from={from}")).send().expect(200);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        let rows = answer.text();
        assert_eq!(numbers(&rows), (from..=(from + 99).min(250)).collect::<Vec<u64>>());
        assert!(site.page(&format!("/runs/a/events?from={from}")).contains(rows.trim()));
    }
    for query in ["", "?from=x", "?from=-1", "?from=1&to=2"] {
        let answer = site.get(&format!("/runs/a/events/rows{query}")).send();
        answer.expect_problem(400, "request");
    }
    site.get("/runs/none/events/rows?from=1").send().expect_problem(404, "not-found");
    site.anonymous("GET", "/runs/a/events/rows?from=1").send().expect(401);
}

#[test]
fn trouble_and_a_state_are_shown_alone() {
    let site = Site::start();
    let (_journal, mut run) = run_with(&site, 2);
    for at in 0..150 {
        let state = if at % 2 == 0 { "work" } else { "check" };
        run.add(&[runs::attempt(&[state]), failed(state), tick()]);
    }
    let trouble: Vec<u64> = (0..150).map(|at| at * 3 + 4).collect();
    let last = site.page("/runs/a/events?show=trouble");
    assert_eq!(numbers(&last), trouble[50..]);
    assert!(!last.contains("data-list="), "only the list of all events is one long list");
    let earlier = site.page(&link(&last, "‹ previous").unwrap());
    assert_eq!(numbers(&earlier), trouble[..50]);
    let first = site.page("/runs/a/events?from=1&show=trouble");
    assert_eq!(numbers(&first), trouble[..100]);
    assert_eq!(numbers(&site.page(&link(&first, "next ›").unwrap())), trouble[100..]);
    let both = site.page("/runs/a/events?from=1&show=trouble&state=check");
    let check: Vec<u64> = trouble.iter().copied().skip(1).step_by(2).collect();
    assert_eq!(numbers(&both), check);
    let none = site.page("/runs/a/events?state=nowhere");
    assert!(none.contains("None of the events 1 to 452 matches"), "{none}");
}

#[test]
fn a_wrong_address_is_a_page_that_says_so() {
    let site = Site::start();
    let (_journal, _run) = run_with(&site, 3);
    for query in ["from=x", "from=-1", "from=1&before=2", "show=some", "page=2"] {
        let answer = site.get(&format!("/runs/a/events?{query}")).send().expect(400);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(answer.text().contains("Bad Request"), "{query}");
    }
    site.get("/runs/none/events").send().expect(404);
}

#[test]
fn an_open_page_learns_the_number_of_the_last_event() {
    let site = Site::start();
    let (_journal, mut run) = run_with(&site, 120);
    let mut all = site.get("/live/runs/a/events?have=&from=1").follow();
    let mut trouble = site.get("/live/runs/a/events?have=&show=trouble").follow();
    for stream in [&mut all, &mut trouble] {
        assert!(stream.next().data.contains("events-end"));
    }
    run.add(&[failed("work")]);
    let message = all.next().data;
    assert!(message.contains("121") && !message.contains("data-seq"), "{message}");
    let message = trouble.next().data;
    assert!(message.contains("data-seq=\"121\""), "{message}");
}

#[test]
fn an_answer_is_on_the_page_of_its_run_and_an_event_of_its_state() {
    let site = Site::start();
    let (_journal, mut run) = runs::asking(&site.state("state"));
    let answer = Event::Answered {
        question: "ok".to_owned(),
        answer: "no: not on a <Friday>".to_owned(),
        by: "ada".to_owned(),
        from: None,
    };
    run.add(&[answer]);
    let html = site.page("/runs/a");
    for text in ["May it go out?", "no: not on a &#60;Friday&#62;", "answered by ada"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert_eq!(numbers(&site.page("/runs/a/events?state=ok")), [5, 6]);
}
