//! How attempts are shown that went wrong although their outcome is that they were accepted.

use crate::runs::{self, Run};
use crate::site::Site;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Verdict};
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{
    AttemptOutcome, BuiltinStep, CheckReport, CheckStatus, Ended, Event, Outcome, Reply, Usage,
};
use serde_json::json;

/// The first attempt of a command, and its end with an exit code.
fn command(name: &str, code: i64) -> [Event; 2] {
    let attempt = format!("{name}#1");
    let mut ended = Ended::new(attempt.as_str(), AttemptOutcome::Accepted);
    ended.value = Some(json!({"ok": code == 0, "exit_code": code, "output": "2 of 7 fail"}));
    let started = Event::AttemptStarted {
        attempt,
        frame: String::new(),
        path: vec![name.to_owned()],
        agent: None,
        n: 1,
        contract: None,
        builtin: None,
    };
    [started, Event::AttemptEnded(Box::new(ended))]
}

fn claim(name: &str, verdict: Verdict) -> ClaimReport {
    ClaimReport {
        claim: name.to_owned(),
        field: name.to_owned(),
        kind: ClaimKind::Command,
        policy: ClaimPolicy::Record,
        verdict,
        claimed: json!(true),
        observed: json!(false),
        reason: "it exited with 1".to_owned(),
        evidence: Vec::new(),
        tree: None,
    }
}

/// The end of the first attempt of a state.
fn ended(name: &str, outcome: AttemptOutcome, claims: Vec<ClaimReport>) -> Event {
    let mut ended = Ended::new(format!("{name}#1"), outcome);
    ended.claims = claims;
    Event::AttemptEnded(Box::new(ended))
}

fn repair(name: &str, claims: Vec<ClaimReport>) -> Event {
    Event::RepairAsked {
        attempt: format!("{name}#1"),
        reply: Reply::default(),
        usage: Usage::default(),
        claims,
    }
}

/// The run `a` with these events.
fn run_of(site: &Site, events: &[Event]) -> (Journal, Run) {
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(events);
    (journal, run)
}

/// The row of an attempt on the line of time; none if it is not shown.
fn row(page: &str, attempt: &str) -> Option<String> {
    let (_, row) = page.split_once(&format!("<tr id=\"/runs/a/attempts/{attempt}%231\""))?;
    Some(row.split("</tr>").next().unwrap().to_owned())
}

#[test]
fn a_command_that_failed_is_no_success() {
    let site = Site::start();
    let events = [command("lint", 0), command("check", 7)].concat();
    let (_journal, _run) = run_of(&site, &events);
    let page = site.page("/runs/a");
    let (lint, check) = (row(&page, "lint").unwrap(), row(&page, "check").unwrap());
    assert!(lint.contains("accepted") && lint.contains("bar good"), "{lint}");
    assert!(!check.contains("accepted") && !check.contains("good"), "{check}");
    for part in ["class=\"mark bad\"", "✗", "failed", "bar bad", "exit code 7: 2 of 7 fail"] {
        assert!(check.contains(part), "{part}: {check}");
    }
    assert!(page.contains("Only the 1 with trouble"), "{page}");
    let failed = site.page("/runs/a?show=failed");
    assert!(row(&failed, "check").is_some() && row(&failed, "lint").is_none(), "{failed}");
    let attempt = site.page("/runs/a/attempts/check%231");
    for part in ["<section class=\"now bad\">", "class=\"mark bad\"", "exit code 7: 2 of 7 fail"] {
        assert!(attempt.contains(part), "{part}: {attempt}");
    }
}

#[test]
fn the_run_and_its_events_agree_on_trouble() {
    let site = Site::start();
    let refuted = || vec![claim("tests", Verdict::Refuted), claim("files", Verdict::Refuted)];
    let accepted = AttemptOutcome::Accepted;
    let events = [
        command("failing", 1).to_vec(),
        command("passing", 0).to_vec(),
        vec![runs::attempt(&["lying"]), ended("lying", accepted, refuted())],
        vec![runs::attempt(&["corrected"]), repair("corrected", refuted())],
        vec![ended("corrected", accepted, vec![claim("tests", Verdict::Verified)])],
        vec![runs::attempt(&["late"]), ended("late", AttemptOutcome::Timeout, Vec::new())],
        vec![runs::attempt(&["fine"]), ended("fine", accepted, Vec::new())],
        vec![runs::attempt(&["stopped"]), ended("stopped", AttemptOutcome::Cancelled, Vec::new())],
    ]
    .concat();
    let (_journal, _run) = run_of(&site, &events);
    let (run, events) =
        (site.page("/runs/a?show=failed"), site.page("/runs/a/events?show=trouble"));
    for (name, is_trouble) in [
        ("failing", true),
        ("passing", false),
        ("lying", true),
        ("corrected", true),
        ("late", true),
        ("fine", false),
        ("stopped", false),
    ] {
        assert_eq!(row(&run, name).is_some(), is_trouble, "{name}: {run}");
        let link = format!("href=\"/runs/a/attempts/{name}%231\"");
        assert_eq!(events.contains(&link), is_trouble, "{name}: {events}");
    }
    assert!(events.contains("lying: accepted; refuted: tests, files"), "{events}");
    assert!(events.contains("repair requested: 2 claims refuted; refuted: tests, files"));
    let lying = site.page("/runs/a/attempts/lying%231");
    for part in ["<section class=\"now bad\">", "<a class=\"bad\" href=\"#claims\">✗ 2 refuted</a>"]
    {
        assert!(lying.contains(part), "{part}: {lying}");
    }
    assert!(!site.page("/runs/a/attempts/corrected%231").contains("2 refuted</a>"));
}

#[test]
fn a_run_that_was_cancelled_did_not_fail() {
    let site = Site::start();
    let cancelled = ended("Work", AttemptOutcome::Cancelled, Vec::new());
    let asked = Event::CancelRequested { by: "ann".to_owned(), from: None };
    let (_journal, run) = run_of(&site, &[runs::attempt(&["Work"]), asked, cancelled]);
    run.end(Outcome::Cancelled);
    let page = site.page("/runs/a");
    let marks = page.matches("–</span> cancelled").count();
    assert_eq!(marks, 2, "of the run and of its attempt: {page}");
    for is_missing in ["What went wrong", "with trouble", "✗"] {
        assert!(!page.contains(is_missing), "{is_missing}: {page}");
    }
    let events = site.page("/runs/a/events");
    assert_eq!(events.matches("–</span>").count(), 3, "{events}");
    let trouble = site.page("/runs/a/events?show=trouble");
    assert!(!trouble.contains("cancelled"), "{trouble}");
}

#[test]
fn a_repair_that_came_to_nothing_is_not_shown_as_one() {
    let site = Site::start();
    let refuted = || vec![claim("tests", Verdict::Refuted)];
    let (accepted, failed) = (AttemptOutcome::Accepted, AttemptOutcome::Contract);
    let events = [
        vec![runs::attempt(&["corrected"]), repair("corrected", refuted())],
        vec![ended("corrected", accepted, vec![claim("tests", Verdict::Verified)])],
        vec![runs::attempt(&["twice"]), repair("twice", Vec::new()), repair("twice", Vec::new())],
        vec![ended("twice", accepted, Vec::new())],
        vec![runs::attempt(&["failed"]), repair("failed", refuted())],
        vec![ended("failed", failed, Vec::new())],
        vec![runs::attempt(&["lying"]), repair("lying", refuted())],
        vec![ended("lying", accepted, refuted())],
        vec![runs::attempt(&["open"]), repair("open", Vec::new())],
    ]
    .concat();
    let (_journal, _run) = run_of(&site, &events);
    let page = site.page("/runs/a");
    for (name, said) in [
        ("corrected", "repaired"),
        ("twice", "repaired, 2 repairs asked"),
        ("failed", "repair asked"),
        ("lying", "repair asked"),
        ("open", "repair asked"),
    ] {
        let row = row(&page, name).unwrap();
        assert!(row.contains(&format!("↺ {said}</span>")), "{name}: {row}");
        let attempt = site.page(&format!("/runs/a/attempts/{name}%231"));
        assert!(attempt.contains(&format!("<dt>Repairs</dt><dd>{said}</dd>")), "{attempt}");
    }
    for (name, is_refuted) in [("corrected", false), ("failed", true), ("lying", true)] {
        let row = row(&page, name).unwrap();
        assert_eq!(row.contains("✗ 1 refuted</span>"), is_refuted, "{name}: {row}");
        let attempt = site.page(&format!("/runs/a/attempts/{name}%231"));
        assert_eq!(attempt.contains("✗ 1 refuted</a>"), is_refuted, "{name}: {attempt}");
    }
}

#[test]
fn what_could_not_be_verified_is_listed_for_each_visit() {
    let site = Site::start();
    let visit = |n: u32| {
        let attempt = format!("Work#{n}");
        let mut ended = Ended::new(attempt.as_str(), AttemptOutcome::Accepted);
        ended.claims = vec![ClaimReport {
            kind: ClaimKind::FilesChanged,
            ..claim("files", Verdict::Unverifiable)
        }];
        let started = Event::AttemptStarted {
            attempt,
            frame: String::new(),
            path: vec!["Work".to_owned()],
            agent: Some("coder".to_owned()),
            n,
            contract: None,
            builtin: None,
        };
        [runs::opened("Work"), started, Event::AttemptEnded(Box::new(ended))]
    };
    let (_journal, _run) = run_of(&site, &[visit(1), visit(2)].concat());
    let page = site.page("/runs/a");
    assert!(page.contains("2 not verifiable"), "{page}");
    for (n, title) in [(1, "Work: files"), (2, "Work, visit 2: files")] {
        // To the claim itself.
        let link = format!("href=\"/runs/a/attempts/Work%23{n}#claim-Work%23{n}.");
        let (_, rest) = page.split_once(&link).unwrap();
        let (_, text) = rest.split_once("\">").unwrap();
        assert!(text.starts_with(&format!("{title}</a>")), "{link}: {text}");
    }
}

#[test]
fn checks_have_no_output_besides_their_own() {
    let site = Site::start();
    let started = Event::AttemptStarted {
        attempt: "measure#1".to_owned(),
        frame: String::new(),
        path: vec!["measure".to_owned()],
        agent: None,
        n: 1,
        contract: None,
        builtin: Some(BuiltinStep::Checks(vec!["test".to_owned()])),
    };
    let mut ended = Ended::new("measure#1", AttemptOutcome::Accepted);
    let report = CheckReport { status: CheckStatus::Passed, ..CheckReport::default() };
    ended.checks.insert("test".to_owned(), report);
    let (_journal, mut run) = run_of(&site, &[started]);
    let target = "/runs/a/attempts/measure%231";
    assert!(site.page(target).contains("There is no output yet."));
    run.add(&[Event::AttemptEnded(Box::new(ended))]);
    let page = site.page(target);
    assert!(page.contains("<h2>Check <code>test</code></h2>"), "{page}");
    for is_missing in ["<h2>Output</h2>", "There is no output", "id=\"replies\""] {
        assert!(!page.contains(is_missing), "{is_missing}: {page}");
    }
}

#[test]
fn the_output_of_a_command_is_no_reply_that_was_accepted() {
    let site = Site::start();
    let [started, end] = command("check", 7);
    let Event::AttemptEnded(mut ended) = end else { panic!("no end") };
    ended.reply = Some(runs::reply("transcripts/a/check", "transcripts/a/check.text"));
    let (journal, _run) = run_of(&site, &[started, Event::AttemptEnded(ended)]);
    runs::write(&site.state("state"), "transcripts/a/check.text", "2 of 7 fail");
    let page = site.page("/runs/a/attempts/check%231");
    let (_, output) = page.split_once("<section id=\"replies\">").unwrap();
    let output = output.split("</section>").next().unwrap();
    for part in ["<h2>Output</h2>", "class=\"mark bad\"", "failed", "2 of 7 fail"] {
        assert!(output.contains(part), "{part}: {output}");
    }
    for part in ["accepted", "Reply", "reply</", "asked", "prompt"] {
        assert!(!output.contains(part), "{part}: {output}");
    }
    let mut other = Run::start(&journal, "b");
    let said = runs::reply("transcripts/a/check", "transcripts/a/check.text");
    other.add(&[runs::attempt(&["Work"]), runs::replied(&["Work"], said)]);
    let page = site.page("/runs/b/attempts/Work%231");
    assert!(page.contains("Reply 1") && page.contains("What the agent was asked"), "{page}");
}
