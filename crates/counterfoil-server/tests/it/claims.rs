//! How claims are shown: with their evidence, in their order, and how many there are.

use crate::runs::{self, Run};
use crate::site::Site;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{AttemptOutcome, Ended, Event, Reply, Usage};
use serde_json::json;

fn claim(name: &str, verdict: Verdict) -> ClaimReport {
    let evidence = Evidence {
        exit_code: Some(1),
        output: format!("running\n{name} FAILED at line 42\n"),
        ..Evidence::new("command", "make exited with 1 after 27 ms")
    };
    ClaimReport {
        claim: name.to_owned(),
        field: name.to_owned(),
        kind: ClaimKind::Command,
        policy: ClaimPolicy::Record,
        verdict,
        claimed: json!(true),
        observed: json!(false),
        reason: String::new(),
        evidence: vec![evidence],
        tree: None,
    }
}

fn repair(name: &str, claims: Vec<ClaimReport>) -> Event {
    Event::RepairAsked {
        attempt: format!("{name}#1"),
        reply: Reply::default(),
        usage: Usage::default(),
        claims,
    }
}

fn ended(name: &str, outcome: AttemptOutcome, claims: Vec<ClaimReport>) -> Event {
    let mut ended = Ended::new(format!("{name}#1"), outcome);
    ended.claims = claims;
    Event::AttemptEnded(Box::new(ended))
}

#[test]
fn a_refuted_claim_says_by_what_it_is_refuted() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    let claims = vec![claim("tests", Verdict::Refuted)];
    run.add(&[runs::attempt(&["Work"]), ended("Work", AttemptOutcome::Accepted, claims)]);
    let said = "make exited with 1 after 27 ms: tests FAILED at line 42";
    for target in ["/runs/a/attempts/Work%231", "/runs/a/claims", "/runs/a/claims?q=line+42"] {
        let page = site.page(target);
        assert!(page.contains(said), "{target}: {page}");
    }
}

#[test]
fn the_inbox_has_the_claims_that_it_counts() {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    let mut last: Vec<ClaimReport> =
        (0..8).map(|at| claim(&format!("fine-{at}"), Verdict::Verified)).collect();
    last.push(claim("corrected", Verdict::Verified));
    last.push(claim("unknown", Verdict::Unverifiable));
    last.push(claim("wrong", Verdict::Refuted));
    run.add(&[
        runs::attempt(&["Work"]),
        repair("Work", vec![claim("corrected", Verdict::Refuted)]),
        ended("Work", AttemptOutcome::Accepted, last),
    ]);
    runs::ask(&mut run, "ok", "May it go out?");
    let page = site.page("/inbox");
    let shown = page.split("<code class=\"name\">").skip(1);
    let names: Vec<&str> = shown.filter_map(|rest| rest.split('<').next()).collect();
    assert_eq!(names.len(), 8, "{page}");
    assert_eq!(names[..4], ["wrong", "corrected", "unknown", "fine-0"], "{page}");
    assert!(page.contains("refuted earlier and corrected"), "{page}");
    // 11 claims and the one that was corrected.
    assert!(page.contains(">4 more claims</a>"), "{page}");
}
