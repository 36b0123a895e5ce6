//! What is said of states after hand-written events.

use super::*;
use counterfoil_flow::{CheckReport, CheckStatus};
use serde_json::{Map, json};

/// What is said of the state `work` after its only attempt.
fn status(agent: Option<&str>, builtin: Option<BuiltinStep>, ended: Ended) -> MarkStatus {
    let mut builder = StateProgressBuilder::default();
    builder.on_event(&Event::FrameOpened {
        frame: String::new(),
        parent: None,
        machine: String::new(),
        item: None,
        state: "work".to_owned(),
        inputs: Map::new(),
        variables: Map::new(),
        counts: BTreeMap::new(),
        iteration: None,
    });
    builder.on_event(&Event::AttemptStarted {
        attempt: "work#1".to_owned(),
        frame: String::new(),
        path: vec!["work".to_owned()],
        agent: agent.map(str::to_owned),
        n: 1,
        contract: None,
        builtin,
    });
    builder.on_event(&Event::AttemptEnded(Box::new(ended)));
    let states = builder.marked();
    states[&(String::new(), "work".to_owned())].status.unwrap()
}

fn ended(value: serde_json::Value) -> Ended {
    let mut ended = Ended::new("work#1", AttemptOutcome::Accepted);
    ended.value = Some(value);
    ended
}

fn checked(status: CheckStatus) -> Ended {
    let mut ended = Ended::new("work#1", AttemptOutcome::Accepted);
    ended.checks.insert("test".to_owned(), CheckReport { status, ..CheckReport::default() });
    ended
}

#[test]
fn a_step_that_failed_is_not_done_although_it_is_accepted() {
    use MarkStatus::{Done, Failed};
    let command = |code: i64| ended(json!({"ok": code == 0, "exit_code": code, "output": ""}));
    assert_eq!(status(None, None, command(0)), Done);
    assert_eq!(status(None, None, command(1)), Failed);
    assert_eq!(status(Some("coder"), None, command(1)), Done, "the words of an agent");
    let commit = || Some(BuiltinStep::Commit("Fix it".to_owned()));
    assert_eq!(status(None, commit(), ended(json!({"ok": true}))), Done);
    assert_eq!(status(None, commit(), ended(json!({"ok": false}))), Failed);
    let checks = || Some(BuiltinStep::Checks(vec!["test".to_owned()]));
    assert_eq!(status(None, checks(), checked(CheckStatus::Passed)), Done);
    assert_eq!(status(None, checks(), checked(CheckStatus::Failed)), Failed);
    let late = Ended::new("work#1", AttemptOutcome::Timeout);
    assert_eq!(status(Some("coder"), None, late), Failed);
}

#[test]
fn what_was_cancelled_did_not_fail() {
    use AttemptOutcome::{Accepted, Cancelled};
    let stopped = Ended::new("work#1", Cancelled);
    assert_eq!(status(Some("coder"), None, stopped.clone()), MarkStatus::Cancelled);
    assert_eq!(status(None, None, stopped), MarkStatus::Cancelled);
    let mut events = vec![
        opened("", None, "", "ship"),
        opened_in("", "ship", "middle", "tag"),
        started("ship", &["ship", "tag"], 1),
        over("ship/tag#1", Cancelled, false),
    ];
    let all = |events: &[serde_json::Value]| serde_json::Value::Array(events.to_vec());
    for (machine, state) in [("middle", "tag"), ("", "ship")] {
        assert_eq!(marked(all(&events), machine, state), Some(MarkStatus::Cancelled), "{state}");
    }
    // The run is tried again.
    events.extend([
        started("ship", &["ship", "tag"], 2),
        over("ship/tag#2", Accepted, false),
        moved("ship", "tag", "end"),
        ended_frame("ship", "done"),
        moved("", "ship", "end"),
    ]);
    for (machine, state) in [("middle", "tag"), ("", "ship")] {
        assert_eq!(marked(all(&events), machine, state), Some(MarkStatus::Done), "{state}");
    }
    let refuted = over("ship/tag#1", Cancelled, true);
    events.truncate(3);
    events.push(refuted);
    assert_eq!(marked(all(&events), "", "ship"), Some(MarkStatus::Refuted));
}

fn builder(events: serde_json::Value) -> StateProgressBuilder {
    let events: Vec<Event> = serde_json::from_value(events).unwrap();
    let mut builder = StateProgressBuilder::default();
    for event in &events {
        builder.on_event(event);
    }
    builder
}

/// A frame that runs a sub-workflow.
fn opened_in(parent: &str, frame: &str, machine: &str, state: &str) -> serde_json::Value {
    json!({"frame-opened": {"frame": frame, "parent": parent, "machine": machine, "item": null,
        "state": state, "inputs": {}, "variables": {}}})
}

fn opened(frame: &str, item: Option<&str>, machine: &str, state: &str) -> serde_json::Value {
    let parent = if frame.is_empty() { None } else { Some("") };
    json!({"frame-opened": {"frame": frame, "parent": parent, "machine": machine, "item": item,
        "state": state, "inputs": {}, "variables": {}}})
}

fn started(frame: &str, path: &[&str], n: u32) -> serde_json::Value {
    let is_check = path.last() == Some(&"checks");
    let builtin = is_check.then(|| BuiltinStep::Checks(vec!["test".to_owned()]));
    let event = Event::AttemptStarted {
        attempt: format!("{}#{n}", path.join("/")),
        frame: frame.to_owned(),
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        agent: (!is_check).then(|| "coder".to_owned()),
        n,
        contract: None,
        builtin,
    };
    serde_json::to_value(event).unwrap()
}

fn over(attempt: &str, outcome: AttemptOutcome, is_refuted: bool) -> serde_json::Value {
    let mut ended = Ended::new(attempt, outcome);
    if is_refuted {
        let claim = json!({"claim": "tests", "kind": "tests-kept", "policy": "record",
            "stated": true, "verdict": "refuted", "reason": "one was deleted"});
        ended.claims = vec![serde_json::from_value(claim).unwrap()];
    }
    serde_json::to_value(Event::AttemptEnded(Box::new(ended))).unwrap()
}

fn moved(frame: &str, from: &str, to: &str) -> serde_json::Value {
    json!({"moved": {"frame": frame, "from": from, "to": to}})
}

fn ended_frame(frame: &str, outcome: &str) -> serde_json::Value {
    json!({"frame-ended": {"frame": frame, "outcome": outcome, "reason": ""}})
}

fn marked(events: serde_json::Value, machine: &str, state: &str) -> Option<MarkStatus> {
    let states = builder(events).marked();
    states[&(machine.to_owned(), state.to_owned())].status
}

#[test]
fn the_worst_step_of_the_last_visit_counts_and_a_retry_replaces_what_it_repeats() {
    use AttemptOutcome::{Accepted, Timeout};
    let mut events = vec![
        opened("", None, "", "work"),
        started("", &["work"], 1),
        over("work#1", Timeout, false),
        started("", &["work"], 2),
        over("work#2", Accepted, true),
        started("", &["work", "checks"], 1),
        over("work/checks#1", Accepted, false),
        moved("", "work", "work"),
    ];
    let until = |count: usize, events: &[serde_json::Value]| {
        marked(serde_json::Value::Array(events[..count].to_vec()), "", "work")
    };
    assert_eq!(until(3, &events), Some(MarkStatus::Failed));
    assert_eq!(until(5, &events), Some(MarkStatus::Refuted));
    assert_eq!(until(7, &events), Some(MarkStatus::Refuted), "checks that passed hide nothing");
    events.extend([started("", &["work"], 3), over("work#3", Accepted, false)]);
    assert_eq!(until(10, &events), Some(MarkStatus::Done), "another visit");
}

#[test]
fn an_item_that_failed_fails_the_fan_out_and_is_not_hidden_by_another() {
    use AttemptOutcome::{Accepted, Timeout};
    let items =
        json!([{"key": "1", "value": 1, "after": []}, {"key": "2", "value": 2, "after": []}]);
    let fanned =
        json!({"fanned-out": {"frame": "", "items": items, "parallel": 1, "strict": false}});
    let item = |key: &str, outcome: AttemptOutcome, end: &str| {
        let frame = format!("all/{key}");
        let attempt = format!("{frame}/make#1");
        vec![
            opened(&frame, Some(key), "one", "make"),
            started(&frame, &["all", key, "make"], 1),
            over(&attempt, outcome, false),
            ended_frame(&frame, end),
        ]
    };
    let mut events = vec![opened("", None, "", "all"), fanned.clone()];
    events.extend(item("1", Timeout, "failed"));
    events.extend(item("2", Accepted, "done"));
    events.push(json!({"fanned-in": {"frame": ""}}));
    let all = |events: &[serde_json::Value]| serde_json::Value::Array(events.to_vec());
    assert_eq!(marked(all(&events), "", "all"), Some(MarkStatus::Failed));
    assert_eq!(marked(all(&events), "one", "make"), Some(MarkStatus::Failed));
    // Another visit of the fan-out, with fewer items.
    events.extend([moved("", "all", "all"), fanned]);
    assert_eq!(marked(all(&events), "", "all"), None);
    assert_eq!(marked(all(&events), "one", "make"), Some(MarkStatus::Failed));
    events.extend(item("2", Accepted, "done"));
    assert_eq!(marked(all(&events), "one", "make"), Some(MarkStatus::Done));
    events.push(moved("", "all", "end"));
    assert_eq!(marked(all(&events), "", "all"), Some(MarkStatus::Done));
}

#[test]
fn a_fan_out_keeps_the_number_of_its_items_that_are_done() {
    let fanned = |frame: &str, keys: &[&str]| {
        let item = |key: &&str| json!({"key": key, "value": 1, "after": []});
        let items: Vec<Value> = keys.iter().map(item).collect();
        json!({"fanned-out": {"frame": frame, "items": items, "parallel": 1, "strict": false}})
    };
    let mut builder = StateProgressBuilder::default();
    let mut add = |events: Value| {
        for event in events.as_array().unwrap() {
            builder.on_event(&serde_json::from_value(event.clone()).unwrap());
        }
        let items = |machine: &str, state: &str| {
            let states = builder.states(&RunState::default());
            states.get(&(machine.to_owned(), state.to_owned())).and_then(|state| state.items)
        };
        (items("", "all"), items("one", "each"), builder.items())
    };
    let begun = json!([opened("", None, "", "all"), fanned("", &["1", "2", "3"])]);
    assert_eq!(add(begun), (Some((0, 3)), None, Some((0, 3))));
    // A fan-out in two items.
    let item = |key: &str| {
        let frame = format!("all/{key}");
        let inner = format!("{frame}/each/a");
        json!([
            opened(&frame, Some(key), "one", "each"),
            fanned(&frame, &["a", "b"]),
            opened_in(&frame, &inner, "two", "make"),
            ended_frame(&inner, "done"),
        ])
    };
    assert_eq!(add(item("1")), (Some((0, 3)), Some((1, 2)), Some((0, 3))));
    assert_eq!(add(item("2")), (Some((0, 3)), Some((2, 4)), Some((0, 3))));
    let ended = json!([ended_frame("all/1", "done"), ended_frame("all/2", "failed")]);
    assert_eq!(add(ended), (Some((1, 3)), Some((2, 4)), Some((1, 3))));
    let moved_on = json!([{"fanned-in": {"frame": ""}}, moved("", "all", "end")]);
    assert_eq!(add(moved_on), (Some((1, 3)), Some((2, 4)), Some((1, 3))), "it is over");
    // Another visit, before and after its items are known.
    assert_eq!(add(json!([moved("", "end", "all")])), (None, None, None));
    assert_eq!(add(json!([fanned("", &["9"])])), (Some((0, 1)), None, Some((0, 1))));
    assert_eq!(builder.entered().collect::<Vec<_>>(), ["all", "end"]);
}

#[test]
fn checks_before_the_first_step_are_no_part_of_a_state() {
    let base = json!({"attempt-started": {"attempt": "base/checks#1", "frame": "",
        "path": ["base", "checks"], "n": 1,
        "deed": serde_json::to_value(BuiltinStep::BaseChecks(vec!["test".to_owned()])).unwrap()}});
    let late = over("base/checks#1", AttemptOutcome::Timeout, false);
    let events = json!([opened("", None, "", "work"), base, late]);
    assert_eq!(marked(events, "", "work"), None);
}

#[test]
fn a_state_takes_over_what_is_refuted_in_what_it_runs() {
    use AttemptOutcome::{Accepted, Claim};
    let inside = |frame: &str, path: &[&str], n: u32, outcome, is_refuted| {
        let attempt = format!("{}#{n}", path.join("/"));
        vec![started(frame, path, n), over(&attempt, outcome, is_refuted)]
    };
    let all = |events: &[serde_json::Value]| serde_json::Value::Array(events.to_vec());
    let path = ["ship", "out", "tag"];
    // The main machine calls `middle`, which calls `inner`.
    let mut events = vec![
        opened("", None, "", "ship"),
        opened_in("", "ship", "middle", "out"),
        opened_in("ship", "ship/out", "inner", "tag"),
    ];
    events.extend(inside("ship/out", &path, 1, Accepted, true));
    let refuted = events.len();
    events.extend([
        moved("ship/out", "tag", "end"),
        ended_frame("ship/out", "done"),
        moved("ship", "out", "end"),
        ended_frame("ship", "done"),
        moved("", "ship", "end"),
    ]);
    for (machine, state) in [("inner", "tag"), ("middle", "out"), ("", "ship")] {
        assert_eq!(marked(all(&events), machine, state), Some(MarkStatus::Refuted), "{state}");
    }
    assert_eq!(marked(all(&events), "", "end"), None);

    // Another visit inside is not refuted.
    let mut again = events[..refuted].to_vec();
    again.push(moved("ship/out", "tag", "tag"));
    again.extend(inside("ship/out", &path, 2, Accepted, false));
    again.extend_from_slice(&events[refuted..]);
    for (machine, state) in [("inner", "tag"), ("middle", "out"), ("", "ship")] {
        assert_eq!(marked(all(&again), machine, state), Some(MarkStatus::Done), "{state}");
    }

    // Another visit of the caller, and the same call once more in one visit.
    for moves in [true, false] {
        let mut again = events.clone();
        if moves {
            again.extend([moved("", "end", "ship")]);
        } else {
            again.pop();
        }
        again.extend([
            opened_in("", "ship", "middle", "other"),
            moved("ship", "other", "end"),
            ended_frame("ship", "done"),
            moved("", "ship", "end"),
        ]);
        assert_eq!(marked(all(&again), "", "ship"), Some(MarkStatus::Done));
        assert_eq!(marked(all(&again), "middle", "out"), Some(MarkStatus::Refuted), "as it was");
    }

    // A claim that failed its step is refuted, too, if the sub-workflow goes on without the result.
    let mut failed = events[..3].to_vec();
    failed.extend(inside("ship/out", &path, 1, Claim, true));
    failed.extend_from_slice(&events[refuted..]);
    assert_eq!(marked(all(&failed), "inner", "tag"), Some(MarkStatus::Failed));
    assert_eq!(marked(all(&failed), "", "ship"), Some(MarkStatus::Refuted));

    // A sub-workflow that is not done fails its caller.
    events.truncate(refuted);
    events.extend([ended_frame("ship/out", "failed"), ended_frame("ship", "failed")]);
    assert_eq!(marked(all(&events), "", "ship"), Some(MarkStatus::Failed));
}

#[test]
fn a_fan_out_takes_over_what_is_refuted_in_an_item() {
    let items = json!([{"key": "1", "value": 1, "after": []}]);
    let fanned =
        json!({"fanned-out": {"frame": "", "items": items, "parallel": 1, "strict": false}});
    let item = |n: u32, is_refuted: bool| {
        [
            fanned.clone(),
            opened("all/1", Some("1"), "one", "make"),
            started("all/1", &["all", "1", "make"], n),
            over(&format!("all/1/make#{n}"), AttemptOutcome::Accepted, is_refuted),
            ended_frame("all/1", "done"),
        ]
    };
    let mut events = vec![opened("", None, "", "all")];
    events.extend(item(1, true));
    events.push(moved("", "all", "all"));
    let all = |events: &[serde_json::Value]| serde_json::Value::Array(events.to_vec());
    assert_eq!(marked(all(&events[..6]), "", "all"), Some(MarkStatus::Refuted));
    events.extend(item(2, false));
    events.push(moved("", "all", "end"));
    assert_eq!(marked(all(&events), "", "all"), Some(MarkStatus::Done));
}
