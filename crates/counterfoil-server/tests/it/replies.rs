//! The inspector of replies: what is wrong in them, what is searched, and what a repair changed.

use crate::runs::{self, Run};
use crate::site::Site;
use counterfoil_contract::Code;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{AttemptOutcome, Ended, Event, Reply, Usage};
use serde_json::{Value, json};

const PAGE: &str = "/runs/a/attempts/Work%231";

fn rejected(name: &str) -> Reply {
    Reply {
        status: "rejected".to_owned(),
        ..runs::reply(&format!("transcripts/a/{name}"), &format!("transcripts/a/{name}.text"))
    }
}

fn violation(pointer: &str) -> Value {
    json!({
        "code": Code::ALL[0].as_str(),
        "pointer": pointer,
        "span": {"start": 1, "end": 9, "line": 1, "column": 2},
        "message": "it is wrong",
        "expected": "this",
        "received": "that",
        "hint": "",
        "rule": "",
    })
}

/// The run `a`, whose attempt gave one reply with a violation, and this text.
fn site_with(text: &str) -> (Site, Run) {
    let site = Site::start();
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let mut run = Run::start(&journal, "a");
    runs::write(&state, "transcripts/a/one.text", text);
    runs::write(&state, "transcripts/a/one.prompt", "Do it.");
    let mut ended = Ended::new("Work#1", AttemptOutcome::Contract);
    ended.violations = vec![violation("/x")];
    ended.reply = Some(rejected("one"));
    run.add(&[runs::attempt(&["Work"]), Event::AttemptEnded(Box::new(ended))]);
    (site, run)
}

/// The element with the text of the reply.
fn text_of(page: &str) -> &str {
    let (before, rest) = page.split_once("id=\"text\"").unwrap();
    let from = before.rfind("<details").unwrap();
    let to = before.len() + rest.find("</details>").unwrap();
    &page[from..to]
}

#[test]
fn a_search_shows_every_place_with_what_is_around_it() {
    let one_line = format!(
        "{{\"a\": \"{}\", \"needle\": 1, \"b\": \"{}\", \"c\": \"needle\"}}",
        "x".repeat(5000),
        "y".repeat(5000)
    );
    let (site, _run) = site_with(&format!("first\n{one_line}\nlast"));
    let closed = site.page(PAGE);
    assert!(!text_of(&closed).starts_with("<details open"), "{closed}");
    let page = site.page(&format!("{PAGE}?reply=1&find=needle"));
    let text = text_of(&page);
    assert!(text.starts_with("<details open"), "{text}");
    let (_, list) = text.split_once("<ol class=\"found\"").unwrap();
    let (list, _) = list.split_once("</ol>").unwrap();
    let places: Vec<&str> = list.split("<li>").skip(1).collect();
    assert_eq!(places.len(), 2, "{list}");
    for place in &places {
        assert!(place.contains(">line 2</a>") && place.contains("<mark>needle</mark>"), "{place}");
        assert!(place.len() < 1000, "{place}");
    }
    // Behind it, the place itself is shown, although its line is long.
    let (href, _) = places[1].split_once("href=\"").unwrap().1.split_once('"').unwrap();
    let href = href.replace("&#38;", "&").replace("&amp;", "&");
    let (address, element) = href.split_once('#').unwrap();
    let page = site.page(address);
    let line = page.split_once(&format!("id=\"{element}\"")).unwrap().1;
    let line = line.split_once("</li>").unwrap().0;
    assert!(line.contains("<mark>needle</mark>") && line.contains("yyy"), "{line}");
    let none = site.page(&format!("{PAGE}?reply=1&find=nowhere"));
    assert!(text_of(&none).contains("does not contain this text"), "{none}");
    assert!(text_of(&none).starts_with("<details open"), "{none}");
}

#[test]
fn a_line_has_a_link_of_its_own() {
    let text: String = (1..=500).map(|line| format!("line {line} of it\n")).collect();
    let (site, _run) = site_with(&text);
    let page = site.page(&format!("{PAGE}?reply=1&line=300"));
    let text = text_of(&page);
    assert!(text.starts_with("<details open"), "{text}");
    assert!(text.contains("<li value=\"300\" id=\"L300\" class=\"target\""), "{text}");
    assert_eq!(text.matches("class=\"target\"").count(), 1, "{text}");
    assert!(text.contains("line 296 of it") && !text.contains("line 200 of it"), "{text}");
    assert!(text.contains("&amp;line=301#L301"), "{text}");
    assert!(text.contains("&amp;from=495#text\">further lines"), "{text}");
    let page = site.page(&format!("{PAGE}?reply=1&from=495"));
    let text = text_of(&page);
    assert!(text.contains("id=\"L495\"") && !text.contains("id=\"L494\""), "{text}");
    // The lines around a violation lead to the text.
    let page = site.page(PAGE);
    let (_, violation) = page.split_once("id=\"violation-1\"").unwrap();
    let (violation, _) = violation.split_once("</article>").unwrap();
    assert!(
        violation.contains("?reply=1&amp;line=1#L1") && !violation.contains("id=\"L"),
        "{page}"
    );
}

#[test]
fn a_violation_says_what_was_asked_then_and_what_came_back() {
    let site = Site::start();
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let mut run = Run::start(&journal, "a");
    for (name, prompt) in [("one", "Do it."), ("two", "Your answer has no 'ok'. Try again.")] {
        runs::write(&state, &format!("transcripts/a/{name}.text"), format!("the text of {name}"));
        runs::write(&state, &format!("transcripts/a/{name}.prompt"), prompt);
    }
    let mut ended = Ended::new("Work#1", AttemptOutcome::Contract);
    ended.violations = vec![violation("/x")];
    ended.reply = Some(rejected("two"));
    let asked = Event::RepairAsked {
        attempt: "Work#1".to_owned(),
        reply: rejected("one"),
        usage: Usage::default(),
        claims: Vec::new(),
    };
    run.add(&[runs::attempt(&["Work"]), asked, Event::AttemptEnded(Box::new(ended))]);
    let last = site.page(PAGE);
    assert!(!last.contains("class=\"repair\""), "{last}");
    assert!(last.contains("What the agent was asked after reply 1"), "{last}");
    assert!(last.contains("<span class=\"out\">, rejected</span>"), "{last}");
    let first = site.page(&format!("{PAGE}?reply=1"));
    let repair = first.split_once("class=\"repair\"").unwrap().1;
    for part in ["Your answer has no", "?reply=2#replies", "rejected"] {
        assert!(repair.contains(part), "{part}: {first}");
    }
}

#[test]
fn a_reply_that_never_came_was_not_rejected() {
    let site = Site::start();
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let mut run = Run::start(&journal, "a");
    runs::write(&state, "transcripts/a/one.text", "the text of one");
    runs::write(&state, "transcripts/a/two.text", "");
    let asked = Event::RepairAsked {
        attempt: "Work#1".to_owned(),
        reply: rejected("one"),
        usage: Usage::default(),
        claims: Vec::new(),
    };
    let mut ended = Ended::new("Work#1", AttemptOutcome::Cancelled);
    ended.reply = Some(Reply { status: "cancelled".to_owned(), ..rejected("two") });
    run.add(&[runs::attempt(&["Work"]), asked, Event::AttemptEnded(Box::new(ended))]);
    let page = site.page(PAGE);
    assert!(page.contains("Reply 1 of 2") && page.contains("the text of one"), "{page}");
    assert_eq!(page.matches("<span class=\"out\">, rejected</span>").count(), 1, "{page}");
    assert!(page.contains("<span class=\"out\">, cancelled</span>"), "{page}");
    let page = site.page(&format!("{PAGE}?reply=2"));
    assert!(page.contains("– cancelled, no reply"), "{page}");
}
