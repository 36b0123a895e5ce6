//! The tool calls of an attempt: what its transcript tells, also while it grows.

use crate::runs::{self, Run, attempt, replied, reply};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use std::io::Write as _;

const PAGE: &str = "/runs/a/attempts/Work%231";
/// Where an attempt at work writes its first reply.
const GROWING: &str = "transcripts/a/Work_1.1";

fn call(tool: &str, id: usize, target: &str) -> String {
    let call = serde_json::json!({
        "type": "tool_use", "tool_name": tool, "tool_id": id.to_string(),
        "parameters": {"file_path": target},
    });
    format!("{call}\n")
}

/// A run with an attempt at work.
fn at_work(site: &Site) -> (Journal, Run) {
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(&[attempt(&["Work"])]);
    (journal, run)
}

fn add(site: &Site, text: &str) {
    let path = site.state("state").join(GROWING);
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_transcript_that_grows_is_shown_without_an_event() {
    let site = Site::start();
    let _run = at_work(&site);
    let html = site.page(PAGE);
    assert!(html.contains("The agent has told nothing yet."), "{html}");
    let (_, rest) = html.split_once("hx-sse:connect=\"").unwrap();
    let address = rest.split_once('"').unwrap().0.replace("&amp;", "&").replace("&#38;", "&");
    let mut stream = site.get(&address).follow();
    stream.stays_silent();
    runs::write(&site.state("state"), GROWING, call("read_file", 1, "src/one.rs"));
    let message = stream.next();
    assert!(message.data.starts_with("<hx-partial hx-target=\"#attempt-calls\""), "{message:?}");
    assert_eq!(message.data.matches("<hx-partial ").count(), 1, "{message:?}");
    assert!(message.data.contains("src/one.rs"), "{message:?}");
    assert!(message.data.contains("at work"), "{message:?}");
    let result = "{\"type\":\"tool_result\",\"tool_id\":\"1\",\"status\":\"success\"}\n";
    add(&site, &format!("{result}{}", call("write_file", 2, "src/two.rs")));
    let message = stream.next();
    assert!(message.data.contains("done") && message.data.contains("src/two.rs"), "{message:?}");
    stream.stays_silent();
    let raw = site.get("/api/v1/runs/a/attempts/Work%231/replies/1/transcript").send().expect(200);
    assert_eq!(raw.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(raw.text().contains("src/two.rs"));
    let missing = site.get("/api/v1/runs/a/attempts/Work%231/replies/2/transcript").send();
    missing.expect_problem(404, "not-found");
}

#[test]
fn the_last_calls_are_shown_and_the_others_are_counted() {
    let site = Site::start();
    let _run = at_work(&site);
    let lines: String = (1..=250).map(|n| call("read_file", n, &format!("src/f{n}.rs"))).collect();
    runs::write(&site.state("state"), GROWING, lines);
    let html = site.page(PAGE);
    assert!(html.contains("150 earlier calls are not shown"), "{html}");
    assert!(html.contains("start=\"151\""), "{html}");
    assert!(html.contains(">250</span>"), "{html}");
    for (target, is_shown) in [("src/f150.rs", false), ("src/f151.rs", true), ("src/f250.rs", true)]
    {
        assert_eq!(html.contains(target), is_shown, "{target}");
    }
}

#[test]
fn what_a_transcript_tells_is_shown_and_not_obeyed() {
    let site = Site::start();
    let _run = at_work(&site);
    let attack = "\"><script>alert(1)</script>\u{202e}\u{1b}[31m";
    runs::write(&site.state("state"), GROWING, call(attack, 1, attack));
    let html = site.page(PAGE);
    assert!(html.contains("alert(1)"), "{html}");
    for raw in ["<script>alert", "\u{202e}", "\u{1b}"] {
        assert!(!html.contains(raw), "{raw:?} in {html}");
    }
}

#[test]
fn an_agent_without_events_says_so_and_a_missing_transcript_too() {
    let site = Site::start();
    let (_journal, mut run) = at_work(&site);
    let said = reply("transcripts/a/one", "transcripts/a/one.text");
    run.add(&[replied(&["Work"], said)]);
    assert!(
        site.page(PAGE).contains("A transcript cannot be read: transcripts/a/one is not there")
    );
    runs::write(&site.state("state"), "transcripts/a/one", "only text\n");
    assert!(site.page(PAGE).contains("This agent has no events that tell of tool calls."));
    runs::write(&site.state("state"), "transcripts/a/one", "only text\n{\"type\":\"init\"}\n");
    assert!(site.page(PAGE).contains("The agent called no tool."));
}
