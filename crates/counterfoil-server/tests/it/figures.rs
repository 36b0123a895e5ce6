//! The figures of all runs: each of them leads to what it counts.

use crate::runs::Run;
use crate::site::Site;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Verdict};
use counterfoil_engine::journal::Journal;
use counterfoil_flow::{AttemptOutcome, Ended, Event, Outcome, Reply};
use counterfoil_testkit::{TIMEOUT, wait_until};
use serde_json::json;

fn started(n: u32, contract: &str) -> Event {
    Event::AttemptStarted {
        attempt: format!("Work#{n}"),
        frame: String::new(),
        path: vec!["Work".to_owned()],
        agent: Some("coder".to_owned()),
        n,
        contract: Some(contract.to_owned()),
        builtin: None,
    }
}

fn claim(field: &str, verdict: Verdict) -> ClaimReport {
    ClaimReport {
        claim: field.to_owned(),
        field: field.to_owned(),
        kind: ClaimKind::Command,
        policy: ClaimPolicy::Record,
        verdict,
        claimed: json!(true),
        observed: json!(false),
        reason: String::new(),
        evidence: Vec::new(),
        tree: None,
    }
}

fn replied(n: u32, outcome: AttemptOutcome, claims: Vec<ClaimReport>) -> Event {
    let mut ended = Ended::new(format!("Work#{n}"), outcome);
    let is_accepted = outcome == AttemptOutcome::Accepted;
    ended.reply = Some(Reply {
        status: if is_accepted { "accepted" } else { "rejected" }.to_owned(),
        codes: if is_accepted { Vec::new() } else { vec!["C0201".to_owned()] },
        ..Reply::default()
    });
    ended.claims = claims;
    Event::AttemptEnded(Box::new(ended))
}

/// Runs in which attempts of one contract claim two fields, one field, or nothing, because their
/// replies were rejected.
fn site() -> Site {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let (good, bad) = (AttemptOutcome::Accepted, AttemptOutcome::Contract);
    let mut run = Run::start(&journal, "a");
    run.add(&[
        started(1, "acme/fix@1"),
        replied(1, bad, Vec::new()),
        started(2, "acme/fix@1"),
        replied(2, good, vec![claim("tests", Verdict::Verified), claim("files", Verdict::Refuted)]),
    ]);
    run.end(Outcome::Done);
    // All of its attempts are rejected.
    let mut run = Run::start(&journal, "b");
    run.add(&[started(1, "acme/fix@1"), replied(1, bad, Vec::new())]);
    run.end(Outcome::Failed);
    let mut run = Run::start(&journal, "c");
    run.add(&[
        started(1, "acme/fix@1"),
        replied(1, good, vec![claim("tests", Verdict::Refuted)]),
        started(2, "acme/other@1"),
        replied(2, bad, Vec::new()),
    ]);
    run.end(Outcome::Done);
    site
}

/// A page once all runs are counted.
fn counted(site: &Site, target: &str) -> String {
    wait_until(TIMEOUT, "all runs are counted", || {
        Some(site.page(target)).filter(|page| !page.contains("were read so far"))
    })
}

/// The links of a part of a page with their texts.
fn links(html: &str) -> Vec<(String, String)> {
    let links = html.split("<a href=\"").skip(1);
    let pair = |link: &str| {
        let (href, rest) = link.split_once('"')?;
        let (_, text) = rest.split_once('>')?;
        let text = text.split_once("</a>")?.0.replace("<strong class=\"bad\">", "");
        let href = href.replace("&#38;", "&").replace("&amp;", "&");
        Some((href, text.replace("</strong>", "")))
    };
    links.filter_map(pair).collect()
}

/// The whole numbers of a text: those that a cell counts.
fn numbers(text: &str) -> Vec<usize> {
    let words = text.split(|char: char| !char.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn every_cell_of_the_figures_leads_to_what_it_counts() {
    let site = site();
    for by in ["field", "agent", "model", "version"] {
        let page = counted(&site, &format!("/health?by={by}"));
        let rows: Vec<&str> = page.split("<tr data-href").skip(1).collect();
        assert!(!rows.is_empty(), "{page}");
        for row in rows {
            let cells: Vec<&str> = row.split("<td data-label=\"").skip(1).collect();
            let cell = |label: &str| {
                let own = cells.iter().find(|cell| cell.starts_with(label)).copied();
                own.unwrap_or_else(|| panic!("no cell {label}: {row}"))
            };
            let listed = |address: &str| {
                let html = counted(&site, address);
                let rows = html.split("<tr id=\"").skip(1).map(str::to_owned);
                rows.collect::<Vec<String>>()
            };
            let attempts = links(cell("Attempts"));
            assert_eq!(attempts.len(), 2, "{row}");
            for (address, text) in &attempts {
                assert_eq!(listed(address).len(), numbers(text)[0], "{by}: {address}: {row}");
            }
            if let [(address, _)] = links(cell("Violating replies")).as_slice() {
                let count = cell("Violating replies").split_once("class=\"mute\">").unwrap().1;
                let shown = listed(address);
                let label = "Violating replies\">";
                let sum: usize =
                    shown.iter().map(|row| numbers(row.split_once(label).unwrap().1)[0]).sum();
                assert_eq!(sum, numbers(count)[0], "{by}: {address}: {shown:?}");
            }
            if let [(address, _)] = links(cell("Refuted claims")).as_slice() {
                let count = cell("Refuted claims").split_once("class=\"mute\">").unwrap().1;
                let shown = listed(address);
                // Each attempt of these runs has at most one refuted claim.
                assert_eq!(shown.len(), numbers(count)[0], "{by}: {address}: {shown:?}");
            }
        }
    }
}

#[test]
fn attempts_that_claim_nothing_are_behind_the_figures_of_their_contract() {
    let site = site();
    let page = counted(&site, "/health");
    let row = page.split("<tr data-href").find(|row| row.contains(">files</a>")).unwrap();
    let all = links(row);
    let (address, text) = &all[0];
    assert_eq!(
        (address.as_str(), text.as_str()),
        ("/health/attempts?contract=acme%2Ffix%401", "files")
    );
    let list = counted(&site, address);
    for attempt in ["/runs/b/attempts/Work%231", "/runs/a/attempts/Work%231"] {
        assert!(list.contains(&format!("<tr id=\"{attempt}\"")), "{attempt}: {list}");
    }
    assert!(!list.contains("acme/other"), "{list}");
}

#[test]
fn a_claim_of_all_runs_leads_to_itself() {
    let site = site();
    let target = "/claims?contract=acme%2Ffix%401&field=files";
    let page = counted(&site, target);
    let links = links(&page);
    let (address, _) = links.iter().find(|(address, _)| address.contains("/attempts/")).unwrap();
    let (path, element) = address.split_once('#').unwrap();
    assert!(element.starts_with("claim-"), "{address}");
    let attempt = site.page(path);
    assert!(attempt.contains(&format!("id=\"{element}\"")), "{element}: {attempt}");
}
