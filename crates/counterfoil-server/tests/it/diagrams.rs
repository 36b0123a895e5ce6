//! The diagram of a run and its table: how each state is marked.

use crate::runs::{Run, Sample};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{AttemptOutcome, Bundle, Ended, Event, Outcome};
use serde_json::{Value, json};

/// A workflow whose first state runs another one.
const CALLING: &str = "
workflow: demo
start: one
states:
  one: { run: out, go: done }
  done: { end: done }
workflows:
  out: { start: tag, states: { tag: { command: [git, tag], go: end }, end: { end: done } } }
";

/// The run `a` of the workflow, in which `tag` begins.
fn calling(journal: &Journal) -> Run {
    let files = [("flow.yaml".to_owned(), CALLING.to_owned())].into();
    let bundle = Bundle { workflow: "flow.yaml".to_owned(), files, ..Bundle::default() };
    let sample = Sample { bundle: bundle.to_bytes().unwrap(), ..Sample::default() };
    let mut run = Run::of(journal, "a", &sample);
    run.add(&[
        event(json!({"frame-opened": {"frame": "one", "parent": "", "machine": "out",
            "item": null, "state": "tag", "inputs": {}, "variables": {}}})),
        event(json!({"attempt-started": {"attempt": "one/tag#1", "frame": "one",
            "path": ["one", "tag"], "n": 1}})),
    ]);
    run
}

fn event(event: Value) -> Event {
    serde_json::from_value(event).unwrap()
}

/// The end of `tag`.
fn ended(outcome: AttemptOutcome, is_refuted: bool) -> Event {
    let mut ended = Ended::new("one/tag#1", outcome);
    ended.value = Some(json!({"ok": true, "exit_code": 0, "output": ""}));
    if is_refuted {
        let claim = json!({"claim": "tests", "kind": "tests-kept", "policy": "record",
            "claimed": true, "verdict": "refuted", "reason": "one was deleted"});
        ended.claims = vec![serde_json::from_value(claim).unwrap()];
    }
    Event::AttemptEnded(Box::new(ended))
}

/// Lets the rest of the workflow be done.
fn finish(mut run: Run) {
    run.add(&[
        event(json!({"moved": {"frame": "one", "from": "tag", "to": "end"}})),
        event(json!({"frame-ended": {"frame": "one", "outcome": "done", "reason": ""}})),
        event(json!({"moved": {"frame": "", "from": "one", "to": "done"}})),
    ]);
    run.end(Outcome::Done);
}

/// Fails unless the diagram and the table mark the calling state and the called one so.
fn assert_marked(page: &str, status: &str) {
    let caption = format!("<title>one, {status}, 1 visit</title>");
    assert!(page.contains(&caption), "{caption}: {page}");
    assert!(page.contains(&format!("<title>tag, {status}, 1 visit</title>")), "{page}");
    assert_eq!(page.matches(&format!("cf-visited cf-{status}\"")).count(), 2, "{page}");
    let table = page.split_once("id=\"graph-table\"").unwrap().1;
    let (_, row) = table.split_once("<th scope=\"row\">one</th>").unwrap();
    let row = row.split("</tr>").next().unwrap();
    let cells = [format!("<td>{status}</td>"), format!("</span> {status}</span></td>")];
    assert!(cells.iter().any(|cell| row.contains(cell)), "{row}");
}

#[test]
fn a_state_that_calls_what_is_refuted_is_no_plain_success() {
    for (is_refuted, status) in [(true, "refuted"), (false, "done")] {
        let site = Site::start();
        let journal = Journal::open(&site.state("state")).unwrap();
        let mut run = calling(&journal);
        run.add(&[ended(AttemptOutcome::Accepted, is_refuted)]);
        finish(run);
        let page = site.page("/runs/a");
        assert_marked(&page, status);
        assert_eq!(page.contains("</span> 1 refuted</span>"), is_refuted, "{page}");
    }
}

#[test]
fn what_was_cancelled_is_not_drawn_as_failed() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = calling(&journal);
    run.add(&[
        Event::CancelRequested { by: "ann".to_owned(), from: None },
        ended(AttemptOutcome::Cancelled, false),
    ]);
    run.end(Outcome::Cancelled);
    let page = site.page("/runs/a");
    assert_marked(&page, "cancelled");
    assert_eq!(page.matches(">– cancelled</text>").count(), 2, "in the boxes: {page}");
    let table = page.split_once("id=\"graph-table\"").unwrap().1;
    let sign = "<span class=\"mute\"><span aria-hidden=\"true\">–</span> cancelled</span>";
    assert_eq!(table.matches(sign).count(), 2, "{table}");
    assert!(!page.contains("cf-failed") && page.contains("class=\"bar mute\""), "{page}");
}

#[test]
fn what_no_process_drives_is_not_drawn_as_at_work() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let run = calling(&journal);
    let page = site.page("/runs/a");
    assert_marked(&page, "current");
    assert!(page.contains(">● now</text>"), "{page}");
    run.rest();
    let page = site.page("/runs/a");
    assert_marked(&page, "interrupted");
    assert_eq!(page.matches(">‖ interrupted</text>").count(), 2, "in the boxes: {page}");
    assert!(!page.contains("● now") && !page.contains("cf-current"), "{page}");
}
