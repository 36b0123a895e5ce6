//! What agents and files say is shown, and never becomes a part of a page (stored XSS).

use crate::runs::{self, Run, Sample, asked};
use crate::site::{Site, encode};
use counterfoil_contract::Code;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{
    AttemptOutcome, ChangedFiles, Ended, Event, Form, Outcome, Reply, TransitionTaken, Usage, check,
};
use counterfoil_testkit::{TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Closes whatever it is in, runs a script, reorders what follows, and colours a terminal.
const ATTACK: &str =
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{1b}[31m{{7*7}}<!--";
/// A workflow of which the page of a run shows the diagram.
const FLOW: &str = "
workflow: flow
start: one
states:
  one: { read: a.txt, go: two }
  two: { read: a.txt, go: done }
  done: { end: done }
";

fn text() -> String {
    ATTACK.to_owned()
}

fn hostile_reply(name: &str, status: &str) -> Reply {
    Reply {
        status: status.to_owned(),
        codes: vec![text()],
        why: text(),
        said: text(),
        model: Some(text()),
        errors: Some(text()),
        conversation: Some(text()),
        denied: vec![text()],
        notes: vec![text()],
        ..runs::reply(&format!("transcripts/a/{name}"), &format!("transcripts/a/{name}.text"))
    }
}

fn hostile_claim(name: &str, verdict: Verdict) -> ClaimReport {
    ClaimReport {
        claim: format!("{name}{ATTACK}"),
        field: text(),
        kind: ClaimKind::FilesModified,
        policy: ClaimPolicy::Record,
        verdict,
        claimed: json!({ATTACK: [ATTACK]}),
        observed: json!([ATTACK]),
        reason: text(),
        evidence: vec![Evidence {
            command: text(),
            exit_code: Some(1),
            output: text(),
            sha256: Some(text()),
            ..Evidence::new(ATTACK, ATTACK)
        }],
        tree: Some(text()),
    }
}

fn hostile_violation() -> Value {
    json!({
        "code": Code::ALL[0].as_str(),
        "pointer": format!("/{ATTACK}"),
        "span": {"start": 1, "end": 9, "line": 1, "column": 2},
        "message": ATTACK,
        "expected": ATTACK,
        "received": ATTACK,
        "hint": ATTACK,
        "rule": ATTACK,
    })
}

fn started(id: &str, path: &[&str]) -> Event {
    Event::AttemptStarted {
        attempt: id.to_owned(),
        frame: String::new(),
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        agent: Some(text()),
        n: 1,
        contract: Some(text()),
        builtin: None,
    }
}

/// The id of the attempt that ended.
fn done_id() -> String {
    format!("one/{ATTACK}#1")
}

/// The events of a run in which nothing is harmless.
fn events() -> Vec<Event> {
    let mut ended = Ended::new(done_id(), AttemptOutcome::Contract);
    ended.value = Some(json!({ATTACK: ATTACK}));
    ended.partial = Some(json!(ATTACK));
    ended.reason = text();
    ended.violations = vec![hostile_violation()];
    let verdicts = [Verdict::Refuted, Verdict::Unverifiable, Verdict::Stale, Verdict::Verified];
    ended.claims = verdicts.map(|verdict| hostile_claim(verdict.name(), verdict)).to_vec();
    ended.changed = Some(ChangedFiles {
        added: vec![text()],
        modified: vec![text()],
        deleted: vec![text()],
        renamed: vec![(text(), text())],
        total: 5,
        notes: vec![text()],
    });
    ended.reply = Some(hostile_reply("two", "rejected"));
    ended.usage = Usage { input_tokens: 1, output_tokens: 1, cost_usd: 0.5, wall_ms: 1 };
    ended.checks = [(text(), counterfoil_flow::CheckReport::default())].into();
    let choices = Form::Choices(vec![text(), "yes".to_owned()]);
    vec![
        started(&done_id(), &["one", ATTACK]),
        Event::RepairAsked {
            attempt: done_id(),
            reply: hostile_reply("one", ATTACK),
            usage: Usage::default(),
            claims: vec![hostile_claim("earlier", Verdict::Refuted)],
        },
        Event::AttemptEnded(Box::new(ended)),
        Event::TransitionTaken(Box::new(TransitionTaken {
            from: text(),
            to: text(),
            guard: Some(text()),
            reason: text(),
            set: [(text(), json!(ATTACK))].into_iter().collect(),
            counts: BTreeMap::from([(text(), 1)]),
            ..TransitionTaken::default()
        })),
        started("two", &[ATTACK]),
        Event::Asked {
            frame: String::new(),
            questions: vec![
                asked(&format!("q{ATTACK}"), ATTACK, choices),
                asked("pattern", ATTACK, Form::Pattern(text())),
                asked("text", ATTACK, Form::Text),
            ],
        },
    ]
}

/// The run `a`, in which nothing is harmless, which waits for an answer.
fn hostile_run(site: &Site) -> Run {
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let files: BTreeMap<String, String> = [("flow.yaml".to_owned(), FLOW.to_owned())].into();
    let registry = counterfoil_contract::Registry::new();
    let bundle = check("flow.yaml", &files, &registry).unwrap().bundle.to_bytes().unwrap();
    let sample = Sample { workflow: ATTACK, bundle, task: ATTACK, ..Sample::default() };
    let mut run = Run::of(&journal, "a", &sample);
    for name in ["one", "two"] {
        let lines = format!("{ATTACK}\n{}{ATTACK}\n", "x".repeat(1000));
        runs::write(&state, &format!("transcripts/a/{name}.text"), &lines);
        runs::write(&state, &format!("transcripts/a/{name}.prompt"), &lines);
    }
    run.summary.outcome = Some("waiting".to_owned());
    run.summary.state = text();
    run.summary.reason = text();
    run.summary.questions = 3;
    run.add(&events());
    run
}

/// The pages that show the run.
fn targets() -> Vec<String> {
    let attempt = format!("/runs/a/attempts/{}", encode(&done_id()));
    let open = format!("/runs/a/attempts/{}", encode(&format!("{ATTACK}#1")));
    let query = encode(ATTACK);
    vec![
        "/".to_owned(),
        "/?sort=cost".to_owned(),
        "/?view=refuted".to_owned(),
        format!("/?q={query}"),
        "/inbox".to_owned(),
        "/runs/a".to_owned(),
        "/runs/a?show=failed&idle=full".to_owned(),
        "/runs/a/claims".to_owned(),
        "/runs/a/events".to_owned(),
        "/runs/a/events?from=1&show=trouble".to_owned(),
        format!("/runs/a/events?state={query}"),
        format!("/runs/a/claims?q={query}"),
        attempt.clone(),
        format!("{attempt}?reply=1"),
        format!("{attempt}?reply=2&line=2&find={query}"),
        open,
        "/claims".to_owned(),
        format!("/claims?contract={query}"),
        format!("/claims?contract={query}&field={query}"),
        "/health".to_owned(),
        "/health?by=agent".to_owned(),
        "/health?by=model".to_owned(),
        format!("/health/attempts?agent={query}"),
        format!("/health/attempts?contract={query}&what=refuted"),
    ]
}

/// Waits until the run is part of the figures of all runs.
fn wait_for_figures(site: &Site) {
    wait_until(TIMEOUT, "the run is counted", || {
        let page = site.page("/health/attempts");
        (!page.contains("were read so far") && page.contains("/runs/a/attempts/")).then_some(())
    });
}

/// A text without the values of attributes, which have to be exact.
fn without_values(html: &str) -> String {
    let mut parts = html.split(" value=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.filter_map(|part| part.split_once('"').map(|(_, rest)| rest));
    std::iter::once(first.as_str()).chain(rest).collect::<Vec<_>>().join("")
}

#[track_caller]
fn is_harmless(html: &str, what: &str) {
    for raw in ["<script>alert", "<img", "onerror=alert(1)>", "</script><", "<!--"] {
        let around = html.find(raw).map(|at| {
            let from = html.floor_char_boundary(at.saturating_sub(200));
            html[from..html.ceil_char_boundary((at + 100).min(html.len()))].to_owned()
        });
        assert_eq!(around, None, "{what} has {raw}");
    }
    let shown = without_values(html);
    for character in ['\u{202e}', '\u{1b}'] {
        let at = shown.find(character);
        let around = at.map(|at| {
            let from = shown.floor_char_boundary(at.saturating_sub(200));
            shown[from..at].to_owned()
        });
        assert_eq!(around, None, "{what} has {character:?}");
    }
}

#[test]
fn pages_show_what_was_said_and_do_not_obey_it() {
    let site = Site::start();
    let _run = hostile_run(&site);
    wait_for_figures(&site);
    for target in targets() {
        let html = site.page(&target);
        is_harmless(&html, &target);
        assert!(html.contains("alert(1)"), "{target} does not show it: {html}");
        assert!(html.contains("hx-sse:connect"), "{target} is not the page itself: {html}");
    }
}

#[test]
fn the_page_of_a_run_that_ended_obeys_nothing_either() {
    let site = Site::start();
    let mut run = hostile_run(&site);
    run.summary.reason = text();
    run.end(Outcome::Failed);
    for target in targets() {
        is_harmless(&site.page(&target), &target);
    }
}

#[test]
fn sections_that_are_sent_later_obey_nothing() {
    let site = Site::start();
    let _run = hostile_run(&site);
    wait_for_figures(&site);
    for target in targets() {
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let live = format!("/live{path}?have=&{query}");
        let message = site.get(&live).follow().next();
        is_harmless(&message.data, &live);
        assert!(message.data.contains("alert(1)"), "{live}: {}", message.data);
    }
}

#[test]
fn the_playground_obeys_neither_its_address_nor_a_text() {
    let site = Site::start();
    let target = format!("/playground?contract={}", encode(ATTACK));
    let answer = site.get(&target).send();
    assert_eq!(answer.status, 404, "{}", answer.text());
    is_harmless(&answer.text(), &target);
    let definition = "contract: a/b\nversion: 1\nfields: { ok: boolean, level: low | high }\n";
    for (definition, text) in [
        (definition.to_owned(), format!("{ATTACK}\n```json\n{{\"ok\": {ATTACK:?}}}\n```")),
        (definition.to_owned(), format!("{{\"ok\": true, \"level\": {ATTACK:?}}}")),
        (format!("{definition}{ATTACK}"), "{}".to_owned()),
        (format!("contract: {ATTACK:?}\nversion: 1\nfields: {{ ok: boolean }}"), "{}".to_owned()),
    ] {
        let request = json!({"definition": definition, "text": text});
        let request = site.post("/api/v1/check", &request).header("accept", "text/html");
        is_harmless(&request.send().text(), "what came of a check");
    }
}

#[test]
fn several_folders_with_hostile_names_are_harmless() {
    let name = "state<img src=x>\u{202e}";
    let site = Site::with(&[name, "other"], true);
    for (folder, run) in [(name, "a"), ("other", "b")] {
        Run::start(&Journal::open(&site.state(folder)).unwrap(), run).end(Outcome::Done);
    }
    for target in ["/", "/runs/a"] {
        let html = site.page(target);
        is_harmless(&html, target);
        assert!(html.contains("state&"), "{html}");
    }
}

#[test]
fn raw_texts_are_plain_text() {
    let site = Site::start();
    let _run = hostile_run(&site);
    let attempt = encode(&done_id());
    for number in 1..=2 {
        for part in ["text", "prompt"] {
            let target = format!("/api/v1/runs/a/attempts/{attempt}/replies/{number}/{part}");
            let request = site.get(&target);
            for request in [request.clone(), request.header("accept", "text/html")] {
                let answer = request.send().expect(200);
                assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
                assert!(answer.text().starts_with(ATTACK), "it is the text as it is");
            }
        }
    }
}

#[test]
fn values_of_the_api_are_json() {
    let site = Site::start();
    let _run = hostile_run(&site);
    let attempt = format!("/runs/a/attempts/{}", encode(&done_id()));
    for target in ["/runs", "/runs/a", "/runs/a/claims", "/runs/a/questions", "/runs/a/events"]
        .into_iter()
        .chain([attempt.as_str()])
    {
        let value = site.api(target);
        assert!(value.to_string().contains("<script>"), "{target} is exact");
    }
    let listed = site.api("/runs");
    assert_eq!(listed["runs"][0]["task"], ATTACK);
}

#[test]
fn messages_of_events_stay_whole() {
    let site = Site::start();
    let _run = hostile_run(&site);
    let mut stream = site.events_of("a").follow();
    for seq in 1..=8_u64 {
        let message = stream.next();
        assert_eq!((message.id, message.event.as_str()), (seq.to_string(), "event"));
        let value: Value = serde_json::from_str(&message.data).unwrap();
        assert_eq!(value["seq"], seq);
    }
}

#[test]
fn what_the_address_says_is_escaped_in_errors() {
    let site = Site::start();
    let _run = hostile_run(&site);
    let attack = encode(ATTACK);
    for target in [
        format!("/runs/{attack}"),
        format!("/runs/a/attempts/{attack}"),
        format!("/?view={attack}"),
        format!("/?{attack}=1"),
        format!("/?after={attack}"),
        format!("/runs/a?page={attack}"),
        format!("/runs/a/events?from={attack}"),
        format!("/{attack}"),
    ] {
        let answer = site.get(&target).send();
        assert!(matches!(answer.status, 400 | 404), "{target}: {}", answer.status);
        is_harmless(&answer.text(), &target);
        if !target.starts_with("/runs/") {
            continue;
        }
        let answer = site.get(&format!("/api/v1{target}")).send();
        let kind = answer.header("content-type").unwrap();
        assert!(!kind.contains("html"), "{target}: {kind}");
    }
}
